//! A whole Ethernet frame as in a capture: without its FCS.

use crate::eqds;
use crate::error::ParseError;
use crate::ethernet::{EtherType, Ethernet, MacAddress};
use crate::ipv4::Ipv4;
use crate::pfc::Pfc;
use crate::roce::Roce;
use crate::tcp::TcpDatagram;
use crate::verbs;

/// An Ethernet frame without its payload and its FCS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Address of the receiver on this link.
    pub destination: MacAddress,
    /// Address of the sender on this link.
    pub source: MacAddress,
    /// Content of the frame.
    pub content: Content,
}

/// The content of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// RDMA that [`Roce`] can express: of a NIC that supports only Writes.
    Roce(Roce),
    /// RDMA that [`Roce`] cannot express.
    Rdma(verbs::Datagram),
    /// TCP.
    Tcp(TcpDatagram),
    /// EQDS.
    Eqds(eqds::Datagram),
    /// Priority flow control.
    Pfc(Pfc),
}

impl Frame {
    /// Reads a frame; also returns its payload.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed, or a checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (ethernet, rest) = Ethernet::parse(bytes)?;
        let (content, payload) = match ethernet.kind {
            EtherType::IPV4 if Ipv4::parse(rest)?.0.protocol == Ipv4::TCP => {
                TcpDatagram::parse(rest).map(|(tcp, payload)| (Content::Tcp(tcp), payload))?
            }
            EtherType::IPV4 if eqds::Datagram::is_one(rest) => {
                eqds::Datagram::parse(rest).map(|(eqds, payload)| (Content::Eqds(eqds), payload))?
            }
            EtherType::IPV4 => match Roce::parse(rest) {
                Err(ParseError::Opcode(_)) => {
                    verbs::Datagram::parse(rest).map(|(rdma, payload)| (Content::Rdma(rdma), payload))?
                }
                roce => roce.map(|(roce, payload)| (Content::Roce(roce), payload))?,
            },
            EtherType::MAC_CONTROL => Pfc::parse(rest).map(|(pfc, _)| (Content::Pfc(pfc), &rest[..0]))?,
            kind => return Err(ParseError::EtherType(kind)),
        };
        Ok((Self { destination: ethernet.destination, source: ethernet.source, content }, payload))
    }

    /// Returns the bytes of the frame around `payload` bytes.
    pub fn length(&self, payload: usize) -> usize {
        let content = match &self.content {
            Content::Roce(roce) => roce.length(payload),
            Content::Rdma(rdma) => rdma.length(payload),
            Content::Tcp(tcp) => tcp.length(payload),
            Content::Eqds(eqds) => eqds.length(payload),
            Content::Pfc(_) => Pfc::LENGTH,
        };
        (Ethernet::LENGTH + content).max(Ethernet::MINIMUM)
    }

    /// Writes the frame around `payload` to the start of `buffer`; returns its bytes.
    ///
    /// # Panics
    /// If `buffer` is too short, or the datagram is longer than IPv4 allows.
    pub fn emit<'a>(&self, payload: &[u8], buffer: &'a mut [u8]) -> &'a [u8] {
        let (frame, _) = buffer.split_at_mut(self.length(payload.len()));
        let (header, rest) = frame.split_at_mut(Ethernet::LENGTH);
        let (kind, used) = match &self.content {
            Content::Roce(roce) => (EtherType::IPV4, roce.emit(payload, rest).len()),
            Content::Rdma(rdma) => (EtherType::IPV4, rdma.emit(payload, rest).len()),
            Content::Tcp(tcp) => (EtherType::IPV4, tcp.emit(payload, rest).len()),
            Content::Eqds(eqds) => (EtherType::IPV4, eqds.emit(payload, rest).len()),
            Content::Pfc(pfc) => {
                rest[..Pfc::LENGTH].copy_from_slice(&pfc.emit());
                (EtherType::MAC_CONTROL, Pfc::LENGTH)
            }
        };
        rest[used..].fill(0);
        header.copy_from_slice(&Ethernet { destination: self.destination, source: self.source, kind }.emit());
        frame
    }
}
