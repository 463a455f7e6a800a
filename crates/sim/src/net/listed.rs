//! What waits for an output with short queues, those of switches that trim, while it has its visit.
//!
//! Most of what comes there leaves in the same visit. So it takes no place in the store: while the visit lasts, packets
//! that have come and wait are only listed, behind those that waited before, and the ones that are left are put into
//! the queues in the end. However long those are, a visit takes no longer for it.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::calm::Visit;
use super::descriptor::Descriptor;
use super::output::{Buffer, Waiting};
use super::port::{Egress, of_bits};
use super::queue::NONE;
use super::trimming::{Trimmer, Turns};
use crate::kernel::order::Key;

/// A packet that waits: its place in the mail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry(u32);

/// What has come and waits, listed by class, first to last, behind what waited before. Each list begins where it ended
/// when it is empty: there is room for all that are ever added.
pub(super) struct Lists<'a> {
    /// The next of those that waited before, in the store.
    stored: [u32; 8],
    begins: [*mut Entry; 8],
    ends: [*mut Entry; 8],
    memory: PhantomData<&'a mut [Entry]>,
}

impl<'a> Lists<'a> {
    /// Empty ones for so many classes, in `memory`, with room for so many packets each.
    #[inline(always)]
    pub(super) fn of(memory: &'a mut Vec<Entry>, classes: u32, room: usize) -> Self {
        memory.reserve(room * classes as usize);
        let mut begins = [memory.as_mut_ptr(); 8];
        for class in 1..(classes as usize).min(8) {
            // SAFETY: there is room for all.
            begins[class] = unsafe { begins[class - 1].add(room) };
        }
        Self { stored: [NONE; 8], begins, ends: begins, memory: PhantomData }
    }

    /// Whether nothing has come that waits.
    #[inline(always)]
    fn is_empty(&self, class: u8) -> bool {
        self.begins[usize::from(class & 7)] == self.ends[usize::from(class & 7)]
    }

    /// The next of those that waited before, in the store, or none.
    #[inline(always)]
    fn stored(&mut self, class: u8) -> &mut u32 {
        &mut self.stored[usize::from(class & 7)]
    }

    #[inline(always)]
    fn push(&mut self, class: u8, entry: Entry) {
        let end = &mut self.ends[usize::from(class & 7)];
        // SAFETY: there is room for as many as are added.
        unsafe {
            end.write(entry);
            *end = end.add(1);
        }
    }

    /// Takes out the first of a list, which must not be empty.
    #[inline(always)]
    fn pop(&mut self, class: u8) -> Entry {
        debug_assert!(!self.is_empty(class), "something waits");
        let begin = &mut self.begins[usize::from(class & 7)];
        // SAFETY: it has been written.
        unsafe {
            let entry = begin.read();
            *begin = begin.add(1);
            entry
        }
    }
}

/// The classes whose bits are set.
fn classes_of(bits: u8) -> impl Iterator<Item = u32> {
    of_bits(bits).map(|class| class as u32)
}

/// Packets that wait for an output whose lines have one queue each, listed while it has its visit.
pub(super) struct Listed<'a> {
    pub(super) buffer: Buffer<'a>,
    pub(super) lists: Lists<'a>,
    pub(super) turns: Turns,
    pub(super) trimmer: &'a mut Trimmer,
}

impl Listed<'_> {
    /// Notes what waits in the queues of these classes.
    #[inline(always)]
    pub(super) fn take_out(&mut self, classes: u8) {
        for class in classes_of(classes) {
            *self.lists.stored(class as u8) = self.buffer.queues[self.buffer.first_queue + class].head();
        }
    }

    /// Notes in the queues of the classes in `before`, which were taken out, what has left, and puts what is still
    /// listed, of those in `classes`, behind the others.
    #[inline(always)]
    pub(super) fn put_back(&mut self, before: u8, classes: u8, visit: &Visit<'_>) {
        let Self { buffer, lists, .. } = self;
        for class in classes_of(before) {
            let queue = buffer.first_queue + class;
            buffer.lines[class].begin_with(buffer.queues, queue, *lists.stored(class as u8));
        }
        for class in classes_of(classes) {
            while !lists.is_empty(class as u8) {
                let packet = visit.at(lists.pop(class as u8).0);
                buffer.inputs[packet.port.into()].buffered += u64::from(packet.frame);
                let place = buffer.store.put(packet, packet.flags);
                buffer.lines[class].append_to(buffer.queues, buffer.first_queue + class, buffer.store, place);
            }
        }
    }
}

impl Waiting for Listed<'_> {
    #[inline(always)]
    fn first(ready: u8) -> u8 {
        ready.ilog2() as u8
    }

    #[inline(always)]
    fn takes(&self, packet: &Descriptor) -> bool {
        packet.is_plain() && self.buffer.lines[packet.class.into()].has_room_for(packet.frame.into())
    }

    #[inline(always)]
    fn put(&mut self, port: &mut Egress, key: Key, packet: &Descriptor) {
        self.buffer.lines[packet.class.into()].add(packet.frame.into());
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
            buffer.inputs[packet.port.into()].buffered -= u64::from(packet.frame);
            packet
        };
        if *lists.stored(class) == NONE && lists.is_empty(class) {
            port.waiting &= !(1 << class);
        }
        buffer.lines[class.into()].remove(packet.frame.into());
        trimmer.keep_turn(port, class, *turns);
        packet
    }
}
