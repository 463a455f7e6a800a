//! Measured flows and the distributions of their times.

use selvedge_telemetry::{TimePart, WorkloadTime};
use serde::{Deserialize, Serialize};

/// The measured flows of a run. Times are in microseconds. Distributions cover all of these flows: flows that had not
/// finished when the run ended count with their age.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Flows that arrived in the measured interval.
    pub measured: u64,
    /// Measured flows that had not finished when the run ended.
    pub unfinished: u64,
    /// Flow completion times.
    pub fct_us: Distribution,
    /// Completion times divided by ideal completion times.
    pub slowdown: Distribution,
    /// Completion times of messages of one packet.
    pub single_packet_fct_us: Distribution,
    /// FCT of finished flows, at the levels of [`cdf_levels`].
    pub fct_cdf_us: Vec<f64>,
    /// FCT of single-packet messages at the levels of [`tail_levels`]; shorter where there are too few messages to
    /// know.
    pub single_packet_tail_us: Vec<f64>,
    /// Index in `single_packet_tail_us` from which on values are lower bounds; absent if none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_tail: Option<usize>,
    /// Jain's index of the throughput of finished flows: size over completion time.
    #[serde(default)]
    pub throughput_jain: Option<f64>,
    /// Flows grouped by size, smallest first; empty classes are left out.
    pub by_size: Vec<SizeClass>,
    /// Repetitions of incasts, all-to-alls and jobs (workload, group) that began in the measured interval.
    pub groups: u64,
    /// Measured repetitions that were not complete at the end: some flows or ranks had not finished, or not begun.
    pub unfinished_groups: u64,
    /// Mean time from a repetition's first start to its last finish, or to the end of the run if it was not complete.
    pub group_completion_mean_us: Option<f64>,
    /// Split of the flows' time into parts; `None` if flows were not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeSplit>,
}

impl FlowSummary {
    /// Returns the mean time that a measured flow spent on this part, in microseconds; `None` if flows were not
    /// sampled.
    pub fn time_us(&self, part: TimePart) -> Option<f64> {
        self.time.as_ref()?.mean_us.get(part as usize).copied()
    }
}

/// The mean time of measured flows, split into parts. The time of an unfinished flow ends with the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct TimeSplit {
    /// Mean times in microseconds, in the order of [`TimePart::ALL`]. Their sum is the mean completion time if all
    /// flows have finished.
    pub mean_us: Vec<f64>,
    /// Number of samples of active flows behind the split.
    pub samples: u64,
}

impl TimeSplit {
    /// Splits the mean time `mean_us` of flows; returns `None` if no flow was sampled.
    pub(crate) fn new(time: &WorkloadTime, mean_us: f64) -> Option<Self> {
        let total = time.parts.total();
        let share = |(_, part): (TimePart, u128)| part as f64 / total as f64 * mean_us;
        (total > 0).then(|| Self { mean_us: time.parts.iter().map(share).collect(), samples: time.samples })
    }
}

/// Count, mean, quantiles and maximum of a set of values.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "their names say it")]
pub struct Distribution {
    pub count: u64,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
    /// Quantiles that are lower bounds, because flows that had not finished could raise them visibly.
    #[serde(default)]
    pub open: OpenQuantiles,
}

/// The quantiles that are lower bounds. Unfinished flows count with their age; if they never finished, such a quantile
/// would be larger by more than 0.5 %.
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
    /// Exclusive lower limit of the sizes, in bytes.
    pub above: u64,
    /// Inclusive upper limit of the sizes, in bytes: twice the lower limit.
    pub up_to: u64,
    /// Mean size of the flows, in bytes.
    pub size_mean: f64,
    /// Flows of the class that had not finished when the run ended.
    #[serde(default)]
    pub unfinished: u64,
    /// Slowdown of the flows.
    pub slowdown: Distribution,
    /// Mean completion time of the flows, in microseconds.
    pub fct_mean_us: f64,
}

/// Returns the levels at which completion times are kept for plots: every half per cent, and some beyond 99.5 %.
pub fn cdf_levels() -> Vec<f64> {
    let body = (0..200).map(|step| f64::from(step) / 200.0);
    body.chain([0.9975, 0.999, 0.9995, 0.9999, 1.0]).collect()
}

/// Returns the levels at which tails are kept for plots, from 90 % to 99.99 %, evenly spaced in log(1 - level).
pub fn tail_levels() -> Vec<f64> {
    (0..=60).map(|step| 1.0 - 10_f64.powf(-1.0 - f64::from(step) / 20.0)).collect()
}
