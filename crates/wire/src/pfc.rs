//! The priority flow control frame, after its Ethernet header (IEEE 802.1Q, clause 36; 802.3, annex 31D).
//!
//! | bytes | field                                                                 |
//! |-------|-----------------------------------------------------------------------|
//! | 0-1   | MAC control opcode, 0x0101                                            |
//! | 2-3   | class enable vector: bit `i` enables priority `i`                     |
//! | 4-19  | pause time of each priority, in quanta of 512 bit times               |
//!
//! Zeros fill the frame up to the smallest size.

use crate::error::{ParseError, take};

/// The content of a priority flow control frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pfc {
    /// Priorities that the frame addresses; bit `i` is priority `i`.
    pub classes: u8,
    /// Pause time of each priority, in quanta of 512 bit times; zero resumes.
    pub quanta: [u16; 8],
}

impl Pfc {
    /// Bytes of the header.
    pub const LENGTH: usize = 20;
    /// MAC control opcode.
    const OPCODE: u16 = 0x0101;

    /// Creates a frame that pauses the priorities in `classes` for `quanta`, or resumes them if zero.
    pub fn new(classes: u8, quanta: u16) -> Self {
        Self { classes, quanta: core::array::from_fn(|class| if classes >> class & 1 == 1 { quanta } else { 0 }) }
    }

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&opcode, rest) = take::<2>(bytes)?;
        if u16::from_be_bytes(opcode) != Self::OPCODE {
            return Err(ParseError::MacControl(u16::from_be_bytes(opcode)));
        }
        let (&[reserved, classes], rest) = take::<2>(rest)?;
        if reserved != 0 {
            return Err(ParseError::Reserved);
        }
        let (quanta, rest) = take::<16>(rest)?;
        let (quanta, _) = quanta.as_chunks::<2>();
        Ok((Self { classes, quanta: core::array::from_fn(|class| u16::from_be_bytes(quanta[class])) }, rest))
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..2].copy_from_slice(&Self::OPCODE.to_be_bytes());
        bytes[3] = self.classes;
        for (place, quanta) in bytes[4..].as_chunks_mut::<2>().0.iter_mut().zip(self.quanta) {
            *place = quanta.to_be_bytes();
        }
        bytes
    }
}
