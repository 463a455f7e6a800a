//! Traffic: which host sends how much to which other host, and when.

use selvedge_units::{Bytes, HostId, Instant};

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
    /// When the application hands it to the NIC.
    pub start: Instant,
    /// Whether it counts.
    pub measured: bool,
}

/// Flows in ascending order of start time, made as they are asked for, so that a run of 100
/// million flows holds a few at a time.
pub trait Generator: Send {
    /// The next flow; `None` when there are no more.
    fn next_flow(&mut self) -> Option<FlowSpec>;
}

/// When a flow of a [`FlowList`] begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At this time.
    At(Instant),
    /// When the trigger with this index releases it.
    Triggered(u32),
}

/// One flow of a [`FlowList`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedFlow {
    /// Number in the file, or its line's index.
    pub id: u64,
    /// Who sends.
    pub src: HostId,
    /// Who receives.
    pub dst: HostId,
    /// Payload.
    pub size: Bytes,
    /// When it begins.
    pub start: Start,
    /// Trigger to activate when the sender has everything acknowledged.
    pub on_sent: Option<u32>,
    /// Trigger to activate when the receiver has everything.
    pub on_received: Option<u32>,
}

/// How a trigger answers activations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerKind {
    /// The first activation releases all waiting flows; later ones nothing.
    OneShot,
    /// Each activation releases the next waiting flow.
    MultiShot,
    /// The `n`-th activation releases all waiting flows.
    Barrier(u32),
}

/// Flows written out, some of which wait for others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowList {
    /// The flows, in input order.
    pub flows: Vec<ListedFlow>,
    /// The triggers that flows refer to by index.
    pub triggers: Vec<TriggerKind>,
}

/// A distribution of flow sizes: points of its cumulative distribution function.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cdf {
    /// `(size, P(X <= size) in units of 2^-64)`, both non-decreasing, the last at `u64::MAX`.
    points: Vec<(Bytes, u64)>,
}

impl Cdf {
    /// The points.
    pub fn points(&self) -> &[(Bytes, u64)] {
        &self.points
    }
}
