//! Checks of traffic on a network: its combination, its start times, and whether its samples can be kept.

use selvedge_sim::Network;
use selvedge_sim::topology::Graph;
use selvedge_sim::workload::{Measure, WorkloadSummary};
use selvedge_units::words::plural;
use selvedge_units::{Duration, Setting};

use super::Finding;
use super::arrivals::{check_arrivals, check_begin, check_repeats, check_window};
use super::buffer::{check_accounts, idle_weights};
use super::priorities::check_priorities;
use crate::scenario::Scenario;

/// Returns findings about traffic on a network that can run but deserves a warning.
pub(crate) fn check_traffic(
    scenario: &Scenario,
    network: &Network,
    workloads: &[WorkloadSummary],
) -> Result<Vec<Finding>, Finding> {
    let priorities =
        scenario.switch.priorities(&scenario.nic, &scenario.transport, scenario.beside.as_ref(), workloads);
    let mut findings = check_repeats(&scenario.workload, workloads, scenario.stop.flows);
    findings.extend(check_middle(scenario, workloads));
    findings.extend(check_all_beside(scenario, workloads));
    findings.extend(check_priorities(scenario, &priorities, workloads)?);
    findings.extend(check_accounts(scenario, network, &priorities)?);
    findings.extend(idle_weights(scenario, &priorities));
    Ok(findings)
}

/// Warns about a middle of flows by number where flows have no number beforehand: these are all measured.
fn check_middle(scenario: &Scenario, workloads: &[WorkloadSummary]) -> Option<Finding> {
    let Measure::Middle(part) = scenario.measure else { return None };
    let following: Vec<&str> = workloads.iter().filter(|one| one.follows).map(|one| one.key.as_str()).collect();
    let [first, more @ ..] = &following[..] else { return None };
    if part.get() == 1.0 {
        return None;
    }
    let others =
        if more.is_empty() { String::new() } else { format!(" and {}", plural(more.len() as u64, "other workload")) };
    let message = format!(
        "flows of workload.{first}{others} start after others, so that they have no number beforehand, and are all measured; to leave \
         out their beginning, measure those that start in a window of time, as in measure.window = {{ from = \"1ms\" }}"
    );
    Some(Finding::new("measure.middle", message))
}

/// Warns where TCP beside the transport sends everything, so that the series' transport sends nothing.
fn check_all_beside(scenario: &Scenario, workloads: &[WorkloadSummary]) -> Option<Finding> {
    let which = scenario.beside.as_ref()?.which(workloads).ok()?;
    let message = "all workloads use the TCP of [beside], so that the series' own transport sends nothing: leave out \
                   those that the transport shall send, or write the TCP into [transport.tcp]";
    which.iter().all(|&beside| beside).then(|| Finding::new("beside.workloads", message))
}

/// Returns the time over which flows start, or may start, after checking it.
pub(crate) fn span_of_starts(scenario: &Scenario, workloads: &[WorkloadSummary]) -> Result<Duration, Finding> {
    let (begin, stop) = (first_start(workloads), scenario.stop.time);
    check_begin(begin, stop, &scenario.measure)?;
    check_arrivals(workloads, stop)?;
    check_window(workloads, stop, &scenario.measure)?;
    Ok(selvedge_sim::span_of_starts(workloads, scenario.stop))
}

/// Returns the time before which no flow of these workloads starts.
pub(crate) fn first_start(workloads: &[WorkloadSummary]) -> Duration {
    workloads.iter().map(|workload| workload.first).min().unwrap_or_default()
}

/// Checks that the samples of one run, whose flows start over `span`, fit on a disk.
pub(crate) fn check_samples(scenario: &Scenario, graph: &Graph, span: Duration) -> Result<(), String> {
    let Setting::Value(interval) = scenario.sample else { return Ok(()) };
    let (samples, ports) = (span.as_ps() / interval.as_ps().max(1), 2 * graph.links.len() as u64);
    let rows = samples.saturating_mul(ports);
    if rows <= MOST_SAMPLES {
        return Ok(());
    }
    let least = Duration::from_us((span.as_ps().saturating_mul(ports) / MOST_SAMPLES).div_ceil(1_000_000));
    Err(format!("{samples} samples of {ports} ports are too many to keep: give at least \"{least}\", or \"off\""))
}

/// Maximum number of samples of one run, as rows of a few bytes each.
const MOST_SAMPLES: u64 = 1_000_000_000;
