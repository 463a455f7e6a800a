//! No congestion control: a flow sends at line rate from its first packet on.

use selvedge_units::Bytes;

use super::{Congestion, Signal, Tuning};
use crate::fabric::{Fabric, SettingError};
use crate::role::Cx;

/// Settings of no congestion control; there are none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(deny_unknown_fields))]
pub struct NoneConfig {}
pub use NoneConfig as Config;

impl Tuning for NoneConfig {
    type Params = Self;

    fn resolve(&mut self, _: &Fabric) {}
    fn params(&self) -> Result<Self, SettingError> {
        Ok(*self)
    }
}

/// The state of no congestion control, which is empty.
#[derive(Clone, Copy, Debug)]
pub struct Control;

impl Control {
    /// Returns a control without limits.
    pub const fn new(_: &NoneConfig) -> Self {
        Self
    }
}

impl Congestion for Control {
    #[inline]
    fn listens(&self) -> bool {
        false
    }
    #[inline]
    fn on_signal(&mut self, _: &mut Cx<'_>, _: Signal) {}
    #[inline]
    fn window(&self) -> Bytes {
        Bytes::MAX
    }
}
