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
