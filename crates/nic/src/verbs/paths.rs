//! The ways to other hosts, and whose turn it is where a way's window is full.
//!
//! ```text
//!     poll_transmit ──> admits? ──no──> waits in line ──(the window opens)──> next_turn ──> poll_transmit
//! ```
//!
//! Design notes.
//! 1. *One window for all*: requests and answers of all queue pairs between the same two addresses share a [`Path`].
//! 2. *First come, first served, [`TURN`] packets at a time.* A queue pair that finds the window full, or others in
//!    line, stands at the end of the line. Whoever has its turn sends until the window is full, its turn is over, or
//!    it has no more to send. The last packet of a turn asks for an acknowledgement, because the next turn may be far.
//! 3. *Silence is the path's*: while acknowledgements of others move, a queue pair that hears nothing because its
//!    packets wait, or are still on their way, has not tried in vain. Its timeout is put off until their fate is known.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_transport::path::{Path, PathConfig};
use selvedge_units::{Duration, Instant, QpNumber};

use super::work::Route;

/// Packets that a queue pair sends before others in line have their turn: what leaves by one call of the system.
const TURN: u32 = 64;

/// After so long a timeout that was put off is looked at again.
const AGAIN: Duration = Duration::from_ms(4);

/// A way to another host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct PathId(u32);

impl PathId {
    /// No congestion control of a path's.
    pub(super) const NONE: Self = Self(u32::MAX);
}

#[derive(Debug)]
struct Entry {
    ends: (Ipv6Addr, Ipv6Addr),
    path: Path,
    users: u32,
    /// In line.
    waiting: VecDeque<u32>,
    /// Whose turn it is, and how many packets of it are left.
    turn: Option<u32>,
    left: u32,
    /// It is among those that are open.
    is_listed: bool,
    /// What stands in the list of deadlines.
    armed: Option<Instant>,
    /// When anything came from the other host last.
    heard: Instant,
}

/// What a sender has tried since a timeout of its counted last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempt {
    /// The time stamp of its newest packet.
    pub(super) newest: Option<Instant>,
    /// Its timeouts are not looked at before this.
    pub(super) put_off: Instant,
    /// When one of them was in vain last.
    counted: Instant,
}

/// See above.
#[derive(Debug, Default)]
pub(super) struct Paths {
    config: Option<PathConfig>,
    known: BTreeMap<(Ipv6Addr, Ipv6Addr), PathId>,
    entries: Vec<Option<Entry>>,
    /// Those with an open window and queue pairs in line.
    open: VecDeque<PathId>,
    deadlines: BTreeSet<(Instant, PathId)>,
    /// The queue pair that was asked last found this one full.
    full: Option<PathId>,
    /// How long the packet waited in this host that is being handled; `None` if that is not known.
    pub(super) waited: Option<Duration>,
    /// Clocks stood still then: what left before has no round-trip time.
    lapse: Instant,
}

impl Paths {
    /// From now on, queue pairs that are connected have a congestion control of their path's, or none.
    pub(super) fn control(&mut self, config: Option<PathConfig>) {
        self.config = config;
    }
    /// Whether there is any.
    pub(super) fn is_on(&self) -> bool {
        self.config.is_some()
    }
    /// The caller's clock stood still until `now`.
    pub(super) fn on_lapse(&mut self, now: Instant) {
        self.lapse = now;
    }

    /// A queue pair uses this way from now on.
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
            left: 0,
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
    /// A queue pair uses it no longer, and does not stand in line any more.
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

    /// Whether this queue pair may send a packet now. If not, [`Self::take_full`] says where it has to wait.
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
    /// The path that the queue pair has to wait for which was asked for a packet just now, if it has to.
    #[inline]
    pub(super) fn take_full(&mut self) -> Option<PathId> {
        self.full.take()
    }
    /// A queue pair stands in line.
    pub(super) fn wait(&mut self, id: PathId, qp: u32) {
        let Some(entry) = self.get(id) else { return };
        if entry.turn == Some(qp) {
            entry.turn = None;
        }
        entry.waiting.push_back(qp);
        self.list(id);
        self.arm(id);
    }
    /// The queue pair whose turn is next.
    pub(super) fn next_turn(&mut self) -> Option<u32> {
        while let Some(id) = self.open.pop_front() {
            let Some(entry) = self.get(id) else { continue };
            entry.is_listed = false;
            if !entry.path.is_open() {
                continue;
            }
            if let Some(next) = entry.waiting.pop_front() {
                (entry.turn, entry.left) = (Some(next), TURN);
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

    /// So many packets leave at `now`. Returns the time stamp of the last, and whether it should ask for an
    /// acknowledgement.
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
        entry.left = entry.left.saturating_sub(u32::try_from(packets).unwrap_or(u32::MAX));
        let is_over = entry.left == 0;
        if is_over {
            entry.turn = None;
        }
        (stamp, asks || is_over)
    }

    /// A packet has come from the other host.
    #[inline]
    pub(super) fn on_arrival(&mut self, id: PathId, now: Instant) {
        if id != PathId::NONE
            && let Some(entry) = self.get(id)
        {
            entry.heard = now;
        }
    }
    /// An acknowledgement echoes this time stamp; its packet `waited` in the other host.
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
    /// A congestion notification has come.
    pub(super) fn on_mark(&mut self, id: PathId, now: Instant) {
        if let Some(entry) = self.get(id) {
            entry.path.on_mark(now);
        }
    }

    /// Whether a sender that hears nothing has tried in vain: its newest packet is no longer in the network, or nothing
    /// that anybody has sent is acknowledged in time. If not, its timeout is put off.
    pub(super) fn is_in_vain(&self, id: PathId, now: Instant, attempt: &mut Attempt) -> bool {
        let Some(Entry { path, .. }) = self.entries.get(id.0 as usize).and_then(Option::as_ref) else { return true };
        let is_silent = path.deadline() <= now || path.silent().is_some_and(|at| at > attempt.counted);
        let is_in_vain = is_silent || attempt.newest.is_some_and(|newest| newest <= path.echoed());
        if is_in_vain {
            (attempt.newest, attempt.counted) = (None, now);
        } else {
            attempt.put_off = now + AGAIN;
        }
        is_in_vain
    }
    /// Whether anything has come from the other host after this time.
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
    /// When to call [`Self::handle_timeout`].
    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }
    /// Handles what is due.
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
    /// Packets that may be outstanding, and that are, on each path.
    #[cfg(test)]
    pub(super) fn windows(&self) -> Vec<(u64, u64)> {
        self.entries.iter().flatten().map(|entry| (entry.path.window(), entry.path.in_flight())).collect()
    }
}
