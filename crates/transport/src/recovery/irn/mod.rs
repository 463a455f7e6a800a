//! IRN, the improved RoCE NIC (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM'18).
//!
//! The receiver keeps packets that arrive out of order and answers each with a NACK that carries the cumulative
//! acknowledgement and that packet's own number. The sender retransmits only lost packets, and never has more than a
//! bandwidth-delay product in flight (BDP-FC).
//!
//! The sender has two variants: `paper.rs` follows the text of section 3, and [`hls`] follows the authors' hardware
//! code. Both share the timer and the settings.

mod completions;
mod config;
pub mod context;
mod footprint;
pub mod hls;
mod paper;
mod probes;
mod recv;
mod send;
mod stamps;

pub use crate::recovery::timer::RtoRestart;
pub use completions::{Completed, Completion, Completions};
pub use config::{DynamicRto, IrnConfig, IrnConfig as Config, IrnParams, Mode, PartialAcks, Rto, Timeouts};
pub use recv::Recv;
pub use send::Send;

#[cfg(test)]
mod tests;
