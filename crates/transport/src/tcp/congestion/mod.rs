//! How large the congestion window is.
//!
//! Loss recovery tells a control what happened; the control moves the [`Window`]. One file per
//! control and one line in the registry at the end of this file.

use selvedge_units::{Duration, Instant, Octet};

use crate::congestion::{Needs, Tuning};
use crate::fabric::{Fabric, SettingError};
use crate::registry::registry;

pub mod cubic;
pub mod dctcp;
pub mod lia;
pub mod new_reno;

pub use lia::Coupling;

/// The congestion window and where slow start ends, in octets.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// cwnd.
    pub cwnd: u64,
    /// ssthresh.
    pub ssthresh: u64,
    /// SMSS.
    pub mss: u64,
    /// By how much one acknowledgement may enlarge it in slow start.
    limit: u64,
    /// Octets acknowledged since the last enlargement in congestion avoidance.
    counted: u64,
}

impl Window {
    pub(super) fn new(cwnd: u64, ssthresh: u64, mss: u64, limit: u64) -> Self {
        Self { cwnd, ssthresh, mss, limit, counted: 0 }
    }
    /// What the limit is with smaller segments.
    pub(super) fn scaled_limit(&self, mss: u64) -> u64 {
        if self.limit == u64::MAX { self.limit } else { self.limit / self.mss * mss }
    }
    /// Whether slow start applies.
    pub fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
    /// RFC 5681, section 3.1, equation 2; however much is acknowledged, no more than a segment beyond
    /// ssthresh.
    pub(super) fn slow_start(&mut self, acked: u64) {
        let distance = self.ssthresh.saturating_sub(self.cwnd).max(self.mss);
        self.cwnd += acked.min(self.limit).min(distance);
    }
    /// RFC 5681, section 3.1: one segment per window acknowledged, by counting octets.
    pub(super) fn avoid_congestion(&mut self, acked: u64) {
        self.counted += acked;
        if self.counted >= self.cwnd {
            self.counted -= self.cwnd;
            self.cwnd += self.mss;
        }
    }
    /// RFC 5681, section 3.1, equation 4.
    pub(super) fn half(&self, flight: u64) -> u64 {
        (flight / 2).max(2 * self.mss)
    }
    /// A new size, after a loss or a mark.
    pub(super) fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd;
        self.counted = 0;
    }
}

/// What a congestion control may want to know of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// Octets that it newly acknowledges.
    pub octets: u64,
    /// Now.
    pub now: Instant,
    /// Smoothed round-trip time, zero before the first sample.
    pub srtt: Duration,
    /// What the windows of other subflows of the same connection make of this one.
    pub coupling: Coupling,
}

/// A congestion control. Unless it says otherwise it halves, at marks as at losses (RFC 5681, section 3.1; RFC 3168,
/// section 6.1.2).
pub trait Control {
    /// Octets were acknowledged while the window was in use and nothing was being repaired by fast
    /// retransmit.
    fn on_acked(&mut self, window: &mut Window, acked: Acked);
    /// Of octets up to `acked`, `octets` are newly acknowledged; `echo` says whether with a mark;
    /// those before `sent` were sent. For every acknowledgement, with ECN.
    fn on_echo(&mut self, octets: u64, echo: bool, acked: Octet, sent: Octet) {
        _ = (octets, echo, acked, sent);
    }
    /// A segment was lost; returns ssthresh, with `flight` octets outstanding.
    fn on_loss(&mut self, window: &Window, flight: u64) -> u64 {
        window.half(flight)
    }
    /// Nothing was heard for a retransmission timeout; returns ssthresh.
    fn on_timeout(&mut self, window: &Window, flight: u64) -> u64 {
        window.half(flight)
    }
    /// A mark was echoed, the first in this window of data; returns ssthresh.
    fn on_mark(&mut self, window: &Window, flight: u64) -> u64 {
        window.half(flight)
    }
}

registry! {
    /// Which congestion control, with its settings.
    config CongestionConfig: Tuning {
        fn resolve(&mut self, fabric: &Fabric);
        fn check(&self) -> Result<(), SettingError>;
        fn needs(&self) -> Needs;
    }
    /// Any congestion control of TCP.
    run AnyControl: Control = State {
        fn on_acked(&mut self, window: &mut Window, acked: Acked);
        fn on_echo(&mut self, octets: u64, echo: bool, acked: Octet, sent: Octet);
        fn on_loss(&mut self, window: &Window, flight: u64) -> u64;
        fn on_timeout(&mut self, window: &Window, flight: u64) -> u64;
        fn on_mark(&mut self, window: &Window, flight: u64) -> u64;
    }
    algorithms {
        /// Additive increase, halving (RFC 5681).
        "new-reno" => NewReno(new_reno),
        /// A cubic function of the time since the last loss (RFC 9438).
        "cubic" => Cubic(cubic),
        /// Reduces by the share of marked octets (RFC 8257).
        "dctcp" => Dctcp(dctcp),
        /// MPTCP's linked increases: the subflows of a connection are as aggressive as one TCP (RFC 6356).
        "lia" => Lia(lia),
    }
}
