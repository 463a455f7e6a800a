//! The datagram extended transport header.
//!
//! | bytes | field                                              |
//! |-------|----------------------------------------------------|
//! | 0-3   | Q_Key                                              |
//! | 4     | reserved; ignored, sent as 0                       |
//! | 5-7   | source queue pair                                  |

use selvedge_units::QpNumber;

use crate::error::{ParseError, take};

/// A datagram extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deth {
    /// Q_Key, which must be that of the receiving queue pair.
    pub qkey: u32,
    /// Source queue pair, 24 bits.
    pub source: QpNumber,
}

impl Deth {
    /// Bytes of the header.
    pub const LENGTH: usize = 8;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[k0, k1, k2, k3, _, s0, s1, s2], rest) = take::<{ Self::LENGTH }>(bytes)?;
        let source = QpNumber(u32::from_be_bytes([0, s0, s1, s2]));
        Ok((Self { qkey: u32::from_be_bytes([k0, k1, k2, k3]), source }, rest))
    }

    /// Returns the header's bytes. Only the low 24 bits of `source` are used.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let [k0, k1, k2, k3] = self.qkey.to_be_bytes();
        let [_, s0, s1, s2] = self.source.0.to_be_bytes();
        [k0, k1, k2, k3, 0, s0, s1, s2]
    }
}
