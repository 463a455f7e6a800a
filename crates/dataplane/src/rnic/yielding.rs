//! Yielding: a thread that polls and finds nothing lets others run.
//!
//! On a machine with more to do than processors the polling thread waits for packets, a little, and others run
//! meanwhile: perhaps the peer. Giving the processor away (`sched_yield`) would be simpler, but Linux 6.18 moves a
//! thread that yields in a loop so far back that a computing thread beside it runs for a second, and connections break.
//! A thread that has a processor to itself keeps polling: to fall asleep and to be woken takes longer than most
//! answers.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use selvedge_units::Instant;

use super::adapter::Adapter;
use crate::busy_poll::REMEMBERED;

/// Time that a polling thread waits at once. Shorter than the time after which the progress thread assumes that nobody
/// polls.
const REST: Duration = Duration::from_micros(50);
/// Time off the processor from which on another computing thread must have had it. The progress thread, and interrupts,
/// take less.
const LONG: Duration = Duration::from_micros(500);

/// A polling thread's knowledge of other threads.
#[derive(Clone, Copy)]
struct Others {
    /// Time of the last look, when the thread had used [`Self::computed`] of processor time.
    looked: Instant,
    computed: Duration,
    /// Time until which the thread yields to others.
    until: Instant,
}

thread_local! {
    static OTHERS: Cell<Others> =
        const { Cell::new(Others { looked: Instant::ZERO, computed: Duration::ZERO, until: Instant::ZERO }) };
}

/// Lets others run, if any wanted this thread's processor lately. At the `first` call after a completion, time off the
/// processor does not count: the application may have been waiting for reasons of its own.
pub(super) fn rest(adapter: &Adapter, first: bool) {
    let mut others = OTHERS.get();
    let (now, computed) = (adapter.now(), processor_time());
    let away = now.since(others.looked).as_ps() / 1_000;
    let away = Duration::from_nanos(away).saturating_sub(computed.saturating_sub(others.computed));
    if away >= LONG && !first {
        others.until = now + REMEMBERED;
    }
    others.looked = now;
    others.computed = computed;
    if now < others.until {
        let mut packets = [PollFd::new(adapter.packets.0.as_fd(), PollFlags::POLLIN)];
        // An early or failed wake-up is harmless: the thread only polls again.
        let _ = ppoll(&mut packets, Some(TimeSpec::from(REST)), None);
        others.looked = adapter.now();
    }
    OTHERS.set(others);
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
