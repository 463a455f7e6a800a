//! Packet kinds, by which packets are counted.

use core::ops::{Index, IndexMut};

/// Kind of a packet in counters.
// Has the width of an index: widening would cost an instruction per packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum PacketKind {
    /// Packets with a payload, or with one that a switch has trimmed.
    Data,
    /// Answers of receivers: acknowledgements, negative ones, pulls, credit.
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

    /// Returns the kind's name in counters.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Pause => "pause",
            Self::Cnp => "cnp",
            Self::NetRt => "netrt",
        }
    }
}

/// One value for each kind of packets.
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
