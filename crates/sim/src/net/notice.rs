//! What hosts are told, and what they mean to do later: both in a total order that no partitioning changes.

use std::cmp::Ordering;

use selvedge_nic::Report;
use selvedge_telemetry::FlowRow;
use selvedge_units::{HostId, Instant, QpNumber};

use crate::workload::FlowSpec;

/// Something that a host's applications do in time: the earliest is the greatest.
pub(super) enum Due {
    /// This flow begins. Its turn among those of the same time is this workload's: of all operations of a mix, which
    /// are posted in the order of their numbers, the first's.
    Flow { spec: FlowSpec, turn: u16 },
    /// A computation of this workload's schedule ends.
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

/// Something that one host tells another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) at: Instant,
    /// Who says it, and its count of things said: a total order that no partitioning changes.
    pub(super) from: HostId,
    pub(super) number: u64,
    pub(super) news: News,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    /// Expect this flow on this queue pair.
    Open { qp: QpNumber, row: FlowRow, on_received: Option<u32> },
    /// The queue pair is finished; forget it.
    Close { qp: QpNumber },
    /// Without acknowledgements: everything has arrived.
    Finished { qp: QpNumber, slot: u32 },
    /// Without acknowledgements: a round-trip time for congestion control.
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
