//! The retransmission timer: IRN's two static timeouts (section 3.1, and the `timeout` module of
//! section 6.2), of which RoCE has one.

use selvedge_units::{Duration, Instant};

use crate::Fabric;

/// RTO_low in the IRN paper's experiments (section 4.1), where an empty network answers within a quarter of it.
const RTO_LOW: Duration = Duration::from_us(100);

/// RTO_low at "auto": the paper's, or half more than an empty network takes to answer; no more than RTO_high.
pub(super) fn rto_low(fabric: &Fabric, high: Duration) -> Duration {
    RTO_LOW.max(fabric.base_rtt.saturating_mul(3) / 2).min(high)
}

/// What restarts the retransmission timer while packets are in flight. Each includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum RtoRestart {
    /// A cumulative acknowledgement that moves, or a timeout.
    #[default]
    Progress,
    /// Sending the packet at the cumulative acknowledgement again, too: it gets a whole timeout to arrive (Linux's TCP
    /// does so).
    Retransmission,
    /// Any answer of the receiver, too: it lives, and what it lacks is being sent again.
    AnyAck,
}

/// One timer per flow. It runs while something is outstanding, from the last cumulative progress, or what else
/// [`RtoRestart`] says.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    /// [`Instant::NEVER`] when it does not run.
    start: Instant,
    /// [`Duration::MAX`] without timeouts.
    low: Duration,
    high: Duration,
    low_packets: u32,
    /// RTO_low has passed with too much in flight; RTO_high applies, from the same start.
    extended: bool,
    restart: RtoRestart,
}

impl Timer {
    /// RTO_low is for at most `low_packets` in flight; [`Duration::MAX`] is no timeout.
    pub(super) fn new(low: Duration, high: Duration, low_packets: u32) -> Self {
        Self { start: Instant::NEVER, low, high, low_packets, extended: false, restart: RtoRestart::Progress }
    }
    /// The timer with another rule of what restarts it.
    pub(super) fn restarted_by(self, restart: RtoRestart) -> Self {
        Self { restart, ..self }
    }
    /// One timeout, whatever is in flight.
    pub(super) fn single(timeout: Duration) -> Self {
        Self::new(timeout, timeout, u32::MAX)
    }
    /// From now on, this is the one timeout.
    #[inline]
    pub(super) fn set(&mut self, timeout: Duration) {
        (self.low, self.high) = (timeout, timeout);
    }
    /// Something is outstanding.
    #[inline]
    pub(super) fn ensure_running(&mut self, now: Instant) {
        self.start = self.start.min(now);
    }
    /// Progress, or a timeout.
    #[inline]
    pub(super) fn restart(&mut self, now: Instant) {
        self.start = now;
        self.extended = false;
    }
    /// An answer has come that makes no progress, while something is outstanding.
    #[inline]
    pub(super) fn on_answer(&mut self, now: Instant) {
        if self.restart == RtoRestart::AnyAck && self.start != Instant::NEVER {
            self.restart(now);
        }
    }
    /// The oldest packet that is outstanding is sent, perhaps again.
    #[inline]
    pub(super) fn on_oldest_sent(&mut self, now: Instant) {
        if self.restart != RtoRestart::Progress {
            self.restart(now);
        }
    }
    /// Nothing is outstanding.
    #[inline]
    pub(super) fn stop(&mut self) {
        self.restart(Instant::NEVER);
    }
    #[inline]
    pub(super) fn deadline(&self) -> Instant {
        self.start.saturating_add(if self.extended { self.high } else { self.low })
    }
    /// Whether the deadline that passes is RTO_low's.
    pub(super) fn is_quick(&self) -> bool {
        !self.extended
    }
    /// RTO_low is for at most this many packets in flight.
    pub(super) fn is_few(&self, in_flight: u64) -> bool {
        in_flight <= u64::from(self.low_packets)
    }
    /// Too much is in flight for RTO_low: waits on. Returns until when.
    pub(super) fn extend(&mut self) -> Instant {
        self.extended = true;
        self.deadline()
    }
}
