//! Sweeps: the grid of values at whose points series were compared, and the table of all of its results.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metric::METRICS;
use crate::{SeriesSummary, Summary};

/// Grid of a sweep. Each of its points is a case of the study.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Axes of the grid.
    pub axes: Vec<SweepAxis>,
    /// Points of the grid, in the order of the study's cases.
    pub points: Vec<SweepPoint>,
}

/// Axis of a sweep's grid.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SweepAxis {
    /// Keys that change along the axis: one, or several that change together.
    pub keys: Vec<String>,
    /// Steps of the axis, each with a value for every key: numbers, texts or whatever the scenario has there.
    pub values: Vec<Vec<Value>>,
}

/// Point of a sweep.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SweepPoint {
    /// Name of the point's case.
    pub case: String,
    /// Step of the point on each axis, from 0.
    pub at: Vec<usize>,
}

impl SweepAxis {
    /// Returns the axis' title: its keys.
    pub(crate) fn title(&self) -> String {
        self.keys.join(", ")
    }

    /// Returns a step as people write it: "0.3", or "40Gbps, 240KB".
    pub(crate) fn label(&self, step: usize) -> String {
        self.values[step].iter().map(text).collect::<Vec<_>>().join(", ")
    }
}

impl Sweep {
    /// Returns the values of all keys at a point, in the order of the axes.
    fn values<'s>(&'s self, point: &'s SweepPoint) -> impl Iterator<Item = &'s Value> {
        self.axes.iter().zip(&point.at).flat_map(|(axis, &at)| &axis.values[at])
    }

    /// Returns the names of cases by their steps.
    pub(crate) fn case_at(&self, at: &[usize]) -> Option<&str> {
        self.points.iter().find(|point| point.at == at).map(|point| point.case.as_str())
    }
}

/// Returns a value without the quotes of a text.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the results of a sweep as one table in CSV: a row for every series at every point, with the swept values as
/// columns, then the mean over seeds of each metric and the ends of its 95 % interval. `None` without a sweep.
pub fn render_sweep_csv(summary: &Summary) -> Option<String> {
    let sweep = summary.sweep.as_ref()?;
    let known = |name: &str| summary.series.iter().any(|series| mean(series, name).is_some());
    let metrics: Vec<&str> = METRICS.iter().map(|metric| metric.name).filter(|name| known(name)).collect();
    let mut out = String::new();
    let keys = sweep.axes.iter().flat_map(|axis| &axis.keys).map(String::as_str);
    let heads = keys.map(str::to_owned).chain(["series".to_owned()]);
    let of_metrics =
        metrics.iter().flat_map(|name| [(*name).to_owned(), format!("{name}_low"), format!("{name}_high")]);
    row(&mut out, heads.chain(of_metrics));
    for (point, series) in rows(summary, sweep) {
        let number = |number: Option<f64>| number.map_or_else(String::new, |number| number.to_string());
        let numbers = metrics.iter().flat_map(|name| {
            let ends = series.metric(name).and_then(|estimate| estimate.ci95);
            [mean(series, name), ends.map(|ends| ends[0]), ends.map(|ends| ends[1])].map(number)
        });
        row(&mut out, sweep.values(point).map(text).chain([series.series.clone()]).chain(numbers));
    }
    Some(out)
}

/// Returns the series at each point, point by point.
pub(crate) fn rows<'s>(
    summary: &'s Summary,
    sweep: &'s Sweep,
) -> impl Iterator<Item = (&'s SweepPoint, &'s SeriesSummary)> {
    // Both are in the order of the study's cases.
    let mut from = 0;
    sweep.points.iter().flat_map(move |point| {
        let is_here = |series: &&SeriesSummary| series.case.as_deref() == Some(point.case.as_str());
        from += summary.series[from..].iter().take_while(|series| !is_here(series)).count();
        let count = summary.series[from..].iter().take_while(is_here).count();
        let here = &summary.series[from..from + count];
        from += count;
        here.iter().map(move |series| (point, series))
    })
}

fn mean(series: &SeriesSummary, metric: &str) -> Option<f64> {
    series.metric(metric)?.mean
}

/// Appends a line of CSV; cells with separators are quoted.
fn row(out: &mut String, cells: impl Iterator<Item = String>) {
    for (at, cell) in cells.enumerate() {
        let separator = if at == 0 { "" } else { "," };
        let _ = match cell.contains([',', '"', '\n']) {
            true => write!(out, "{separator}\"{}\"", cell.replace('"', "\"\"")),
            false => write!(out, "{separator}{cell}"),
        };
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SeriesInfo, StudyInfo, summarise};

    #[test]
    fn a_sweep_is_one_table_with_the_swept_values_as_columns() {
        let axis = |key: &str, values: Vec<Value>| SweepAxis {
            keys: vec![key.to_owned()],
            values: values.into_iter().map(|value| vec![value]).collect(),
        };
        let sweep = Sweep {
            axes: vec![axis("a.load", vec![0.3.into(), 0.5.into()]), axis("b", vec!["x, y".into()])],
            points: (0..2).map(|at| SweepPoint { case: format!("case {at}"), at: vec![at, 0] }).collect(),
        };
        let info = |case: usize, series: &str| SeriesInfo {
            name: format!("case {case}: {series}"),
            series: series.to_owned(),
            case: Some(format!("case {case}")),
            traits: Default::default(),
            cut: Default::default(),
        };
        let series = [info(0, "irn"), info(0, "roce"), info(1, "irn"), info(1, "roce")];
        let study = StudyInfo { sweep: Some(sweep), ..StudyInfo::default() };
        let summary = summarise(&study, &series, &[]);
        let csv = render_sweep_csv(&summary).expect("there is a sweep");
        let wanted = "a.load,b,series\n0.3,\"x, y\",irn\n0.3,\"x, y\",roce\n0.5,\"x, y\",irn\n0.5,\"x, y\",roce\n";
        assert_eq!(csv, wanted);
        assert_eq!(render_sweep_csv(&summarise(&StudyInfo::default(), &series, &[])), None);
    }
}
