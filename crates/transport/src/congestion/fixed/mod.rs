//! A window and a rate that never change: for calibration, and to show the effect of a limit alone.

use selvedge_units::{Bytes, Rate};

use super::{Congestion, Signal};
use crate::fabric::resolved;
use crate::role::Cx;

mod config;

pub use config::FixedConfig;
pub use config::FixedConfig as Config;

/// The fixed window and rate.
#[derive(Clone, Copy, Debug)]
pub struct Control {
    window: Bytes,
    rate: Rate,
}

impl Control {
    /// Creates a control with the limits of resolved settings.
    pub fn new(config: &FixedConfig) -> Self {
        Self {
            window: resolved(config.window, "window").unwrap_or(Bytes::MAX),
            rate: resolved(config.rate, "rate").unwrap_or(Rate::MAX),
        }
    }
}

impl Congestion for Control {
    #[inline]
    fn on_signal(&mut self, _: &mut Cx<'_>, _: Signal) {}
    #[inline]
    fn window(&self) -> Bytes {
        self.window
    }
    #[inline]
    fn rate(&self) -> Rate {
        self.rate
    }
}

#[cfg(test)]
mod tests;
