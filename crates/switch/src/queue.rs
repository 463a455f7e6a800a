//! Packets that wait for an output.
//!
//! Design notes.
//! 1. *Store.* All packets that wait in the switches of a partition lie in one store. The place that was freed last is
//!    filled next, whichever queue frees and fills it, so that adding a packet touches only memory in the cache. Once
//!    the store is larger than the cache, successive packets of a train ([`TRAIN_STEP`]) in a queue share one place,
//!    with the descriptor of the first: with a permutation in a fabric of 8,192 hosts, this takes a fifth of the
//!    memory.
//! 2. *Queues* are linked through the descriptors themselves: a queue is a head and a tail. An input-queued switch has
//!    one per (output, class, input): virtual output queues. A shared-buffer switch has one per (output, class).
//! 3. *Lines*: the queues of one (output, class) that hold packets form a ring, by their numbers in the partition.
//!    Serving takes one packet from the first queue and makes the next queue the first: round-robin over inputs (IRN
//!    section 4.1) at constant cost, whatever the number of ports.

use std::mem;

use selvedge_memory::{CACHE, Table};
use selvedge_prefetch::prefetch;

use crate::descriptor::{Descriptor, NO_SLOT, Slot, TRAIN_STEP};

/// Marker of no place in a store, and of no queue.
pub const NONE: u32 = u32::MAX;
/// Number of places that are added to a store at a time.
const MORE: u32 = 64;

/// Packets that wait in the switches of a partition.
pub struct Store {
    places: Table<Descriptor>,
    /// First free place; its `at` is the next free one.
    free: u32,
    /// Whether successive packets of a train share a place here, too. Where all places lie in the cache, finding out
    /// which may costs more than it saves.
    packs: bool,
}

impl Default for Store {
    fn default() -> Self {
        Self::new()
    }
}

impl Store {
    /// Creates an empty store.
    pub const fn new() -> Self {
        Self { places: Table::new(), free: NONE, packs: false }
    }

    /// Adds a packet, which will wait with these `flags`; returns its place.
    #[inline(always)]
    pub fn put(&mut self, descriptor: &Descriptor, flags: u8) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let place = self.free;
        let entry = &mut self.places[place];
        self.free = entry.at;
        *entry = *descriptor;
        (entry.at, entry.flags, entry.more) = (NONE, flags, 0);
        self.prefetch();
        place
    }

    /// Prefetches the place that [`Store::put`] will fill.
    #[inline(always)]
    pub fn prefetch(&self) {
        prefetch(&self.places, self.free);
    }

    /// Links `next` behind the descriptor at `place`.
    pub fn link(&mut self, place: u32, next: u32) {
        self.places[place].at = next;
    }

    /// Returns the descriptor at `place`.
    #[inline(always)]
    pub fn at(&self, place: u32) -> &Descriptor {
        &self.places[place]
    }

    /// Shows the descriptor at `place` and all that follow it.
    #[inline]
    pub fn for_each_from(&self, mut place: u32, see: &mut impl FnMut(&Descriptor)) {
        while place != NONE {
            let entry = &self.places[place];
            see(entry);
            place = entry.at;
        }
    }

    /// Returns the bytes of the frame at `place`.
    pub fn frame(&self, place: u32) -> u64 {
        u64::from(self.places[place].frame)
    }

    /// Adds free places.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let first = self.places.len() as u32;
        let next = (first + 1..first + MORE).chain([NONE]);
        self.places.extend(next.map(|at| Descriptor { at, ..Descriptor::EMPTY }));
        self.packs |= self.places.len() * size_of::<Descriptor>() > CACHE;
        self.free = first;
    }

    /// Removes a descriptor and returns it; its `at` is the place that followed.
    #[inline(always)]
    pub fn take(&mut self, place: u32) -> Descriptor {
        let descriptor = self.places[place];
        self.release(place);
        descriptor
    }

    /// Frees a place. The descriptor there remains valid, except for its `at`, until the next one is added.
    #[inline(always)]
    pub fn release(&mut self, place: u32) {
        self.places[place].at = self.free;
        self.free = place;
    }
}

/// Packets of one class from one input (or from all) to one output.
#[derive(Clone, Copy)]
pub struct Queue {
    head: u32,
    tail: u32,
    /// Next queue in the ring of the line; the last queue is followed by the first.
    next: u32,
    /// Handle of the packet that would follow the last one in its train, if it is of a train and the store
    /// [packs](Store::packs).
    follower: Slot,
}

/// Next packet of a line: its queue, and its place in the store.
#[derive(Clone, Copy)]
pub struct Next {
    queue: u32,
    /// Place in the store.
    pub place: u32,
}

/// Queues of one class that wait for one output.
#[derive(Clone, Copy)]
pub struct Line {
    first: u32,
    last: u32,
    /// Bytes that wait.
    pub bytes: u64,
    /// Largest number of bytes that ever waited.
    pub peak: u64,
    /// Largest number of bytes that may wait, where outputs set a limit and not inputs.
    pub room: u64,
}

impl Queue {
    /// Empty queue.
    pub const EMPTY: Self = Self { head: NONE, tail: NONE, next: NONE, follower: NO_SLOT };

    /// Returns the place of the first packet in the store, or [`NONE`].
    #[inline(always)]
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Returns the packets in the queue, first to last; for packets that share a place, the first of them.
    pub fn packets<'a>(&self, store: &'a Store) -> impl Iterator<Item = &'a Descriptor> + use<'a> {
        let some = |place: u32| (place != NONE).then(|| &store.places[place]);
        let places = std::iter::successors(some(self.head), move |descriptor| some(descriptor.at));
        places.flat_map(|first| std::iter::repeat_n(first, 1 + first.more as usize))
    }
}

impl Line {
    /// Returns an empty line with space for `room` bytes.
    pub const fn with_room(room: u64) -> Self {
        Self { first: NONE, last: NONE, bytes: 0, peak: 0, room }
    }

    /// Returns whether `bytes` more bytes may wait here.
    #[inline(always)]
    pub fn has_room_for(&self, bytes: u64) -> bool {
        self.bytes + bytes <= self.room
    }

    /// Returns whether the empty line has space for a packet that will wait alone; if so, counts the packet as one that
    /// waited.
    #[inline(always)]
    pub fn holds_for_a_while(&mut self, packet: &Descriptor) -> bool {
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

    /// Shows all packets that wait, place by place; for packets that share one, the first of them.
    #[inline]
    pub fn for_each_place(&self, queues: &Table<Queue>, store: &Store, mut see: impl FnMut(&Descriptor)) {
        let mut queue = self.first;
        while queue != NONE {
            let entry = &queues[queue];
            store.for_each_from(entry.head, &mut see);
            queue = if queue == self.last { NONE } else { entry.next };
        }
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Adds a packet at the end of `queue`.
    #[inline(always)]
    pub fn push(&mut self, queues: &mut Table<Queue>, queue: u32, store: &mut Store, packet: &Descriptor, flags: u8) {
        self.add(u64::from(packet.frame));
        let entry = &mut queues[queue];
        let is_empty = entry.head == NONE;
        if store.packs {
            let follower = mem::replace(&mut entry.follower, packet.slot.wrapping_add(TRAIN_STEP));
            if !is_empty && packet.slot == follower {
                let last = &mut store.places[entry.tail];
                // Where all inputs share a queue, the packet may have come through another one.
                if last.port == packet.port {
                    debug_assert_eq!(flags, last.flags, "nobody marks what shares a place");
                    last.more += 1;
                    return;
                }
            }
        }
        let place = store.put(packet, flags);
        if is_empty {
            (entry.head, entry.tail) = (place, place);
            self.append(queues, queue);
        } else {
            store.places[entry.tail].at = place;
            entry.tail = place;
        }
    }

    /// Removes the next packet in round-robin order and returns it. The line must not be empty.
    #[inline(always)]
    pub fn pop(&mut self, queues: &mut Table<Queue>, store: &mut Store) -> Descriptor {
        let next = self.next(queues);
        let packet = *store.at(next.place);
        self.remove_next(next, queues, store);
        packet
    }

    /// Returns the next packet in round-robin order. The line must not be empty.
    #[inline(always)]
    pub fn next(&self, queues: &Table<Queue>) -> Next {
        Next { queue: self.first, place: queues[self.first].head }
    }

    /// Skips the queue whose turn it is. The line must not be empty.
    pub fn turn(&mut self, queues: &Table<Queue>) {
        (self.first, self.last) = (queues[self.first].next, self.first);
    }

    /// Removes the packet returned by [`Line::next`], which must have been read before.
    #[inline(always)]
    pub fn remove_next(&mut self, Next { queue, place }: Next, queues: &mut Table<Queue>, store: &mut Store) {
        let (entry, packet) = (&mut queues[queue], &mut store.places[place]);
        self.bytes -= u64::from(packet.frame);
        let behind = entry.next;
        if packet.give_way() {
            (self.first, self.last) = (behind, queue);
            return;
        }
        debug_assert!(place == entry.head, "what is next comes first");
        let next = packet.at;
        // The following packet is served after one packet of every other queue.
        prefetch(&store.places, next);
        entry.head = next;
        store.release(place);
        if next != NONE {
            (self.first, self.last) = (behind, queue);
        } else if self.last != queue {
            self.first = behind;
            queues[self.last].next = behind;
        } else {
            (self.first, self.last) = (NONE, NONE);
        }
    }

    /// Makes the packets from place `head` of the store on the contents of `queue`, the line's only one; [`NONE`]
    /// empties it. The packets before these are no longer counted.
    #[inline]
    pub fn begin_with(&mut self, queues: &mut Table<Queue>, queue: u32, head: u32) {
        if head == NONE {
            queues[queue] = Queue::EMPTY;
            (self.first, self.last) = (NONE, NONE);
        } else {
            queues[queue].head = head;
        }
    }

    /// Adds the packet at `place` of the store, which has been counted, at the end of `queue`, the line's only one.
    #[inline]
    pub fn append_to(&mut self, queues: &mut Table<Queue>, queue: u32, store: &mut Store, place: u32) {
        store.link(place, NONE);
        let entry = &mut queues[queue];
        if entry.head == NONE {
            *entry = Queue { head: place, tail: place, next: queue, ..Queue::EMPTY };
            (self.first, self.last) = (queue, queue);
        } else {
            store.link(entry.tail, place);
            entry.tail = place;
        }
    }

    /// Counts bytes that wait here, or elsewhere for the same output.
    #[inline(always)]
    pub fn add(&mut self, bytes: u64) {
        let sum = self.bytes + bytes;
        self.bytes = sum;
        if sum > self.peak {
            self.peak = sum;
        }
    }

    /// Subtracts bytes that were counted by [`Line::add`].
    pub fn remove(&mut self, bytes: u64) {
        self.bytes -= bytes;
    }

    /// Removes the packet that came last and returns it. The line must not be empty, and have one queue.
    pub fn pop_last(&mut self, queues: &mut Table<Queue>, store: &mut Store) -> Descriptor {
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
        debug_assert_eq!(packet.more, 0, "where the last is taken out, packets share no places");
        self.bytes -= u64::from(packet.frame);
        packet
    }

    /// Prefetches the queues at both ends of the ring: most lines have no others.
    #[inline]
    pub fn prefetch_queues(&self, queues: &Table<Queue>) {
        prefetch(queues, self.first);
        prefetch(queues, self.last);
    }

    /// Prefetches the packets that are served next, one of each queue, and, if `with_last` is set, the last packets,
    /// behind which others will be linked.
    #[inline(always)]
    pub fn prefetch_packets(&self, queues: &Table<Queue>, store: &Store, with_last: bool) {
        let mut queue = self.first;
        while queue != NONE {
            let entry = &queues[queue];
            prefetch(&store.places, entry.head);
            if with_last {
                prefetch(&store.places, entry.tail);
            }
            queue = if queue == self.last { NONE } else { entry.next };
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use selvedge_units::{Domain, Rng};

    use super::*;

    /// Model of a line: its queues, each at its place in the ring, with the packets that wait in them.
    #[derive(Default)]
    struct Model {
        ring: VecDeque<(u32, VecDeque<Descriptor>)>,
    }

    impl Model {
        fn push(&mut self, queue: u32, packet: Descriptor) {
            match self.ring.iter_mut().find(|(other, _)| *other == queue) {
                Some((_, packets)) => packets.push_back(packet),
                None => self.ring.push_back((queue, VecDeque::from([packet]))),
            }
        }

        fn pop(&mut self) -> Option<Descriptor> {
            let (queue, mut packets) = self.ring.pop_front()?;
            let packet = packets.pop_front();
            if !packets.is_empty() {
                self.ring.push_back((queue, packets));
            }
            packet
        }

        fn packets(&self) -> impl Iterator<Item = &Descriptor> {
            self.ring.iter().flat_map(|(_, packets)| packets)
        }
    }

    fn what(packet: &Descriptor) -> (Slot, u16, u16, u8) {
        (packet.slot, packet.port, packet.frame, packet.flags)
    }

    /// Checks that queues are served in turn and each of them first in, first out, for packets of trains and others.
    #[test]
    fn packets_leave_in_turn_and_as_they_came() {
        const QUEUES: u32 = 5;
        for packs in [false, true] {
            let mut rng = Rng::stream(1, Domain::Impairment, 0);
            let mut store = Store { packs, ..Store::new() };
            let mut queues = Table::of(QUEUES as usize, || Queue::EMPTY);
            let mut line = Line::with_room(u64::MAX);
            let mut model = Model::default();
            let mut last = [Descriptor::EMPTY; QUEUES as usize];
            let (mut places, mut shared) = (0, 0);
            for round in 0..60_000 {
                // Alternates between phases in which more packets come and phases in which more leave.
                if rng.below(10) < if round % 2_000 < 1_000 { 6 } else { 4 } {
                    let queue = rng.below(QUEUES.into()) as u32;
                    let last = &mut last[queue as usize];
                    if last.slot < 15 * TRAIN_STEP && rng.below(5) > 0 {
                        last.slot += TRAIN_STEP;
                    } else {
                        places += 1;
                        *last = Descriptor { slot: places, frame: 64 + places as u16 % 900, ..Descriptor::EMPTY };
                    }
                    // Some packets have come through another input than the one before them.
                    last.port = u16::from(rng.below(20) == 0);
                    // The number of packets that shared a place before has no meaning in the next queue.
                    last.more = rng.below(3) as u32;
                    line.push(&mut queues, queue, &mut store, last, last.flags);
                    model.push(queue, *last);
                } else if !line.is_empty() {
                    let expected = model.pop().expect("a packet waits");
                    assert_eq!(what(&line.pop(&mut queues, &mut store)), what(&expected));
                }
                assert_eq!(line.bytes, model.packets().map(|packet| u64::from(packet.frame)).sum::<u64>());
                assert_eq!(line.is_empty(), model.ring.is_empty());
                if round % 100 == 0 {
                    let waiting = || (0..QUEUES).flat_map(|queue| queues[queue].packets(&store));
                    assert_eq!(waiting().count(), model.packets().count());
                    shared += waiting().filter(|packet| packet.more > 0).count();
                }
            }
            assert_eq!(shared > 0, store.packs, "packets of a train share a place where they shall");
        }
    }
}
