//! Why bytes are not a header.

use core::fmt;

/// Why bytes are not a header. A packet that does not parse is counted and dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Fewer bytes than the header has.
    Truncated {
        /// Bytes there.
        found: usize,
        /// Bytes that it takes.
        needed: usize,
    },
    /// A transport header version other than 0.
    Version(u8),
    /// A BTH opcode that is not in use here.
    Opcode(u8),
    /// An AETH syndrome that the standard reserves.
    Syndrome(u8),
    /// More payload than a packet can have.
    Oversized(usize),
    /// A bit is set that must be zero.
    Reserved,
    /// A TCP data offset that lies inside the fixed header, in words of 4 bytes.
    DataOffset(u8),
    /// A TCP option of this kind whose length is illegal.
    TcpOption(u8),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { found, needed } => write!(f, "{found} bytes where the header takes {needed}"),
            Self::Version(version) => write!(f, "transport header version {version}, not 0"),
            Self::Opcode(opcode) => write!(f, "unknown opcode {opcode:#04x}"),
            Self::Syndrome(syndrome) => write!(f, "reserved AETH syndrome {syndrome:#04x}"),
            Self::Oversized(payload) => write!(f, "{payload} bytes of payload, more than {}", u16::MAX),
            Self::Reserved => f.write_str("a reserved bit is set"),
            Self::DataOffset(words) => write!(f, "data offset of {words} words, less than 5"),
            Self::TcpOption(kind) => write!(f, "TCP option {kind} has an illegal length"),
        }
    }
}
impl core::error::Error for ParseError {}

/// The first `N` bytes, and the rest.
pub(crate) fn take<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), ParseError> {
    bytes.split_first_chunk().ok_or(ParseError::Truncated { found: bytes.len(), needed: N })
}
