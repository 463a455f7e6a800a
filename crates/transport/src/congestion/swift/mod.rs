//! Swift: the window keeps the round-trip time near a target.
//!
//! Design notes.
//! 1. *The target depends on the window*: small windows mean many flows, whose queues are longer (section 3.5). The
//!    target is therefore computed at each acknowledgement.
//! 2. *Less than a packet* in flight is one packet at a time, paced (section 3.6): only then is there a rate.

use selvedge_units::{Bytes, Duration, Instant, Rate};

use super::{Congestion, Signal};
use crate::role::Cx;

mod config;

pub use config::{SwiftConfig, SwiftConfig as Config, SwiftParams};

/// The window of one flow. Windows are in packets, times in picoseconds.
#[derive(Clone, Debug)]
pub struct Control {
    /// fcwnd: the window, in packets.
    cwnd: f64,
    /// The window in bytes, for the sender.
    window: Bytes,
    rate: Rate,
    /// The newest round-trip time.
    rtt: Duration,
    /// The target delay of the path: the base target plus that of the path's links.
    path_target: f64,
    decreased_at: Option<Instant>,
    /// Number of timeouts in a row.
    timeouts: u32,
    params: SwiftParams,
}

impl Control {
    /// Creates the control of a flow that has sent nothing.
    pub fn new(params: &SwiftParams) -> Self {
        let mut control = Self {
            cwnd: 0.0,
            window: Bytes::ZERO,
            rate: Rate::MAX,
            rtt: Duration::ZERO,
            path_target: params.base_target,
            decreased_at: None,
            timeouts: 0,
            params: *params,
        };
        control.set(params.initial);
        control
    }

    /// Returns the target delay: longer paths and smaller windows have larger ones (section 3.5).
    #[inline]
    fn target(&self) -> f64 {
        let SwiftParams { scale, offset, most, .. } = self.params;
        self.path_target + (scale / libm::sqrt(self.cwnd) + offset).clamp(0.0, most)
    }

    /// Handles an acknowledgement of `bytes`, with `in_flight` bytes still in flight: algorithm 1, "on receiving ACK".
    #[inline]
    fn handle_ack(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes) {
        self.timeouts = 0;
        let (delay, target) = (self.rtt.as_ps() as f64, self.target());
        if delay < target {
            let acked = bytes.get() as f64 * self.params.per_byte;
            // A window that the flow does not fill does not grow (RFC 7661).
            let is_full = (in_flight + bytes * 2).get() as f64 * self.params.per_byte > self.cwnd;
            if is_full {
                let gain = self.params.additive_increase * acked;
                self.set(self.cwnd + if self.cwnd >= 1.0 { gain / self.cwnd } else { gain });
            }
        } else if self.can_decrease(now) {
            let factor = 1.0 - self.params.beta * (delay - target) / delay;
            self.decrease(now, factor.max(1.0 - self.params.max_decrease));
        }
    }

    /// Returns whether a decrease is allowed: one per round trip.
    #[inline]
    fn can_decrease(&self, now: Instant) -> bool {
        self.decreased_at.is_none_or(|at| now.since(at) >= self.rtt)
    }

    fn decrease(&mut self, now: Instant, factor: f64) {
        self.decreased_at = Some(now);
        self.set(self.cwnd * factor);
    }

    /// Handles a retransmission timeout: algorithm 1, "on retransmit timeout".
    fn on_retransmit_timeout(&mut self, now: Instant) {
        self.timeouts += 1;
        if self.timeouts >= self.params.reset_after {
            self.decrease(now, 0.0);
        } else if self.can_decrease(now) {
            self.decrease(now, 1.0 - self.params.max_decrease);
        }
    }

    #[inline]
    fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(self.params.min, self.params.max);
        self.window = Bytes::new((self.cwnd * self.params.packet) as u64);
        self.rate = if self.cwnd < 1.0 { self.paced() } else { Rate::MAX };
    }

    /// Returns the pacing rate: a packet per rtt / cwnd.
    #[cold]
    fn paced(&self) -> Rate {
        const BIT_PS: f64 = 8e12;
        let rtt = self.rtt.as_ps().max(1) as f64;
        Rate::from_bps(((self.cwnd * self.params.packet * BIT_PS / rtt) as u64).max(1))
    }
}

impl Congestion for Control {
    fn on_path(&mut self, links: u32) {
        self.path_target = self.params.base_target + self.params.per_link * f64::from(links);
    }
    // Not inlined, to keep the other controls' arms of `AnyCongestion` inlined.
    #[inline(never)]
    fn on_signal(&mut self, cx: &mut Cx<'_>, signal: Signal) {
        match signal {
            Signal::Acked { bytes, rtt, in_flight, .. } => {
                self.rtt = rtt;
                self.handle_ack(cx.now, bytes, in_flight);
            }
            Signal::Lost => {
                self.timeouts = 0;
                if self.can_decrease(cx.now) {
                    self.decrease(cx.now, 1.0 - self.params.max_decrease);
                }
            }
            Signal::TimedOut => self.on_retransmit_timeout(cx.now),
            Signal::Cnp | Signal::Sent { .. } => {}
        }
    }
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
