//! What a [`crate::Packet`] holds of a tunnel's packets. Path and tunnel are its `entropy` and `slot`.

use super::Flags;

/// A data packet, or a request to send.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Data {
    /// Sequence number; the upper bits of a SYN's are its epoch.
    pub seq: u32,
    /// The pull number that would satisfy the sender's demand.
    pub pull_target: u32,
    /// Which packet of its message it is, counted from 0.
    pub index: u32,
    /// Payload in bytes; none in a request to send. A trimmed packet still says what it carried.
    pub payload: u16,
    /// [`Flags::SYN`], [`Flags::ACK`], [`Flags::RTS`].
    pub flags: Flags,
    /// Which sending EQIF of its host it is from: 0 for native messages; the others carry IP. With the host, the
    /// header's sender ID.
    pub eqif: u8,
    /// Traffic class of what the tunnel carries. That of the packet itself tells nothing of a request to send, nor once
    /// a switch has trimmed it.
    pub class: u8,
    /// Sent before. Never read by engines; for counting only.
    pub retransmission: bool,
    /// A switch has cut the payload off ([`crate::Packet::trim`]).
    pub trimmed: bool,
}

/// A control packet: what the receiver has to say, all of it absolute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Control {
    /// What it is.
    pub flags: Flags,
    /// The sequence number that it speaks of.
    pub number: u32,
    /// Credit given so far, in MTUs.
    pub pull: u32,
    /// Microseconds for which the receiver's link will at least be busy (section 5).
    pub busy: u32,
}
