//! The summary of a study: `summary.json`.

use std::collections::{BTreeMap, BTreeSet};

use schemars::{JsonSchema, generate::SchemaSettings};
use selvedge_units::words::all_of;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::metric::{
    COMPARED, GROUP_COMPLETION, GROUPS, MEASURED, METRICS, Metric, OF_FINISHED, TABLE_METRICS, TIMES, UNFINISHED,
    UNFINISHED_GROUPS,
};
use crate::point::{DeadlockReport, DropCounts};
use crate::traits::Compared;
use crate::verdict::Verdict;
use crate::{Estimate, GroupKind, SeriesTraits, Sweep, TimePart};

/// Facts about the study that the caller supplies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StudyInfo {
    /// The study's title.
    pub title: String,
    /// The scenario in one line: "54 hosts, fat-tree k = 6, 40 Gb/s, 70 % load".
    pub scenario: String,
    /// Number of threads used.
    pub threads: usize,
    /// Version of the program.
    pub version: String,
    /// Wall time of the whole study, seconds.
    pub wall_s: f64,
    /// Whether every seed gives the same runs, so that only one seed was run.
    pub deterministic: bool,
    /// Grid of the study's sweep, if it has one.
    pub sweep: Option<Sweep>,
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
    /// Grid of the study's sweep, if it has one; each point is a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sweep: Option<Sweep>,
    /// Ratios between series of one case: every pair, the later over the earlier, for the compared metrics: three of
    /// flows; or the completion of incasts, all-to-alls and jobs, by workload if there are several.
    pub ratios: Vec<Ratio>,
    /// Cost and provenance of the runs.
    pub run: RunSummary,
    /// Answer to the question whether PFC is needed.
    pub verdict: Verdict,
    /// Facts to know before trusting the numbers.
    pub warnings: Vec<String>,
}

/// One series over its seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeriesSummary {
    /// Name of the series.
    pub name: String,
    /// Name of the series within its case.
    pub series: String,
    /// Case of the series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Traits of the series.
    pub traits: SeriesTraits,
    /// Every metric by name; where there are several workloads, some of each workload's own, as "incast.fct_mean_us".
    pub metrics: BTreeMap<String, Estimate>,
    /// Dropped data packets by reason, summed over seeds.
    pub drops: DropCounts,
    /// Runs that ended in a PFC deadlock.
    pub deadlocks: Vec<SeedDeadlock>,
}

impl SeriesSummary {
    /// Returns the estimate of a metric.
    pub fn metric(&self, name: &str) -> Option<&Estimate> {
        self.metrics.get(name)
    }
    /// Returns the mean time that a measured flow spent on this part, in microseconds; the time of an unfinished flow
    /// ends with the run. `None` if no run of the series sampled flows. The sum of the parts is the mean time of a
    /// flow.
    pub fn time_of(&self, part: TimePart) -> Option<&Estimate> {
        self.metric(TIMES[part as usize]).filter(|estimate| estimate.mean.is_some())
    }
    /// Returns the flows or groups that a metric is taken over; `None` if the metric is not about anything that
    /// finishes.
    pub(crate) fn taken_over(&self, metric: &str) -> Option<TakenOver> {
        // The name of a workload's own metric has the workload before the last dot.
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
            missing_by_seed: self.shares(&own(unfinished), &own(measured)),
        })
    }
    /// Returns one counting metric over another, seed by seed; `None` where the denominator is 0 or missing.
    fn shares(&self, part: &str, whole: &str) -> Vec<Option<f64>> {
        let of = |name: &str| self.metric(name).map_or(&[][..], |estimate| &estimate.per_seed);
        let share = |(part, whole): (&Option<f64>, &Option<f64>)| Some((*part)? / whole.filter(|&whole| whole > 0.0)?);
        of(part).iter().zip(of(whole)).map(share).collect()
    }
    /// Returns the sum of a counting metric over the seeds.
    pub(crate) fn total(&self, name: &str) -> f64 {
        self.metric(name).map_or(0.0, |estimate| estimate.per_seed.iter().flatten().sum())
    }
}

/// A row of a table: a metric, of all workloads or of one.
pub(crate) struct Row<'a> {
    /// Name of the row's metric in `summary.json`.
    pub(crate) name: &'a str,
    /// The metric, or for a workload's metric the corresponding one of all workloads.
    pub(crate) metric: &'static Metric,
    /// Displayed name, in this study.
    pub(crate) title: String,
}

/// Flows or groups over which a metric is taken, summed over seeds.
pub(crate) struct TakenOver {
    /// Kind of the flows or groups: "flows", "groups of incast".
    pub(crate) what: String,
    pub(crate) measured: f64,
    pub(crate) unfinished: f64,
    /// Unfinished share, seed by seed.
    pub(crate) missing_by_seed: Vec<Option<f64>>,
}

impl TakenOver {
    /// Returns the unfinished share over all seeds.
    pub(crate) fn missing(&self) -> f64 {
        self.unfinished / self.measured.max(1.0)
    }
}

/// A deadlock and the seed in which it happened.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SeedDeadlock {
    /// Seed of the run.
    pub seed: u64,
    /// Time and cycle of the deadlock.
    #[serde(flatten)]
    pub deadlock: DeadlockReport,
}

/// Ratio of one series to another, paired by seed.
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

/// Cost and provenance of a study.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunSummary {
    /// Fingerprint of all points together, 16 hexadecimal digits; equal for equal scenario and seeds.
    pub fingerprint: String,
    /// Packet hops, sum over points.
    pub packet_hops: u64,
    /// Events, sum over points.
    pub events: u64,
    /// Processor time, sum over points, seconds.
    pub cpu_s: f64,
    /// Wall time of the study, seconds.
    pub wall_s: f64,
    /// Number of threads used.
    pub threads: usize,
    /// Version of the program.
    pub version: String,
    /// Whether a second seed gave the same runs, so that only one seed is shown.
    #[serde(default)]
    pub deterministic: bool,
    /// Runs of the points.
    pub points: Vec<PointRun>,
}

/// Cost and fingerprint of one point's run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PointRun {
    /// Series of the run.
    pub series: String,
    /// Seed of the run.
    pub seed: u64,
    /// Fingerprint, 16 hexadecimal digits.
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
    /// Returns the summary without series, ratios, warnings and the runs of points.
    pub(crate) fn without_series(&self) -> Self {
        let run = RunSummary {
            fingerprint: self.run.fingerprint.clone(),
            version: self.run.version.clone(),
            points: Vec::new(),
            ..self.run
        };
        Self {
            title: self.title.clone(),
            scenario: self.scenario.clone(),
            seeds: self.seeds.clone(),
            sweep: None,
            series: Vec::new(),
            ratios: Vec::new(),
            verdict: self.verdict.clone(),
            warnings: Vec::new(),
            run,
        }
    }

    /// Returns the series of this name.
    pub fn find(&self, name: &str) -> Option<&SeriesSummary> {
        self.series.iter().find(|series| series.name == name)
    }

    /// Returns the series of this name in this case.
    pub fn find_in(&self, case: Option<&str>, series: &str) -> Option<&SeriesSummary> {
        self.series.iter().find(|one| one.case.as_deref() == case && one.series == series)
    }

    /// Returns the main rows of tables: the main metrics, those about groups if there are any, those of each workload
    /// if there are several, and the unfinished counts.
    pub(crate) fn main_rows(&self) -> Vec<Row<'_>> {
        let of_workloads = self.workloads_with_groups();
        let is_shown = |metric: &&Metric| match metric.name {
            MEASURED => true,
            GROUPS => self.any_total(GROUPS) > 0.0,
            // If several workloads have groups, each has a row of its own, and a mean over them is meaningless.
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

    /// Returns the rows of all other metrics.
    pub(crate) fn more_rows(&self) -> Vec<Row<'_>> {
        let main = self.main_rows();
        let more = METRICS.iter().filter(|metric| main.iter().all(|row| row.name != metric.name));
        more.map(|metric| self.row(metric.name, metric)).collect()
    }

    /// Returns the workloads with measured groups, if there are several workloads.
    fn workloads_with_groups(&self) -> BTreeSet<&str> {
        let names = self.series.iter().flat_map(|series| series.metrics.keys());
        let counts = names.filter_map(|name| Some(name).zip(Metric::find_of_workload(name)));
        let counts = counts.filter(|(name, (_, metric))| metric.name == GROUPS && self.any_total(name) > 0.0);
        counts.map(|(_, (workload, _))| workload).collect()
    }

    /// Returns the largest sum over seeds of a counting metric in any series.
    fn any_total(&self, name: &str) -> f64 {
        self.series.iter().map(|series| series.total(name)).fold(0.0, f64::max)
    }

    /// Returns the row of the metric called `name`, which is or corresponds to `metric`.
    fn row<'a>(&self, name: &'a str, metric: &'static Metric) -> Row<'a> {
        let workload = Metric::find_of_workload(name).map(|(workload, _)| workload);
        let groups = self.series.iter().flat_map(|series| &series.traits.groups);
        let kinds: BTreeSet<GroupKind> = groups
            .filter(|group| workload.is_none_or(|workload| group.workload == workload))
            .map(|group| group.kind)
            .collect();
        let names: Vec<String> = kinds.iter().map(|kind| format!("{}s", kind.name())).collect();
        let all = all_of(&names);
        let only = kinds.first().filter(|_| kinds.len() == 1).map(|kind| kind.name());
        let title = match metric.name {
            GROUP_COMPLETION => only.map(|kind| format!("{kind} completion")),
            GROUPS if !kinds.is_empty() => Some(format!("measured {all}")),
            UNFINISHED_GROUPS if !kinds.is_empty() => Some(format!("unfinished {all}")),
            _ => None,
        };
        let title = match (title, workload) {
            // The title is "incast completion" rather than "incast completion, incast".
            (Some(title), Some(workload)) if only == Some(workload) => title,
            (title, Some(workload)) => format!("{}, {workload}", title.as_deref().unwrap_or(metric.title)),
            (title, None) if metric.name == GROUP_COMPLETION && self.workloads_with_groups().len() > 1 => {
                format!("{}, all workloads", title.as_deref().unwrap_or(metric.title))
            }
            (title, None) => title.unwrap_or_else(|| metric.title.to_owned()),
        };
        Row { name, metric, title }
    }

    /// Returns whether the runs of each series are independent of the seed.
    pub(crate) fn ignores_seeds(&self) -> bool {
        if self.run.deterministic {
            return true;
        }
        let is_one = |series: &SeriesSummary| {
            let mut runs = self.run.points.iter().filter(|point| point.series == series.name);
            let first = runs.clone().next().map(|point| &point.fingerprint).filter(|_| runs.clone().count() > 1);
            // Runs on a real network have the fingerprint 0.
            first.is_some_and(|first| {
                first.bytes().any(|digit| digit != b'0') && runs.all(|run| run.fingerprint == *first)
            })
        };
        self.seeds.len() > 1 && !self.series.is_empty() && self.series.iter().all(is_one)
    }

    /// Returns every metric by which some series is compared.
    pub(crate) fn compared(&self) -> Vec<Compared> {
        let mut all = Vec::new();
        for compared in self.series.iter().flat_map(|series| series.traits.compared()) {
            if !all.contains(&compared) {
                all.push(compared);
            }
        }
        all
    }

    /// Returns the cases in the plan's order; a single `None` for a study without cases.
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

    /// Returns whether the series of this name is the first of its case.
    pub(crate) fn leads(&self, name: &str) -> bool {
        let of = |case| self.series.iter().find(|series| series.case.as_deref() == case);
        self.find(name).is_some_and(|series| of(series.case.as_deref()).is_some_and(|first| first.name == name))
    }

    /// Returns the ratio of two series in any metric, paired by seed; `None` for unknown names.
    pub fn ratio(&self, of: &str, to: &str, metric: &str) -> Option<Estimate> {
        let of = self.find(of)?.metric(metric)?;
        Some(Estimate::of_ratio(of, self.find(to)?.metric(metric)?))
    }

    /// Returns the text of `summary.json`.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a summary has text keys only") + "\n"
    }
}

/// Returns the JSON Schema (draft 2020-12) of `summary.json` with the meaning of each metric, as `selvedge schema
/// summary` prints it.
pub fn summary_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Summary>().to_value();
    let metrics = schema.pointer_mut("/$defs/SeriesSummary/properties/metrics").and_then(Value::as_object_mut);
    let metrics = metrics.expect("series have metrics");
    let estimate = metrics["additionalProperties"].clone();
    let of_metric = |metric: &Metric| {
        let unit = metric.unit.in_words().map_or(String::new(), |unit| format!(", in {unit}"));
        let mut one = estimate.clone();
        one["description"] = format!("{}{unit}: {}.", capital(metric.title), metric.meaning).into();
        (metric.name.to_owned(), one)
    };
    metrics.insert("properties".into(), METRICS.iter().map(of_metric).collect::<Map<_, _>>().into());
    schema
}

/// Returns the text with its first letter in upper case.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
}
