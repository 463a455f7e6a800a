//! What makes the numbers of a summary less than they seem.

use std::collections::BTreeMap;

use crate::number::fixed;
use crate::point::{DeadlockReport, RunTotals};
use crate::verdict::and;
use crate::{FlowSummary, PointSummary, SeriesInfo};

/// Of all series with their points, one for each of `seeds`: the worst first within each series.
pub(crate) fn warnings(series: &[(&SeriesInfo, Vec<Option<&PointSummary>>)], seeds: &[u64]) -> Vec<String> {
    let mut warnings = Vec::new();
    if seeds.len() == 1 {
        warnings.push("One seed: there are no confidence intervals. Use at least three, better five.".into());
    }
    for (info, points) in series {
        let name = &info.name;
        let of_seeds = points.iter().zip(seeds).filter_map(|(point, &seed)| Some((of_seed(*point)?, seed)));
        warnings.extend(by_seeds(of_seeds).into_iter().map(|text| format!("{name}: {text}")));
        let points: Vec<&PointSummary> = points.iter().flatten().copied().collect();
        let total = |of: fn(&PointSummary) -> u64| points.iter().map(|point| of(point)).sum::<u64>();
        let hint = |unfinished: &dyn Fn(&PointSummary) -> u64| {
            // Who waits in a cycle waits forever.
            let mut cut = points.iter().filter(|point| unfinished(point) > 0 && point.run.deadlock.is_none());
            match cut.clone().next() {
                None => "",
                Some(_) if cut.clone().any(|point| !point.run.hopeless) => {
                    " Where stop.time or stop.flows ended the run, give more, unless a link that they need stays down."
                }
                Some(_) if cut.all(|point| goes_round(&point.run)) => {
                    " Nothing more would have arrived, however long the run: packets were sent again all the time, and \
                     the one that a receiver waits for was dropped each time, for want of room in a buffer."
                }
                Some(_) => {
                    " Nothing more would have arrived, however long the run: a link is down, a queue pair of \
                     [workload.verbs] has failed after its retries, or what was lost last is not sent again without a \
                     timeout (with PFC, RDMA has none by default)."
                }
            }
        };
        let unfinished = |of: fn(&FlowSummary) -> (u64, u64)| move |point: &PointSummary| point.unfinished(of);
        let flows = |flows: &FlowSummary| (flows.unfinished, flows.measured);
        if let Some(missing) = missing(&points, "measured flows", flows) {
            warnings.push(format!(
                "{name}: {missing} never finished; they are missing from its completion times, which are therefore too \
                 good.{}",
                hint(&unfinished(flows))
            ));
        }
        let groups = |flows: &FlowSummary| (flows.unfinished_groups, flows.groups);
        let what = match info.traits.groups[..] {
            [] => "incasts or jobs".to_owned(),
            _ => info.traits.kinds_of_groups(),
        };
        if let Some(missing) = missing(&points, &what, groups) {
            warnings.push(format!(
                "{name}: {missing} never completed; their completion time is that of the others.{}",
                hint(&unfinished(groups))
            ));
        }
        let lost_headroom = total(|point| point.run.data_drops.headroom_full);
        let lost_pauses = total(|point| point.run.pause_drops.total());
        if lost_headroom > 0 {
            let reason = match lost_pauses {
                0 => "the headroom is too small",
                _ => "pause frames were lost, or the headroom is too small",
            };
            warnings.push(format!(
                "{name}: {} dropped although PFC was on: {reason}.",
                packets(lost_headroom, ["was", "were"])
            ));
        }
        let no_route = total(|point| point.run.data_drops.no_route);
        if no_route > 0 {
            warnings.push(format!("{name}: {} no route to their destination.", packets(no_route, ["had", "had"])));
        }
        if lost_pauses > 0 {
            let were = if lost_pauses == 1 { "frame was" } else { "frames were" };
            warnings.push(format!("{name}: {} pause {were} lost on the way.", count(lost_pauses)));
        }
    }
    warnings.extend(uncontrolled(series));
    warnings
}

/// Whether most of what a run sent was sent again, and full buffers dropped most of what was lost: it was busy to the
/// end.
fn goes_round(run: &RunTotals) -> bool {
    let drops = &run.data_drops;
    let full = drops.buffer_full + drops.headroom_full;
    run.retransmissions * 2 > run.data_sent && full * 2 > drops.total()
}

/// Of all series that send most of what they send in vain, because nothing slows them down.
fn uncontrolled(series: &[(&SeriesInfo, Vec<Option<&PointSummary>>)]) -> Option<String> {
    let in_vain = |(info, points): &&(&SeriesInfo, Vec<Option<&PointSummary>>)| {
        let runs = || points.iter().flatten().map(|point| &point.run);
        let again: u64 = runs().map(|run| run.retransmissions + run.netrt.retransmissions).sum();
        // Others have their own.
        let can_have_any = matches!(info.traits.recovery.as_str(), "irn" | "go-back-n" | "melo" | "netrt");
        can_have_any && info.traits.congestion == "none" && again > runs().map(|run| run.data_delivered).sum()
    };
    let names: Vec<&str> = series.iter().filter(in_vain).map(|(info, _)| info.name.as_str()).collect();
    let (send, have) = if names.len() == 1 { ("sends", "has") } else { ("send", "have") };
    (!names.is_empty()).then(|| {
        format!(
            "{} {send} more packets again than arrive, and {have} no congestion control here; `+dcqcn` adds one.",
            and(&names)
        )
    })
}

/// What is wrong with one run, [`SEEDS`] in place of its seed.
fn of_seed(point: Option<&PointSummary>) -> Option<String> {
    let Some(point) = point else { return Some(format!("not run with {SEEDS}.")) };
    let PointSummary { run, flows, .. } = point;
    Some(if let Some(deadlock) = &run.deadlock {
        format!(
            "{SEEDS} ended in a PFC deadlock at {} us ({} ports wait in a cycle: {}).",
            count(deadlock.at_us as u64),
            deadlock.cycle.len(),
            cycle(deadlock)
        )
    } else if run.flows_started == 0 && flows.groups > 0 && flows.unfinished_groups > 0 {
        format!(
            "nothing is sent between hosts with {SEEDS}: the run ended at {} us, before the first message; give more stop.time.",
            count(run.end_us as u64)
        )
    } else if run.flows_started == 0 && flows.groups > 0 {
        format!("nothing is sent between hosts with {SEEDS}: the schedule has no messages.")
    } else if point.flows_by_workload().all(|(_, flows)| flows.measured == 0) && flows.groups == 0 {
        format!(
            "no flow of {SEEDS} was measured: of {} flows that began, none is among those that `measure` counts; let the \
             run last longer, or measure earlier.",
            count(run.flows_started)
        )
    } else if flows.fct_us.count == 0 {
        format!("no measured flow of {SEEDS} finished.")
    } else {
        return None;
    })
}

/// Stands for "seed 1", or for all seeds of which the same is said.
const SEEDS: &str = "{seeds}";

/// Each warning once, with the seeds that it is about.
fn by_seeds(warnings: impl Iterator<Item = (String, u64)>) -> Vec<String> {
    let mut told: Vec<(String, Vec<u64>)> = Vec::new();
    for (text, seed) in warnings {
        match told.iter_mut().find(|(known, _)| *known == text) {
            Some((_, seeds)) => seeds.push(seed),
            None => told.push((text, vec![seed])),
        }
    }
    told.into_iter().map(|(text, seeds)| text.replace(SEEDS, &name_seeds(&seeds))).collect()
}

/// "seed 1", "seeds 1 and 7", "seeds 1 to 5".
fn name_seeds(seeds: &[u64]) -> String {
    match seeds {
        [only] => format!("seed {only}"),
        [first, _, .., last] if seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])) => {
            format!("seeds {first} to {last}")
        }
        _ => {
            let names: Vec<String> = seeds.iter().map(u64::to_string).collect();
            format!("seeds {}", and(&names.iter().map(String::as_str).collect::<Vec<_>>()))
        }
    }
}

/// How many never finished, and whose they are where there are several workloads: "64 of 64 measured flows of incast".
/// `of` has the count and that of all. `None` if all did.
fn missing(points: &[&PointSummary], what: &str, of: fn(&FlowSummary) -> (u64, u64)) -> Option<String> {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, flows) in points.iter().flat_map(|point| point.flows_by_workload()) {
        let (unfinished, measured) = found.entry(name).or_default();
        *unfinished += of(flows).0;
        *measured += of(flows).1;
    }
    let shown = found.into_iter().filter(|(_, (unfinished, _))| *unfinished > 0);
    let tell = |(at, (name, (unfinished, measured))): (usize, (&str, (u64, u64)))| {
        let what = if at == 0 { format!(" {what}") } else { String::new() };
        let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
        format!("{} of {}{what}{of}", count(unfinished), count(measured))
    };
    let parts: Vec<String> = shown.enumerate().map(tell).collect();
    (!parts.is_empty()).then(|| and(&parts.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// The nodes of a deadlock: "s0 for s1, s1 for s2, s2 for s0".
fn cycle(deadlock: &DeadlockReport) -> String {
    let hops = deadlock.cycle.iter().map(|hop| format!("{} for {}", hop.node, hop.paused_by));
    let shown: Vec<String> = hops.take(SHOWN_HOPS).collect();
    let more = if deadlock.cycle.len() > SHOWN_HOPS { ", ..." } else { "" };
    shown.join(", ") + more
}

/// Hops of a deadlock that a warning names; the report shows all.
const SHOWN_HOPS: usize = 8;

/// "1 data packet was", "1,024 data packets were".
fn packets(number: u64, [one, many]: [&str; 2]) -> String {
    let (plural, verb) = if number == 1 { ("", one) } else { ("s", many) };
    format!("{} data packet{plural} {verb}", count(number))
}

/// With thousands separated.
fn count(things: u64) -> String {
    fixed(things as f64, 0)
}
