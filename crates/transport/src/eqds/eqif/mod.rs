//! Sending EQIFs (section 6, figure 5): how packets of stacks that know nothing of EQDS wait for its tunnels.
//!
//! ```text
//!   TCP  ──offer──> Queue per destination ──┐
//!   RDMA ──offer──> Queue per destination ──┼──> Schedule ──> the uplink
//!   native messages ────────────────────────┘
//! ```
//!
//! A [`Queue`] says what becomes of a packet: it waits, waits with an ECN mark, or is dropped. A [`Backlog`] says what
//! an RDMA engine must hear. Who holds the tunnels is their owner's business, as is what packets are.

mod backlog;
mod config;
mod queue;
mod schedule;
mod spacing;
#[cfg(test)]
mod tests;

pub use backlog::{Backlog, QueuePressure};
pub use config::{BackPressure, CnpConfig, EqifConfig, EqifParams, PauseConfig, RdmaEqif, Red, Share, TcpEqif};
pub use queue::{Offer, Queue};
pub use schedule::Schedule;
