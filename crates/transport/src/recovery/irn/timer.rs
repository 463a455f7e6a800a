//! The two static timeouts (section 3.1, and the `timeout` module of section 6.2).

use selvedge_units::{Duration, Instant};

use super::{IrnConfig, Timeouts};
use crate::fabric::resolved;

/// One timer per flow. It runs while something is outstanding, from the last cumulative progress.
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
}

impl Timer {
    pub(super) fn new(config: &IrnConfig) -> Self {
        let (low, high) = match config.timeouts {
            Timeouts::On => (config.rto_low, resolved(config.rto_high, "rto-high").unwrap_or(Duration::MAX)),
            Timeouts::Off => (Duration::MAX, Duration::MAX),
            Timeouts::Auto => panic!("timeouts still says \"auto\": resolve the configuration first"),
        };
        Self { start: Instant::NEVER, low, high, low_packets: config.rto_low_packets, extended: false }
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
