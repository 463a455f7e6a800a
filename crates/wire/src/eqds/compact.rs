//! The fields of a tunnel's packets in a [`crate::Packet`], whose `entropy` and `slot` are path and tunnel.

use super::Flags;

/// A data packet, or a request to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Data {
    /// Sequence number; with SYN, its upper bits are the epoch.
    pub seq: u32,
    /// The pull number that would satisfy the sender's demand.
    pub pull_target: u32,
    /// Index of the packet in its message, from 0.
    pub index: u32,
    /// Payload in bytes; zero in a request to send. A trimmed packet retains the original value.
    pub payload: u16,
    /// [`Flags::SYN`], [`Flags::ACK`], [`Flags::RTS`].
    pub flags: Flags,
    /// Index of the sending EQIF in its host: 0 for native messages; the others carry IP. Is the header's sender ID:
    /// the IP header names the host.
    pub eqif: u8,
    /// Traffic class of the carried traffic. The packet's own class differs in a request to send, and once a switch has
    /// trimmed the packet.
    pub class: u8,
    /// Whether the packet was sent before. For counting only; never read by engines.
    pub retransmission: bool,
    /// Whether a switch has trimmed the payload ([`crate::Packet::trim`]).
    pub trimmed: bool,
}

/// A control packet: the receiver's report, whose values are all absolute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Control {
    /// Kind of the report.
    pub flags: Flags,
    /// Sequence number that the report is about.
    pub number: u32,
    /// Credit granted so far, in MTUs.
    pub pull: u32,
    /// Time in microseconds for which the receiver's link will be busy at least (section 5).
    pub busy: u32,
    /// Index of the tunnel's sending EQIF in its host ([`Data::eqif`]). Engines leave it zero; hosts set it.
    pub eqif: u8,
}
