//! The base transport header (InfiniBand architecture, volume 1, chapter 9).
//!
//! | bytes | bits    | field                                                   |
//! |-------|---------|---------------------------------------------------------|
//! | 0     | 7..0    | opcode                                                  |
//! | 1     | 7       | solicited event                                         |
//! |       | 6       | migration request                                       |
//! |       | 5..4    | pad count: bytes of padding after the payload           |
//! |       | 3..0    | transport header version, 0                             |
//! | 2-3   |         | partition key                                           |
//! | 4     | 7       | FECN: this packet met congestion                        |
//! |       | 6       | BECN: the answered packet met congestion                |
//! |       | 5..0    | reserved; ignored, sent as 0                            |
//! | 5-7   |         | destination queue pair                                  |
//! | 8     | 7       | acknowledgement requested                               |
//! |       | 6..0    | reserved; ignored, sent as 0                            |
//! | 9-11  |         | packet sequence number                                  |

use selvedge_units::{Psn, QpNumber};

use crate::error::{ParseError, take};

/// A base transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bth {
    /// Kind of the packet; see [`Opcode`].
    pub opcode: u8,
    /// Whether the packet raises an event at the receiver.
    pub solicited: bool,
    /// Path migration state.
    pub migration: bool,
    /// Bytes of padding after the payload, 0 to 3.
    pub pad: u8,
    /// Partition key.
    pub partition: u16,
    /// Whether this packet met congestion on its path.
    pub fecn: bool,
    /// Whether the packet answered by this one met congestion.
    pub becn: bool,
    /// Destination queue pair, 24 bits.
    pub destination: QpNumber,
    /// Whether the sender requests an acknowledgement.
    pub ack_request: bool,
    /// Packet sequence number.
    pub psn: Psn,
}

/// Supported opcodes of the reliable connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opcode;

impl Opcode {
    /// The first of several packets of a SEND.
    pub const SEND_FIRST: u8 = 0x00;
    /// A middle packet of a SEND.
    pub const SEND_MIDDLE: u8 = 0x01;
    /// The last packet of a SEND.
    pub const SEND_LAST: u8 = 0x02;
    /// The only packet of a SEND.
    pub const SEND_ONLY: u8 = 0x04;
    /// The first of several packets of an RDMA WRITE.
    pub const WRITE_FIRST: u8 = 0x06;
    /// A middle packet of an RDMA WRITE.
    pub const WRITE_MIDDLE: u8 = 0x07;
    /// The last packet of an RDMA WRITE.
    pub const WRITE_LAST: u8 = 0x08;
    /// The only packet of an RDMA WRITE.
    pub const WRITE_ONLY: u8 = 0x0a;
    /// Acknowledgement, positive or negative.
    pub const ACKNOWLEDGE: u8 = 0x11;
    /// Congestion notification packet (RoCEv2 annex A17.9.4).
    pub const CONGESTION_NOTIFICATION: u8 = 0x81;
    /// A message between NetRT's switches: the first of the manufacturer-specific numbers.
    pub const NETRT: u8 = 0xc0;
}

impl Bth {
    /// Bytes of the header.
    pub const LENGTH: usize = 12;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[opcode, flags, p0, p1, congestion, q0, q1, q2, request, s0, s1, s2], rest) =
            take::<{ Self::LENGTH }>(bytes)?;
        if flags & 0x0f != 0 {
            return Err(ParseError::Version(flags & 0x0f));
        }
        let bth = Self {
            opcode,
            solicited: flags & 0x80 != 0,
            migration: flags & 0x40 != 0,
            pad: flags >> 4 & 0b11,
            partition: u16::from_be_bytes([p0, p1]),
            fecn: congestion & 0x80 != 0,
            becn: congestion & 0x40 != 0,
            destination: QpNumber(u32::from_be_bytes([0, q0, q1, q2])),
            ack_request: request & 0x80 != 0,
            psn: Psn::new(u32::from_be_bytes([0, s0, s1, s2])),
        };
        Ok((bth, rest))
    }

    /// Returns the header's bytes. Only the low 24 bits of `destination` and 2 bits of `pad` are used.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let flags = u8::from(self.solicited) << 7 | u8::from(self.migration) << 6 | (self.pad & 0b11) << 4;
        let congestion = u8::from(self.fecn) << 7 | u8::from(self.becn) << 6;
        let [p0, p1] = self.partition.to_be_bytes();
        let [_, q0, q1, q2] = self.destination.0.to_be_bytes();
        let [_, s0, s1, s2] = self.psn.get().to_be_bytes();
        [self.opcode, flags, p0, p1, congestion, q0, q1, q2, u8::from(self.ack_request) << 7, s0, s1, s2]
    }
}
