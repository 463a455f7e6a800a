//! Messages between NetRT's top-of-rack switches (NetRT, 2024, section III-D2), after a BTH with the addresses of the
//! served flow. The paper gives their sizes and fields; opcode and type numbers are Selvedge's own.
//!
//! | bytes | request                                                 | unfulfilled         |
//! |-------|---------------------------------------------------------|---------------------|
//! | 0     | type, 1                                                 | type, 2             |
//! | 1-3   | expected PSN                                            | unavailable PSN     |
//! | 4-19  | bit `i` (of a big-endian number): expected + 1 + `i` has arrived |            |

use selvedge_units::Psn;

use crate::error::{ParseError, take};

/// Missing packets of a flow at a destination ToR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    expected: Psn,
    arrived: u128,
}

impl Request {
    /// Bytes of the message.
    pub const LENGTH: usize = 20;

    /// Creates a request: `expected` is missing; bit `i` of `arrived` tells whether the packet `expected + 1 + i` has
    /// arrived.
    pub const fn new(expected: Psn, arrived: u128) -> Self {
        Self { expected, arrived }
    }
    /// Returns the first missing packet.
    pub const fn expected(&self) -> Psn {
        self.expected
    }
    /// Returns the bitmap of arrived packets after the expected one.
    pub const fn arrived(&self) -> u128 {
        self.arrived
    }
}

/// A message between ToRs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message {
    /// Request to the source ToR to retransmit missing packets.
    Request(Request),
    /// Answer to the destination ToR: there is no duplicate of this packet.
    Unfulfilled(Psn),
}

impl Message {
    /// Most bytes of a message.
    pub const LONGEST: usize = Request::LENGTH;
    const REQUEST: u8 = 1;
    const UNFULFILLED: u8 = 2;

    /// Reads a message; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[kind, psn @ ..], rest) = take::<4>(bytes)?;
        let psn = Psn::new(u32::from_be_bytes([0, psn[0], psn[1], psn[2]]));
        match kind {
            Self::REQUEST => {
                let (arrived, rest) = take::<16>(rest)?;
                Ok((Self::Request(Request::new(psn, u128::from_be_bytes(*arrived))), rest))
            }
            Self::UNFULFILLED => Ok((Self::Unfulfilled(psn), rest)),
            kind => Err(ParseError::Opcode(kind)),
        }
    }

    /// Returns the bytes of the message.
    pub const fn length(&self) -> usize {
        match self {
            Self::Request(_) => Request::LENGTH,
            Self::Unfulfilled(_) => 4,
        }
    }

    /// Writes the message into `place`, which has its length.
    pub fn emit(&self, place: &mut [u8]) {
        let (kind, psn) = match self {
            Self::Request(request) => {
                place[4..].copy_from_slice(&request.arrived().to_be_bytes());
                (Self::REQUEST, request.expected)
            }
            Self::Unfulfilled(psn) => (Self::UNFULFILLED, *psn),
        };
        place[..4].copy_from_slice(&psn.get().to_be_bytes());
        place[0] = kind;
    }
}

/// A message as stored in a packet: its words on the wire, since an aligned bitmap would not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetRt([u32; 5]);

impl NetRt {
    /// Returns the message.
    pub const fn message(&self) -> Message {
        let [first, a, b, c, d] = self.0;
        let psn = Psn::new(first);
        if (first >> 24) as u8 == Message::UNFULFILLED {
            return Message::Unfulfilled(psn);
        }
        let arrived = (a as u128) << 96 | (b as u128) << 64 | (c as u128) << 32 | d as u128;
        Message::Request(Request::new(psn, arrived))
    }
}

impl From<Message> for NetRt {
    fn from(message: Message) -> Self {
        let word = |kind: u8, psn: Psn| u32::from(kind) << 24 | psn.get();
        match message {
            Message::Request(Request { expected, arrived }) => {
                let [a, b, c, d] = [96, 64, 32, 0].map(|shift| (arrived >> shift) as u32);
                Self([word(Message::REQUEST, expected), a, b, c, d])
            }
            Message::Unfulfilled(psn) => Self([word(Message::UNFULFILLED, psn), 0, 0, 0, 0]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_wire_and_packets() {
        let request = Request::new(Psn::new(0xfe_dcba), 0x0123_4567_89ab_cdef_0246_8ace_1357_9bdf);
        for (message, length) in [(Message::Request(request), 20), (Message::Unfulfilled(Psn::new(77)), 4)] {
            let mut bytes = [0; Message::LONGEST + 3];
            message.emit(&mut bytes[..length]);
            assert_eq!((message.length(), Message::parse(&bytes[..length])), (length, Ok((message, &[][..]))));
            assert!((0..length).all(|short| Message::parse(&bytes[..short]).is_err()));
            assert_eq!(NetRt::from(message).message(), message);
        }
        assert_eq!(Message::parse(&[9, 0, 0, 0]), Err(ParseError::Opcode(9)));
    }
}
