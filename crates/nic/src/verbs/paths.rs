//! Paths to other hosts: the congestion window that queue pairs share, and the order in which they use it.
//!
//! ```text
//!     poll_transmit ──> admits? ──no──> wait (a queue) ──(the window opens)──> next_turn ──> poll_transmit
//! ```
//!
//! Design notes.
//! 1. *One window for all*: requests and responses of all queue pairs between the same two addresses share a [`Path`].
//! 2. *Round-robin, [`TURN`] packets at a time.* A queue pair that finds the window full, or others waiting, is
//!    appended to the path's queue. The queue pair at the head sends until the window is full, its turn is over, or it
//!    has no more to send. The last packet of a turn requests an acknowledgement, because the next turn may be far
//!    away.
//! 3. *Timeouts count per path*: while acknowledgements of other queue pairs arrive, a timeout of a queue pair whose
//!    packets wait, or may still be in the network, is no failed retry. It is postponed until these packets have been
//!    acknowledged or overtaken.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_transport::path::{Path, PathConfig};
use selvedge_units::{Duration, Instant, QpNumber};

use super::work::Route;

/// Packets that a queue pair may send before the next one that waits: as many as one system call sends.
const TURN: u32 = 64;

/// The time by which a timeout that may not count yet is postponed.
const AGAIN: Duration = Duration::from_ms(4);

/// Index of a path in [`Paths`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PathId(u32);

impl PathId {
    /// Placeholder path of queue pairs that share no congestion control.
    pub(super) const NONE: Self = Self(u32::MAX);
}

/// A path between two addresses, and the queue pairs that share it.
#[derive(Debug)]
struct Entry {
    /// The local and the remote address.
    ends: (Ipv6Addr, Ipv6Addr),
    path: Path,
    /// Connected queue pairs that use the path.
    users: u32,
    /// Numbers of the queue pairs that wait for the window, in the order in which they will send.
    waiting: VecDeque<u32>,
    /// Number of the queue pair that sends now, while others wait.
    turn: Option<u32>,
    /// Packets that `turn` may still send.
    turn_packets: u32,
    /// Whether [`Paths::open`] contains the path.
    is_listed: bool,
    /// The path's deadline in [`Paths::deadlines`], if it has one there.
    armed: Option<Instant>,
    /// Arrival of the newest packet from the remote address.
    heard: Instant,
}

/// Packets and timeouts of one sender since a timeout last counted as a failed retry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempt {
    /// Time stamp of the sender's newest packet; `None` if no packet was sent since.
    pub(super) newest: Option<Instant>,
    /// Time before which the sender's timeouts are not handled.
    pub(super) put_off: Instant,
    /// Time at which a timeout last counted as a failed retry.
    counted: Instant,
}

impl Attempt {
    /// Notes that a timeout counts as a failed retry at `now`: the sender has packets to retransmit.
    pub(super) fn on_failed_retry(&mut self, now: Instant) {
        (self.newest, self.counted) = (None, now);
    }
}

/// All paths of a NIC.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// Congestion control of new paths; `None` if queue pairs share none.
    config: Option<PathConfig>,
    /// Paths by local and remote address.
    known: BTreeMap<(Ipv6Addr, Ipv6Addr), PathId>,
    entries: Vec<Option<Entry>>,
    /// Paths with an open window and queue pairs that wait for it.
    open: VecDeque<PathId>,
    /// Deadlines of paths that have received no acknowledgement.
    deadlines: BTreeSet<(Instant, PathId)>,
    /// Path whose window refused the most recently requested packet.
    full: Option<PathId>,
    /// Time that the packet being handled has waited in this host; `None` if that is not known.
    pub(super) waited: Option<Duration>,
    /// Time at which the caller's clock last resumed after standing still: packets sent before have no round-trip time.
    lapse: Instant,
}

impl Paths {
    /// Sets the congestion control of queue pairs that are connected from now on; `None`: they share none.
    pub(super) fn control(&mut self, config: Option<PathConfig>) {
        self.config = config;
    }
    /// Returns whether new queue pairs share a congestion control.
    pub(super) fn is_on(&self) -> bool {
        self.config.is_some()
    }
    /// Notes that the caller's clock stood still until `now`.
    pub(super) fn on_lapse(&mut self, now: Instant) {
        self.lapse = now;
    }

    /// Adds a queue pair to the path of `route`, and returns that path.
    pub(super) fn enter(&mut self, route: &Route) -> PathId {
        let Some(config) = self.config else { return PathId::NONE };
        let ends = (route.local, route.remote);
        if let Some(&id) = self.known.get(&ends) {
            if let Some(entry) = self.get(id) {
                entry.users += 1;
            }
            return id;
        }
        let entry = Entry {
            ends,
            path: Path::new(config),
            users: 1,
            waiting: VecDeque::new(),
            turn: None,
            turn_packets: 0,
            is_listed: false,
            armed: None,
            heard: Instant::ZERO,
        };
        let free = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        if free == self.entries.len() {
            self.entries.push(None);
        }
        self.entries[free] = Some(entry);
        let id = PathId(free as u32);
        self.known.insert(ends, id);
        id
    }
    /// Removes a queue pair from a path, and the path when it was the last.
    pub(super) fn leave(&mut self, id: PathId, qp: QpNumber) {
        let Some(entry) = self.get(id) else { return };
        entry.waiting.retain(|waiting| *waiting != qp.0);
        entry.turn = entry.turn.filter(|turn| *turn != qp.0);
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        let (ends, armed) = (entry.ends, entry.armed);
        if let Some(at) = armed {
            self.deadlines.remove(&(at, id));
        }
        self.open.retain(|open| *open != id);
        self.known.remove(&ends);
        self.entries[id.0 as usize] = None;
    }
    fn get(&mut self, id: PathId) -> Option<&mut Entry> {
        self.entries.get_mut(id.0 as usize)?.as_mut()
    }

    /// Returns whether this queue pair may send a packet now. If not, [`Self::take_full`] names the path to wait
    /// for.
    #[inline]
    pub(super) fn admits(&mut self, id: PathId, qp: QpNumber) -> bool {
        if id == PathId::NONE {
            return true;
        }
        let Some(entry) = self.get(id) else { return true };
        let is_its_turn = entry.waiting.is_empty() || entry.turn == Some(qp.0);
        if is_its_turn && entry.path.is_open() {
            return true;
        }
        if !entry.path.is_open() {
            entry.path.on_held();
        }
        self.full = Some(id);
        false
    }
    /// Takes the path whose window refused the last packet, if one did.
    #[inline]
    pub(super) fn take_full(&mut self) -> Option<PathId> {
        self.full.take()
    }
    /// Appends a queue pair to the queue of a path.
    pub(super) fn wait(&mut self, id: PathId, qp: u32) {
        let Some(entry) = self.get(id) else { return };
        if entry.turn == Some(qp) {
            entry.turn = None;
        }
        entry.waiting.push_back(qp);
        self.list(id);
        self.arm(id);
    }
    /// Returns the next queue pair that may send on a path whose window has opened.
    pub(super) fn next_turn(&mut self) -> Option<u32> {
        while let Some(id) = self.open.pop_front() {
            let Some(entry) = self.get(id) else { continue };
            entry.is_listed = false;
            if !entry.path.is_open() {
                continue;
            }
            if let Some(next) = entry.waiting.pop_front() {
                (entry.turn, entry.turn_packets) = (Some(next), TURN);
                self.list(id);
                return Some(next);
            }
        }
        None
    }
    fn list(&mut self, id: PathId) {
        let Some(entry) = self.get(id) else { return };
        if !entry.is_listed && !entry.waiting.is_empty() && entry.path.is_open() {
            entry.is_listed = true;
            self.open.push_back(id);
        }
    }

    /// Counts `packets` that leave at `now`, retransmissions if `again`. Returns the time stamp of the last, and
    /// whether it should request an acknowledgement.
    #[inline]
    pub(super) fn on_sent(&mut self, id: PathId, now: Instant, packets: u64, again: bool) -> (Instant, bool) {
        if id == PathId::NONE {
            return (now, false);
        }
        let Some(entry) = self.get(id) else { return (now, false) };
        let (stamp, asks) = entry.path.on_sent(now, packets, again);
        if entry.waiting.is_empty() {
            return (stamp, asks);
        }
        entry.turn_packets = entry.turn_packets.saturating_sub(u32::try_from(packets).unwrap_or(u32::MAX));
        let is_over = entry.turn_packets == 0;
        if is_over {
            entry.turn = None;
        }
        (stamp, asks || is_over)
    }

    /// Notes that a packet of the remote host arrived at `now`.
    #[inline]
    pub(super) fn on_arrival(&mut self, id: PathId, now: Instant) {
        if id != PathId::NONE
            && let Some(entry) = self.get(id)
        {
            entry.heard = now;
        }
    }
    /// Handles an acknowledgement that echoes `stamp`, whose packet `waited` in the remote host.
    #[inline]
    pub(super) fn on_echo(&mut self, id: PathId, now: Instant, stamp: Instant, waited: Option<Duration>) {
        if id == PathId::NONE {
            return;
        }
        let here = self.waited.filter(|_| stamp >= self.lapse);
        let waited = waited.zip(here).map(|(there, here)| there.saturating_add(here));
        let Some(entry) = self.get(id) else { return };
        entry.path.on_echo(now, stamp, waited);
        if !entry.waiting.is_empty() {
            self.list(id);
        }
    }
    /// Handles a congestion notification packet.
    pub(super) fn on_mark(&mut self, id: PathId, now: Instant) {
        if let Some(entry) = self.get(id) {
            entry.path.on_mark(now);
        }
    }

    /// Returns whether a timeout of a sender may be handled: its newest packet is no longer in the network, nothing of
    /// the path is, or no acknowledgement on the path arrived in time. If not, the sender's timeout is postponed.
    pub(super) fn admits_timeout(&self, id: PathId, now: Instant, attempt: &mut Attempt) -> bool {
        let Some(Entry { path, .. }) = self.entries.get(id.0 as usize).and_then(Option::as_ref) else { return true };
        let is_silent = path.deadline() <= now || path.silent().is_some_and(|at| at > attempt.counted);
        let has_left = path.in_flight() == 0 || attempt.newest.is_some_and(|newest| newest <= path.echoed());
        if !is_silent && !has_left {
            attempt.put_off = now + AGAIN;
        }
        is_silent || has_left
    }
    /// Returns whether a packet of the remote host has arrived after `since`.
    pub(super) fn is_alive(&self, id: PathId, since: Instant) -> bool {
        self.entries.get(id.0 as usize).and_then(Option::as_ref).is_some_and(|entry| entry.heard > since)
    }

    fn arm(&mut self, id: PathId) {
        let Some(entry) = self.get(id) else { return };
        let at = entry.path.deadline();
        if entry.armed.is_none() && at < Instant::NEVER {
            entry.armed = Some(at);
            self.deadlines.insert((at, id));
        }
    }
    /// Returns when to call [`Self::handle_timeout`]; `None`: nothing is due.
    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }
    /// Handles the deadlines of paths that have passed at `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.deadlines.first()
            && at <= now
        {
            self.deadlines.pop_first();
            let Some(entry) = self.get(id) else { continue };
            entry.armed = None;
            entry.path.on_silence(now);
            if !entry.waiting.is_empty() {
                self.list(id);
                self.arm(id);
            }
        }
    }
    /// Returns the window and the packets in flight of each path.
    #[cfg(test)]
    pub(super) fn windows(&self) -> Vec<(u64, u64)> {
        self.entries.iter().flatten().map(|entry| (entry.path.window(), entry.path.in_flight())).collect()
    }
}
