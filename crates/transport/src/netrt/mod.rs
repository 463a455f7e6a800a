//! NetRT: loss recovery between top-of-rack switches, which NICs do not notice (NetRT, 2024).
//!
//! ```text
//! host --> SrcTor: copy into the port's duplicate pool --> fabric --> DstTor: in order? --> host
//!             ^                                                         |  early: hold, request
//!             |<------------------- Request ----------------------------|
//!             |--- copies at high priority, or Unfulfilled ------------>|  release in order, or give up
//! ```
//!
//! Both engines see packets pass and decide whether each is forwarded, held or dropped; they keep a handle of
//! the packet (`H`: a place in a pool, an mbuf), never its bytes. What else they want done comes out of
//! `poll_output`, to be drained after each call. Best effort is the rule (section III-A): whatever is too much
//! is forwarded as it is, and the NIC's own go-back-N does what it always did.

mod config;
mod dst_tor;
mod duplicates;
mod flows;
mod footprint;
mod occupancy;
#[cfg(test)]
mod printed;
mod src_tor;
#[cfg(test)]
mod tests;

use selvedge_units::{HostId, QpNumber};

pub use config::{NetRtConfig, Settings};
pub use dst_tor::{DstTor, DstTorStats, ForwardingDecision, Tracked};
pub use occupancy::Occupancy;
pub use src_tor::{SrcTor, SrcTorStats};

use crate::table::Key;

/// A flow, as switches tell flows apart: addresses and queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Who sends data.
    pub src: HostId,
    /// Who receives it.
    pub dst: HostId,
    /// The queue pair.
    pub qp: QpNumber,
}

impl Key for Flow {
    const BLANK: Self = Self { src: HostId(0), dst: HostId(0), qp: QpNumber(0) };
    #[inline]
    fn mixed(self) -> u64 {
        // Fibonacci hashing of both halves.
        let pair = u64::from(self.src.0) << 32 | u64::from(self.qp.0);
        (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(self.dst.0)).wrapping_mul(0xd134_2543_de82_ef95)
    }
}

/// A packet as it passes a ToR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing<H> {
    /// How the driver finds it again.
    pub handle: H,
    /// Bytes of its frame.
    pub bytes: u32,
    /// Its traffic class, as its NIC has sent it.
    pub class: u8,
    /// The port towards its host, numbered from 0 within the switch.
    pub port: u16,
    /// Bytes of buffer that regular traffic leaves to the duplicates, or the held packets, of this port, those that are
    /// there included: they yield to it.
    pub room: u64,
}

/// How many packets behind the expected one a destination ToR keeps track of (section III-C: 128 bits).
pub const WINDOW: u32 = u128::BITS;

/// Bits of the counter of a flow's requests (section III-C1).
const COUNTER_BITS: u64 = u32::BITS as u64;

/// Bits of the state of a flow at its destination ToR: one of three.
const STATE_BITS: u64 = 2;
