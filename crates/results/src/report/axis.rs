//! Scales that map values to positions in a chart, and their ticks.

use serde::Serialize;

use crate::number::digits;

/// Kind of values on an axis, which determines how ticks are written.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Quantity {
    /// Microseconds.
    Time,
    /// Bytes.
    Size,
    /// Plain numbers.
    Plain,
    /// A share, in per cent.
    Share,
    /// A share F on a scale of 1 - F: 0.01 is written as "99 %".
    Tail,
}

impl Quantity {
    /// Returns the value with its unit, as short as possible.
    pub(super) fn label(self, value: f64) -> String {
        let scaled = |steps: &[(f64, &str)]| {
            let at = steps.iter().rposition(|&(size, _)| value >= size * 0.999_999).unwrap_or(0);
            format!("{} {}", short(value / steps[at].0, 3), steps[at].1)
        };
        match self {
            _ if value == 0.0 => "0".into(),
            Self::Time => scaled(&[(1e-3, "ns"), (1.0, "us"), (1e3, "ms"), (1e6, "s")]),
            Self::Size => scaled(&[(1.0, "B"), (1e3, "KB"), (1e6, "MB"), (1e9, "GB")]),
            Self::Plain => short(value, 3),
            Self::Share => format!("{} %", short(value * 100.0, 3)),
            Self::Tail => format!("{} %", short(100.0 - value * 100.0, 5)),
        }
    }
}

/// Returns the value with at most `wanted` digits, without trailing zeros of a fraction.
fn short(value: f64, wanted: i32) -> String {
    let text = digits(value, wanted);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// One axis: an interval of values on a linear or logarithmic scale.
#[derive(Clone, Serialize)]
pub(super) struct Axis {
    pub(super) title: String,
    pub(super) quantity: Quantity,
    pub(super) log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Axis {
    /// Creates a linear axis from `low` to `high`, extended to end at a tick.
    pub(super) fn linear(title: &str, quantity: Quantity, low: f64, high: f64) -> Self {
        let step = nice_step((high - low).max(1e-9));
        let high = if high > low { (high / step - 1e-9).ceil() * step } else { low + 1.0 };
        Self { title: title.into(), quantity, log: false, low, high }
    }

    /// Creates a logarithmic axis from `low` to `high` (both positive), extended to 1, 2 or 5 times a power of ten.
    pub(super) fn log(title: &str, quantity: Quantity, low: f64, high: f64) -> Self {
        let low = low.max(1e-9);
        let high = high.max(low * 1.0001);
        Self { title: title.into(), quantity, log: true, low: step_below(low), high: step_above(high) }
    }

    /// Sets the ends of the axis to exactly `low` and `high`.
    pub(super) fn exact(mut self, low: f64, high: f64) -> Self {
        (self.low, self.high) = (low, high);
        self
    }

    /// Returns the position of a value, 0 at `low` and 1 at `high`; values outside are clamped.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.low * 1e-3) / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        share.clamp(0.0, 1.0)
    }

    /// Returns the values that get a line and a label.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if self.log {
            // An axis may run downwards, as that of tails does.
            let (low, high) = (self.low.min(self.high), self.low.max(self.high));
            let inside = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
            let decades = (high / low).log10();
            let steps: &[f64] = match decades {
                ..1.6 => &[1.0, 2.0, 5.0],
                ..2.6 => &[1.0, 3.0],
                _ => &[1.0],
            };
            let first = low.log10().floor() as i32;
            let last = high.log10().ceil() as i32;
            let stride = ((decades / 8.0).ceil() as usize).max(1);
            let powers = (first..=last).step_by(stride).map(|power| 10_f64.powi(power));
            let ticks: Vec<f64> =
                powers.flat_map(|power| steps.iter().map(move |step| power * step)).filter(inside).collect();
            if ticks.len() > 1 {
                return ticks;
            }
            // An axis such as 0.82 to 1.40 has a single tick of this kind; one so short is nearly linear.
        }
        let step = nice_step(self.high - self.low);
        let first = (self.low / step).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last).map(|at| at as f64 * step).collect()
    }
}

/// Returns a step of 1, 2, 2.5 or 5 times a power of ten that divides `span` into about four.
fn nice_step(span: f64) -> f64 {
    let rough = span / 4.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough * 0.999).unwrap_or(10.0);
    factor * power
}

fn step_below(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0].into_iter().map(|step| step * power).find(|&step| step <= value * 1.000_001).unwrap_or(power)
}

fn step_above(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0];
    steps.into_iter().map(|step| step * power).find(|&step| step >= value * 0.999_999).unwrap_or(power * 10.0)
}

/// Returns the title of a time axis that begins with a run's first flow, at `begin_us`.
pub(super) const fn time_title(begin_us: f64) -> &'static str {
    if begin_us > 0.0 { "simulated time since the first flow" } else { "simulated time" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Axis::linear("", Quantity::Plain, 0.0, 37.0).ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(Axis::log("", Quantity::Time, 12.0, 1_900.0).ticks(), [10.0, 30.0, 100.0, 300.0, 1_000.0]);
        assert_eq!(Axis::log("", Quantity::Time, 1.0, 10_000.0).ticks(), [1.0, 10.0, 100.0, 1_000.0, 10_000.0]);
        let downwards = Axis::log("", Quantity::Tail, 1e-4, 0.1).exact(0.1, 1e-4);
        assert_eq!(downwards.ticks().len(), 4);
        assert_eq!(Axis::log("", Quantity::Plain, 1.1, 7.0).ticks(), [1.0, 2.0, 5.0, 10.0]);
        let labels = |axis: Axis| axis.ticks().into_iter().map(|tick| axis.quantity.label(tick)).collect::<Vec<_>>();
        let short = |low, high| labels(Axis::log("", Quantity::Plain, low, high).exact(low, high));
        assert_eq!(short(0.82, 1.40), ["1", "1.2", "1.4"]);
        assert_eq!(short(0.98, 1.03), ["0.98", "1", "1.02"]);
        assert_eq!(short(0.45, 2.1), ["0.5", "1", "2"]);
    }

    #[test]
    fn a_log_axis_places_decades_evenly() {
        let axis = Axis::log("", Quantity::Time, 1.0, 100.0);
        assert!((axis.place(10.0) - 0.5).abs() < 1e-12);
        assert_eq!((axis.place(0.0), axis.place(1e9)), (0.0, 1.0));
    }

    #[test]
    fn labels_carry_the_unit_that_makes_them_short() {
        assert_eq!(Quantity::Time.label(20.0), "20 us");
        assert_eq!(Quantity::Time.label(5_000.0), "5 ms");
        assert_eq!(Quantity::Size.label(1_000_000.0), "1 MB");
        assert_eq!(Quantity::Tail.label(0.001), "99.9 %");
        assert_eq!(Quantity::Tail.label(0.0001), "99.99 %");
        assert_eq!(Quantity::Share.label(0.25), "25 %");
    }
}
