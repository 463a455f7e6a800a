//! The summary of one run (one series, one seed): small enough to keep in memory for a whole study and to write as
//! JSON, so that an interrupted study resumes.

mod deadlock;
mod files;
mod flows;
mod ports;
mod totals;

use serde::{Deserialize, Serialize};

pub use self::deadlock::{DeadlockHop, DeadlockReport};
pub(crate) use self::files::PartDigests;
pub use self::files::PointFiles;
pub use self::flows::{Distribution, FlowSummary, OpenQuantiles, SizeClass, TimeSplit, cdf_levels, tail_levels};
pub use self::ports::{PausedPort, Pauses, PortTimes, TierPauses, TierTimes, WORST_PORTS};
pub(crate) use self::totals::ReorderingTotals;
pub use self::totals::{DropCounts, RunTotals};

/// The summary of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PointSummary {
    /// Name of the run's series.
    pub series: String,
    /// Seed of the run.
    pub seed: u64,
    /// Counters of the whole run.
    pub run: RunTotals,
    /// All measured flows of the run.
    pub flows: FlowSummary,
    /// Measured flows of each workload by its key, if there are several workloads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<(String, FlowSummary)>,
    /// Egress queues over time, in bytes.
    pub queues: PortTimes,
    /// Share of the time that ports were transmitting, 0 to 1, over time.
    pub utilisation: PortTimes,
    /// Pauses by tiers and ports.
    pub pauses: Pauses,
}

impl PointSummary {
    /// Returns each workload's flows if there are several workloads, else all flows under an empty name. Beside other
    /// traffic, `flows` leaves out the flows of incasts and collectives.
    pub(crate) fn flows_by_workload(&self) -> impl Iterator<Item = (&str, &FlowSummary)> {
        let all = self.workloads.is_empty().then_some(("", &self.flows));
        all.into_iter().chain(self.workloads.iter().map(|(name, flows)| (name.as_str(), flows)))
    }

    /// Returns the number of unfinished flows or groups of all workloads; `of` returns this number first.
    pub(crate) fn unfinished(&self, of: fn(&FlowSummary) -> (u64, u64)) -> u64 {
        self.flows_by_workload().map(|(_, flows)| of(flows).0).sum()
    }
}
