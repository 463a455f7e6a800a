//! An application's RDMA packet as a datagram, from its IP header to its ICRC.

use super::Headers;
use crate::error::ParseError;
use crate::ipv4::{Envelope, Ipv4};
use crate::roce;
use crate::udp::Udp;

/// A RoCEv2 datagram without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Fields of the IP header.
    pub envelope: Envelope,
    /// UDP source port; see [`Udp::source_port`].
    pub port: u16,
    /// The headers; their padding is derived from the payload.
    pub headers: Headers,
}

impl Datagram {
    /// Most bytes of all headers together.
    pub const LONGEST_HEADERS: usize = Ipv4::LENGTH + Udp::LENGTH + Headers::LONGEST;

    /// Reads a datagram from its IP header on and checks its ICRC; also returns its payload.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed, or a checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (envelope, port, packet) = roce::open(bytes)?;
        let (headers, payload) = Headers::parse(packet)?;
        Ok((Self { envelope, port, headers }, payload))
    }

    /// Returns the bytes of the datagram around `payload` bytes.
    pub fn length(&self, payload: usize) -> usize {
        roce::length(self.headers.length(), payload)
    }

    /// Writes the datagram around `payload` to the start of `buffer`; returns its bytes.
    ///
    /// # Panics
    /// If `buffer` is too short, or the datagram is longer than IPv4 allows.
    pub fn emit<'a>(&self, payload: &[u8], buffer: &'a mut [u8]) -> &'a [u8] {
        let mut headers = [0; Headers::LONGEST];
        let length = self.headers.emit(payload.len(), &mut headers);
        roce::enclose(&self.envelope, self.port, &headers[..length], payload, buffer)
    }
}
