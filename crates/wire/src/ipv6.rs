//! The IPv6 header (RFC 8200, with RFC 2474's DSCP and RFC 3168's ECN), without extension headers.
//!
//! | bytes | bits   | field                                                    |
//! |-------|--------|----------------------------------------------------------|
//! | 0-3   | 31..28 | version, 6                                               |
//! |       | 27..22 | DSCP                                                     |
//! |       | 21..20 | ECN                                                      |
//! |       | 19..0  | flow label                                               |
//! | 4-5   |        | payload length                                           |
//! | 6     |        | protocol of what follows                                 |
//! | 7     |        | hop limit                                                |
//! | 8-23  |        | source address                                           |
//! | 24-39 |        | destination address                                      |

use core::net::Ipv6Addr;

use crate::error::{ParseError, take};
use crate::ipv4::sum;
use crate::packet::Ecn;

/// An IPv6 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv6 {
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// Congestion notification. ECT(1) is read as [`Ecn::Capable`], to which it is equivalent (RFC 3168).
    pub ecn: Ecn,
    /// Flow label, 20 bits.
    pub flow_label: u32,
    /// Bytes behind this header.
    pub length: u16,
    /// Protocol of the payload; see [`crate::Ipv4::UDP`].
    pub protocol: u8,
    /// Number of routers that may still forward the packet.
    pub hop_limit: u8,
    /// Address of the sender.
    pub source: Ipv6Addr,
    /// Address of the receiver.
    pub destination: Ipv6Addr,
}

impl Ipv6 {
    /// Bytes of the header.
    pub const LENGTH: usize = 40;

    /// Reads the header; also returns the payload. Bytes beyond the payload length (padding of a short frame) are
    /// dropped; missing bytes are an error.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (ip, payload) = Self::parse_cut(bytes)?;
        if payload.len() < usize::from(ip.length) {
            return Err(ParseError::Length { found: bytes.len(), said: ip.length });
        }
        Ok((ip, payload))
    }

    /// Reads the header; also returns the payload, of which a switch may have cut off the end. Bytes beyond the payload
    /// length are dropped; missing bytes are no error.
    ///
    /// # Errors
    /// If the header is truncated or malformed.
    pub fn parse_cut(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, rest) = take::<{ Self::LENGTH }>(bytes)?;
        let &[w3, w2, w1, w0, l1, l0, protocol, hop_limit, ..] = header;
        let word = u32::from_be_bytes([w3, w2, w1, w0]);
        if word >> 28 != 6 {
            return Err(ParseError::Version(w3));
        }
        let address = |at: usize| Ipv6Addr::from(core::array::from_fn::<u8, 16, _>(|byte| header[at + byte]));
        let length = u16::from_be_bytes([l1, l0]);
        let ip = Self {
            dscp: (word >> 22) as u8 & 0x3f,
            ecn: match word >> 20 & 0b11 {
                0b00 => Ecn::NotCapable,
                0b11 => Ecn::Marked,
                _ => Ecn::Capable,
            },
            flow_label: word & 0xf_ffff,
            length,
            protocol,
            hop_limit,
            source: address(8),
            destination: address(24),
        };
        Ok((ip, &rest[..rest.len().min(length.into())]))
    }

    /// Returns the sum of the pseudo-header of a datagram of `length` bytes (RFC 8200, 8.1), for its checksum.
    pub fn pseudo_header(&self, length: u16) -> u16 {
        let sums = sum(&self.destination.octets(), sum(&self.source.octets(), 0));
        sum(&[0, self.protocol], sum(&length.to_be_bytes(), sums))
    }

    /// Returns the header's bytes. Only the low 6 bits of `dscp` and the low 20 bits of `flow_label` are used.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let class = u32::from(self.dscp & 0x3f) << 22 | (self.ecn as u32) << 20;
        let mut header = [0; Self::LENGTH];
        header[..4].copy_from_slice(&(6 << 28 | class | self.flow_label & 0xf_ffff).to_be_bytes());
        header[4..6].copy_from_slice(&self.length.to_be_bytes());
        header[6..8].copy_from_slice(&[self.protocol, self.hop_limit]);
        header[8..24].copy_from_slice(&self.source.octets());
        header[24..].copy_from_slice(&self.destination.octets());
        header
    }
}
