//! Bit errors: packets that arrive, fail the check of their FCS or ICRC, and are discarded there.

use schemars::JsonSchema;
use selvedge_units::Chance;
use serde::{Deserialize, Serialize};

/// Parameters of [`LossModel::Corrupt`](super::LossModel::Corrupt): each bit of a frame fails independently, so that
/// longer packets are lost more often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BitErrors {
    /// Probability that a bit is received wrong; Ethernet allows at most 1e-12 without forward error correction (IEEE
    /// 802.3).
    pub bit_error_rate: Chance,
}
