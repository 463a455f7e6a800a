#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cm;
mod echo;
mod eqds;
mod eqif;
mod nic;
mod rdma;
mod reorder;
mod slot;
#[cfg(test)]
mod tcp_tests;
#[cfg(test)]
mod tests;
pub mod verbs;

pub use nic::{Carrier, FlowParams, Nic, NicParams};
pub use rdma::{ConnectionParams, Ledger, VerbsParams, WireFormat};
pub use reorder::{Kept, ReorderBuffer, Spare};
pub use selvedge_transport::endpoint::{Completion, Frames, Handled, Message, NicStats, Received, Standing};
pub use selvedge_transport::queue_pairs::{Incoming, RdmaParams, Report, Train};
pub use selvedge_transport::tcp::TcpParams;
pub use slot::REQUESTS;
