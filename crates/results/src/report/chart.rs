//! Line charts with bands, as SVG.

use std::fmt::Write;

use super::axis::Axis;
use super::html::escape;

/// A chart in construction: its size, its axes, and the shapes drawn so far.
pub(super) struct Chart {
    width: f64,
    height: f64,
    x: Axis,
    y: Axis,
    body: String,
}

/// Space for tick labels and the title to the left of the plot.
const LEFT: f64 = 58.0;
/// Space to the right of the plot.
const RIGHT: f64 = 14.0;
/// Space for the title above the plot.
const TOP: f64 = 22.0;
/// Space for tick labels and the title below the plot.
const BOTTOM: f64 = 40.0;

impl Chart {
    /// Creates an empty chart.
    pub(super) fn new(width: f64, height: f64, x: Axis, y: Axis) -> Self {
        Self { width, height, x, y, body: String::new() }
    }

    /// Draws the curve of a series in its ink; `dash` is the SVG attribute of its dashes.
    pub(super) fn line(&mut self, ink: usize, name: &str, dash: &str, points: &[(f64, f64)]) {
        if points.is_empty() {
            return;
        }
        if let [(x, y)] = *points {
            let (x, y) = (self.x_of(x), self.y_of(y));
            let _ = write!(self.body, "<circle class=\"s{ink} fill{ink}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
            return;
        }
        let path = self.path(points.iter().copied());
        let _ = write!(
            self.body,
            "<path class=\"curve s{ink} ink{ink}\" data-name=\"{}\" d=\"M{path}\"{dash}/>",
            escape(name)
        );
    }

    /// Draws a point of a series that is a lower bound: an arrowhead upwards.
    pub(super) fn at_least(&mut self, ink: usize, (x, y): (f64, f64)) {
        let (x, y) = (self.x_of(x), self.y_of(y));
        let _ = write!(self.body, "<path class=\"s{ink} fill{ink} bound\" d=\"M{x:.1} {y:.1}m-4 0l4 -8 4 8z\"/>");
    }

    /// Draws the area between a series' lower and upper values.
    pub(super) fn band(&mut self, ink: usize, points: &[(f64, f64, f64)]) {
        if points.len() < 2 {
            return;
        }
        let there = self.path(points.iter().map(|&(x, low, _)| (x, low)));
        let back = self.path(points.iter().rev().map(|&(x, _, high)| (x, high)));
        let _ = write!(self.body, "<path class=\"band s{ink} fill{ink}\" d=\"M{there}L{back}Z\"/>");
    }

    /// Returns the finished SVG; `label` is its accessible description.
    pub(super) fn finish(self, label: &str) -> String {
        let (right, bottom) = (self.width - RIGHT, self.height - BOTTOM);
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\" \
             data-x=\"{},{LEFT},{right},{},{},{}\" data-y=\"{},{bottom},{TOP},{},{},{}\">",
            self.width,
            self.height,
            escape(label),
            u8::from(self.x.log),
            self.x.low,
            self.x.high,
            self.x.quantity.name(),
            u8::from(self.y.log),
            self.y.low,
            self.y.high,
            self.y.quantity.name(),
        );
        for tick in self.y.ticks() {
            let y = self.y_of(tick);
            let label = self.y.quantity.label(tick);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/><text class=\"tick\" x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{label}</text>",
                LEFT - 7.0,
                y + 3.6
            );
        }
        for tick in self.x.ticks() {
            let x = self.x_of(tick);
            let label = self.x.quantity.label(tick);
            let _ = write!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{bottom}\"/><text class=\"tick\" x=\"{x:.1}\" y=\"{}\" \
                 text-anchor=\"middle\">{label}</text>",
                bottom + 15.0
            );
        }
        let _ = write!(
            out,
            "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\"/>\
             <text class=\"title\" x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <text class=\"title\" x=\"0\" y=\"11\">{}</text>{}<path class=\"cross\" d=\"\"/></svg>",
            self.height - 6.0,
            escape(&self.x.title),
            escape(&self.y.title),
            self.body
        );
        out
    }

    fn x_of(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (self.width - LEFT - RIGHT)
    }

    fn y_of(&self, value: f64) -> f64 {
        self.height - BOTTOM - self.y.place(value) * (self.height - TOP - BOTTOM)
    }

    /// Returns a path "x y x y ...": implicit line-tos.
    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "{:.1} {:.1} ", self.x_of(x), self.y_of(y));
        }
        path.pop();
        path
    }
}

/// Returns every n-th point, so that about `limit` remain; the last point is always kept.
pub(super) fn decimate<T: Copy>(points: &[T], limit: usize) -> Vec<T> {
    let stride = points.len().div_ceil(limit).max(1);
    let mut kept: Vec<T> = points.iter().copied().step_by(stride).collect();
    if !(points.len().saturating_sub(1)).is_multiple_of(stride) {
        kept.extend(points.last());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimation_bounds_points_and_keeps_the_ends() {
        let points: Vec<u32> = (0..1000).collect();
        let kept = decimate(&points, 300);
        assert!(kept.len() <= 301, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, 999));
        assert_eq!(decimate(&points[..3], 300), [0, 1, 2]);
        assert!(decimate::<u32>(&[], 300).is_empty());
    }
}
