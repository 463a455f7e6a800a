//! EQDS tunnel packets, version 1: headers that are authenticated, and that survive trimming. docs/eqds-wire.md is the
//! specification; version 0 is figure 4's header ([`super::DataHeader`], [`super::ControlHeader`]).
//!
//! ```text
//!  UDP payload:  common 20 | body 8 to 20 | options 0 to 104 | MAC 8 | payload
//!                +---------- header, a multiple of 4 bytes -----------+
//! ```
//!
//! The MAC covers the header, its own 8 bytes and the mark of trimming excepted. The payload has no part in it, because
//! a switch may cut the payload off. This module computes no MAC: [`Packet::emit`] leaves room for it, and
//! [`Parsed::covered`] returns the bytes that it is computed over.

mod body;
mod common;
mod native;
mod options;
mod outer;
mod packet;
mod words;

pub use body::{Body, Close, Data, Next, PacketType, Probe, Report, Reset, ResetReason, Service};
pub use common::{Common, Flags};
pub use native::{Head, Refusal};
pub use options::{Capabilities, Options, Range, Ranges};
pub use outer::{Cut, Datagram, Outer};
pub use packet::{Packet, Parsed};
pub use words::Words;

/// Version of the headers in this module, the upper four bits of the first byte.
pub const VERSION: u8 = 1;
/// UDP port on which receivers listen unless configured otherwise: that of version 0, whose first byte is zero.
pub const PORT: u16 = super::Layout::Wide.port();
/// Bytes of the MAC at the end of each header.
pub const MAC: usize = 8;
/// Most bytes of a header, MAC included.
pub const LONGEST: usize = 160;
/// Bytes of the UDP payload that a switch which trims keeps at least: data have no longer header.
pub const KEPT: usize = 72;
