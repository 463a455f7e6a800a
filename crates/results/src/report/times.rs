//! Queues and utilisation over time: grids of small charts, tiers as columns, statistics as rows.

use std::fmt::Write;

use selvedge_units::words::all_of;

use super::Study;
use super::axis::{Axis, Quantity, time_title};
use super::chart::{At, Chart, decimate};
use super::html::{Value, escape, figure, legend, section, values};
use crate::{PointSummary, PortTimes, Tier, TierTimes};

/// Largest number of points per curve.
const POINTS: usize = 256;

/// Name of a statistic, and function that returns its values.
type Statistic = (&'static str, fn(&TierTimes) -> &Vec<f64>);

/// The content of a section.
struct Subject {
    id: &'static str,
    title: &'static str,
    /// Text before, and text after "in the run with seed N".
    lead: (&'static str, &'static str),
    quantity: Quantity,
    of: fn(&PointSummary) -> &PortTimes,
    rows: &'static [Statistic],
    /// End of all scales; `None`: each row's largest value.
    most: Option<f64>,
}

/// Returns the egress queues of each tier in one run of each series.
pub(super) fn queues(study: &Study<'_>) -> String {
    over_time(
        study,
        &Subject {
            id: "queues",
            title: "Queue depth over time",
            lead: (
                "Bytes waiting at egress ports",
                "by tier of their switch; hosts are attached to tier 0. A row shares its scale.",
            ),
            quantity: Quantity::Size,
            of: |point| &point.queues,
            rows: &[
                ("deepest port", |tier| &tier.max),
                ("99th percentile of ports", |tier| &tier.p99),
                ("mean of ports", |tier| &tier.mean),
            ],
            most: None,
        },
    )
}

/// Returns the utilisation of the ports of each tier in one run of each series.
pub(super) fn utilisation(study: &Study<'_>) -> String {
    over_time(
        study,
        &Subject {
            id: "utilisation",
            title: "Utilisation over time",
            lead: (
                "The share of each sampling interval that ports were transmitting, headers and retransmissions included,",
                "by tier of their node.",
            ),
            quantity: Quantity::Share,
            of: |point| &point.utilisation,
            rows: &[("mean of ports", |tier| &tier.mean), ("99th percentile of ports", |tier| &tier.p99)],
            most: Some(1.0),
        },
    )
}

fn over_time(study: &Study<'_>, subject: &Subject) -> String {
    let runs: Vec<_> = study.first_points().collect();
    let mut tiers: Vec<Tier> = runs
        .iter()
        .flat_map(|(_, point)| &(subject.of)(point).tiers)
        .filter(|times| times.max.iter().any(|&value| value > 0.0))
        .map(|times| times.tier)
        .collect();
    tiers.sort_unstable();
    tiers.dedup();
    let Some((_, first)) = runs.first().filter(|_| !tiers.is_empty()) else { return String::new() };
    let (end_us, cut) = end(&runs);
    let rows = |runs: &[(usize, &PointSummary)]| -> String {
        (0..subject.rows.len()).map(|row| one_row(study, runs, subject, row, &tiers, end_us)).collect()
    };
    let cases = study.cases();
    let mut body = legend(study);
    for (place, case) in cases.iter().enumerate() {
        let of_case: Vec<_> = runs.iter().copied().filter(|(at, _)| case.series.contains(at)).collect();
        match case.name.filter(|_| cases.len() > 1) {
            // One case is shown at a time: side by side charts would be too small, and one chart would have too many
            // curves.
            Some(name) if !of_case.is_empty() => {
                let open = if place == 0 { " open" } else { "" };
                let _ = write!(body, "<details{open}><summary>{}</summary>{}</details>", escape(name), rows(&of_case));
            }
            Some(_) => {}
            None => body += &rows(&of_case),
        }
    }
    body += &largest(study, subject, &runs, &tiers);
    let (what, how) = subject.lead;
    let mut lead = format!("{what} in the run with seed {}, {how}", first.seed);
    if !cut.is_empty() {
        lead += &format!(
            " Drawn as far as runs go that complete their flows; {} went on to {}.",
            all_of(&cut.iter().map(|point| point.series.as_str()).collect::<Vec<_>>()),
            Quantity::Time.label(cut.iter().map(|point| point.run.span_us()).fold(0.0, f64::max))
        );
    }
    section(subject.id, subject.title, &escape(&lead), &body)
}

/// Returns the table of each curve's largest value.
fn largest(study: &Study<'_>, subject: &Subject, runs: &[(usize, &PointSummary)], tiers: &[Tier]) -> String {
    let columns = || subject.rows.iter().flat_map(|(name, of)| tiers.iter().map(move |&tier| (*name, *of, tier)));
    let value = |point: &PointSummary, of: fn(&TierTimes) -> &Vec<f64>, tier| -> Option<Value> {
        let times = (subject.of)(point).tiers.iter().find(|times| times.tier == tier)?;
        let largest = of(times).iter().copied().reduce(f64::max)?;
        Some((subject.quantity.label(largest), largest))
    };
    let row =
        |&(at, point): &(usize, &PointSummary)| (at, columns().map(|(_, of, tier)| value(point, of, tier)).collect());
    let rows: Vec<_> = runs.iter().map(row).collect();
    let heads: Vec<_> = columns().map(|(name, _, tier)| format!("{tier}, {name}")).collect();
    values(study, "the largest of each curve", &heads, &rows)
}

/// Returns the end of the time axis, and the runs that exceed it: runs that do not complete their flows would compress
/// the curves of the others.
fn end<'a>(runs: &[(usize, &'a PointSummary)]) -> (f64, Vec<&'a PointSummary>) {
    /// Ratio to the longest complete run from which on a run is cut off.
    const TOO_LONG: f64 = 2.0;
    /// End of the time axis, relative to the longest complete run, if runs are cut off.
    const DRAWN: f64 = 1.25;
    let is_complete = |point: &PointSummary| point.run.flows_finished == point.run.flows_started;
    let complete = runs.iter().filter(|(_, point)| is_complete(point));
    let last = complete.map(|(_, point)| point.run.span_us()).fold(0.0, f64::max);
    let beyond: Vec<_> =
        runs.iter().map(|&(_, point)| point).filter(|point| point.run.span_us() > last * TOO_LONG).collect();
    if last == 0.0 || beyond.is_empty() {
        return (runs.iter().map(|(_, point)| point.run.span_us()).fold(0.0, f64::max), Vec::new());
    }
    (last * DRAWN, beyond)
}

/// Returns the charts of one statistic: one per tier.
fn one_row(
    study: &Study<'_>,
    runs: &[(usize, &PointSummary)],
    subject: &Subject,
    row: usize,
    tiers: &[Tier],
    end_us: f64,
) -> String {
    let (title, of) = subject.rows[row];
    let begin_us = runs.iter().map(|(_, point)| point.run.begin_us).fold(0.0, f64::max);
    let time_title = if row + 1 == subject.rows.len() { time_title(begin_us) } else { "" };
    let values = runs.iter().flat_map(|(_, point)| &(subject.of)(point).tiers).flat_map(of);
    let most = subject.most.unwrap_or_else(|| values.copied().fold(0.0, f64::max));
    let mut charts = String::new();
    for &tier in tiers {
        let x = Axis::linear(time_title, Quantity::Time, 0.0, end_us).exact(0.0, end_us);
        let y = Axis::linear("", subject.quantity, 0.0, most);
        let mut chart = Chart::new(format!("{}: {tier}, {title}", subject.title), 190, x, y).sharing_x();
        for (at, point) in runs {
            let times = (subject.of)(point);
            let Some(found) = times.tiers.iter().find(|times| times.tier == tier) else { continue };
            let time = |bin: usize| (bin as f64 + 0.5) * times.bin_us;
            let points = of(found).iter().enumerate().map(|(bin, &value)| (time(bin), value));
            let points: Vec<_> = points.take_while(|&(time, _)| time <= end_us).collect();
            let points: Vec<At> = decimate(&points, POINTS).into_iter().map(At::from).collect();
            chart.line(study, *at, &points);
        }
        charts += &figure(&format!("{tier}, {title}"), &chart.finish(study));
    }
    format!("<div class=\"row\" style=\"--columns:{}\">{charts}</div>", tiers.len().min(4))
}
