//! What packets and headers look like.
//!
//! [`Packet`] is what engines and the simulator exchange: one cache line, `Copy`, no bytes of
//! payload. The other modules say how its parts look on a real wire. Knows no protocol behaviour.
#![no_std]
#![forbid(unsafe_code)]

mod packet;

pub use packet::{Ack, AckKind, Data, Ecn, Header, Packet, Pause, Repr};
