//! Claims about the size of state, which is counted rather than simulated.
//!
//! ```toml
//! [footprint]
//! queue-pairs = 300
//!
//! [[expect]]
//! say    = "23 B for each of 300 connections"
//! metric = "footprint.per-qp"
//! of     = "melo"
//! value  = { near = 23, tolerance = 0.022 }
//! ```

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use selvedge_units::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::{Estimate, Summary};

/// The NIC, or the pair of top-of-rack switches, whose state is counted for claims: `[footprint]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FootprintNic {
    /// Queue pairs in the NIC; for switches, flows.
    #[serde(deserialize_with = "queue_pairs")]
    pub queue_pairs: NonZeroU32,
    /// Work queue elements in the NIC; 0 by default.
    #[serde(default)]
    pub work_requests: u32,
    /// Size of the NIC's cache; 4 MB by default.
    #[serde(default = "usual_cache", deserialize_with = "cache")]
    pub cache: Bytes,
}

fn usual_cache() -> Bytes {
    Bytes::from_kb(4000)
}

fn queue_pairs<'de, D: Deserializer<'de>>(from: D) -> Result<NonZeroU32, D::Error> {
    let expected = format!("expected a number of queue pairs, from 1 to {}", u32::MAX);
    NonZeroU32::deserialize(from).map_err(|_| D::Error::custom(expected))
}

fn cache<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
    let cache = Bytes::deserialize(from)?;
    if cache.is_zero() { Err(D::Error::custom("a NIC without cache has no share to give")) } else { Ok(cache) }
}

/// The state of each series of a study: its numbers by name, such as "per-qp".
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Footprints {
    of: BTreeMap<(Option<String>, String), BTreeMap<String, f64>>,
}

impl Footprints {
    /// Adds the numbers of a series in a case.
    pub fn add<'a>(&mut self, case: Option<&str>, series: &str, numbers: impl IntoIterator<Item = (&'a str, f64)>) {
        let numbers = numbers.into_iter().map(|(name, value)| (format!("{PREFIX}{name}"), value)).collect();
        self.of.insert((case.map(str::to_owned), series.to_owned()), numbers);
    }

    /// Returns the reason why a series lacks a metric of state; `None` if it has the metric, or the metric is another
    /// one.
    pub(super) fn missing(&self, metric: &str, case: Option<&str>, series: &str) -> Option<String> {
        let name = metric.strip_prefix(PREFIX)?;
        let Some(numbers) = self.of.get(&(case.map(str::to_owned), series.to_owned())) else {
            return Some(format!("the state of \"{series}\" is not counted: it has no queue pairs of its own"));
        };
        if numbers.contains_key(metric) {
            return None;
        }
        let known: Vec<&str> = numbers.keys().filter_map(|name| name.strip_prefix(PREFIX)).collect();
        Some(format!("the state of \"{series}\" has no \"{name}\": expected one of {}", known.join(", ")))
    }

    /// Returns the study with these numbers among its metrics; counted numbers are equal for every seed.
    pub fn added_to(&self, summary: &Summary) -> Summary {
        let mut summary = summary.clone();
        for series in &mut summary.series {
            let numbers = self.of.get(&(series.case.clone(), series.series.clone())).into_iter().flatten();
            let seeds = summary.seeds.len();
            series.metrics.extend(numbers.map(|(name, &value)| (name.clone(), Estimate::counted(value, seeds))));
        }
        summary
    }
}

/// Returns whether a metric is about state.
pub(super) fn is_about_state(metric: &str) -> bool {
    metric.starts_with(PREFIX)
}

/// Returns the displayed name of a metric about state.
pub(super) fn title(metric: &str) -> Option<String> {
    Some(match metric.strip_prefix(PREFIX)? {
        "total" => "state in all, bytes".into(),
        "queue-pairs" => "state of queue pairs, bytes".into(),
        "work-requests" => "state of work queue elements, bytes".into(),
        "shared" => "state that all share, bytes".into(),
        "per-qp" => "state for each queue pair, bytes".into(),
        "cache-share" => "share of the cache".into(),
        item => format!("{item}, bytes"),
    })
}

/// Prefix of the names of metrics about state.
const PREFIX: &str = "footprint.";
