//! A tunnel's packet from its IP header on.

use super::{ControlHeader, DataHeader, Layout};
use crate::error::{ParseError, take};
use crate::ipv4::{Envelope, Ipv4};
use crate::udp::Udp;

/// A datagram of an EQDS tunnel, without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// What is on the envelope.
    pub envelope: Envelope,
    /// The UDP port of the data's sender; see [`Udp::source_port`].
    pub port: u16,
    /// How wide the header's fields are.
    pub layout: Layout,
    /// The header.
    pub body: Body,
}

/// The header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// Data, or a request to send.
    Data(DataHeader),
    /// An answer.
    Control(ControlHeader),
}

impl Datagram {
    /// Reads a datagram from its IP header on; returns its payload, too. The receiver's port says which way it goes and
    /// how wide its header is.
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

    /// Whether a datagram from its IP header on goes to or from a tunnel's port. What goes to RoCEv2's is RDMA,
    /// whatever its source port: that is entropy, and may be a tunnel's by chance.
    pub fn is_one(bytes: &[u8]) -> bool {
        let ports = || {
            let (_, datagram) = Ipv4::parse(bytes).ok()?;
            let (&[s1, s0, d1, d0], _) = take::<4>(datagram).ok()?;
            Some((u16::from_be_bytes([s1, s0]), u16::from_be_bytes([d1, d0])))
        };
        let is_ours = |port| port == Layout::Wide.port() || port == Layout::Compact.port();
        ports().is_some_and(|(from, to)| is_ours(to) || is_ours(from) && to != Udp::ROCE)
    }

    /// Bytes of the datagram around `payload` bytes.
    pub fn length(&self, payload: usize) -> usize {
        Ipv4::LENGTH + Udp::LENGTH + self.layout.length() + payload
    }

    /// Writes the datagram around `payload` into the beginning of `buffer`; returns its bytes.
    ///
    /// # Panics
    /// When `buffer` is too short, or the datagram longer than IPv4 allows.
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
