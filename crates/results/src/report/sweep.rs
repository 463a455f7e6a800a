//! Results of a sweep: maps over two axes of its grid, lines over one, and the table of all points.

use std::fmt::Write;

use super::cases;
use super::html::{escape, figure, number_cell, section};
use super::{Study, axis::Quantity};
use crate::metric::{Metric, Unit};
use crate::number::{bounded, digits, in_brackets, ratio_interval};
use crate::sweep::{Sweep, rows};
use crate::traits::Compared;
use crate::{Estimate, Ratio};

/// Largest number of points whose names fit below a chart of lines.
const LINES: usize = 40;
/// Largest number of maps of one metric; beyond, the first ones are shown.
const MAPS: usize = 24;
/// Largest number of rows of the table.
const ROWS: usize = 1_000;

/// Returns the sections of a sweep.
pub(super) fn sweep(study: &Study<'_>, sweep: &Sweep) -> String {
    let axes: Vec<usize> = (0..sweep.axes.len()).filter(|&axis| sweep.axes[axis].values.len() > 1).collect();
    let charts = match axes[..] {
        [.., down, across] => maps(study, sweep, down, across),
        _ if sweep.points.len() <= LINES => cases::across(study),
        _ => String::new(),
    };
    charts + &table(study, sweep)
}

/// Returns a map of every compared metric for each series, and of its ratio to the first series.
fn maps(study: &Study<'_>, sweep: &Sweep, down: usize, across: usize) -> String {
    let mut body = String::new();
    for metric in study.summary.compared() {
        let mut maps = Vec::new();
        let estimate = |case: &str, series: &str| study.summary.find_in(Some(case), series)?.metric(&metric.metric);
        let means: Vec<f64> =
            rows(study.summary, sweep).filter_map(|(_, series)| series.metric(&metric.metric)?.mean).collect();
        let bounds = bounds(&means);
        for series in &study.names {
            let cell = |case: &str| Some(cell_of(&metric, estimate(case, series)?, bounds));
            maps.extend(over_other_axes(sweep, down, across, series, &cell));
        }
        let first = study.names.first().copied().unwrap_or_default();
        for series in study.names.iter().skip(1) {
            let cell = |case: &str| {
                let is_it = |ratio: &&Ratio| {
                    let named = |full: &str, name: &str| {
                        full.strip_prefix(case).is_some_and(|rest| rest.strip_prefix(": ") == Some(name))
                    };
                    ratio.metric == metric.metric && named(&ratio.of, series) && named(&ratio.to, first)
                };
                Some(ratio_cell(&study.summary.ratios.iter().find(is_it)?.estimate))
            };
            maps.extend(over_other_axes(sweep, down, across, &format!("{series} / {first}"), &cell));
        }
        let left = maps.len().saturating_sub(MAPS);
        maps.truncate(MAPS);
        let _ = write!(body, "<h3>{}</h3><div class=\"tables\">{}</div>", escape(&metric.title), maps.concat());
        if left > 0 {
            let _ = write!(body, "<p class=\"note\">{left} more maps: see sweep.csv.</p>");
        }
    }
    section(
        "sweep",
        "Over the grid",
        "Means over seeds; darker is more, on a logarithmic scale that all maps of a metric share. Ratios are paired by \
         seed, with their 95 % intervals; darker is worse than the series that they are taken over, and bold ones differ \
         from 1.",
        &body,
    )
}

/// Returns the least and the largest positive value.
fn bounds(means: &[f64]) -> (f64, f64) {
    let positive = means.iter().copied().filter(|&mean| mean > 0.0);
    positive.fold((f64::INFINITY, 0.0), |(low, high), mean| (low.min(mean), high.max(mean)))
}

fn cell_of(metric: &Compared, estimate: &Estimate, (low, high): (f64, f64)) -> String {
    let Some(mean) = estimate.mean else { return NONE.to_owned() };
    let heat = if high > low && mean > 0.0 { (mean / low).ln() / (high / low).ln() } else { 0.0 };
    let is_time = Metric::find_any(&metric.metric).is_some_and(|metric| metric.unit == Unit::Us);
    let text = match estimate.bound {
        None if is_time => Quantity::Time.label(mean),
        None => digits(mean, 3),
        bound => bounded(Some(mean), bound, 3),
    };
    format!("<td style=\"--heat:{heat:.2}\">{}</td>", escape(&text))
}

fn ratio_cell(estimate: &Estimate) -> String {
    let Some(mean) = estimate.mean else { return NONE.to_owned() };
    // Twice as long is the darkest shade.
    let heat = mean.max(f64::MIN_POSITIVE).log2().clamp(0.0, 1.0);
    let text = escape(&bounded(Some(mean), estimate.bound, 3));
    let differs = estimate.ci95.is_some_and(|[from, to]| from > 1.0 || to < 1.0);
    let text = if differs { format!("<b>{text}</b>") } else { text };
    let interval = estimate.ci95.map_or(String::new(), |ends| format!("<br><small>{}</small>", ratio_interval(ends)));
    format!("<td style=\"--heat:{heat:.2}\">{text}{interval}</td>")
}

/// Cell of a point that was left out.
const NONE: &str = "<td class=\"none\">–</td>";

/// Returns one map for each combination of steps of the axes other than `down` and `across`.
fn over_other_axes(
    sweep: &Sweep,
    down: usize,
    across: usize,
    title: &str,
    cell: &dyn Fn(&str) -> Option<String>,
) -> Vec<String> {
    let mut combinations = vec![vec![0; sweep.axes.len()]];
    for (axis, own) in sweep.axes.iter().enumerate().filter(|(axis, _)| ![down, across].contains(axis)) {
        let with = |at: &Vec<usize>| {
            let at = at.clone();
            (0..own.values.len()).map(move |step| {
                let mut at = at.clone();
                at[axis] = step;
                at
            })
        };
        combinations = combinations.iter().flat_map(with).collect();
    }
    combinations.iter().map(|at| map(sweep, down, across, at, title, cell)).collect()
}

fn map(
    sweep: &Sweep,
    down: usize,
    across: usize,
    others: &[usize],
    title: &str,
    cell: &dyn Fn(&str) -> Option<String>,
) -> String {
    let (rows, columns) = (&sweep.axes[down], &sweep.axes[across]);
    let held =
        sweep.axes.iter().enumerate().filter(|(axis, own)| ![down, across].contains(axis) && own.values.len() > 1);
    let held = held.map(|(axis, own)| format!("{} = {}", own.title(), own.label(others[axis])));
    let caption = std::iter::once(title.to_owned()).chain(held).collect::<Vec<_>>().join(", ");
    let mut out = format!(
        "<table class=\"matrix\"><thead><tr><th>{} ↓ {} →</th>",
        escape(&short(&rows.keys)),
        escape(&short(&columns.keys))
    );
    for column in 0..columns.values.len() {
        let _ = write!(out, "<th>{}</th>", escape(&columns.label(column)));
    }
    out += "</tr></thead><tbody>";
    for row in 0..rows.values.len() {
        let _ = write!(out, "<tr><th>{}</th>", escape(&rows.label(row)));
        for column in 0..columns.values.len() {
            let mut at = others.to_vec();
            (at[down], at[across]) = (row, column);
            out += &sweep.case_at(&at).and_then(cell).unwrap_or_else(|| NONE.to_owned());
        }
        out += "</tr>";
    }
    figure(&caption, &(out + "</tbody></table>"))
}

/// Returns the last steps of keys, which are enough beside the section's text.
fn short(keys: &[String]) -> String {
    keys.iter().map(|key| key.rsplit('.').next().unwrap_or(key)).collect::<Vec<_>>().join(", ")
}

/// Returns the table of all points.
fn table(study: &Study<'_>, sweep: &Sweep) -> String {
    let compared = study.summary.compared();
    let mut out = String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr>");
    for axis in &sweep.axes {
        let _ = write!(out, "<th>{}</th>", escape(&axis.title()));
    }
    out += "<th>series</th>";
    for metric in &compared {
        let _ = write!(out, "<th class=\"n\">{}</th>", escape(&metric.title));
    }
    out += "</tr></thead><tbody>";
    let all = rows(study.summary, sweep).count();
    for (point, series) in rows(study.summary, sweep).take(ROWS) {
        out += "<tr>";
        for (axis, &at) in sweep.axes.iter().zip(&point.at) {
            let _ = write!(out, "<td>{}</td>", escape(&axis.label(at)));
        }
        let _ = write!(out, "<td>{}</td>", escape(&series.series));
        for metric in &compared {
            let found = series.metric(&metric.metric);
            let cell = found.map_or_else(
                || "-".to_owned(),
                |found| {
                    format!(
                        "{}<small>{}</small>",
                        escape(&bounded(found.mean, found.bound, 4)),
                        escape(&in_brackets(found.ci95))
                    )
                },
            );
            out += &number_cell(&cell, found.and_then(|found| found.mean));
        }
        out += "</tr>";
    }
    out += "</tbody></table></div>";
    let rest = match all.saturating_sub(ROWS) {
        0 => String::new(),
        rest => format!(" {rest} more rows are in that file alone."),
    };
    let lead = format!(
        "Means over seeds with 95 % intervals, times in microseconds. sweep.csv has every metric of these rows.{rest}"
    );
    section("points", "All points", &lead, &out)
}
