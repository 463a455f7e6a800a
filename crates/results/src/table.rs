//! The study in a terminal.

use std::collections::BTreeSet;

use selvedge_units::words::lines;

use crate::metric::{COMPARED, JOB_COMPLETION, MEASURED, METRICS, TABLE_METRICS, Unit};
use crate::number::{self, Scale};
use crate::{Answer, Estimate, Metric, SeriesSummary, Summary};

/// The table of a study: metrics with their intervals, paired ratios, warnings, and the verdict.
///
/// Lines are at most `width` columns long where the longest cell permits (100 is comfortable for four
/// series); more series than fit continue in further blocks. `color` adds ANSI emphasis, for
/// terminals only.
pub fn render_table(summary: &Summary, width: usize, color: bool) -> String {
    let style = Style { color };
    let mut out = String::new();
    line(&mut out, &style.bold(&summary.title));
    if !summary.scenario.is_empty() {
        wrap(&mut out, &summary.scenario, "", width, |text| style.dim(text));
    }
    out.push('\n');
    metric_blocks(&mut out, summary, width, &style);
    ratio_block(&mut out, summary, &style);
    if !summary.warnings.is_empty() {
        out.push('\n');
        for warning in &summary.warnings {
            wrap(&mut out, warning, "! ", width, |text| style.yellow(text));
        }
    }
    out.push('\n');
    wrap(&mut out, &summary.verdict.sentence, "", width, |text| style.answer(summary.verdict.answer, text));
    out
}

/// Metrics downwards, series across.
fn metric_blocks(out: &mut String, summary: &Summary, width: usize, style: &Style) {
    let jobs = summary.series.iter().any(|series| series.traits.jobs);
    let rows: Vec<(String, Vec<String>)> = METRICS
        .iter()
        .enumerate()
        .filter(|(at, metric)| {
            *at < TABLE_METRICS
                || (jobs && metric.name == JOB_COMPLETION)
                || metric.name == MEASURED
                || summary.has_unfinished(metric.name)
        })
        .map(|(_, metric)| metric_row(metric, metric.name, metric.title.to_owned(), &summary.series))
        .chain(workload_rows(summary))
        .collect();
    let label_width = rows.iter().map(|(label, _)| chars(label)).max().unwrap_or(0);
    let mut next = 0;
    while next < summary.series.len() {
        let mut widths = Vec::new();
        let mut used = label_width;
        for at in next..summary.series.len() {
            let cells = rows.iter().map(|(_, cells)| chars(&cells[at]));
            let column = cells.chain([chars(&summary.series[at].name)]).max().unwrap_or(0);
            if !widths.is_empty() && used + GAP + column > width {
                break;
            }
            used += GAP + column;
            widths.push(column);
        }
        let shown = next..next + widths.len();
        if next > 0 {
            out.push('\n');
        }
        let names: Vec<_> = summary.series[shown.clone()].iter().map(|series| series.name.clone()).collect();
        let seeds = match summary.seeds.len() {
            1 => "one seed: no interval".into(),
            count => format!("mean of {count} seeds, ± 95 %"),
        };
        let corner: String = seeds.chars().take(label_width).collect();
        line(out, &style.bold(&row(&corner, label_width, &names, &widths)));
        line(out, &style.dim(&"─".repeat(used)));
        for (label, cells) in &rows {
            line(out, &row(label, label_width, &cells[shown.clone()], &widths));
        }
        next = shown.end;
    }
}

/// What is compared, for each workload of several by itself, and how many of its flows and groups never finished.
fn workload_rows(summary: &Summary) -> impl Iterator<Item = (String, Vec<String>)> + '_ {
    let names: BTreeSet<&String> = summary.series.iter().flat_map(|series| series.metrics.keys()).collect();
    let own = names.into_iter().filter_map(|name| Metric::find_of_workload(name).map(|found| (name, found)));
    let unfinished = summary.unfinished_by_workload();
    let shown =
        own.filter(move |(name, (_, metric))| COMPARED.contains(&metric.name) || unfinished.contains(name.as_str()));
    shown.map(|(name, (workload, metric))| {
        metric_row(metric, name, format!("{}, {workload}", metric.title), &summary.series)
    })
}

/// The metric called `name` in these series, which is like `metric`.
fn metric_row(metric: &Metric, name: &str, title: String, series: &[SeriesSummary]) -> (String, Vec<String>) {
    let estimates: Vec<Option<&Estimate>> = series.iter().map(|series| series.metric(name)).collect();
    let largest = estimates.iter().flatten().filter_map(|estimate| estimate.mean).fold(0.0, f64::max);
    let scale = Scale::of(metric.unit, largest);
    let label = match scale.unit {
        "" => title,
        unit => format!("{title}, {unit}"),
    };
    let cell = |estimate: &Option<&Estimate>| match estimate {
        Some(estimate) if metric.unit == Unit::Count && estimate.mean == Some(0.0) => "0".into(),
        Some(estimate) => number::estimate(estimate, scale),
        None => "-".into(),
    };
    (label, estimates.iter().map(cell).collect())
}

/// Every pair of series; with more than four, every series over the first.
fn ratio_block(out: &mut String, summary: &Summary, style: &Style) {
    let first = summary.series.first().map(|series| series.name.as_str());
    let shown: Vec<_> =
        summary.ratios.iter().filter(|ratio| summary.series.len() <= 4 || Some(ratio.to.as_str()) == first).collect();
    if shown.is_empty() {
        return;
    }
    // Ratios come grouped by pair, with one entry per compared metric.
    let rows: Vec<(String, Vec<String>)> = shown
        .chunk_by(|a, b| a.of == b.of && a.to == b.to)
        .map(|group| {
            let cells = group.iter().map(|ratio| match (ratio.estimate.mean, ratio.estimate.ci95) {
                (Some(mean), Some(ci)) => format!("{} ({})", number::ratio(mean), number::ratio_interval(ci)),
                (Some(mean), None) => number::ratio(mean),
                _ => "-".into(),
            });
            (format!("{} / {}", group[0].of, group[0].to), cells.collect())
        })
        .collect();
    let compared = summary.series.first().map_or(&[][..], |series| series.traits.compared());
    let heads: Vec<String> =
        compared.iter().filter_map(|name| Metric::find(name)).map(|metric| metric.title.into()).collect();
    let title = "ratio, paired by seed (95 %)";
    let label_width = rows.iter().map(|(label, _)| chars(label)).chain([chars(title)]).max().unwrap_or(0);
    let widths: Vec<usize> = (0..heads.len())
        .map(|at| rows.iter().map(|(_, cells)| chars(&cells[at])).chain([chars(&heads[at])]).max().unwrap_or(0))
        .collect();
    out.push('\n');
    line(out, &style.bold(&row(title, label_width, &heads, &widths)));
    line(out, &style.dim(&"─".repeat(label_width + widths.iter().map(|width| GAP + width).sum::<usize>())));
    for (label, cells) in &rows {
        line(out, &row(label, label_width, cells, &widths));
    }
}

/// Blanks between columns.
const GAP: usize = 3;

fn row(label: &str, label_width: usize, cells: &[String], widths: &[usize]) -> String {
    let mut text = pad_right(label, label_width);
    for (cell, width) in cells.iter().zip(widths) {
        text += &" ".repeat(GAP + width.saturating_sub(chars(cell)));
        text += cell;
    }
    text
}

fn pad_right(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(chars(text))))
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// A sentence in lines of up to `width`; the first begins with `mark`, the others align with it.
fn wrap(out: &mut String, text: &str, mark: &str, width: usize, style: impl Fn(&str) -> String) {
    let indent = " ".repeat(chars(mark));
    let broken = lines(text, width.saturating_sub(chars(mark)));
    for (text, begin) in broken.iter().zip(std::iter::once(mark).chain(std::iter::repeat(indent.as_str()))) {
        line(out, &style(&format!("{begin}{text}")));
    }
}

struct Style {
    color: bool,
}

impl Style {
    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }
    fn dim(&self, text: &str) -> String {
        self.paint("2", text)
    }
    fn yellow(&self, text: &str) -> String {
        self.paint("33", text)
    }
    fn answer(&self, answer: Answer, text: &str) -> String {
        match answer {
            Answer::No | Answer::Yes => self.paint("1;36", text),
            Answer::Depends | Answer::Undecided | Answer::NotAsked => self.paint("1;33", text),
        }
    }
    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}
