//! The acknowledgement extended transport header (InfiniBand architecture, volume 1,
//! chapter 9).
//!
//! | bytes | bits | field                                                                     |
//! |-------|------|---------------------------------------------------------------------------|
//! | 0     | 7    | 0                                                                         |
//! |       | 6..5 | 00 ACK, 01 receiver-not-ready NAK, 11 NAK; 10 is reserved                 |
//! |       | 4..0 | credit count (ACK, [`Syndrome::credits`]; 31 is none), timer (RNR NAK), code (NAK) |
//! | 1-3   |      | message sequence number: messages completed at the responder              |

use crate::error::{ParseError, take};

/// An acknowledgement extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aeth {
    /// Kind of the acknowledgement, and its reason.
    pub syndrome: Syndrome,
    /// Messages completed at the responder, modulo 2^24.
    pub msn: u32,
}

/// The kind of an acknowledgement, and its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Syndrome {
    /// Positive acknowledgement, with the code of a credit count, 0 to 31.
    Ack(u8),
    /// No receive work request was ready; with a timer code, 0 to 31.
    NotReady(u8),
    /// Negative acknowledgement, with a NAK code, 0 to 31.
    Nak(u8),
}

impl Syndrome {
    /// ACK without a credit count.
    pub const NO_CREDITS: Self = Self::Ack(31);
    /// NAK for a missing packet.
    pub const SEQUENCE_ERROR: Self = Self::Nak(0);

    /// Returns an ACK that advertises `waiting` receive requests, or the largest smaller number that the field's 5 bits
    /// can express (end-to-end flow control, InfiniBand architecture, volume 1, section 9.7.7.2).
    pub const fn credits(waiting: u32) -> Self {
        let mut code = 30;
        while count(code) > waiting {
            code -= 1;
        }
        Self::Ack(code)
    }
    /// Returns the number of receive requests that an ACK advertises; `None` without a credit count, or if not an ACK.
    pub const fn advertised(self) -> Option<u32> {
        match self {
            Self::Ack(code @ 0..=30) => Some(count(code)),
            _ => None,
        }
    }
}

/// Returns the credit count of a code from 0 to 30: 0, 1, then each power of two and one and a half times that, up to
/// 2^15.
const fn count(code: u8) -> u32 {
    match code {
        0 | 1 => code as u32,
        _ => {
            let power = 1 << (code / 2);
            if code.is_multiple_of(2) { power } else { power + power / 2 }
        }
    }
}

impl Aeth {
    /// Bytes of the header.
    pub const LENGTH: usize = 4;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
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

    /// Returns the header's bytes. Only the low 5 bits of the syndrome's value and the low 24 bits of the MSN are used.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_counts_are_those_of_the_specification() {
        let counts: [u32; 31] = core::array::from_fn(|code| Syndrome::Ack(code as u8).advertised().expect("a count"));
        let expected = [
            0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072,
            4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768,
        ];
        assert_eq!(counts, expected);
        assert_eq!(Syndrome::NO_CREDITS.advertised(), None);
        assert_eq!(Syndrome::NotReady(3).advertised(), None);
    }

    #[test]
    fn as_many_credits_are_advertised_as_can_be_said_and_never_more() {
        for waiting in (0..70_000).chain([u32::MAX]) {
            let said = Syndrome::credits(waiting).advertised().expect("a count");
            assert!(said <= waiting, "{said} of {waiting}");
            let is_most =
                said == 32_768 || (said + 1..=waiting).all(|more| Syndrome::credits(more).advertised() == Some(said));
            assert!(is_most, "{said} of {waiting}");
        }
    }
}
