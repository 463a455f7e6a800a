//! Completion times: distributions, tails, and slowdown by flow size.

use selvedge_units::words::all_of;

use super::Study;
use super::axis::{Axis, Quantity};
use super::chart::Chart;
use super::html::{figure, legend, section, width_of};
use crate::point::{Distribution, cdf_levels, tail_levels};
use crate::{PointSummary, SizeClass};

/// FCT of all measured flows, and the tail of single-packet messages.
pub(super) fn times(study: &Study<'_>) -> String {
    let curves: Vec<Vec<(f64, f64)>> = study
        .points
        .iter()
        .map(|points| of_all(points, mean_curve(points, |point| &point.flows.fct_cdf_us, &cdf_levels())))
        .collect();
    let tails: Vec<Vec<(f64, f64)>> = study
        .points
        .iter()
        .map(|points| {
            let curve = mean_curve(points, |point| &point.flows.single_packet_tail_us, &tail_levels());
            curve.into_iter().map(|(x, level)| (x, 1.0 - level)).collect()
        })
        .collect();
    let of_tails = extent(tails.iter().flatten().map(|&(x, _)| x));
    let mut charts = String::new();
    if let Some((low, high)) = extent(curves.iter().flatten().map(|&(x, _)| x)) {
        let x = Axis::log("flow completion time", Quantity::Time, low, high);
        let y = Axis::linear("share of flows that completed", Quantity::Share, 0.0, 1.0);
        charts += &figure(
            "All measured flows",
            &draw(
                study,
                Chart::new(width_of(0, 1 + usize::from(of_tails.is_some())), 330.0, x, y),
                &curves,
                "Cumulative distribution of flow completion times",
            ),
        );
    }
    if let Some((low, high)) = of_tails {
        let x = Axis::log("completion time of single-packet messages", Quantity::Time, low, high);
        // Upside down: rarer is higher.
        let y = Axis::log("share that completed", Quantity::Tail, 1e-4, 0.1).exact(0.1, 1e-4);
        charts += &figure(
            "Tail of single-packet messages",
            &draw(
                study,
                Chart::new(510.0, 330.0, x, y),
                &tails,
                "Tail of the completion times of single-packet messages",
            ),
        );
    }
    if charts.is_empty() {
        charts = "<p>No measured flow finished.</p>".into();
    }
    section(
        "completion",
        "Flow completion times",
        &lead(study),
        &format!("{}<div class=\"pair\">{charts}</div>", legend(study)),
    )
}

/// What to know about the curves.
fn lead(study: &Study<'_>) -> String {
    let mut lead = String::from("Quantiles averaged over seeds; further left is better.");
    let cut: Vec<String> = study
        .points
        .iter()
        .filter_map(|points| Some(format!("{} ({})", points.first()?.series, ends_at(points)?)))
        .collect();
    if !cut.is_empty() {
        let names: Vec<&str> = cut.iter().map(String::as_str).collect();
        lead += &format!(
            " Where flows never finished, the curve of all flows ends at the share that did: {}.",
            all_of(&names)
        );
    }
    lead += " The tail is that of messages that finished; it stops where a run has too few to tell.";
    lead
}

/// The share of flows that finished, over all seeds.
fn finished(points: &[&PointSummary]) -> f64 {
    let (unfinished, measured) = points.iter().fold((0, 0), |(unfinished, measured), point| {
        (unfinished + point.flows.unfinished, measured + point.flows.measured)
    });
    1.0 - unfinished as f64 / measured.max(1) as f64
}

/// Where the curve of a series ends of which some flows never finished: never rounded up to all of them.
fn ends_at(points: &[&PointSummary]) -> Option<String> {
    let finished = finished(points);
    let label = if finished < 0.999 { Quantity::Share.label(finished) } else { Quantity::Tail.label(1.0 - finished) };
    (finished < 1.0).then_some(label)
}

/// A curve of flows that finished as one of all flows.
fn of_all(points: &[&PointSummary], mut curve: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let finished = finished(points);
    curve.iter_mut().for_each(|(_, level)| *level *= finished);
    curve
}

/// Slowdown by flow size: median and 99th percentile.
pub(super) fn by_size(study: &Study<'_>) -> String {
    let mut charts = String::new();
    let wanted: [(&str, Quantile); 2] =
        [("Median", |slowdown| slowdown.p50), ("99th percentile", |slowdown| slowdown.p99)];
    let bands = wanted.map(|(_, of)| study.points.iter().map(|points| size_band(points, of)).collect::<Vec<_>>());
    let all = || bands.iter().flatten().flatten();
    let (Some((_, slowest)), Some((smallest, largest))) =
        (extent(all().map(|at| at.high)), extent(all().map(|at| at.size)))
    else {
        return String::new();
    };
    for ((title, _), series) in wanted.iter().zip(&bands) {
        let x = Axis::log("flow size", Quantity::Size, smallest, largest);
        let y = Axis::log("slowdown", Quantity::Plain, 1.0, slowest);
        let mut chart = Chart::new(510.0, 330.0, x, y);
        for (at, band) in series.iter().enumerate() {
            chart.band(at, &band.iter().map(|at| (at.size, at.low, at.high)).collect::<Vec<_>>());
        }
        for (at, band) in series.iter().enumerate() {
            let line: Vec<_> = band.iter().map(|at| (at.size, at.mean)).collect();
            chart.line(at, &study.summary.series[at].name, study.dash(at), &line);
        }
        charts += &figure(title, &chart.finish(&format!("{title} of slowdown by flow size")));
    }
    section(
        "size",
        "Slowdown by flow size",
        "Completion time over that in an empty network. Lines are means over seeds, bands reach from the best seed to the worst. Sizes are grouped by powers of two; a group stands at the mean size of its flows.",
        &format!("{}<div class=\"pair\">{charts}</div>", legend(study)),
    )
}

struct AtSize {
    size: f64,
    low: f64,
    mean: f64,
    high: f64,
}

/// One of a class's quantiles.
type Quantile = fn(&Distribution) -> Option<f64>;

/// One entry for each size class that any seed has: mean and range over seeds.
fn size_band(points: &[&PointSummary], of: Quantile) -> Vec<AtSize> {
    let mut classes: Vec<&SizeClass> = points.iter().flat_map(|point| &point.flows.by_size).collect();
    classes.sort_by_key(|class| class.up_to);
    classes
        .chunk_by(|a, b| a.up_to == b.up_to)
        .filter_map(|class| {
            let values: Vec<f64> = class.iter().filter_map(|class| of(&class.slowdown)).collect();
            let (low, high) = extent(values.iter().copied())?;
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let flows = class.iter().map(|class| class.slowdown.count as f64);
            let bytes = class.iter().map(|class| class.size_mean * class.slowdown.count as f64);
            let size = bytes.sum::<f64>() / flows.sum::<f64>();
            Some(AtSize { size, low, mean, high })
        })
        .collect()
}

/// Quantiles at `levels`, averaged over the seeds, as far as all seeds have them.
fn mean_curve(points: &[&PointSummary], of: fn(&PointSummary) -> &Vec<f64>, levels: &[f64]) -> Vec<(f64, f64)> {
    let curves: Vec<&Vec<f64>> = points.iter().map(|point| of(point)).filter(|curve| !curve.is_empty()).collect();
    let len = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    let mean = |at: usize| curves.iter().map(|curve| curve[at]).sum::<f64>() / curves.len() as f64;
    levels.iter().take(len).enumerate().map(|(at, &level)| (mean(at), level)).collect()
}

fn draw(study: &Study<'_>, mut chart: Chart, curves: &[Vec<(f64, f64)>], label: &str) -> String {
    for (at, curve) in curves.iter().enumerate() {
        chart.line(at, &study.summary.series[at].name, study.dash(at), curve);
    }
    chart.finish(label)
}

/// Least and greatest of the finite positive values.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite() && *value > 0.0).fold(None, |extent, value| {
        Some(extent.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
    })
}
