//! A whole visit of an output with short queues: those of switches that trim.
//!
//! Most of what waits there leaves in the same visit. So it takes no place in the store: while the visit lasts, packets
//! that wait are only listed, and those that are left are put where they belong in the end.

use super::calm::Visit;
use super::descriptor::Descriptor;
use super::port::{Egress, Ingress, of_bits};
use super::queue::{Line, Queue, Store};
use super::trimming::{Trimmer, Turns};
use crate::kernel::calendar::Outlet;
use crate::kernel::order::Key;
use crate::kernel::table::Part;

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
struct Lists {
    begins: [*mut Entry; 8],
    ends: [*mut Entry; 8],
}

impl Lists {
    /// Empty ones for so many classes, in `memory`: to each of them, so many may be added.
    #[inline(always)]
    fn new(memory: &mut Vec<Entry>, classes: u32, room: usize) -> Self {
        memory.reserve(room * classes as usize);
        let mut begins = [memory.as_mut_ptr(); 8];
        for class in 1..(classes as usize).min(8) {
            // SAFETY: there is room for all.
            begins[class] = unsafe { begins[class - 1].add(room) };
        }
        Self { begins, ends: begins }
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

/// An output whose lines have one queue each, with all that it reads and writes while packets wait for it.
pub(super) struct ShortOutput<'a> {
    pub(super) port: &'a mut Egress,
    /// Packets that have left at once, others that have left, and bytes of both.
    pub(super) passed: u64,
    pub(super) served: u64,
    pub(super) bytes: u64,
    /// What every frame takes on the wire beside itself.
    pub(super) gap: u64,
    pub(super) outlet: Outlet<'a>,
    /// By class, as the queues.
    pub(super) lines: Part<'a, Line>,
    pub(super) queues: Part<'a, Queue>,
    pub(super) store: &'a mut Store,
    /// By port.
    pub(super) inputs: Part<'a, Ingress>,
    pub(super) turns: Turns,
    pub(super) trimmer: &'a mut Trimmer,
    pub(super) classes: u32,
    pub(super) memory: &'a mut Vec<Entry>,
    pub(super) events: &'a mut u64,
}

impl ShortOutput<'_> {
    /// Handles what happens during a visit, where `keys` say what comes, and `first` waits and is in no queue. Returns
    /// what is left of the keys: it begins with what somebody else has to handle.
    #[inline(always)]
    pub(super) fn run<'k>(mut self, visit: &Visit<'_>, first: Option<Key>, keys: &'k [Key]) -> &'k [Key] {
        let waiting =
            classes_of(self.port.waiting).map(|class| self.queues[class].packets(self.store).count()).sum::<usize>();
        let mut lists = Lists::new(self.memory, self.classes, waiting + 1 + keys.len());
        for class in classes_of(self.port.waiting) {
            self.lines[class].empty(&mut self.queues[class], self.store, |place| {
                lists.push(class as u8, Entry(place | Entry::STORED));
            });
        }
        if let Some(first) = first {
            self.wait(&mut lists, first, first.packet(visit.mail));
        }
        let mut busy = visit.since(self.port.busy_until);
        let mut count = 0;
        for &key in keys {
            let (packet, time) = (key.packet(visit.mail), key.time());
            busy = self.serve_until(visit, &mut lists, busy, time);
            if packet.is_pause() {
                break;
            }
            if busy <= time && self.port.is_open() {
                self.passed += 1;
                busy = self.send(time, packet);
            } else {
                let has_room = self.lines[packet.class.into()].has_room_for(packet.frame.into());
                if !has_room || packet.is_markable() || self.port.paused == Egress::DOWN {
                    break;
                }
                // Those who may not leave do not keep others waiting.
                let begins = busy <= time && self.port.ready() == 0;
                self.wait(&mut lists, key, packet);
                if begins {
                    busy = self.serve_until(visit, &mut lists, time, time + 1);
                }
            }
            count += 1;
        }
        if count == keys.len() {
            busy = self.serve_until(visit, &mut lists, busy, visit.length);
        }
        *self.events += self.served;
        if self.bytes > 0 {
            self.port.add_frames(visit.instant(busy), self.served + self.passed, self.bytes);
        }
        for class in classes_of(self.port.waiting) {
            while !lists.is_empty(class as u8) {
                let entry = lists.pop(class as u8);
                let place = entry.stored().unwrap_or_else(|| self.store_away(visit.at(entry.0)));
                self.lines[class].append_to(&mut self.queues[class], self.store, place);
            }
        }
        &keys[count..]
    }

    /// Lists a packet that waits from now on.
    #[inline(always)]
    fn wait(&mut self, lists: &mut Lists, key: Key, packet: &Descriptor) {
        self.lines[packet.class.into()].add(packet.frame.into());
        lists.push(packet.class, Entry(key.place() as u32));
        self.port.waiting |= 1 << packet.class;
    }

    /// Sends what waits and may leave from `busy` on, as far as it begins before `time`; returns until when that takes.
    #[inline(always)]
    fn serve_until(&mut self, visit: &Visit<'_>, lists: &mut Lists, mut busy: u64, time: u64) -> u64 {
        while busy < time {
            let ready = self.port.ready();
            if ready == 0 {
                break;
            }
            busy = self.serve(visit, lists, ready.ilog2() as u8, busy);
        }
        busy
    }

    /// Sends the next packet of `class`, of which some wait; returns until when that takes.
    #[inline(always)]
    fn serve(&mut self, visit: &Visit<'_>, lists: &mut Lists, class: u8, begins: u64) -> u64 {
        self.served += 1;
        let entry = lists.pop(class);
        if lists.is_empty(class) {
            self.port.waiting &= !(1 << class);
        }
        let stored;
        let packet = match entry.stored() {
            None => visit.at(entry.0),
            Some(place) => {
                stored = self.store.take(place);
                self.inputs[stored.port.into()].buffered -= u64::from(stored.frame);
                &stored
            }
        };
        self.lines[class.into()].remove(packet.frame.into());
        self.trimmer.keep_turn(self.port, class, self.turns);
        self.send(begins, packet)
    }

    /// Sends a packet from `begins` on; returns until when that takes.
    #[inline(always)]
    fn send(&mut self, begins: u64, packet: &Descriptor) -> u64 {
        let frame = u64::from(packet.frame);
        let ends = begins + (frame + self.gap) * self.port.ps_per_byte();
        self.bytes += frame;
        self.outlet.send(ends + self.port.delay.as_ps(), packet);
        ends
    }

    /// Puts a packet that still waits into the store; returns its place.
    #[inline]
    fn store_away(&mut self, packet: &Descriptor) -> u32 {
        self.inputs[packet.port.into()].buffered += u64::from(packet.frame);
        self.store.put(packet, packet.flags)
    }
}
