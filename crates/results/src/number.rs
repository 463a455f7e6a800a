//! Formatting of numbers with their significant digits.

use crate::bound::UNDECIDED;
use crate::{Bound, Estimate, Unit};

/// A factor for the values of one row or axis, and the unit after scaling.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Scale {
    pub(crate) factor: f64,
    pub(crate) unit: &'static str,
}

impl Scale {
    /// Returns the scale that suits values up to `largest`.
    pub(crate) fn of(unit: Unit, largest: f64) -> Self {
        let (factor, unit) = match unit {
            Unit::Plain | Unit::Count | Unit::Index => (1.0, ""),
            Unit::Share => (100.0, "%"),
            Unit::Gbps => (1.0, "Gb/s"),
            Unit::Kb => (1.0, "KB"),
            Unit::Us if largest >= 1e7 => (1e-6, "s"),
            Unit::Us if largest >= 1e4 => (1e-3, "ms"),
            Unit::Us => (1.0, "us"),
        };
        Self { factor, unit }
    }
}

/// Returns "3.21 ± 0.05": the half-width with two digits, the mean to the same place. Without an interval: four digits
/// of the mean; "-" without a mean. A bound has its sign before it: "≥ 3.21 ± 0.05".
pub(crate) fn estimate(estimate: &Estimate, scale: Scale) -> String {
    if estimate.bound == Some(Bound::Undecided) {
        return UNDECIDED.into();
    }
    let Some(mean) = estimate.mean.map(|mean| mean * scale.factor) else { return "-".into() };
    let sign = Bound::sign(estimate.bound);
    match estimate.half_width().map(|half| half * scale.factor) {
        // An interval below the fifth digit comes from rounding, not from the runs.
        Some(half) if half > mean.abs() * 1e-5 => {
            let decimals = decimals(half, 2).min(decimals(mean.abs().max(half), 5));
            format!("{sign}{} ± {}", fixed(mean, decimals), fixed(half, decimals))
        }
        _ => format!("{sign}{}", digits(mean, 4)),
    }
}

/// Returns a ratio with three digits: "1.62".
pub(crate) fn ratio(value: f64) -> String {
    digits(value, 3)
}

/// Returns a mean with `wanted` digits and its bound: "1.62", "≥ 1.62" or "undecided"; "-" without a mean.
pub(crate) fn bounded(mean: Option<f64>, bound: Option<Bound>, wanted: i32) -> String {
    match (mean, bound) {
        (_, Some(Bound::Undecided)) => UNDECIDED.into(),
        (None, _) => "-".into(),
        (Some(mean), bound) => format!("{}{}", Bound::sign(bound), digits(mean, wanted)),
    }
}

/// Returns an interval in brackets, to follow its mean; empty without an interval, or if it is a single point, as for
/// counted quantities.
pub(crate) fn in_brackets(ci95: Option<[f64; 2]>) -> String {
    ci95.filter(|[low, high]| low < high).map_or(String::new(), |ci| format!(" ({})", ratio_interval(ci)))
}

/// Returns an interval of ratios: "2.71–3.12".
pub(crate) fn ratio_interval([low, high]: [f64; 2]) -> String {
    format!("{}–{}", ratio(low), ratio(high))
}

/// Returns `value` with `wanted` significant digits, thousands separated; whole numbers keep all digits.
pub(crate) fn digits(value: f64, wanted: i32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if value.fract() == 0.0 {
        return fixed(value, 0);
    }
    fixed(value, decimals(value, wanted))
}

/// Returns the number of decimals that show `wanted` significant digits of `value`, at most 9.
fn decimals(value: f64, wanted: i32) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let magnitude = value.abs().log10().floor() as i32;
    (wanted - 1 - magnitude).clamp(0, 9) as usize
}

/// Returns `value` with `decimals` decimals, thousands separated by commas.
pub(crate) fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |rest| ("-", rest));
    let mut grouped = String::from(sign);
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { grouped } else { grouped + "." + fraction }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_printed_to_the_place_its_interval_reaches() {
        let print = |mean, half| {
            let ci95 = Some([mean - half, mean + half]);
            let estimate_ = Estimate { mean: Some(mean), ci95, ..Estimate::default() };
            estimate(&estimate_, Scale { factor: 1.0, unit: "" })
        };
        assert_eq!(print(3.21456, 0.0532), "3.215 ± 0.053");
        assert_eq!(print(12_345.678, 812.3), "12,346 ± 812");
        assert_eq!(print(0.001_234, 0.000_056), "0.001234 ± 0.000056");
        assert_eq!(print(5.0, 0.0), "5");
        assert_eq!(print(153.25, 0.001), "153.2");
    }

    #[test]
    fn digits_and_thousands() {
        assert_eq!(digits(1_234_567.0, 4), "1,234,567");
        assert_eq!(digits(0.0123, 2), "0.012");
        assert_eq!(digits(-1234.5, 3), "-1,234");
        assert_eq!(digits(0.0, 3), "0");
    }

    #[test]
    fn a_bound_has_its_sign() {
        let print = |bound| {
            let known = Estimate { mean: Some(3.0), ci95: Some([2.5, 3.5]), ..Estimate::default() };
            estimate(&known.bounded(bound), Scale { factor: 1.0, unit: "" })
        };
        let bounds = [None, Some(Bound::AtLeast), Some(Bound::AtMost), Some(Bound::Undecided)];
        assert_eq!(bounds.map(print), ["3.00 ± 0.50", "≥ 3.00 ± 0.50", "≤ 3.00 ± 0.50", "undecided"]);
        let short = |bound| bounded(Some(2.641), bound, 3);
        assert_eq!(bounds.map(short), ["2.64", "≥ 2.64", "≤ 2.64", "undecided"]);
        assert_eq!(bounded(None, None, 3), "-");
    }

    #[test]
    fn a_missing_mean_is_a_dash() {
        assert_eq!(estimate(&Estimate::default(), Scale::of(Unit::Us, 1.0)), "-");
    }
}
