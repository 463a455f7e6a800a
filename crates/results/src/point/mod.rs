//! What one run (one series, one seed) amounts to: small enough to keep in memory for a whole study
//! and to write as JSON, so that an interrupted study resumes.

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

/// One run, summarised.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PointSummary {
    /// Name of its series.
    pub series: String,
    /// Its seed.
    pub seed: u64,
    /// Counters of the whole run.
    pub run: RunTotals,
    /// Its measured flows.
    pub flows: FlowSummary,
    /// Those of each workload by its key, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<(String, FlowSummary)>,
    /// Egress queues over time, in bytes.
    pub queues: PortTimes,
    /// How much of the time ports were transmitting, 0 to 1, over time.
    pub utilisation: PortTimes,
    /// Who paused whom.
    pub pauses: Pauses,
}

impl PointSummary {
    /// Each workload's flows where there are several, else all, of a workload without a name. Beside other traffic
    /// `flows` leaves those of incasts and collectives out.
    pub(crate) fn flows_by_workload(&self) -> impl Iterator<Item = (&str, &FlowSummary)> {
        let all = self.workloads.is_empty().then_some(("", &self.flows));
        all.into_iter().chain(self.workloads.iter().map(|(name, flows)| (name.as_str(), flows)))
    }

    /// How many flows or groups of all workloads never finished; `of` has their number first.
    pub(crate) fn unfinished(&self, of: fn(&FlowSummary) -> (u64, u64)) -> u64 {
        self.flows_by_workload().map(|(_, flows)| of(flows).0).sum()
    }
}
