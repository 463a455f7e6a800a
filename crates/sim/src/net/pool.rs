//! Pool of the packets that are in the fabric.
//!
//! A packet is written once when its host sends it and read when it arrives; on the way, switches read its
//! [`Descriptor`](selvedge_switch::descriptor::Descriptor). Freed places are reused last in, first out, so that a busy
//! fabric stays in the cache.
//!
//! Packets of a [train](super::trains) differ in their numbers and times alone, so up to [`LONGEST`] of them share a
//! place, which is freed with the last of them. A handle tells which of these packets it belongs to.

use std::mem::MaybeUninit;

use selvedge_memory::Table;
use selvedge_nic::Train;
use selvedge_switch::descriptor::{Slot, TRAIN_STEP};
use selvedge_units::{Duration, Instant};
use selvedge_wire::Packet;

/// Largest number of packets of a train that can share a place.
pub(crate) const LONGEST: u64 = 1 << (Slot::BITS - BEFORE);
/// Longest time between two packets that share a place.
pub(crate) const LONGEST_STEP: Duration = Duration::from_ps(u32::MAX as u64);
/// First bit of a handle above the packet's place: the number of packets of its train that precede it there. A handle
/// is valid until the packet is removed.
const BEFORE: u32 = TRAIN_STEP.trailing_zeros();
/// Mask of a handle's place. This many places would take 8 GiB.
const PLACE: Slot = TRAIN_STEP - 1;

/// Packet in the fabric, or several of a train, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Held {
    /// Packet, or first packet of a train.
    packet: Packet,
    /// Time between two packets of a train, in picoseconds.
    step: u32,
    /// Number of packets of a train that are left here; zero for a single packet.
    shared: u32,
}

const _: () = assert!(size_of::<Held>() == 64);

/// Initial capacity in packets. Capacity that is not used takes addresses, but no memory.
const FIRST: usize = 1 << 15;
/// Number of places that are added at a time.
const MORE: Slot = 64;

/// All packets of one partition.
pub(crate) struct Pool {
    places: Table<Held>,
    /// Free places, the last of which is filled next. They are kept apart from the packets, so that several can be
    /// prefetched.
    free: Vec<Slot>,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { places: Table::with_room(FIRST), free: Vec::with_capacity(FIRST) }
    }

    /// Adds a packet; returns its handle.
    pub(crate) fn put(&mut self, packet: Packet) -> Slot {
        let (slot, place) = self.vacancy();
        *place = packet;
        self.occupy(slot);
        slot
    }

    /// Adds `count` packets of a train, at most [`LONGEST`]: the first is sent at `now`, each other `step` after the
    /// one before; `before` packets of the train have been sent earlier. Returns the handle of the first; the handles
    /// of the others follow at a distance of [`TRAIN_STEP`].
    #[inline(always)]
    pub(crate) fn put_train(&mut self, train: &Train, before: u64, count: u64, now: Instant, step: Duration) -> Slot {
        debug_assert!((1..=LONGEST).contains(&count), "so many can be told apart");
        debug_assert!(count == 1 || step <= LONGEST_STEP, "it has room");
        let (slot, place) = self.vacancy();
        train.write(before, now, place);
        self.occupy(slot);
        let place = &mut self.places[slot];
        (place.step, place.shared) = (step.as_ps() as u32, if count > 1 { count as u32 } else { 0 });
        slot
    }

    /// Returns the place of the next packet and its handle. The packet is written there, then the place is
    /// [occupied](Pool::occupy).
    #[inline(always)]
    pub(crate) fn vacancy(&mut self) -> (Slot, &mut Packet) {
        let slot = match self.free.last() {
            Some(&slot) => slot,
            None => self.grow(),
        };
        (slot, &mut self.places[slot].packet)
    }

    /// Occupies the place that [`Pool::vacancy`] has returned.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, slot: Slot) {
        let filled = self.free.pop();
        debug_assert_eq!(filled, Some(slot), "the place that was filled is occupied");
        self.prefetch_vacancy(0);
    }

    /// Prefetches the place that will be filled after `others` more packets, if there are as many free places.
    #[inline(always)]
    pub(crate) fn prefetch_vacancy(&self, others: u32) {
        if let Some(&slot) = self.free.iter().nth_back(others as usize) {
            self.prefetch(slot);
        }
    }

    /// Adds free places; returns the one that is filled next.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> Slot {
        let first = self.places.len() as Slot;
        assert!(first < PLACE - MORE, "no more than {first} packets can be under way at once");
        self.places.extend((0..MORE).map(|_| Held { packet: Packet::BLANK, step: 0, shared: 0 }));
        self.free.extend((first..first + MORE).rev());
        first
    }

    /// Removes a packet and returns it.
    #[inline]
    pub(crate) fn take(&mut self, slot: Slot) -> Packet {
        let packet = self.get(slot);
        self.release(slot);
        packet
    }

    /// Removes a packet.
    #[inline(always)]
    pub(crate) fn release(&mut self, slot: Slot) {
        self.let_go::<true>(slot);
    }

    /// Removes a packet. `TRAINS`: the packet may share its place with others of a train.
    #[inline(always)]
    pub(crate) fn let_go<const TRAINS: bool>(&mut self, slot: Slot) {
        let at = if TRAINS { slot & PLACE } else { slot };
        let place = &mut self.places[at];
        if TRAINS && place.shared > 1 {
            place.shared -= 1;
            return;
        }
        debug_assert!(TRAINS || place.shared == 0, "there are no trains");
        if TRAINS {
            place.shared = 0;
        }
        place.packet.frame = Packet::BLANK.frame;
        self.vacate(at);
    }

    #[inline(always)]
    fn vacate(&mut self, place: Slot) {
        self.free.push(place);
    }

    /// Returns the packet at the place of `slot`, and the number of packets between that one and the packet of `slot`
    /// in its train: zero if they are the same.
    #[inline(always)]
    pub(crate) fn first(&self, slot: Slot) -> (&Packet, u32) {
        (&self.places[slot & PLACE].packet, slot >> BEFORE)
    }

    #[inline(always)]
    pub(crate) fn get(&self, slot: Slot) -> Packet {
        let (first, before) = self.first(slot);
        if before == 0 { *first } else { self.nth(slot) }
    }

    /// Returns a packet, which is put together in `room` if necessary. `TRAINS`: the packet may share its place with
    /// others of a train.
    #[inline(always)]
    pub(crate) fn read<'p, const TRAINS: bool>(&'p self, slot: Slot, room: &'p mut MaybeUninit<Packet>) -> &'p Packet {
        if !TRAINS {
            return &self.places[slot].packet;
        }
        let (first, before) = self.first(slot);
        if before == 0 { first } else { room.write(self.nth(slot)) }
    }

    /// Returns a packet that others of its train precede at its place.
    #[cold]
    fn nth(&self, slot: Slot) -> Packet {
        let (&first, before) = self.first(slot);
        let step = Duration::from_ps(self.places[slot & PLACE].step.into());
        let mut packet = first;
        Train { first, count: 0 }.write(before.into(), first.sent_at + step * before.into(), &mut packet);
        packet
    }

    /// Returns the name of a packet in the fingerprint. A host sends one packet at a time, so its number and the time
    /// of sending name a data packet, and, with the receiver's number, the acknowledgement that returns that time.
    #[inline(always)]
    pub(crate) fn name(&self, slot: Slot) -> u64 {
        let Held { packet, step, .. } = &self.places[slot & PLACE];
        let after = u64::from(*step) * u64::from(slot >> BEFORE);
        (packet.sent_at.as_ps() + after) ^ u64::from(packet.src.0) << 40
    }

    /// Returns a single packet, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Packet {
        let place = &mut self.places[slot];
        debug_assert!(place.shared == 0, "others are not changed");
        &mut place.packet
    }

    /// Prefetches a packet that will be needed soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: Slot) {
        selvedge_prefetch::prefetch(&self.places, slot & PLACE);
    }

    /// Returns the packets that are in the fabric now, in no particular order: for packets that share a place, the
    /// first one, with their number.
    pub(crate) fn live(&self) -> impl Iterator<Item = (&Packet, u64)> {
        let held = self.places.iter().filter(|held| held.packet.frame != Packet::BLANK.frame);
        held.map(|held| (&held.packet, u64::from(held.shared.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{HostId, Psn};
    use selvedge_wire::{Data, Repr};

    use super::*;

    fn train() -> Train {
        let data = Data {
            psn: Psn::new(Psn::MODULUS - 6),
            payload: 1_000,
            last: false,
            retransmission: false,
            trimmed: false,
        };
        Train { first: Packet { frame: 1_064, src: HostId(3), repr: Repr::Data(data), ..Packet::BLANK }, count: 400 }
    }

    #[test]
    fn packets_that_share_a_place_are_those_of_the_train() {
        let (mut pool, train) = (Pool::new(), train());
        let other = pool.put(Packet { frame: 64, ..Packet::BLANK });
        let (begin, step) = (Instant::from_ps(7_000), Duration::from_ps(85_120));
        let first = pool.put_train(&train, 40, LONGEST, begin, step);
        let slots: Vec<Slot> = (0..LONGEST as u32).map(|n| first + n * TRAIN_STEP).collect();
        assert_eq!(pool.live().map(|(_, count)| count).sum::<u64>(), 1 + LONGEST);
        let mut room = MaybeUninit::uninit();
        for (n, &slot) in (0..).zip(&slots) {
            let mut packet = Packet::BLANK;
            train.write(40 + n, begin + step * n, &mut packet);
            assert_eq!(pool.get(slot), packet);
            assert_eq!(*pool.read::<true>(slot, &mut room), packet);
        }
        // Removing one packet leaves the others where they are.
        for (left, &slot) in (1..=LONGEST).rev().zip(slots.iter().rev()) {
            assert_eq!(pool.live().map(|(_, count)| count).sum::<u64>(), 1 + left);
            pool.release(slot);
        }
        assert_eq!(pool.live().count(), 1);
        assert_eq!(pool.put(train.first), slots[0] & PLACE, "it is free");
        assert_eq!(pool.live().map(|(_, count)| count).sum::<u64>(), 2);
        assert_eq!(pool.take(other).frame, 64);
    }
}
