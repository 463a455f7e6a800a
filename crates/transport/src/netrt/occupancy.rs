//! Occupancy of a buffer over time.

use selvedge_units::{Duration, Instant};

/// Bytes in a buffer: present, peak and average.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Occupancy {
    bytes: u64,
    peak: u64,
    since: Instant,
    /// Integral of the occupancy, in bytes times picoseconds.
    area: u128,
    used: Duration,
}

impl Occupancy {
    /// Returns the present occupancy in bytes.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
    /// Returns the peak occupancy in bytes.
    pub const fn peak(&self) -> u64 {
        self.peak
    }
    /// Returns the integral of the occupancy up to the last change, in bytes times picoseconds, and the time with any
    /// bytes.
    pub const fn area(&self) -> (u128, Duration) {
        (self.area, self.used)
    }

    /// Returns the mean occupancy in bytes while there were any, up to the last change.
    pub const fn mean(&self) -> u64 {
        match self.used.as_ps() {
            0 => 0,
            used => (self.area / used as u128) as u64,
        }
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
        // The common case: one packet leaves, another enters.
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
