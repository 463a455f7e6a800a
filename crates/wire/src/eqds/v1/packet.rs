//! A whole header of version 1, with the payload behind it.

use super::common::Frame;
use super::{Body, Common, Flags, LONGEST, MAC, Options};
use crate::error::ParseError;

/// A packet of a tunnel, without MAC and payload.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Packet {
    /// Fields that every header has.
    pub common: Common,
    /// Fields of the packet's type.
    pub body: Body,
    /// Options.
    pub options: Options,
}

/// A packet that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parsed<'a> {
    /// The fields of the header. They are to be trusted only after the MAC has been verified.
    pub packet: Packet,
    /// Bytes of the UDP payload as it was sent.
    pub original: u16,
    /// The header's bytes, the MAC included.
    header: &'a [u8],
    /// The payload, or the part of it that a switch has left.
    rest: &'a [u8],
}

impl Packet {
    /// Returns the bytes of the header, MAC included: a multiple of 4, at most [`LONGEST`].
    pub const fn header(&self) -> usize {
        Common::LENGTH + self.body.kind().length() + self.options.length() + MAC
    }

    /// Returns the sequence number of data and requests to send.
    pub const fn seq(&self) -> Option<u32> {
        match self.body {
            Body::Data(data) | Body::Request(data) => Some(data.seq),
            _ => None,
        }
    }

    /// Writes the header of a packet with `payload` bytes into `buffer`; the MAC is zero. Returns the header's bytes,
    /// of which the last [`MAC`] are for the MAC of the others.
    ///
    /// # Panics
    /// If header and payload together have more than 65,535 bytes, or `buffer` has less than the header's.
    pub fn emit<'a>(&self, payload: usize, buffer: &'a mut [u8]) -> &'a mut [u8] {
        let header = self.header();
        let original = u16::try_from(header + payload).expect("no longer than a UDP payload can be");
        let frame = Frame { kind: self.body.kind(), original, header };
        let bytes = &mut buffer[..header];
        bytes[..Common::LENGTH].copy_from_slice(&self.common.emit(frame));
        let (body, rest) = bytes[Common::LENGTH..].split_at_mut(frame.kind.length());
        let (options, mac) = rest.split_at_mut(self.options.length());
        self.body.emit(body);
        self.options.emit(options);
        mac.fill(0);
        bytes
    }

    /// Reads a UDP payload, of which a switch may have cut off the end behind the header.
    ///
    /// # Errors
    /// If the version or the type is unknown, a length is impossible, the header is truncated, an option is malformed
    /// or is unknown and critical, or there are more bytes than were sent.
    pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, ParseError> {
        let (common, frame, inside) = Common::parse(bytes)?;
        if bytes.len() > usize::from(frame.original) {
            return Err(ParseError::Length { found: bytes.len(), said: frame.original });
        }
        let (body, options) = Body::parse(frame.kind, inside)?;
        let options = Options::parse(options)?;
        let (header, rest) = bytes.split_at(frame.header);
        Ok(Parsed { packet: Self { common, body, options }, original: frame.original, header, rest })
    }
}

impl<'a> Parsed<'a> {
    /// Returns the bytes that the MAC is computed over: the header without the MAC, and without the mark of trimming.
    /// `place` is used if the packet has the mark.
    pub fn covered<'b>(&'b self, place: &'b mut [u8; LONGEST]) -> &'b [u8] {
        let covered = &self.header[..self.header.len() - MAC];
        if !self.packet.common.flags.any(Flags::TRIMMED) {
            return covered;
        }
        let place = &mut place[..covered.len()];
        place.copy_from_slice(covered);
        place[1] &= !Flags::TRIMMED.bits();
        place
    }

    /// Returns the MAC.
    pub fn mac(&self) -> [u8; MAC] {
        let (_, mac) = self.header.split_last_chunk().expect("a header ends with its MAC");
        *mac
    }

    /// Returns whether a switch has cut the packet: it says so, or bytes are missing.
    pub fn is_trimmed(&self) -> bool {
        self.packet.common.flags.any(Flags::TRIMMED) || self.header.len() + self.rest.len() < usize::from(self.original)
    }

    /// Returns the header's bytes, the MAC included.
    pub fn header(&self) -> &'a [u8] {
        self.header
    }

    /// Returns the payload; `None` if the packet is trimmed.
    pub fn payload(&self) -> Option<&'a [u8]> {
        (!self.is_trimmed()).then_some(self.rest)
    }

    /// Returns the bytes of the payload as it was sent.
    pub fn sent_payload(&self) -> usize {
        usize::from(self.original) - self.header.len()
    }
}
