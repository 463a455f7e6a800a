//! The NIC of one host, as an engine without input or output.
//!
//! A [`Nic`] holds a host's queue pairs, shares the link among them round-robin, answers data with acknowledgements and
//! keeps all deadlines. The same object is used in a simulated host and behind a socket, and cannot tell the
//! difference.
//!
//! ```text
//!            open_sender, open_receiver, close_*          commands
//!                          |
//!   handle_packet  -->  [ Nic ]  -->  poll_transmit       while the link is free
//!   handle_timeout -->     |     -->  poll_timeout        the only thing to wait for
//!                          v
//!                      Completion                         what the packet finished, if anything
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cm;
mod echo;
mod eqds;
mod eqif;
mod ndp;
mod nic;
mod qp;
mod rdma;
mod slot;
mod standing;
mod tcp;
#[cfg(test)]
mod tests;
pub mod verbs;

pub use nic::{Handled, Incoming, Nic, NicParams, Train};
pub use qp::{Completion, NicStats, Outgoing, Report};
pub use rdma::{ConnectionParams, Ledger, VerbsParams, WireFormat};
pub use slot::REQUESTS;
pub use standing::{Received, Standing};
