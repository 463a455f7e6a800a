//! The bytes after the base transport header of a congestion notification packet (RoCEv2 annex A17.9.4).
//!
//! | bytes | field       |
//! |-------|-------------|
//! | 0-15  | reserved, 0 |
//!
//! The base transport header has all the information: opcode 0x81, the queue pair to be slowed down, BECN.

use crate::error::{ParseError, take};

/// Number of reserved bytes.
pub const LENGTH: usize = 16;

/// Reads the reserved bytes; returns the rest.
///
/// # Errors
/// If the bytes are truncated or malformed.
pub fn parse(bytes: &[u8]) -> Result<&[u8], ParseError> {
    let (reserved, rest) = take::<LENGTH>(bytes)?;
    if reserved.iter().any(|&byte| byte != 0) {
        return Err(ParseError::Reserved);
    }
    Ok(rest)
}

/// Returns the reserved bytes.
pub const fn emit() -> [u8; LENGTH] {
    [0; LENGTH]
}
