//! A bounded table of per-flow state, found by hash; state of long-silent flows is reused for others.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

use selvedge_units::{Duration, Instant};

use super::Flow;
use crate::table::Table;

/// State `S` of up to `most` flows.
#[derive(Debug)]
pub(super) struct Flows<S> {
    places: Table<Flow>,
    entries: Vec<Entry<S>>,
    most: usize,
    idle: Duration,
    /// Position at which the next search for a silent flow starts.
    hand: usize,
}

#[derive(Debug)]
struct Entry<S> {
    flow: Flow,
    seen: Instant,
    state: S,
}

/// State that may be needed even while its flow is silent.
pub(super) trait Lasting {
    /// Returns whether the state is needed.
    fn is_needed(&self) -> bool;
}

/// Entries examined for a silent flow before a new flow is refused.
const LOOKS: usize = 8;

impl<S: Lasting> Flows<S> {
    pub(super) fn new(most: usize, idle: Duration) -> Self {
        Self { places: Table::new(), entries: Vec::new(), most, idle, hand: 0 }
    }

    /// Returns the index of a flow's state, if there is one.
    #[inline]
    pub(super) fn find(&self, flow: Flow) -> Option<usize> {
        self.places.get(flow).map(|place| place as usize)
    }

    /// Returns the index of the state of a flow that received a packet, created by `begin` if new. `None` if the table
    /// is full.
    #[inline]
    pub(super) fn meet(&mut self, now: Instant, flow: Flow, begin: impl FnOnce() -> S) -> Option<usize> {
        let place = match self.places.get(flow) {
            Some(place) => place as usize,
            None => self.add(now, flow, begin())?,
        };
        self.entries[place].seen = now;
        Some(place)
    }

    #[cold]
    fn add(&mut self, now: Instant, flow: Flow, state: S) -> Option<usize> {
        let entry = Entry { flow, seen: now, state };
        let place = if self.entries.len() < self.most {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let place = self.silent(now)?;
            self.places.remove(self.entries[place].flow);
            self.entries[place] = entry;
            place
        };
        self.places.insert(flow, place as u32);
        Some(place)
    }

    /// Returns the index of an entry whose flow has been silent for long, if one is found.
    fn silent(&mut self, now: Instant) -> Option<usize> {
        for _ in 0..LOOKS {
            let place = self.hand;
            self.hand = (self.hand + 1) % self.entries.len();
            let entry = &self.entries[place];
            if now.since(entry.seen) > self.idle && !entry.state.is_needed() {
                return Some(place);
            }
        }
        None
    }

    pub(super) fn flow(&self, place: usize) -> Flow {
        self.entries[place].flow
    }

    /// Returns the time since the last packet of a flow.
    pub(super) fn silence(&self, place: usize, now: Instant) -> Duration {
        now.since(self.entries[place].seen)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl<S> Index<usize> for Flows<S> {
    type Output = S;
    #[inline]
    fn index(&self, place: usize) -> &S {
        &self.entries[place].state
    }
}

impl<S> IndexMut<usize> for Flows<S> {
    #[inline]
    fn index_mut(&mut self, place: usize) -> &mut S {
        &mut self.entries[place].state
    }
}
