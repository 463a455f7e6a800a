//! Where packets live while they are in the fabric.
//!
//! A packet is written once when its host sends it and read at each hop; queues and events hold
//! handles. Freed places are reused last in, first out, so that a busy fabric stays in the cache.

use selvedge_wire::Packet;

use crate::kernel::table::Table;

/// A packet's handle. Valid until the packet is taken out.
pub(crate) type Slot = u32;

/// No packet.
pub(crate) const NONE: Slot = u32::MAX;

/// A packet in the fabric, one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub(crate) struct Held {
    pub(crate) packet: Packet,
    /// The packet behind it in its queue; the next free place; or, on the way to a switch, the port
    /// through which it will leave that (`NONE`: not known yet).
    pub(crate) next: Slot,
    /// The port through which it entered the switch that holds it.
    pub(crate) ingress: u32,
}

const _: () = assert!(size_of::<Held>() == 64);

/// All packets of one partition.
pub(crate) struct Pool {
    places: Table<Held>,
    free: Slot,
}

impl Pool {
    pub(crate) fn new() -> Self {
        Self { places: Table::new(), free: NONE }
    }

    /// Puts a packet in.
    #[inline]
    pub(crate) fn put(&mut self, packet: Packet) -> Slot {
        let held = Held { packet, next: NONE, ingress: NONE };
        if self.free == NONE {
            self.places.push(held);
            return (self.places.len() - 1) as Slot;
        }
        let slot = self.free;
        let place = &mut self.places[slot];
        self.free = place.next;
        *place = held;
        slot
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, slot: Slot) -> Packet {
        let place = &mut self.places[slot];
        place.next = self.free;
        self.free = slot;
        let packet = place.packet;
        place.packet.frame = 0; // no packet is that short: the place is free
        packet
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Held {
        &self.places[slot]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Held {
        &mut self.places[slot]
    }

    /// All places, for prefetching.
    #[inline]
    pub(crate) fn places(&self) -> &[Held] {
        &self.places
    }

    /// The packets that are in the fabric now, in no particular order.
    pub(crate) fn live(&self) -> impl Iterator<Item = &Packet> {
        self.places.iter().map(|held| &held.packet).filter(|packet| packet.frame > 0)
    }
}
