//! Congestion control: the size of the congestion window.
//!
//! Loss recovery reports events to a control, which adjusts the [`Window`]. Each control has one file and one line in
//! the registry at the end of this file.

use selvedge_units::{Duration, Instant, Octet, Rate};

use crate::congestion::{Needs, Tuning};
use crate::fabric::{Fabric, SettingError};
use crate::registry::registry;

pub mod bbr;
pub mod cubic;
pub mod dctcp;
pub mod lia;
pub mod new_reno;
pub mod vegas;

pub use super::rate::{RateSample, Recovery};
pub use lia::Coupling;

/// The congestion window and the slow start threshold, in octets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// cwnd, the congestion window.
    pub cwnd: u64,
    /// ssthresh, the slow start threshold.
    pub ssthresh: u64,
    /// SMSS, the sender's maximum segment size.
    pub mss: u64,
    /// Most octets by which one acknowledgement enlarges the window in slow start.
    limit: u64,
    /// Divisor of the growth in slow start: above 1 in HyStart++'s conservative slow start.
    pub(super) divisor: u64,
    /// Octets acknowledged since the last increase in congestion avoidance.
    counted: u64,
}

impl Window {
    pub(super) fn new(cwnd: u64, ssthresh: u64, mss: u64, limit: u64) -> Self {
        Self { cwnd, ssthresh, mss, limit, divisor: 1, counted: 0 }
    }
    /// Returns the limit scaled to segments of `mss` octets.
    pub(super) fn scaled_limit(&self, mss: u64) -> u64 {
        if self.limit == u64::MAX { self.limit } else { self.limit / self.mss * mss }
    }
    /// Returns whether slow start applies.
    pub fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// Enlarges the window in slow start (RFC 5681, section 3.1, equation 2), to at most a segment above ssthresh.
    pub(super) fn slow_start(&mut self, acked: u64) {
        let distance = self.ssthresh.saturating_sub(self.cwnd).max(self.mss);
        self.cwnd += (acked.min(self.limit) / self.divisor).min(distance);
    }
    /// Enlarges the window by one segment per window acknowledged, by counting octets (RFC 5681, section 3.1).
    pub(super) fn avoid_congestion(&mut self, acked: u64) {
        self.counted += acked;
        if self.counted >= self.cwnd {
            self.counted -= self.cwnd;
            self.cwnd += self.mss;
        }
    }
    /// Returns half the flight, at least two segments (RFC 5681, section 3.1, equation 4).
    pub(super) fn half(&self, flight: u64) -> u64 {
        (flight / 2).max(2 * self.mss)
    }
    /// Sets the window after a loss or a mark.
    pub(super) fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd;
        self.counted = 0;
    }
}

/// Properties of an acknowledgement that a congestion control may use.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Octets newly acknowledged.
    pub octets: u64,
    /// Present time.
    pub now: Instant,
    /// Smoothed round-trip time, zero before the first sample.
    pub srtt: Duration,
    /// Round-trip time that the acknowledgement measures, if it does.
    pub rtt: Option<Duration>,
    /// End of the octets acknowledged.
    pub acked: Octet,
    /// End of the octets sent.
    pub sent: Octet,
    /// Influence of the other subflows of the same connection.
    pub coupling: Coupling,
}

/// A congestion control. The default methods halve the window at losses and marks (RFC 5681, section 3.1; RFC 3168,
/// section 6.1.2).
pub trait Control {
    /// Handles an acknowledgement of octets while the window was in use and outside fast recovery.
    fn on_acked(&mut self, window: &mut Window, acked: Acked);
    /// Handles the ECN feedback of an acknowledgement up to `acked`, with `octets` newly acknowledged; `echo` tells
    /// whether it echoes a mark; `sent` is the end of the octets sent. Called for every acknowledgement with ECN.
    fn on_echo(&mut self, octets: u64, echo: bool, acked: Octet, sent: Octet) {
        _ = (octets, echo, acked, sent);
    }
    /// Handles an acknowledgement that delivers octets. Called for every one, and only if
    /// [`owns_window`](Control::owns_window). Returns whether the control keeps the rate below what it could be, so
    /// that what is sent now measures nothing.
    fn on_sample(&mut self, window: &mut Window, sample: &RateSample) -> bool {
        _ = (window, sample);
        false
    }
    /// Returns whether the control sets cwnd from rate samples, also while losses are repaired, in place of all other
    /// rules.
    fn owns_window(&self) -> bool {
        false
    }
    /// Returns the rate at which segments are paced; `None`: as soon as the window allows.
    fn pacing(&self) -> Option<Rate> {
        None
    }
    /// Seeds the control's choices. Equal seeds make equal choices.
    fn seed(&mut self, seed: u64) {
        _ = seed;
    }
    /// Handles the begin of transmission after a silence, with nothing in flight.
    fn on_restart(&mut self) {}
    /// Takes back the last reaction to a loss or a timeout, which was spurious; cwnd and ssthresh are restored by the
    /// caller.
    fn on_undo(&mut self) {}
    /// Handles a loss with `flight` octets outstanding; returns ssthresh.
    fn on_loss(&mut self, window: &Window, flight: u64) -> u64 {
        window.half(flight)
    }
    /// Handles a retransmission timeout; returns ssthresh.
    fn handle_timeout(&mut self, window: &Window, flight: u64) -> u64 {
        window.half(flight)
    }
    /// Handles the first echoed mark in a window of data; returns ssthresh.
    fn on_mark(&mut self, window: &Window, flight: u64) -> u64 {
        window.half(flight)
    }
}

registry! {
    /// The choice of a congestion control, with its settings.
    config CongestionConfig: Tuning {
        fn resolve(&mut self, fabric: &Fabric);
        fn needs(&self) -> Needs;
    }
    /// Parameters of a congestion control.
    params CongestionParams
    /// Any congestion control of TCP.
    #[derive(Clone, Debug)]
    run AnyControl: Control = State {
        fn on_acked(&mut self, window: &mut Window, acked: Acked);
        fn on_echo(&mut self, octets: u64, echo: bool, acked: Octet, sent: Octet);
        fn on_sample(&mut self, window: &mut Window, sample: &RateSample) -> bool;
        fn owns_window(&self) -> bool;
        fn pacing(&self) -> Option<Rate>;
        fn seed(&mut self, seed: u64);
        fn on_restart(&mut self);
        fn on_undo(&mut self);
        fn on_loss(&mut self, window: &Window, flight: u64) -> u64;
        fn handle_timeout(&mut self, window: &Window, flight: u64) -> u64;
        fn on_mark(&mut self, window: &Window, flight: u64) -> u64;
    }
    algorithms {
        /// Additive increase, halving (RFC 5681).
        "new-reno" => NewReno(new_reno),
        /// A cubic function of the time since the last loss (RFC 9438).
        "cubic" => Cubic(cubic),
        /// Reduction by the fraction of marked octets (RFC 8257).
        "dctcp" => Dctcp(dctcp),
        /// MPTCP's linked increases: the subflows of a connection are as aggressive as one TCP (RFC 6356).
        "lia" => Lia(lia),
        /// A model of the path's rate and round trip, paced (BBR, version 1).
        "bbr" => Bbr(bbr),
        /// As few segments queued as suffice, by round-trip times (Vegas).
        "vegas" => Vegas(vegas),
    }
}
