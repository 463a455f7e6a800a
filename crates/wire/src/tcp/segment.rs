//! A TCP segment as transport engines see it.

use core::fmt;
use core::ops::{BitOr, BitOrAssign};

use selvedge_units::TcpSeq;

use super::options::{self, Sacks, SynOptions, Timestamps};

/// A TCP segment without ports and payload bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Sequence number of the first octet, or of the SYN.
    pub seq: TcpSeq,
    /// Next octet that the sender of this segment expects; valid with [`Flags::ACK`].
    pub ack: TcpSeq,
    /// Control bits.
    pub flags: Flags,
    /// Window: octets from `ack` on that the sender of this segment accepts; scaled (RFC 7323, section 2).
    pub window: u16,
    /// Octets of data.
    pub payload: u16,
    /// Options of a SYN; sent only with [`Flags::SYN`].
    pub syn: SynOptions,
    /// The time stamps option.
    pub timestamps: Option<Timestamps>,
    /// The SACK option; not sent with [`Flags::SYN`].
    pub sacks: Sacks,
}

impl Segment {
    /// Returns the bytes of the header, options included.
    pub const fn header(&self) -> usize {
        super::Header::SHORTEST + options::length(self)
    }
}

/// The control bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Hand the data to the application.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// ECN echo (RFC 3168, section 6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Self = Self(0x80);

    const NAMES: [&'static str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];

    /// Creates flags from bits in the order of the header.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
    /// Returns the bits in the order of the header.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Returns whether all of `others` are set.
    #[inline]
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }
    /// Returns whether any of `others` is set.
    #[inline]
    pub const fn intersects(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
    /// Returns these flags if `condition` holds, else none.
    #[inline]
    pub const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self(0) }
    }
}

impl BitOr for Flags {
    type Output = Self;
    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
impl BitOrAssign for Flags {
    #[inline]
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for (bit, name) in Self::NAMES.iter().enumerate().filter(|(bit, _)| self.0 >> bit & 1 != 0) {
            let _ = bit;
            write!(f, "{between}{name}")?;
            between = "+";
        }
        Ok(())
    }
}
