//! Settings of the fixed limits.

use selvedge_units::{Bytes, Duration, Rate, Setting};

use crate::congestion::{Needs, Tuning, pause};
use crate::fabric::{Fabric, SettingError, known, resolve};

/// A window and a rate that never change.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct FixedConfig {
    /// Bytes on the wire (headers and gaps included) that a flow may have in flight. Default: off.
    /// "auto" is the bandwidth-delay product of its path.
    pub window: Setting<Bytes>,
    /// Rate on the wire (headers and gaps included) that a flow keeps to. Default: off. "auto" is
    /// the hosts' line rate.
    pub rate: Setting<Rate>,
}

impl Default for FixedConfig {
    fn default() -> Self {
        Self { window: Setting::Off, rate: Setting::Off }
    }
}

/// Limits on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedParams {
    /// The window; [`Bytes::MAX`] without a limit.
    pub(super) window: Bytes,
    /// The rate; [`Rate::MAX`] without a limit.
    pub(super) rate: Rate,
}

impl Tuning for FixedConfig {
    type Params = FixedParams;

    fn resolve(&mut self, fabric: &Fabric) {
        resolve(&mut self.window, || Some(fabric.bdp));
        resolve(&mut self.rate, || Some(fabric.line_rate));
    }
    fn params(&self) -> Result<FixedParams, SettingError> {
        if self.rate == Setting::Value(Rate::ZERO) {
            return Err(SettingError::new("rate", "a rate of zero never sends anything; give one above, or \"off\""));
        }
        Ok(FixedParams {
            window: known(self.window, "window")?.unwrap_or(Bytes::MAX),
            rate: known(self.rate, "rate")?.unwrap_or(Rate::MAX),
        })
    }
    fn needs(&self) -> Needs {
        // A window needs acknowledgements to open again.
        Needs { acks: self.window != Setting::Off, ..Needs::default() }
    }
    fn slowest_pace(&self, frame: Bytes, _round: Duration) -> Duration {
        pause(self.rate, frame)
    }
}
