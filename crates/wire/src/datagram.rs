//! RoCEv2-like UDP datagrams: what two data planes exchange.
//!
//! ```text
//! data             BTH  extension  payload
//! acknowledgement  BTH  extension  AETH
//! notification     BTH  16 bytes of zero
//! ```
//!
//! The BTH's PSN is the packet's own on data. On a NACK it is the expected PSN and on an ACK the one
//! before it, the last that arrived in order (InfiniBand architecture, volume 1, chapter 9). There is no
//! ICRC: the UDP checksum covers the datagram, and nothing on the way rewrites it.

use selvedge_units::{Instant, Psn, QpNumber};

use crate::aeth::{Aeth, Syndrome};
use crate::bth::{Bth, Opcode};
use crate::cnp;
use crate::error::ParseError;
use crate::extension::Extension;
use crate::packet::{Ack, AckKind, Data};

/// The headers of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The queue pair, 24 bits.
    pub qp: QpNumber,
    /// When the data packet left its sender; acknowledgements echo it, notifications do not.
    pub sent_at: Instant,
    /// What kind of packet.
    pub body: Body,
}

/// Kinds of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// A piece of a message; the payload follows the headers.
    Data(Data),
    /// An acknowledgement.
    Ack(Ack),
    /// A congestion notification.
    Cnp,
}

impl Datagram {
    /// Bytes of headers before the payload of a data packet.
    pub const DATA_HEADERS: usize = Bth::LENGTH + Extension::LENGTH;
    /// Bytes of an acknowledgement; no datagram has more bytes of headers.
    pub const LONGEST_HEADERS: usize = Self::DATA_HEADERS + Aeth::LENGTH;
    const _NOTIFICATION_FITS: () = assert!(Bth::LENGTH + cnp::LENGTH == Self::LONGEST_HEADERS);
    /// The default partition.
    const PARTITION: u16 = 0xffff;

    /// Reads a datagram; returns its payload, too (empty for an acknowledgement).
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (bth, rest) = Bth::parse(bytes)?;
        if bth.opcode == Opcode::CONGESTION_NOTIFICATION {
            let rest = cnp::parse(rest)?;
            return Ok((Self { qp: bth.destination, sent_at: Instant::ZERO, body: Body::Cnp }, &rest[..0]));
        }
        let (extension, rest) = Extension::parse(rest)?;
        let (body, payload) = match bth.opcode {
            Opcode::SEND_MIDDLE | Opcode::SEND_LAST => {
                let data = Data {
                    psn: bth.psn,
                    payload: u16::try_from(rest.len()).map_err(|_| ParseError::Oversized(rest.len()))?,
                    last: bth.opcode == Opcode::SEND_LAST,
                    retransmission: extension.retransmission,
                };
                (Body::Data(data), rest)
            }
            Opcode::ACKNOWLEDGE => {
                let (aeth, rest) = Aeth::parse(rest)?;
                let (kind, expected) = match aeth.syndrome {
                    Syndrome::Ack(_) => (AckKind::Ack, Psn::new(bth.psn.get() + 1)),
                    Syndrome::SEQUENCE_ERROR => (AckKind::Nack, bth.psn),
                    Syndrome::NotReady(_) | Syndrome::Nak(_) => return Err(ParseError::Syndrome(aeth.emit()[0])),
                };
                let ack = Ack { kind, ecn_echo: bth.becn, expected, sack: extension.sack, msn: aeth.msn };
                (Body::Ack(ack), &rest[..0])
            }
            opcode => return Err(ParseError::Opcode(opcode)),
        };
        Ok((Self { qp: bth.destination, sent_at: extension.sent_at, body }, payload))
    }

    /// Writes the headers into `buffer`; returns their bytes. A data packet's payload goes behind.
    pub fn emit<'a>(&self, buffer: &'a mut [u8; Self::LONGEST_HEADERS]) -> &'a [u8] {
        let bth = Bth { destination: self.qp, partition: Self::PARTITION, ..Bth::default() };
        let (first, rest) = buffer.split_at_mut(Bth::LENGTH);
        let extension = Extension { sent_at: self.sent_at, ..Extension::default() };
        let (bth, extension, aeth) = match self.body {
            Body::Data(data) => {
                let opcode = if data.last { Opcode::SEND_LAST } else { Opcode::SEND_MIDDLE };
                let bth = Bth { opcode, ack_request: true, psn: data.psn, ..bth };
                (bth, Extension { retransmission: data.retransmission, ..extension }, None)
            }
            Body::Ack(ack) => {
                let (syndrome, psn) = match ack.kind {
                    AckKind::Ack => (Syndrome::NO_CREDITS, Psn::new(ack.expected.get().wrapping_sub(1))),
                    AckKind::Nack => (Syndrome::SEQUENCE_ERROR, ack.expected),
                };
                let bth = Bth { opcode: Opcode::ACKNOWLEDGE, becn: ack.ecn_echo, psn, ..bth };
                (bth, Extension { sack: ack.sack, ..extension }, Some(Aeth { syndrome, msn: ack.msn }))
            }
            Body::Cnp => {
                let bth = Bth { opcode: Opcode::CONGESTION_NOTIFICATION, becn: true, ..bth };
                first.copy_from_slice(&bth.emit());
                rest.copy_from_slice(&cnp::emit());
                return &buffer[..];
            }
        };
        let (second, third) = rest.split_at_mut(Extension::LENGTH);
        first.copy_from_slice(&bth.emit());
        second.copy_from_slice(&extension.emit());
        let Some(aeth) = aeth else { return &buffer[..Self::DATA_HEADERS] };
        third.copy_from_slice(&aeth.emit());
        &buffer[..]
    }
}
