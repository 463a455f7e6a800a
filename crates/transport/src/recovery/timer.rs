//! The retransmission timer, with IRN's two static timeouts (section 3.1, and the `timeout` module of section 6.2);
//! RoCE has one timeout.

use selvedge_units::{Duration, Instant};

use crate::Fabric;

/// RTO_low in the IRN paper's experiments (section 4.1), where an empty network answers within a quarter of that time.
const RTO_LOW: Duration = Duration::from_us(100);

/// Returns RTO_low at "auto": the paper's value, or one and a half times the round-trip time of the empty network if
/// that is longer; at most RTO_high.
pub(super) fn rto_low(fabric: &Fabric, high: Duration) -> Duration {
    RTO_LOW.max(fabric.base_rtt.saturating_mul(3) / 2).min(high)
}

/// Events that restart the retransmission timer while packets are in flight. Each value includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum RtoRestart {
    /// A cumulative acknowledgement that moves, or a timeout.
    #[default]
    Progress,
    /// Also a retransmission of the packet at the cumulative acknowledgement, which has a whole timeout to arrive (like
    /// in Linux's TCP).
    Retransmission,
    /// Also any answer of the receiver: the receiver is alive, and the missing packets are being retransmitted.
    AnyAck,
}

/// The retransmission timer of one flow. The timer runs while packets are outstanding; it starts at the last cumulative
/// progress, or at other events that [`RtoRestart`] selects.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Timer {
    /// The start of the running timeout; [`Instant::NEVER`] while the timer is stopped.
    start: Instant,
    /// RTO_low; [`Duration::MAX`] without timeouts.
    low: Duration,
    high: Duration,
    low_packets: u32,
    /// Whether RTO_low has passed with too many packets in flight, so that RTO_high applies from the same start.
    extended: bool,
    restart: RtoRestart,
}

impl Timer {
    /// Creates a timer whose RTO_low applies to at most `low_packets` packets in flight; [`Duration::MAX`] is no
    /// timeout.
    pub(super) fn new(low: Duration, high: Duration, low_packets: u32) -> Self {
        Self { start: Instant::NEVER, low, high, low_packets, extended: false, restart: RtoRestart::Progress }
    }
    /// Returns the timer with another rule for restarts.
    pub(super) fn restarted_by(self, restart: RtoRestart) -> Self {
        Self { restart, ..self }
    }
    /// Creates a timer with one timeout, for any number of packets in flight.
    pub(super) fn single(timeout: Duration) -> Self {
        Self::new(timeout, timeout, u32::MAX)
    }
    /// Sets one timeout for any number of packets in flight.
    #[inline]
    pub(super) fn set(&mut self, timeout: Duration) {
        (self.low, self.high) = (timeout, timeout);
    }
    /// Starts the timer at `now` if it is stopped, because packets are outstanding.
    #[inline]
    pub(super) fn ensure_running(&mut self, now: Instant) {
        self.start = self.start.min(now);
    }
    /// Restarts the timer at `now`, after progress or a timeout.
    #[inline]
    pub(super) fn restart(&mut self, now: Instant) {
        self.start = now;
        self.extended = false;
    }
    /// Handles an answer without progress, which restarts a running timer if [`RtoRestart`] says so.
    #[inline]
    pub(super) fn on_answer(&mut self, now: Instant) {
        if self.restart == RtoRestart::AnyAck && self.start != Instant::NEVER {
            self.restart(now);
        }
    }
    /// Handles a transmission or retransmission of the oldest outstanding packet, which restarts the timer if
    /// [`RtoRestart`] says so.
    #[inline]
    pub(super) fn on_oldest_sent(&mut self, now: Instant) {
        if self.restart != RtoRestart::Progress {
            self.restart(now);
        }
    }
    /// Stops the timer, because no packet is outstanding.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.restart(Instant::NEVER);
    }
    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        self.start.saturating_add(if self.extended { self.high } else { self.low })
    }
    /// Returns whether the current deadline is RTO_low's.
    pub(super) fn is_quick(&self) -> bool {
        !self.extended
    }
    /// Returns whether RTO_low applies to `in_flight` packets.
    pub(super) fn is_few(&self, in_flight: u64) -> bool {
        in_flight <= u64::from(self.low_packets)
    }
    /// Extends the timeout to RTO_high, because too many packets are in flight for RTO_low; returns the new deadline.
    pub(super) fn extend(&mut self) -> Instant {
        self.extended = true;
        self.deadline()
    }
}
