//! The position of a packet, independent of the order of arrival (IRN, section 5.3).
//!
//! | bytes | field                                                                              |
//! |-------|------------------------------------------------------------------------------------|
//! | 0-3   | of a Send, or a Write with an immediate: recv_WQE_SN, number of its receive request; of a Read or an |
//! |       | Atomic, and of the answer: read_WQE_SN, number of that request                     |
//! | 4-7   | index of the packet in its message or answer, from 0                               |

use crate::error::{ParseError, take};

/// The position of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Placement {
    /// recv_WQE_SN or read_WQE_SN, modulo 2^32.
    pub wqe: u32,
    /// Index of the packet in its message or answer.
    pub packet: u32,
}

impl Placement {
    /// Bytes of the header.
    pub const LENGTH: usize = 8;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[w0, w1, w2, w3, p0, p1, p2, p3], rest) = take::<{ Self::LENGTH }>(bytes)?;
        Ok((Self { wqe: u32::from_be_bytes([w0, w1, w2, w3]), packet: u32::from_be_bytes([p0, p1, p2, p3]) }, rest))
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let ([w0, w1, w2, w3], [p0, p1, p2, p3]) = (self.wqe.to_be_bytes(), self.packet.to_be_bytes());
        [w0, w1, w2, w3, p0, p1, p2, p3]
    }
}
