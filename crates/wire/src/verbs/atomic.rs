//! The atomic extended transport header.
//!
//! | bytes | field                                              |
//! |-------|----------------------------------------------------|
//! | 0-7   | virtual address at the responder                   |
//! | 8-11  | key of its memory region                           |
//! | 12-19 | value to store, or to add                          |
//! | 20-27 | value to compare with                              |

use crate::error::{ParseError, take};

/// An atomic extended transport header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AtomicEth {
    /// Virtual address at the responder.
    pub address: u64,
    /// Key of the memory region.
    pub key: u32,
    /// Value to store, or to add.
    pub swap_add: u64,
    /// Value to compare with; unused by an addition.
    pub compare: u64,
}

impl AtomicEth {
    /// Bytes of the header.
    pub const LENGTH: usize = 28;

    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        if bytes.len() < Self::LENGTH {
            return Err(ParseError::Truncated { found: bytes.len(), needed: Self::LENGTH });
        }
        let (&address, rest) = take::<8>(bytes)?;
        let (&key, rest) = take::<4>(rest)?;
        let (&swap_add, rest) = take::<8>(rest)?;
        let (&compare, rest) = take::<8>(rest)?;
        let atomic = Self {
            address: u64::from_be_bytes(address),
            key: u32::from_be_bytes(key),
            swap_add: u64::from_be_bytes(swap_add),
            compare: u64::from_be_bytes(compare),
        };
        Ok((atomic, rest))
    }

    /// Returns the header's bytes.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..8].copy_from_slice(&self.address.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.key.to_be_bytes());
        bytes[12..20].copy_from_slice(&self.swap_add.to_be_bytes());
        bytes[20..].copy_from_slice(&self.compare.to_be_bytes());
        bytes
    }
}
