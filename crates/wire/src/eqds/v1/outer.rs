//! The datagram around a tunnel's packet: UDP over IPv4 or IPv6.
//!
//! A switch that trims either rewrites the lengths of IP and UDP, or leaves them as they were, so that they say more
//! than what is there. Both are read. The header's own length field tells a trimmed packet in either case.

use crate::error::ParseError;
use crate::ipv4::Ipv4;
use crate::ipv6::Ipv6;
use crate::udp::Udp;

/// IP header of a tunnel's datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outer {
    /// IPv4.
    V4(Ipv4),
    /// IPv6.
    V6(Ipv6),
}

/// Whether the lengths of IP and UDP agree with the bytes of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cut {
    /// The lengths agree: the datagram is whole, or a switch has rewritten them.
    Agrees,
    /// The length of IP or UDP says more than what is there.
    SaysMore,
}

/// A datagram, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The IP header.
    pub outer: Outer,
    /// The UDP header, whose checksum is not checked: a switch that trims need not correct it.
    pub udp: Udp,
}

impl Datagram {
    /// Bytes of the longest headers around a UDP payload.
    pub const LONGEST: usize = Ipv6::LENGTH + Udp::LENGTH;

    /// Reads a datagram from its IP header on; also returns the UDP payload that is there, and whether lengths say
    /// more.
    ///
    /// # Errors
    /// If the IP or UDP header is truncated or malformed, or the protocol is not UDP.
    pub fn parse(bytes: &[u8]) -> Result<(Self, Cut, &[u8]), ParseError> {
        let version = bytes.first().ok_or(ParseError::Truncated { found: 0, needed: Ipv4::LENGTH })? >> 4;
        let (outer, protocol, said, rest) = if version == 6 {
            let (ip, rest) = Ipv6::parse_cut(bytes)?;
            (Outer::V6(ip), ip.protocol, usize::from(ip.length), rest)
        } else {
            let (ip, rest) = Ipv4::parse_cut(bytes)?;
            (Outer::V4(ip), ip.protocol, usize::from(ip.length) - Ipv4::LENGTH, rest)
        };
        if protocol != Ipv4::UDP {
            return Err(ParseError::Protocol(protocol));
        }
        let (udp, payload) = Udp::parse_cut(rest)?;
        let is_short = rest.len() < said || Udp::LENGTH + payload.len() < usize::from(udp.length);
        Ok((Self { outer, udp }, if is_short { Cut::SaysMore } else { Cut::Agrees }, payload))
    }

    /// Returns the bytes of the headers.
    pub const fn length(&self) -> usize {
        match self.outer {
            Outer::V4(_) => Ipv4::LENGTH + Udp::LENGTH,
            Outer::V6(_) => Ipv6::LENGTH + Udp::LENGTH,
        }
    }

    /// Writes the headers around `payload`, and the payload, to the start of `buffer`; returns the datagram. Lengths
    /// and UDP's checksum are those of the payload, whatever `self` says.
    ///
    /// # Panics
    /// If `buffer` is too short, or the datagram is longer than IP allows.
    pub fn emit<'a>(&self, payload: &[u8], buffer: &'a mut [u8]) -> &'a [u8] {
        let headers = self.length();
        let too_long = "no longer than IP allows";
        let length = u16::try_from(Udp::LENGTH + payload.len()).expect(too_long);
        let bytes = &mut buffer[..headers + payload.len()];
        let pseudo = match self.outer {
            Outer::V4(ip) => {
                let ip = Ipv4 { length: length.checked_add(Ipv4::LENGTH as u16).expect(too_long), ..ip };
                bytes[..Ipv4::LENGTH].copy_from_slice(&ip.emit());
                ip.pseudo_header(length)
            }
            Outer::V6(ip) => {
                let ip = Ipv6 { length, ..ip };
                bytes[..Ipv6::LENGTH].copy_from_slice(&ip.emit());
                ip.pseudo_header(length)
            }
        };
        let udp = &mut bytes[headers - Udp::LENGTH..];
        udp[..Udp::LENGTH].copy_from_slice(&Udp { length, checksum: 0, ..self.udp }.emit());
        udp[Udp::LENGTH..].copy_from_slice(payload);
        let checksum = Udp::checksum_of(udp, pseudo);
        udp[6..8].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }
}
