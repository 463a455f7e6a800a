//! The duplicate pool of one port (section III-C1).
//!
//! When the pool is full, the oldest duplicate of the flow with the fewest requests is evicted: least frequently used,
//! over flows. Of flows with equally many requests, the oldest of all their duplicates is evicted. So there is one list
//! of duplicates for each number of requests, oldest first; adding and evicting take constant time, and a flow's
//! duplicates are moved when they are requested, which is rare.
//!
//! Duplicates that wait to be retransmitted are the oldest, and would be evicted first while their sender is paused.
//! Hence they have a list of their own, and yield only to regular traffic.

use alloc::vec::Vec;

use selvedge_units::{Instant, Psn};

use super::{Flow, Occupancy, Passing};

/// Copies of recent packets of one port.
#[derive(Debug)]
pub(super) struct Duplicates<H> {
    entries: Vec<Entry<H>>,
    free: u32,
    /// Lists in ascending order of the number of requests.
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
    /// Serial number in the order of addition; `NOBODY` in a free entry.
    number: u64,
    /// Whether the duplicate waits to be retransmitted.
    wanted: bool,
    /// Time of the last retransmission.
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
/// Pseudo number of requests of the list of duplicates that wait to be retransmitted.
const WANTED: u32 = u32::MAX;
/// Largest count of a flow's requests.
pub(super) const MOST_REQUESTS: u32 = WANTED - 1;

/// Limits of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most bytes, within the room that regular traffic leaves.
    pub(super) most: u64,
    /// Time before which duplicates count as old and are evicted first when there is no room.
    pub(super) oldest: Instant,
}

/// Reference to a duplicate that waits to be retransmitted, unless it was evicted or became useless meanwhile.
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

    /// Adds a duplicate of a flow that was requested `requests` times, if there is room. In a full pool, old duplicates
    /// are evicted first. Returns the bytes that no longer wait to be sent because regular traffic needs their room.
    /// Handles that are not kept are passed to `freed`.
    #[inline]
    pub(super) fn add(
        &mut self,
        now: Instant,
        (flow, requests): (Flow, u32),
        psn: Psn,
        packet: &Passing<H>,
        limits: Limits,
        freed: &mut impl FnMut(H),
    ) -> u64 {
        let lost = self.shrink(now, packet.room, freed);
        let Passing { handle, bytes, .. } = *packet;
        let most = limits.most.min(packet.room).checked_sub(u64::from(bytes));
        let fits = |most| self.occupancy.bytes() <= most || self.make_room(now, most, limits.oldest, freed);
        if !most.is_some_and(fits) {
            freed(handle);
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

    /// Evicts duplicates that do not wait to be sent until at most `most` bytes are left, those added before `oldest`
    /// first; returns whether that sufficed. A duplicate is useful for about a round trip (section III-C1); without the
    /// age limit, duplicates of flows that were requested once and have ended would fill the pool.
    #[inline]
    fn make_room(&mut self, now: Instant, most: u64, oldest: Instant, freed: &mut impl FnMut(H)) -> bool {
        let mut list = 0;
        while let Some(&List { first, requests, .. }) = self.lists.get(list)
            && requests < WANTED
        {
            if first != NONE && self.entries[first as usize].at < oldest {
                let lists = self.lists.len();
                self.drop_first(now, list, freed);
                list -= usize::from(self.lists.len() < lists && list > 0);
            } else {
                list += 1;
            }
        }
        while self.occupancy.bytes() > most {
            match self.lists.iter().position(|list| list.first != NONE && list.requests < WANTED) {
                Some(list) => self.drop_first(now, list, freed),
                None => return false,
            };
        }
        true
    }

    /// Evicts duplicates until at most `most` bytes are left; returns the bytes that no longer wait to be sent.
    #[inline]
    pub(super) fn shrink(&mut self, now: Instant, most: u64, freed: &mut impl FnMut(H)) -> u64 {
        let mut lost = 0;
        while self.occupancy.bytes() > most {
            lost += self.evict(now, freed);
        }
        lost
    }

    /// Returns whether there is a duplicate of packet `psn` of a flow that was requested `requests` times.
    pub(super) fn has(&self, (flow, requests): (Flow, u32), psn: Psn) -> bool {
        let is_it = |entry: &Entry<H>| entry.flow == flow && entry.psn == psn;
        let lists = self.lists.iter().filter(|list| list.requests == requests || list.requests == WANTED);
        lists.flat_map(|list| self.places(list)).any(|place| is_it(&self.entries[place as usize]))
    }

    /// Cancels the waiting retransmissions of a flow from `psn` on; returns their bytes.
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

    /// Returns the indices of a list's entries, in order.
    fn places(&self, list: &List) -> impl Iterator<Item = u32> + use<'_, H> {
        let some = |place: u32| (place != NONE).then_some(place);
        core::iter::successors(some(list.first), move |&place| some(self.entries[place as usize].next))
    }

    /// Marks the duplicates of a flow that `is_asked` selects as waiting to be sent, unless sent since `recently`;
    /// calls `enqueue` with the ticket and bytes of each that did not wait already, oldest first.
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

    /// Returns the duplicate to send now for a ticket; `requests` returns how often a flow was requested. The duplicate
    /// stays in the pool, as it may be lost again (C17).
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

    /// Moves the duplicates of a flow to the list of `requests` requests, after another request.
    pub(super) fn promote(&mut self, flow: Flow, requests: u32) {
        let Some(from) = self.lists.iter().position(|list| list.requests == requests - 1) else { return };
        // Lists of more requests follow later.
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

    /// Returns the list of flows that were requested `requests` times, creating it if needed.
    #[inline]
    fn list(&mut self, requests: u32) -> usize {
        // Most flows were never requested, and their list always exists.
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
    fn evict(&mut self, now: Instant, freed: &mut impl FnMut(H)) -> u64 {
        match self.lists.iter().position(|list| list.first != NONE) {
            Some(list) => self.drop_first(now, list, freed),
            None => 0,
        }
    }

    #[inline]
    fn drop_first(&mut self, now: Instant, list: usize, freed: &mut impl FnMut(H)) -> u64 {
        let place = self.lists[list].first;
        self.unlink(list, place);
        self.tidy(list);
        let entry = &mut self.entries[place as usize];
        let (bytes, wanted) = (entry.bytes, entry.wanted);
        freed(entry.handle);
        (entry.number, entry.next) = (NOBODY, self.free);
        self.free = place;
        self.occupancy.remove(now, bytes);
        if wanted { u64::from(bytes) } else { 0 }
    }

    /// Returns the list of duplicates that wait to be retransmitted: the last list.
    fn wanted(&self) -> usize {
        self.lists.len() - 1
    }

    /// Removes an empty list, except that of flows never requested and that of waiting duplicates.
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

    /// Inserts an entry after all older ones.
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
    /// Returns the contents in the order of eviction.
    pub(super) fn contents(&self) -> Vec<(Flow, u32)> {
        let mut all = Vec::new();
        for place in self.lists.iter().flat_map(|list| self.places(list)) {
            let entry = &self.entries[place as usize];
            all.push((entry.flow, entry.psn.get()));
        }
        all
    }
}
