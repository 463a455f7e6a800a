//! RoCEv2-like UDP datagrams, as exchanged by two data planes.
//!
//! ```text
//! data             BTH  extension  payload
//! acknowledgement  BTH  AETH  extension  [holes]
//! notification     BTH  16 bytes of zero
//! ```
//!
//! Every dissector of RoCEv2 understands the headers and takes the extension for payload; other NICs do not know the
//! extension. An [ICRC](crate::Icrc) follows at the end, added and checked by the layer that knows the addresses.

use selvedge_units::{Instant, QpNumber};

use crate::aeth::Aeth;
use crate::bth::{Bth, Opcode};
use crate::cnp;
use crate::error::ParseError;
use crate::extension::{Extension, Waited};
use crate::holes::Hole;
use crate::packet::{Ack, AckKind, Data, HoleNack};

/// The headers of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The queue pair, 24 bits.
    pub qp: QpNumber,
    /// Time at which the data packet was sent; echoed by acknowledgements, absent in notifications.
    pub sent_at: Instant,
    /// Kind of the packet.
    pub body: Body,
}

/// Kinds of datagrams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Body {
    /// A packet of a message; the payload follows the headers.
    Data(Data),
    /// An acknowledgement.
    Ack(Ack),
    /// A negative acknowledgement with holes.
    HoleNack(HoleNack),
    /// A congestion notification.
    Cnp,
}

impl Datagram {
    /// Bytes of headers before the payload of a data packet.
    pub const DATA_HEADERS: usize = Bth::LENGTH + Extension::LENGTH;
    /// Bytes of an acknowledgement without holes.
    const ACKNOWLEDGEMENT: usize = Self::DATA_HEADERS + Aeth::LENGTH;
    /// Bytes of an acknowledgement with holes; no datagram has more bytes of headers.
    pub const LONGEST_HEADERS: usize = Self::ACKNOWLEDGEMENT + Hole::THREE;
    /// Default partition key.
    const PARTITION: u16 = 0xffff;

    /// Reads a datagram; also returns its payload (empty for an acknowledgement).
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (bth, rest) = Bth::parse(bytes)?;
        let (body, sent_at, payload) = match bth.opcode {
            Opcode::SEND_MIDDLE | Opcode::SEND_LAST => {
                let (extension, payload) = Extension::parse(rest)?;
                if extension.waited != Waited::default() {
                    return Err(ParseError::Reserved);
                }
                let data = Data {
                    psn: bth.psn,
                    payload: u16::try_from(payload.len()).map_err(|_| ParseError::Oversized(payload.len()))?,
                    last: bth.opcode == Opcode::SEND_LAST,
                    retransmission: extension.retransmission,
                    trimmed: false,
                };
                (Body::Data(data), extension.sent_at, payload)
            }
            Opcode::ACKNOWLEDGE => {
                let (aeth, rest) = Aeth::parse(rest)?;
                let (extension, rest) = Extension::parse(rest)?;
                if extension.waited != Waited::default() {
                    return Err(ParseError::Reserved);
                }
                let ack = Ack::from_headers(&bth, &aeth, extension.sack)?;
                let body = match ack.kind {
                    AckKind::Nack if extension.holes => Body::HoleNack(ack.with_holes(Hole::parse_three(rest)?.0)),
                    AckKind::Ack if extension.holes => return Err(ParseError::Reserved),
                    _ => Body::Ack(ack),
                };
                (body, extension.sent_at, &rest[..0])
            }
            Opcode::CONGESTION_NOTIFICATION => (Body::Cnp, Instant::ZERO, &cnp::parse(rest)?[..0]),
            opcode => return Err(ParseError::Opcode(opcode)),
        };
        Ok((Self { qp: bth.destination, sent_at, body }, payload))
    }

    /// Writes the headers into `buffer`; returns their bytes. A data packet's payload follows them.
    pub fn emit<'a>(&self, buffer: &'a mut [u8; Self::LONGEST_HEADERS]) -> &'a [u8] {
        let extension = Extension { sent_at: self.sent_at, ..Extension::default() };
        let (first, rest) = buffer.split_at_mut(Bth::LENGTH);
        let (bth, length) = match self.body {
            Body::Data(data) => {
                let opcode = if data.last { Opcode::SEND_LAST } else { Opcode::SEND_MIDDLE };
                let extension = Extension { retransmission: data.retransmission, ..extension };
                rest[..Extension::LENGTH].copy_from_slice(&extension.emit());
                (Bth { opcode, ack_request: true, psn: data.psn, ..Bth::default() }, Self::DATA_HEADERS)
            }
            Body::Ack(ack) => (acknowledge(&ack, extension, rest), Self::ACKNOWLEDGEMENT),
            Body::HoleNack(nack) => {
                let holes = Extension { holes: true, ..extension };
                rest[Aeth::LENGTH + Extension::LENGTH..].copy_from_slice(&Hole::emit_three(&nack.holes));
                (acknowledge(&nack.without_holes(), holes, rest), Self::LONGEST_HEADERS)
            }
            Body::Cnp => {
                rest[..cnp::LENGTH].copy_from_slice(&cnp::emit());
                let opcode = Opcode::CONGESTION_NOTIFICATION;
                (Bth { opcode, becn: true, ..Bth::default() }, Bth::LENGTH + cnp::LENGTH)
            }
        };
        first.copy_from_slice(&Bth { destination: self.qp, partition: Self::PARTITION, ..bth }.emit());
        &buffer[..length]
    }
}

/// Writes the headers of an acknowledgement after the BTH; returns the BTH.
fn acknowledge(ack: &Ack, extension: Extension, rest: &mut [u8]) -> Bth {
    let (bth, aeth) = ack.headers();
    rest[..Aeth::LENGTH].copy_from_slice(&aeth.emit());
    rest[Aeth::LENGTH..][..Extension::LENGTH].copy_from_slice(&Extension { sack: ack.sack, ..extension }.emit());
    bth
}
