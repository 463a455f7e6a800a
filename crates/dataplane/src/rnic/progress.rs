//! The thread that does the NIC's work when no application thread does.
//!
//! While applications poll, they receive and send themselves; a thread that waited for the same packets would be woken
//! by each and find nothing, or take the lock when they want it. So as long as polls were made since it looked
//! last, it sleeps a little instead. Some applications poll for the end of what they sent and then look at their memory
//! until it changes: whoever stops polling and goes on computing is not trusted again for a while. (Whoever stops and
//! computes nothing waits for an event, or for a processor.)

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::time::TimeSpec;
use selvedge_transport::Cx;
use selvedge_units::Instant;

use super::adapter::{Adapter, TURNS};
use super::state::State;

/// How long it stays away at a time.
const AWAY: Duration = Duration::from_micros(100);
/// Calls of the system meanwhile.
const GLANCE: usize = 2;
/// How many times it stays away before it looks at what polls do not look at.
const BETWEEN: u32 = 10;
/// How long it does not stay away after applications have stopped polling meanwhile.
const DISTRUST: selvedge_units::Duration = selvedge_units::Duration::from_us(20_000);
/// How long it waits for room in a socket, which it is not told of.
const ROOM: Duration = Duration::from_micros(200);

/// Starts it. It ends with the process.
pub(super) fn start(adapter: &'static Adapter) -> io::Result<()> {
    // Signals are for the application's threads. Faults are not asynchronous: blocked, they would kill.
    let mut signals = SigSet::all();
    for fault in [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL] {
        signals.remove(fault);
    }
    let before = signals.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let started = std::thread::Builder::new().name("selvedge-rnic".to_owned()).spawn(|| run(adapter));
    before.thread_set_mask()?;
    started.map(drop)
}

fn run(adapter: &Adapter) {
    // Else the kernel adds 50 us to short waits.
    let _ = nix::sys::prctl::set_timerslack(1);
    let (mut seen, mut was_away, mut away, mut distrusts_until) = (0, false, 0u32, Instant::ZERO);
    let mut computed = processor_time();
    loop {
        let calls = adapter.calls.load(Ordering::Relaxed);
        let (is_polled, now) = (calls != seen, adapter.now());
        seen = calls;
        let computed_before = std::mem::replace(&mut computed, processor_time());
        if was_away && !is_polled && computed - computed_before > AWAY / 2 {
            distrusts_until = now + DISTRUST;
        }
        let stays_away = was_away && is_polled;
        was_away = is_polled && now >= distrusts_until;
        if stays_away && was_away {
            away += 1;
            glance(adapter, away.is_multiple_of(BETWEEN));
            wait_for(adapter, false, Some(AWAY));
            continue;
        }
        let Ok(mut state) = adapter.lock() else { return };
        state.is_parked = was_away;
        let wait = if was_away { Some(AWAY) } else { work(adapter, &mut state) };
        drop(state);
        wait_for(adapter, !was_away, wait);
    }
}

/// What is left to do while applications poll: who posted last may have stopped polling, and polls look only at sockets
/// that were of use so far. Whoever has the lock at the moment does the rest.
fn glance(adapter: &Adapter, at_all: bool) {
    let Some(mut state) = adapter.try_lock() else { return };
    if at_all {
        state.turn(adapter.clock(), GLANCE, false);
    } else if state.gathered > 0 {
        state.transmit(&mut Cx::at(adapter.now()));
    }
}

/// What this process has computed so far.
fn processor_time() -> Duration {
    nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// Does what there is to do; returns how long there will be nothing.
fn work(adapter: &Adapter, state: &mut State) -> Option<Duration> {
    state.turn(adapter.clock(), TURNS, false);
    state.asleep_until = state.deadline();
    let deadline = Some(state.asleep_until).filter(|at| *at < Instant::NEVER).map(|at| adapter.clock().until(at));
    if state.is_blocked() { Some(deadline.unwrap_or(ROOM).min(ROOM)) } else { deadline }
}

/// Waits to be woken, and for packets.
fn wait_for(adapter: &Adapter, packets: bool, most: Option<Duration>) {
    let wake = adapter.wake.as_fd();
    let mut descriptors = [wake, adapter.packets.0.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    let watched = if packets { 2 } else { 1 };
    let ready = ppoll(&mut descriptors[..watched], most.map(TimeSpec::from), None);
    if ready.is_ok_and(|ready| ready > 0) && descriptors[0].any() == Some(true) {
        let _ = adapter.wake.read();
    }
}
