//! The position of a port in the fabric.

use std::fmt;

use selvedge_telemetry::PortKind;
use serde::{Deserialize, Serialize};

/// The layer that a port's node belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Hosts.
    Host,
    /// Switches at this distance from the hosts; 0 is the top-of-rack switches.
    Switch(u8),
}

impl From<PortKind> for Tier {
    fn from(kind: PortKind) -> Self {
        match kind {
            PortKind::Host => Self::Host,
            PortKind::Switch { tier } => Self::Switch(tier),
        }
    }
}

/// Formats as "host" or "tier 0".
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Switch(tier) => write!(f, "tier {tier}"),
        }
    }
}
