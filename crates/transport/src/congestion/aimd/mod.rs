//! AIMD: the window grows by a frame per round trip, and halves after a loss.

use selvedge_units::Bytes;

use super::growing::Window;
use super::{Congestion, Signal};
use crate::role::Cx;

mod config;

pub use config::{AimdConfig, AimdConfig as Config, AimdParams, OnTimeout};

/// The window of one flow.
#[derive(Clone, Debug)]
pub struct Control {
    window: Window,
    decrease_factor: f64,
    on_timeout: OnTimeout,
}

impl Control {
    /// Creates the control of a flow that has sent nothing.
    pub const fn new(params: &AimdParams) -> Self {
        let AimdParams { window, decrease_factor, on_timeout } = *params;
        Self { window, decrease_factor, on_timeout }
    }
}

impl Congestion for Control {
    // Not inlined, to keep the other controls' arms of `AnyCongestion` inlined.
    #[inline(never)]
    fn on_signal(&mut self, _: &mut Cx<'_>, signal: Signal) {
        match signal {
            Signal::Acked { bytes, in_flight, .. } => self.window.grow(bytes, in_flight),
            Signal::Lost => self.window.cut(self.decrease_factor),
            Signal::TimedOut => self.window.cut(match self.on_timeout {
                OnTimeout::Decrease => self.decrease_factor,
                OnTimeout::Restart => 0.0,
            }),
            Signal::Cnp | Signal::Sent { .. } => {}
        }
    }
    #[inline]
    fn window(&self) -> Bytes {
        self.window.bytes()
    }
}

#[cfg(test)]
mod tests;
