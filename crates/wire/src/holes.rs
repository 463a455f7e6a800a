//! Holes between arrived packets, carried by a NACK of MELO after Selvedge's extension (section 3.2.4).
//!
//! | bytes | field                                                                              |
//! |-------|------------------------------------------------------------------------------------|
//! | 0-1   | start of the newest hole: the low 16 bits of the PSN of its first packet            |
//! | 2-3   | its length in packets; 0 is no hole                                                |
//! | 4-7   | the second newest                                                                  |
//! | 8-11  | the third newest                                                                   |

use core::ops::Range;

use selvedge_units::{Psn, Seq};

use crate::error::{ParseError, take};

/// A range of missing packets between arrived ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hole {
    /// The low 16 bits of the first missing packet's PSN.
    pub start: u16,
    /// Number of missing packets; zero stands for no hole.
    pub length: u16,
}

/// The newest holes, newest first.
pub type Holes = [Hole; 3];

impl Hole {
    /// Placeholder for the holes that do not exist.
    pub const NONE: Self = Self { start: 0, length: 0 };
    /// Bytes of three holes on the wire.
    pub const THREE: usize = 12;

    /// Removes the first `packets` missing packets, all if there are fewer.
    pub const fn shorten(&mut self, packets: u16) {
        let packets = if packets < self.length { packets } else { self.length };
        self.start = self.start.wrapping_add(packets);
        self.length -= packets;
    }

    /// Returns the missing packets of a queue pair that began at `first` and expects `expected`; they lie at most 2^16
    /// - 1 after `expected`.
    pub const fn packets(self, expected: Seq, first: Psn) -> Range<Seq> {
        let ahead = self.start.wrapping_sub(expected.to_psn(first).get() as u16);
        let start = expected.index() + ahead as u64;
        Seq::new(start)..Seq::new(start + self.length as u64)
    }
    /// Returns this hole for a queue pair that begins at `first` instead of 0.
    pub const fn shifted(self, first: Psn) -> Self {
        if self.length == 0 { Self::NONE } else { Self { start: self.start.wrapping_add(first.get() as u16), ..self } }
    }

    /// Reads three holes; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse_three(bytes: &[u8]) -> Result<(Holes, &[u8]), ParseError> {
        let (bytes, rest) = take::<{ Self::THREE }>(bytes)?;
        let short = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        Ok(([0, 4, 8].map(|at| Self { start: short(at), length: short(at + 2) }), rest))
    }
    /// Returns the bytes of three holes.
    pub fn emit_three(holes: &Holes) -> [u8; Self::THREE] {
        let mut bytes = [0; Self::THREE];
        for (place, hole) in bytes.chunks_exact_mut(4).zip(holes) {
            place[..2].copy_from_slice(&hole.start.to_be_bytes());
            place[2..].copy_from_slice(&hole.length.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks every start of a hole, for expected packets and first PSNs on both sides of the wraps at 2^16 and 2^24.
    #[test]
    fn every_hole_lies_where_its_sender_saw_it() {
        for first in [0, 1, 0xffff, 0x10000, 0xff_ffff].map(Psn::new) {
            for expected in [0, 1, 0xfffe, 0x1_0000, 0xff_fff0, 0x100_0000, (1 << 40) + 3].map(Seq::new) {
                for ahead in 0..=u64::from(u16::MAX) {
                    let missing = expected + ahead..expected + ahead + 7;
                    // The sender of the NACK counts its queue pair from 0.
                    let hole = Hole { start: missing.start.to_psn(Psn::new(0)).get() as u16, length: 7 };
                    assert_eq!(hole.shifted(first).packets(expected, first), missing);
                    assert_eq!(hole.packets(expected, Psn::new(0)), missing);
                }
            }
        }
    }

    #[test]
    fn every_start_and_length_survives_the_wire() {
        for n in 0..=u16::MAX {
            let holes = [Hole { start: n, length: !n }, Hole { start: !n, length: n }, Hole { start: n, length: n }];
            assert_eq!(Hole::parse_three(&Hole::emit_three(&holes)), Ok((holes, &[][..])));
        }
        assert_eq!(Hole::NONE.shifted(Psn::new(5)), Hole::NONE);
    }
}
