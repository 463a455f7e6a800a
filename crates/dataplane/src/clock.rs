//! The only clock of the workspace's engines.

use std::time;

use selvedge_units::{Duration, Instant};

/// A monotonic clock that counts from its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: time::Instant,
}

impl Clock {
    /// Creates a clock that shows zero.
    pub fn start() -> Self {
        Self { start: read() }
    }
    /// Returns the time since the clock's creation.
    pub fn now(&self) -> Instant {
        let ns = read().duration_since(self.start).as_nanos();
        // 64 bits of nanoseconds last for 584 years, of picoseconds for 213 days.
        Instant::ZERO + Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX / 1_000))
    }
    /// Returns the time to wait until `deadline`, rounded up to a nanosecond: a shorter wait would end before the
    /// deadline and have to be repeated.
    pub fn until(&self, deadline: Instant) -> time::Duration {
        time::Duration::from_nanos(deadline.since(self.now()).as_ps().div_ceil(1_000))
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads a clock; engines are told the time")]
fn read() -> time::Instant {
    time::Instant::now()
}
