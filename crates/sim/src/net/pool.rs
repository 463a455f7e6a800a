//! Where packets live while they are in the fabric.
//!
//! A packet is written once when its host sends it and read when it arrives; on the way, switches look
//! at its [`Descriptor`](super::descriptor::Descriptor). Freed places are reused last in, first out, so
//! that a busy fabric stays in the cache.

use selvedge_wire::Packet;

use crate::kernel::table::Table;

/// A packet's handle. Valid until the packet is taken out.
pub(crate) type Slot = u32;

/// No packet.
pub(crate) const NONE: Slot = u32::MAX;

/// A packet in the fabric, one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Held {
    packet: Packet,
    /// The next free place, if this one is.
    next: Slot,
}

const _: () = assert!(size_of::<Held>() == 64);

/// For how many packets there is room from the beginning. Room that is not used costs no memory, only addresses.
const FIRST: usize = 1 << 15;
/// How many places are made at a time.
const MORE: Slot = 64;

/// All packets of one partition.
pub(crate) struct Pool {
    places: Table<Held>,
    free: Slot,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { places: Table::with_room(FIRST), free: NONE }
    }

    /// Puts a packet in.
    pub(crate) fn put(&mut self, packet: Packet) -> Slot {
        let (slot, place) = self.vacancy();
        *place = packet;
        self.occupy(slot);
        slot
    }

    /// The place where the next packet will lie: write it there, then [`occupy`](Pool::occupy) it.
    #[inline(always)]
    pub(crate) fn vacancy(&mut self) -> (Slot, &mut Packet) {
        if self.free == NONE {
            self.grow();
        }
        (self.free, &mut self.places[self.free].packet)
    }

    /// Takes the vacancy.
    #[inline(always)]
    pub(crate) fn occupy(&mut self, slot: Slot) {
        debug_assert_eq!(slot, self.free);
        self.free = self.places[slot].next;
        crate::kernel::prefetch(&self.places, self.free);
    }

    /// Makes free places.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let first = self.places.len() as Slot;
        let next = (first + 1..first + MORE).chain([NONE]);
        self.places.extend(next.map(|next| Held { packet: Packet::BLANK, next }));
        self.free = first;
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, slot: Slot) -> Packet {
        let packet = self.places[slot].packet;
        self.release(slot);
        packet
    }

    /// Forgets a packet.
    #[inline]
    pub(crate) fn release(&mut self, slot: Slot) {
        let place = &mut self.places[slot];
        place.next = self.free;
        place.packet.frame = Packet::BLANK.frame;
        self.free = slot;
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Packet {
        &self.places[slot].packet
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Packet {
        &mut self.places[slot].packet
    }

    /// Fetches a packet that will be needed soon.
    #[inline]
    pub(crate) fn prefetch(&self, slot: Slot) {
        crate::kernel::prefetch(&self.places, slot);
    }

    /// The packets that are in the fabric now, in no particular order.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Packet> {
        self.places.iter().map(|held| &held.packet).filter(|packet| packet.frame != Packet::BLANK.frame)
    }
}
