//! The compared metrics from case to case: one line per series.

use std::fmt::Write;

use super::Study;
use super::axis::{Axis, Quantity};
use super::html::{escape, figure, section};
use crate::metric::{Metric, UNFINISHED, Unit};
use crate::{Estimate, SeriesSummary};

const WIDTH: f64 = 510.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const PLOT: f64 = 250.0;
/// Names of cases that are longer than this stand askew.
const SHORT: usize = 9;

/// One panel per compared metric; nothing for a study without cases.
pub(super) fn across(study: &Study<'_>) -> String {
    let cases: Vec<&str> = study.summary.cases().into_iter().flatten().collect();
    let Some(first) = study.summary.series.first().filter(|_| cases.len() > 1) else { return String::new() };
    let names = series_names(&study.summary.series);
    let panels: String = first
        .traits
        .compared()
        .iter()
        .filter_map(|name| Metric::find(name))
        .filter_map(|metric| panel(study, metric, &cases, &names))
        .collect();
    section(
        "cases",
        "From case to case",
        "Means over seeds with 95 % intervals; lower is better. Points are left out where more than 1 % of the flows never finished: what did finish \
         would look too good.",
        &format!("{}<div class=\"pair\">{panels}</div>", legend(study, &names)),
    )
}

/// What series are called in each case, in order.
fn series_names(series: &[SeriesSummary]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for one in series {
        if !names.contains(&one.series.as_str()) {
            names.push(&one.series);
        }
    }
    names
}

/// Which colour a series has: the same in every case.
pub(super) fn color_of(series: &[SeriesSummary], at: usize) -> usize {
    series_names(series).iter().position(|name| *name == series[at].series).unwrap_or(at)
}

fn legend(study: &Study<'_>, names: &[&str]) -> String {
    let mut keys = String::new();
    for name in names {
        let Some(at) = first_of(study, name) else { continue };
        let dash = if study.is_pfc(at) { " stroke-dasharray=\"7 4\"" } else { "" };
        let _ = write!(
            keys,
            "<span class=\"key\"><svg width=\"26\" height=\"10\" aria-hidden=\"true\"><path d=\"M1 5H25\" class=\"ink{at}\"{dash}/></svg>{}</span>",
            escape(name)
        );
    }
    format!("<div class=\"legend\">{keys}<span class=\"note\">dashed: PFC on</span></div>")
}

/// The index of the first series of this name, which lends its colour to all.
fn first_of(study: &Study<'_>, name: &str) -> Option<usize> {
    study.summary.series.iter().position(|series| series.series == name)
}

/// A metric of a series in a case, if enough of its flows finished.
fn estimate<'a>(study: &'a Study<'_>, metric: &Metric, case: &str, series: &str) -> Option<&'a Estimate> {
    let found = study.summary.find_in(Some(case), series)?;
    let is_whole = found.total(UNFINISHED) <= found.total("measured_flows") * crate::verdict::STALLED;
    found.metric(metric.name).filter(|estimate| estimate.mean.is_some() && is_whole)
}

fn panel(study: &Study<'_>, metric: &Metric, cases: &[&str], names: &[&str]) -> Option<String> {
    let all = cases.iter().flat_map(|case| names.iter().filter_map(|name| estimate(study, metric, case, name)));
    let means = all.filter_map(|estimate| estimate.mean).filter(|&mean| mean > 0.0);
    let (low, high) = means.fold((f64::INFINITY, 0.0_f64), |(low, high), mean| (low.min(mean), high.max(mean)));
    if high == 0.0 {
        return None;
    }
    let quantity = if metric.unit == Unit::Us { Quantity::Time } else { Quantity::Plain };
    let axis = Axis::log(metric.title, quantity, low, high);
    let is_askew = cases.iter().any(|case| case.chars().count() > SHORT);
    let bottom = TOP + PLOT;
    let height = bottom + if is_askew { 74.0 } else { 26.0 };
    let x_of = |case: usize| LEFT + (case as f64 + 0.5) / cases.len() as f64 * (WIDTH - LEFT - RIGHT);
    let y_of = |value: f64| bottom - axis.place(value) * PLOT;
    let mut out = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{} from case to case\">",
        escape(metric.title)
    );
    for tick in axis.ticks() {
        let y = y_of(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 7.0,
            y + 3.6,
            quantity.label(tick)
        );
    }
    for (at, case) in cases.iter().enumerate() {
        let (x, y) = (x_of(at), bottom + 16.0);
        let place = if is_askew {
            format!("text-anchor=\"end\" transform=\"rotate(-28 {x:.1} {y:.1})\"")
        } else {
            "text-anchor=\"middle\"".into()
        };
        let _ = write!(out, "<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\" {place}>{}</text>", escape(case));
    }
    for (place, name) in names.iter().enumerate() {
        let Some(ink) = first_of(study, name) else { continue };
        // Side by side, lest intervals cover each other.
        let aside = (place as f64 - (names.len() as f64 - 1.0) / 2.0) * 4.0;
        draw(
            &mut out,
            ink,
            study.is_pfc(ink),
            &|at| {
                let found = estimate(study, metric, cases[at], name)?;
                let interval = found.ci95.map(|ends| ends.map(|end| y_of(end.max(low / 10.0)).clamp(TOP, bottom)));
                Some((x_of(at) + aside, y_of(found.mean?), interval))
            },
            cases.len(),
        );
    }
    let _ = write!(out, "<path class=\"axis\" d=\"M{LEFT} {bottom}H{}\"/></svg>", WIDTH - RIGHT);
    Some(figure(metric.title, &out))
}

/// Where a mean stands, and its interval.
type Mark = (f64, f64, Option<[f64; 2]>);

/// One series: marks with their intervals, joined where neighbours are known.
fn draw(out: &mut String, ink: usize, dashed: bool, mark: &dyn Fn(usize) -> Option<Mark>, cases: usize) {
    let dash = if dashed { " stroke-dasharray=\"7 4\"" } else { "" };
    for at in 0..cases {
        let Some((x, y, interval)) = mark(at) else { continue };
        if let Some((x0, y0, _)) = at.checked_sub(1).and_then(mark) {
            let _ = write!(out, "<path class=\"curve ink{ink}\" d=\"M{x0:.1} {y0:.1}L{x:.1} {y:.1}\"{dash}/>");
        }
        if let Some([low, high]) = interval {
            let _ = write!(out, "<path class=\"ink{ink}\" stroke-width=\"1.2\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
        }
        let _ = write!(out, "<circle class=\"fill{ink}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\"/>");
    }
}
