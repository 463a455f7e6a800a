//! The acknowledgement extended transport header (InfiniBand architecture, volume 1,
//! chapter 9).
//!
//! | bytes | bits | field                                                                     |
//! |-------|------|---------------------------------------------------------------------------|
//! | 0     | 7    | 0                                                                         |
//! |       | 6..5 | 00 ACK, 01 receiver-not-ready NAK, 11 NAK; 10 is reserved                 |
//! |       | 4..0 | credit count (ACK; 31 is none), timer (RNR NAK), code (NAK)               |
//! | 1-3   |      | message sequence number: messages completed at the responder              |

use crate::error::{ParseError, take};

/// The acknowledgement extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// Positive or negative, and why.
    pub syndrome: Syndrome,
    /// Messages completed at the responder, modulo 2^24.
    pub msn: u32,
}

/// Positive or negative, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syndrome {
    /// Positive; carries a credit count, 0 to 31.
    Ack(u8),
    /// No receive work request was ready; carries a timer code, 0 to 31.
    NotReady(u8),
    /// Negative; carries a NAK code, 0 to 31.
    Nak(u8),
}

impl Syndrome {
    /// "No credit count" in an ACK.
    pub const NO_CREDITS: Self = Self::Ack(31);
    /// A packet is missing.
    pub const SEQUENCE_ERROR: Self = Self::Nak(0);
}

impl Aeth {
    /// Bytes of the header.
    pub const LENGTH: usize = 4;

    /// Reads the header; returns what follows, too.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[syndrome, m0, m1, m2], rest) = take::<{ Self::LENGTH }>(bytes)?;
        let value = syndrome & 0x1f;
        let syndrome = match syndrome >> 5 {
            0b000 => Syndrome::Ack(value),
            0b001 => Syndrome::NotReady(value),
            0b011 => Syndrome::Nak(value),
            _ => return Err(ParseError::Syndrome(syndrome)),
        };
        Ok((Self { syndrome, msn: u32::from_be_bytes([0, m0, m1, m2]) }, rest))
    }

    /// The header's bytes. Of the syndrome's value and the MSN, the low 5 and 24 bits count.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let syndrome = match self.syndrome {
            Syndrome::Ack(credits) => credits & 0x1f,
            Syndrome::NotReady(timer) => 0b001 << 5 | timer & 0x1f,
            Syndrome::Nak(code) => 0b011 << 5 | code & 0x1f,
        };
        let [_, m0, m1, m2] = self.msn.to_be_bytes();
        [syndrome, m0, m1, m2]
    }
}
