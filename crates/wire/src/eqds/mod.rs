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
//! The paper's figure gives the fields and, by the width of its cells, their proportions, but not their widths. Wide
//! rows agree with the 16 bytes implied by a marking threshold of 375 packets in 584 kB (appendix B); compact ones are
//! as long as VXLAN's header, which the headers "were meant to complement" (section 5). The priority is Selvedge's own:
//! receivers that give credit by priority (section 5) need it, and the IP header's priority is lost where switches
//! trim.
//!
//! These headers are version 0, which the simulator charges for and captures show. [`v1`] is the form for real
//! networks.

mod compact;
mod datagram;
mod flags;
mod header;
pub mod v1;

pub use compact::{Control, Data};
pub use datagram::{Body, Datagram};
pub use header::{ControlHeader, DataHeader, Layout, NextProtocol};

/// Flags of both headers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// The tunnel is new: the upper bits of the number are its epoch (appendix A).
    pub const SYN: Self = Self(0x01);
    /// In control packets: everything before the number has arrived. In data packets: an immediate acknowledgement is
    /// requested.
    pub const ACK: Self = Self(0x02);
    /// The packet of the number arrived without its payload.
    pub const NACK: Self = Self(0x04);
    /// The packet of the number arrived out of order.
    pub const SACK: Self = Self(0x08);
    /// Credit: the pull number has risen.
    pub const PULL: Self = Self(0x10);
    /// Request to send: no payload, and the sequence number remains available for the next packet.
    pub const RTS: Self = Self(0x20);
    /// The receiver has no such tunnel; the number is that of the rejected packet.
    pub const RST: Self = Self(0x40);
    /// The acknowledged packet carried an ECN mark.
    pub const ECN_ECHO: Self = Self(0x80);
}

flags::set_of_flags!(Flags);
