//! The clock of the NIC, which stands still while no thread does its work.
//!
//! A thread that has to wait for a processor sees its timers late and packets later than they came. Timeouts that pass
//! meanwhile say nothing about the network or the other side: the answers may have been here all the time. So the time
//! between the moment that something was due and the moment that a thread looks does not count, if it is [`LATE`] or
//! longer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time;

use selvedge_units::{Duration, Instant};

use crate::clock::Clock;

/// Delay up to which a late wake-up is normal on an ordinary machine.
pub(super) const LATE: Duration = Duration::from_ms(1);

/// A clock that can stand still.
#[derive(Debug)]
pub(super) struct Timekeeping {
    clock: Clock,
    /// Time that the clock stood still in total, in ps.
    stood: AtomicU64,
}

impl Timekeeping {
    pub(super) fn start() -> Self {
        Self { clock: Clock::start(), stood: AtomicU64::new(0) }
    }
    /// Returns the time.
    pub(super) fn now(&self) -> Instant {
        let stood = Duration::from_ps(self.stood.load(Ordering::Relaxed));
        Instant::from_ps(self.clock.now().as_ps().saturating_sub(stood.as_ps()))
    }
    /// Returns the time to wait until `deadline`, rounded up to a nanosecond.
    pub(super) fn until(&self, deadline: Instant) -> time::Duration {
        time::Duration::from_nanos(deadline.since(self.now()).as_ps().div_ceil(1_000))
    }
    /// Returns the time, when something has been `due` that no thread has looked at since, and `seen` is the latest
    /// time seen so far; also returns whether the clock stood still.
    pub(super) fn look(&self, due: Instant, seen: Instant) -> (Instant, bool) {
        let now = self.now();
        let late = now.since(due.max(seen));
        if late < LATE {
            return (now, false);
        }
        self.stood.fetch_add(late.as_ps(), Ordering::Relaxed);
        (due.max(seen), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_pass_while_nobody_looks() {
        let clock = Timekeeping::start();
        // Nothing was due: time passes.
        let (seen, stood) = clock.look(Instant::NEVER, Instant::ZERO);
        assert!(!stood);
        let long = time::Duration::from_millis(5);
        #[expect(clippy::disallowed_methods, reason = "somebody is late here")]
        std::thread::sleep(long);
        let due = seen + Duration::from_us(100);
        assert_eq!(clock.look(due, seen), (due, true));
        assert!(clock.now() < due + LATE + LATE, "the test itself took long");
        let (now, stood) = clock.look(Instant::NEVER, due);
        assert!(now >= due && !stood);
    }
}
