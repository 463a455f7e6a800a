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
    /// Returns the seconds since 1970 by the system's clock, which people set; 0 before.
    #[cfg(target_os = "linux")]
    #[expect(
        clippy::disallowed_methods,
        reason = "key epochs of tunnels grow over restarts, and a lost disk, by the date"
    )]
    pub(crate) fn seconds_since_1970() -> u64 {
        time::SystemTime::now().duration_since(time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }
    /// Moves the clock's origin: it shows `by` less from now on.
    pub fn rebase(&mut self, by: Duration) {
        self.start += time::Duration::from_nanos(by.as_ps() / 1_000);
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
