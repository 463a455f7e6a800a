//! The numbers.

use std::fmt::Write;

use selvedge_telemetry::DropReason;

use super::Study;
use super::axis::Quantity;
use super::html::{escape, section};
use crate::metric::{MEASURED, TABLE_METRICS};
use crate::number::{self, Scale, fixed};
use crate::{METRICS, Metric};

/// Metrics down, series across, each cell with a bar against the row's largest.
pub(super) fn metrics(study: &Study<'_>) -> String {
    let mut main = String::new();
    let mut more = String::new();
    for (at, metric) in METRICS.iter().enumerate() {
        let shown = at < TABLE_METRICS || metric.name == MEASURED || study.summary.has_unfinished(metric.name);
        let target = if shown { &mut main } else { &mut more };
        *target += &row(study, metric, metric.name, metric.title);
    }
    for name in study.summary.unfinished_by_workload() {
        let Some((workload, metric)) = Metric::find_of_workload(name) else { continue };
        main += &row(study, metric, name, &format!("{}, {}", metric.title, escape(workload)));
    }
    let mut head = String::from("<thead><tr><th></th>");
    for (at, series) in study.summary.series.iter().enumerate() {
        let _ = write!(
            head,
            "<th class=\"n\"><i class=\"dot\" style=\"background:var(--s{at})\"></i>{}</th>",
            escape(&series.name)
        );
    }
    head += "</tr></thead>";
    // Narrower columns would overlap; the page scrolls the table instead.
    let longest =
        METRICS.iter().flat_map(|metric| cells(study, metric, metric.name).1).map(|text| text.chars().count()).max();
    let width = 250 + (24 + longest.unwrap_or(0) * 8).max(110) * study.summary.series.len();
    let seeds = study.summary.seeds.len();
    let lead = if seeds == 1 {
        "One seed: no intervals.".to_string()
    } else {
        format!("Mean over {seeds} seeds ± half the 95 % confidence interval (Student t).")
    };
    section(
        "numbers",
        "Results",
        &lead,
        &format!(
            "<div class=\"scroll\"><table class=\"metrics\" style=\"min-width:{width}px\">{head}<tbody>{main}</tbody></table></div>\
             <details><summary>More metrics</summary><div class=\"scroll\"><table class=\"metrics\" style=\"min-width:{width}px\">{head}<tbody>{more}</tbody></table></div></details>"
        ),
    )
}

/// The largest mean of the metric called `name`, which is like `metric`, with its scale, and what each series' cell
/// says.
fn cells(study: &Study<'_>, metric: &Metric, name: &str) -> ((f64, Scale), Vec<String>) {
    let estimates = || study.summary.series.iter().map(|series| series.metric(name));
    let largest = estimates().flatten().filter_map(|estimate| estimate.mean).fold(0.0, f64::max);
    let scale = Scale::of(metric.unit, largest);
    let text = |estimate: Option<_>| estimate.map_or("–".into(), |estimate| number::estimate(estimate, scale));
    ((largest, scale), estimates().map(text).collect())
}

fn row(study: &Study<'_>, metric: &Metric, name: &str, title: &str) -> String {
    let ((largest, scale), texts) = cells(study, metric, name);
    let mut row = format!(
        "<tr><th title=\"{}\">{}{}</th>",
        escape(metric.meaning),
        title,
        if scale.unit.is_empty() { String::new() } else { format!(" <small>{}</small>", scale.unit) }
    );
    for (at, (series, text)) in study.summary.series.iter().zip(&texts).enumerate() {
        let (mean, half) = text.split_once(" ± ").map_or((text.as_str(), None), |(mean, half)| (mean, Some(half)));
        let value = series.metric(name).and_then(|estimate| estimate.mean);
        let share = value.map_or(0.0, |mean| mean / largest.max(f64::MIN_POSITIVE));
        let half = half.map_or(String::new(), |half| format!(" <small>± {half}</small>"));
        let _ = write!(
            row,
            "<td class=\"n\">{mean}{half}<i class=\"bar\" style=\"width:{:.1}%;background:var(--s{at})\"></i></td>",
            share * 100.0
        );
    }
    row + "</tr>"
}

/// Dropped data packets by reason.
pub(super) fn drops(study: &Study<'_>) -> String {
    let series = &study.summary.series;
    let reasons: Vec<usize> = (0..DropReason::ALL.len())
        .filter(|&at| series.iter().any(|series| series.drops.by_reason()[at].1 > 0))
        .collect();
    if reasons.is_empty() {
        return section("drops", "Drops", "No data packet was dropped in any run.", "");
    }
    let mut table = String::from("<div class=\"scroll\"><table><thead><tr><th></th>");
    for &at in &reasons {
        let _ = write!(table, "<th class=\"n\">{}</th>", series[0].drops.by_reason()[at].0);
    }
    if reasons.len() > 1 {
        table += "<th class=\"n\">all</th>";
    }
    table += "<th class=\"n\">of data packets sent</th></tr></thead><tbody>";
    for (index, one) in series.iter().enumerate() {
        let sent: u64 = study.points[index].iter().map(|point| point.run.data_put_on_the_wire()).sum();
        let _ = write!(
            table,
            "<tr><th><i class=\"dot\" style=\"background:var(--s{index})\"></i>{}</th>",
            escape(&one.name)
        );
        for &at in &reasons {
            let _ = write!(table, "<td class=\"n\">{}</td>", fixed(one.drops.by_reason()[at].1 as f64, 0));
        }
        let total = one.drops.total() as f64;
        if reasons.len() > 1 {
            let _ = write!(table, "<td class=\"n\">{}</td>", fixed(total, 0));
        }
        let share = Quantity::Share.label(total / (sent as f64).max(1.0));
        let _ = write!(table, "<td class=\"n\">{share}</td></tr>");
    }
    section("drops", "Drops by reason", "Data packets, summed over seeds.", &(table + "</tbody></table></div>"))
}
