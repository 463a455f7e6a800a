//! Packets, counted apart by kind.

use core::ops::{Index, IndexMut};

/// What a packet is for, as far as packets are counted apart.
// As wide as an index: to widen it would take an instruction per packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum PacketKind {
    /// Has a payload, or had one before a switch cut it off.
    Data,
    /// What receivers answer: acknowledgements, negative ones, pulls, credit.
    Ack,
    /// PFC frames: pause and resume.
    Pause,
    /// Congestion notifications.
    Cnp,
    /// Messages between the top-of-rack switches of NetRT.
    NetRt,
}

impl PacketKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Data, Self::Ack, Self::Pause, Self::Cnp, Self::NetRt];
}

/// Something of each kind of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ByKind<T>([T; PacketKind::ALL.len()]);

impl<T> Index<PacketKind> for ByKind<T> {
    type Output = T;
    #[inline(always)]
    fn index(&self, kind: PacketKind) -> &T {
        &self.0[kind as usize]
    }
}

impl<T> IndexMut<PacketKind> for ByKind<T> {
    #[inline(always)]
    fn index_mut(&mut self, kind: PacketKind) -> &mut T {
        &mut self.0[kind as usize]
    }
}
