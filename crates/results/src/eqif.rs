//! Counters of the EQIFs of a run.

use selvedge_telemetry::EqifTotals;
use serde::{Deserialize, Serialize};

/// EQIF counters for files; see [`EqifTotals`].
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names and meanings are EqifTotals'")]
pub struct EqifReport {
    pub dropped: u64,
    pub marked: u64,
    pub cnps: u64,
    pub pauses: u64,
    pub strays: u64,
    pub left: u64,
    pub wait_mean_us: Option<f64>,
    pub peak_bytes: u64,
    pub in_flight_bytes: u64,
    pub reordering: u64,
}

impl From<&EqifTotals> for EqifReport {
    fn from(totals: &EqifTotals) -> Self {
        Self {
            dropped: totals.dropped,
            marked: totals.marked,
            cnps: totals.cnps,
            pauses: totals.pauses,
            strays: totals.strays,
            left: totals.left,
            wait_mean_us: (totals.left > 0).then(|| totals.waited.as_us_f64() / totals.left as f64),
            peak_bytes: totals.peak.get(),
            in_flight_bytes: totals.in_flight.get(),
            reordering: totals.reordering,
        }
    }
}
