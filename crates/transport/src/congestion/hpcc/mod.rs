//! HPCC: the window follows the utilisation of the fullest link, as the switches report it.
//!
//! Design notes.
//! 1. *Two windows.* W is computed at each acknowledgement from the reference W_c, which changes once per round trip: a
//!    state of the links that a window's worth of acknowledgements reports causes one reaction.
//! 2. *Each link is compared with itself*, one acknowledgement ago. The state of the links is stored separately, so
//!    that the senders of other controls stay small.

use alloc::boxed::Box;

use selvedge_units::{Bytes, Rate, Seq};
use selvedge_wire::PathRecord;

use super::{Congestion, Signal};
use crate::role::Cx;

mod config;
mod links;

pub use config::{HpccConfig, HpccConfig as Config, HpccParams};
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
    params: HpccParams,
}

impl Control {
    /// Creates the control of a flow that has sent nothing.
    pub fn new(params: &HpccParams) -> Self {
        Self {
            window: params.most,
            reference: params.most,
            utilisation: 0.0,
            stage: 0,
            threshold: if params.max_stage > 0 { params.eta } else { 0.0 },
            rate: params.full_rate,
            acked: Seq::ZERO,
            links: Box::new(Links::UNKNOWN),
            params: *params,
        }
    }

    /// Computes window and rate: algorithm 1, `ComputeWind` and `NewAck`.
    #[inline]
    fn adjust(&mut self) {
        let HpccParams { eta, max_stage, additive_increase, most, full_rate, least, bps_per_byte, .. } = self.params;
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
        if let Some(utilisation) = self.links.measure(path, self.utilisation, self.params.per_tick) {
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
