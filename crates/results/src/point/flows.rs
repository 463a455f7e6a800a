//! Measured flows, and how their times are spread.

use selvedge_telemetry::{TimePart, WorkloadTime};
use serde::{Deserialize, Serialize};

/// The measured flows of a run. Times in microseconds. Distributions are over all of them: flows that had not finished
/// when the run ended count with their age.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Flows that arrived in the measured interval.
    pub measured: u64,
    /// Of these, how many had not finished when the run ended.
    pub unfinished: u64,
    /// Flow completion times.
    pub fct_us: Distribution,
    /// Completion times over the ideal ones.
    pub slowdown: Distribution,
    /// Completion times of messages of one packet.
    pub single_packet_fct_us: Distribution,
    /// FCT of those that finished, at the levels of [`cdf_levels`].
    pub fct_cdf_us: Vec<f64>,
    /// FCT of single-packet messages at the levels of [`tail_levels`]; shorter where there are too
    /// few messages to know.
    pub single_packet_tail_us: Vec<f64>,
    /// From which of them on they are lower bounds; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_tail: Option<usize>,
    /// Jain's index of what flows had of the network: size over completion time, of those that finished.
    #[serde(default)]
    pub throughput_jain: Option<f64>,
    /// By flow size, smallest first; empty classes are left out.
    pub by_size: Vec<SizeClass>,
    /// Repetitions of incasts, all-to-alls and jobs (workload, group) that began in the measured interval.
    pub groups: u64,
    /// Of these, how many were not complete at the end: flows or ranks had not finished, or not begun.
    pub unfinished_groups: u64,
    /// Mean: from the first start to the last finish; of those that were not complete, to the end of the run.
    pub group_completion_mean_us: Option<f64>,
    /// Where their time went; `None` where nobody has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeSplit>,
}

impl FlowSummary {
    /// What a measured flow spent on this on average, in microseconds; `None` where nobody has looked.
    pub fn time_us(&self, part: TimePart) -> Option<f64> {
        self.time.as_ref()?.mean_us.get(part as usize).copied()
    }
}

/// The mean time of measured flows, part by part. What a flow spent that never finished is its time until the end of
/// the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TimeSplit {
    /// Microseconds, in the order of [`TimePart::ALL`]. They add up to the mean completion time where all have
    /// finished.
    pub mean_us: Vec<f64>,
    /// From how many looks at a flow that was under way the shares come.
    pub samples: u64,
}

impl TimeSplit {
    /// Of flows whose mean time is `mean_us`; `None` if none of them was looked at.
    pub(crate) fn new(time: &WorkloadTime, mean_us: f64) -> Option<Self> {
        let total = time.parts.total();
        let share = |(_, part): (TimePart, u128)| part as f64 / total as f64 * mean_us;
        (total > 0).then(|| Self { mean_us: time.parts.iter().map(share).collect(), samples: time.samples })
    }
}

/// A few numbers about many.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "their names say it")]
pub struct Distribution {
    pub count: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
    /// Whether these are lower bounds, because flows that had not finished could raise them visibly.
    #[serde(default)]
    pub open: OpenQuantiles,
}

/// Which quantiles are lower bounds. Flows that had not finished count with their age; were they to take for ever, a
/// quantile would be larger by more than 0.5 %.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "their names say it")]
pub struct OpenQuantiles {
    pub p50: bool,
    pub p99: bool,
    pub p999: bool,
}

/// Flows of similar size.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SizeClass {
    /// Sizes above this many bytes ...
    pub above: u64,
    /// ... up to this many: twice as many.
    pub up_to: u64,
    /// Mean of their sizes, in bytes.
    pub size_mean: f64,
    /// How many of them had not finished when the run ended.
    #[serde(default)]
    pub unfinished: u64,
    /// Their slowdown.
    pub slowdown: Distribution,
    /// Mean completion time.
    pub fct_mean_us: f64,
}

/// The levels at which completion times are kept for plots: every half per cent, and beyond.
pub fn cdf_levels() -> Vec<f64> {
    let body = (0..200).map(|step| f64::from(step) / 200.0);
    body.chain([0.9975, 0.999, 0.9995, 0.9999, 1.0]).collect()
}

/// The levels at which tails are kept for plots, from 90 % to 99.99 %, evenly in log(1 - level).
pub fn tail_levels() -> Vec<f64> {
    (0..=60).map(|step| 1.0 - 10_f64.powf(-1.0 - f64::from(step) / 20.0)).collect()
}
