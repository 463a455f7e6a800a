//! The only clock.

use std::time;

use selvedge_units::{Duration, Instant};

/// Tells the time since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: time::Instant,
}

impl Clock {
    /// A clock that shows zero.
    pub fn start() -> Self {
        Self { start: read() }
    }
    /// The time.
    pub fn now(&self) -> Instant {
        let ns = read().duration_since(self.start).as_nanos();
        // 64 bits of nanoseconds last for 584 years, of picoseconds for 213 days.
        Instant::ZERO + Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX / 1_000))
    }
    /// How long to wait for `deadline`, rounded up to a nanosecond: whoever waits that long is not
    /// woken a moment too early, only to wait again.
    pub fn until(&self, deadline: Instant) -> time::Duration {
        time::Duration::from_nanos(deadline.since(self.now()).as_ps().div_ceil(1_000))
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads a clock; engines are told the time")]
fn read() -> time::Instant {
    time::Instant::now()
}
