//! Where a packet belongs, whatever the order of arrival (IRN, section 5.3).
//!
//! | bytes | field                                                                              |
//! |-------|------------------------------------------------------------------------------------|
//! | 0-3   | of a Send, or a Write with an immediate: recv_WQE_SN, which receive request it is for; of a Read or an |
//! |       | Atomic, and of the answer: read_WQE_SN, which of those it is                       |
//! | 4-7   | which packet of its message or answer it is, from 0                                |

use crate::error::{ParseError, take};

/// Where a packet belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// recv_WQE_SN or read_WQE_SN, modulo 2^32.
    pub wqe: u32,
    /// Which packet of its message or answer it is.
    pub packet: u32,
}

impl Placement {
    /// Bytes of the header.
    pub const LENGTH: usize = 8;

    /// Reads the header; returns what follows, too.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[w0, w1, w2, w3, p0, p1, p2, p3], rest) = take::<{ Self::LENGTH }>(bytes)?;
        Ok((Self { wqe: u32::from_be_bytes([w0, w1, w2, w3]), packet: u32::from_be_bytes([p0, p1, p2, p3]) }, rest))
    }

    /// The header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let ([w0, w1, w2, w3], [p0, p1, p2, p3]) = (self.wqe.to_be_bytes(), self.packet.to_be_bytes());
        [w0, w1, w2, w3, p0, p1, p2, p3]
    }
}
