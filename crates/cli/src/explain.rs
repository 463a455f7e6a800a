//! Command `selvedge explain`.

use std::path::Path;

use selvedge_explain::{
    Cycle, CycleReport, Explanation, Names, RealRecording, Recording, Report, explain as split, render_cycle,
    render_flow, render_flows, render_real, render_real_flow,
};
use selvedge_results::DeadlockReport;
use selvedge_scenario::Point;
use selvedge_sim::port_infos;
use selvedge_sim::record::{Chosen, FlowKey, Recording as Recorded};
use selvedge_study::Finished;
use selvedge_telemetry::FlowRow;
use selvedge_traces::{LabPaths, RecordError, RecordReader};
use selvedge_units::Instant;
use serde::Serialize;

use crate::args::ExplainArgs;
use crate::output::{Failure, json, print, say};
use crate::progress::Progress;
use crate::run::cores;

/// Output of `--json`.
#[derive(Serialize)]
struct Explained<'a> {
    results: String,
    series: &'a str,
    seed: u64,
    /// Time at which the run ended, if it was simulated to its end: it deadlocked, or a flow below had not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    end_ps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadlock: Option<CycleReport>,
    flows: Vec<Report>,
}

const WORST: u32 = 10;

/// Reason why messages of [workload.verbs] are not explained.
const SHARING: &str = "shares queue pairs with other messages: explanations are of flows with a queue pair of their own; look at a port instead, as in `selvedge run SCENARIO --trace port=NODE:PEER`";

pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let events = LabPaths::within(&args.results).events;
    if events.is_file() {
        return explain_real(args, &events);
    }
    let results = Finished::open(&args.results)?;
    let point = results.point(args.series.as_deref(), args.seed)?;
    let series = &results.plan().series[point.series];
    if series.scenario.transport.tunnels().is_some_and(|eqds| eqds.eqif.is_used()) {
        let message =
            "its packets travel inside EQDS's, and what holds those is not told apart by flow; choose another series";
        return Err(Failure::input(format!("{}: {}: {message}", args.results.display(), series.name)));
    }
    let flows = chosen(args, &results, point)?;
    let unfinished = flows.iter().any(|flow| flow.finish.is_none());
    // A flow that finished is not part of a deadlock that came later.
    let deadlock = results.deadlock(point).filter(|_| unfinished || args.flow.is_none());

    let keys = Chosen::These(flows.iter().map(FlowKey::from).collect());
    let mut recording = Recording::of(keys, deadlock.into_iter().flat_map(DeadlockReport::ports));
    let focus = recording.focus();
    let progress = Progress::new(args.quiet, None);
    let record = Recorded { focus: &focus, recorder: &mut recording };
    let again = results.simulate_again(point, cores(), &flows, deadlock, record, &progress);
    progress.clear();
    let Some(record) = again? else { return Err(Failure::interrupted("interrupted: nothing is explained")) };
    if unfinished {
        recording.end(&record);
    }
    let cycle = deadlock.and(record.deadlock.as_ref()).map(|deadlock| Cycle::new(deadlock, &recording));
    let names = Names::new(port_infos(series.network.graph()));
    let mut explanations = split(&recording, &names);
    // In the order in which they were chosen.
    let place = |row: &FlowRow| flows.iter().position(|flow| FlowKey::from(flow) == FlowKey::from(row));
    explanations.sort_by_key(|explanation| place(&explanation.flow));

    if args.json {
        let flows = explanations.iter().map(|explanation| Report::new(explanation, &names)).collect();
        let results = args.results.display().to_string();
        let end_ps = (unfinished || cycle.is_some()).then(|| record.end.as_ps());
        let deadlock = cycle.as_ref().map(|cycle| CycleReport::new(cycle, &names));
        let (series, seed) = (&series.name, point.seed);
        return print(&(json(&Explained { results, series, seed, end_ps, deadlock, flows }) + "\n"));
    }
    let run = format!("{}, seed {}", series.name, point.seed);
    let cycle = cycle.map(|cycle| render_cycle(&cycle, &names));
    if let (None, [one], Some(_)) = (&cycle, &explanations[..], args.flow) {
        return print(&format!("{run}\n{}", render_flow(one, &names)));
    }
    let mut pages: Vec<String> = cycle.map(|cycle| format!("{run}: {cycle}")).into_iter().collect();
    match (&explanations[..], args.flow) {
        ([], _) => {}
        ([one], Some(_)) => pages.push(render_flow(one, &names)),
        (some, _) => pages.push(format!("{run}: {}\n\n{}", slowest(some, record.end), render_flows(some, &names))),
    }
    print(&pages.join("\n"))
}

/// Explains the flows of a laboratory, from the recording of its switches.
fn explain_real(args: &ExplainArgs, events: &Path) -> Result<(), Failure> {
    let here = args.results.display();
    if args.series.is_some() || args.seed.is_some() {
        let message = "a recording of a laboratory has no series and no seeds; leave out --series and --seed";
        return Err(Failure::input(format!("{here}: {message}")));
    }
    let unreadable = |error: RecordError| Failure::input(error.to_string());
    let mut reader = RecordReader::open(events).map_err(unreadable)?;
    let mut recording = RealRecording::new(reader.ports().to_vec(), reader.port_names());
    while let Some(recorded) = reader.next_event().map_err(unreadable)? {
        recording.add(&recorded.event, &recorded.captured);
    }
    let mut report = recording.explain();
    if report.flows.is_empty() {
        return Err(Failure::input(format!("{here}: no frame entered the switches; nothing to explain")));
    }
    match args.flow {
        Some(key) => {
            let last = report.count - 1;
            report.flows.retain(|flow| key.workload == 0 && flow.flow == key.id);
            if report.flows.is_empty() {
                let flow = if key.workload == 0 { key.id.to_string() } else { format!("{}:{}", key.workload, key.id) };
                return Err(Failure::input(format!("{here}: there is no flow {flow}; flows are numbered 0 to {last}")));
            }
        }
        None => report.flows.truncate(args.worst.unwrap_or(WORST) as usize),
    }
    if args.json {
        return print(&(json(&report) + "\n"));
    }
    match (&report.flows[..], args.flow) {
        ([one], Some(_)) => print(&render_real_flow(one)),
        _ => print(&render_real(&report)),
    }
}

/// Returns the heading "the 10 slowest flows", with the number of them that never finished.
fn slowest(explanations: &[Explanation], end: Instant) -> String {
    let unfinished = explanations.iter().filter(|explanation| explanation.awaited.is_some()).count();
    let slowest = format!("the {} slowest flows", explanations.len());
    if unfinished == 0 {
        return slowest;
    }
    format!("{slowest}; {unfinished} had not finished (>) when the run ended at {:.3} us", end.as_us_f64())
}

/// Returns the flows that the arguments ask for. There may be none where the run ended in a deadlock.
fn chosen(args: &ExplainArgs, results: &Finished, point: Point) -> Result<Vec<FlowRow>, Failure> {
    let here = args.results.display();
    let run = || format!("{}, seed {}", results.plan().series[point.series].name, point.seed);
    let sharing = results.plan().series[point.series].sharing_workloads(point.seed);
    let Some(key) = args.flow else {
        let flows = results.slowest(point, args.worst.unwrap_or(WORST) as usize, &sharing)?;
        if flows.is_empty() && results.deadlock(point).is_some() {
            return Ok(flows);
        }
        if flows.is_empty() && !sharing.is_empty() {
            return Err(Failure::input(format!("{here}: {}: all that was measured {SHARING}", run())));
        }
        if flows.is_empty() {
            return Err(Failure::input(format!("{here}: no measured flow of {} began; nothing to explain", run())));
        }
        if args.series.is_none() && results.plan().series.len() > 1 {
            let others: Vec<&str> = results.plan().series.iter().map(|series| series.name.as_str()).collect();
            say(&format!("note: this is {}; choose with --series and --seed ({})", run(), others.join(", ")));
        }
        return Ok(flows);
    };
    let flow = results.flow(point, key)?;
    if sharing.contains(&flow.workload) {
        return Err(Failure::input(format!("{here}: flow {} of {} {SHARING}", flow.id, run())));
    }
    Ok(vec![flow])
}
