//! Metrics by their names: which belong together, and those that the code itself asks for.

/// How many of [`super::METRICS`] the tables show.
pub(crate) const TABLE_METRICS: usize = 7;
/// Metrics that each workload has of its own where there are several, as in "incast.fct_mean_us".
pub(crate) const PER_WORKLOAD: [&str; 9] = [
    "slowdown_mean",
    FLOW_COMPLETION,
    "fct_p99_us",
    "single_packet_fct_p99_us",
    GROUP_COMPLETION,
    GROUPS,
    UNFINISHED_GROUPS,
    MEASURED,
    UNFINISHED,
];
/// The metrics that are taken over flows that finished, or groups that completed: where many did not, they speak of the
/// lucky ones.
pub(crate) const OF_FINISHED: [&str; 15] = [
    "slowdown_mean",
    "slowdown_p50",
    "slowdown_p99",
    FLOW_COMPLETION,
    "fct_p50_us",
    "fct_p99_us",
    "fct_p999_us",
    "single_packet_fct_p50_us",
    "single_packet_fct_p90_us",
    "single_packet_fct_p99_us",
    "single_packet_fct_p999_us",
    "short_fct_mean_us",
    "long_fct_mean_us",
    "throughput_jain",
    GROUP_COMPLETION,
];
/// The metrics whose ratios between series are summarised, and on which a verdict rests.
pub(crate) const COMPARED: [&str; 3] = ["slowdown_mean", FLOW_COMPLETION, "fct_p99_us"];
/// The metric that decides between series whose flows count.
pub(crate) const FLOW_COMPLETION: &str = "fct_mean_us";
/// The metric that counts flows, and that which counts those of them that never finished.
pub(crate) const MEASURED: &str = "measured_flows";
/// See [`MEASURED`].
pub(crate) const UNFINISHED: &str = "unfinished_flows";
/// The same of repetitions of incasts and jobs.
pub(crate) const GROUPS: &str = "measured_groups";
/// See [`GROUPS`].
pub(crate) const UNFINISHED_GROUPS: &str = "unfinished_groups";
/// The metric that counts what EQIFs dropped.
pub(crate) const EQIF_DROPS: &str = "eqif_drops";
/// The metric that decides between series whose incasts, all-to-alls or jobs count.
pub(crate) const GROUP_COMPLETION: &str = "group_completion_mean_us";
