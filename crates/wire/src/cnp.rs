//! What follows the base transport header of a congestion notification packet (RoCEv2 annex A17.9.4).
//!
//! | bytes | field       |
//! |-------|-------------|
//! | 0-15  | reserved, 0 |
//!
//! The header itself says the rest: opcode 0x81, the queue pair that shall slow down, BECN.

use crate::error::{ParseError, take};

/// Bytes of it.
pub const LENGTH: usize = 16;

/// Reads it; returns what follows.
pub fn parse(bytes: &[u8]) -> Result<&[u8], ParseError> {
    let (reserved, rest) = take::<LENGTH>(bytes)?;
    if reserved.iter().any(|&byte| byte != 0) {
        return Err(ParseError::Reserved);
    }
    Ok(rest)
}

/// Its bytes.
pub const fn emit() -> [u8; LENGTH] {
    [0; LENGTH]
}
