//! A study in one value: `summary.json`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, generate::SchemaSettings};
use selvedge_units::mix64;
use serde::{Deserialize, Serialize};

use crate::metric::{
    COMPARED, FLOW_COMPLETION, GROUP_COMPLETION, GROUPS, MEASURED, METRICS, Metric, OF_FINISHED, PER_WORKLOAD,
    TABLE_METRICS, UNFINISHED, UNFINISHED_GROUPS,
};
use crate::number::fixed;
use crate::point::{DeadlockReport, DropCounts};
use crate::verdict::{Verdict, and, verdict};
use crate::{Estimate, FlowSummary, PointSummary};

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
    /// Its workloads with groups, in the scenario's order: each repetition is one thing to wait for.
    #[serde(default)]
    pub groups: Vec<GroupTraits>,
    /// Whether it has workloads without groups beside these.
    #[serde(default)]
    pub ungrouped: bool,
}

/// A workload whose flows belong to groups.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GroupTraits {
    /// Its key in the scenario.
    pub workload: String,
    /// What its groups are.
    pub kind: GroupKind,
}

/// What a repetition of a workload is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GroupKind {
    /// All send to one.
    Incast,
    /// All send to all.
    AllToAll,
    /// Hosts compute and communicate in turn.
    Job,
}

impl GroupKind {
    /// One of them.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Incast => "incast",
            Self::AllToAll => "all-to-all",
            Self::Job => "job",
        }
    }
}

/// A metric by which series are compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Compared {
    /// Its name in `summary.json`.
    pub(crate) metric: String,
    /// Its name for people.
    pub(crate) title: String,
    /// What it is the completion time of, if it is one of those that decide: "flows", "jobs of collective".
    pub(crate) completes: Option<String>,
}

impl SeriesTraits {
    /// Whether groups are what one waits for, not single flows: there is nothing but groups, or there are jobs.
    pub(crate) fn goes_by_groups(&self) -> bool {
        let has_jobs = self.groups.iter().any(|group| group.kind == GroupKind::Job);
        has_jobs || !(self.ungrouped || self.groups.is_empty())
    }

    /// The metrics by which it is compared with others. Of several workloads with groups, each has its own.
    pub(crate) fn compared(&self) -> Vec<Compared> {
        if !self.goes_by_groups() {
            let of_flows = |metric: &str| Compared {
                metric: metric.to_owned(),
                title: Metric::find(metric).map_or(metric, |metric| metric.title).to_owned(),
                completes: (metric == FLOW_COMPLETION).then(|| "flows".to_owned()),
            };
            return COMPARED.map(of_flows).into();
        }
        let of_groups = |group: &GroupTraits| {
            let (kind, workload) = (group.kind.name(), &group.workload);
            let is_only = self.groups.iter().filter(|other| other.kind == group.kind).count() == 1;
            Compared {
                metric: match self.groups.len() {
                    1 => GROUP_COMPLETION.to_owned(),
                    _ => format!("{workload}.{GROUP_COMPLETION}"),
                },
                title: format!("{kind} completion time") + &if_many(!is_only, || format!(" ({workload})")),
                completes: Some(format!("{kind}s") + &if_many(!is_only, || format!(" of {workload}"))),
            }
        };
        self.groups.iter().map(of_groups).collect()
    }

    /// Those of them that decide.
    pub(crate) fn decisive(&self) -> impl Iterator<Item = Compared> {
        self.compared().into_iter().filter(|compared| compared.completes.is_some())
    }

    /// What one waits for: "flows", "incasts and jobs".
    pub(crate) fn awaited(&self) -> String {
        if self.goes_by_groups() { self.kinds_of_groups() } else { "flows".into() }
    }

    /// "incasts and jobs"; "groups" where nobody said what they are.
    fn kinds_of_groups(&self) -> String {
        let kinds: BTreeSet<GroupKind> = self.groups.iter().map(|group| group.kind).collect();
        let names: Vec<String> = kinds.into_iter().map(|kind| format!("{}s", kind.name())).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if names.is_empty() { "groups".into() } else { and(&names) }
    }

    /// What groups of a workload are.
    fn kind_of(&self, workload: &str) -> Option<GroupKind> {
        self.groups.iter().find(|group| group.workload == workload).map(|group| group.kind)
    }
}

fn if_many(many: bool, text: impl FnOnce() -> String) -> String {
    if many { text() } else { String::new() }
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
    /// Series against series of the same case: every pair, the later over the earlier, for the metrics by which they
    /// are compared: three of flows; or the completion of incasts, all-to-alls and jobs, by workload if there are
    /// several.
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
            GROUP_COMPLETION => {
                let kind = workload.and_then(|workload| self.traits.kind_of(workload));
                let what = kind.map_or_else(|| self.traits.kinds_of_groups(), |kind| format!("{}s", kind.name()));
                (what, GROUPS, UNFINISHED_GROUPS)
            }
            metric if OF_FINISHED.contains(&metric) => ("flows".to_owned(), MEASURED, UNFINISHED),
            _ => return None,
        };
        let own = |name: &str| workload.map_or(name.to_owned(), |workload| format!("{workload}.{name}"));
        Some(TakenOver {
            what: workload.map_or(what.clone(), |workload| format!("{what} of {workload}")),
            measured: self.total(&own(measured)),
            unfinished: self.total(&own(unfinished)),
        })
    }
    /// Sum of a counting metric over the seeds.
    pub(crate) fn total(&self, name: &str) -> f64 {
        self.metric(name).map_or(0.0, |estimate| estimate.per_seed.iter().flatten().sum())
    }
}

/// A row of a table: a metric, of all workloads or of one.
pub(crate) struct Row<'a> {
    /// Its name in `summary.json`.
    pub(crate) name: &'a str,
    /// What it is, or is like.
    pub(crate) metric: &'static Metric,
    /// Its name for people, in this study.
    pub(crate) title: String,
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

    /// The rows of tables: the main metrics, those about groups where there are any, those of each workload of
    /// several, and what never finished.
    pub(crate) fn main_rows(&self) -> Vec<Row<'_>> {
        let of_workloads = self.workloads_with_groups();
        let is_shown = |metric: &&Metric| match metric.name {
            MEASURED => true,
            GROUPS => self.any_total(GROUPS) > 0.0,
            // Several have rows of their own, whose mean would say nothing.
            GROUP_COMPLETION => of_workloads.len() < 2 && self.any_total(GROUPS) > 0.0,
            UNFINISHED | UNFINISHED_GROUPS => self.any_total(metric.name) > 0.0,
            name => METRICS[..TABLE_METRICS].iter().any(|shown| shown.name == name),
        };
        let names: BTreeSet<&str> =
            self.series.iter().flat_map(|series| series.metrics.keys()).map(String::as_str).collect();
        let own = names.into_iter().filter_map(|name| Metric::find_of_workload(name).map(|found| (name, found)));
        let own = own.filter(|(name, (workload, metric))| match metric.name {
            GROUP_COMPLETION => of_workloads.len() > 1 && of_workloads.contains(workload),
            UNFINISHED | UNFINISHED_GROUPS => self.any_total(name) > 0.0,
            of_all => COMPARED.contains(&of_all),
        });
        let main = METRICS.iter().filter(is_shown).map(|metric| self.row(metric.name, metric));
        main.chain(own.map(|(name, (_, metric))| self.row(name, metric))).collect()
    }

    /// All other metrics.
    pub(crate) fn more_rows(&self) -> Vec<Row<'_>> {
        let main = self.main_rows();
        let more = METRICS.iter().filter(|metric| main.iter().all(|row| row.name != metric.name));
        more.map(|metric| self.row(metric.name, metric)).collect()
    }

    /// Of several workloads those with groups that were measured.
    fn workloads_with_groups(&self) -> BTreeSet<&str> {
        let names = self.series.iter().flat_map(|series| series.metrics.keys());
        let counts = names.filter_map(|name| Some(name).zip(Metric::find_of_workload(name)));
        let counts = counts.filter(|(name, (_, metric))| metric.name == GROUPS && self.any_total(name) > 0.0);
        counts.map(|(_, (workload, _))| workload).collect()
    }

    /// The largest sum over seeds of a counting metric in any series.
    fn any_total(&self, name: &str) -> f64 {
        self.series.iter().map(|series| series.total(name)).fold(0.0, f64::max)
    }

    /// The row of the metric called `name`, which is like `metric`.
    fn row<'a>(&self, name: &'a str, metric: &'static Metric) -> Row<'a> {
        let workload = Metric::find_of_workload(name).map(|(workload, _)| workload);
        let groups = self.series.iter().flat_map(|series| &series.traits.groups);
        let kinds: BTreeSet<GroupKind> = groups
            .filter(|group| workload.is_none_or(|workload| group.workload == workload))
            .map(|group| group.kind)
            .collect();
        let names: Vec<String> = kinds.iter().map(|kind| format!("{}s", kind.name())).collect();
        let all = and(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let only = kinds.first().filter(|_| kinds.len() == 1).map(|kind| kind.name());
        let title = match metric.name {
            GROUP_COMPLETION => only.map(|kind| format!("{kind} completion")),
            GROUPS if !kinds.is_empty() => Some(format!("measured {all}")),
            UNFINISHED_GROUPS if !kinds.is_empty() => Some(format!("unfinished {all}")),
            _ => None,
        };
        let title = match (title, workload) {
            // "incast completion", not "incast completion, incast".
            (Some(title), Some(workload)) if only == Some(workload) => title,
            (title, Some(workload)) => format!("{}, {workload}", title.as_deref().unwrap_or(metric.title)),
            (title, None) if metric.name == GROUP_COMPLETION && self.workloads_with_groups().len() > 1 => {
                format!("{}, all workloads", title.as_deref().unwrap_or(metric.title))
            }
            (title, None) => title.unwrap_or_else(|| metric.title.to_owned()),
        };
        Row { name, metric, title }
    }

    /// Whether each series' runs are the same whatever the seed, of which there are several.
    pub(crate) fn ignores_seeds(&self) -> bool {
        let is_one = |series: &SeriesSummary| {
            let mut runs = self.run.points.iter().filter(|point| point.series == series.name);
            let first = runs.clone().next().map(|point| &point.fingerprint);
            // Runs in the real world have none.
            first.is_some_and(|first| {
                first.bytes().any(|digit| digit != b'0') && runs.all(|run| run.fingerprint == *first)
            })
        };
        self.seeds.len() > 1 && !self.series.is_empty() && self.series.iter().all(is_one)
    }

    /// Every metric by which some series is compared.
    pub(crate) fn compared(&self) -> Vec<Compared> {
        let mut all = Vec::new();
        for compared in self.series.iter().flat_map(|series| series.traits.compared()) {
            if !all.contains(&compared) {
                all.push(compared);
            }
        }
        all
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

    /// Whether the series of this name is the first of its case.
    pub(crate) fn leads(&self, name: &str) -> bool {
        let of = |case| self.series.iter().find(|series| series.case.as_deref() == case);
        self.find(name).is_some_and(|series| of(series.case.as_deref()).is_some_and(|first| first.name == name))
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
    if summary.ignores_seeds() {
        let same = "Every seed gave the same run: nothing in this scenario is random; one seed says as much.";
        summary.warnings.insert(0, same.into());
    }
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
            for Compared { metric, .. } in to.traits.compared() {
                let estimates = of.metric(&metric).zip(to.metric(&metric));
                let estimate = estimates.map(|(of, to)| Estimate::of_ratio(of, to)).unwrap_or_default();
                ratios.push(Ratio { of: of.name.clone(), to: to.name.clone(), metric, estimate });
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
        let of_seeds = points.iter().zip(seeds).filter_map(|(point, &seed)| Some((of_seed(*point)?, seed)));
        warnings.extend(by_seeds(of_seeds).into_iter().map(|text| format!("{name}: {text}")));
        let points: Vec<&PointSummary> = points.iter().flatten().copied().collect();
        let total = |of: fn(&PointSummary) -> u64| points.iter().map(|point| of(point)).sum::<u64>();
        let hint = |unfinished: &dyn Fn(&PointSummary) -> u64| {
            // Who waits in a cycle waits forever.
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
