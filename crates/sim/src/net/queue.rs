//! Packets that wait for an output.
//!
//! Design notes.
//! 1. *Store.* All that waits in the switches of a partition lies in one store. What was freed last is filled next,
//!    whoever frees and fills it, so that putting a packet in touches only what is in the cache.
//! 2. *Queues* are linked through the descriptors themselves: a queue is a head and a tail. An
//!    input-queued switch has one per (output, class, input): virtual output queues. A shared-buffer
//!    switch has one per (output, class).
//! 3. *Lines*: the queues of one (output, class) that hold something stand in a ring, by their numbers in the
//!    partition.
//!    Serving takes
//!    one packet from the first queue and sends that queue to the back: round-robin over inputs (IRN
//!    section 4.1) at constant cost, whatever the number of ports.

use super::descriptor::Descriptor;
use crate::kernel::prefetch;
use crate::kernel::table::Table;

/// No place in a store; no queue.
pub(super) const NONE: u32 = u32::MAX;
/// How many places of a store are made at a time.
const MORE: u32 = 64;

/// All that waits in the switches of a partition.
pub(crate) struct Store {
    places: Table<Descriptor>,
    /// The first place that is free; its `at` says which is next.
    free: u32,
}

impl Store {
    pub(crate) const fn new() -> Self {
        Self { places: Table::new(), free: NONE }
    }

    #[inline(always)]
    pub(super) fn put(&mut self, descriptor: &Descriptor, flags: u8) -> u32 {
        let mut place = self.free;
        if place == NONE {
            place = self.grow();
        }
        let entry = &mut self.places[place];
        self.free = entry.at;
        *entry = *descriptor;
        (entry.at, entry.flags) = (NONE, flags);
        self.prefetch();
        place
    }

    /// Fetches what [`Store::put`] will need.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        prefetch(&self.places, self.free);
    }

    /// Lets `next` come after what lies at `place`.
    pub(super) fn link(&mut self, place: u32, next: u32) {
        self.places[place].at = next;
    }

    /// What lies at `place`.
    #[inline(always)]
    pub(super) fn at(&self, place: u32) -> &Descriptor {
        &self.places[place]
    }

    /// Bytes of the frame at `place`.
    pub(super) fn frame(&self, place: u32) -> u64 {
        u64::from(self.places[place].frame)
    }

    /// Makes free places; returns the first of them.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        let first = self.places.len() as u32;
        let next = (first + 1..first + MORE).chain([NONE]);
        self.places.extend(next.map(|at| Descriptor { at, ..Descriptor::EMPTY }));
        first
    }

    /// Takes a descriptor out; its `at` says what came after it.
    #[inline(always)]
    pub(super) fn take(&mut self, place: u32) -> Descriptor {
        let descriptor = self.places[place];
        self.release(place);
        descriptor
    }

    /// Frees a place; what lies there does so until the next one is put in, but for its `at`.
    #[inline(always)]
    pub(super) fn release(&mut self, place: u32) {
        self.places[place].at = self.free;
        self.free = place;
    }
}

/// Packets of one class from one input (or from all) to one output.
#[derive(Clone, Copy)]
pub(crate) struct Queue {
    head: u32,
    tail: u32,
    /// The queue behind it in its line's ring: behind the last one comes the first.
    next: u32,
}

/// The next packet of a line: its queue, and where it lies in the store.
#[derive(Clone, Copy)]
pub(super) struct Next {
    queue: u32,
    pub(super) place: u32,
}

/// The queues of one class that wait for one output.
#[derive(Clone, Copy)]
pub(crate) struct Line {
    first: u32,
    last: u32,
    /// Bytes that wait.
    pub(crate) bytes: u64,
    /// The most that ever waited.
    pub(crate) peak: u64,
    /// The most that may wait, where outputs say so and not inputs.
    pub(crate) room: u64,
}

impl Queue {
    pub(crate) const EMPTY: Self = Self { head: NONE, tail: NONE, next: NONE };

    /// Where the first packet lies in the store, or none.
    #[inline(always)]
    pub(super) fn head(&self) -> u32 {
        self.head
    }

    /// The packets in it, first to last.
    pub(crate) fn packets<'a>(&self, store: &'a Store) -> impl Iterator<Item = &'a Descriptor> + use<'a> {
        let some = |place: u32| (place != NONE).then(|| &store.places[place]);
        std::iter::successors(some(self.head), move |descriptor| some(descriptor.at))
    }
}

impl Line {
    /// One that is empty, and has room for so many bytes.
    pub(crate) const fn with_room(room: u64) -> Self {
        Self { first: NONE, last: NONE, bytes: 0, peak: 0, room }
    }

    /// Whether so many more bytes may wait here.
    #[inline(always)]
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        self.bytes + bytes <= self.room
    }

    /// Whether it has room for a packet that will wait alone; if so, counts it as one that did.
    #[inline(always)]
    pub(crate) fn holds_for_a_while(&mut self, packet: &Descriptor) -> bool {
        let bytes = u64::from(packet.frame);
        debug_assert!(self.is_empty(), "it waits alone");
        if bytes > self.room {
            return false;
        }
        if bytes > self.peak {
            self.peak = bytes;
        }
        true
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Puts a packet at the end of `queue`.
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        queues: &mut Table<Queue>,
        queue: u32,
        store: &mut Store,
        packet: &Descriptor,
        flags: u8,
    ) {
        self.add(u64::from(packet.frame));
        let place = store.put(packet, flags);
        let entry = &mut queues[queue];
        if entry.head == NONE {
            (entry.head, entry.tail) = (place, place);
            self.append(queues, queue);
        } else {
            store.places[entry.tail].at = place;
            entry.tail = place;
        }
    }

    /// Takes the next packet in round-robin order. The line must not be empty.
    #[inline(always)]
    pub(crate) fn pop(&mut self, queues: &mut Table<Queue>, store: &mut Store) -> Descriptor {
        let next = self.next(queues);
        let packet = *store.at(next.place);
        self.remove_next(next, queues, store);
        packet
    }

    /// Which packet is next in round-robin order. The line must not be empty.
    #[inline(always)]
    pub(super) fn next(&self, queues: &Table<Queue>) -> Next {
        Next { queue: self.first, place: queues[self.first].head }
    }

    /// Removes the packet that is [next](Self::next). Whoever needs it should have read it: what is written to its
    /// place here is narrower than what is read of it, and processors wait until such a write has gone to the cache,
    /// with all others before it.
    #[inline(always)]
    pub(super) fn remove_next(&mut self, Next { queue, place }: Next, queues: &mut Table<Queue>, store: &mut Store) {
        let entry = &mut queues[queue];
        // Asked of the queue, not of the packet: that is farther away.
        let emptied = entry.tail == place;
        let next = store.places[place].at;
        // Its turn comes after all others.
        prefetch(&store.places, next);
        self.bytes -= store.frame(place);
        entry.head = next;
        let behind = entry.next;
        if !emptied {
            (self.first, self.last) = (behind, queue);
        } else if self.last != queue {
            self.first = behind;
            queues[self.last].next = behind;
        } else {
            (self.first, self.last) = (NONE, NONE);
        }
        store.release(place);
    }

    /// Lets `queue`, its only one, begin with what lies at `head` of the store, or hold nothing. What was before that
    /// is counted no longer.
    #[inline]
    pub(super) fn begin_with(&mut self, queues: &mut Table<Queue>, queue: u32, head: u32) {
        if head == NONE {
            queues[queue] = Queue::EMPTY;
            (self.first, self.last) = (NONE, NONE);
        } else {
            queues[queue].head = head;
        }
    }

    /// Puts what lies at `place` of the store, and has been counted, at the end of `queue`, its only one.
    #[inline]
    pub(super) fn append_to(&mut self, queues: &mut Table<Queue>, queue: u32, store: &mut Store, place: u32) {
        store.link(place, NONE);
        let entry = &mut queues[queue];
        if entry.head == NONE {
            *entry = Queue { head: place, tail: place, next: queue };
            (self.first, self.last) = (queue, queue);
        } else {
            store.link(entry.tail, place);
            entry.tail = place;
        }
    }

    /// Counts bytes that wait here, or elsewhere for the same output.
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: u64) {
        let sum = self.bytes + bytes;
        self.bytes = sum;
        if sum > self.peak {
            self.peak = sum;
        }
    }

    /// Counts them no longer.
    pub(crate) fn remove(&mut self, bytes: u64) {
        self.bytes -= bytes;
    }

    /// Takes the packet that came last out again. The line must not be empty, and have one queue.
    pub(crate) fn pop_last(&mut self, queues: &mut Table<Queue>, store: &mut Store) -> Descriptor {
        debug_assert_eq!(self.first, self.last, "one queue");
        let entry = &mut queues[self.first];
        let (mut before, mut place) = (NONE, entry.head);
        while store.places[place].at != NONE {
            (before, place) = (place, store.places[place].at);
        }
        entry.tail = before;
        if before == NONE {
            entry.head = NONE;
            (self.first, self.last) = (NONE, NONE);
        } else {
            store.places[before].at = NONE;
        }
        let packet = store.take(place);
        self.bytes -= u64::from(packet.frame);
        packet
    }

    /// Fetches the queues at both ends of the ring: most lines have no others.
    #[inline]
    pub(crate) fn prefetch_queues(&self, queues: &Table<Queue>) {
        prefetch(queues, self.first);
        prefetch(queues, self.last);
    }

    /// Fetches the packets that are served next, one of each queue.
    #[inline]
    pub(crate) fn prefetch_packets(&self, queues: &Table<Queue>, store: &Store) {
        let mut queue = self.first;
        if queue == NONE {
            return;
        }
        loop {
            let entry = &queues[queue];
            prefetch(&store.places, entry.head);
            if queue == self.last {
                break;
            }
            queue = entry.next;
        }
    }

    #[inline(always)]
    fn append(&mut self, queues: &mut Table<Queue>, queue: u32) {
        if self.first == NONE {
            self.first = queue;
        } else {
            queues[self.last].next = queue;
        }
        queues[queue].next = self.first;
        self.last = queue;
    }
}
