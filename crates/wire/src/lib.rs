//! What packets and headers look like.
//!
//! [`Packet`] is what engines and the simulator exchange: one cache line, `Copy`, no bytes of
//! payload. The other modules say how its parts look on a real wire, one header each: a table of
//! fields, a plain struct, `parse` (never panics) and `emit` (its inverse). Knows no protocol
//! behaviour.
#![no_std]
#![forbid(unsafe_code)]

pub mod aeth;
pub mod bth;
pub mod datagram;
mod error;
pub mod extension;
mod packet;
pub mod tcp;

pub use aeth::{Aeth, Syndrome};
pub use bth::{Bth, Opcode};
pub use datagram::{Body, Datagram};
pub use error::ParseError;
pub use extension::Extension;
pub use packet::{Ack, AckKind, Data, Ecn, Header, Packet, Pause, Repr};
pub use tcp::Tcp;
