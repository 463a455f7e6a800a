//! Waiting for sockets by bells: a waiting thread adds its bell (a descriptor) to every socket that it waits for; a
//! thread that changes a socket rings the bells.
//!
//! A thread resets its bell, requests completion events, checks the state, and only then sleeps, until its bell or the
//! descriptor of one of its sockets is readable. Of several threads that wait for one socket, one may take the event
//! that woke all; it takes the completions, too, and rings for all.

use std::cell::OnceCell;
use std::ffi::c_int;
use std::sync::Arc;
use std::time::Duration;

use selvedge_dataplane::Clock;
use selvedge_dataplane::rnic::Channel;
use selvedge_units as units;

use crate::error;

/// A descriptor that wakes a waiting thread.
pub(super) type Bell = Arc<Channel<()>>;

/// Returns this thread's bell.
///
/// # Errors
/// Returns `errno` if the process may not have more descriptors.
pub(super) fn bell() -> Result<Bell, c_int> {
    thread_local! {
        static BELL: OnceCell<Bell> = const { OnceCell::new() };
    }
    let known = BELL.try_with(|cell| cell.get().map(Arc::clone));
    if let Ok(Some(bell)) = known {
        return Ok(bell);
    }
    let bell: Bell = Arc::new(Channel::new().map_err(|problem| error::of_io(&problem))?);
    // At the end of a thread the thread-local value is gone, and the bell cannot be kept.
    let _ = BELL.try_with(|cell| cell.set(Arc::clone(&bell)));
    Ok(bell)
}

/// Makes a bell unreadable.
pub(super) fn reset(bell: &Bell) {
    bell.withdraw(|()| true);
}

/// The time at which a wait ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline {
    clock: Clock,
    until: Option<units::Instant>,
}

impl Deadline {
    /// Returns the deadline after `time`; never if `None`.
    pub(super) fn after(time: Option<Duration>) -> Self {
        /// Longest wait in seconds: longer than any process lives, and without overflow in picoseconds.
        const LONGEST: u64 = 10_000_000;
        let clock = Clock::start();
        let ns = |time: Duration| time.as_secs().min(LONGEST) * 1_000_000_000 + u64::from(time.subsec_nanos());
        Self { clock, until: time.map(|time| clock.now() + units::Duration::from_ns(ns(time))) }
    }
    /// Returns the deadline after `ms` milliseconds; never if negative.
    pub(super) fn after_ms(ms: c_int) -> Self {
        Self::after(u64::try_from(ms).ok().map(Duration::from_millis))
    }
    /// Returns the remaining time; `None` without a limit.
    pub(super) fn left(&self) -> Option<Duration> {
        self.until.map(|until| self.clock.until(until))
    }
    /// Returns the remaining milliseconds, rounded up; -1 without a limit.
    pub(super) fn left_ms(&self) -> c_int {
        let Some(until) = self.until else { return -1 };
        self.clock.until(until).as_nanos().div_ceil(1_000_000).try_into().unwrap_or(c_int::MAX)
    }
}

/// Sleeps until a descriptor has one of its requested events; returns their number, 0 at the deadline.
///
/// # Errors
/// Returns `EINTR` after a signal.
pub(super) fn sleep(descriptors: &mut [libc::pollfd], deadline: &Deadline) -> Result<c_int, c_int> {
    // SAFETY: the list is as long as it says.
    let found = unsafe { libc::poll(descriptors.as_mut_ptr(), descriptors.len() as libc::nfds_t, deadline.left_ms()) };
    if found < 0 { Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)) } else { Ok(found) }
}

/// Returns a request of `poll` for a descriptor to become readable.
pub(super) fn readable(fd: c_int) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}
