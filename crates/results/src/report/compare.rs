//! Comparison of series with each other: a forest plot of paired ratios.

use std::fmt::Write;

use super::Study;
use super::axis::{Axis, Quantity};
use super::html::section;
use super::lines::{stack, wrap};
use crate::number;
use crate::traits::Compared;
use crate::{Bound, Estimate, Ratio};

const WIDTH: f64 = 1040.0;
const ROW: f64 = 26.0;
/// Height that each further line of a label adds to its row.
const LINE: f64 = 15.0;
/// Characters in a line of a label.
const LABEL: usize = 45;
const TOP: f64 = 28.0;
/// Width of a character of a panel's title.
const TITLE: f64 = 6.8;
/// Height that each further line of a panel's title adds to the top.
const TITLE_LINE: f64 = 14.0;
const BOTTOM: f64 = 26.0;
/// Width of a character of a mean.
const MEAN: f64 = 7.4;
/// Width of a character of an interval.
const INTERVAL: f64 = 6.6;
/// Space around the numbers beside a plot, and between their parts.
const GAPS: f64 = 27.0;
/// Number of pairs shown, if cases do not have more; a sweep of many series has too many to read.
const PAIRS: usize = 24;

/// Returns one panel per compared metric, with one row per pair.
pub(super) fn ratios(study: &Study<'_>) -> String {
    let all: Vec<&[Ratio]> = study.summary.ratios.chunk_by(|a, b| a.of == b.of && a.to == b.to).collect();
    let pairs = shown(study, &all);
    let Some(extent) = extent(&pairs) else { return String::new() };
    let mut lead = match study.summary.ignores_seeds() {
        false => "Ratios paired by seed, geometric means with 95 % intervals; above 1 the first of the two is slower.",
        true => "Ratios; above 1 the first of the two is slower.",
    }
    .to_owned();
    if pairs.iter().flat_map(|pair| pair.iter()).any(|ratio| ratio.estimate.bound.is_some()) {
        lead += " Arrowheads: flows (or incasts, or jobs) of one of the two had not all finished when runs ended and count with \
                 their age, so that the ratio is a bound; of both: undecided.";
    }
    if all.len() > pairs.len() {
        let _ = write!(lead, " {} of {} pairs; the others are in summary.json.", pairs.len(), all.len());
    }
    let plot = Forest::new(study, pairs, extent).draw();
    section("ratios", "Series against series", &lead, &format!("<figure class=\"scroll\">{plot}</figure>"))
}

/// Returns the pairs to show: in every case all pairs over its first series, and as many others as there is space for.
fn shown<'a>(study: &Study<'_>, all: &[&'a [Ratio]]) -> Vec<&'a [Ratio]> {
    let leads = |pair: &[Ratio]| study.summary.leads(&pair[0].to);
    let mut room = PAIRS.saturating_sub(all.iter().filter(|pair| leads(pair)).count());
    let mut pairs = all.to_vec();
    pairs.retain(|pair| {
        if leads(pair) {
            return true;
        }
        let has_room = room > 0;
        room = room.saturating_sub(1);
        has_room
    });
    pairs
}

/// Returns the lowest and the highest plotted value; `None` if there is none.
fn extent(pairs: &[&[Ratio]]) -> Option<(f64, f64)> {
    let known = pairs.iter().flat_map(|pair| pair.iter());
    let bounds = known.filter_map(|ratio| ratio.estimate.ci95.or(ratio.estimate.mean.map(|mean| [mean, mean])));
    bounds.fold(None, |extent: Option<(f64, f64)>, [low, high]| {
        Some(extent.map_or((low.min(0.9), high.max(1.1)), |extent| (extent.0.min(low), extent.1.max(high))))
    })
}

/// The forest plot and the positions of its parts.
struct Forest<'a> {
    pairs: Vec<&'a [Ratio]>,
    /// Labels of the pairs, each in lines.
    labels: Vec<Vec<String>>,
    compared: Vec<Compared>,
    /// Titles of the metrics, each in lines.
    titles: Vec<Vec<String>>,
    has_intervals: bool,
    axis: Axis,
    /// Width of the labels.
    left: f64,
    /// Width of a panel, including the numbers beside the plot.
    panel: f64,
    /// Width of a panel's plot, without the numbers beside it.
    plot: f64,
    row_height: f64,
    /// Vertical position at which rows begin.
    top: f64,
    /// Vertical position at which rows end.
    bottom: f64,
}

impl<'a> Forest<'a> {
    fn new(study: &Study<'_>, pairs: Vec<&'a [Ratio]>, (low, high): (f64, f64)) -> Self {
        let label = |pair: &&[Ratio]| wrap(&format!("{} / {}", pair[0].of, pair[0].to), LABEL);
        let labels: Vec<_> = pairs.iter().map(label).collect();
        let longest = labels.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
        let most_lines = labels.iter().map(Vec::len).max().unwrap_or(1);
        let left = (longest as f64 * 7.2 + 16.0).max(100.0);
        let row_height = ROW + (most_lines as f64 - 1.0) * LINE;
        let compared = study.summary.compared();
        let panel = (WIDTH - left) / compared.len() as f64;
        let numbers = pairs.iter().flat_map(|pair| pair.iter()).map(numbers_width).fold(0.0, f64::max);
        let titles: Vec<_> =
            compared.iter().map(|metric| wrap(&metric.title, ((panel - 10.0) / TITLE).max(8.0) as usize)).collect();
        let top = TOP + (titles.iter().map(Vec::len).max().unwrap_or(1) as f64 - 1.0) * TITLE_LINE;
        Self {
            has_intervals: !study.summary.ignores_seeds(),
            axis: Axis::log("", Quantity::Plain, low, high).exact(low / 1.08, high * 1.08),
            left,
            panel,
            plot: (panel - numbers - GAPS).max(40.0),
            row_height,
            top,
            bottom: top + row_height * pairs.len() as f64,
            pairs,
            labels,
            compared,
            titles,
        }
    }

    fn draw(&self) -> String {
        let mut out = format!(
            "<svg class=\"forest wide\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Ratios of series with confidence intervals\">",
            self.bottom + BOTTOM
        );
        for (column, metric) in self.compared.iter().enumerate() {
            let x0 = self.left + column as f64 * self.panel;
            out += &stack(&self.titles[column], "class=\"title\"", x0, 14.0, TITLE_LINE);
            self.draw_grid(&mut out, x0);
            for (row, (pair, label)) in self.pairs.iter().zip(&self.labels).enumerate() {
                let y = self.top + (row as f64 + 0.5) * self.row_height;
                if column == 0 {
                    let first = y + 4.0 - (label.len() as f64 - 1.0) / 2.0 * LINE;
                    out += &stack(label, "class=\"name\"", 0.0, first, LINE);
                }
                if let Some(ratio) = pair.iter().find(|ratio| ratio.metric == metric.metric) {
                    self.draw_ratio(&mut out, ratio, x0, y);
                }
            }
        }
        out += "</svg>";
        out
    }

    /// Draws the ticks of the panel that begins at `x0`.
    fn draw_grid(&self, out: &mut String, x0: f64) {
        let Self { top, bottom, .. } = self;
        let mut last = f64::NEG_INFINITY;
        for tick in self.axis.ticks() {
            let x = self.place(tick, x0);
            let class = if (tick - 1.0).abs() < 1e-9 { "one" } else { "grid" };
            let _ = write!(out, "<path class=\"{class}\" d=\"M{x:.1} {top}V{bottom}\"/>");
            // Labels too close to the previous one are left out.
            if x - last > 24.0 {
                let _ = write!(
                    out,
                    "<text class=\"tick\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    bottom + 15.0,
                    Quantity::Plain.label(tick)
                );
                last = x;
            }
        }
    }

    /// Draws one row of the panel that begins at `x0`.
    fn draw_ratio(&self, out: &mut String, ratio: &Ratio, x0: f64, y: f64) {
        let place = |value: f64| self.place(value, x0);
        let Estimate { mean, bound, .. } = ratio.estimate;
        let mut text = number::bounded(mean, bound, 3);
        if let Some([low, high]) = ratio.estimate.ci95.filter(|_| self.has_intervals) {
            let _ = write!(out, "<path class=\"whisker\" d=\"M{:.1} {y:.1}H{:.1}\"/>", place(low), place(high));
            text += &format!("<tspan class=\"ci\" dx=\"5\">{}</tspan>", number::ratio_interval([low, high]));
        }
        let text_x = x0 + self.plot + 10.0;
        match (mean, bound) {
            (None, None) => return,
            (None, Some(_)) => {}
            // An arrowhead points to where the ratio may lie.
            (Some(mean), Some(bound)) => {
                let (towards, back) = if bound == Bound::AtMost { (-9, 9) } else { (9, -9) };
                let _ =
                    write!(out, "<path class=\"mean\" d=\"M{:.1} {y:.1}m0 -5l{towards} 5l{back} 5z\"/>", place(mean));
            }
            (Some(mean), None) => {
                let _ = write!(out, "<circle class=\"mean\" cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\"/>", place(mean));
            }
        }
        let _ = write!(out, "<text class=\"value\" x=\"{text_x:.1}\" y=\"{:.1}\">{text}</text>", y + 4.0);
    }

    /// Returns the horizontal position of a value in the panel that begins at `x0`.
    fn place(&self, value: f64, x0: f64) -> f64 {
        x0 + self.axis.place(value) * self.plot
    }
}

/// Returns the width of a ratio and its interval as text.
fn numbers_width(ratio: &Ratio) -> f64 {
    let Estimate { mean, bound, .. } = ratio.estimate;
    let width = |text: Option<String>, character: f64| text.map_or(0.0, |text| text.chars().count() as f64 * character);
    width((mean.is_some() || bound.is_some()).then(|| number::bounded(mean, bound, 3)), MEAN)
        + width(ratio.estimate.ci95.map(number::ratio_interval), INTERVAL)
}
