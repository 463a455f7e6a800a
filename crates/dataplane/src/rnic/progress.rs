//! The progress thread, which does the NIC's work when no application thread does.
//!
//! While applications poll, they receive and send themselves; a thread that waited for the same packets would be woken
//! by each and find nothing, or take the lock when they want it. So as long as polls were made since it last looked,
//! the thread sleeps a little instead. Some applications poll for the completion of their sends and then watch their
//! memory until it changes, or wait for an event: after an application stopped polling while packets waited, the thread
//! does not rely on polls for a while.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::time::TimeSpec;
use selvedge_units::{self as units, Instant};

use super::adapter::{Adapter, TURNS};
use super::state::State;
use crate::busy_poll::{BusyPoll, Seen};

/// Time that the thread sleeps at once while applications poll.
const AWAY: Duration = Duration::from_micros(100);
/// System calls that receive packets between two of these sleeps.
const GLANCE: usize = 2;
/// Sleeps before the thread checks the sockets that polls do not check.
const BETWEEN: u32 = 10;
/// Time in which the thread does not rely on polls after applications stopped polling while packets waited: the
/// shortest and the longest.
const DISTRUST: (units::Duration, units::Duration) = (units::Duration::from_us(200), units::Duration::from_us(100_000));
/// Multiple of the last such time after which the next one is the shortest again.
const CHANCE: u64 = 10;
/// Time to wait before trying a full socket again: the thread is not told when it has space.
const ROOM: Duration = Duration::from_micros(200);

/// Starts the thread. It ends with the process.
///
/// # Errors
/// Returns an error when the system has no thread left.
pub(super) fn start(adapter: &'static Adapter) -> io::Result<()> {
    // Signals are for the application's threads. Faults are not asynchronous: if blocked, they would kill the process.
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
    // With the default slack, the kernel adds 50 us to short waits.
    let _ = nix::sys::prctl::set_timerslack(1);
    let (mut seen, mut was_away, mut away) = (0, false, 0u32);
    let (mut trust, mut busy_poll) = (Trust::default(), BusyPoll::default());
    loop {
        let calls = adapter.calls.load(Ordering::Relaxed);
        // A poll that lasts longer than one sleep has much to send: this thread, on another processor, does a part of
        // it.
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
        // An application thread that was told of an event needs a processor first.
        if !received || told || !finds_work(&mut busy_poll, adapter, deadline) {
            wait_for(adapter, true, wait);
        }
    }
}

/// Looks for packets until `deadline` at most, unless recent busy polls were unsuccessful; returns whether there is
/// something to do. Ends when an application begins to poll, which then does the work itself.
fn finds_work(busy_poll: &mut BusyPoll, adapter: &Adapter, deadline: Instant) -> bool {
    let calls = adapter.calls.load(Ordering::Relaxed);
    busy_poll.finds_work(
        deadline,
        || adapter.now(),
        || {
            if wait_for(adapter, true, Some(Duration::ZERO)) {
                Seen::Work
            } else if adapter.calls.load(Ordering::Relaxed) != calls {
                Seen::Other
            } else {
                Seen::Nothing
            }
        },
    )
}

/// State that decides whether the thread relies on applications' polls.
#[derive(Default)]
struct Trust {
    /// Earliest time to rely on polls.
    from: Instant,
    /// Last time span in which the thread did not rely on polls.
    withheld: units::Duration,
}

impl Trust {
    fn is_given(&self, now: Instant) -> bool {
        now >= self.from
    }
    /// Notes that packets had to wait because an application stopped polling. Each repetition doubles the time in which
    /// the thread does not rely on polls; after a long time without any, it starts at the shortest again.
    fn is_abused(&mut self, now: Instant) {
        let is_chance = now.since(self.from) > self.withheld * CHANCE;
        let longer = if is_chance { DISTRUST.0 } else { self.withheld * 2 };
        self.withheld = longer.clamp(DISTRUST.0, DISTRUST.1);
        self.from = now + self.withheld;
    }
}

/// Does the work that is left while applications poll: the last thread to post may have stopped polling, and polls
/// check only sockets that had packets so far. Does nothing if another thread has the lock, which then does the rest.
fn glance(adapter: &Adapter, at_all: bool) {
    let Some(mut state) = adapter.try_lock() else { return };
    if at_all {
        state.turn(adapter.clock(), GLANCE, false);
    } else if state.gathered > 0 {
        let mut cx = state.look(adapter.clock());
        state.transmit(&mut cx);
    }
}

/// Does the NIC's work; returns the time until there is more, `None` if no deadline is set.
fn work(adapter: &Adapter, state: &mut State) -> Option<Duration> {
    state.turn(adapter.clock(), TURNS, false);
    state.asleep_until = state.deadline();
    let deadline = Some(state.asleep_until).filter(|at| *at < Instant::NEVER).map(|at| adapter.clock().until(at));
    if state.is_blocked() { Some(deadline.unwrap_or(ROOM).min(ROOM)) } else { deadline }
}

/// Waits until the thread is woken, or, if `packets`, a packet arrives, for `most` at most; returns whether anything
/// happened.
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
