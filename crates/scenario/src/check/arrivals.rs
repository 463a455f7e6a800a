//! Flows that come too rarely or too late for a run to have any.

use selvedge_sim::workload::{Extent, LARGEST_FLOW, Measure, Window, WorkloadConfig, WorkloadSummary};
use selvedge_units::{Duration, Instant};

use super::Finding;

/// Refuses workloads whose flows arrive at random, but not within the available time; `end` is the latest end of the
/// run.
pub(super) fn check_arrivals(workloads: &[WorkloadSummary], end: Option<Duration>) -> Result<(), Finding> {
    for workload in workloads {
        let refuse = |message| Err(Finding::new(&format!("workload.{}", workload.key), message));
        if let Some(last) = workload.last.into_iter().chain([workload.first]).max().filter(|&last| last > WORLD) {
            return refuse(format!(
                "flows start until {last}, and simulated time ends after {}: let them start earlier",
                seconds(in_seconds(WORLD))
            ));
        }
        if workload.mean_size > LARGEST_FLOW.get() as f64 {
            let message =
                format!("flows of {:.0} bytes are more than any can have ({LARGEST_FLOW})", workload.mean_size);
            return refuse(message);
        }
        let Some(per_second) = workload.flows_per_second else { continue };
        // The load of verbs is that of all operations.
        let key = |name: &str| format!("workload.{}.{name}", workload.key.split('.').next().unwrap_or(workload.kind));
        let every = format!("a flow starts every {} in the mean", seconds(1.0 / per_second));
        if end.is_none() && workload.duration.is_some_and(|duration| duration > WORLD) {
            let world = seconds(in_seconds(WORLD));
            let message = match workload.extent {
                Extent::Known(flows) if per_second * in_seconds(WORLD) >= 1.0 => {
                    format!(
                        "{every}, {flows} of them, and time is simulated up to {world}: give stop.time, or fewer flows"
                    )
                }
                _ => format!("{every}, and time is simulated up to {world}: give more load, or smaller sizes"),
            };
            return Err(Finding::new(&key("load"), message));
        }
        if let Some(end) = end.filter(|&end| end <= workload.first) {
            let message =
                format!("the run ends at {end} (stop.time), and none of these flows starts before: give less");
            return Err(Finding::new(&key("start"), message));
        }
        let span = workload.duration.into_iter().chain(end).min().map(|until| until.saturating_sub(workload.first));
        // A single flow may take any time.
        if let Some(span) = span.filter(|span| per_second * in_seconds(*span) < 1.0 - ROUNDING) {
            let message =
                format!("{every}, but no more of them after {}: give more load, or time", seconds(in_seconds(span)));
            return Err(Finding::new(&key("load"), message));
        }
    }
    Ok(())
}

/// Length of simulated time, from [`Instant::ZERO`] to [`Instant::HORIZON`].
const WORLD: Duration = Instant::HORIZON.since(Instant::ZERO);

/// Refuses runs and measurements that end before the first flow starts, which is at `begin`.
pub(super) fn check_begin(begin: Duration, end: Option<Duration>, measure: &Measure) -> Result<(), Finding> {
    let measured = if let Measure::Window(window) = measure { window.to } else { None };
    for (key, what, end) in [("stop.time", "the run", end), ("measure.window.to", "what is measured", measured)] {
        if let Some(end) = end.filter(|&end| end <= begin && !begin.is_zero()) {
            let message = format!("{what} ends at {end}, but no flow starts before {begin}: give a later time");
            return Err(Finding::new(key, message));
        }
    }
    Ok(())
}

/// Refuses windows of measurement in which no flow can start, because the run ends before the window, or the last flow
/// has started.
pub(super) fn check_window(
    workloads: &[WorkloadSummary],
    end: Option<Duration>,
    measure: &Measure,
) -> Result<(), Finding> {
    let Measure::Window(Window { from, .. }) = *measure else { return Ok(()) };
    let refuse = |message| Err(Finding::new("measure.window.from", message));
    if let Some(end) = end.filter(|&end| end <= from) {
        return refuse(format!(
            "no flow starts in what is measured, from {from} on: the run ends at {end} (stop.time)"
        ));
    }
    let last =
        workloads.iter().map(|workload| workload.last).try_fold(Duration::ZERO, |max, last| Some(max.max(last?)));
    match last.filter(|&last| last < from) {
        Some(last) => refuse(format!(
            "no flow starts in what is measured, from {from} on: the last one starts at {last}; give that time or an \
             earlier one"
        )),
        None => Ok(()),
    }
}

/// Warns about repeating workloads of which a run of `flows` flows has one repetition at most. Workloads that repeat a
/// million times until the run ends are exempt.
pub(super) fn check_repeats(
    config: &WorkloadConfig,
    workloads: &[WorkloadSummary],
    flows: Option<u64>,
) -> Vec<Finding> {
    let Some(flows) = flows else { return Vec::new() };
    let repeats = |kind: &str| -> Vec<u32> {
        match kind {
            "incast" => config.incast.0.iter().map(|incast| incast.repeat).collect(),
            "collective" => config.collective.0.iter().map(|collective| collective.repeat).collect(),
            "mixture-of-experts" => config.mixture_of_experts.0.iter().map(|training| training.repeat).collect(),
            "pipeline" => config.pipeline.0.iter().map(|training| training.repeat).collect(),
            "goal" => config.goal.0.iter().map(|goal| goal.repeat).collect(),
            _ => Vec::new(),
        }
    };
    let mut findings = Vec::new();
    for (at, workload) in workloads.iter().enumerate() {
        let earlier = workloads[..at].iter().filter(|other| other.kind == workload.kind).count();
        let Some(&repeat) = repeats(workload.kind).get(earlier) else { continue };
        let Some(each) = workload.extent.known().map(|all| all / u64::from(repeat.max(1))) else { continue };
        if repeat > 1 && flows <= each {
            let message = format!(
                "of {repeat} repetitions of {each} flows, none but the first can be complete: the run ends after {flows} \
                 flows (stop.flows); give more of them, or repeat = 1"
            );
            findings.push(Finding::new(&format!("workload.{}.repeat", workload.key), message));
        }
    }
    findings
}

fn in_seconds(duration: Duration) -> f64 {
    duration.as_us_f64() / 1e6
}

fn seconds(seconds: f64) -> String {
    if (1e-3..1e6).contains(&seconds) { format!("{seconds:.3} s") } else { format!("{seconds:.1e} s") }
}

/// Tolerance in the number of flows, because times are rounded to whole picoseconds.
const ROUNDING: f64 = 1e-3;
