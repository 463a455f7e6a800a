//! Line charts with bands: their data as JSON, which the page's script draws.

use serde::Serialize;

use super::Study;
use super::axis::Axis;
use super::html::escape;

/// A chart in construction: its axes, and the curves so far.
#[derive(Serialize)]
pub(super) struct Chart {
    label: String,
    x: Axis,
    y: Axis,
    /// Whether charts share the horizontal zoom of this one.
    shares_x: bool,
    curves: Vec<Curve>,
    #[serde(skip)]
    height: u32,
}

#[derive(Serialize)]
struct Curve {
    name: String,
    ink: usize,
    /// Lengths of strokes and gaps; empty if solid.
    dash: &'static str,
    x: Vec<Number>,
    y: Vec<Number>,
    /// Ends of the band around the curve; empty without a band.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    low: Vec<Number>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    high: Vec<Number>,
    /// Indices of the points that are lower bounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bounds: Vec<usize>,
}

/// A number that is written with six digits, three more than the page shows.
#[derive(Clone, Copy)]
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let rounded: f64 = format!("{:.5e}", self.0).parse().unwrap_or(self.0);
        // "20" is shorter than "20.0".
        match rounded as i64 {
            whole if whole as f64 == rounded => serializer.serialize_i64(whole),
            _ => serializer.serialize_f64(rounded),
        }
    }
}

/// A point of a curve.
#[derive(Clone, Copy, Default)]
pub(super) struct At {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Ends of the band at the point.
    pub(super) band: Option<(f64, f64)>,
    /// Whether the value is a lower bound.
    pub(super) is_bound: bool,
}

impl From<(f64, f64)> for At {
    fn from((x, y): (f64, f64)) -> Self {
        Self { x, y, ..Self::default() }
    }
}

impl Chart {
    /// Creates an empty chart; `label` is its accessible name, `height` is in pixels.
    pub(super) fn new(label: String, height: u32, x: Axis, y: Axis) -> Self {
        Self { label, x, y, shares_x: false, curves: Vec::new(), height }
    }

    /// Makes all charts of this kind zoom together along the horizontal axis.
    pub(super) fn sharing_x(self) -> Self {
        Self { shares_x: true, ..self }
    }

    /// Adds the curve of a series of the study.
    pub(super) fn line(&mut self, study: &Study<'_>, series: usize, points: &[At]) {
        if points.is_empty() {
            return;
        }
        let column = |of: fn(&At) -> f64| points.iter().map(|at| Number(of(at))).collect();
        let ends: Vec<(f64, f64)> = points.iter().filter_map(|at| at.band).collect();
        self.curves.push(Curve {
            name: study.summary.series[series].series.clone(),
            ink: study.inks[series],
            dash: study.dash(series),
            x: column(|at| at.x),
            y: column(|at| at.y),
            low: ends.iter().map(|&(low, _)| Number(low)).collect(),
            high: ends.iter().map(|&(_, high)| Number(high)).collect(),
            bounds: (0..points.len()).filter(|&at| points[at].is_bound).collect(),
        });
    }

    /// Returns the place of the chart in the page, and adds its data to that of the page.
    pub(super) fn finish(self, study: &Study<'_>) -> String {
        let (label, height) = (escape(&self.label), self.height);
        let mut charts = study.charts.borrow_mut();
        let at = charts.len();
        charts.push(serde_json::to_value(self).expect("a chart has text keys"));
        format!("<div class=\"plot\" data-chart=\"{at}\" style=\"height:{height}px\" aria-label=\"{label}\"></div>")
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

    #[test]
    fn numbers_are_short() {
        let text = |number| serde_json::to_string(&Number(number)).unwrap();
        assert_eq!([0.0, 20.0, 0.123_456_78, 1_234_567.0].map(text), ["0", "20", "0.123457", "1234570"]);
    }
}
