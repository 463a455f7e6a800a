//! The part that all headers of version 1 begin with.
//!
//! | bytes | bits  | field                                                                                |
//! |-------|-------|--------------------------------------------------------------------------------------|
//! | 0     | 7..4  | version, 1                                                                           |
//! |       | 3..0  | type, see [`PacketType`]                                                                   |
//! | 1     | 7     | trimmed: set by a switch that cut the payload off; zero when the MAC is computed     |
//! |       | 6     | sealed: the payload is encrypted and ends with a tag of 16 bytes                     |
//! |       | 5     | ECN echo: the reported packet carried a mark                                         |
//! |       | 4     | PULL: the pull number has risen                                                      |
//! |       | 3     | SACK: the packet of the number arrived out of order                                  |
//! |       | 2     | NACK: the packet of the number arrived without its payload                           |
//! |       | 1     | ACK: everything before the number has arrived; in data: answer at once               |
//! |       | 0     | SYN: the tunnel is new                                                               |
//! | 2-3   |       | original length: bytes of the UDP payload as it was sent                             |
//! | 4-7   |       | key id: names the pair of peers and the direction                                    |
//! | 8-11  |       | key epoch of the sender of this packet                                               |
//! | 12-15 |       | packet number: counts all packets under this key and epoch, from 0                   |
//! | 16    |       | header length in words of 4 bytes, from this header's first byte to the MAC's last   |
//! | 17    |       | EQIF id: index of the tunnel's sending EQIF at its host                              |
//! | 18-19 |       | path id of this packet                                                               |

use super::{LONGEST, MAC, PacketType, VERSION};
use crate::eqds;
use crate::error::{ParseError, take};

/// Flags of a header.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The tunnel is new: the upper bits of the sequence number are its epoch (appendix A).
    pub const SYN: Self = Self(0x01);
    /// In reports: everything before the number has arrived. In data: an immediate report is requested. In probes: this
    /// is the answer.
    pub const ACK: Self = Self(0x02);
    /// The packet of the number arrived without its payload.
    pub const NACK: Self = Self(0x04);
    /// The packet of the number arrived out of order.
    pub const SACK: Self = Self(0x08);
    /// Credit: the pull number has risen.
    pub const PULL: Self = Self(0x10);
    /// The reported packet carried an ECN mark.
    pub const ECN_ECHO: Self = Self(0x20);
    /// The payload is encrypted and ends with a tag.
    pub const SEALED: Self = Self(0x40);
    /// A switch has cut the payload off. The MAC is computed with this flag cleared.
    pub const TRIMMED: Self = Self(0x80);

    /// Returns the flags of a report for those of an engine's control packet; RST, which is a type here, is lost.
    pub const fn of_report(flags: eqds::Flags) -> Self {
        let mut all = Self::NONE;
        let mut at = 0;
        while at < IN_ENGINES.len() {
            let (own, engines) = IN_ENGINES[at];
            all = all.with(own.when(flags.any(engines)));
            at += 1;
        }
        all
    }
    /// Returns the flags of an engine's packet for these; SEALED and TRIMMED, which engines do not know, are lost.
    pub const fn for_engine(self) -> eqds::Flags {
        let mut all = eqds::Flags::NONE;
        let mut at = 0;
        while at < IN_ENGINES.len() {
            let (own, engines) = IN_ENGINES[at];
            all = all.with(engines.when(self.any(own)));
            at += 1;
        }
        all
    }
}

eqds::flags::set_of_flags!(Flags);

/// Flags of version 1 beside those of engines.
const IN_ENGINES: [(Flags, eqds::Flags); 6] = [
    (Flags::SYN, eqds::Flags::SYN),
    (Flags::ACK, eqds::Flags::ACK),
    (Flags::NACK, eqds::Flags::NACK),
    (Flags::SACK, eqds::Flags::SACK),
    (Flags::PULL, eqds::Flags::PULL),
    (Flags::ECN_ECHO, eqds::Flags::ECN_ECHO),
];

/// Fields that every header has, except version, type and lengths, which follow from the packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Common {
    /// Flags.
    pub flags: Flags,
    /// Name of the pair of peers and the direction, derived from their keys.
    pub key_id: u32,
    /// Key epoch of the packet's sender: grows with each start of its daemon.
    pub key_epoch: u32,
    /// Packet number under this key and epoch. Each transmission has a number of its own.
    pub packet_number: u32,
    /// Index of the tunnel's sending EQIF at its host.
    pub eqif: u8,
    /// Path id of this packet.
    pub path: u16,
}

/// Values of the common part that are about the packet as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Frame {
    pub(super) kind: PacketType,
    /// Bytes of the UDP payload as it was sent.
    pub(super) original: u16,
    /// Bytes of the header, MAC included.
    pub(super) header: usize,
}

impl Common {
    /// Bytes of the common part.
    pub const LENGTH: usize = 20;

    /// Reads the common part of a UDP payload; also returns the rest of the header before the MAC.
    pub(super) fn parse(bytes: &[u8]) -> Result<(Self, Frame, &[u8]), ParseError> {
        let (common, _) = take::<{ Self::LENGTH }>(bytes)?;
        let &[first, flags, o1, o0, k3, k2, k1, k0, e3, e2, e1, e0, n3, n2, n1, n0, words, eqif, p1, p0] = common;
        if first >> 4 != VERSION {
            return Err(ParseError::Version(first >> 4));
        }
        let kind = PacketType::from_code(first & 0xf)?;
        let original = u16::from_be_bytes([o1, o0]);
        let header = 4 * usize::from(words);
        let least = Self::LENGTH + kind.length() + MAC;
        if header < least || header > LONGEST || header > usize::from(original) {
            return Err(ParseError::Length { found: usize::from(original), said: header as u16 });
        }
        let inside = bytes.get(Self::LENGTH..header);
        let inside = inside.ok_or(ParseError::Truncated { found: bytes.len(), needed: header })?;
        let common = Self {
            flags: Flags::from_bits(flags),
            key_id: u32::from_be_bytes([k3, k2, k1, k0]),
            key_epoch: u32::from_be_bytes([e3, e2, e1, e0]),
            packet_number: u32::from_be_bytes([n3, n2, n1, n0]),
            eqif,
            path: u16::from_be_bytes([p1, p0]),
        };
        Ok((common, Frame { kind, original, header }, &inside[..inside.len() - MAC]))
    }

    /// Writes the common part.
    pub(super) fn emit(&self, frame: Frame) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[0] = VERSION << 4 | frame.kind as u8;
        bytes[1] = self.flags.bits();
        bytes[2..4].copy_from_slice(&frame.original.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.key_id.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.key_epoch.to_be_bytes());
        bytes[12..16].copy_from_slice(&self.packet_number.to_be_bytes());
        bytes[16] = (frame.header / 4) as u8;
        bytes[17] = self.eqif;
        bytes[18..].copy_from_slice(&self.path.to_be_bytes());
        bytes
    }
}
