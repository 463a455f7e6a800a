//! MELO, memory-efficient loss recovery (Lu et al., "Memory Efficient Loss Recovery for Hardware-based
//! Transport in Datacenter", APNet'17).
//!
//! The receiver keeps out-of-order packets in a reorder buffer in the host's memory. The chip records only which
//! packets these are, in bits from a pool that all queue pairs of the NIC share. When a hole forms, the receiver
//! reports the three newest holes; the sender rebuilds the bitmap in a pool of its own and retransmits the holes.

mod config;
mod footprint;
mod linked_bitmap;
mod pool;
mod pools;
mod recv;
mod residents;
mod send;

pub use config::{MeloConfig, MeloConfig as Config, MeloParams, Resend};
pub use pool::{BitsPool, Block};
pub use pools::Pools;
pub use recv::Recv;
pub(crate) use residents::Residents;
pub use send::Send;

#[cfg(test)]
mod tests;
