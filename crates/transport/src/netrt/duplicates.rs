//! The duplicate pool of one port (section III-C1).
//!
//! When it is full, the oldest duplicate of the flow with the fewest requests goes: least frequently used,
//! over flows. Of flows with equally many requests, the oldest of all their duplicates goes. So duplicates
//! stand in one list for each number of requests, oldest first; adding and evicting take constant time, and a
//! flow's duplicates are moved when somebody asks for them, which is rare.

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

/// A duplicate that waits to be sent again, unless it has been evicted meanwhile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    place: u32,
    number: u64,
}

impl<H: Copy> Duplicates<H> {
    pub(super) fn new() -> Self {
        let lists = alloc::vec![List { requests: 0, first: NONE, last: NONE }];
        Self { entries: Vec::new(), free: NONE, lists, added: 0, occupancy: Occupancy::default() }
    }

    /// Adds a duplicate of a flow that was asked for so often, if `most` bytes hold it. When they are full, what
    /// is older than `oldest` goes first. Returns bytes that no longer wait to be sent because they had to go.
    #[inline]
    pub(super) fn add(
        &mut self,
        now: Instant,
        (flow, requests): (Flow, u32),
        psn: Psn,
        packet: &Passing<H>,
        (most, oldest): (u64, Instant),
    ) -> u64 {
        let Some(most) = most.checked_sub(u64::from(packet.bytes)) else { return self.shrink(now, 0) };
        let mut lost = 0;
        if self.occupancy.bytes() > most {
            lost = self.expire(now, oldest) + self.shrink(now, most);
        }
        self.added += 1;
        let (handle, bytes) = (packet.handle, packet.bytes);
        let entry =
            Entry { flow, psn, handle, bytes, at: now, number: self.added, wanted: false, previous: NONE, next: NONE };
        let place = self.place(entry);
        let list = self.list(requests);
        self.append(list, place);
        self.occupancy.add(now, bytes);
        lost
    }

    /// Evicts what has been there since before `oldest`. A duplicate is of use for about a round trip (section
    /// III-C1); without this, those of flows that were asked for once and have ended would fill the pool.
    #[inline]
    fn expire(&mut self, now: Instant, oldest: Instant) -> u64 {
        let mut lost = 0;
        let mut list = 0;
        while let Some(&List { first, .. }) = self.lists.get(list) {
            if first != NONE && self.entries[first as usize].at < oldest {
                let lists = self.lists.len();
                lost += self.drop_first(now, list);
                list -= usize::from(self.lists.len() < lists && list > 0);
            } else {
                list += 1;
            }
        }
        lost
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

    /// Marks what `is_asked` of a flow as waiting to be sent; calls `enqueue` with each, oldest first, and its
    /// bytes.
    pub(super) fn want(
        &mut self,
        (flow, requests): (Flow, u32),
        mut is_asked: impl FnMut(Psn) -> bool,
        mut enqueue: impl FnMut(Ticket, u32),
    ) {
        let Some(list) = self.lists.iter().find(|list| list.requests == requests) else { return };
        let mut place = list.first;
        while place != NONE {
            let entry = &mut self.entries[place as usize];
            if entry.flow == flow && is_asked(entry.psn) && !entry.wanted {
                entry.wanted = true;
                enqueue(Ticket { place, number: entry.number }, entry.bytes);
            }
            place = entry.next;
        }
    }

    /// What is to be sent for a ticket; it stays in the pool, for it may be lost again (C17).
    pub(super) fn redeem(&mut self, ticket: Ticket) -> Option<(Flow, H, u32)> {
        let entry = &mut self.entries[ticket.place as usize];
        (entry.number == ticket.number).then(|| {
            entry.wanted = false;
            (entry.flow, entry.handle, entry.bytes)
        })
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
        match self.lists.iter().position(|list| list.requests >= requests) {
            Some(at) if self.lists[at].requests == requests => at,
            at => {
                let at = at.unwrap_or(self.lists.len());
                self.lists.insert(at, List { requests, first: NONE, last: NONE });
                at
            }
        }
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

    /// Forgets a list of nobody, but that of flows never asked for.
    fn tidy(&mut self, list: usize) {
        if self.lists[list].first == NONE && self.lists[list].requests > 0 {
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
        for list in &self.lists {
            let mut place = list.first;
            while place != NONE {
                let entry = &self.entries[place as usize];
                all.push((entry.flow, entry.psn.get()));
                place = entry.next;
            }
        }
        all
    }
}
