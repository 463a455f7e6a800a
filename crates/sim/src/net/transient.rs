//! Packets that wait, during a visit, for an output with short queues: those of switches that trim.
//!
//! Most arrivals at such an output leave in the same visit, so they take no place in the store. During the visit,
//! waiting packets are only listed, behind those that waited before it; the packets that are left at its end are added
//! to the queues. The time of a visit does not depend on the length of the queues. Without it, a permutation over EQDS
//! on a fat-tree of 128 hosts takes 45 % more instructions.

use std::mem::MaybeUninit;

use selvedge_switch::descriptor::Descriptor;
use selvedge_switch::port::{Egress, of_bits};
use selvedge_switch::queue::NONE;
use selvedge_switch::trimming::{Trimmer, Turns};

use super::independent::Visit;
use super::output::{Buffer, Waiting};
use crate::net::order::Key;

/// Packet that waits: its place in the inbox.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry(u32);

/// Arrivals that wait, listed by class, first to last, behind the packets that waited before. An empty list begins
/// where the removed entries ended, so that its part of the memory suffices for all entries that are ever added.
pub(super) struct Lists<'a> {
    /// Place in the store of the next packet that waited before the visit, by class.
    stored: [u32; 8],
    begins: [u32; 8],
    ends: [u32; 8],
    memory: &'a mut [Entry],
}

impl<'a> Lists<'a> {
    /// Returns empty lists for `classes` classes in `memory`, with space for `room` packets each.
    #[inline(always)]
    pub(super) fn of(memory: &'a mut Vec<Entry>, classes: u32, room: usize) -> Self {
        let wanted = room * classes as usize;
        if memory.len() < wanted {
            memory.resize(wanted, Entry(0));
        }
        let begins = std::array::from_fn(|class| class as u32 * room as u32);
        Self { stored: [NONE; 8], begins, ends: begins, memory }
    }

    /// Returns whether no arrival waits.
    #[inline(always)]
    fn is_empty(&self, class: u8) -> bool {
        self.begins[usize::from(class & 7)] == self.ends[usize::from(class & 7)]
    }

    /// Returns the place in the store of the next packet that waited before the visit, or [`NONE`].
    #[inline(always)]
    fn stored(&mut self, class: u8) -> &mut u32 {
        &mut self.stored[usize::from(class & 7)]
    }

    #[inline(always)]
    fn push(&mut self, class: u8, entry: Entry) {
        let end = &mut self.ends[usize::from(class & 7)];
        self.memory[*end as usize] = entry;
        *end += 1;
    }

    /// Removes the first entry of a list, which must not be empty, and returns it.
    #[inline(always)]
    fn pop(&mut self, class: u8) -> Entry {
        debug_assert!(!self.is_empty(class), "something waits");
        let begin = &mut self.begins[usize::from(class & 7)];
        let entry = self.memory[*begin as usize];
        *begin += 1;
        entry
    }
}

/// Returns the classes whose bits are set.
fn classes_of(bits: u8) -> impl Iterator<Item = u8> {
    of_bits(bits).map(|class| class as u8)
}

/// Packets that wait, during a visit, for an output whose lines have one queue each.
pub(super) struct TransientQueue<'a> {
    pub(super) buffer: Buffer<'a>,
    pub(super) lists: Lists<'a>,
    pub(super) turns: Turns,
    pub(super) trimmer: &'a mut Trimmer,
}

impl TransientQueue<'_> {
    /// Notes the first packets in the queues of these classes.
    #[inline(always)]
    pub(super) fn take_out(&mut self, classes: u8) {
        for class in classes_of(classes) {
            *self.lists.stored(class) = self.buffer.queues[self.buffer.first_queue + u32::from(class)].head();
        }
    }

    /// Removes the packets that have left from the queues of the classes in `before`, which were noted, and adds the
    /// listed packets of the classes in `classes` behind the others.
    #[inline(always)]
    pub(super) fn put_back(&mut self, before: u8, classes: u8, visit: &Visit<'_>) {
        let Self { buffer, lists, .. } = self;
        for class in classes_of(before) {
            let queue = buffer.first_queue + u32::from(class);
            buffer.lines[usize::from(class)].begin_with(buffer.queues, queue, *lists.stored(class));
        }
        for class in classes_of(classes) {
            while !lists.is_empty(class) {
                let packet = visit.at(lists.pop(class).0);
                buffer.inputs[usize::from(packet.port)].buffered += u64::from(packet.frame);
                let place = buffer.store.put(packet, packet.flags);
                let queue = buffer.first_queue + u32::from(class);
                buffer.lines[usize::from(class)].append_to(buffer.queues, queue, buffer.store, place);
            }
        }
    }
}

impl Waiting for TransientQueue<'_> {
    #[inline(always)]
    fn first(ready: u8) -> u8 {
        ready.ilog2() as u8
    }

    #[inline(always)]
    fn takes(&self, packet: &Descriptor) -> bool {
        packet.is_plain() && self.buffer.lines[usize::from(packet.class)].has_room_for(packet.frame.into())
    }

    #[inline(always)]
    fn put(&mut self, port: &mut Egress, key: Key, packet: &Descriptor) {
        self.buffer.lines[usize::from(packet.class)].add(packet.frame.into());
        self.lists.push(packet.class, Entry(key.place() as u32));
        port.waiting |= 1 << packet.class;
    }

    #[inline(always)]
    fn pop<'p>(
        &mut self,
        visit: &Visit<'p>,
        port: &mut Egress,
        class: u8,
        place: &'p mut MaybeUninit<Descriptor>,
    ) -> &'p Descriptor {
        let Self { buffer, lists, turns, trimmer } = self;
        let stored = lists.stored(class);
        let packet = if *stored == NONE {
            visit.at(lists.pop(class).0)
        } else {
            let packet = place.write(buffer.store.take(*stored));
            *stored = packet.at;
            buffer.inputs[usize::from(packet.port)].buffered -= u64::from(packet.frame);
            packet
        };
        if *lists.stored(class) == NONE && lists.is_empty(class) {
            port.waiting &= !(1 << class);
        }
        buffer.lines[usize::from(class)].remove(packet.frame.into());
        trimmer.keep_turn(port, class, *turns);
        packet
    }
}
