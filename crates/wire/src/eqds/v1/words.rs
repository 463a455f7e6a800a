//! The words before a part of a native message or of a super-packet. They belong to the payload: a trimmed packet has
//! lost them, and a sealed payload encrypts them.
//!
//! | bytes | field                                                                    |
//! |-------|--------------------------------------------------------------------------|
//! | 0-3   | message id: counts the messages of the tunnel                            |
//! | 4-7   | offset of this part in the message, in bytes                             |
//! | 8-11  | length of the whole message, in bytes                                    |

use crate::error::{ParseError, take};

/// Place of a payload in its message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Words {
    /// Number of the message in its tunnel; wraps.
    pub message: u32,
    /// Offset of the part in its message, in bytes.
    pub offset: u32,
    /// Length of the whole message, in bytes.
    pub length: u32,
}

impl Words {
    /// Bytes of the words.
    pub const LENGTH: usize = 12;

    /// Reads the words at the start of a payload; also returns the part of the message.
    ///
    /// # Errors
    /// If the bytes are truncated, or the part reaches beyond the end of the message.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (&[m3, m2, m1, m0, o3, o2, o1, o0, l3, l2, l1, l0], part) = take::<{ Self::LENGTH }>(bytes)?;
        let words = Self {
            message: u32::from_be_bytes([m3, m2, m1, m0]),
            offset: u32::from_be_bytes([o3, o2, o1, o0]),
            length: u32::from_be_bytes([l3, l2, l1, l0]),
        };
        if u64::from(words.offset) + part.len() as u64 > u64::from(words.length) {
            return Err(ParseError::Oversized(part.len()));
        }
        Ok((words, part))
    }

    /// Returns the bytes of the words.
    pub fn emit(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..4].copy_from_slice(&self.message.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.offset.to_be_bytes());
        bytes[8..].copy_from_slice(&self.length.to_be_bytes());
        bytes
    }
}
