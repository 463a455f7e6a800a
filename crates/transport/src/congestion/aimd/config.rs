//! Settings of AIMD.

use crate::congestion::growing::{Window, WindowConfig};
use crate::congestion::{Needs, Tuning};
use crate::fabric::{Fabric, SettingError};

/// Additive increase, multiplicative decrease, like in TCP (RFC 5681).
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case", deny_unknown_fields, default))]
pub struct AimdConfig {
    /// Settings of the window.
    pub window: WindowConfig,
    /// The part of the window that remains after a loss, from 0 to below 1. Default: 0.5.
    pub decrease_factor: f64,
    /// The reaction of the window to a timeout. Default: decrease.
    pub on_timeout: OnTimeout,
}

/// The reaction of the window to a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum OnTimeout {
    /// Decrease, like after any loss.
    #[default]
    Decrease,
    /// Reset to the smallest window (RFC 5681, section 3.1).
    Restart,
}

impl Default for AimdConfig {
    fn default() -> Self {
        Self { window: WindowConfig::default(), decrease_factor: 0.5, on_timeout: OnTimeout::Decrease }
    }
}

/// Parameters of AIMD.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AimdParams {
    pub(super) window: Window,
    pub(super) decrease_factor: f64,
    pub(super) on_timeout: OnTimeout,
}

impl Tuning for AimdConfig {
    type Params = AimdParams;

    fn resolve(&mut self, fabric: &Fabric) {
        self.window.resolve(fabric);
    }
    fn params(&self) -> Result<AimdParams, SettingError> {
        if !(0.0..1.0).contains(&self.decrease_factor) {
            let message = alloc::format!("{} is out of range: from 0 to below 1", self.decrease_factor);
            return Err(SettingError::new("decrease-factor", message));
        }
        let Self { decrease_factor, on_timeout, .. } = *self;
        Ok(AimdParams { window: self.window.params()?, decrease_factor, on_timeout })
    }
    fn needs(&self) -> Needs {
        Needs { acks: true, losses: true, ..Needs::default() }
    }
}
