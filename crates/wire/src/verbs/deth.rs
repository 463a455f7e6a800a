//! The datagram extended transport header.
//!
//! | bytes | field                                              |
//! |-------|----------------------------------------------------|
//! | 0-3   | Q_Key                                              |
//! | 4     | reserved; ignored, sent as 0                       |
//! | 5-7   | source queue pair                                  |

use selvedge_units::QpNumber;

use crate::error::{ParseError, take};

/// The datagram extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deth {
    /// Must be the receiving queue pair's.
    pub qkey: u32,
    /// Source queue pair, 24 bits.
    pub source: QpNumber,
}

impl Deth {
    /// Bytes of the header.
    pub const LENGTH: usize = 8;

    /// Reads the header; returns what follows, too.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[k0, k1, k2, k3, _, s0, s1, s2], rest) = take::<{ Self::LENGTH }>(bytes)?;
        let source = QpNumber(u32::from_be_bytes([0, s0, s1, s2]));
        Ok((Self { qkey: u32::from_be_bytes([k0, k1, k2, k3]), source }, rest))
    }

    /// The header's bytes. Of `source`, the low 24 bits count.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let [k0, k1, k2, k3] = self.qkey.to_be_bytes();
        let [_, s0, s1, s2] = self.source.0.to_be_bytes();
        [k0, k1, k2, k3, 0, s0, s1, s2]
    }
}
