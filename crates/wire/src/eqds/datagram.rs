//! A tunnel's packet, from its IP header on.

use super::{ControlHeader, DataHeader, Layout};
use crate::error::{ParseError, take};
use crate::ipv4::{Envelope, Ipv4};
use crate::udp::Udp;

/// A datagram of an EQDS tunnel, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Fields of the IP header.
    pub envelope: Envelope,
    /// UDP port of the data's sender; see [`Udp::source_port`].
    pub port: u16,
    /// Width of the header's fields.
    pub layout: Layout,
    /// The EQDS header.
    pub body: Body,
}

/// The header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// Data, or a request to send.
    Data(DataHeader),
    /// An answer of the receiver.
    Control(ControlHeader),
}

impl Datagram {
    /// Reads a datagram from its IP header on; also returns its payload. The receiver's port determines the direction
    /// and the header's width.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed, or a checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (ip, datagram) = Ipv4::parse(bytes)?;
        if ip.protocol != Ipv4::UDP {
            return Err(ParseError::Protocol(ip.protocol));
        }
        let (udp, rest) = Udp::parse(datagram)?;
        let of = |port| [Layout::Wide, Layout::Compact].into_iter().find(|layout| layout.port() == port);
        let envelope = ip.into();
        if let Some(layout) = of(udp.destination) {
            let (header, payload) = DataHeader::parse(layout, rest)?;
            return Ok((Self { envelope, port: udp.source, layout, body: Body::Data(header) }, payload));
        }
        let layout = of(udp.source).ok_or(ParseError::Port(udp.destination))?;
        let (header, payload) = ControlHeader::parse(layout, rest)?;
        Ok((Self { envelope, port: udp.destination, layout, body: Body::Control(header) }, payload))
    }

    /// Returns whether a datagram, from its IP header on, goes to or from a tunnel's port. A datagram to RoCEv2's port
    /// is RDMA, whatever its source port, which is entropy and may equal a tunnel's port by chance.
    pub fn is_one(bytes: &[u8]) -> bool {
        let ports = || {
            let (_, datagram) = Ipv4::parse(bytes).ok()?;
            let (&[s1, s0, d1, d0], _) = take::<4>(datagram).ok()?;
            Some((u16::from_be_bytes([s1, s0]), u16::from_be_bytes([d1, d0])))
        };
        let is_ours = |port| port == Layout::Wide.port() || port == Layout::Compact.port();
        ports().is_some_and(|(from, to)| is_ours(to) || is_ours(from) && to != Udp::ROCE)
    }

    /// Returns the bytes of the datagram around `payload` bytes.
    pub fn length(&self, payload: usize) -> usize {
        Ipv4::LENGTH + Udp::LENGTH + self.layout.length() + payload
    }

    /// Writes the datagram around `payload` to the start of `buffer`; returns its bytes.
    ///
    /// # Panics
    /// If `buffer` is too short, or the datagram is longer than IPv4 allows.
    pub fn emit<'a>(&self, payload: &[u8], buffer: &'a mut [u8]) -> &'a [u8] {
        let ip = self.envelope.around(Ipv4::UDP, self.length(payload.len()) - Ipv4::LENGTH);
        let length = ip.length - Ipv4::LENGTH as u16;
        let mut place = [0; 16];
        let (header, source, destination) = match &self.body {
            Body::Data(header) => (header.emit(self.layout, &mut place), self.port, self.layout.port()),
            Body::Control(header) => (header.emit(self.layout, &mut place), self.layout.port(), self.port),
        };
        let udp = Udp { source, destination, length, checksum: 0 };
        let (buffer, _) = buffer.split_at_mut(self.length(payload.len()));
        let (first, rest) = buffer.split_at_mut(Ipv4::LENGTH);
        first.copy_from_slice(&ip.emit());
        rest[..Udp::LENGTH].copy_from_slice(&udp.emit());
        rest[Udp::LENGTH..][..header.len()].copy_from_slice(header);
        rest[Udp::LENGTH + header.len()..].copy_from_slice(payload);
        buffer
    }
}
