//! Checks of a resolved scenario: values and combinations that are errors or deserve a warning.
//!
//! Each part checks its own values when it is built; this module checks values that concern several parts.

mod arrivals;
mod buffer;
mod ecn;
mod eqds;
mod netrt;
mod nic;
mod pfc;
mod priorities;
mod reach;
mod reordering;
mod timeouts;
mod traffic;
mod transport;
mod verbs;

use selvedge_sim::ConfigError;
use selvedge_sim::Network;
use selvedge_sim::workload::WorkloadSummary;
use selvedge_units::{Duration, Instant, Setting};

use crate::scenario::Scenario;

pub(crate) use nic::check_nic;
pub(crate) use traffic::{check_samples, check_traffic, first_start, span_of_starts};

/// Finding about a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    pub(crate) key: String,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into() }
    }
}

/// Checks the resolved scenario of a series; returns its warnings.
pub(crate) fn check(
    series: &str,
    scenario: &Scenario,
    network: &Network,
    workloads: &[WorkloadSummary],
) -> Result<Vec<Finding>, Finding> {
    let mut warnings = Vec::new();
    buffer::check(scenario, network)?;
    buffer::check_weights(scenario)?;
    pfc::check(scenario, network, &mut warnings)?;
    check_balancing(scenario)?;
    netrt::check(scenario, &mut warnings)?;
    ecn::check(scenario, network, &mut warnings)?;
    transport::check(scenario, network, &mut warnings)?;
    verbs::check(scenario)?;
    check_times(scenario)?;
    warnings.extend(reach::check(scenario, network));
    warnings.extend(reordering::check(series, scenario, network));
    warnings.extend(timeouts::check(scenario, network));
    warnings.extend(priorities::acks_behind_data(scenario, workloads));
    Ok(warnings)
}

fn check_balancing(scenario: &Scenario) -> Result<(), Finding> {
    let wrong = |error: ConfigError| {
        let error = error.within("switch.balancing");
        Finding::new(&error.key, error.message)
    };
    scenario.switch.balancing.check().map_err(wrong)
}

fn check_times(scenario: &Scenario) -> Result<(), Finding> {
    if scenario.stop.time == Some(Duration::ZERO) {
        return Err(Finding::new("stop.time", "a run of no time shows nothing; give more, as in \"10ms\""));
    }
    if scenario.stop.time.is_some_and(|time| time > Instant::HORIZON.since(Instant::ZERO)) {
        return Err(Finding::new("stop.time", "simulated time ends after 53 days; give less, or leave it out"));
    }
    if scenario.stop.flows == Some(0) {
        return Err(Finding::new("stop.flows", "a run of no flows shows nothing; give at least 1"));
    }
    if let Setting::Value(interval) = scenario.sample
        && interval < SHORTEST_SAMPLE
    {
        let message = format!(
            "{interval} is shorter than any packet: give at least {SHORTEST_SAMPLE}, as in \"50us\", or \"off\""
        );
        return Err(Finding::new("sample", message));
    }
    Ok(())
}

/// Shortest useful sampling interval: queues do not change within less.
const SHORTEST_SAMPLE: Duration = Duration::from_ns(10);
