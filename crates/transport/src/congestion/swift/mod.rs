//! Swift: the window keeps the round-trip time near a target.
//!
//! Design notes.
//! 1. *The target depends on the window*: small windows mean many flows, whose queues are longer (section 3.5). The
//!    target is therefore computed at each acknowledgement.
//! 2. *Less than a packet* in flight is one packet at a time, paced (section 3.6): only then is there a rate.

use selvedge_units::{Bytes, Duration, Instant, Rate};

use super::{Congestion, Signal};
use crate::fabric::resolved;
use crate::role::Cx;

mod config;

pub use config::{SwiftConfig, SwiftConfig as Config};

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
    settings: Settings,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    packet: f64,
    /// Packets per byte, to convert bytes into packets.
    per_byte: f64,
    min: f64,
    max: f64,
    additive_increase: f64,
    beta: f64,
    max_decrease: f64,
    base_target: f64,
    per_link: f64,
    /// Alpha of flow-based scaling.
    scale: f64,
    /// Beta of flow-based scaling.
    offset: f64,
    /// fs_range: the largest part of the target that flow-based scaling adds.
    most: f64,
    reset_after: u32,
}

impl Control {
    /// Creates the control of a flow that has sent nothing.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn new(config: &SwiftConfig) -> Self {
        let bytes = |setting, key| resolved(setting, key).map_or(0.0, |bytes: Bytes| bytes.get() as f64);
        let ps = |setting, key| resolved(setting, key).map_or(0.0, |time: Duration| time.as_ps() as f64);
        let packet = bytes(config.packet, "packet");
        let most = ps(config.flow_scaling, "flow-scaling");
        let (low, high) = (1.0 / libm::sqrt(config.flow_scaling_from), 1.0 / libm::sqrt(config.flow_scaling_to));
        let scale = most / (low - high);
        let settings = Settings {
            packet,
            per_byte: 1.0 / packet,
            min: config.min_cwnd,
            max: bytes(config.max_window, "max-window") / packet,
            additive_increase: config.additive_increase,
            beta: config.beta,
            max_decrease: config.max_decrease,
            base_target: ps(config.base_target, "base-target"),
            per_link: ps(config.per_link, "per-link"),
            scale,
            offset: -scale * high,
            most,
            reset_after: config.reset_after,
        };
        let mut control = Self {
            cwnd: 0.0,
            window: Bytes::ZERO,
            rate: Rate::MAX,
            rtt: Duration::ZERO,
            path_target: settings.base_target,
            decreased_at: None,
            timeouts: 0,
            settings,
        };
        control.set(bytes(config.initial_window, "initial-window") / packet);
        control
    }

    /// Returns the target delay: longer paths and smaller windows have larger ones (section 3.5).
    #[inline]
    fn target(&self) -> f64 {
        let Settings { scale, offset, most, .. } = self.settings;
        self.path_target + (scale / libm::sqrt(self.cwnd) + offset).clamp(0.0, most)
    }

    /// Handles an acknowledgement of `bytes`, with `in_flight` bytes still in flight: algorithm 1, "on receiving ACK".
    #[inline]
    fn handle_ack(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes) {
        self.timeouts = 0;
        let (delay, target) = (self.rtt.as_ps() as f64, self.target());
        if delay < target {
            let acked = bytes.get() as f64 * self.settings.per_byte;
            // A window that the flow does not fill does not grow (RFC 7661).
            let is_full = (in_flight + bytes * 2).get() as f64 * self.settings.per_byte > self.cwnd;
            if is_full {
                let gain = self.settings.additive_increase * acked;
                self.set(self.cwnd + if self.cwnd >= 1.0 { gain / self.cwnd } else { gain });
            }
        } else if self.can_decrease(now) {
            let factor = 1.0 - self.settings.beta * (delay - target) / delay;
            self.decrease(now, factor.max(1.0 - self.settings.max_decrease));
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
        if self.timeouts >= self.settings.reset_after {
            self.decrease(now, 0.0);
        } else if self.can_decrease(now) {
            self.decrease(now, 1.0 - self.settings.max_decrease);
        }
    }

    #[inline]
    fn set(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(self.settings.min, self.settings.max);
        self.window = Bytes::new((self.cwnd * self.settings.packet) as u64);
        self.rate = if self.cwnd < 1.0 { self.paced() } else { Rate::MAX };
    }

    /// Returns the pacing rate: a packet per rtt / cwnd.
    #[cold]
    fn paced(&self) -> Rate {
        const BIT_PS: f64 = 8e12;
        let rtt = self.rtt.as_ps().max(1) as f64;
        Rate::from_bps(((self.cwnd * self.settings.packet * BIT_PS / rtt) as u64).max(1))
    }
}

impl Congestion for Control {
    fn on_path(&mut self, links: u32) {
        self.path_target = self.settings.base_target + self.settings.per_link * f64::from(links);
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
                    self.decrease(cx.now, 1.0 - self.settings.max_decrease);
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
