//! What an application does for others that polls and finds nothing.
//!
//! On a machine with more to do than processors it waits for packets, a little, and others run meanwhile: perhaps the
//! peer. Giving the processor away (`sched_yield`) would be simpler, but Linux 6.18 moves whoever does that in a loop
//! so far back that one who computes beside it runs for a second, and connections break. Whoever has a processor to
//! itself keeps polling: to fall asleep and to be woken takes longer than most answers.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use selvedge_units::{self as units, Instant};

use super::adapter::Adapter;

/// How long one who polls waits at a time. Less than the progress thread takes for a sign that nobody polls.
const REST: Duration = Duration::from_micros(50);
/// Who was away from its processor for so long had to leave it to somebody who computes. The progress thread, and
/// interrupts, are done sooner.
const LONG: Duration = Duration::from_micros(500);
/// For how long such a one is thought of.
pub(super) const REMEMBERED: units::Duration = units::Duration::from_us(20_000);

/// What a thread knows of others.
#[derive(Clone, Copy)]
struct Others {
    /// When it looked last, and how long it had computed then.
    looked: Instant,
    computed: Duration,
    /// It thinks of them until then.
    until: Instant,
}

thread_local! {
    static OTHERS: Cell<Others> =
        const { Cell::new(Others { looked: Instant::ZERO, computed: Duration::ZERO, until: Instant::ZERO }) };
}

/// Lets others run, if any wanted this thread's processor lately. The `first` time after something was found, the
/// application may have been away for reasons of its own.
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
        // Woken early or not at all: it only polls again.
        let _ = ppoll(&mut packets, Some(TimeSpec::from(REST)), None);
        others.looked = adapter.now();
    }
    OTHERS.set(others);
}

/// What this thread has computed so far.
fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}
