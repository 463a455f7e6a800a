//! Packets that advance a flow, and their direction.

use selvedge_units::HostId;
use selvedge_wire::{Packet, Repr};

/// The direction of a packet relative to its flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From the sender of a flow to its receiver.
    Forward {
        /// Whether the packet is a retransmission.
        again: bool,
    },
    /// From the receiver back to the sender: an acknowledgement.
    Backward,
}

impl Direction {
    /// Returns the direction of a packet that belongs to a flow and advances it; `None` for other packets.
    pub(crate) fn of(packet: &Packet) -> Option<Self> {
        match &packet.repr {
            Repr::Data(data) => Some(Self::Forward { again: data.retransmission }),
            Repr::Tcp(tcp) if !tcp.is_backward() => Some(Self::Forward { again: tcp.is_again() }),
            Repr::EqdsData(data) if data.payload > 0 => Some(Self::Forward { again: data.retransmission }),
            Repr::Ack(_) | Repr::HoleNack(_) | Repr::Tcp(_) | Repr::EqdsControl(_) => Some(Self::Backward),
            // A CNP slows the flow down, and acknowledges nothing.
            Repr::Cnp | Repr::Control(_) | Repr::Pause(_) | Repr::EqdsData(_) | Repr::NetRt(_) => None,
        }
    }
    /// Returns the host that sends the flow.
    pub(crate) fn sender(self, packet: &Packet) -> HostId {
        match self {
            Self::Forward { .. } => packet.src,
            Self::Backward => packet.dst,
        }
    }
    /// Returns the host that receives the flow.
    pub(crate) fn receiver(self, packet: &Packet) -> HostId {
        match self {
            Self::Forward { .. } => packet.dst,
            Self::Backward => packet.src,
        }
    }
}
