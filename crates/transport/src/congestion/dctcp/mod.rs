//! DCTCP: the window shrinks by the share of marked packets.

use selvedge_units::{Bytes, Seq};

use super::growing::Window;
use super::{Congestion, Signal};
use crate::role::Cx;

mod config;

pub use config::{DctcpConfig, DctcpConfig as Config};

/// The window of one flow.
#[derive(Clone, Debug)]
pub struct Control {
    window: Window,
    alpha: f64,
    /// Bytes acknowledged, and of these marked, in the present observation window.
    acked: u64,
    marked: u64,
    /// The observation window ends when more than everything before this is acknowledged.
    end: Seq,
    /// It was cut: not again before everything up to here is acknowledged.
    cut_until: Seq,
    g: f64,
    decrease_factor: f64,
}

impl Control {
    /// A flow that has sent nothing.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn new(config: &DctcpConfig) -> Self {
        let DctcpConfig { g, decrease_factor, initial_alpha: alpha, .. } = *config;
        Self {
            window: Window::new(&config.window),
            alpha,
            acked: 0,
            marked: 0,
            end: Seq::ZERO,
            cut_until: Seq::ZERO,
            g,
            decrease_factor,
        }
    }

    /// An observation window is over: equation 1 (RFC 8257, section 3.3, steps 4 to 8).
    fn observe(&mut self, sent: Seq) {
        let share = self.marked as f64 / self.acked.max(1) as f64;
        self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
        (self.acked, self.marked, self.end) = (0, 0, sent);
    }

    /// A mark has come back: equation 2 (RFC 8257, section 3.3, step 9), once per window.
    fn reduce(&mut self, acked: Seq, sent: Seq) {
        if acked >= self.cut_until {
            self.cut_until = sent;
            self.window.cut(1.0 - self.alpha / 2.0);
        }
    }
}

impl Congestion for Control {
    // Not inlined, so that the others' share of `AnyCongestion` still is.
    #[inline(never)]
    fn on_signal(&mut self, _: &mut Cx<'_>, signal: Signal) {
        match signal {
            Signal::Acked { bytes, in_flight, marked, acked, sent, .. } => {
                self.acked += bytes.get();
                self.marked += if marked { bytes.get() } else { 0 };
                if acked > self.end {
                    self.observe(sent);
                }
                if marked {
                    self.reduce(acked, sent);
                } else {
                    self.window.grow(bytes, in_flight);
                }
            }
            // Section 3.1: a loss is answered as by TCP.
            Signal::Lost | Signal::TimedOut => self.window.cut(self.decrease_factor),
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
