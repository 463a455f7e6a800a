//! Progress of flows at either end, for diagnosis of where their time goes.

use selvedge_units::{Psn, TcpSeq};
use selvedge_wire::tcp::Stream;
use selvedge_wire::{Packet, Repr};

use crate::role::HoldReason;

/// Progress of a flow at its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Cause for which the flow waits.
    pub hold: HoldReason,
    /// Packets sent, or octets where the receiver counts octets; each counted once. `None` where windows do not wait
    /// for the next packet in order.
    pub sent: Option<u64>,
    /// Packets or octets never sent.
    pub unsent: u64,
    /// Whether the flow has lost packets that it may not retransmit yet.
    pub has_lost: bool,
    /// Retransmission timeouts so far; zero for tunnels, which many flows share.
    pub timeouts: u64,
    /// Retransmitted packets so far; zero for tunnels.
    pub resent: u64,
}

/// Progress of a flow at its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The caller's name of the flow.
    pub context: u32,
    /// Packets or octets that have arrived in order, in the unit of [`Standing::sent`].
    pub count: Option<u64>,
    /// Packets or octets that have not arrived.
    pub missing: u64,
    /// Next packet or octet expected in order.
    pub next: Expected,
}

/// Next packet or octet that a receiver expects in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// A packet.
    Packet(Psn),
    /// An octet of a stream.
    Octet(TcpSeq, Stream),
    /// Any: order does not matter, or several connections share the flow.
    Any,
}

impl Received {
    /// Returns whether `packet`, of this flow, carries the next expected packet or octet.
    pub fn is_brought_by(&self, packet: &Packet) -> bool {
        match (self.next, &packet.repr) {
            (Expected::Packet(psn), Repr::Data(data)) => data.psn == psn && !data.trimmed,
            (Expected::Octet(octet, stream), Repr::Tcp(tcp)) => {
                let segment = tcp.unpack(octet, 0, stream);
                !tcp.is_trimmed() && octet.get().wrapping_sub(segment.seq.get()) < u32::from(segment.payload)
            }
            _ => false,
        }
    }

    /// Returns how many packets or octets of this flow `packet` carries.
    pub fn carried_by(&self, packet: &Packet) -> u64 {
        match &packet.repr {
            Repr::Tcp(tcp) if !tcp.is_trimmed() => u64::from(tcp.payload()),
            Repr::Data(data) if !data.trimmed => 1,
            Repr::EqdsData(data) if !data.trimmed && data.payload > 0 => 1,
            _ => 0,
        }
    }
}
