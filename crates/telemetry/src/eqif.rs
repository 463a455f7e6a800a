//! Counters of EQIFs, see section 6 of the EQDS paper.

use selvedge_units::{Bytes, Duration};

/// Counters of the EQIFs of all hosts; zero where no stack has an EQIF.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EqifTotals {
    /// Packets dropped because the queue was full, or by RED.
    pub dropped: u64,
    /// Packets marked with ECN.
    pub marked: u64,
    /// CNPs to queue pairs of the same host.
    pub cnps: u64,
    /// Number of times that an RDMA engine was paused.
    pub pauses: u64,
    /// Packets that came out of a tunnel for a flow that no longer exists.
    pub strays: u64,
    /// Packets that left a queue for its tunnel.
    pub left: u64,
    /// Total waiting time of the packets that left.
    pub waited: Duration,
    /// Largest length of a single queue, over all hosts.
    pub peak: Bytes,
    /// Most that one host had in flight, in all its tunnels together: sent, kept for retransmission, and neither
    /// acknowledged nor lost.
    pub in_flight: Bytes,
    /// Most packets in the reorder queue of a single tunnel.
    pub reordering: u64,
}

impl EqifTotals {
    /// Adds the counters of another host.
    pub fn add(&mut self, other: &Self) {
        self.dropped += other.dropped;
        self.marked += other.marked;
        self.cnps += other.cnps;
        self.pauses += other.pauses;
        self.strays += other.strays;
        self.left += other.left;
        self.waited = self.waited.saturating_add(other.waited);
        self.peak = self.peak.max(other.peak);
        self.in_flight = self.in_flight.max(other.in_flight);
        self.reordering = self.reordering.max(other.reordering);
    }
}
