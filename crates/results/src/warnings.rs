//! Warnings about a summary whose numbers mean less than they appear to.

use std::collections::BTreeMap;

use selvedge_units::Instant;
use selvedge_units::words::all_of;

use crate::number::fixed;
use crate::point::{DeadlockReport, RunTotals};
use crate::{Cut, FlowSummary, PointSummary, SeriesInfo};

/// Returns the warnings of all series. Each has its points, one for each of `seeds`. Warnings of one kind are joined.
pub(crate) fn warnings(series: &[(&SeriesInfo, Vec<Option<&PointSummary>>)], seeds: &[u64]) -> Vec<String> {
    let mut found = Kinds::default();
    if seeds.len() == 1 {
        let text = "One seed: there are no confidence intervals. Use at least three, better five.";
        found.0.push(WarningKind { one: text.into(), ..WarningKind::default() });
    }
    for (info, points) in series {
        let of_seeds = points.iter().zip(seeds).filter_map(|(point, &seed)| Some((of_seed(*point)?, seed)));
        for text in by_seeds(of_seeds) {
            found.add(info, "", &text, &format!("{SERIES}: {text}"));
        }
        found.deadlocks(info, points);
        let points: Vec<&PointSummary> = points.iter().flatten().copied().collect();
        found.unfinished_flows(info, &points);
        found.unfinished_groups(info, &points);
        found.late_requests(info, &points);
        found.lost_headroom(info, &points);
        found.no_route(info, &points);
        found.lost_pauses(info, &points);
    }
    found.tell().chain(uncontrolled(series)).collect()
}

/// Returns the sum of a counter over all runs.
fn total(points: &[&PointSummary], of: fn(&RunTotals) -> u64) -> u64 {
    points.iter().map(|point| of(&point.run)).sum()
}

/// Returns advice on flows that did not finish, or cannot.
fn hint(cut: Cut, points: &[&PointSummary], unfinished: impl Fn(&PointSummary) -> u64) -> &'static str {
    // Flows in a deadlock wait forever, so a longer run does not help them.
    let mut cut_short = points.iter().filter(|point| unfinished(point) > 0 && point.run.deadlock.is_none());
    match cut_short.clone().next() {
        None => "",
        Some(_) if cut_short.clone().any(|point| !point.run.hopeless && took_all_time(&point.run)) => {
            " Simulated time ends after 53 days, and so did the run: on these links, or with these computations, it takes \
             longer."
        }
        Some(_) if cut_short.clone().any(|point| !point.run.hopeless) => match cut {
            Cut::Written => {
                " Where stop.time or stop.flows ended the run, give more, unless a link that they need stays down."
            }
            Cut::Always => " Some are always in flight when a run of such traffic ends.",
            Cut::BuiltIn => {
                " The built-in study ends long after its last flow has begun: what is not done by then does not keep up."
            }
        },
        Some(_) if cut_short.all(|point| goes_round(&point.run)) => {
            " Nothing more would have arrived, however long the run: packets were sent again all the time, and the one that \
             a receiver waits for was dropped each time, for want of room in a buffer; or a queue pair of [workload.verbs] \
             has failed after its retries."
        }
        Some(_) => {
            " Nothing more would have arrived, however long the run: a link is down, a queue pair of [workload.verbs] has \
             failed after its retries, or what was lost last is not sent again without a timeout (with PFC, RDMA has none \
             by default)."
        }
    }
}

/// Warnings by kind, in the order in which they were found.
#[derive(Default)]
struct Kinds(Vec<WarningKind>);

/// One kind of warning, and the series it is about.
#[derive(Default)]
struct WarningKind {
    /// Text for one series, to follow its name.
    one: String,
    /// Text for several series, with [`SERIES`] in their place; equal for all of the kind.
    many: String,
    /// Series concerned: name, name within the case, case, and count.
    about: Vec<(String, String, Option<String>, String)>,
}

/// Placeholder for the series that a warning is about.
const SERIES: &str = "{series}";

/// Smallest number of NetRT requests that is significant.
const MANY_REQUESTS: u64 = 20;

/// Longest list that is not cut.
const LISTED: usize = 6;

impl Kinds {
    /// Adds a series to the kind that `many` identifies; `one` is its text alone, and `how_many` its count in a list.
    fn add(&mut self, info: &SeriesInfo, how_many: &str, one: &str, many: &str) {
        let about = (info.name.clone(), info.series.clone(), info.case.clone(), how_many.to_owned());
        match self.0.iter_mut().find(|kind| kind.many == many) {
            Some(kind) => kind.about.push(about),
            None => self.0.push(WarningKind { one: one.to_owned(), many: many.to_owned(), about: vec![about] }),
        }
    }

    /// Adds the deadlocks of one series; if there are several, details are in the report.
    fn deadlocks(&mut self, info: &SeriesInfo, points: &[Option<&PointSummary>]) {
        let found = points.iter().flatten().filter_map(|point| Some((point.run.deadlock.as_ref()?, point.seed)));
        let texts = by_seeds(found.clone().map(|(deadlock, seed)| (of_deadlock(deadlock), seed)));
        if texts.is_empty() {
            return;
        }
        let seeds: Vec<u64> = found.map(|(_, seed)| seed).collect();
        let many = format!(
            "PFC deadlocks ended runs of {SERIES}. Which ports wait in a cycle is told in report.html and summary.json."
        );
        let name = &info.name;
        self.add(info, &name_seeds(&seeds), &texts.join(&format!("\n{name}: ")), &many);
    }

    fn unfinished_flows(&mut self, info: &SeriesInfo, points: &[&PointSummary]) {
        let flows = |flows: &FlowSummary| (flows.unfinished, flows.measured);
        let Some(of_all) = missing(points, "", flows) else { return };
        let one = missing(points, " measured flows", flows).unwrap_or_default();
        let hint = hint(info.cut, points, |point| point.unfinished(flows));
        self.add(
            info,
            &of_all,
            &format!(
                "{one} never finished; they count with their age when the run ended, so that its completion times are at least \
                 what is shown.{hint}"
            ),
            &format!(
                "Some measured flows never finished: {SERIES}. They count with their age when the run ended, so that completion \
                 times are at least what is shown.{hint}"
            ),
        );
    }

    fn unfinished_groups(&mut self, info: &SeriesInfo, points: &[&PointSummary]) {
        let groups = |flows: &FlowSummary| (flows.unfinished_groups, flows.groups);
        let Some(of_all) = missing(points, "", groups) else { return };
        let what = match info.traits.groups[..] {
            [] => "incasts or jobs".to_owned(),
            _ => info.traits.kinds_of_groups(),
        };
        let one = missing(points, &format!(" {what}"), groups).unwrap_or_default();
        let stuck = points.iter().find_map(|point| Some((point.seed, point.run.stuck.as_ref()?)));
        let hint = match stuck {
            Some((seed, waits)) => format!(
                " With seed {seed}, {waits}: it has come, but a receive from any rank, or with any tag, has taken it. \
                 Which message comes first depends on the network: tell them apart."
            ),
            None => hint(info.cut, points, |point| point.unfinished(groups)).to_owned(),
        };
        self.add(
            info,
            &of_all,
            &format!("{one} never completed; they count with their age when the run ended, so that completion takes at least what is \
                 shown.{hint}"),
            &format!("Some {what} never completed: {SERIES}. They count with their age when the run ended, so that completion takes at \
                 least what is shown there.{hint}"),
        );
    }

    /// Adds a warning on requests of NetRT for duplicates that no longer exist.
    fn late_requests(&mut self, info: &SeriesInfo, points: &[&PointSummary]) {
        let asked = total(points, |run| run.netrt.requests);
        let too_late = total(points, |run| run.netrt.unfulfilled);
        if too_late * 2 <= asked || too_late < MANY_REQUESTS {
            return;
        }
        let why = "queues last longer than switch.netrt.pool covers, or regular traffic needed the room. More of it \
                   and of switch.buffer helps, or congestion control, which keeps queues short.";
        self.add(
            info,
            &format!("{} of {}", count(too_late), count(asked)),
            &format!("{} of {} requests of NetRT found the duplicates gone: {why}", count(too_late), count(asked)),
            &format!("Most requests of NetRT found the duplicates gone: {SERIES}; {why}"),
        );
    }

    fn lost_headroom(&mut self, info: &SeriesInfo, points: &[&PointSummary]) {
        let lost = total(points, |run| run.data_drops.headroom_full);
        if lost == 0 {
            return;
        }
        let reason = match total(points, |run| run.pause_drops.total()) {
            0 => "the headroom is too small",
            _ => "pause frames were lost, or the headroom is too small",
        };
        self.add(
            info,
            &count(lost),
            &format!("{} dropped although PFC was on: {reason}.", packets(lost, ["was", "were"])),
            &format!("Data packets were dropped although PFC was on, for {reason}: {SERIES}."),
        );
    }

    fn no_route(&mut self, info: &SeriesInfo, points: &[&PointSummary]) {
        let lost = total(points, |run| run.data_drops.no_route);
        if lost > 0 {
            self.add(
                info,
                &count(lost),
                &format!("{} no route to their destination.", packets(lost, ["had", "had"])),
                &format!("Data packets had no route to their destination: {SERIES}."),
            );
        }
    }

    fn lost_pauses(&mut self, info: &SeriesInfo, points: &[&PointSummary]) {
        let lost = total(points, |run| run.pause_drops.total());
        if lost > 0 {
            let were = if lost == 1 { "frame was" } else { "frames were" };
            self.add(
                info,
                &count(lost),
                &format!("{} pause {were} lost on the way.", count(lost)),
                &format!("Pause frames were lost on the way: {SERIES}."),
            );
        }
    }

    fn tell(self) -> impl Iterator<Item = String> {
        self.0.into_iter().flat_map(|kind| match &kind.about[..] {
            [] => vec![kind.one],
            // Each of several deadlocks of a series has a line of its own.
            [(name, ..)] => format!("{name}: {}", kind.one).split('\n').map(str::to_owned).collect(),
            _ => vec![kind.many.replace(SERIES, &kind.list())],
        })
    }
}

impl WarningKind {
    /// Returns the series: "irn (10 of 5,000) and roce (30 % load: 1 of 600; 70 % load: 3 of 600)".
    fn list(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (_, series, ..) in &self.about {
            if !names.contains(&series.as_str()) {
                names.push(series);
            }
        }
        let tell = |name: &&str| {
            let of_name = self.about.iter().filter(|(_, series, ..)| series == name);
            let parts: Vec<String> = of_name
                .map(|(.., case, how_many)| match case {
                    Some(case) if how_many.is_empty() => case.clone(),
                    Some(case) => format!("{case}: {how_many}"),
                    None => how_many.clone(),
                })
                .filter(|part| !part.is_empty())
                .collect();
            let shown = cut(&parts).join("; ");
            let others = match parts.len() - cut(&parts).len() {
                0 => String::new(),
                others => format!("; and {others} others"),
            };
            if parts.is_empty() { (*name).to_owned() } else { format!("{name} ({shown}{others})") }
        };
        let mut told: Vec<String> = cut(&names).iter().map(tell).collect();
        if names.len() > told.len() {
            told.push(format!("{} others", names.len() - told.len()));
        }
        all_of(&told)
    }
}

/// Returns the first entries of a list that is too long; never all but one.
fn cut<T>(list: &[T]) -> &[T] {
    if list.len() > LISTED { &list[..LISTED - 1] } else { list }
}

/// Returns whether a run went on until the end of simulated time.
fn took_all_time(run: &RunTotals) -> bool {
    run.end_us >= Instant::HORIZON.as_us_f64()
}

/// Returns whether most packets of a run were retransmissions and most losses were drops at full buffers, so that the
/// run was busy to its end.
fn goes_round(run: &RunTotals) -> bool {
    let drops = &run.data_drops;
    let full = drops.buffer_full + drops.headroom_full;
    run.retransmissions * 2 > run.data_sent && full * 2 > drops.total()
}

/// Returns a warning on all series whose packets are mostly retransmissions because they lack congestion control.
fn uncontrolled(series: &[(&SeriesInfo, Vec<Option<&PointSummary>>)]) -> Option<String> {
    let in_vain = |(info, points): &&(&SeriesInfo, Vec<Option<&PointSummary>>)| {
        let runs = || points.iter().flatten().map(|point| &point.run);
        let again: u64 = runs().map(|run| run.retransmissions + run.netrt.retransmissions).sum();
        // Other transports have their own congestion control.
        let can_have_any = matches!(info.traits.recovery.as_str(), "irn" | "go-back-n" | "melo" | "netrt");
        can_have_any && info.traits.congestion == "none" && again > runs().map(|run| run.data_delivered).sum()
    };
    let mut found = Kinds::default();
    let adds = "no congestion control here; `+dcqcn` adds one.";
    for (info, _) in series.iter().filter(in_vain) {
        let one = format!("sends more packets again than arrive, and has {adds}");
        found.add(info, "", &one, &format!("{SERIES} send more packets again than arrive, and have {adds}"));
    }
    let [kind] = &found.0[..] else { return None };
    Some(match &kind.about[..] {
        [(name, ..)] => format!("{name} {}", kind.one),
        _ => kind.many.replace(SERIES, &kind.list()),
    })
}

/// Returns the text about a deadlock, with [`SEEDS`] in place of its seed.
fn of_deadlock(deadlock: &DeadlockReport) -> String {
    format!(
        "{SEEDS} ended in a PFC deadlock at {} us ({} ports wait in a cycle: {}).",
        count(deadlock.at_us as u64),
        deadlock.cycle.len(),
        cycle(deadlock)
    )
}

/// Returns the text about any other problem of one run, with [`SEEDS`] in place of its seed.
fn of_seed(point: Option<&PointSummary>) -> Option<String> {
    let Some(point) = point else { return Some(format!("not run with {SEEDS}.")) };
    let PointSummary { run, flows, .. } = point;
    Some(if run.deadlock.is_some() {
        return None;
    } else if run.flows_started == 0 && flows.unfinished_groups > 0 && took_all_time(run) {
        format!(
            "nothing is sent between hosts with {SEEDS}: simulated time ended, after 53 days, before the first message."
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
    } else if flows.unfinished == flows.measured {
        format!("no measured flow of {SEEDS} finished.")
    } else {
        return None;
    })
}

/// Placeholder for the seeds that a text is about.
const SEEDS: &str = "{seeds}";

/// Returns each text once, with the seeds it is about in place of [`SEEDS`].
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

/// Returns the seeds in words: "seed 1", "seeds 1 and 7", "seeds 1 to 5".
fn name_seeds(seeds: &[u64]) -> String {
    match seeds {
        [only] => format!("seed {only}"),
        [first, _, .., last] if seeds.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1])) => {
            format!("seeds {first} to {last}")
        }
        _ => {
            let names: Vec<String> = seeds.iter().map(u64::to_string).collect();
            format!("seeds {}", all_of(&names))
        }
    }
}

/// Returns how many never finished, by workload if there are several: "64 of 64 measured flows of incast", where `what`
/// is " measured flows". `of` returns the unfinished and the total count. `None` if all finished.
fn missing(points: &[&PointSummary], what: &str, of: fn(&FlowSummary) -> (u64, u64)) -> Option<String> {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, flows) in points.iter().flat_map(|point| point.flows_by_workload()) {
        let (unfinished, measured) = found.entry(name).or_default();
        *unfinished += of(flows).0;
        *measured += of(flows).1;
    }
    let shown = found.into_iter().filter(|(_, (unfinished, _))| *unfinished > 0);
    let tell = |(at, (name, (unfinished, measured))): (usize, (&str, (u64, u64)))| {
        let what = if at == 0 { what } else { "" };
        let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
        format!("{} of {}{what}{of}", count(unfinished), count(measured))
    };
    let parts: Vec<String> = shown.enumerate().map(tell).collect();
    (!parts.is_empty()).then(|| all_of(&parts))
}

/// Returns the nodes of a deadlock: "s0 for s1, s1 for s2, s2 for s0".
fn cycle(deadlock: &DeadlockReport) -> String {
    let hops = deadlock.cycle.iter().map(|hop| format!("{} for {}", hop.node, hop.paused_by));
    let shown: Vec<String> = hops.take(SHOWN_HOPS).collect();
    let more = if deadlock.cycle.len() > SHOWN_HOPS { ", ..." } else { "" };
    shown.join(", ") + more
}

/// Number of hops of a deadlock that a warning names; the report shows all.
const SHOWN_HOPS: usize = 8;

/// Returns "1 data packet was" or "1,024 data packets were".
fn packets(number: u64, [one, many]: [&str; 2]) -> String {
    let (plural, verb) = if number == 1 { ("", one) } else { ("s", many) };
    format!("{} data packet{plural} {verb}", count(number))
}

/// Returns the number with thousands separated.
fn count(things: u64) -> String {
    fixed(things as f64, 0)
}
