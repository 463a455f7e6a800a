//! One flow, and streams of them.

use selvedge_telemetry::FlowRow;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Rng};

/// Specification of one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowSpec {
    /// Number of the flow within its workload.
    pub id: u64,
    /// Number of the workload in the scenario, from 0.
    pub workload: u16,
    /// Repetition that the flow belongs to, from 0 (incasts), or 0.
    pub group: u32,
    /// Sender.
    pub src: HostId,
    /// Receiver; never `src`.
    pub dst: HostId,
    /// Payload in bytes; above zero.
    pub size: Bytes,
    /// Priority of the flow's data, 0 to 7; `None`: the NIC's own (`data_class`).
    pub priority: Option<u8>,
    /// Time at which the application hands the flow to the NIC.
    pub start: Instant,
    /// Whether the flow is measured.
    pub measured: bool,
    /// Trigger of [`Workload::triggers`](super::Workload::triggers) to activate when the sender has everything
    /// acknowledged.
    pub on_sent: Option<u32>,
    /// Trigger to activate when the receiver has everything.
    pub on_received: Option<u32>,
}

impl FlowSpec {
    /// Returns the flow's row, not finished, where full packets hold `mtu`. Without an `ideal`, there is no path now;
    /// one may come back, but the flow has no ideal time.
    pub(crate) fn row(&self, mtu: Bytes, ideal: Option<Duration>) -> FlowRow {
        FlowRow {
            id: self.id,
            workload: self.workload,
            group: self.group,
            src: self.src,
            dst: self.dst,
            size: self.size,
            packets: self.size.pieces(mtu),
            start: self.start,
            finish: None,
            ideal: ideal.unwrap_or(Duration::ZERO),
            spurious: 0,
            measured: self.measured,
        }
    }
}

/// Generator of flows in ascending order of start time. Flows are made one at a time, so that a run of 100 million
/// flows holds a few of them in memory.
pub trait Generator: Send + Sync {
    /// Returns the next flow; `None` when there are no more.
    fn next_flow(&mut self) -> Option<FlowSpec>;
    /// Returns the number of flows that are still to come.
    fn extent(&self) -> Extent;
    /// Returns a generator that continues from the same state.
    fn boxed_clone(&self) -> Box<dyn Generator>;
}

impl Clone for Box<dyn Generator> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// Number of flows that there will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Known number of flows.
    Known(u64),
    /// Finitely many flows, whose number is not known beforehand.
    Bounded,
    /// Endlessly many flows.
    Endless,
}

impl Extent {
    /// Returns the extent of both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a.saturating_add(b)),
            (Self::Endless, _) | (_, Self::Endless) => Self::Endless,
            _ => Self::Bounded,
        }
    }
    /// Returns the extent of the first `limit` flows.
    #[must_use]
    pub fn limited(self, limit: Option<u64>) -> Self {
        match (self, limit) {
            (extent, None) => extent,
            (Self::Known(n), Some(limit)) => Self::Known(n.min(limit)),
            (Self::Endless, Some(limit)) => Self::Known(limit),
            (Self::Bounded, Some(_)) => Self::Bounded,
        }
    }
    /// Returns the number, if it is known.
    pub const fn known(self) -> Option<u64> {
        if let Self::Known(n) = self { Some(n) } else { None }
    }
}

/// Returns the random stream of one host (or repetition) in one workload.
pub(super) fn stream(seed: u64, domain: Domain, workload: u16, entity: u32) -> Rng {
    Rng::stream(seed, domain, u64::from(workload) << 32 | u64::from(entity))
}
