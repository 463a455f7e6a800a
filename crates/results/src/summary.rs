//! A study in one value: `summary.json`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, generate::SchemaSettings};
use selvedge_units::mix64;
use serde::{Deserialize, Serialize};

use crate::metric::{
    COMPARED, FLOW_COMPLETION, GROUPS, JOB_COMPLETION, MEASURED, METRICS, Metric, OF_FINISHED, PER_WORKLOAD,
    UNFINISHED, UNFINISHED_GROUPS,
};
use crate::number::fixed;
use crate::point::{DeadlockReport, DropCounts};
use crate::verdict::{Verdict, verdict};
use crate::{Estimate, PointSummary};

/// A series of the plan, as the caller declares it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeriesInfo {
    /// Its name; no other series of the study has it.
    pub name: String,
    /// Its name among the series of its case; the same as `name` without cases.
    pub series: String,
    /// The case of the study in which it runs: a load among several, say.
    pub case: Option<String>,
    /// What it is, for the verdict.
    pub traits: SeriesTraits,
}

/// What matters about a series when one asks whether PFC is needed. Verdicts rest on these, never
/// on names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesTraits {
    /// Whether switches pause their neighbours instead of dropping.
    pub pfc: bool,
    /// Loss recovery, by its registry name: "irn", "go-back-n"; "netrt" where switches repair losses.
    pub recovery: String,
    /// Congestion control, by its registry name; "none" for none.
    pub congestion: String,
    /// Whether its traffic is jobs that compute and communicate in turn: then their completion times count,
    /// not those of single flows.
    #[serde(default)]
    pub jobs: bool,
}

impl SeriesTraits {
    /// The metrics by which it is compared with others.
    pub(crate) fn compared(&self) -> &'static [&'static str] {
        if self.jobs { &[JOB_COMPLETION] } else { &COMPARED }
    }
    /// The one that decides.
    pub(crate) fn headline(&self) -> &'static str {
        if self.jobs { JOB_COMPLETION } else { FLOW_COMPLETION }
    }
}

/// What the caller knows about the study.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StudyInfo {
    /// The study's title.
    pub title: String,
    /// The scenario in one line: "54 hosts, fat-tree k = 6, 40 Gb/s, 70 % load".
    pub scenario: String,
    /// Threads used.
    pub threads: usize,
    /// Version of the program.
    pub version: String,
    /// Wall time of the whole study, seconds.
    pub wall_s: f64,
}

/// A study, summarised: the contents of `summary.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// The study's title.
    pub title: String,
    /// The scenario in one line.
    pub scenario: String,
    /// The seeds, in the order of every `per_seed`.
    pub seeds: Vec<u64>,
    /// The series, in the plan's order.
    pub series: Vec<SeriesSummary>,
    /// Series against series of the same case: every pair, the later over the earlier, for the three main metrics.
    pub ratios: Vec<Ratio>,
    /// How it was run.
    pub run: RunSummary,
    /// The answer.
    pub verdict: Verdict,
    /// What a reader must know before trusting the numbers.
    pub warnings: Vec<String>,
}

/// One series over its seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeriesSummary {
    /// Its name.
    pub name: String,
    /// Its name among the series of its case.
    pub series: String,
    /// Its case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// What it is.
    pub traits: SeriesTraits,
    /// Every metric by name; and some of each workload's own, as "incast.fct_mean_us", where there
    /// are several.
    pub metrics: BTreeMap<String, Estimate>,
    /// Dropped data packets by reason, summed over seeds.
    pub drops: DropCounts,
    /// Runs that ended in a PFC deadlock.
    pub deadlocks: Vec<SeedDeadlock>,
}

impl SeriesSummary {
    /// A metric's estimate.
    pub fn metric(&self, name: &str) -> Option<&Estimate> {
        self.metrics.get(name)
    }
    /// What a metric is taken over; `None` if that is nothing which finishes.
    pub(crate) fn taken_over(&self, metric: &str) -> Option<TakenOver> {
        // A workload's own has its name before the last dot.
        let (workload, metric) = metric.rsplit_once('.').map_or((None, metric), |(of, metric)| (Some(of), metric));
        let (what, measured, unfinished) = match metric {
            JOB_COMPLETION if self.traits.jobs => ("jobs", GROUPS, UNFINISHED_GROUPS),
            JOB_COMPLETION => ("groups", GROUPS, UNFINISHED_GROUPS),
            metric if OF_FINISHED.contains(&metric) => ("flows", MEASURED, UNFINISHED),
            _ => return None,
        };
        let own = |name: &str| workload.map_or(name.to_owned(), |workload| format!("{workload}.{name}"));
        Some(TakenOver {
            what: workload.map_or(what.to_owned(), |workload| format!("{what} of {workload}")),
            measured: self.total(&own(measured)),
            unfinished: self.total(&own(unfinished)),
        })
    }
    /// Sum of a counting metric over the seeds.
    pub(crate) fn total(&self, name: &str) -> f64 {
        self.metric(name).map_or(0.0, |estimate| estimate.per_seed.iter().flatten().sum())
    }
}

/// Flows or groups over which a metric is taken, summed over seeds.
pub(crate) struct TakenOver {
    /// What they are: "flows", "groups of incast".
    pub(crate) what: String,
    pub(crate) measured: f64,
    pub(crate) unfinished: f64,
}

impl TakenOver {
    /// The share that never finished.
    pub(crate) fn missing(&self) -> f64 {
        self.unfinished / self.measured.max(1.0)
    }
}

/// A deadlock and the seed in which it happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeedDeadlock {
    /// The seed.
    pub seed: u64,
    /// When, and who waits for whom.
    #[serde(flatten)]
    pub deadlock: DeadlockReport,
}

/// One series over another, paired by seed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ratio {
    /// Numerator: name of a series.
    pub of: String,
    /// Denominator: name of a series.
    pub to: String,
    /// Name of the metric.
    pub metric: String,
    /// The ratio.
    #[serde(flatten)]
    pub estimate: Estimate,
}

/// How the study was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Of all points together, 16 hexadecimal digits; equal for equal scenario and seeds.
    pub fingerprint: String,
    /// Sum over points.
    pub packet_hops: u64,
    /// Sum over points.
    pub events: u64,
    /// Processor time, sum over points, seconds.
    pub cpu_s: f64,
    /// Wall time of the study, seconds.
    pub wall_s: f64,
    /// Threads used.
    pub threads: usize,
    /// Version of the program.
    pub version: String,
    /// Each run.
    pub points: Vec<PointRun>,
}

/// How one point was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PointRun {
    /// Its series.
    pub series: String,
    /// Its seed.
    pub seed: u64,
    /// 16 hexadecimal digits.
    pub fingerprint: String,
    /// Simulated time, microseconds.
    pub simulated_us: f64,
    /// Packets times links crossed.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Processor time, seconds.
    pub cpu_s: f64,
    /// Wall time, seconds.
    pub wall_s: f64,
}

impl Summary {
    /// The series of this name.
    pub fn find(&self, name: &str) -> Option<&SeriesSummary> {
        self.series.iter().find(|series| series.name == name)
    }

    /// The series of this name in this case.
    pub fn find_in(&self, case: Option<&str>, series: &str) -> Option<&SeriesSummary> {
        self.series.iter().find(|one| one.case.as_deref() == case && one.series == series)
    }

    /// Whether the metric of this name counts what never finished, and some series left any.
    pub(crate) fn has_unfinished(&self, name: &str) -> bool {
        [UNFINISHED, UNFINISHED_GROUPS].contains(&name) && self.series.iter().any(|series| series.total(name) > 0.0)
    }

    /// The metrics that count the unfinished flows and groups of each workload of several, where some series left any.
    pub(crate) fn unfinished_by_workload(&self) -> BTreeSet<&str> {
        let all = self.series.iter().flat_map(|series| series.metrics.keys().map(move |name| (series, name)));
        let counts = |name| {
            let metric = Metric::find_of_workload(name).map(|(_, metric)| metric.name);
            metric.is_some_and(|metric| [UNFINISHED, UNFINISHED_GROUPS].contains(&metric))
        };
        all.filter(|(series, name)| counts(name) && series.total(name) > 0.0).map(|(_, name)| name.as_str()).collect()
    }

    /// The cases, in the plan's order; one, `None`, for a study without.
    pub fn cases(&self) -> Vec<Option<&str>> {
        let mut cases = Vec::new();
        for series in &self.series {
            let case = series.case.as_deref();
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
        cases
    }

    /// One series over another in any metric, paired by seed; `None` for unknown names.
    pub fn ratio(&self, of: &str, to: &str, metric: &str) -> Option<Estimate> {
        let of = self.find(of)?.metric(metric)?;
        Some(Estimate::of_ratio(of, self.find(to)?.metric(metric)?))
    }

    /// The text of `summary.json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a summary has text keys only") + "\n"
    }
}

/// The JSON Schema (draft 2020-12) of `summary.json`, as `selvedge schema summary` prints it.
pub fn summary_schema() -> serde_json::Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Summary>().to_value()
}

/// Summarises the points of a study. Points may come in any order; those of series that are not
/// listed are ignored, and missing ones are missing values.
pub fn summarise(study: &StudyInfo, series: &[SeriesInfo], points: &[PointSummary]) -> Summary {
    let mut seeds = Vec::new();
    for point in points {
        if !seeds.contains(&point.seed) {
            seeds.push(point.seed);
        }
    }
    seeds.sort_unstable();
    let find = |name: &str, seed| points.iter().find(|point| point.series == name && point.seed == seed);
    let by_series: Vec<(&SeriesInfo, Vec<Option<&PointSummary>>)> =
        series.iter().map(|info| (info, seeds.iter().map(|&seed| find(&info.name, seed)).collect())).collect();

    let summaries: Vec<_> = by_series.iter().map(|(info, points)| summarise_series(info, points)).collect();
    let in_order: Vec<&PointSummary> =
        by_series.iter().flat_map(|(_, points)| points.iter().flatten().copied()).collect();
    let mut summary = Summary {
        title: study.title.clone(),
        scenario: study.scenario.clone(),
        warnings: warnings(&by_series, &seeds),
        seeds,
        ratios: all_ratios(&summaries),
        series: summaries,
        run: summarise_run(study, &in_order),
        verdict: Verdict::default(),
    };
    summary.verdict = verdict(&summary);
    summary
}

fn summarise_series(info: &SeriesInfo, points: &[Option<&PointSummary>]) -> SeriesSummary {
    let metrics = METRICS.iter().map(|metric| {
        let per_seed = points.iter().map(|point| point.and_then(metric.of)).collect();
        (metric.name.to_string(), Estimate::of_mean(per_seed))
    });
    let mut metrics: BTreeMap<String, Estimate> = metrics.collect();
    let names = points.iter().flatten().flat_map(|point| point.workloads.iter().map(|(name, _)| name));
    let names: BTreeSet<&String> = names.collect();
    for (name, metric) in names.into_iter().flat_map(|name| PER_WORKLOAD.map(|metric| (name, metric))) {
        let Some(metric) = Metric::find(metric) else { continue };
        let own = |point: &PointSummary| {
            let (_, flows) = point.workloads.iter().find(|(known, _)| known == name)?;
            (metric.of)(&PointSummary { flows: flows.clone(), ..point.clone() })
        };
        let per_seed = points.iter().map(|point| point.and_then(own)).collect();
        metrics.insert(format!("{name}.{}", metric.name), Estimate::of_mean(per_seed));
    }
    let mut drops = DropCounts::default();
    let mut deadlocks = Vec::new();
    for point in points.iter().flatten() {
        drops.add(&point.run.data_drops);
        let seed = point.seed;
        deadlocks.extend(point.run.deadlock.clone().map(|deadlock| SeedDeadlock { seed, deadlock }));
    }
    SeriesSummary {
        name: info.name.clone(),
        series: info.series.clone(),
        case: info.case.clone(),
        traits: info.traits.clone(),
        metrics,
        drops,
        deadlocks,
    }
}

fn all_ratios(series: &[SeriesSummary]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for (at, to) in series.iter().enumerate() {
        for of in series[at + 1..].iter().filter(|of| of.case == to.case) {
            for &metric in to.traits.compared() {
                let estimate = Estimate::of_ratio(&of.metrics[metric], &to.metrics[metric]);
                ratios.push(Ratio { of: of.name.clone(), to: to.name.clone(), metric: metric.into(), estimate });
            }
        }
    }
    ratios
}

fn summarise_run(study: &StudyInfo, points: &[&PointSummary]) -> RunSummary {
    // Order matters: the fingerprint is one of the plan, not of a bag of runs.
    let fingerprint = points.iter().fold(0, |hash, point| {
        let own = u64::from_str_radix(&point.run.fingerprint, 16).unwrap_or_default();
        mix64(hash ^ own)
    });
    RunSummary {
        fingerprint: format!("{fingerprint:016x}"),
        packet_hops: points.iter().map(|point| point.run.packet_hops).sum(),
        events: points.iter().map(|point| point.run.events).sum(),
        cpu_s: points.iter().map(|point| point.run.cpu_s).sum(),
        wall_s: study.wall_s,
        threads: study.threads,
        version: study.version.clone(),
        points: points
            .iter()
            .map(|point| PointRun {
                series: point.series.clone(),
                seed: point.seed,
                fingerprint: point.run.fingerprint.clone(),
                simulated_us: point.run.end_us,
                packet_hops: point.run.packet_hops,
                events: point.run.events,
                cpu_s: point.run.cpu_s,
                wall_s: point.run.wall_s,
            })
            .collect(),
    }
}

/// What makes the numbers less than they seem, worst first within each series.
fn warnings(series: &[(&SeriesInfo, Vec<Option<&PointSummary>>)], seeds: &[u64]) -> Vec<String> {
    let mut warnings = Vec::new();
    if seeds.len() == 1 {
        warnings.push("One seed: there are no confidence intervals. Use at least three, better five.".into());
    }
    for (info, points) in series {
        let name = &info.name;
        for (point, seed) in points.iter().zip(seeds) {
            let Some(point) = point else {
                warnings.push(format!("{name}: seed {seed} was not run."));
                continue;
            };
            if let Some(deadlock) = &point.run.deadlock {
                warnings.push(format!(
                    "{name}: seed {seed} ended in a PFC deadlock at {} us ({} ports wait in a circle: {}).",
                    count(deadlock.at_us as u64),
                    deadlock.cycle.len(),
                    circle(deadlock)
                ));
            } else if point.run.flows_started == 0 && point.flows.groups > 0 {
                warnings.push(format!(
                    "{name}: nothing is sent between hosts with seed {seed}: the schedule has no messages."
                ));
            } else if point.unfinished().1 == 0 && point.flows.groups == 0 {
                warnings.push(format!(
                    "{name}: no flow of seed {seed} was measured: of {} flows that began, none is among those that `measure` \
                     counts; let the run last longer, or measure earlier.",
                    count(point.run.flows_started)
                ));
            } else if point.flows.fct_us.count == 0 {
                warnings.push(format!("{name}: no measured flow of seed {seed} finished."));
            }
        }
        let points: Vec<&PointSummary> = points.iter().flatten().copied().collect();
        let total = |of: fn(&PointSummary) -> u64| points.iter().map(|point| of(point)).sum::<u64>();
        let hint = |unfinished: fn(&PointSummary) -> u64| {
            // Who waits in a circle waits forever.
            let mut cut = points.iter().filter(|point| unfinished(point) > 0 && point.run.deadlock.is_none());
            match cut.clone().next() {
                None => "",
                Some(_) if cut.any(|point| !point.run.hopeless) => {
                    " Where stop.time or stop.flows ended the run, give more, unless a link that they need stays down."
                }
                Some(_) => {
                    " Nothing more would have arrived, however long the run: a link is down, a queue pair of \
                     [workload.verbs] has failed after its retries, or what was lost last is not sent again without a \
                     timeout (with PFC, RDMA has none by default)."
                }
            }
        };
        let (unfinished, measured) = (total(|point| point.unfinished().0), total(|point| point.unfinished().1));
        if unfinished > 0 {
            let hint = hint(|point| point.unfinished().0);
            warnings.push(format!(
                "{name}: {} of {} measured flows never finished{}; they are missing from its \
                 completion times, which are therefore too good.{hint}",
                count(unfinished),
                count(measured),
                by_workload(&points)
            ));
        }
        let (unfinished, measured) = (total(|point| point.flows.unfinished_groups), total(|point| point.flows.groups));
        if unfinished > 0 {
            warnings.push(format!(
                "{name}: {} of {} incasts or jobs never completed; their completion time is that of the others.{}",
                count(unfinished),
                count(measured),
                hint(|point| point.flows.unfinished_groups)
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
                "{name}: {} data packets were dropped although PFC was on: {reason}.",
                count(lost_headroom)
            ));
        }
        let no_route = total(|point| point.run.data_drops.no_route);
        if no_route > 0 {
            warnings.push(format!("{name}: {} data packets had no route to their destination.", count(no_route)));
        }
        if lost_pauses > 0 {
            warnings.push(format!("{name}: {} pause frames were lost on the way.", count(lost_pauses)));
        }
    }
    warnings
}

/// Whose flows never finished, where there are several workloads: " (incast: 64 of 64)".
fn by_workload(points: &[&PointSummary]) -> String {
    let mut found: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (name, flows) in points.iter().flat_map(|point| &point.workloads) {
        let (unfinished, measured) = found.entry(name).or_default();
        *unfinished += flows.unfinished;
        *measured += flows.measured;
    }
    let shown = found.into_iter().filter(|(_, (unfinished, _))| *unfinished > 0);
    let parts: Vec<String> = shown
        .map(|(name, (unfinished, measured))| format!("{name}: {} of {}", count(unfinished), count(measured)))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// The nodes of a deadlock: "s0 for s1, s1 for s2, s2 for s0".
fn circle(deadlock: &DeadlockReport) -> String {
    let hops = deadlock.cycle.iter().map(|hop| format!("{} for {}", hop.node, hop.paused_by));
    let shown: Vec<String> = hops.take(SHOWN_HOPS).collect();
    let more = if deadlock.cycle.len() > SHOWN_HOPS { ", ..." } else { "" };
    shown.join(", ") + more
}

/// Hops of a deadlock that a warning names; the report shows all.
const SHOWN_HOPS: usize = 8;

/// With thousands separated.
fn count(things: u64) -> String {
    fixed(things as f64, 0)
}
