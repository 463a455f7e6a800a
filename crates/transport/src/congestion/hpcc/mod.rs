//! HPCC: the window follows the utilisation of the fullest link, as the switches report it.
//!
//! Design notes.
//! 1. *Two windows.* W is computed at each acknowledgement from the reference W_c, which changes once per round trip: a
//!    state of the links that a window's worth of acknowledgements reports causes one reaction.
//! 2. *Each link is compared with itself*, one acknowledgement ago. The state of the links is stored separately, so
//!    that the senders of other controls stay small.

use alloc::boxed::Box;

use selvedge_units::{Bytes, Duration, Rate, Seq};
use selvedge_wire::PathRecord;

use super::{Congestion, Signal};
use crate::fabric::resolved;
use crate::role::Cx;

mod config;
mod links;

pub use config::{HpccConfig, HpccConfig as Config};
use links::{Links, larger, smaller, whole};

/// The number of switches whose telemetry fits into a packet.
pub const MOST_SWITCHES: usize = PathRecord::MOST;

/// The window of one flow. Windows are in bytes, times in picoseconds.
#[derive(Clone, Debug)]
pub struct Control {
    /// W: the window.
    window: f64,
    /// W_c: the reference window, which changes once per round trip.
    reference: f64,
    /// U: the smoothed utilisation of the fullest link; queues count as bytes of one T.
    utilisation: f32,
    /// incStage: round trips of additive increase since the window last followed U.
    stage: u32,
    /// The utilisation from which on the window follows U: eta, or zero once incStage is maxStage.
    threshold: f64,
    rate: Rate,
    /// The first unacknowledged packet as of the newest acknowledgement.
    acked: Seq,
    /// L: the state of the links as of the previous acknowledgement.
    links: Box<Links>,
    settings: Settings,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    /// 1 / T, where T is in ticks of the links.
    per_tick: f32,
    /// Bits per second per byte of window: 8 bits / T.
    bps_per_byte: f64,
    eta: f64,
    max_stage: u32,
    additive_increase: f64,
    most: f64,
    /// The rate at the largest window.
    full_rate: Rate,
    least: f64,
}

const BYTE_PS: f64 = 8e12;

impl Control {
    /// Creates the control of a flow that has sent nothing.
    ///
    /// # Panics
    /// When a setting still says "auto".
    pub fn new(config: &HpccConfig) -> Self {
        let base_rtt = resolved(config.base_rtt, "base-rtt").map_or(0.0, |time: Duration| time.as_ps() as f64);
        let most = config.initial_window().get() as f64;
        Self {
            window: most,
            reference: most,
            utilisation: 0.0,
            stage: 0,
            threshold: if config.max_stage > 0 { config.target_utilisation } else { 0.0 },
            rate: config.full_rate(),
            acked: Seq::ZERO,
            links: Box::new(Links::UNKNOWN),
            settings: Settings {
                per_tick: (PathRecord::TICK.as_ps() as f64 / base_rtt) as f32,
                bps_per_byte: BYTE_PS / base_rtt,
                eta: config.target_utilisation,
                max_stage: config.max_stage,
                additive_increase: resolved(config.additive_increase, "additive-increase")
                    .map_or(0.0, |bytes: Bytes| bytes.get() as f64),
                most,
                full_rate: config.full_rate(),
                least: config.min_rate.as_bps() as f64 * base_rtt / BYTE_PS,
            },
        }
    }

    /// Computes window and rate: algorithm 1, `ComputeWind` and `NewAck`.
    #[inline]
    fn adjust(&mut self) {
        let Settings { eta, max_stage, additive_increase, most, full_rate, least, bps_per_byte, .. } = self.settings;
        // W_c / (U / eta), or W_c.
        let divisor = larger(f64::from(self.utilisation), self.threshold);
        self.window = larger(smaller(self.reference * eta / divisor + additive_increase, most), least);
        if self.acked > self.links.updated_at {
            self.stage = if f64::from(self.utilisation) >= self.threshold { 0 } else { self.stage + 1 };
            self.threshold = if self.stage < max_stage { eta } else { 0.0 };
            self.reference = self.window;
            self.links.updated_at = self.links.sent;
        }
        // R = W / T.
        let bps = self.window * bps_per_byte;
        self.rate = if self.window >= most { full_rate } else { Rate::from_bps(whole(bps)) };
    }
}

impl Congestion for Control {
    #[inline]
    fn on_signal(&mut self, _: &mut Cx<'_>, signal: Signal) {
        // Losses have no effect on the window.
        if let Signal::Acked { acked, sent, .. } = signal {
            self.acked = acked;
            self.links.sent = sent;
        }
    }
    #[inline]
    fn handle_telemetry(&mut self, path: &PathRecord) {
        if let Some(utilisation) = self.links.measure(path, self.utilisation, self.settings.per_tick) {
            self.utilisation = utilisation;
            self.adjust();
        }
    }
    #[inline]
    fn window(&self) -> Bytes {
        Bytes::new(whole(self.window))
    }
    #[inline]
    fn rate(&self) -> Rate {
        self.rate
    }
}

#[cfg(test)]
mod tests;
