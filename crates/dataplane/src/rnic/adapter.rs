//! The adapter: the NIC of a process, with one engine, one network and one lock.

mod connections;
mod objects;
mod registration;

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use nix::sys::epoll::Epoll;
use nix::sys::eventfd::{EfdFlags, EventFd};
use rustix::rand::{GetRandomFlags, getrandom};
use selvedge_nic::verbs::{Completion, CqId, Rnic, VerbsError};
use selvedge_transport::Cx;
use selvedge_units::{Instant, QpNumber};

use super::device::Device;
use super::network::{Counters, Network};
use super::state::State;
use super::timekeeping::Timekeeping;
use super::{fork, memory, progress, yielding};

/// Most system calls that receive packets in one turn under the lock.
pub(super) const TURNS: usize = 64;
/// Most posts that wait to be sent together, while applications poll.
const GATHERED: u32 = 32;
/// Empty polls in a row before a polling thread considers other threads (see [`yielding`]).
const PATIENCE: u64 = 16;
/// Attempts to take the lock before the thread sleeps until it is free.
const SPINS: u32 = 500;

/// The NIC of this process.
pub struct Adapter {
    state: Mutex<State>,
    pub(super) wake: EventFd,
    clock: Timekeeping,
    /// Number of polls and posts of applications: while it grows, they do the progress thread's work.
    pub(super) calls: AtomicU64,
    /// Whether an application is about to wait for an event, and so will not poll.
    pub(super) armed: AtomicBool,
    /// Polls in a row that found nothing.
    empty: AtomicU64,
    /// Whether this process is a forked child, whose adapter belongs to its parent.
    pub(super) is_foreign: AtomicBool,
    /// All sockets, to wait for them without the lock.
    pub(super) packets: Arc<Epoll>,
    /// Whether the progress thread runs. If the system had no thread left, the next call of [`Adapter::get`] tries
    /// again.
    has_thread: Mutex<bool>,
    /// Descriptors that a forked child closes.
    pub(super) descriptors: Mutex<Vec<RawFd>>,
}

/// Reasons why the adapter refuses a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The engine refuses.
    Verbs(VerbsError),
    /// Memory to be registered is not mapped, or cannot be written (`EFAULT`).
    Fault,
    /// The system has no unpredictable random numbers for keys (`EAGAIN`).
    Entropy,
    /// The process was forked since: the parent's objects are of no use to the child.
    Forked,
}

impl From<VerbsError> for Refusal {
    fn from(error: VerbsError) -> Self {
        Self::Verbs(error)
    }
}

impl Adapter {
    /// Returns this process's adapter, and creates it if there is none yet.
    ///
    /// # Errors
    /// Returns an error when all 64 ports are taken, or the system has no sockets, descriptors or threads left.
    pub fn get() -> io::Result<&'static Self> {
        let adapter = fork::current(|| {
            let adapter = Self::new()?;
            memory::install();
            Ok(adapter)
        })?;
        let mut has_thread = adapter.has_thread.lock().unwrap_or_else(PoisonError::into_inner);
        if !*has_thread {
            progress::start(adapter)?;
            *has_thread = true;
        }
        Ok(adapter)
    }

    /// Returns this process's adapter, if there is one.
    pub fn existing() -> Option<&'static Self> {
        fork::existing()
    }

    fn new() -> io::Result<Self> {
        let network = Network::open(&Device::every()?)?;
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let packets = Arc::clone(&network.all);
        let state = State::new(network, entropy)?;
        let descriptors = Mutex::new(descriptors(&state.network, &wake));
        Ok(Self {
            state: Mutex::new(state),
            wake,
            clock: Timekeeping::start(),
            calls: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            empty: AtomicU64::new(0),
            is_foreign: AtomicBool::new(false),
            packets,
            has_thread: Mutex::new(false),
            descriptors,
        })
    }

    pub(super) fn lock(&self) -> Result<MutexGuard<'_, State>, Refusal> {
        if self.is_foreign.load(Ordering::Relaxed) {
            return Err(Refusal::Forked);
        }
        // The holder of the lock gives it back within microseconds; to sleep meanwhile, and be woken, takes longer.
        for _ in 0..SPINS {
            match self.state.try_lock() {
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
                Ok(state) => return Ok(state),
                Err(TryLockError::Poisoned(state)) => return Ok(state.into_inner()),
            }
        }
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the lock if nobody has it. A thread that has it does the NIC's work.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock().ok()
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    pub(super) fn clock(&self) -> &Timekeeping {
        &self.clock
    }

    /// Lets `act` use the engine, which has handled all earlier posts; then sends what is ready to be sent.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn command<T>(&self, act: impl FnOnce(&mut Rnic, &mut Cx<'_>) -> T) -> Result<T, Refusal> {
        let mut state = self.lock()?;
        let mut cx = state.look(&self.clock);
        if state.gathered > 0 {
            state.transmit(&mut cx);
        }
        let outcome = act(&mut state.rnic, &mut cx);
        state.transmit(&mut cx);
        state.tell(cx.now);
        self.remind(&state);
        Ok(outcome)
    }

    /// Lets `act` post send requests on `qp`. While applications poll, the requests may wait for a few others, or for
    /// the next poll: it comes soon, and packets that are sent together cost one system call.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn post_send<T>(&self, qp: QpNumber, act: impl FnOnce(&mut Rnic, &mut Cx<'_>) -> T) -> Result<T, Refusal> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock()?;
        let mut cx = state.look(&self.clock);
        let outcome = act(&mut state.rnic, &mut cx);
        state.gathered += 1;
        if state.gathered >= GATHERED || !state.may_gather(cx.now, qp) {
            state.transmit(&mut cx);
            self.remind(&state);
        }
        state.tell(cx.now);
        Ok(outcome)
    }

    /// Lets `act` post receive requests. They cause no packets, except credit updates for senders that wait for
    /// credits.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn post_recv<T>(&self, act: impl FnOnce(&mut Rnic) -> T) -> Result<T, Refusal> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock()?;
        let outcome = act(&mut state.rnic);
        state.tell_of_requests();
        if state.rnic.take_news() {
            let mut cx = state.look(&self.clock);
            state.transmit(&mut cx);
            self.remind(&state);
        }
        Ok(outcome)
    }

    /// Requests an event at the next completion of `cq`; with `solicited_only`, at the next solicited one.
    ///
    /// # Errors
    /// Returns the engine's refusal, or [`Refusal::Forked`].
    pub fn arm_cq(&self, cq: CqId, solicited_only: bool) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.arm_cq(cq, solicited_only)?;
        // The application's polls will not do the NIC's work any more.
        if state.gathered > 0 {
            let mut cx = state.look(&self.clock);
            state.transmit(&mut cx);
        }
        self.armed.store(true, Ordering::Relaxed);
        if state.is_parked {
            self.wake();
        }
        Ok(())
    }

    /// Hands up to `most` completions to `take`; returns how many. Does the NIC's work if there are none yet.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn poll_cq(&self, cq: CqId, most: usize, mut take: impl FnMut(&Completion)) -> Result<usize, Refusal> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock()?;
        if state.gathered > 0 {
            let mut cx = state.look(&self.clock);
            state.transmit(&mut cx);
        }
        let mut found = state.completions(cq, most, &mut take);
        if found == 0 {
            // The turn ends at the first completion: the application may have to post receive requests for the next
            // packets.
            state.turn(&self.clock, TURNS, true);
            self.remind(&state);
            found = state.completions(cq, most, &mut take);
        }
        drop(state);
        if found > 0 {
            self.empty.store(0, Ordering::Relaxed);
        } else {
            let before = self.empty.fetch_add(1, Ordering::Relaxed);
            if before >= PATIENCE {
                yielding::rest(self, before == PATIENCE);
            }
        }
        Ok(found)
    }

    /// Handles the end of the process: sends gathered requests, and tells connected peers of the disconnection.
    #[expect(clippy::disallowed_methods, reason = "whoever has the lock gives it back a moment later")]
    pub(super) fn finish(&self) {
        /// Attempts to take the lock. A thread that calls `exit` in a signal handler may hold the lock itself, so the
        /// attempts are limited.
        const ATTEMPTS: usize = 100;
        const INTERVAL: std::time::Duration = std::time::Duration::from_micros(100);
        if self.is_foreign.load(Ordering::Relaxed) {
            return;
        }
        for _ in 0..ATTEMPTS {
            if let Some(mut state) = self.try_lock() {
                let mut cx = state.look(&self.clock);
                state.connections.manager.leave(&mut cx);
                state.transmit(&mut cx);
                return;
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Returns the packet counters.
    ///
    /// # Errors
    /// Returns [`Refusal::Forked`] in a forked child.
    pub fn counters(&self) -> Result<Counters, Refusal> {
        Ok(self.lock()?.network.counters)
    }

    fn note_descriptors(&self, state: &State) {
        *self.descriptors.lock().unwrap_or_else(PoisonError::into_inner) = descriptors(&state.network, &self.wake);
    }

    /// Wakes the progress thread if it must look earlier than planned, or wait until a socket accepts packets.
    fn remind(&self, state: &State) {
        let is_late = state.deadline() < state.asleep_until;
        if !state.is_parked && (is_late || state.is_blocked()) {
            self.wake();
        }
    }

    fn wake(&self) {
        // The eventfd counts to 2^64 - 2: writing does not fail.
        let _ = self.wake.write(1);
    }
}

fn descriptors(network: &Network, wake: &EventFd) -> Vec<RawFd> {
    let all = network.descriptors().chain([network.all.0.as_fd(), wake.as_fd()]);
    all.map(|descriptor| descriptor.as_raw_fd()).collect()
}

/// Returns an unpredictable random number.
fn entropy() -> io::Result<u32> {
    let mut bytes = [0; 4];
    // Requests of few bytes are never cut short.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use selvedge_nic::verbs::Service;

    use super::super::channel::Channel;
    use super::super::events::Owner;
    use super::super::state::tests::small_qp_init;
    use super::*;

    #[test]
    fn who_cannot_join_on_one_interface_stays_a_member_on_another() {
        let adapter = Adapter::new().expect("the system has sockets");
        let owner =
            Owner { cookie: 0, completions: None, notices: Arc::new(Channel::new().expect("a free descriptor")) };
        let pd = adapter.command(|rnic, _| rnic.alloc_pd()).expect("the process was not forked");
        let cq = adapter.create_cq(1, owner.clone()).expect("all arguments are in range");
        let qp =
            adapter.create_qp(small_qp_init(Service::Datagram, pd, cq), owner).expect("all arguments are in range");
        let group = Ipv4Addr::new(239, 77, 0, 9).to_ipv6_mapped();
        let (loopback, nowhere) = (1, 0x7fff_fff0);
        if let Err(problem) = adapter.attach(qp, group, loopback) {
            assert_eq!(problem.raw_os_error(), Some(libc::EADDRINUSE));
            eprintln!("skipped: another user has UDP port 4791 for itself");
            return;
        }
        let refused = adapter.attach(qp, group, nowhere).expect_err("there is no such interface");
        assert_eq!(refused.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(adapter.detach(qp, group), Ok(()));
    }
}
