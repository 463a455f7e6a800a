//! Tables of the study's numbers.

use std::fmt::Write;
use std::ops::Range;

use selvedge_telemetry::DropReason;

use super::Study;
use super::axis::Quantity;
use super::html::{escape, number_cell, section};
use crate::SeriesSummary;
use crate::metric::EQIF_DROPS;
use crate::number::{self, Scale, fixed};
use crate::summary::Row;

/// Largest number of columns side by side; further columns continue below, so that all are visible.
const COLUMNS: usize = 6;

/// Returns the table of metrics (rows) by series (columns); each cell has a bar relative to the row's largest value.
pub(super) fn metrics(study: &Study<'_>) -> String {
    let summary = study.summary;
    let seeds = summary.seeds.len();
    let mut lead = if seeds == 1 {
        "One seed: no intervals.".to_string()
    } else if summary.ignores_seeds() {
        format!("{seeds} seeds, which all gave the same run: nothing here is random.")
    } else {
        format!("Mean over {seeds} seeds ± half the 95 % confidence interval (Student t).")
    };
    if summary.series.iter().flat_map(|series| series.metrics.values()).any(|estimate| estimate.bound.is_some()) {
        lead += " ≥: flows (or incasts, or jobs) had not all finished when runs ended and count with their age: it is at least so \
                 much.";
    }
    let main = summary.main_rows();
    let main = match summary.cases().len() {
        ..=FEW_CASES => blocks(study, &main),
        _ => main.iter().map(|row| sweep(study, row)).collect(),
    };
    let more = blocks(study, &summary.more_rows());
    let body = format!("{main}<details><summary>More metrics</summary>{more}</details>");
    section("numbers", "Results", &lead, &body)
}

/// Largest number of cases in a common table. With more cases each metric has a table of its own, to be read downwards.
const FEW_CASES: usize = 2;

/// Returns the table of one metric: cases as rows, series as columns.
fn sweep(study: &Study<'_>, of: &Row<'_>) -> String {
    let ((largest, scale), texts) = cells(study, of);
    let firsts: Vec<usize> = study.firsts().collect();
    let mut out = String::new();
    for firsts in firsts.chunks(firsts.len().div_ceil(firsts.len().div_ceil(COLUMNS))) {
        let _ = write!(
            out,
            "<div class=\"scroll\"><table class=\"metrics sortable\"><thead><tr><th title=\"{}\">{}</th>",
            escape(of.metric.meaning),
            title(of, scale)
        );
        for &first in firsts {
            let ink = study.inks[first];
            let name = escape(study.names[ink]).replace('+', "+<wbr>");
            let _ = write!(
                out,
                "<th class=\"n\"><i class=\"dot\" style=\"background:var(--s{ink})\"></i>&#8288;{name}</th>"
            );
        }
        out += "</tr></thead><tbody>";
        for case in study.cases() {
            let _ = write!(out, "<tr><th>{}</th>", escape(case.name.unwrap_or_default()));
            for &first in firsts {
                let series = case.series.iter().find(|&&at| study.inks[at] == study.inks[first]);
                out +=
                    &series.map_or("<td class=\"blank\"></td>".into(), |&at| cell(study, of, at, largest, &texts[at]));
            }
            out += "</tr>";
        }
        out += "</tbody></table></div>";
    }
    out
}

/// Returns the metric's title with its unit.
fn title(of: &Row<'_>, scale: Scale) -> String {
    let unit = if scale.unit.is_empty() { String::new() } else { format!(" <small>{}</small>", scale.unit) };
    escape(&of.title) + &unit
}

/// Returns the rows in as many tables as all series need.
fn blocks(study: &Study<'_>, rows: &[Row<'_>]) -> String {
    let tables = tables(&study.summary.series);
    let columns = tables.iter().map(Range::len).max().unwrap_or(1);
    let cells: Vec<_> = rows.iter().map(|row| cells(study, row)).collect();
    // Narrower columns would overlap; the page scrolls the table instead.
    let parts = cells.iter().flat_map(|(_, texts)| texts).flat_map(|text| text.split(" ± "));
    let longest = parts.map(|part| part.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for shown in tables {
        // Every table reserves equally many columns, so that all are equally wide.
        let width = LABEL + (longest * 8 + 36).max(80) * columns;
        let _ = write!(
            out,
            "<div class=\"scroll\"><table class=\"metrics\" style=\"min-width:{width}px\"><thead><tr><td></td>"
        );
        for at in shown.clone() {
            // Line breaks are allowed in names, but not before their first part.
            let name = escape(&study.summary.series[at].name).replace('+', "+<wbr>");
            let _ = write!(
                out,
                "<th class=\"n\"><i class=\"dot\" style=\"background:var(--s{})\"></i>&#8288;{name}</th>",
                study.inks[at]
            );
        }
        let blank = "<td class=\"blank\"></td>".repeat(columns - shown.len());
        let _ = write!(out, "{blank}</tr></thead><tbody>");
        for (one, (scale, texts)) in rows.iter().zip(&cells) {
            out += &row(study, one, *scale, texts, shown.clone(), &blank);
        }
        out += "</tbody></table></div>";
    }
    out
}

/// Returns the series of each table: whole cases if they fit, else parts of equal size.
fn tables(series: &[SeriesSummary]) -> Vec<Range<usize>> {
    let mut tables: Vec<Range<usize>> = Vec::new();
    let mut first = 0;
    for case in series.chunk_by(|a, b| a.case == b.case) {
        let (begin, end) = (first, first + case.len());
        first = end;
        match tables.last_mut() {
            Some(last) if end - last.start <= COLUMNS => last.end = end,
            _ => {
                let columns = case.len().div_ceil(case.len().div_ceil(COLUMNS));
                tables.extend((begin..end).step_by(columns).map(|from| from..(from + columns).min(end)));
            }
        }
    }
    tables
}

/// Width of the names of rows, in pixels.
const LABEL: usize = 210;

/// Returns the largest mean of the row's metric with its scale, and the text of each series' cell.
fn cells(study: &Study<'_>, row: &Row<'_>) -> ((f64, Scale), Vec<String>) {
    let estimates = || study.summary.series.iter().map(|series| series.metric(row.name));
    let largest = estimates().flatten().filter_map(|estimate| estimate.mean).fold(0.0, f64::max);
    let scale = Scale::of(row.metric.unit, largest);
    let text = |estimate: Option<_>| estimate.map_or("–".into(), |estimate| number::estimate(estimate, scale));
    ((largest, scale), estimates().map(text).collect())
}

fn row(
    study: &Study<'_>,
    of: &Row<'_>,
    (largest, scale): (f64, Scale),
    texts: &[String],
    shown: Range<usize>,
    blank: &str,
) -> String {
    let mut row = format!("<tr><th title=\"{}\">{}</th>", escape(of.metric.meaning), title(of, scale));
    for at in shown {
        row += &cell(study, of, at, largest, &texts[at]);
    }
    row + blank + "</tr>"
}

/// Returns the cell of a series, with a bar relative to `largest`.
fn cell(study: &Study<'_>, of: &Row<'_>, at: usize, largest: f64, text: &str) -> String {
    let (mean, half) = text.split_once(" ± ").map_or((text, None), |(mean, half)| (mean, Some(half)));
    let value = study.summary.series[at].metric(of.name).and_then(|estimate| estimate.mean);
    let share = value.map_or(0.0, |mean| mean / largest.max(f64::MIN_POSITIVE));
    let half = half.map_or(String::new(), |half| format!(" <small>± {half}</small>"));
    let sorted_by = value.map_or(String::new(), |value| format!(" data-v=\"{value}\""));
    format!(
        "<td class=\"n\"{sorted_by}>{mean}{half}<i class=\"bar\" style=\"width:{:.1}%;background:var(--s{})\"></i></td>",
        share * 100.0,
        study.inks[at]
    )
}

/// Returns a table of data packets dropped by reason, and of packets dropped by EQIFs.
pub(super) fn drops(study: &Study<'_>) -> String {
    let series = &study.summary.series;
    let reasons: Vec<usize> = (0..DropReason::ALL.len())
        .filter(|&at| series.iter().any(|series| series.drops.by_reason()[at].1 > 0))
        .collect();
    let has_eqif = series.iter().any(|series| series.total(EQIF_DROPS) > 0.0);
    if reasons.is_empty() && !has_eqif {
        return section("drops", "Drops", "No data packet was dropped in any run.", "");
    }
    let mut table = String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>series</th>");
    for &at in &reasons {
        let _ = write!(table, "<th class=\"n\">{}</th>", series[0].drops.by_reason()[at].0);
    }
    if reasons.len() > 1 {
        table += "<th class=\"n\">all</th>";
    }
    if !reasons.is_empty() {
        table += "<th class=\"n\">of data packets sent</th>";
    }
    if has_eqif {
        table += "<th class=\"n\">by EQIFs</th>";
    }
    table += "</tr></thead><tbody>";
    for (index, one) in series.iter().enumerate() {
        let _ = write!(
            table,
            "<tr><th><i class=\"dot\" style=\"background:var(--s{})\"></i>{}</th>",
            study.inks[index],
            escape(&one.name)
        );
        let mut cell = |text: &str, value: f64| table += &number_cell(text, Some(value));
        for &at in &reasons {
            let packets = one.drops.by_reason()[at].1 as f64;
            cell(&fixed(packets, 0), packets);
        }
        let total = one.drops.total() as f64;
        if reasons.len() > 1 {
            cell(&fixed(total, 0), total);
        }
        if !reasons.is_empty() {
            let sent: u64 = study.points[index].iter().map(|point| point.run.data_put_on_the_wire()).sum();
            let share = total / (sent as f64).max(1.0);
            cell(&Quantity::Share.label(share), share);
        }
        if has_eqif {
            cell(&fixed(one.total(EQIF_DROPS), 0), one.total(EQIF_DROPS));
        }
        table += "</tr>";
    }
    let mut lead = match reasons[..] {
        [] => "The network dropped no data packet in any run.",
        _ => "Data packets, summed over seeds.",
    }
    .to_owned();
    if has_eqif {
        lead += " EQIFs, the queues in front of EQDS's tunnels, dropped packets of the stacks behind them, summed over \
                 seeds, before these were sent: they count for no share.";
    }
    section("drops", "Drops by reason", &lead, &(table + "</tbody></table></div>"))
}
