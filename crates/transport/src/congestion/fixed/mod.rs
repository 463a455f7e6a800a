//! A window and a rate that never change: for calibration, and to show the effect of a limit alone.

use selvedge_units::{Bytes, Rate};

use super::{Congestion, Signal};
use crate::role::Cx;

mod config;

pub use config::{FixedConfig, FixedConfig as Config, FixedParams};

/// The fixed window and rate.
#[derive(Clone, Copy, Debug)]
pub struct Control(FixedParams);

impl Control {
    /// Creates a control with these limits.
    pub const fn new(params: &FixedParams) -> Self {
        Self(*params)
    }
}

impl Congestion for Control {
    #[inline]
    fn on_signal(&mut self, _: &mut Cx<'_>, _: Signal) {}
    #[inline]
    fn window(&self) -> Bytes {
        self.0.window
    }
    #[inline]
    fn rate(&self) -> Rate {
        self.0.rate
    }
}

#[cfg(test)]
mod tests;
