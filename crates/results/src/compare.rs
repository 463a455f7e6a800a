//! Comparison of two studies, series by series.
//!
//! Ratios are those of the second study over the first. Where both studies ran the same flows, ratios are paired by
//! seed, like those of series within a study ([`Estimate::of_ratio`]). Where the flows differ, seeds are independent
//! samples: the difference of the logarithms of both sides gets an interval by Welch's t test, which is wider.

use std::collections::BTreeSet;

use selvedge_units::words::plural;
use serde::Serialize;

use crate::metric::Unit;
use crate::number::{self, Scale};
use crate::summary::Row;
use crate::table::Style;
use crate::{Bound, Estimate, METRICS, Metric, SeriesSummary, Summary};

/// The comparison of two studies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// The first study, the denominator of the ratios.
    pub a: Side,
    /// The second study, the numerator of the ratios.
    pub b: Side,
    /// Keys of the resolved scenarios whose values differ.
    pub differences: Vec<KeyDifference>,
    /// Series that both studies have, in the first study's order.
    pub series: Vec<SeriesComparison>,
    /// Series that only the first study has.
    pub only_in_a: Vec<String>,
    /// Series that only the second study has.
    pub only_in_b: Vec<String>,
}

/// One of two studies.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Side {
    /// Folder of the study's results.
    pub folder: String,
    /// Title of the study.
    pub title: String,
    /// Version of the program that ran the study.
    pub version: String,
    /// Seeds of the study.
    pub seeds: Vec<u64>,
    /// Whether every seed gives the same run, because nothing in the study is random.
    pub ignores_seeds: bool,
}

/// A key of resolved scenarios with different values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct KeyDifference {
    /// The dotted key.
    pub key: String,
    /// Series in which the key differs in this way; empty: all series that both studies have.
    pub series: Vec<String>,
    /// Value in the first study, as TOML; `None` if the key is absent.
    pub a: Option<String>,
    /// Value in the second study, as TOML; `None` if the key is absent.
    pub b: Option<String>,
}

/// Agreement of the flows of two runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlowsMatch {
    /// Equal flows at equal times.
    Same,
    /// Equal flows, some of which began at other times, as in closed loops and schedules.
    OtherStarts,
    /// Different flows.
    Different,
    /// No seed that both studies have.
    NoCommonSeed,
}

impl FlowsMatch {
    /// Returns whether ratios are paired by seed.
    pub const fn is_paired(self) -> bool {
        matches!(self, Self::Same | Self::OtherStarts)
    }
}

/// A series in two studies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeriesComparison {
    /// Name of the series, including its case if there are several.
    pub name: String,
    /// Name of the series among those of its case.
    pub series: String,
    /// Case of the series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// Agreement of the series' flows in both studies.
    pub flows: FlowsMatch,
    /// All metrics that both studies have.
    pub metrics: Vec<MetricComparison>,
}

/// A metric of a series in two studies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MetricComparison {
    /// Name of the metric in `summary.json`.
    pub metric: String,
    /// Mean over the seeds of the first study.
    pub a: Option<f64>,
    /// Mean over the seeds of the second study.
    pub b: Option<f64>,
    /// The bound that the first mean is, if flows had not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a_bound: Option<Bound>,
    /// The bound that the second mean is, if flows had not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub b_bound: Option<Bound>,
    /// The second mean over the first: geometric mean and 95 % interval. If paired, `per_seed` holds the ratios of the
    /// seeds that both studies have.
    pub ratio: Estimate,
}

impl Comparison {
    /// Compares two studies, each given with the name of its folder. For a series that both have, `flows` returns
    /// whether the flows agree.
    pub fn new(
        [a, b]: [(&str, &Summary); 2],
        differences: Vec<KeyDifference>,
        flows: impl Fn(&SeriesSummary) -> FlowsMatch,
    ) -> Self {
        let side = |(folder, summary): (&str, &Summary)| Side {
            folder: folder.to_owned(),
            title: summary.title.clone(),
            version: summary.run.version.clone(),
            seeds: summary.seeds.clone(),
            ignores_seeds: summary.ignores_seeds(),
        };
        let (sides, [a, b]) = ([side(a), side(b)], [a.1, b.1]);
        let without_chance = sides.iter().all(|side| side.ignores_seeds);
        let other = |summary: &Summary, one: &SeriesSummary| -> Option<SeriesSummary> {
            summary.find_in(one.case.as_deref(), &one.series).cloned()
        };
        let only = |own: &Summary, others: &Summary| -> Vec<String> {
            own.series.iter().filter(|one| other(others, one).is_none()).map(|one| one.name.clone()).collect()
        };
        let compare = |one: &SeriesSummary| -> Option<SeriesComparison> {
            let (other, flows) = (other(b, one)?, flows(one));
            let in_both = one.metrics.keys().filter(|name| other.metrics.contains_key(*name));
            let metric = |name: &String| {
                let [of_a, of_b] = [&one.metrics[name], &other.metrics[name]];
                let mut ratio = ratio((of_a, &a.seeds), (of_b, &b.seeds), flows.is_paired());
                if without_chance {
                    ratio.ci95 = None;
                }
                MetricComparison {
                    metric: name.clone(),
                    a: of_a.mean,
                    b: of_b.mean,
                    a_bound: of_a.bound,
                    b_bound: of_b.bound,
                    ratio,
                }
            };
            let metrics = in_both.map(metric).collect();
            Some(SeriesComparison {
                name: one.name.clone(),
                series: one.series.clone(),
                case: one.case.clone(),
                flows,
                metrics,
            })
        };
        let series = a.series.iter().filter_map(compare).collect();
        let (only_in_a, only_in_b) = (only(a, b), only(b, a));
        let [a, b] = sides;
        Self { a, b, differences, series, only_in_a, only_in_b }
    }

    /// Returns the text that `--json` prints.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a comparison has text keys only") + "\n"
    }
}

/// Returns the ratio of the values of `b` to those of `a`; the values are in the order of the seeds.
fn ratio((a, seeds_a): (&Estimate, &[u64]), (b, seeds_b): (&Estimate, &[u64]), is_paired: bool) -> Estimate {
    if !is_paired {
        return Estimate::of_unpaired_ratio(b, a);
    }
    let value = |estimate: &Estimate, seeds: &[u64], seed: u64| -> Option<f64> {
        let at = seeds.iter().position(|one| *one == seed)?;
        estimate.per_seed.get(at).copied().flatten()
    };
    let common = || seeds_a.iter().copied().filter(|seed| seeds_b.contains(seed));
    let of = |estimate: &Estimate, seeds: &[u64]| Estimate {
        per_seed: common().map(|seed| value(estimate, seeds, seed)).collect(),
        bound: estimate.bound,
        ..Estimate::default()
    };
    Estimate::of_ratio(&of(b, seeds_b), &of(a, seeds_a))
}

/// Renders the comparison for a terminal of `width` columns: the differences of the scenarios, then a table for each
/// series. `summaries` are the two summaries that `comparison` was made from.
pub fn render_comparison(comparison: &Comparison, summaries: [&Summary; 2], width: usize, color: bool) -> String {
    let style = Style { color };
    let mut out = String::new();
    for (letter, side) in [("A", &comparison.a), ("B", &comparison.b)] {
        out += &format!("{}  {}: {}, {}\n", style.bold(letter), side.folder, side.title, seeds(&side.seeds));
    }
    if comparison.a.version != comparison.b.version {
        out += &format!("run by versions {} and {}\n", comparison.a.version, comparison.b.version);
    }
    out.push('\n');
    if comparison.differences.is_empty() {
        out += "The resolved scenarios are the same.\n";
    }
    for KeyDifference { key, series, a, b } in &comparison.differences {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(none)".to_owned());
        let where_ = if series.is_empty() { String::new() } else { format!("  ({})", series.join(", ")) };
        out += &format!("{key}: {} -> {}{where_}\n", value(a), value(b));
    }
    for (letter, only) in [("A", &comparison.only_in_a), ("B", &comparison.only_in_b)] {
        if !only.is_empty() {
            out += &format!("only in {letter}: {}\n", only.join(", "));
        }
    }
    let rows = rows(summaries);
    for series in &comparison.series {
        out += &format!("\n{}: {}\n", style.bold(&series.name), sentence(series.flows, comparison));
        table(&mut out, series, &rows, width, &style);
    }
    out
}

/// Returns a sentence on the flows of a series, to be read before its ratios.
fn sentence(flows: FlowsMatch, comparison: &Comparison) -> String {
    let mut text = match flows {
        FlowsMatch::Same => "the same flows in A and B, paired by seed",
        FlowsMatch::OtherStarts => "the same flows in A and B, some at other times; paired by seed",
        FlowsMatch::Different => "A and B have other flows, so that ratios are not paired and intervals are wider",
        FlowsMatch::NoCommonSeed => {
            "A and B have no seed in common, so that ratios are not paired and intervals are wider"
        }
    }
    .to_owned();
    let common = comparison.a.seeds.iter().filter(|seed| comparison.b.seeds.contains(seed)).count();
    if flows.is_paired() && common < comparison.a.seeds.len().max(comparison.b.seeds.len()) {
        text += &format!(" (ratios: of the {} that both have)", plural(common as u64, "seed"));
    }
    if comparison.a.ignores_seeds && comparison.b.ignores_seeds {
        return format!("{text}; each seed gives the same run, so that there are no intervals");
    }
    text
}

/// Returns the rows that either study's own table has.
fn rows(summaries: [&Summary; 2]) -> Vec<(String, &'static Metric, String)> {
    let mut seen = BTreeSet::new();
    let all = summaries.into_iter().flat_map(Summary::main_rows);
    let new = all.filter(|row| seen.insert(row.name.to_owned()));
    let mut rows: Vec<_> = new.map(|Row { name, metric, title }| (name.to_owned(), metric, title)).collect();
    rows.sort_by_key(|(_, metric, _)| METRICS.iter().position(|one| one.name == metric.name));
    rows
}

fn table(
    out: &mut String,
    series: &SeriesComparison,
    rows: &[(String, &'static Metric, String)],
    width: usize,
    style: &Style,
) {
    let cells = rows.iter().filter_map(|(name, metric, title)| {
        let found = series.metrics.iter().find(|one| one.metric == *name)?;
        let scale = Scale::of(metric.unit, found.a.unwrap_or(0.0).max(found.b.unwrap_or(0.0)));
        let label = if scale.unit.is_empty() { title.clone() } else { format!("{title}, {}", scale.unit) };
        let mean = |mean: Option<f64>, bound| match mean {
            Some(0.0) if metric.unit == Unit::Count => "0".to_owned(),
            mean => number::bounded(mean.map(|mean| mean * scale.factor), bound, 4),
        };
        let ratio = number::bounded(found.ratio.mean, found.ratio.bound, 3) + &number::in_brackets(found.ratio.ci95);
        Some((label, vec![mean(found.a, found.a_bound), mean(found.b, found.b_bound), ratio]))
    });
    let cells: Vec<(String, Vec<String>)> = cells.collect();
    let heads = ["A", "B", "B / A (95 %)"].map(str::to_owned);
    crate::table::blocks(out, "", &heads, &cells, width, style);
}

/// Returns the seeds in words: "5 seeds", "seed 7".
fn seeds(seeds: &[u64]) -> String {
    match seeds {
        [one] => format!("seed {one}"),
        all => format!("{} seeds", all.len()),
    }
}
