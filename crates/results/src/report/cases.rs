//! Charts of the compared metrics over the cases, with one line per series.

use std::fmt::Write;

use super::Study;
use super::axis::{Axis, Quantity};
use super::html::{escape, figure, legend, section, width_of};
use super::lines::{stack, wrap};
use crate::metric::{Metric, Unit};
use crate::stall::STALLED;
use crate::traits::Compared;
use crate::{Bound, Estimate};

const LEFT: f64 = 58.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 14.0;
const PLOT: f64 = 250.0;
/// Width of a character of a case's name.
const CHARACTER: f64 = 6.2;
/// Height of a line of a case's name.
const LINE: f64 = 14.0;
/// Largest factor by which intervals extend the axis beyond the means, at each end.
const BEYOND: f64 = 2.0;

/// Returns one panel per compared metric; empty for a study without cases.
pub(super) fn across(study: &Study<'_>) -> String {
    let cases: Vec<&str> = study.summary.cases().into_iter().flatten().collect();
    if cases.len() < 2 {
        return String::new();
    }
    let compared = study.summary.compared();
    let compared: Vec<_> = compared.iter().filter(|metric| is_known(study, metric, &cases)).collect();
    let panel = |(at, metric): (usize, &&Compared)| panel(study, metric, &cases, width_of(at, compared.len()));
    let panels: String = compared.iter().enumerate().filter_map(panel).collect();
    section(
        "cases",
        "From case to case",
        "Means over seeds with 95 % intervals; lower is better. An arrowhead at the end of an interval: it goes on beyond the \
         axis. An arrowhead in place of a mean: some flows (or incasts, or jobs) had not finished when runs ended and count \
         with their age, so that it is at least so much.",
        &format!("{}<div class=\"pair\">{panels}</div>", legend(study)),
    )
}

/// Returns the estimate of a metric of a series in a case.
fn estimate<'a>(study: &'a Study<'_>, metric: &Compared, case: &str, series: &str) -> Option<&'a Estimate> {
    study.summary.find_in(Some(case), series)?.metric(&metric.metric).filter(|estimate| estimate.mean.is_some())
}

/// Returns whether a series in a case has so much unfinished that its value mainly reflects the length of the run; such
/// a value does not extend the axis.
fn is_stalled(study: &Study<'_>, metric: &Compared, case: &str, series: &str) -> bool {
    let over = study.summary.find_in(Some(case), series).and_then(|found| found.taken_over(&metric.metric));
    over.is_some_and(|over| over.missing() > STALLED)
}

/// Returns whether any series has a positive value of a metric in any case.
fn is_known(study: &Study<'_>, metric: &Compared, cases: &[&str]) -> bool {
    let mut all = cases.iter().flat_map(|case| study.names.iter().map(move |name| (case, name)));
    all.any(|(case, name)| {
        estimate(study, metric, case, name).is_some_and(|found| found.mean.is_some_and(|mean| mean > 0.0))
    })
}

fn panel(study: &Study<'_>, metric: &Compared, cases: &[&str], width: f64) -> Option<String> {
    let all = || cases.iter().flat_map(|case| study.names.iter().map(move |name| (case, name)));
    let known = |&(case, name): &(&&str, &&str)| estimate(study, metric, case, name);
    let mut shown: Vec<&Estimate> =
        all().filter(|(case, name)| !is_stalled(study, metric, case, name)).filter_map(|at| known(&at)).collect();
    if shown.is_empty() {
        shown = all().filter_map(|at| known(&at)).collect();
    }
    let means = shown.iter().filter_map(|estimate| estimate.mean).filter(|&mean| mean > 0.0);
    let (least, most) = means.fold((f64::INFINITY, 0.0_f64), |(low, high), mean| (low.min(mean), high.max(mean)));
    if most == 0.0 {
        return None;
    }
    let ends = shown.iter().filter_map(|estimate| estimate.ci95).flatten();
    let ends = ends.map(|end| end.clamp(least / BEYOND, most * BEYOND));
    let (low, high) = ends.fold((least, most), |(low, high), end| (low.min(end), high.max(end)));
    let is_time = Metric::find_any(&metric.metric).is_some_and(|metric| metric.unit == Unit::Us);
    let quantity = if is_time { Quantity::Time } else { Quantity::Plain };
    let axis = Axis::log(&metric.title, quantity, low, high);
    let slot = (width - LEFT - RIGHT) / cases.len() as f64;
    let labels = Labels::new(cases, slot);
    let bottom = TOP + PLOT;
    let height = bottom + 12.0 + labels.height;
    let x_of = |case: usize| LEFT + (case as f64 + 0.5) * slot;
    let y_of = |value: f64| bottom - axis.place(value) * PLOT;
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{} from case to case\">",
        escape(&metric.title)
    );
    for tick in axis.ticks() {
        let y = y_of(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            width - RIGHT,
            LEFT - 7.0,
            y + 3.6,
            quantity.label(tick)
        );
    }
    for at in 0..cases.len() {
        out += &labels.draw(at, x_of(at), bottom);
    }
    for first in study.firsts() {
        let ink = study.inks[first];
        // Series are shifted sideways so that intervals do not cover each other.
        let aside = (ink as f64 - (study.names.len() as f64 - 1.0) / 2.0) * 4.0;
        let _ = write!(out, "<g class=\"s{ink}\">");
        draw(
            &mut out,
            ink,
            study.dash(first),
            &|at| {
                let found = estimate(study, metric, cases[at], study.names[ink])?;
                let interval = found.ci95.map(|[from, to]| Whisker {
                    ends: [y_of(from), y_of(to)],
                    is_cut: [from < axis.low, to > axis.high],
                });
                let mean = found.mean?.clamp(axis.low, axis.high);
                Some(Mark {
                    x: x_of(at) + aside,
                    y: y_of(mean),
                    interval: interval.filter(|_| mean < axis.high),
                    is_bound: found.bound.is_some(),
                    reading: reading(study.names[ink], cases[at], quantity, found),
                })
            },
            cases.len(),
        );
        out += "</g>";
    }
    let _ = write!(out, "<path class=\"axis\" d=\"M{LEFT} {bottom}H{}\"/></svg>", width - RIGHT);
    Some(figure(&metric.title, &out))
}

/// The names of cases below the axis: horizontal in lines if their words fit, else vertical.
struct Labels {
    names: Vec<Vec<String>>,
    is_upright: bool,
    height: f64,
}

impl Labels {
    fn new(cases: &[&str], slot: f64) -> Self {
        let width = (slot / CHARACTER - 2.0).max(0.0) as usize;
        let is_upright =
            cases.iter().flat_map(|case| case.split_whitespace()).all(|word| word.chars().count() <= width);
        let name = |case: &&str| if is_upright { wrap(case, width) } else { vec![(*case).to_owned()] };
        let names: Vec<_> = cases.iter().map(name).collect();
        let lines = names.iter().map(Vec::len).max().unwrap_or(0);
        let longest = names.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        let height = if is_upright { lines as f64 * LINE } else { longest as f64 * CHARACTER };
        Self { names, is_upright, height }
    }

    fn draw(&self, case: usize, x: f64, bottom: f64) -> String {
        let (y, place) = if self.is_upright {
            (bottom + 16.0, "text-anchor=\"middle\"".to_owned())
        } else {
            (bottom + 8.0, format!("text-anchor=\"end\" transform=\"rotate(-90 {x:.1} {:.1})\" dy=\"4\"", bottom + 8.0))
        };
        stack(&self.names[case], &format!("class=\"tick\" {place}"), x, y, LINE)
    }
}

/// Returns "irn, 30 % load: 1.2 ms (1.1 ms–1.3 ms)".
fn reading(name: &str, case: &str, quantity: Quantity, found: &Estimate) -> String {
    let sign = Bound::sign(found.bound);
    let mean = found.mean.map_or(String::new(), |mean| quantity.label(mean));
    let interval = found.ci95.filter(|[low, high]| low < high);
    let interval = interval.map_or(String::new(), |ends| {
        let [low, high] = ends.map(|end| quantity.label(end.max(0.0)));
        format!(" ({low}–{high})")
    });
    format!("{name}, {case}: {sign}{mean}{interval}")
}

/// The mean of a series in a case.
struct Mark {
    x: f64,
    y: f64,
    interval: Option<Whisker>,
    /// Whether the mean is a lower bound.
    is_bound: bool,
    /// Text with the values.
    reading: String,
}

/// An interval; an end is cut where it lies beyond the axis.
struct Whisker {
    ends: [f64; 2],
    is_cut: [bool; 2],
}

impl Whisker {
    fn draw(&self, ink: usize, x: f64) -> String {
        let [low, high] = self.ends;
        let mut out = format!("<path class=\"ink{ink}\" stroke-width=\"1.2\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>");
        for ((y, is_cut), size) in self.ends.into_iter().zip(self.is_cut).zip([-6.0, 6.0]) {
            if is_cut {
                let _ = write!(out, "<path class=\"fill{ink} cut\" d=\"M{x:.1} {y:.1}l-3.5 {size}h7z\"/>");
            }
        }
        out
    }
}

/// Draws one series: marks with their intervals, joined where neighbours are known.
fn draw(out: &mut String, ink: usize, dash: &str, mark: &dyn Fn(usize) -> Option<Mark>, cases: usize) {
    for at in 0..cases {
        let Some(Mark { x, y, interval, is_bound, reading }) = mark(at) else { continue };
        let title = format!("<title>{}</title>", escape(&reading));
        if let Some(Mark { x: x0, y: y0, .. }) = at.checked_sub(1).and_then(mark) {
            let _ = write!(
                out,
                "<path class=\"curve ink{ink}\" d=\"M{x0:.1} {y0:.1}L{x:.1} {y:.1}\" stroke-dasharray=\"{dash}\"/>"
            );
        }
        *out += &interval.map_or(String::new(), |whisker| whisker.draw(ink, x));
        let _ = match is_bound {
            true => {
                write!(out, "<path class=\"fill{ink} bound\" d=\"M{x:.1} {y:.1}m-4.5 3l4.5 -9 4.5 9z\">{title}</path>")
            }
            false => write!(out, "<circle class=\"fill{ink}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\">{title}</circle>"),
        };
    }
}
