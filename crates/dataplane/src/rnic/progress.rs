//! The thread that does the NIC's work when no application thread does.
//!
//! While applications poll, they receive and send themselves; a thread that waited for the same packets would be woken
//! by each and find nothing, or take the lock when they want it. So as long as polls were made since it looked
//! last, it sleeps a little instead. Some applications poll for the end of what they sent and then look at their memory
//! until it changes, or wait for an event: whoever stops polling while packets wait is not trusted again for a while.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::time::TimeSpec;
use selvedge_units::{self as units, Instant};

use super::adapter::{Adapter, TURNS};
use super::busy_poll::BusyPoll;
use super::state::State;

/// How long it stays away at a time.
const AWAY: Duration = Duration::from_micros(100);
/// Calls of the system meanwhile.
const GLANCE: usize = 2;
/// How many times it stays away before it looks at what polls do not look at.
const BETWEEN: u32 = 10;
/// How long it does not stay away after applications have stopped polling meanwhile: the first time, and at the most.
const DISTRUST: (units::Duration, units::Duration) = (units::Duration::from_us(200), units::Duration::from_us(100_000));
/// After so many times as long it is the first time again.
const CHANCE: u64 = 10;
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
    let (mut seen, mut was_away, mut away) = (0, false, 0u32);
    let (mut trust, mut busy_poll) = (Trust::default(), BusyPoll::default());
    loop {
        let calls = adapter.calls.load(Ordering::Relaxed);
        // A poll that lasts longer than we stay away has much to send: on another processor, we do a part of it.
        let is_polled = calls != seen;
        let is_polled = is_polled && !adapter.armed.swap(false, Ordering::Relaxed);
        seen = calls;
        let trusted = trust.is_given(adapter.now());
        let (stays_away, has_stopped) = (was_away && is_polled && trusted, was_away && !is_polled);
        was_away = is_polled && trusted;
        if stays_away {
            away += 1;
            glance(adapter, away.is_multiple_of(BETWEEN));
            wait_for(adapter, false, Some(AWAY));
            continue;
        }
        let Ok(mut state) = adapter.lock() else { return };
        state.is_parked = was_away;
        if was_away {
            drop(state);
            wait_for(adapter, false, Some(AWAY));
            continue;
        }
        let before = (state.network.counters.received, state.told);
        let wait = work(adapter, &mut state);
        let (received, told) = (state.network.counters.received > before.0, state.told > before.1);
        let deadline = state.asleep_until;
        drop(state);
        if has_stopped && received {
            trust.is_abused(adapter.now());
        }
        // Who was told of an event needs a processor first.
        if !received || told || !busy_poll.finds_work(adapter, deadline) {
            wait_for(adapter, true, wait);
        }
    }
}

/// Whether applications that poll are left alone.
#[derive(Default)]
struct Trust {
    /// Not before this.
    from: Instant,
    /// How long it was withheld last.
    withheld: units::Duration,
}

impl Trust {
    fn is_given(&self, now: Instant) -> bool {
        now >= self.from
    }
    /// Packets had to wait for us. Once may be chance; whoever does so again and again is trusted less and less.
    fn is_abused(&mut self, now: Instant) {
        let is_chance = now.since(self.from) > self.withheld * CHANCE;
        let longer = if is_chance { DISTRUST.0 } else { self.withheld * 2 };
        self.withheld = longer.clamp(DISTRUST.0, DISTRUST.1);
        self.from = now + self.withheld;
    }
}

/// What is left to do while applications poll: who posted last may have stopped polling, and polls look only at sockets
/// that were of use so far. Whoever has the lock at the moment does the rest.
fn glance(adapter: &Adapter, at_all: bool) {
    let Some(mut state) = adapter.try_lock() else { return };
    if at_all {
        state.turn(adapter.clock(), GLANCE, false);
    } else if state.gathered > 0 {
        let mut cx = state.look(adapter.clock());
        state.transmit(&mut cx);
    }
}

/// Does what there is to do; returns how long there will be nothing.
fn work(adapter: &Adapter, state: &mut State) -> Option<Duration> {
    state.turn(adapter.clock(), TURNS, false);
    state.asleep_until = state.deadline();
    let deadline = Some(state.asleep_until).filter(|at| *at < Instant::NEVER).map(|at| adapter.clock().until(at));
    if state.is_blocked() { Some(deadline.unwrap_or(ROOM).min(ROOM)) } else { deadline }
}

/// Waits to be woken, and for packets; returns whether anything happened.
pub(super) fn wait_for(adapter: &Adapter, packets: bool, most: Option<Duration>) -> bool {
    let wake = adapter.wake.as_fd();
    let mut descriptors = [wake, adapter.packets.0.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    let watched = if packets { 2 } else { 1 };
    let ready = ppoll(&mut descriptors[..watched], most.map(TimeSpec::from), None).is_ok_and(|ready| ready > 0);
    if ready && descriptors[0].any() == Some(true) {
        let _ = adapter.wake.read();
    }
    ready
}
