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
/// The metrics that are taken over completion times of flows or groups: where some had not finished when the run ended,
/// they may be bounds.
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
/// The metric that counts flows, and that which counts those of them that had not finished.
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
/// The metrics that say where completion time goes, in the order of [`TimePart::ALL`](crate::TimePart::ALL): they add
/// up to the mean time of a measured flow.
pub(crate) const TIMES: [&str; crate::TimePart::ALL.len()] = [
    "time_serialisation_us",
    "time_propagation_us",
    "time_queueing_us",
    "time_acks_us",
    "time_pause_us",
    "time_nic_us",
    "time_pacing_us",
    "time_window_us",
    "time_cap_us",
    "time_recovery_us",
    "time_timeout_us",
    "time_outage_us",
    "time_other_us",
];
/// The metric that counts from how many looks they come.
pub(crate) const TIME_SAMPLES: &str = "time_samples";
