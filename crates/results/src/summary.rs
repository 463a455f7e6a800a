//! A study in one value: `summary.json`.

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
use crate::{Estimate, GroupKind, SeriesTraits, TimePart};

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
    /// Whether another seed gives the same runs, so that there is one only.
    pub deterministic: bool,
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
    /// What a measured flow spent on this on average, in microseconds; of those that had not finished, until the end
    /// of the run; `None` where no run of the series could tell. The parts add up to the mean time of a flow.
    pub fn time_of(&self, part: TimePart) -> Option<&Estimate> {
        self.metric(TIMES[part as usize]).filter(|estimate| estimate.mean.is_some())
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
            missing_by_seed: self.shares(&own(unfinished), &own(measured)),
        })
    }
    /// One counting metric over another, seed by seed; `None` where there is nothing to count.
    fn shares(&self, part: &str, whole: &str) -> Vec<Option<f64>> {
        let of = |name: &str| self.metric(name).map_or(&[][..], |estimate| &estimate.per_seed);
        let share = |(part, whole): (&Option<f64>, &Option<f64>)| Some((*part)? / whole.filter(|&whole| whole > 0.0)?);
        of(part).iter().zip(of(whole)).map(share).collect()
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
    /// The share that never finished, seed by seed.
    pub(crate) missing_by_seed: Vec<Option<f64>>,
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
    /// Whether a second seed gave the same runs, so that one seed is all that is shown.
    #[serde(default)]
    pub deterministic: bool,
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
        let all = all_of(&names);
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

    /// Whether each series' runs are the same whatever the seed.
    pub(crate) fn ignores_seeds(&self) -> bool {
        if self.run.deterministic {
            return true;
        }
        let is_one = |series: &SeriesSummary| {
            let mut runs = self.run.points.iter().filter(|point| point.series == series.name);
            let first = runs.clone().next().map(|point| &point.fingerprint).filter(|_| runs.clone().count() > 1);
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

/// The JSON Schema (draft 2020-12) of `summary.json`, as `selvedge schema summary` prints it: with what each metric
/// means.
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

/// A text that begins a sentence.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
}
