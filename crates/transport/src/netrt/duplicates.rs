//! The duplicate pool of one port (section III-C1).
//!
//! When it is full, the oldest duplicate of the flow with the fewest requests goes: least frequently used,
//! over flows. Of flows with equally many requests, the oldest of all their duplicates goes. So duplicates
//! stand in one list for each number of requests, oldest first; adding and evicting take constant time, and a
//! flow's duplicates are moved when somebody asks for them, which is rare.
//!
//! What waits to be sent again is the oldest there is, and would be the first to go while its sender is being paused.
//! It stands in a list of its own, and yields to regular traffic alone.

use alloc::vec::Vec;

use selvedge_units::{Instant, Psn};

use super::{Flow, Occupancy, Passing};

/// Copies of what passed lately.
#[derive(Debug)]
pub(super) struct Duplicates<H> {
    entries: Vec<Entry<H>>,
    free: u32,
    /// By number of requests, ascending.
    lists: Vec<List>,
    added: u64,
    pub(super) occupancy: Occupancy,
}

#[derive(Clone, Copy, Debug)]
struct Entry<H> {
    flow: Flow,
    psn: Psn,
    handle: H,
    bytes: u32,
    at: Instant,
    /// How many were added before it; `NOBODY` where nothing is.
    number: u64,
    /// Whether it waits to be sent again.
    wanted: bool,
    /// When it was sent again.
    sent_at: Option<Instant>,
    previous: u32,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct List {
    requests: u32,
    first: u32,
    last: u32,
}

const NONE: u32 = u32::MAX;
const NOBODY: u64 = u64::MAX;
/// Stands for the number of requests in the list of what waits to be sent again.
const WANTED: u32 = u32::MAX;
/// Requests of a flow that count.
pub(super) const MOST_REQUESTS: u32 = WANTED - 1;

/// What a pool may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes, of what regular traffic leaves.
    pub(super) most: u64,
    /// What is older goes first when there is no more place.
    pub(super) oldest: Instant,
}

/// A duplicate that waits to be sent again, unless it has been evicted meanwhile, or is of no use any more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    place: u32,
    number: u64,
}

impl<H: Copy> Duplicates<H> {
    pub(super) fn new() -> Self {
        let lists = [0, WANTED].map(|requests| List { requests, first: NONE, last: NONE }).to_vec();
        Self { entries: Vec::new(), free: NONE, lists, added: 0, occupancy: Occupancy::default() }
    }

    /// Adds a duplicate of a flow that was asked for so often, if there is place for it. Where a pool is full, what is
    /// old goes first. Returns bytes that no longer wait to be sent because regular traffic needs their place.
    #[inline]
    pub(super) fn add(
        &mut self,
        now: Instant,
        (flow, requests): (Flow, u32),
        psn: Psn,
        packet: &Passing<H>,
        limits: Limits,
    ) -> u64 {
        let lost = self.shrink(now, packet.room);
        let Passing { handle, bytes, .. } = *packet;
        let Some(most) = limits.most.min(packet.room).checked_sub(u64::from(bytes)) else { return lost };
        if self.occupancy.bytes() > most && !self.make_room(now, most, limits.oldest) {
            return lost;
        }
        self.added += 1;
        let entry = Entry {
            flow,
            psn,
            handle,
            bytes,
            at: now,
            number: self.added,
            wanted: false,
            sent_at: None,
            previous: NONE,
            next: NONE,
        };
        let place = self.place(entry);
        let list = self.list(requests);
        self.append(list, place);
        self.occupancy.add(now, bytes);
        lost
    }

    /// Evicts what does not wait to be sent until at most `most` bytes are left, what has been there since before
    /// `oldest` first; returns whether that was enough. A duplicate is of use for about a round trip (section III-C1);
    /// without its age, those of flows that were asked for once and have ended would fill the pool.
    #[inline]
    fn make_room(&mut self, now: Instant, most: u64, oldest: Instant) -> bool {
        let mut list = 0;
        while let Some(&List { first, requests, .. }) = self.lists.get(list)
            && requests < WANTED
        {
            if first != NONE && self.entries[first as usize].at < oldest {
                let lists = self.lists.len();
                self.drop_first(now, list);
                list -= usize::from(self.lists.len() < lists && list > 0);
            } else {
                list += 1;
            }
        }
        while self.occupancy.bytes() > most {
            match self.lists.iter().position(|list| list.first != NONE && list.requests < WANTED) {
                Some(list) => self.drop_first(now, list),
                None => return false,
            };
        }
        true
    }

    /// Evicts until at most `most` bytes are left; returns bytes that no longer wait to be sent.
    #[inline]
    pub(super) fn shrink(&mut self, now: Instant, most: u64) -> u64 {
        let mut lost = 0;
        while self.occupancy.bytes() > most {
            lost += self.evict(now);
        }
        lost
    }

    /// Whether there is a duplicate of that packet of a flow that was asked for so often.
    pub(super) fn has(&self, (flow, requests): (Flow, u32), psn: Psn) -> bool {
        let is_it = |entry: &Entry<H>| entry.flow == flow && entry.psn == psn;
        let lists = self.lists.iter().filter(|list| list.requests == requests || list.requests == WANTED);
        lists.flat_map(|list| self.places(list)).any(|place| is_it(&self.entries[place as usize]))
    }

    /// Those of a flow that wait to be sent, from `psn` on, do so no longer; returns their bytes.
    pub(super) fn spare(&mut self, (flow, requests): (Flow, u32), psn: Psn) -> u64 {
        let is_spared = |entry: &Entry<H>| entry.flow == flow && entry.psn.ahead_of(psn) >= 0;
        let wanted = &self.lists[self.wanted()];
        let spared: Vec<u32> = self.places(wanted).filter(|&place| is_spared(&self.entries[place as usize])).collect();
        for &place in &spared {
            self.entries[place as usize].wanted = false;
            self.unlink(self.wanted(), place);
            let to = self.list(requests);
            self.insert_by_age(to, place);
        }
        spared.iter().map(|&place| u64::from(self.entries[place as usize].bytes)).sum()
    }

    /// Where the entries of a list are, the first first.
    fn places(&self, list: &List) -> impl Iterator<Item = u32> + use<'_, H> {
        let some = |place: u32| (place != NONE).then_some(place);
        core::iter::successors(some(list.first), move |&place| some(self.entries[place as usize].next))
    }

    /// Marks what `is_asked` of a flow as waiting to be sent, unless it was since `recently`; calls `enqueue` with each
    /// that did not wait already, oldest first, and its bytes.
    pub(super) fn want(
        &mut self,
        (flow, requests): (Flow, u32),
        recently: Instant,
        mut is_asked: impl FnMut(Psn) -> bool,
        mut enqueue: impl FnMut(Ticket, u32),
    ) {
        let to = self.wanted();
        let mut place = self.lists[to].first;
        while place != NONE {
            let entry = &self.entries[place as usize];
            if entry.flow == flow {
                is_asked(entry.psn);
            }
            place = entry.next;
        }
        if let Some(from) = self.lists.iter().position(|list| list.requests == requests) {
            place = self.lists[from].first;
            while place != NONE {
                let Entry { flow: of, psn, number, bytes, sent_at, next, .. } = self.entries[place as usize];
                if of == flow && is_asked(psn) && sent_at.is_none_or(|at| at < recently) {
                    self.entries[place as usize].wanted = true;
                    self.unlink(from, place);
                    self.append(to, place);
                    enqueue(Ticket { place, number }, bytes);
                }
                place = next;
            }
            self.tidy(from);
        }
    }

    /// What is to be sent now for a ticket, of a flow that was asked for as often as `requests` says; it stays in the
    /// pool, for it may be lost again (C17).
    pub(super) fn redeem(
        &mut self,
        now: Instant,
        ticket: Ticket,
        requests: impl FnOnce(Flow) -> u32,
    ) -> Option<(H, u32)> {
        let Entry { flow, number, handle, bytes, wanted, .. } = self.entries[ticket.place as usize];
        if number != ticket.number || !wanted {
            return None;
        }
        let entry = &mut self.entries[ticket.place as usize];
        (entry.wanted, entry.sent_at) = (false, Some(now));
        self.unlink(self.wanted(), ticket.place);
        let to = self.list(requests(flow));
        self.insert_by_age(to, ticket.place);
        Some((handle, bytes))
    }

    /// A flow has been asked for once more: its duplicates move up.
    pub(super) fn promote(&mut self, flow: Flow, requests: u32) {
        let Some(from) = self.lists.iter().position(|list| list.requests == requests - 1) else { return };
        // A list of more requests stands behind.
        let (mut place, to) = (self.lists[from].first, self.list(requests));
        while place != NONE {
            let entry = self.entries[place as usize];
            if entry.flow == flow {
                self.unlink(from, place);
                self.insert_by_age(to, place);
            }
            place = entry.next;
        }
        self.tidy(from);
    }

    /// The list of flows that were asked for so often.
    #[inline]
    fn list(&mut self, requests: u32) -> usize {
        // Nobody has asked for most flows, and their list is always there.
        if requests == 0 {
            return 0;
        }
        let at = self.lists.partition_point(|list| list.requests < requests);
        if self.lists[at].requests != requests {
            self.lists.insert(at, List { requests, first: NONE, last: NONE });
        }
        at
    }

    #[inline]
    fn evict(&mut self, now: Instant) -> u64 {
        match self.lists.iter().position(|list| list.first != NONE) {
            Some(list) => self.drop_first(now, list),
            None => 0,
        }
    }

    #[inline]
    fn drop_first(&mut self, now: Instant, list: usize) -> u64 {
        let place = self.lists[list].first;
        self.unlink(list, place);
        self.tidy(list);
        let entry = &mut self.entries[place as usize];
        let (bytes, wanted) = (entry.bytes, entry.wanted);
        (entry.number, entry.next) = (NOBODY, self.free);
        self.free = place;
        self.occupancy.remove(now, bytes);
        if wanted { u64::from(bytes) } else { 0 }
    }

    /// The list of what waits to be sent again: the last.
    fn wanted(&self) -> usize {
        self.lists.len() - 1
    }

    /// Forgets a list of nobody, but that of flows never asked for, and that of what waits to be sent again.
    fn tidy(&mut self, list: usize) {
        let List { requests, first, .. } = self.lists[list];
        if first == NONE && requests > 0 && requests < WANTED {
            self.lists.remove(list);
        }
    }

    #[inline]
    fn place(&mut self, entry: Entry<H>) -> u32 {
        if self.free == NONE {
            self.entries.push(entry);
            return self.entries.len() as u32 - 1;
        }
        let place = self.free;
        self.free = core::mem::replace(&mut self.entries[place as usize], entry).next;
        place
    }

    #[inline]
    fn append(&mut self, list: usize, place: u32) {
        let last = core::mem::replace(&mut self.lists[list].last, place);
        self.entries[place as usize].previous = last;
        match last {
            NONE => self.lists[list].first = place,
            last => self.entries[last as usize].next = place,
        }
    }

    /// Puts an entry behind all that are older.
    fn insert_by_age(&mut self, list: usize, place: u32) {
        let number = self.entries[place as usize].number;
        let mut before = self.lists[list].last;
        while before != NONE && self.entries[before as usize].number > number {
            before = self.entries[before as usize].previous;
        }
        let after = match before {
            NONE => core::mem::replace(&mut self.lists[list].first, place),
            before => core::mem::replace(&mut self.entries[before as usize].next, place),
        };
        let entry = &mut self.entries[place as usize];
        (entry.previous, entry.next) = (before, after);
        match after {
            NONE => self.lists[list].last = place,
            after => self.entries[after as usize].previous = place,
        }
    }

    #[inline]
    fn unlink(&mut self, list: usize, place: u32) {
        let Entry { previous, next, .. } = self.entries[place as usize];
        match previous {
            NONE => self.lists[list].first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.lists[list].last = previous,
            next => self.entries[next as usize].previous = previous,
        }
        let entry = &mut self.entries[place as usize];
        (entry.previous, entry.next) = (NONE, NONE);
    }
}

#[cfg(test)]
impl<H: Copy> Duplicates<H> {
    /// What is in it, the next to go first.
    pub(super) fn contents(&self) -> Vec<(Flow, u32)> {
        let mut all = Vec::new();
        for place in self.lists.iter().flat_map(|list| self.places(list)) {
            let entry = &self.entries[place as usize];
            all.push((entry.flow, entry.psn.get()));
        }
        all
    }
}
