//! `selvedge explain`.

use selvedge_explain::{Names, Report, Tape, explain as split, render_flow, render_flows};
use selvedge_scenario::Point;
use selvedge_sim::port_infos;
use selvedge_sim::record::FlowKey;
use selvedge_study::Finished;
use selvedge_telemetry::FlowRow;
use serde::Serialize;

use crate::args::ExplainArgs;
use crate::output::{Failure, json, print, say};
use crate::run::cores;

/// What `--json` prints.
#[derive(Serialize)]
struct Explained<'a> {
    results: String,
    series: &'a str,
    seed: u64,
    flows: Vec<Report>,
}

const WORST: u32 = 10;

/// Why messages of [workload.verbs] are not explained.
const SHARING: &str = "shares queue pairs with other messages: explanations are of flows with a queue pair of their own; look at a port instead, as in `selvedge run SCENARIO --trace port=NODE:PEER`";

pub(crate) fn explain(args: &ExplainArgs) -> Result<(), Failure> {
    let results = Finished::open(&args.results)?;
    let point = results.point(args.series.as_deref(), args.seed)?;
    let series = &results.plan().series[point.series];
    if series.scenario.transport.eqds.is_some_and(|eqds| eqds.eqif.is_used()) {
        let message =
            "its packets travel inside EQDS's, and what holds those is not told apart by flow; choose another series";
        return Err(Failure::input(format!("{}: {}: {message}", args.results.display(), series.name)));
    }
    let flows = chosen(args, &results, point)?;

    let mut tape = Tape::default();
    let focus = Tape::focus(flows.iter().map(FlowKey::from));
    results.simulate_again(point, cores(), &flows, &focus, &mut tape)?;
    let names = Names::new(port_infos(series.network.graph()));
    let mut explanations = split(&tape, &names);
    // In the order in which they were chosen.
    let place = |row: &FlowRow| flows.iter().position(|flow| FlowKey::from(flow) == FlowKey::from(row));
    explanations.sort_by_key(|explanation| place(&explanation.flow));

    if args.json {
        let flows = explanations.iter().map(|explanation| Report::new(explanation, &names)).collect();
        let results = args.results.display().to_string();
        return print(&(json(&Explained { results, series: &series.name, seed: point.seed, flows }) + "\n"));
    }
    let run = format!("{}, seed {}", series.name, point.seed);
    match (&explanations[..], args.flow) {
        ([one], Some(_)) => print(&format!("{run}\n{}", render_flow(one, &names))),
        (some, _) => print(&format!("{run}: the {} slowest flows\n\n{}", some.len(), render_flows(some, &names))),
    }
}

/// The flows that the arguments ask for; they have all finished.
fn chosen(args: &ExplainArgs, results: &Finished, point: Point) -> Result<Vec<FlowRow>, Failure> {
    let here = args.results.display();
    let run = || format!("{}, seed {}", results.plan().series[point.series].name, point.seed);
    let sharing = results.plan().series[point.series].sharing_workloads(point.seed);
    let Some(key) = args.flow else {
        let flows = results.slowest(point, args.worst.unwrap_or(WORST) as usize, &sharing)?;
        if flows.is_empty() && !sharing.is_empty() {
            return Err(Failure::input(format!("{here}: {}: all that was measured {SHARING}", run())));
        }
        if flows.is_empty() {
            return Err(Failure::input(format!("{here}: no measured flow of {} finished; nothing to explain", run())));
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
    if flow.finish.is_none() {
        let message = "had not finished when the run ended: it has no completion time to explain";
        return Err(Failure::input(format!("{here}: flow {} of {} {message}", flow.id, run())));
    }
    Ok(vec![flow])
}
