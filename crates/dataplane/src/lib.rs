//! Sockets, clock and threads around the engines that the simulator uses too.
//!
//! This crate is the only one that waits, and the only one with a clock. One flow between two UDP sockets ([`send`],
//! [`receive`]) passes the same tests as in simulation; [`rnic`] is a whole RDMA NIC for the programs of this host;
//! [`impair`] is a network that loses, delays and damages their packets as configured.
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
