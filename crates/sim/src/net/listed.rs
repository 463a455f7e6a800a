//! What waits for an output with short queues, those of switches that trim, while it has its visit.
//!
//! Most of what waits there leaves in the same visit. So it takes no place in the store: while the visit lasts, packets
//! that wait are only listed, and those that are left are put where they belong in the end.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::calm::Visit;
use super::descriptor::Descriptor;
use super::output::{Buffer, Waiting};
use super::port::{Egress, of_bits};
use super::trimming::{Trimmer, Turns};
use crate::kernel::order::Key;

/// A packet that waits: its place in the mail, or that in the store with a bit that says so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry(u32);

impl Entry {
    const STORED: u32 = 1 << 31;

    /// Its place in the store, if it is there.
    #[inline(always)]
    fn stored(self) -> Option<u32> {
        (self.0 & Self::STORED != 0).then_some(self.0 & !Self::STORED)
    }
}

/// What waits, listed by class, first to last. Each list begins where it ended when it is empty: there is room for all
/// that are ever added.
pub(super) struct Lists<'a> {
    begins: [*mut Entry; 8],
    ends: [*mut Entry; 8],
    memory: PhantomData<&'a mut [Entry]>,
}

impl<'a> Lists<'a> {
    /// Empty ones for so many classes, in `memory`, with room for what waits in `buffer` of the classes in `waiting`,
    /// and so many more.
    #[inline(always)]
    pub(super) fn of(
        buffer: &Buffer<'_>,
        waiting: u8,
        memory: &'a mut Vec<Entry>,
        (classes, more): (u32, usize),
    ) -> Self {
        let count = |class| buffer.queues[buffer.first_queue + class].packets(buffer.store).count();
        let room = more + classes_of(waiting).map(count).sum::<usize>();
        memory.reserve(room * classes as usize);
        let mut begins = [memory.as_mut_ptr(); 8];
        for class in 1..(classes as usize).min(8) {
            // SAFETY: there is room for all.
            begins[class] = unsafe { begins[class - 1].add(room) };
        }
        Self { begins, ends: begins, memory: PhantomData }
    }

    #[inline(always)]
    fn is_empty(&self, class: u8) -> bool {
        self.begins[usize::from(class & 7)] == self.ends[usize::from(class & 7)]
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
    /// Lists what waits in the queues of these classes.
    #[inline(always)]
    pub(super) fn take_out(&mut self, classes: u8) {
        let Self { buffer, lists, .. } = self;
        for class in classes_of(classes) {
            buffer.lines[class].empty(buffer.queues, buffer.store, |place| {
                lists.push(class as u8, Entry(place | Entry::STORED));
            });
        }
    }

    /// Puts what still waits, of these classes, into the queues.
    #[inline(always)]
    pub(super) fn put_back(&mut self, classes: u8, visit: &Visit<'_>) {
        let Self { buffer, lists, .. } = self;
        for class in classes_of(classes) {
            while !lists.is_empty(class as u8) {
                let entry = lists.pop(class as u8);
                let place = entry.stored().unwrap_or_else(|| {
                    let packet = visit.at(entry.0);
                    buffer.inputs[packet.port.into()].buffered += u64::from(packet.frame);
                    buffer.store.put(packet, packet.flags)
                });
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
        let entry = lists.pop(class);
        if lists.is_empty(class) {
            port.waiting &= !(1 << class);
        }
        let packet = match entry.stored() {
            None => visit.at(entry.0),
            Some(stored) => {
                let packet = place.write(buffer.store.take(stored));
                buffer.inputs[packet.port.into()].buffered -= u64::from(packet.frame);
                packet
            }
        };
        buffer.lines[class.into()].remove(packet.frame.into());
        trimmer.keep_turn(port, class, *turns);
        packet
    }
}
