//! The IPv4 header (RFC 791, with RFC 2474's DSCP and RFC 3168's ECN), without options and of unfragmented datagrams
//! only: RoCE and TCP do not rely on fragmentation.
//!
//! | bytes | bits  | field                                                    |
//! |-------|-------|----------------------------------------------------------|
//! | 0     | 7..4  | version, 4                                               |
//! |       | 3..0  | header length in words, 5                                |
//! | 1     | 7..2  | DSCP                                                     |
//! |       | 1..0  | ECN                                                      |
//! | 2-3   |       | total length, this header included                       |
//! | 4-5   |       | identification                                           |
//! | 6-7   | 15    | reserved, 0                                              |
//! |       | 14    | don't fragment                                           |
//! |       | 13..0 | more fragments, fragment offset: 0                       |
//! | 8     |       | time to live                                             |
//! | 9     |       | protocol of what follows                                 |
//! | 10-11 |       | checksum of the header (RFC 1071)                        |
//! | 12-15 |       | source address                                           |
//! | 16-19 |       | destination address                                      |

use core::net::Ipv4Addr;

use crate::error::{ParseError, take};
use crate::packet::Ecn;

/// An IPv4 header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ipv4 {
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// Congestion notification. ECT(1) is read as [`Ecn::Capable`], to which it is equivalent (RFC 3168).
    pub ecn: Ecn,
    /// Bytes of the datagram, this header included.
    pub length: u16,
    /// Identification of the datagram; part of the ICRC.
    pub identification: u16,
    /// Whether routers must not fragment the datagram.
    pub dont_fragment: bool,
    /// Time to live: number of routers that may still forward the datagram.
    pub ttl: u8,
    /// Protocol of the payload; see [`Ipv4::UDP`].
    pub protocol: u8,
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
}

/// The fields of an IPv4 header that do not follow from the carried datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Address of the sender.
    pub source: Ipv4Addr,
    /// Address of the receiver.
    pub destination: Ipv4Addr,
    /// Differentiated services code point, 6 bits.
    pub dscp: u8,
    /// Congestion notification.
    pub ecn: Ecn,
    /// Identification of the datagram.
    pub identification: u16,
    /// Time to live: number of routers that may still forward the datagram.
    pub ttl: u8,
}

impl Envelope {
    /// Returns the header of a datagram around `payload` bytes of `protocol`.
    ///
    /// # Panics
    /// If the datagram is longer than IPv4 allows.
    pub fn around(&self, protocol: u8, payload: usize) -> Ipv4 {
        let Self { source, destination, dscp, ecn, identification, ttl } = *self;
        let length = u16::try_from(Ipv4::LENGTH + payload).expect("no longer than IPv4 allows");
        Ipv4 { dscp, ecn, length, identification, dont_fragment: true, ttl, protocol, source, destination }
    }
}

impl From<Ipv4> for Envelope {
    fn from(ip: Ipv4) -> Self {
        let Ipv4 { source, destination, dscp, ecn, identification, ttl, .. } = ip;
        Self { source, destination, dscp, ecn, identification, ttl }
    }
}

impl Ipv4 {
    /// Bytes of the header.
    pub const LENGTH: usize = 20;
    /// Protocol number of TCP.
    pub const TCP: u8 = 6;
    /// Protocol number of UDP.
    pub const UDP: u8 = 17;

    /// Reads the header and checks its checksum; also returns the payload. Bytes beyond the total length (padding of a
    /// short frame) are dropped; missing bytes are an error.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed, or a checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (ip, payload) = Self::parse_cut(bytes)?;
        if payload.len() + Self::LENGTH < usize::from(ip.length) {
            return Err(ParseError::Length { found: bytes.len(), said: ip.length });
        }
        Ok((ip, payload))
    }

    /// Reads the header and checks its checksum; also returns the payload, of which a switch may have cut off the end.
    /// Bytes beyond the total length are dropped; missing bytes are no error.
    ///
    /// # Errors
    /// If the header is truncated or malformed, or its checksum is wrong.
    pub fn parse_cut(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, rest) = take::<{ Self::LENGTH }>(bytes)?;
        let &[version, tos, l0, l1, i0, i1, f0, f1, ttl, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = header;
        if version != 0x45 {
            return Err(ParseError::Version(version));
        }
        if sum(header, 0) != 0xffff {
            return Err(ParseError::Checksum);
        }
        if f0 & !0x40 != 0 || f1 != 0 {
            return Err(ParseError::Reserved);
        }
        let length = u16::from_be_bytes([l0, l1]);
        let payload = usize::from(length).checked_sub(Self::LENGTH).map(|length| &rest[..length.min(rest.len())]);
        let payload = payload.ok_or(ParseError::Length { found: bytes.len(), said: length })?;
        let ip = Self {
            dscp: tos >> 2,
            ecn: match tos & 0b11 {
                0b00 => Ecn::NotCapable,
                0b11 => Ecn::Marked,
                _ => Ecn::Capable,
            },
            length,
            identification: u16::from_be_bytes([i0, i1]),
            dont_fragment: f0 != 0,
            ttl,
            protocol,
            source: Ipv4Addr::new(s0, s1, s2, s3),
            destination: Ipv4Addr::new(d0, d1, d2, d3),
        };
        Ok((ip, payload))
    }

    /// Returns the sum of the pseudo-header of a datagram of `length` bytes (RFC 768, RFC 9293), for its checksum.
    pub fn pseudo_header(&self, length: u16) -> u16 {
        let mut header = [0; 12];
        header[..4].copy_from_slice(&self.source.octets());
        header[4..8].copy_from_slice(&self.destination.octets());
        header[9] = self.protocol;
        header[10..].copy_from_slice(&length.to_be_bytes());
        sum(&header, 0)
    }

    /// Returns the header's bytes, with its checksum. Only the low 6 bits of `dscp` are used.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let tos = self.dscp << 2 | self.ecn as u8;
        let [l0, l1] = self.length.to_be_bytes();
        let [i0, i1] = self.identification.to_be_bytes();
        let flags = u8::from(self.dont_fragment) << 6;
        let [s0, s1, s2, s3] = self.source.octets();
        let [d0, d1, d2, d3] = self.destination.octets();
        let mut header =
            [0x45, tos, l0, l1, i0, i1, flags, 0, self.ttl, self.protocol, 0, 0, s0, s1, s2, s3, d0, d1, d2, d3];
        let checksum = !sum(&header, 0);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

/// Returns the ones' complement sum of 16-bit words (RFC 1071), beginning with `start`: all ones over data that include
/// their checksum. An odd last byte counts as the first of a word.
pub(crate) fn sum(bytes: &[u8], start: u16) -> u16 {
    let (words, odd) = bytes.as_chunks::<2>();
    let words = words.iter().map(|&word| u64::from(u16::from_be_bytes(word)));
    let odd = odd.iter().map(|&byte| u64::from(byte) << 8);
    let mut sum: u64 = u64::from(start) + words.chain(odd).sum::<u64>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
