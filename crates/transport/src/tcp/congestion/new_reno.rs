//! Slow start and congestion avoidance (RFC 5681, section 3.1).

use super::{Acked, Control, Window};
use crate::congestion::Tuning;
use crate::fabric::{Fabric, SettingError};

/// Additive increase, halving. Without settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(deny_unknown_fields, default))]
pub struct Config {}

impl Tuning for Config {
    type Params = Self;

    fn resolve(&mut self, _: &Fabric) {}
    fn params(&self) -> Result<Self, SettingError> {
        Ok(*self)
    }
}

/// State of NewReno, which is empty: the window is sufficient.
#[derive(Clone, Copy, Debug)]
pub struct State;

impl State {
    /// Creates the control.
    pub fn new(_: &Config) -> Self {
        Self
    }
}

impl Control for State {
    fn on_acked(&mut self, window: &mut Window, acked: Acked) {
        if window.is_slow_start() {
            window.slow_start(acked.octets);
        } else {
            window.avoid_congestion(acked.octets);
        }
    }
}
