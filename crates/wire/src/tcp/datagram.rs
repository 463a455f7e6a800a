//! A TCP segment in its IP datagram, with its checksum.

use super::Header;
use crate::error::ParseError;
use crate::ipv4::{Envelope, Ipv4, sum};

/// A TCP segment in its IP datagram, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpDatagram {
    /// Fields of the IP header.
    pub envelope: Envelope,
    /// The TCP header; the length of the payload follows from the payload itself.
    pub header: Header,
}

/// Position of the checksum in a header.
const CHECKSUM: core::ops::Range<usize> = 16..18;

impl TcpDatagram {
    /// Reads a datagram from its IP header on and checks the segment's checksum; also returns its payload.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed, or a checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (ip, segment) = Ipv4::parse(bytes)?;
        if ip.protocol != Ipv4::TCP {
            return Err(ParseError::Protocol(ip.protocol));
        }
        if sum(segment, ip.pseudo_header(ip.length - Ipv4::LENGTH as u16)) != 0xffff {
            return Err(ParseError::Checksum);
        }
        let (header, payload) = Header::parse(segment)?;
        Ok((Self { envelope: ip.into(), header }, payload))
    }

    /// Returns the bytes of the datagram around `payload` bytes.
    pub fn length(&self, payload: usize) -> usize {
        Ipv4::LENGTH + self.header.segment.header() + payload
    }

    /// Writes the datagram around `payload` to the start of `buffer`; returns its bytes.
    ///
    /// # Panics
    /// If `buffer` is too short, or the datagram is longer than IPv4 allows.
    pub fn emit<'a>(&self, payload: &[u8], buffer: &'a mut [u8]) -> &'a [u8] {
        let length = self.length(payload.len());
        let ip = self.envelope.around(Ipv4::TCP, length - Ipv4::LENGTH);
        let (buffer, _) = buffer.split_at_mut(length);
        let (first, segment) = buffer.split_at_mut(Ipv4::LENGTH);
        first.copy_from_slice(&ip.emit());
        let mut place = [0; Header::LONGEST];
        let header = self.header.emit(&mut place);
        segment[..header.len()].copy_from_slice(header);
        segment[header.len()..].copy_from_slice(payload);
        let checksum = !sum(segment, ip.pseudo_header(ip.length - Ipv4::LENGTH as u16));
        segment[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
        buffer
    }
}
