//! Which packets move a flow on, and whether towards its receiver or back.

use selvedge_units::HostId;
use selvedge_wire::{Packet, Repr};

/// Which way a packet goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From the sender of a flow to its receiver.
    Forward {
        /// Whether it had been sent before.
        again: bool,
    },
    /// An answer to one of these.
    Backward,
}

impl Direction {
    /// That of a packet which belongs to a flow and moves it on.
    pub(crate) fn of(packet: &Packet) -> Option<Self> {
        match &packet.repr {
            Repr::Data(data) => Some(Self::Forward { again: data.retransmission }),
            Repr::Tcp(tcp) if !tcp.is_backward() => Some(Self::Forward { again: tcp.is_again() }),
            Repr::EqdsData(data) if data.payload > 0 => Some(Self::Forward { again: data.retransmission }),
            Repr::Ack(_) | Repr::HoleNack(_) | Repr::Tcp(_) | Repr::EqdsControl(_) => Some(Self::Backward),
            // It slows the flow down, and answers nothing.
            Repr::Cnp | Repr::Pull(_) | Repr::Pause(_) | Repr::EqdsData(_) | Repr::NetRt(_) => None,
        }
    }
    /// The host that sends the flow.
    pub(crate) fn sender(self, packet: &Packet) -> HostId {
        match self {
            Self::Forward { .. } => packet.src,
            Self::Backward => packet.dst,
        }
    }
    /// The host that receives it.
    pub(crate) fn receiver(self, packet: &Packet) -> HostId {
        match self {
            Self::Forward { .. } => packet.dst,
            Self::Backward => packet.src,
        }
    }
}
