//! The EQDS headers in wire format.

use super::Flags;
use crate::error::{ParseError, take};

/// Width of the headers' fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Layout {
    /// Rows of 64 bits: 32-bit numbers, of which 22 bits are the epoch.
    #[default]
    Wide,
    /// Rows of 32 bits: 16-bit numbers, of which 6 bits are the epoch.
    Compact,
}

impl Layout {
    /// Returns the bytes of either header.
    pub const fn length(self) -> usize {
        match self {
            Self::Wide => 16,
            Self::Compact => 8,
        }
    }
    /// Returns the UDP port of the receiver, from the range for private use, since the paper names none.
    pub const fn port(self) -> u16 {
        match self {
            Self::Wide => 49_016,
            Self::Compact => 49_008,
        }
    }
    /// Returns the width of sequence numbers and pull numbers in bits.
    pub const fn number_bits(self) -> u32 {
        match self {
            Self::Wide => 32,
            Self::Compact => 16,
        }
    }
}

/// Protocol carried by a tunnel. The paper gives no numbers; these are Selvedge's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum NextProtocol {
    /// Packets of an application that uses EQDS natively (section 6, native).
    #[default]
    Native,
    /// IP.
    Ip,
    /// VXLAN.
    Vxlan,
}

impl NextProtocol {
    const fn code(self) -> u8 {
        match self {
            Self::Native => 0,
            Self::Ip => 4,
            Self::Vxlan => 5,
        }
    }
    fn from_code(code: u16) -> Result<Self, ParseError> {
        match code {
            0 => Ok(Self::Native),
            4 => Ok(Self::Ip),
            5 => Ok(Self::Vxlan),
            other => Err(ParseError::Protocol(other.to_be_bytes()[1])),
        }
    }
}

/// The header of a data packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct DataHeader {
    /// Flags, see [`super::Data::flags`].
    pub flags: Flags,
    /// Priority of the carried traffic, 0 to 7.
    pub priority: u8,
    /// Protocol of the content.
    pub next: NextProtocol,
    /// Sequence number, see [`super::Data::seq`]; the low 16 bits in compact headers.
    pub seq: u32,
    /// Pull target, see [`super::Data::pull_target`]; the low 16 bits in compact headers.
    pub pull_target: u32,
    /// Path id; 8 bits in compact headers.
    pub path: u16,
    /// Sender ID: the sending EQIF of the IP header's source; 8 bits in compact headers.
    pub sender: u16,
}

/// The header of a control packet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ControlHeader {
    /// Flags, see [`super::Control::flags`].
    pub flags: Flags,
    /// Sender ID of the tunnel, see [`DataHeader::sender`]: an EQIF of the IP header's destination.
    pub sender: u16,
    /// Sequence number, see [`super::Control::number`]; the low 16 bits in compact headers.
    pub number: u32,
    /// Pull number, see [`super::Control::pull`]; the low 16 bits in compact headers.
    pub pull: u32,
    /// Busy time, see [`super::Control::busy`]; saturates in compact headers.
    pub busy: u32,
}

impl DataHeader {
    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(layout: Layout, bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        match layout {
            Layout::Wide => {
                let (&[f1, f0, n1, n0, s3, s2, s1, s0, t3, t2, t1, t0, p1, p0, i1, i0], rest) = take::<16>(bytes)?;
                let header = Self {
                    flags: wide_flags(f1, f0)?,
                    priority: n1 >> 5,
                    next: NextProtocol::from_code(u16::from_be_bytes([n1 & 0x1f, n0]))?,
                    seq: u32::from_be_bytes([s3, s2, s1, s0]),
                    pull_target: u32::from_be_bytes([t3, t2, t1, t0]),
                    path: u16::from_be_bytes([p1, p0]),
                    sender: u16::from_be_bytes([i1, i0]),
                };
                Ok((header, rest))
            }
            Layout::Compact => {
                let (&[flags, next, s1, s0, t1, t0, path, sender], rest) = take::<8>(bytes)?;
                let header = Self {
                    flags: Flags::from_bits(flags),
                    priority: next >> 5,
                    next: NextProtocol::from_code((next & 0x1f).into())?,
                    seq: u16::from_be_bytes([s1, s0]).into(),
                    pull_target: u16::from_be_bytes([t1, t0]).into(),
                    path: path.into(),
                    sender: sender.into(),
                };
                Ok((header, rest))
            }
        }
    }

    /// Writes the header into `buffer`; returns its bytes.
    pub fn emit<'a>(&self, layout: Layout, buffer: &'a mut [u8; 16]) -> &'a [u8] {
        let (next, priority) = (self.next.code(), self.priority << 5);
        match layout {
            Layout::Wide => {
                buffer[..4].copy_from_slice(&[0, self.flags.bits(), priority, next]);
                buffer[4..8].copy_from_slice(&self.seq.to_be_bytes());
                buffer[8..12].copy_from_slice(&self.pull_target.to_be_bytes());
                buffer[12..14].copy_from_slice(&self.path.to_be_bytes());
                buffer[14..].copy_from_slice(&self.sender.to_be_bytes());
            }
            Layout::Compact => {
                buffer[..2].copy_from_slice(&[self.flags.bits(), priority | next]);
                buffer[2..4].copy_from_slice(&(self.seq as u16).to_be_bytes());
                buffer[4..6].copy_from_slice(&(self.pull_target as u16).to_be_bytes());
                buffer[6..8].copy_from_slice(&[self.path as u8, self.sender as u8]);
            }
        }
        &buffer[..layout.length()]
    }
}

impl ControlHeader {
    /// Reads the header; also returns the rest of the bytes.
    ///
    /// # Errors
    /// If the bytes are truncated or malformed.
    pub fn parse(layout: Layout, bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        match layout {
            Layout::Wide => {
                let (&[f1, f0, i1, i0, n3, n2, n1, n0, p3, p2, p1, p0, b3, b2, b1, b0], rest) = take::<16>(bytes)?;
                let header = Self {
                    flags: wide_flags(f1, f0)?,
                    sender: u16::from_be_bytes([i1, i0]),
                    number: u32::from_be_bytes([n3, n2, n1, n0]),
                    pull: u32::from_be_bytes([p3, p2, p1, p0]),
                    busy: u32::from_be_bytes([b3, b2, b1, b0]),
                };
                Ok((header, rest))
            }
            Layout::Compact => {
                let (&[flags, sender, n1, n0, p1, p0, b1, b0], rest) = take::<8>(bytes)?;
                let header = Self {
                    flags: Flags::from_bits(flags),
                    sender: sender.into(),
                    number: u16::from_be_bytes([n1, n0]).into(),
                    pull: u16::from_be_bytes([p1, p0]).into(),
                    busy: u16::from_be_bytes([b1, b0]).into(),
                };
                Ok((header, rest))
            }
        }
    }

    /// Writes the header into `buffer`; returns its bytes.
    pub fn emit<'a>(&self, layout: Layout, buffer: &'a mut [u8; 16]) -> &'a [u8] {
        match layout {
            Layout::Wide => {
                buffer[..2].copy_from_slice(&[0, self.flags.bits()]);
                buffer[2..4].copy_from_slice(&self.sender.to_be_bytes());
                buffer[4..8].copy_from_slice(&self.number.to_be_bytes());
                buffer[8..12].copy_from_slice(&self.pull.to_be_bytes());
                buffer[12..].copy_from_slice(&self.busy.to_be_bytes());
            }
            Layout::Compact => {
                buffer[..2].copy_from_slice(&[self.flags.bits(), self.sender as u8]);
                buffer[2..4].copy_from_slice(&(self.number as u16).to_be_bytes());
                buffer[4..6].copy_from_slice(&(self.pull as u16).to_be_bytes());
                let busy = u16::try_from(self.busy).unwrap_or(u16::MAX);
                buffer[6..8].copy_from_slice(&busy.to_be_bytes());
            }
        }
        &buffer[..layout.length()]
    }
}

/// Combines the two flag bytes, of which the upper is reserved.
fn wide_flags(upper: u8, lower: u8) -> Result<Flags, ParseError> {
    if upper == 0 { Ok(Flags::from_bits(lower)) } else { Err(ParseError::Reserved) }
}
