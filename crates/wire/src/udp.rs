//! The UDP header (RFC 768).
//!
//! | bytes | field                                                  |
//! |-------|--------------------------------------------------------|
//! | 0-1   | source port                                            |
//! | 2-3   | destination port                                       |
//! | 4-5   | length, this header included                           |
//! | 6-7   | checksum; 0 is none, as in RoCEv2 over IPv4             |

use crate::error::{ParseError, take};
use crate::ipv4::sum;

/// A UDP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Udp {
    /// Source port; in RoCEv2, a flow's entropy for ECMP.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Bytes of the datagram, this header included.
    pub length: u16,
    /// Checksum, not checked; 0 is none.
    pub checksum: u16,
}

impl Udp {
    /// Bytes of the header.
    pub const LENGTH: usize = 8;
    /// Destination port of RoCEv2.
    pub const ROCE: u16 = 4791;

    /// Returns the source port of a RoCEv2 flow with this entropy: one of the dynamic ports, 49152 to 65535.
    pub const fn source_port(entropy: u32) -> u16 {
        0xc000 | (entropy & 0x3fff) as u16
    }

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (udp, payload) = Self::parse_cut(bytes)?;
        if payload.len() + Self::LENGTH < usize::from(udp.length) {
            return Err(ParseError::Length { found: bytes.len(), said: udp.length });
        }
        Ok((udp, payload))
    }

    /// Reads the header; also returns the payload, of which a switch may have cut off the end. Bytes beyond the length
    /// are dropped; missing bytes are no error.
    ///
    /// # Errors
    /// If the header is truncated, or its length is less than its own.
    pub fn parse_cut(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[s0, s1, d0, d1, l0, l1, c0, c1], _) = take::<{ Self::LENGTH }>(bytes)?;
        let length = u16::from_be_bytes([l0, l1]);
        let payload = bytes.get(Self::LENGTH..usize::from(length).min(bytes.len()));
        let payload = payload.ok_or(ParseError::Length { found: bytes.len(), said: length })?;
        let udp = Self {
            source: u16::from_be_bytes([s0, s1]),
            destination: u16::from_be_bytes([d0, d1]),
            length,
            checksum: u16::from_be_bytes([c0, c1]),
        };
        Ok((udp, payload))
    }

    /// Returns the checksum of a datagram whose header, with checksum 0, and payload are `bytes`; zero stands for no
    /// checksum and is never returned. `pseudo` is the sum of the pseudo-header ([`Ipv4::pseudo_header`],
    /// [`Ipv6::pseudo_header`]).
    ///
    /// [`Ipv4::pseudo_header`]: crate::Ipv4::pseudo_header
    /// [`Ipv6::pseudo_header`]: crate::Ipv6::pseudo_header
    pub fn checksum_of(bytes: &[u8], pseudo: u16) -> u16 {
        match !sum(bytes, pseudo) {
            0 => u16::MAX,
            checksum => checksum,
        }
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let [s0, s1] = self.source.to_be_bytes();
        let [d0, d1] = self.destination.to_be_bytes();
        let [l0, l1] = self.length.to_be_bytes();
        let [c0, c1] = self.checksum.to_be_bytes();
        [s0, s1, d0, d1, l0, l1, c0, c1]
    }
}
