//! A RoCEv2 datagram from its IP header to its ICRC (InfiniBand architecture, volume 1, annex A17).
//!
//! ```text
//! IPv4  UDP  BTH  extended header  payload  padding  ICRC
//! ```
//!
//! Lengths, padding and checksums are derived from the other fields and not stored.

use crate::aeth::Aeth;
use crate::bth::{Bth, Opcode};
use crate::cnp;
use crate::error::{ParseError, take};
use crate::extension::Extension;
use crate::holes::{Hole, Holes};
use crate::icrc::Icrc;
use crate::ipv4::{Envelope, Ipv4};
use crate::netrt::Message;
use crate::reth::Reth;
use crate::udp::Udp;

/// A RoCEv2 datagram without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Roce {
    /// Fields of the IP header.
    pub envelope: Envelope,
    /// UDP source port; see [`Udp::source_port`].
    pub port: u16,
    /// The base transport header; `pad` is derived from the payload.
    pub bth: Bth,
    /// Extended headers, as the opcode determines.
    pub extended: Extended,
}

/// The headers after a BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extended {
    /// No header: the payload follows.
    None,
    /// Destination of a Write.
    Reth(Reth),
    /// Acknowledgement by the responder.
    Aeth(Aeth),
    /// Acknowledgement with the packet that triggered it (Selvedge's extension).
    Selective(Aeth, Extension),
    /// Acknowledgement with the packet that triggered it and the missing packets (MELO).
    Holes(Aeth, Extension, Holes),
    /// No header, of a congestion notification.
    Cnp,
    /// Message between switches (NetRT).
    NetRt(Message),
}

impl Roce {
    /// Most bytes of all headers together.
    pub const LONGEST_HEADERS: usize = Ipv4::LENGTH + Udp::LENGTH + Bth::LENGTH + Extended::LONGEST;

    /// Reads a datagram from its IP header on and checks its ICRC; also returns its payload.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed, or a checksum is wrong.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (envelope, port, packet) = open(bytes)?;
        let (bth, covered) = Bth::parse(packet)?;
        let (extended, padded) = Extended::parse(bth.opcode, covered)?;
        let payload = padded.len().checked_sub(usize::from(bth.pad)).filter(|_| padded.len().is_multiple_of(4));
        let payload = payload.ok_or(ParseError::Padding(bth.pad))?;
        Ok((Self { envelope, port, bth, extended }, &padded[..payload]))
    }

    /// Returns the bytes of the datagram around `payload` bytes.
    pub fn length(&self, payload: usize) -> usize {
        length(Bth::LENGTH + self.extended.length(), payload)
    }

    /// Writes the datagram around `payload` to the start of `buffer`; returns its bytes.
    ///
    /// # Panics
    /// If `buffer` is too short, or the datagram is longer than IPv4 allows.
    pub fn emit<'a>(&self, payload: &[u8], buffer: &'a mut [u8]) -> &'a [u8] {
        let pad = payload.len().next_multiple_of(4) - payload.len();
        let mut headers = [0; Bth::LENGTH + Extended::LONGEST];
        let headers = &mut headers[..Bth::LENGTH + self.extended.length()];
        let (bth, extended) = headers.split_at_mut(Bth::LENGTH);
        bth.copy_from_slice(&Bth { pad: pad as u8, ..self.bth }.emit());
        self.extended.emit(extended);
        enclose(&self.envelope, self.port, headers, payload, buffer)
    }
}

/// Returns the bytes of a datagram with `headers` bytes of headers from the BTH on.
pub(crate) fn length(headers: usize, payload: usize) -> usize {
    Ipv4::LENGTH + Udp::LENGTH + headers + payload.next_multiple_of(4) + Icrc::LENGTH
}

/// Opens a datagram and checks its ICRC; returns the IP header's fields, the source port, and the packet from its BTH
/// on.
pub(crate) fn open(bytes: &[u8]) -> Result<(Envelope, u16, &[u8]), ParseError> {
    let (ip, datagram) = Ipv4::parse(bytes)?;
    if ip.protocol != Ipv4::UDP {
        return Err(ParseError::Protocol(ip.protocol));
    }
    let (udp, rest) = Udp::parse(datagram)?;
    if udp.destination != Udp::ROCE {
        return Err(ParseError::Port(udp.destination));
    }
    let needed = Bth::LENGTH + Icrc::LENGTH;
    let truncated = ParseError::Truncated { found: rest.len(), needed };
    let (packet, icrc) = rest.split_last_chunk::<{ Icrc::LENGTH }>().ok_or(truncated)?;
    let (bth, covered) = packet.split_first_chunk().ok_or(truncated)?;
    let mut crc = Icrc::begin(*take(bytes)?.0, *take(datagram)?.0, *bth);
    crc.update(covered);
    if crc.finish() == *icrc { Ok((ip.into(), udp.source, packet)) } else { Err(ParseError::Checksum) }
}

/// Writes a datagram with these `headers` from the BTH on, which give the padding of the payload.
pub(crate) fn enclose<'a>(
    envelope: &Envelope,
    port: u16,
    headers: &[u8],
    payload: &[u8],
    buffer: &'a mut [u8],
) -> &'a [u8] {
    let ip = envelope.around(Ipv4::UDP, length(headers.len(), payload.len()) - Ipv4::LENGTH);
    let length = ip.length;
    let udp = Udp { source: port, destination: Udp::ROCE, length: length - Ipv4::LENGTH as u16, checksum: 0 };
    let (ip, udp) = (ip.emit(), udp.emit());
    let (buffer, _) = buffer.split_at_mut(usize::from(length));
    let (fixed, rest) = buffer.split_at_mut(Ipv4::LENGTH + Udp::LENGTH);
    let (packet, icrc) = rest.split_at_mut(rest.len() - Icrc::LENGTH);
    fixed[..Ipv4::LENGTH].copy_from_slice(&ip);
    fixed[Ipv4::LENGTH..].copy_from_slice(&udp);
    let (front, padded) = packet.split_at_mut(headers.len());
    front.copy_from_slice(headers);
    padded[..payload.len()].copy_from_slice(payload);
    padded[payload.len()..].fill(0);
    let mut bth = [0; Bth::LENGTH];
    bth.copy_from_slice(&packet[..Bth::LENGTH]);
    let mut crc = Icrc::begin(ip, udp, bth);
    crc.update(&packet[Bth::LENGTH..]);
    icrc.copy_from_slice(&crc.finish());
    buffer
}

impl Extended {
    /// Most bytes of the headers after a BTH.
    const LONGEST: usize = Aeth::LENGTH + Extension::LENGTH + Hole::THREE;

    /// Reads the headers after a BTH with this opcode; also returns the rest of the bytes.
    fn parse(opcode: u8, bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        match opcode {
            Opcode::SEND_FIRST
            | Opcode::SEND_MIDDLE
            | Opcode::SEND_LAST
            | Opcode::SEND_ONLY
            | Opcode::WRITE_MIDDLE
            | Opcode::WRITE_LAST => Ok((Self::None, bytes)),
            Opcode::WRITE_FIRST | Opcode::WRITE_ONLY => Reth::parse(bytes).map(|(reth, rest)| (Self::Reth(reth), rest)),
            Opcode::ACKNOWLEDGE => match Aeth::parse(bytes)? {
                (aeth, []) => Ok((Self::Aeth(aeth), &[])),
                (aeth, rest) => match Extension::parse(rest)? {
                    (extension, rest) if extension.holes => {
                        Hole::parse_three(rest).map(|(holes, rest)| (Self::Holes(aeth, extension, holes), rest))
                    }
                    (extension, rest) => Ok((Self::Selective(aeth, extension), rest)),
                },
            },
            Opcode::CONGESTION_NOTIFICATION => cnp::parse(bytes).map(|rest| (Self::Cnp, rest)),
            Opcode::NETRT => Message::parse(bytes).map(|(message, rest)| (Self::NetRt(message), rest)),
            opcode => Err(ParseError::Opcode(opcode)),
        }
    }

    fn length(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Reth(_) => Reth::LENGTH,
            Self::Aeth(_) => Aeth::LENGTH,
            Self::Selective(..) => Aeth::LENGTH + Extension::LENGTH,
            Self::Holes(..) => Aeth::LENGTH + Extension::LENGTH + Hole::THREE,
            Self::Cnp => cnp::LENGTH,
            Self::NetRt(message) => message.length(),
        }
    }

    /// Writes the headers into `place`, which has their length.
    fn emit(&self, place: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Reth(reth) => place.copy_from_slice(&reth.emit()),
            Self::Aeth(aeth) => place.copy_from_slice(&aeth.emit()),
            Self::Selective(aeth, extension) => {
                place[..Aeth::LENGTH].copy_from_slice(&aeth.emit());
                place[Aeth::LENGTH..].copy_from_slice(&extension.emit());
            }
            Self::Holes(aeth, extension, holes) => {
                let (selective, place) = place.split_at_mut(Aeth::LENGTH + Extension::LENGTH);
                Self::Selective(*aeth, Extension { holes: true, ..*extension }).emit(selective);
                place.copy_from_slice(&Hole::emit_three(holes));
            }
            Self::Cnp => place.copy_from_slice(&cnp::emit()),
            Self::NetRt(message) => message.emit(place),
        }
    }
}
