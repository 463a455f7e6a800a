//! NetRT: loss recovery between top-of-rack switches, invisible to NICs (NetRT, 2024).
//!
//! ```text
//! host --> SrcTor: copy into the port's duplicate pool --> fabric --> DstTor: in order? --> host
//!             ^                                                         |  early: hold, request
//!             |<------------------- Request ----------------------------|
//!             |--- copies at high priority, or Unfulfilled ------------>|  release in order, or give up
//! ```
//!
//! Both engines observe packets and decide whether each is forwarded, held or dropped; they keep a handle of the packet
//! (`H`: a place in a pool, an mbuf), never its bytes. Further actions are returned by `poll_output`, to be drained
//! after each call. The service is best effort (section III-A): packets beyond the limits are forwarded unchanged, and
//! the NIC's own go-back-N recovers.

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

use selvedge_units::{HostId, Psn, QpNumber};

pub use config::{NetRtConfig, Settings};
pub use dst_tor::{DstTor, DstTorStats, ForwardingDecision, Tracked};
pub use occupancy::Occupancy;
pub use src_tor::{SrcTor, SrcTorStats};

use crate::table::Key;

/// A flow as switches identify it: addresses and queue pair.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Sender of the data.
    pub src: HostId,
    /// Receiver of the data.
    pub dst: HostId,
    /// Queue pair number.
    pub qp: QpNumber,
}

impl Key for Flow {
    const BLANK: Self = Self { src: HostId(0), dst: HostId(0), qp: QpNumber(0) };
    #[inline]
    fn mixed(self) -> u64 {
        // Fibonacci hashing over both halves.
        let pair = u64::from(self.src.0) << 32 | u64::from(self.qp.0);
        (pair.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(self.dst.0)).wrapping_mul(0xd134_2543_de82_ef95)
    }
}

/// A packet that passes a ToR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passing<H> {
    /// The driver's reference to the packet.
    pub handle: H,
    /// Bytes of the frame.
    pub bytes: u32,
    /// Traffic class set by the sending NIC.
    pub class: u8,
    /// Port towards the ToR's host, numbered from 0 within the switch.
    pub port: u16,
    /// PSN with which the flow began, as far as the driver has seen it; otherwise the packet's own. Of use only to a
    /// destination ToR that does not know the flow yet.
    pub first: Psn,
    /// PSNs that the packet takes, at least 1; a Read request takes one for each packet of its answer.
    pub psns: u32,
    /// Bytes of buffer that regular traffic leaves to the duplicates, or held packets, of this port, including those
    /// present: these yield to regular traffic.
    pub room: u64,
}

/// Number of packets after the expected one that a destination ToR tracks (section III-C: 128 bits).
pub const WINDOW: u32 = u128::BITS;

/// Width of the counter of a flow's requests (section III-C1).
const COUNTER_BITS: u64 = u32::BITS as u64;

/// Width of the state of a flow at its destination ToR: one of three.
const STATE_BITS: u64 = 2;
