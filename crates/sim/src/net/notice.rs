//! Notices between hosts, and events that a host plans for later, both in a total order that does not depend on
//! partitions.

use std::cmp::Ordering;

use selvedge_nic::Report;
use selvedge_telemetry::FlowRow;
use selvedge_units::{HostId, Instant, QpNumber};

use crate::workload::FlowSpec;

/// Event that a host's applications have planned. The earliest is the greatest.
pub(super) enum Due {
    /// Beginning of a flow. `turn` orders flows that begin at the same time: it is the flow's workload, or the first
    /// operation's workload of a mix of operations, which are posted in the order of their numbers.
    Flow { spec: FlowSpec, turn: u16 },
    /// End of a computation of a workload's schedule.
    Computed { at: Instant, workload: u16, place: u64 },
}

impl Due {
    pub(super) fn at(&self) -> Instant {
        match self {
            Self::Flow { spec, .. } => spec.start,
            Self::Computed { at, .. } => *at,
        }
    }
    fn key(&self) -> (Instant, u16, bool, u64) {
        match *self {
            Self::Flow { spec, turn } => (spec.start, turn, false, spec.id),
            Self::Computed { at, workload, place } => (at, workload, true, place),
        }
    }
}
impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Due {}
impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}
impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Notice from one host to another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) at: Instant,
    /// Sender, and its count of notices: a total order that does not depend on partitions.
    pub(super) from: HostId,
    pub(super) number: u64,
    pub(super) news: News,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Announces a flow on this queue pair.
    Open { qp: QpNumber, row: FlowRow, on_received: Option<u32> },
    /// Tells that the queue pair is finished and can be removed.
    Close { qp: QpNumber },
    /// Tells that everything has arrived, where there are no acknowledgements.
    Finished { qp: QpNumber, slot: u32 },
    /// Reports a round-trip time for congestion control, where there are no acknowledgements.
    Report(Report),
}

impl Ord for Notice {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.from, self.number).cmp(&(other.at, other.from, other.number))
    }
}
impl PartialOrd for Notice {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
