//! Completion times: distributions, tails, and slowdown by flow size.

use selvedge_units::words::all_of;

use super::axis::{Axis, Quantity};
use super::chart::{At, Chart};
use super::html::{Value, figure, legend, section, values};
use super::{Case, Study};
use crate::point::{self, cdf_levels, tail_levels};
use crate::{FlowSummary, PointSummary, SizeClass};

/// Returns the FCT distributions of all measured flows, and the tails of single-packet messages.
pub(super) fn times(study: &Study<'_>) -> String {
    let curves: Vec<Vec<(f64, f64)>> = study
        .points
        .iter()
        .map(|points| of_all(points, mean_curve(points, |point| point.flows.fct_cdf_us.clone(), &cdf_levels())))
        .collect();
    let tails: Vec<Vec<(f64, f64)>> = study
        .points
        .iter()
        .map(|points| {
            let curve = mean_curve(points, known_tail, &tail_levels());
            curve.into_iter().map(|(x, level)| (x, 1.0 - level)).collect()
        })
        .collect();
    let of_tails = extent(tails.iter().flatten().map(|&(x, _)| x));
    let mut charts = Vec::new();
    if let Some((low, high)) = extent(curves.iter().flatten().map(|&(x, _)| x)) {
        charts.push(Distribution {
            title: "All measured flows",
            label: "Cumulative distribution of flow completion times",
            x: Axis::log("flow completion time", Quantity::Time, low, high),
            y: Axis::linear("share of flows that completed", Quantity::Share, 0.0, 1.0),
            curves: curves.iter().map(|curve| curve.iter().copied().map(At::from).collect()).collect(),
        });
    }
    if let Some((low, high)) = of_tails {
        charts.push(Distribution {
            title: "Tail of single-packet messages",
            label: "Tail of the completion times of single-packet messages",
            x: Axis::log("completion time of single-packet messages", Quantity::Time, low, high),
            // The axis is reversed: rarer is higher.
            y: Axis::log("share that completed", Quantity::Tail, 1e-4, 0.1).exact(0.1, 1e-4),
            curves: tails.iter().map(|curve| curve.iter().copied().map(At::from).collect()).collect(),
        });
    }
    let mut charts = draw(study, &charts);
    if charts.is_empty() {
        charts = "<p>No measured flow finished.</p>".into();
    } else {
        charts += &quantiles(study, &curves, &tails);
    }
    section("completion", "Flow completion times", &lead(study), &format!("{}{charts}", legend(study)))
}

/// Returns the table of the curves' values at common quantiles.
fn quantiles(study: &Study<'_>, curves: &[Vec<(f64, f64)>], tails: &[Vec<(f64, f64)>]) -> String {
    const SHARES: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999];
    const RARE: [f64; 3] = [0.1, 0.01, 0.001];
    /// Less than any distance of two levels.
    const CLOSE: f64 = 1e-6;
    let value = |found: Option<&(f64, f64)>| found.map(|&(x, _)| -> Value { (Quantity::Time.label(x), x) });
    let row = |at: usize| {
        let of_all = SHARES.map(|share| value(curves[at].iter().find(|(_, level)| *level > share - CLOSE)));
        let of_tail = RARE.map(|rare| value(tails[at].iter().find(|(_, level)| *level < rare + CLOSE)));
        (at, of_all.into_iter().chain(of_tail).collect())
    };
    let rows: Vec<_> = (0..curves.len()).filter(|&at| !curves[at].is_empty()).map(row).collect();
    let heads = SHARES.map(|share| Quantity::Share.label(share)).into_iter();
    let heads =
        heads.chain(RARE.map(|rare| format!("single-packet {}", Quantity::Tail.label(rare)))).collect::<Vec<_>>();
    values(study, "completion times of these shares of flows", &heads, &rows)
}

/// Returns the text above the curves.
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
    lead +=
        " The tail stops where a run has too few messages to tell, or where one that had not finished could raise it.";
    lead
}

/// Returns the tail of single-packet messages up to where it becomes a lower bound.
fn known_tail(point: &PointSummary) -> Vec<f64> {
    let FlowSummary { single_packet_tail_us: tail, open_tail, .. } = &point.flows;
    tail[..open_tail.unwrap_or(tail.len())].to_vec()
}

/// Returns the share of flows that finished, over all seeds.
fn finished(points: &[&PointSummary]) -> f64 {
    let (unfinished, measured) = points.iter().fold((0, 0), |(unfinished, measured), point| {
        (unfinished + point.flows.unfinished, measured + point.flows.measured)
    });
    1.0 - unfinished as f64 / measured.max(1) as f64
}

/// Returns the share at which the curve of a series ends, as text; `None` if all flows finished. Never rounded up to
/// 100 %.
fn ends_at(points: &[&PointSummary]) -> Option<String> {
    let finished = finished(points);
    let label = if finished < 0.999 { Quantity::Share.label(finished) } else { Quantity::Tail.label(1.0 - finished) };
    (finished < 1.0).then_some(label)
}

/// Rescales a curve of finished flows to the share of all flows.
fn of_all(points: &[&PointSummary], mut curve: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let finished = finished(points);
    curve.iter_mut().for_each(|(_, level)| *level *= finished);
    curve
}

/// Returns charts of slowdown by flow size: median and 99th percentile.
pub(super) fn by_size(study: &Study<'_>) -> String {
    let wanted: [(&str, &str, Quantile); 2] = [
        ("Median", "Median of slowdown by flow size", |slowdown| Some((slowdown.p50?, slowdown.open.p50))),
        ("99th percentile", "99th percentile of slowdown by flow size", |slowdown| {
            Some((slowdown.p99?, slowdown.open.p99))
        }),
    ];
    let sizes = wanted.map(|(.., of)| study.points.iter().map(|points| size_band(points, of)).collect::<Vec<_>>());
    let all = || sizes.iter().flatten().flatten();
    let (Some((_, slowest)), Some((smallest, largest))) =
        (extent(all().map(|at| at.high)), extent(all().map(|at| at.size)))
    else {
        return String::new();
    };
    let charts: Vec<Distribution> = wanted
        .iter()
        .zip(&sizes)
        .map(|(&(title, label, _), series)| Distribution {
            title,
            label,
            x: Axis::log("flow size", Quantity::Size, smallest, largest),
            y: Axis::log("slowdown", Quantity::Plain, 1.0, slowest),
            curves: series.iter().map(|band| band.iter().map(AtSize::drawn).collect()).collect(),
        })
        .collect();
    let tables: String =
        wanted.iter().zip(&sizes).map(|(&(_, label, _), series)| self::sizes(study, label, series)).collect();
    let mut lead = String::from(
        "Completion time over that in an empty network. Lines are means over seeds, bands reach from the best seed to the worst. Sizes are grouped by powers of two; a group stands at the mean size of its flows.",
    );
    if all().any(|at| at.is_bound) {
        lead += " Arrowheads: flows that had not finished when runs ended count with their age, so that the value is a lower \
                 bound.";
    }
    section("size", "Slowdown by flow size", &lead, &format!("{}{}{tables}", legend(study), draw(study, &charts)))
}

/// Returns the table of one chart's values: size classes as columns.
fn sizes(study: &Study<'_>, caption: &str, series: &[Vec<AtSize>]) -> String {
    let mut classes: Vec<u64> = series.iter().flatten().map(|at| at.up_to).collect();
    classes.sort_unstable();
    classes.dedup();
    let value = |at: &AtSize| -> Value {
        let sign = if at.is_bound { "≥ " } else { "" };
        (format!("{sign}{}", Quantity::Plain.label(at.mean)), at.mean)
    };
    let of_class = |band: &[AtSize], class| band.iter().find(|at| at.up_to == class).map(value);
    let row = |(at, band): (usize, &Vec<AtSize>)| (at, classes.iter().map(|&class| of_class(band, class)).collect());
    let rows: Vec<_> = series.iter().enumerate().filter(|(_, band)| !band.is_empty()).map(row).collect();
    let heads: Vec<_> = classes.iter().map(|&class| format!("≤ {}", Quantity::Size.label(class as f64))).collect();
    values(study, caption, &heads, &rows)
}

struct AtSize {
    /// Largest size of the class, in bytes.
    up_to: u64,
    size: f64,
    low: f64,
    mean: f64,
    high: f64,
    /// Whether the mean is a lower bound.
    is_bound: bool,
}

impl AtSize {
    fn drawn(&self) -> At {
        At { x: self.size, y: self.mean, band: Some((self.low, self.high)), is_bound: self.is_bound }
    }
}

/// Function that returns a quantile of a size class, and whether it is a lower bound.
type Quantile = fn(&point::Distribution) -> Option<(f64, bool)>;

/// Returns mean and range over seeds for each size class that any seed has.
fn size_band(points: &[&PointSummary], of: Quantile) -> Vec<AtSize> {
    let mut classes: Vec<&SizeClass> = points.iter().flat_map(|point| &point.flows.by_size).collect();
    classes.sort_by_key(|class| class.up_to);
    classes
        .chunk_by(|a, b| a.up_to == b.up_to)
        .filter_map(|class| {
            let values: Vec<(f64, bool)> = class.iter().filter_map(|class| of(&class.slowdown)).collect();
            let (low, high) = extent(values.iter().map(|&(value, _)| value))?;
            let mean = values.iter().map(|(value, _)| value).sum::<f64>() / values.len() as f64;
            let is_bound = values.iter().any(|&(_, is_bound)| is_bound);
            let flows = class.iter().map(|class| class.slowdown.count as f64);
            let bytes = class.iter().map(|class| class.size_mean * class.slowdown.count as f64);
            let size = bytes.sum::<f64>() / flows.sum::<f64>();
            Some(AtSize { up_to: class[0].up_to, size, low, mean, high, is_bound })
        })
        .collect()
}

/// Returns quantiles at `levels`, averaged over the seeds, up to the last level that all seeds have.
fn mean_curve(points: &[&PointSummary], of: fn(&PointSummary) -> Vec<f64>, levels: &[f64]) -> Vec<(f64, f64)> {
    let curves: Vec<Vec<f64>> = points.iter().map(|point| of(point)).filter(|curve| !curve.is_empty()).collect();
    let len = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    let mean = |at: usize| curves.iter().map(|curve| curve[at]).sum::<f64>() / curves.len() as f64;
    levels.iter().take(len).enumerate().map(|(at, &level)| (mean(at), level)).collect()
}

/// A chart with a curve, and optionally a band, for each series.
struct Distribution {
    title: &'static str,
    /// Accessible description of the chart.
    label: &'static str,
    x: Axis,
    y: Axis,
    /// Curves, indexed by series.
    curves: Vec<Vec<At>>,
}

/// Draws charts side by side. In a study with cases each chart is a grid with a panel for each case, on equal axes.
fn draw(study: &Study<'_>, charts: &[Distribution]) -> String {
    let cases = study.cases();
    if let [case] = &cases[..] {
        let panel = |chart: &Distribution| figure(chart.title, &chart.panel(study, case, 330));
        let panels: String = charts.iter().map(panel).collect();
        return if panels.is_empty() { panels } else { format!("<div class=\"pair\">{panels}</div>") };
    }
    let columns = cases.len().min(3);
    let mut out = String::new();
    for chart in charts {
        let has_curve = |case: &&Case<'_>| case.series.iter().any(|&at| !chart.curves[at].is_empty());
        let panels: String = cases
            .iter()
            .filter(has_curve)
            .map(|case| figure(case.name.unwrap_or(""), &chart.panel(study, case, 250)))
            .collect();
        let title = chart.title;
        out += &format!("<h3>{title}</h3><div class=\"row\" style=\"--columns:{columns}\">{panels}</div>");
    }
    out
}

impl Distribution {
    /// Returns the panel with the series of one case.
    fn panel(&self, study: &Study<'_>, case: &Case<'_>, height: u32) -> String {
        let of_case = case.name.map_or(String::new(), |name| format!(", {name}"));
        let mut chart = Chart::new(format!("{}{of_case}", self.label), height, self.x.clone(), self.y.clone());
        case.series.iter().for_each(|&at| chart.line(study, at, &self.curves[at]));
        chart.finish(study)
    }
}

/// Returns the least and the greatest of the finite positive values.
fn extent(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|value| value.is_finite() && *value > 0.0).fold(None, |extent, value| {
        Some(extent.map_or((value, value), |(low, high): (f64, f64)| (low.min(value), high.max(value))))
    })
}
