//! How full something was over time.

use selvedge_units::{Duration, Instant};

/// Bytes in a buffer: now, at most, and on average.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Occupancy {
    bytes: u64,
    peak: u64,
    since: Instant,
    /// Bytes times picoseconds.
    area: u128,
    used: Duration,
}

impl Occupancy {
    /// Now.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
    /// The most so far.
    pub const fn peak(&self) -> u64 {
        self.peak
    }
    /// Bytes times picoseconds up to the last change, and for how long there were any.
    pub const fn area(&self) -> (u128, Duration) {
        (self.area, self.used)
    }

    #[inline]
    pub(super) fn add(&mut self, now: Instant, bytes: u32) {
        self.pass(now);
        self.bytes += u64::from(bytes);
        self.peak = self.peak.max(self.bytes);
    }
    #[inline]
    pub(super) fn remove(&mut self, now: Instant, bytes: u32) {
        self.pass(now);
        self.bytes -= u64::from(bytes);
    }
    #[inline]
    fn pass(&mut self, now: Instant) {
        // One out, one in: the usual case.
        if now == self.since {
            return;
        }
        let span = now.since(self.since);
        self.since = now;
        if self.bytes > 0 {
            self.area += u128::from(self.bytes) * u128::from(span.as_ps());
            self.used += span;
        }
    }
}
