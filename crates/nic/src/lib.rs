//! One host's NIC, pure.
//!
//! A [`Nic`] holds a host's queue pairs, shares the link between them round-robin, answers data
//! with acknowledgements and keeps everybody's deadlines. It is the same object in a simulated host
//! and behind a socket; it does not know which world it is in.
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
