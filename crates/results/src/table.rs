//! The study's table for a terminal.

use selvedge_units::words::lines;

use crate::metric::{Metric, Unit};
use crate::number::{self, Scale};
use crate::split::{self, Split, per_cent};
use crate::summary::Row;
use crate::sweep::{self, Sweep};
use crate::traits::Compared;
use crate::{Answer, Estimate, Ratio, SeriesSummary, Summary, TimePart};

/// Returns the table of a study: metrics with their intervals, paired ratios, warnings, and the verdict.
///
/// Lines are at most `width` columns long if the longest cell permits (100 is enough for four series); more series than
/// fit continue in further blocks. `color` adds ANSI emphasis, for terminals only.
pub fn render_table(summary: &Summary, width: usize, color: bool) -> String {
    let style = Style { color };
    let mut out = String::new();
    line(&mut out, &style.bold(&summary.title));
    if !summary.scenario.is_empty() {
        wrap(&mut out, &summary.scenario, "", width, |text| style.dim(text));
    }
    out.push('\n');
    if let Some(sweep) = &summary.sweep {
        sweep_block(&mut out, summary, sweep, width, &style);
    } else {
        metric_blocks(&mut out, summary, width, &style);
        split_block(&mut out, summary, width, &style);
        ratio_blocks(&mut out, summary, width, &style);
    }
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

/// Largest number of rows of a sweep in the terminal.
const SWEEP_ROWS: usize = 40;

/// Appends the compared metrics (columns) of each series at each point of a sweep (rows).
fn sweep_block(out: &mut String, summary: &Summary, sweep: &Sweep, width: usize, style: &Style) {
    let compared = summary.compared();
    let of_series = |series: &SeriesSummary| {
        let cell = |metric: &Compared| {
            let unit = Metric::find_any(&metric.metric).map_or(Unit::Plain, |metric| metric.unit);
            series
                .metric(&metric.metric)
                .map_or_else(|| "-".into(), |found| number::estimate(found, Scale::of(unit, 0.0)))
        };
        (series.name.clone(), compared.iter().map(cell).collect())
    };
    let all = sweep::rows(summary, sweep).count();
    let rows: Vec<_> = sweep::rows(summary, sweep).take(SWEEP_ROWS).map(|(_, series)| of_series(series)).collect();
    let heads = compared.iter().map(|metric| match Metric::find_any(&metric.metric).map(|own| own.unit) {
        Some(Unit::Us) => format!("{}, us", metric.title),
        _ => metric.title.clone(),
    });
    let corner = format!("{} points", sweep.points.len());
    blocks(out, &corner, &heads.collect::<Vec<_>>(), &rows, width, style);
    if all > rows.len() {
        line(out, &style.dim(&format!("… {} more rows in sweep.csv", all - rows.len())));
    }
}

/// Appends the metrics (rows) by series (columns).
fn metric_blocks(out: &mut String, summary: &Summary, width: usize, style: &Style) {
    let rows: Vec<_> = summary.main_rows().into_iter().map(|row| metric_row(row, &summary.series)).collect();
    let names: Vec<_> = summary.series.iter().map(|series| series.name.clone()).collect();
    let seeds = match summary.seeds.len() {
        1 => "one seed: no interval".into(),
        count if summary.ignores_seeds() => format!("{count} seeds, all the same"),
        count => format!("mean of {count} seeds, ± 95 %"),
    };
    blocks(out, &seeds, &names, &rows, width, style);
}

/// Appends a table; columns that do not fit continue in further blocks.
pub(crate) fn blocks(
    out: &mut String,
    corner: &str,
    heads: &[String],
    rows: &[(String, Vec<String>)],
    width: usize,
    style: &Style,
) {
    let label_width = rows.iter().map(|(label, _)| chars(label)).chain([chars(corner)]).max().unwrap_or(0);
    let mut next = 0;
    while next < heads.len() {
        let mut widths = Vec::new();
        let mut used = label_width;
        for at in next..heads.len() {
            let cells = rows.iter().map(|(_, cells)| chars(&cells[at]));
            let column = cells.chain([chars(&heads[at])]).max().unwrap_or(0);
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
        line(out, &style.bold(&row(corner, label_width, &heads[shown.clone()], &widths)));
        line(out, &style.dim(&"─".repeat(used)));
        for (label, cells) in rows {
            line(out, &row(label, label_width, &cells[shown.clone()], &widths));
        }
        next = shown.end;
    }
}

/// Returns the row of a metric in these series.
fn metric_row(row: Row<'_>, series: &[SeriesSummary]) -> (String, Vec<String>) {
    let estimates: Vec<Option<&Estimate>> = series.iter().map(|series| series.metric(row.name)).collect();
    let largest = estimates.iter().flatten().filter_map(|estimate| estimate.mean).fold(0.0, f64::max);
    let scale = Scale::of(row.metric.unit, largest);
    let label = match scale.unit {
        "" => row.title,
        unit => format!("{}, {unit}", row.title),
    };
    let cell = |estimate: &Option<&Estimate>| match estimate {
        Some(estimate) if row.metric.unit == Unit::Count && estimate.mean == Some(0.0) => "0".into(),
        Some(estimate) => number::estimate(estimate, scale),
        None => "-".into(),
    };
    (label, estimates.iter().map(cell).collect())
}

/// Smallest and largest length of a bar, in letters.
const BAR: [usize; 2] = [12, 40];
/// Largest number of parts named beside a bar.
const NAMED: usize = 3;
/// Space reserved for the names of parts beside a bar, in letters.
const NAMED_WIDTH: usize = 52;

/// Appends a bar for each series that splits its completion time; nothing if flows were not sampled.
fn split_block(out: &mut String, summary: &Summary, width: usize, style: &Style) {
    let splits: Vec<_> = summary.series.iter().filter_map(|series| Some((&series.name, Split::of(series)?))).collect();
    let largest = splits.iter().map(|(_, split)| split.total).fold(0.0, f64::max);
    if splits.is_empty() {
        return;
    }
    let scale = Scale::of(Unit::Us, largest);
    let corner = format!("where completion time goes, {}", scale.unit);
    let time = |split: &Split| number::bounded(Some(split.total * scale.factor), split.bound, 4);
    let times: Vec<String> = splits.iter().map(|(_, split)| time(split)).collect();
    let label = splits.iter().map(|(name, _)| chars(name)).chain([chars(&corner)]).max().unwrap_or(0);
    let column = times.iter().map(|time| chars(time)).chain([4]).max().unwrap_or(0);
    let used = label + GAP + column + GAP;
    let letters = width.saturating_sub(used + GAP + NAMED_WIDTH).clamp(BAR[0], BAR[1]);
    out.push('\n');
    line(out, &style.bold(&row(&corner, label, &["mean".into()], &[column])));
    line(out, &style.dim(&"─".repeat((used + letters + GAP + NAMED_WIDTH).min(width.max(used + letters)))));
    for ((name, split), time) in splits.iter().zip(times) {
        let mut named = String::new();
        for (part, us) in split.largest().into_iter().take(NAMED) {
            let next =
                format!("{}{} {}", if named.is_empty() { "" } else { ", " }, part.name(), per_cent(split.share(us)));
            if used + letters + GAP + chars(&named) + chars(&next) > width {
                break;
            }
            named += &next;
        }
        let bar = split.bar(letters);
        let text =
            format!("{}{}{bar}{}{named}", row(name, label, &[time], &[column]), " ".repeat(GAP), " ".repeat(GAP));
        line(out, text.trim_end());
    }
    let shown = |part: &TimePart| splits.iter().any(|(_, split)| split.parts.iter().any(|(other, _)| other == part));
    let keys: Vec<String> = TimePart::ALL
        .iter()
        .filter(|part| shown(part))
        .map(|part| format!("{} {}", part.letter(), part.name()))
        .collect();
    wrap(out, &keys.join(", "), "", width, |text| style.dim(text));
    if let Some(difference) = split::difference(summary) {
        wrap(out, &difference, "", width, str::to_owned);
    }
}

/// Largest number of pairs of series that are all shown: the pairs of four series.
const PAIRS: usize = 6;

/// Appends the ratios of every pair of series; of more than [`PAIRS`], only those over the first series of each case.
fn ratio_blocks(out: &mut String, summary: &Summary, width: usize, style: &Style) {
    // Ratios are grouped by pair, with one entry per compared metric.
    let all: Vec<&[Ratio]> = summary.ratios.chunk_by(|a, b| a.of == b.of && a.to == b.to).collect();
    let shown = all.iter().filter(|pair| all.len() <= PAIRS || summary.leads(&pair[0].to));
    let compared = summary.compared();
    let has_interval = !summary.ignores_seeds();
    let cell = |ratio: Option<&Ratio>| {
        let Some(Ratio { estimate, .. }) = ratio else { return "-".to_owned() };
        let text = number::bounded(estimate.mean, estimate.bound, 3);
        match estimate.ci95.filter(|_| has_interval) {
            Some(ci) => format!("{text} ({})", number::ratio_interval(ci)),
            None => text,
        }
    };
    let rows: Vec<(String, Vec<String>)> = shown
        .map(|pair| {
            let of = |metric: &str| pair.iter().find(|ratio| ratio.metric == metric);
            let cells = compared.iter().map(|compared| cell(of(&compared.metric)));
            (format!("{} / {}", pair[0].of, pair[0].to), cells.collect())
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let heads: Vec<String> = compared.iter().map(|compared| compared.title.clone()).collect();
    let corner = if has_interval { "ratio, paired by seed (95 %)" } else { "ratio" };
    out.push('\n');
    blocks(out, corner, &heads, &rows, width, style);
    let left = all.len() - rows.len();
    if left > 0 {
        let pairs = if left == 1 { "pair" } else { "pairs" };
        line(out, &style.dim(&format!("… {left} more {pairs} in summary.json")));
    }
}

/// Number of blanks between columns.
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

/// Appends a sentence in lines of up to `width`; the first begins with `mark`, the others align with it.
fn wrap(out: &mut String, text: &str, mark: &str, width: usize, style: impl Fn(&str) -> String) {
    let indent = " ".repeat(chars(mark));
    let broken = lines(text, width.saturating_sub(chars(mark)));
    for (text, begin) in broken.iter().zip(std::iter::once(mark).chain(std::iter::repeat(indent.as_str()))) {
        line(out, &style(&format!("{begin}{text}")));
    }
}

/// Emphasis in a terminal, where requested.
pub(crate) struct Style {
    pub(crate) color: bool,
}

impl Style {
    pub(crate) fn bold(&self, text: &str) -> String {
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
            Answer::Depends | Answer::Undecided | Answer::NotPut | Answer::NotAsked => self.paint("1;33", text),
        }
    }
    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }
}
