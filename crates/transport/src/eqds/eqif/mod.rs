//! Sending EQIFs (section 6, figure 5): queues in which packets of stacks unaware of EQDS wait for tunnels.
//!
//! ```text
//!   TCP  ──offer──> Queue per destination ──┐
//!   RDMA ──offer──> Queue per destination ──┼──> Schedule ──> the uplink
//!   native messages ────────────────────────┘
//! ```
//! A [`Queue`] decides whether a packet is queued, queued with an ECN mark, or dropped. A [`Backlog`] derives the
//! back-pressure to an RDMA engine. The owner holds the tunnels and defines the packet type.

mod backlog;
mod config;
mod queue;
mod schedule;
mod spacing;
#[cfg(test)]
mod tests;

pub use backlog::{Backlog, QueuePressure};
pub use config::{BackPressure, CnpConfig, EqifConfig, EqifParams, PauseConfig, RdmaEqif, Red, Share, TcpEqif};
pub use config::{Pressure, RdmaEqifParams, TcpEqifParams};
pub use queue::{Offer, Offered, Queue};
pub use schedule::Schedule;
