//! EQDS tunnel headers (Olteanu et al., NSDI'22, figure 4), which follow a UDP header.
//!
//! ```text
//!             wide: 16 bytes                          compact: 8 bytes
//! data        flags 16  priority 3  next 13           flags 8  priority 3  next 5
//!             sequence 32                             sequence 16
//!             pull target 32     path 16  sender 16   pull target 16   path 8  sender 8
//! control     flags 16  sender 16  number 32          flags 8  sender 8  number 16
//!             pull number 32     busy time 32         pull number 16   busy time 16
//! ```
//!
//! The paper's figure gives the fields and, by the width of its cells, their proportions; the widths
//! themselves are lost. Wide rows agree with the 16 bytes that a marking threshold of 375 packets in 584
//! kB implies (appendix B); compact ones are as long as VXLAN's header, which these "were meant to
//! complement" (section 5). The priority is our own: receivers that give credit by priority (section 5) ask for it, and
//! what IP says is lost where switches trim.

mod compact;
mod datagram;
mod header;

pub use compact::{Control, Data};
pub use datagram::{Body, Datagram};
pub use header::{ControlHeader, DataHeader, Layout, NextProtocol};

/// Flags of both headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The tunnel is new: the number's upper bits are its epoch (appendix A).
    pub const SYN: Self = Self(0x01);
    /// Of control: everything before the number has arrived. Of data: acknowledge this one at once.
    pub const ACK: Self = Self(0x02);
    /// The packet of this number arrived without its payload.
    pub const NACK: Self = Self(0x04);
    /// The packet of this number arrived, out of order.
    pub const SACK: Self = Self(0x08);
    /// Credit: the pull number has risen.
    pub const PULL: Self = Self(0x10);
    /// Request to send: no payload, and the sequence number stays free for the next packet.
    pub const RTS: Self = Self(0x20);
    /// There is no such tunnel here; the number is that of the packet that found none.
    pub const RST: Self = Self(0x40);
    /// The packet that is answered carried an ECN mark.
    pub const ECN_ECHO: Self = Self(0x80);

    /// These and those.
    #[inline]
    pub const fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }
    /// These, if `condition`; else none.
    #[inline]
    pub const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
    /// Whether any of those is set.
    #[inline]
    pub const fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }
    /// The bits.
    pub const fn bits(self) -> u8 {
        self.0
    }
    /// Flags with these bits.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
}
