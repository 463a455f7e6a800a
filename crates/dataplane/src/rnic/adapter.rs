//! The NIC of a process: one engine, one network, one lock.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use nix::sys::epoll::Epoll;
use nix::sys::eventfd::{EfdFlags, EventFd};
use rustix::rand::{GetRandomFlags, getrandom};
use selvedge_nic::cm::{ConnectionId, ConnectionManager};
use selvedge_nic::verbs::{
    Completion, CqId, PdId, QpInit, Region, Rnic, Sge, SrqAttributes, SrqId, VerbsError, WindowId, WindowKind,
};
use selvedge_transport::Cx;
use selvedge_units::{Instant, QpNumber};

use super::connections::Hears;
use super::device::Device;
use super::events::Owner;
use super::network::{Counters, Network};
use super::state::State;
use super::{courtesy, fork, memory, persist, progress};
use crate::clock::Clock;

/// Calls of the system that take packets before others get a turn.
pub(super) const TURNS: usize = 64;
/// Requests that may wait for others to leave together with them, while applications poll.
const GATHERED: u32 = 32;
/// Polls without a completion before others are thought of.
const PATIENCE: u64 = 16;

/// Looks at the lock before it is waited for.
const SPINS: u32 = 500;

/// The NIC of this process.
pub struct Adapter {
    state: Mutex<State>,
    pub(super) wake: EventFd,
    clock: Clock,
    /// Counts polls and posts of applications: while it grows, they do the thread's work.
    pub(super) calls: AtomicU64,
    /// An application is about to wait for an event: it will not poll.
    pub(super) armed: AtomicBool,
    /// Polls in a row that found nothing.
    empty: AtomicU64,
    /// This is a child that was forked: the adapter is its parent's.
    pub(super) is_foreign: AtomicBool,
    /// All sockets, to wait for them without the lock.
    pub(super) packets: Arc<Epoll>,
    /// If the system had none left, whoever opens a device next tries again.
    has_thread: Mutex<bool>,
    /// What a child closes.
    pub(super) descriptors: Mutex<Vec<RawFd>>,
}

/// Why the adapter refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The engine says so.
    Verbs(VerbsError),
    /// Memory that is to be registered is not there, or cannot be written (`EFAULT`).
    Fault,
    /// The system has no numbers that nobody can guess, for keys (`EAGAIN`).
    Entropy,
    /// The process was forked since: what the parent made is of no use to the child.
    Forked,
}

impl From<VerbsError> for Refusal {
    fn from(error: VerbsError) -> Self {
        Self::Verbs(error)
    }
}

impl Adapter {
    /// This process's adapter; made if there is none yet.
    ///
    /// # Errors
    /// When all 64 ports are taken, or the system has no sockets, descriptors or threads left.
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

    fn new() -> io::Result<Self> {
        let network = Network::open(&Device::all()?)?;
        let wake = EventFd::from_flags(EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let packets = Arc::clone(&network.all);
        let state = State::new(network, entropy)?;
        let descriptors = Mutex::new(descriptors(&state.network, &wake));
        Ok(Self {
            state: Mutex::new(state),
            wake,
            clock: Clock::start(),
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
        // Whoever has it gives it back within microseconds; to sleep meanwhile, and be woken, takes longer.
        for _ in 0..SPINS {
            match self.state.try_lock() {
                Err(TryLockError::WouldBlock) => std::hint::spin_loop(),
                Ok(state) => return Ok(state),
                Err(TryLockError::Poisoned(state)) => return Ok(state.into_inner()),
            }
        }
        Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
    /// The lock, if nobody has it. Whoever has does the NIC's work.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        self.state.try_lock().ok()
    }
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Lets `act` use the engine, which has done what was posted before; then sends what there is to send.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn command<T>(&self, act: impl FnOnce(&mut Rnic, &mut Cx<'_>) -> T) -> Result<T, Refusal> {
        let mut state = self.lock()?;
        let mut cx = Cx::at(self.now());
        if state.gathered > 0 {
            state.transmit(&mut cx);
        }
        let outcome = act(&mut state.rnic, &mut cx);
        state.transmit(&mut cx);
        state.tell();
        self.remind(&state);
        Ok(outcome)
    }

    /// Lets `act` post send requests on `qp`. While applications poll, these may wait for a few others, or for the next
    /// poll: it comes soon, and what leaves together costs the system one call.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn post_send<T>(&self, qp: QpNumber, act: impl FnOnce(&mut Rnic, &mut Cx<'_>) -> T) -> Result<T, Refusal> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock()?;
        let mut cx = Cx::at(self.now());
        let outcome = act(&mut state.rnic, &mut cx);
        state.gathered += 1;
        if state.gathered >= GATHERED || !state.may_gather(cx.now, qp) {
            state.transmit(&mut cx);
            self.remind(&state);
        }
        state.tell();
        Ok(outcome)
    }

    /// Lets `act` post receive requests: nothing leaves because of them.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn post_recv<T>(&self, act: impl FnOnce(&mut Rnic) -> T) -> Result<T, Refusal> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock()?;
        let outcome = act(&mut state.rnic);
        state.tell();
        Ok(outcome)
    }

    /// Registers memory; returns its key.
    ///
    /// # Errors
    /// [`Refusal::Fault`], [`Refusal::Entropy`], or as the engine has it.
    ///
    /// # Safety
    /// Whoever holds the key may read the memory, and write it if the region says so, until it is deregistered: it must
    /// be the caller's to give, and nothing that anybody holds a Rust reference to.
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn reg_mr(&self, region: Region) -> Result<u32, Refusal> {
        memory::probe(region.start, region.length, region.access.local_write).map_err(|_| Refusal::Fault)?;
        // SAFETY: the caller's.
        unsafe { self.reg_mr_on_demand(region) }
    }
    /// Whether memory may be registered that need not be there: where accesses are guarded.
    pub fn has_on_demand(&self) -> bool {
        memory::IS_GUARDED
    }
    /// Whether this memory can be made to survive the loss of power: all of it is files that are kept.
    pub fn can_persist(&self, address: u64, length: u64) -> bool {
        persist::is_kept(address, length)
    }
    /// Registers memory that need not be there yet; returns its key.
    ///
    /// # Errors
    /// [`Refusal::Entropy`], or as the engine has it.
    ///
    /// # Safety
    /// As [`Self::reg_mr`].
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn reg_mr_on_demand(&self, region: Region) -> Result<u32, Refusal> {
        let entropy = entropy().map_err(|_| Refusal::Entropy)?;
        Ok(self.command(|rnic, _| rnic.reg_mr(region, entropy))??)
    }
    /// Has the system bring in memory of a region of `pd`, to be written if `written`.
    ///
    /// # Errors
    /// [`Refusal::Fault`] if it is not there; if the region has no such piece.
    pub fn prefetch(&self, pd: PdId, piece: Sge, written: bool) -> Result<(), Refusal> {
        let region = self.lock()?.rnic.region(piece.key).filter(|region| region.pd == pd);
        let place = region.and_then(|region| region.place(piece.address, piece.length.into()));
        let address = place.ok_or(VerbsError::NoSuch("piece of a memory region"))?;
        memory::prefetch(address, piece.length.into(), written).map_err(|_| Refusal::Fault)
    }
    /// Registers other memory under a key.
    ///
    /// # Errors
    /// As [`Self::reg_mr`].
    ///
    /// # Safety
    /// As [`Self::reg_mr`].
    #[expect(unsafe_code, reason = "a promise of the caller's")]
    pub unsafe fn rereg_mr(&self, key: u32, region: Region) -> Result<(), Refusal> {
        memory::probe(region.start, region.length, region.access.local_write).map_err(|_| Refusal::Fault)?;
        Ok(self.command(|rnic, _| rnic.rereg_mr(key, region))??)
    }

    /// A new memory window; and its key.
    ///
    /// # Errors
    /// [`Refusal::Entropy`], or as the engine has it.
    pub fn alloc_mw(&self, pd: PdId, kind: WindowKind) -> Result<(WindowId, u32), Refusal> {
        let entropy = entropy().map_err(|_| Refusal::Entropy)?;
        Ok(self.lock()?.rnic.alloc_mw(pd, kind, entropy)?)
    }

    /// A new completion queue.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn create_cq(&self, depth: u32, owner: Owner) -> Result<CqId, Refusal> {
        let mut state = self.lock()?;
        let cq = state.rnic.create_cq(depth)?;
        state.owners.cqs.insert(cq, owner);
        Ok(cq)
    }
    /// Forgets one.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn destroy_cq(&self, cq: CqId) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.destroy_cq(cq)?;
        state.owners.cqs.remove(&cq).iter().for_each(Owner::withdraw);
        Ok(())
    }
    /// A new queue pair.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn create_qp(&self, init: QpInit, owner: Owner) -> Result<QpNumber, Refusal> {
        let mut state = self.lock()?;
        let qp = state.rnic.create_qp(init)?;
        state.owners.qps.insert(qp, owner);
        Ok(qp)
    }
    /// Forgets one.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn destroy_qp(&self, qp: QpNumber) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        // What it was about to say first: an acknowledgement that is withheld costs the other side its retries.
        let mut cx = Cx::at(self.now());
        state.transmit(&mut cx);
        state.say_last_words(qp);
        state.rnic.destroy_qp(qp)?;
        state.network.leave(None, qp);
        state.owners.qps.remove(&qp).iter().for_each(Owner::withdraw);
        Ok(())
    }
    /// Attaches a queue pair for datagrams to a group, on the interface with this index.
    ///
    /// # Errors
    /// As the engine has it (`EINVAL`, `ENOMEM`), after a fork (`EIO`), if port 4791 is somebody's who shares it with
    /// nobody (`EADDRINUSE`), and as the system has it: it may be in so many groups and no more (`ENOBUFS`), or have no
    /// IPv6.
    pub fn attach(&self, qp: QpNumber, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        let is_new = state.rnic.attach(qp, group).map_err(|error| {
            let is_full = matches!(error, VerbsError::Exhausted(_));
            io::Error::from_raw_os_error(if is_full { libc::ENOMEM } else { libc::EINVAL })
        })?;
        state.network.join(interface, group, qp).inspect_err(|_| {
            // It may be a member on another interface.
            if is_new {
                let _ = state.rnic.detach(qp, group);
            }
        })
    }
    /// The other way round.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn detach(&self, qp: QpNumber, group: Ipv6Addr) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.detach(qp, group)?;
        state.network.leave(Some(group), qp);
        Ok(())
    }
    /// A new shared receive queue.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn create_srq(&self, pd: PdId, attributes: SrqAttributes, owner: Owner) -> Result<SrqId, Refusal> {
        let mut state = self.lock()?;
        let srq = state.rnic.create_srq(pd, attributes)?;
        state.owners.srqs.insert(srq, owner);
        Ok(srq)
    }
    /// Forgets one.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn destroy_srq(&self, srq: SrqId) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.destroy_srq(srq)?;
        state.owners.srqs.remove(&srq).iter().for_each(Owner::withdraw);
        Ok(())
    }

    /// Lets `act` use the connection manager, then sends what there is to send.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn connect<T>(&self, act: impl FnOnce(&mut ConnectionManager, &mut Cx<'_>) -> T) -> Result<T, Refusal> {
        let mut state = self.lock()?;
        let mut cx = Cx::at(self.now());
        let outcome = act(&mut state.connections.manager, &mut cx);
        state.transmit(&mut cx);
        state.tell();
        self.remind(&state);
        Ok(outcome)
    }
    /// As [`Self::connect`], for what makes a connection that `hears` is told about.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn connect_for(
        &self,
        hears: Hears,
        act: impl FnOnce(&mut ConnectionManager, &mut Cx<'_>) -> ConnectionId,
    ) -> Result<ConnectionId, Refusal> {
        let mut state = self.lock()?;
        let mut cx = Cx::at(self.now());
        let id = act(&mut state.connections.manager, &mut cx);
        state.connections.own(id, hears);
        state.transmit(&mut cx);
        self.remind(&state);
        Ok(id)
    }
    /// From now on `hears` is told about a connection.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn own_connection(&self, id: ConnectionId, hears: Hears) -> Result<(), Refusal> {
        self.lock()?.connections.own(id, hears);
        Ok(())
    }
    /// Forgets a connection.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn forget_connection(&self, id: ConnectionId) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.connections.forget(id);
        state.transmit(&mut Cx::at(self.now()));
        Ok(())
    }
    /// Reserves an RDMA port, any if it is 0; returns which.
    ///
    /// # Errors
    /// If somebody on this host has it, or after a fork.
    pub fn reserve_port(&self, port: u16) -> io::Result<u16> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        let port = state.network.listen(port)?;
        self.note_descriptors(&state);
        Ok(port)
    }
    /// Gives one back.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn release_port(&self, port: u16) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        // A child would close whatever has their numbers next.
        let gone = state.network.unlisten(port);
        self.note_descriptors(&state);
        drop(gone);
        Ok(())
    }
    /// From now on `hears` is told of requests for a service.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn own_service(&self, service: u64, hears: Hears) -> Result<(), Refusal> {
        self.lock()?.connections.serve(service, hears);
        Ok(())
    }
    /// Tells `hears` of requests for a service.
    ///
    /// # Errors
    /// If it is served already, or after a fork.
    pub fn listen(&self, service: u64, hears: Hears) -> io::Result<()> {
        let mut state = self.lock().map_err(|_| io::Error::from_raw_os_error(libc::EIO))?;
        state.connections.listen(service, hears)
    }
    /// No more.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn unlisten(&self, service: u64) -> Result<(), Refusal> {
        self.lock()?.connections.unlisten(service);
        Ok(())
    }

    /// Asks for an event at the next completion.
    ///
    /// # Errors
    /// As the engine has it.
    pub fn arm_cq(&self, cq: CqId, solicited_only: bool) -> Result<(), Refusal> {
        let mut state = self.lock()?;
        state.rnic.arm_cq(cq, solicited_only)?;
        // Its polls will not do our work any more.
        if state.gathered > 0 {
            state.transmit(&mut Cx::at(self.now()));
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
    /// [`Refusal::Forked`].
    pub fn poll_cq(&self, cq: CqId, most: usize, mut take: impl FnMut(&Completion)) -> Result<usize, Refusal> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock()?;
        if state.gathered > 0 {
            state.transmit(&mut Cx::at(self.now()));
        }
        let mut found = state.completions(cq, most, &mut take);
        if found == 0 {
            // Until there is one, and no further: the application may have to post receive requests for the next.
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
                courtesy::rest(self, before == PATIENCE);
            }
        }
        Ok(found)
    }

    /// The process ends: what was to leave with others leaves, and those who are connected hear of it.
    #[expect(clippy::disallowed_methods, reason = "whoever has the lock gives it back a moment later")]
    pub(super) fn finish(&self) {
        /// Who calls `exit` where a signal came may have the lock itself: not for ever.
        const ATTEMPTS: usize = 100;
        const INTERVAL: std::time::Duration = std::time::Duration::from_micros(100);
        if self.is_foreign.load(Ordering::Relaxed) {
            return;
        }
        for _ in 0..ATTEMPTS {
            if let Some(mut state) = self.try_lock() {
                let mut cx = Cx::at(self.now());
                state.connections.manager.leave(&mut cx);
                state.transmit(&mut cx);
                return;
            }
            std::thread::sleep(INTERVAL);
        }
    }

    /// Packets so far.
    ///
    /// # Errors
    /// [`Refusal::Forked`].
    pub fn counters(&self) -> Result<Counters, Refusal> {
        Ok(self.lock()?.network.counters)
    }

    fn note_descriptors(&self, state: &State) {
        *self.descriptors.lock().unwrap_or_else(PoisonError::into_inner) = descriptors(&state.network, &self.wake);
    }

    /// The thread must look earlier than it would by itself, or wait for room in a socket.
    fn remind(&self, state: &State) {
        let is_late = state.deadline() < state.asleep_until;
        if !state.is_parked && (is_late || state.is_blocked()) {
            self.wake();
        }
    }
    fn wake(&self) {
        // It counts to 2^64 - 2: it will not refuse.
        let _ = self.wake.write(1);
    }
}

fn descriptors(network: &Network, wake: &EventFd) -> Vec<RawFd> {
    let all = network.descriptors().chain([network.all.0.as_fd(), wake.as_fd()]);
    all.map(|descriptor| descriptor.as_raw_fd()).collect()
}

/// A number that nobody can guess.
fn entropy() -> io::Result<u32> {
    let mut bytes = [0; 4];
    // As many at once are never cut short.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use selvedge_nic::verbs::Service;

    use super::super::channel::Channel;
    use super::super::state::tests::of_a_queue_pair;
    use super::*;

    #[test]
    fn who_cannot_join_on_one_interface_stays_a_member_on_another() {
        let adapter = Adapter::new().expect("there are sockets");
        let owner = Owner { cookie: 0, completions: None, notices: Arc::new(Channel::new().expect("a descriptor")) };
        let pd = adapter.command(|rnic, _| rnic.alloc_pd()).expect("no fork");
        let cq = adapter.create_cq(1, owner.clone()).expect("it is right");
        let qp = adapter.create_qp(of_a_queue_pair(Service::Datagram, pd, cq), owner).expect("it is right");
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
