//! Names of metrics: groups that belong together, and metrics that the code itself uses.

/// Number of leading [`super::METRICS`] that the tables show.
pub(crate) const TABLE_METRICS: usize = 7;
/// Metrics that each workload has for itself where there are several workloads, as in "incast.fct_mean_us".
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
/// Metrics taken over completion times of flows or groups. They may be bounds where some flows or groups had not
/// finished when the run ended.
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
/// Metrics whose ratios between series are summarised, and on which a verdict rests.
pub(crate) const COMPARED: [&str; 3] = ["slowdown_mean", FLOW_COMPLETION, "fct_p99_us"];
/// Metric that decides between series whose flows count.
pub(crate) const FLOW_COMPLETION: &str = "fct_mean_us";
/// Metric that counts measured flows.
pub(crate) const MEASURED: &str = "measured_flows";
/// Metric that counts measured flows that had not finished; see [`MEASURED`].
pub(crate) const UNFINISHED: &str = "unfinished_flows";
/// Metric that counts measured repetitions of incasts and jobs.
pub(crate) const GROUPS: &str = "measured_groups";
/// Metric that counts measured repetitions that were not complete; see [`GROUPS`].
pub(crate) const UNFINISHED_GROUPS: &str = "unfinished_groups";
/// Metric that counts packets dropped by EQIFs.
pub(crate) const EQIF_DROPS: &str = "eqif_drops";
/// Metric that decides between series whose incasts, all-to-alls or jobs count.
pub(crate) const GROUP_COMPLETION: &str = "group_completion_mean_us";
/// Metrics that split completion time into parts, in the order of [`TimePart::ALL`](crate::TimePart::ALL). Their sum is
/// the mean time of a measured flow.
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
/// Metric that counts the samples behind [`TIMES`].
pub(crate) const TIME_SAMPLES: &str = "time_samples";
