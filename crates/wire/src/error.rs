//! Errors of parsing headers.

use core::fmt;

/// Reason why bytes do not parse as a header. A packet that does not parse is counted and dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// Fewer bytes than the header has.
    Truncated {
        /// Bytes available.
        found: usize,
        /// Bytes required.
        needed: usize,
    },
    /// An unsupported version (or, with IPv4, header length).
    Version(u8),
    /// Bytes that do not match their checksum.
    Checksum,
    /// A length field that does not match the available bytes.
    Length {
        /// Bytes available.
        found: usize,
        /// Value of the length field.
        said: u16,
    },
    /// Padding that does not make a payload a multiple of four bytes.
    Padding(u8),
    /// An unsupported EtherType.
    EtherType(u16),
    /// A MAC control opcode other than priority flow control.
    MacControl(u16),
    /// An unsupported IP protocol.
    Protocol(u8),
    /// A UDP port other than RoCEv2's.
    Port(u16),
    /// An unsupported BTH opcode.
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
    /// An unknown type of a tunnel's packet.
    Type(u8),
    /// A tunnel's option of this kind whose length is illegal, or which is unknown and may not be skipped.
    Option(u8),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { found, needed } => write!(f, "{found} bytes where the header takes {needed}"),
            Self::Version(version) => write!(f, "unknown version {version:#04x}"),
            Self::Checksum => f.write_str("bytes that do not match their checksum"),
            Self::Length { found, said } => write!(f, "a length of {said} where {found} bytes are"),
            Self::Padding(pad) => write!(f, "{pad} bytes of padding do not make the payload a multiple of 4"),
            Self::EtherType(kind) => write!(f, "unknown EtherType {kind:#06x}"),
            Self::MacControl(opcode) => write!(f, "unknown MAC control opcode {opcode:#06x}"),
            Self::Protocol(protocol) => write!(f, "unknown IP protocol {protocol}"),
            Self::Port(port) => write!(f, "UDP port {port} is not RoCEv2's"),
            Self::Opcode(opcode) => write!(f, "unknown opcode {opcode:#04x}"),
            Self::Syndrome(syndrome) => write!(f, "reserved AETH syndrome {syndrome:#04x}"),
            Self::Oversized(payload) => write!(f, "{payload} bytes of payload, more than {}", u16::MAX),
            Self::Reserved => f.write_str("a reserved bit is set"),
            Self::DataOffset(words) => write!(f, "data offset of {words} words, less than 5"),
            Self::TcpOption(kind) => write!(f, "TCP option {kind} has an illegal length"),
            Self::Type(kind) => write!(f, "unknown type {kind} of a tunnel's packet"),
            Self::Option(kind) => write!(f, "option {kind} has an illegal length, or is unknown and required"),
        }
    }
}
impl core::error::Error for ParseError {}

/// Splits off the first `N` bytes; returns them and the rest.
pub(crate) fn take<const N: usize>(bytes: &[u8]) -> Result<(&[u8; N], &[u8]), ParseError> {
    bytes.split_first_chunk().ok_or(ParseError::Truncated { found: bytes.len(), needed: N })
}
