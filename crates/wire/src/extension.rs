//! The header that Selvedge's datagrams carry in addition to RoCE's.
//!
//! | bytes | bits | field                                                                     |
//! |-------|------|---------------------------------------------------------------------------|
//! | 0-7   |      | time stamp: when the data packet was sent, in ps; echoed by acknowledgements |
//! | 8     | 7    | the packet was sent before; of an acknowledgement: no packet caused it,   |
//! |       |      | it is about receive requests (end-to-end credits)                         |
//! |       | 6    | three holes follow ([`crate::Hole`]): a NACK of MELO                      |
//! |       | 5..0 | of an acknowledgement: how long its packet waited in the receiver's host   |
//! |       |      | ([`Waited`]); 0 on data                                                   |
//! | 9-11  |      | PSN that triggered an acknowledgement (IRN, section 3.1: the one-packet   |
//! |       |      | SACK of its NACK extension); 0 on data                                    |

use selvedge_units::{Duration, Instant, Psn};

use crate::error::{ParseError, take};

/// Selvedge's extension header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extension {
    /// Time at which the data packet was sent.
    pub sent_at: Instant,
    /// Whether the packet was sent before: for counting only. In an acknowledgement: whether no packet triggered it.
    pub retransmission: bool,
    /// Whether holes follow.
    pub holes: bool,
    /// PSN of the packet that triggered an acknowledgement.
    pub sack: Psn,
    /// Time that the packet that triggered an acknowledgement waited in the receiver's host.
    pub waited: Waited,
}

/// The time that a packet waits in its receiver's host before it is handled, as a code of 6 bits: 0 is unknown, 1 is
/// less than a microsecond, and a code c from 2 on is at least 2^(c/2 - 1) us, one and a half times that if c is odd,
/// and less than the time of the next code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waited(u8);

impl Waited {
    const MOST: u8 = 0x3f;

    /// Returns the code of the longest time not above `time`.
    pub fn of(time: Option<Duration>) -> Self {
        /// Picoseconds of a microsecond.
        const PS: u64 = 1_000_000;
        let Some(time) = time else { return Self(0) };
        let us = time.as_ps() / PS;
        let Some(exponent) = us.checked_ilog2() else { return Self(1) };
        let is_half_more = exponent > 0 && us >> (exponent - 1) & 1 == 1;
        let code = 2 * (exponent + 1) + u32::from(is_half_more);
        Self(u8::try_from(code).unwrap_or(Self::MOST).min(Self::MOST))
    }
    /// Returns the time, rounded down; `None` if unknown.
    pub fn time(self) -> Option<Duration> {
        match self.0 {
            0 => None,
            1 => Some(Duration::ZERO),
            code => {
                let whole = 1_u64 << (code / 2 - 1);
                Some(Duration::from_us(whole + if code & 1 == 1 { whole / 2 } else { 0 }))
            }
        }
    }
}

impl Extension {
    /// Bytes of the header.
    pub const LENGTH: usize = 12;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&stamp, rest) = take::<8>(bytes)?;
        let (&[flags, s0, s1, s2], rest) = take::<4>(rest)?;
        let extension = Self {
            sent_at: Instant::from_ps(u64::from_be_bytes(stamp)),
            retransmission: flags & 0x80 != 0,
            holes: flags & 0x40 != 0,
            waited: Waited(flags & Waited::MOST),
            sack: Psn::new(u32::from_be_bytes([0, s0, s1, s2])),
        };
        Ok((extension, rest))
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let [t0, t1, t2, t3, t4, t5, t6, t7] = self.sent_at.as_ps().to_be_bytes();
        let [_, s0, s1, s2] = self.sack.get().to_be_bytes();
        let flags = u8::from(self.retransmission) << 7 | u8::from(self.holes) << 6 | self.waited.0;
        [t0, t1, t2, t3, t4, t5, t6, t7, flags, s0, s1, s2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_packets_wait_is_told_by_steps_of_a_half() {
        let told = |ns| Waited::of(Some(Duration::from_ns(ns))).time();
        assert_eq!(Waited::of(None).time(), None);
        for (ns, us) in [
            (0, 0),
            (999, 0),
            (1_000, 1),
            (2_000, 2),
            (3_500, 3),
            (5_999, 4),
            (6_000, 6),
            (20_000_000, 16_384),
            (25_000_000, 24_576),
        ] {
            assert_eq!(told(ns), Some(Duration::from_us(us)), "{ns} ns");
        }
        // The longest time is about an hour.
        assert!(told(u64::MAX / 1_000) < Some(Duration::from_ms(4_000_000)));
    }

    #[test]
    fn every_header_comes_back_as_it_was() {
        for flags in 0..=u8::MAX {
            let bytes = [1, 2, 3, 4, 5, 6, 7, 8, flags, 9, 10, 11];
            let (extension, rest) = Extension::parse(&bytes).expect("any bytes are a header");
            assert_eq!((extension.emit(), rest.len()), (bytes, 0));
        }
    }
}
