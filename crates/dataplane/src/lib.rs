//! The real world: sockets, clock and threads around the same engines.
//!
//! The only crate that waits, and the only one with a clock. One flow between two UDP sockets ([`send`], [`receive`])
//! holds the engines to the same tests in both worlds; [`rnic`] is a whole RDMA NIC for the programs of this host;
//! [`impair`] is a network that loses, delays and damages their packets as it is told.
#![deny(unsafe_code)]

mod clock;
mod driver;
mod icrc;
#[cfg(target_os = "linux")]
pub mod impair;
mod reorder;
#[cfg(target_os = "linux")]
pub mod rnic;
#[cfg(target_os = "linux")]
pub mod trial;
mod udp;

pub use clock::Clock;
pub use driver::{Incoming, Outgoing, receive, send};
pub use reorder::ReorderBuffer;
pub use udp::{Datagrams, Udp};
