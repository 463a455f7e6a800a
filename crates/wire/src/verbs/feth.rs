//! The flush extended transport header (InfiniBand architecture, volume 1, annex A19).
//!
//! | bits | field                                                                    |
//! |------|--------------------------------------------------------------------------|
//! | 31-6 | reserved                                                                 |
//! | 5-4  | selectivity level: 0 a range, 1 the whole memory region                  |
//! | 3-0  | placement types: bit 0 global visibility, bit 1 persistence              |

use crate::error::{ParseError, take};

/// A flush extended transport header: the guarantee requested for earlier writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Feth {
    /// The placement types, 4 bits.
    pub placement: u8,
    /// The selectivity level, 2 bits.
    pub selectivity: u8,
}

impl Feth {
    /// Bytes of the header.
    pub const LENGTH: usize = 4;
    /// Placement type: all readers of the memory see the written data.
    pub const GLOBAL: u8 = 1;
    /// Placement type: the written data survives a loss of power.
    pub const PERSISTENT: u8 = 1 << 1;
    /// Selectivity level: the bytes that the RETH names.
    pub const RANGE: u8 = 0;
    /// Selectivity level: all of the memory region.
    pub const REGION: u8 = 1;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[_, _, _, low], rest) = take::<{ Self::LENGTH }>(bytes)?;
        Ok((Self { placement: low & 0xf, selectivity: low >> 4 & 3 }, rest))
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        [0, 0, 0, (self.selectivity & 3) << 4 | self.placement & 0xf]
    }
}
