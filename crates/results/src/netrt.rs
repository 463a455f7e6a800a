//! Counters of NetRT's switches in a run.

use selvedge_telemetry::NetRtTotals;
use serde::{Deserialize, Serialize};

/// NetRT counters for files; see [`NetRtTotals`].
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names and meanings are NetRtTotals'")]
pub struct NetRtReport {
    pub requests: u64,
    pub unfulfilled: u64,
    pub retransmissions: u64,
    pub held: u64,
    pub given_up: u64,
    pub pauses: u64,
    pub messages: u64,
    pub pool_peak_bytes: u64,
    pub pool_mean_bytes: Option<f64>,
    pub buffer_peak_bytes: u64,
    pub buffer_mean_bytes: Option<f64>,
}

impl From<&NetRtTotals> for NetRtReport {
    fn from(totals: &NetRtTotals) -> Self {
        Self {
            requests: totals.requests,
            unfulfilled: totals.unfulfilled,
            retransmissions: totals.retransmissions,
            held: totals.held,
            given_up: totals.given_up,
            pauses: totals.pauses,
            messages: totals.messages,
            pool_peak_bytes: totals.pool.peak.get(),
            pool_mean_bytes: totals.pool.mean(),
            buffer_peak_bytes: totals.buffer.peak.get(),
            buffer_mean_bytes: totals.buffer.mean(),
        }
    }
}
