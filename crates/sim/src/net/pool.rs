//! Where packets live while they are in the fabric.
//!
//! A packet is written once when its host sends it and read when it arrives; on the way, switches look
//! at its [`Descriptor`](super::descriptor::Descriptor). Freed places are reused last in, first out, so
//! that a busy fabric stays in the cache.
//!
//! Packets of a [train](super::trains) differ in their numbers and times alone, so up to [`LONGEST`] of them share a
//! place, which is free again when the last of them is. A handle says which of them it is for.

use std::mem::MaybeUninit;

use selvedge_nic::Train;
use selvedge_units::{Duration, Instant};
use selvedge_wire::Packet;

use crate::kernel::table::Table;

/// A packet's handle: its place in the lower 27 bits, and how many others of its train precede it there. Valid until
/// the packet is taken out.
pub(crate) type Slot = u32;

/// No packet.
pub(crate) const NONE: Slot = u32::MAX;

/// Packets of a train that can share a place.
pub(crate) const LONGEST: u64 = 1 << (Slot::BITS - BEFORE);
/// The longest that may lie between two that do.
pub(crate) const LONGEST_STEP: Duration = Duration::from_ps(u32::MAX as u64);
/// Where a handle says how many precede a packet.
const BEFORE: u32 = 27;
/// Where it says where that lies. So many places would take 8 GiB.
const PLACE: Slot = (1 << BEFORE) - 1;

/// A packet in the fabric, or some of a train, one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Held {
    /// The first of a train.
    packet: Packet,
    /// Of a train, how many picoseconds lie between two packets.
    step: u32,
    /// Of a train, how many are left; of all others, none.
    shared: u32,
}

const _: () = assert!(size_of::<Held>() == 64);

/// For how many packets there is room from the beginning. Room that is not used costs no memory, only addresses.
const FIRST: usize = 1 << 15;
/// How many places are made at a time.
const MORE: Slot = 64;

/// All packets of one partition.
pub(crate) struct Pool {
    places: Table<Held>,
    /// The free places, the last of which is filled next; before the first one, an entry that is of none. They lie
    /// apart, so that several can be fetched ahead.
    free: Table<Slot>,
    vacancies: u32,
}

impl Pool {
    pub(crate) fn new() -> Self {
        let mut free = Table::with_room(FIRST);
        free.push(0);
        Self { places: Table::with_room(FIRST), free, vacancies: 0 }
    }

    /// Puts a packet in.
    pub(crate) fn put(&mut self, packet: Packet) -> Slot {
        let (slot, place) = self.vacancy();
        *place = packet;
        self.occupy(slot);
        slot
    }

    /// Puts in some packets of a train, [`LONGEST`] at most, the first of which is sent at `now` and others behind it,
    /// each `step` after the one before; `before` have been sent earlier. Returns the handle of the first; those of the
    /// others follow at a distance of [`Pool::STEP`].
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

    /// What lies between the handles of packets that share a place.
    pub(crate) const STEP: Slot = 1 << BEFORE;

    /// The place where the next packet will lie: write it there, then [`occupy`](Pool::occupy) it.
    #[inline(always)]
    pub(crate) fn vacancy(&mut self) -> (Slot, &mut Packet) {
        if self.vacancies == 0 {
            self.grow();
        }
        let slot = self.free[self.vacancies];
        (slot, &mut self.places[slot].packet)
    }

    /// Takes the vacancy.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, slot: Slot) {
        debug_assert_eq!(slot, self.free[self.vacancies]);
        self.vacancies -= 1;
        self.prefetch_vacancy(0);
    }

    /// Fetches the place that will be taken when so many others have been, if there are as many.
    #[inline(always)]
    pub(crate) fn prefetch_vacancy(&self, others: u32) {
        self.prefetch(self.free[self.vacancies.saturating_sub(others)]);
    }

    /// Makes free places.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let first = self.places.len() as Slot;
        assert!(first < PLACE - MORE, "no more than {first} packets can be under way at once");
        self.places.extend((0..MORE).map(|_| Held { packet: Packet::BLANK, step: 0, shared: 0 }));
        self.free.extend((0..MORE).map(|_| 0));
        (first..first + MORE).rev().for_each(|place| self.vacate(place));
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, slot: Slot) -> Packet {
        let packet = self.get(slot);
        self.release(slot);
        packet
    }

    /// Forgets a packet.
    #[inline(always)]
    pub(crate) fn release(&mut self, slot: Slot) {
        self.let_go::<true>(slot);
    }

    /// The same; says whether it may be one of a train (`TRAINS`).
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
        self.vacancies += 1;
        self.free[self.vacancies] = place;
    }

    /// What lies at the place of a packet: itself, or the first of its train and how many lie between them.
    #[inline(always)]
    pub(crate) fn first(&self, slot: Slot) -> (&Packet, u32) {
        (&self.places[slot & PLACE].packet, slot >> BEFORE)
    }

    #[inline(always)]
    pub(crate) fn get(&self, slot: Slot) -> Packet {
        let (first, before) = self.first(slot);
        if before == 0 { *first } else { self.nth(slot) }
    }

    /// A packet, if need be in `room`; says whether it may be one of a train (`TRAINS`).
    #[inline(always)]
    pub(crate) fn read<'p, const TRAINS: bool>(&'p self, slot: Slot, room: &'p mut MaybeUninit<Packet>) -> &'p Packet {
        if !TRAINS {
            return &self.places[slot].packet;
        }
        let (first, before) = self.first(slot);
        if before == 0 { first } else { room.write(self.nth(slot)) }
    }

    /// One that others of its train precede.
    #[cold]
    fn nth(&self, slot: Slot) -> Packet {
        let (&first, before) = self.first(slot);
        let step = Duration::from_ps(self.places[slot & PLACE].step.into());
        let mut packet = first;
        Train { first, count: 0 }.write(before.into(), first.sent_at + step * before.into(), &mut packet);
        packet
    }

    /// What a packet is called in the fingerprint. A host sends one packet at a time, so its number and the time of
    /// sending name a data packet, and with the receiver's number the acknowledgement that returns that time.
    #[inline(always)]
    pub(crate) fn name(&self, slot: Slot) -> u64 {
        let Held { packet, step, .. } = &self.places[slot & PLACE];
        let after = u64::from(*step) * u64::from(slot >> BEFORE);
        (packet.sent_at.as_ps() + after) ^ u64::from(packet.src.0) << 40
    }

    /// A packet by itself, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Packet {
        let place = &mut self.places[slot];
        debug_assert!(place.shared == 0, "others are not changed");
        &mut place.packet
    }

    /// Fetches a packet that will be needed soon.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slot: Slot) {
        crate::kernel::prefetch(&self.places, slot & PLACE);
    }

    /// The packets that are in the fabric now, in no particular order: those that share a place as one, and how many
    /// they are.
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
        let slots: Vec<Slot> = (0..LONGEST as u32).map(|n| first + n * Pool::STEP).collect();
        assert_eq!(pool.live().map(|(_, count)| count).sum::<u64>(), 1 + LONGEST);
        let mut room = MaybeUninit::uninit();
        for (n, &slot) in (0..).zip(&slots) {
            let mut packet = Packet::BLANK;
            train.write(40 + n, begin + step * n, &mut packet);
            assert_eq!(pool.get(slot), packet);
            assert_eq!(*pool.read::<true>(slot, &mut room), packet);
        }
        // Whoever goes leaves the others where they are.
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
