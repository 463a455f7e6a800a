//! One flow, and streams of them.

use selvedge_telemetry::FlowRow;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Rng};

/// One flow to come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowSpec {
    /// Number within its workload.
    pub id: u64,
    /// Which workload of the scenario, from 0.
    pub workload: u16,
    /// Repetition it belongs to, from 0 (incasts), or 0.
    pub group: u32,
    /// Who sends.
    pub src: HostId,
    /// Who receives; never `src`.
    pub dst: HostId,
    /// Payload; above zero.
    pub size: Bytes,
    /// Priority of its data, 0 to 7; `None`: the NIC's own (`data_class`).
    pub priority: Option<u8>,
    /// When the application hands it to the NIC.
    pub start: Instant,
    /// Whether it counts.
    pub measured: bool,
    /// Trigger of [`Workload::triggers`](super::Workload::triggers) to activate when the sender has
    /// everything acknowledged.
    pub on_sent: Option<u32>,
    /// Trigger to activate when the receiver has everything.
    pub on_received: Option<u32>,
}

impl FlowSpec {
    /// Its row, not finished, where full packets hold `mtu`. Without an `ideal` there is no path now: it may come back,
    /// but nothing is ideal about it.
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

/// Flows in ascending order of start time, made as they are asked for, so that a run of 100
/// million flows holds a few at a time.
pub trait Generator: Send + Sync {
    /// The next flow; `None` when there are no more.
    fn next_flow(&mut self) -> Option<FlowSpec>;
    /// How many are still to come.
    fn extent(&self) -> Extent;
    /// A generator that continues from the same place.
    fn boxed_clone(&self) -> Box<dyn Generator>;
}

impl Clone for Box<dyn Generator> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// How many flows there will be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// This many.
    Known(u64),
    /// Finitely many; how many is seen when they have come.
    Bounded,
    /// There is always another.
    Endless,
}

impl Extent {
    /// The extent of both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a.saturating_add(b)),
            (Self::Endless, _) | (_, Self::Endless) => Self::Endless,
            _ => Self::Bounded,
        }
    }
    /// The extent when nothing comes after the first `limit`.
    #[must_use]
    pub fn limited(self, limit: Option<u64>) -> Self {
        match (self, limit) {
            (extent, None) => extent,
            (Self::Known(n), Some(limit)) => Self::Known(n.min(limit)),
            (Self::Endless, Some(limit)) => Self::Known(limit),
            (Self::Bounded, Some(_)) => Self::Bounded,
        }
    }
    /// The number, if it is known.
    pub const fn known(self) -> Option<u64> {
        if let Self::Known(n) = self { Some(n) } else { None }
    }
}

/// The random stream of one host (or repetition) in one workload.
pub(super) fn stream(seed: u64, domain: Domain, workload: u16, entity: u32) -> Rng {
    Rng::stream(seed, domain, u64::from(workload) << 32 | u64::from(entity))
}
