//! What EQIFs did: see the paper's section 6 (EQDS).

use selvedge_units::{Bytes, Duration};

/// What the sending EQIFs of all hosts did with packets of their stacks; nothing where stacks have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EqifTotals {
    /// Packets that found their queue full, or that RED dropped.
    pub dropped: u64,
    /// Packets that were marked.
    pub marked: u64,
    /// CNPs to queue pairs of the same host.
    pub cnps: u64,
    /// How often an RDMA engine was paused.
    pub pauses: u64,
    /// Packets that came out of a tunnel for a flow that is no more.
    pub strays: u64,
    /// Packets that left a queue for its tunnel.
    pub left: u64,
    /// The time for which these had waited, together.
    pub waited: Duration,
    /// The most bytes that one queue has held, of all hosts.
    pub peak: Bytes,
}

impl EqifTotals {
    /// Adds what happened at another host.
    pub fn add(&mut self, other: &Self) {
        self.dropped += other.dropped;
        self.marked += other.marked;
        self.cnps += other.cnps;
        self.pauses += other.pauses;
        self.strays += other.strays;
        self.left += other.left;
        self.waited = self.waited.saturating_add(other.waited);
        self.peak = self.peak.max(other.peak);
    }
}
