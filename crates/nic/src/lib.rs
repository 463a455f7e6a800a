#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cm;
mod echo;
mod eqds;
mod eqif;
mod messages;
mod nic;
mod qp;
mod rdma;
mod reorder;
mod slot;
mod standing;
mod tcp;
#[cfg(test)]
mod tests;
pub mod verbs;

pub use nic::{FlowParams, Incoming, Nic, NicParams, RdmaParams, TcpParams, Train};
pub use qp::{Carrier, Report};
pub use rdma::{ConnectionParams, Ledger, VerbsParams, WireFormat};
pub use reorder::{Kept, ReorderBuffer, Spare};
pub use selvedge_transport::endpoint::{Completion, Frames, Handled, Message, NicStats, Standing};
pub use slot::REQUESTS;
pub use standing::Received;
