//! DCTCP: the window shrinks by a part that depends on the fraction of marked packets.

use selvedge_units::{Bytes, Seq};

use super::growing::Window;
use super::{Congestion, Signal};
use crate::role::Cx;

mod config;

pub use config::{DctcpConfig, DctcpConfig as Config, DctcpParams};

/// The window of one flow.
#[derive(Clone, Debug)]
pub struct Control {
    window: Window,
    alpha: f64,
    /// Bytes acknowledged in the present observation window.
    acked: u64,
    /// Marked bytes acknowledged in the present observation window.
    marked: u64,
    /// The end of the observation window: the window ends when more than the packets before this one is acknowledged.
    end: Seq,
    /// The packet up to which marks cannot cut the window again.
    cut_until: Seq,
    /// The part of the window that marks left when they cut it, until `cut_until` is acknowledged; else 1.
    left: f64,
    /// The first packet never sent, as of the newest acknowledgement.
    sent: Seq,
    g: f64,
    decrease_factor: f64,
}

impl Control {
    /// Creates the control of a flow that has sent nothing.
    pub const fn new(params: &DctcpParams) -> Self {
        let DctcpParams { window, g, initial_alpha: alpha, decrease_factor } = *params;
        Self {
            window,
            alpha,
            acked: 0,
            marked: 0,
            end: Seq::ZERO,
            cut_until: Seq::ZERO,
            left: 1.0,
            sent: Seq::ZERO,
            g,
            decrease_factor,
        }
    }

    /// Ends an observation window: equation 1 (RFC 8257, section 3.3, steps 4 to 8).
    fn observe(&mut self, sent: Seq) {
        let share = self.marked as f64 / self.acked.max(1) as f64;
        self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
        (self.acked, self.marked, self.end) = (0, 0, sent);
    }

    /// Reacts to a mark, at most once per window: equation 2 (RFC 8257, section 3.3, step 9).
    fn reduce(&mut self, acked: Seq) {
        if acked >= self.cut_until {
            self.cut_until = self.sent;
            self.left = 1.0 - self.alpha / 2.0;
            self.window.cut(self.left);
        }
    }

    /// Reacts to a loss like TCP (section 3.1). A loss and marks in one window of data count as one congestion: the
    /// window is cut once, for the loss (RFC 3168, section 6.1.2).
    fn reduce_for_loss(&mut self) {
        self.window.cut((self.decrease_factor / self.left).min(1.0));
        (self.cut_until, self.left) = (self.sent, 1.0);
    }
}

impl Congestion for Control {
    // Not inlined, to keep the other controls' arms of `AnyCongestion` inlined.
    #[inline(never)]
    fn on_signal(&mut self, _: &mut Cx<'_>, signal: Signal) {
        match signal {
            Signal::Acked { bytes, in_flight, marked, acked, sent, .. } => {
                self.sent = sent;
                if acked >= self.cut_until {
                    self.left = 1.0;
                }
                self.acked += bytes.get();
                self.marked += if marked { bytes.get() } else { 0 };
                if acked > self.end {
                    self.observe(sent);
                }
                if marked {
                    self.reduce(acked);
                } else {
                    self.window.grow(bytes, in_flight);
                }
            }
            Signal::Lost | Signal::TimedOut => self.reduce_for_loss(),
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
