//! The RDMA extended transport header (InfiniBand architecture, volume 1, chapter 9): the destination of a Write. The
//! first packet of a message carries it; with IRN each packet does (section 5.3).
//!
//! | bytes | field                                    |
//! |-------|------------------------------------------|
//! | 0-7   | virtual address at the responder         |
//! | 8-11  | key of its memory region                 |
//! | 12-15 | bytes of the message                     |

use crate::error::{ParseError, take};

/// An RDMA extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reth {
    /// Virtual address at the responder.
    pub address: u64,
    /// Key of the memory region.
    pub key: u32,
    /// Bytes of the message.
    pub length: u32,
}

impl Reth {
    /// Bytes of the header.
    pub const LENGTH: usize = 16;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&address, rest) = take::<8>(bytes)?;
        let (&key, rest) = take::<4>(rest)?;
        let (&length, rest) = take::<4>(rest)?;
        let reth = Self {
            address: u64::from_be_bytes(address),
            key: u32::from_be_bytes(key),
            length: u32::from_be_bytes(length),
        };
        Ok((reth, rest))
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let [a0, a1, a2, a3, a4, a5, a6, a7] = self.address.to_be_bytes();
        let [k0, k1, k2, k3] = self.key.to_be_bytes();
        let [l0, l1, l2, l3] = self.length.to_be_bytes();
        [a0, a1, a2, a3, a4, a5, a6, a7, k0, k1, k2, k3, l0, l1, l2, l3]
    }
}
