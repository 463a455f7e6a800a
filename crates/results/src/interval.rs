//! Means over seeds and their confidence intervals.
//!
//! Seeds are independent repetitions, so the mean of a metric over `n` of them has a Student t interval with `n - 1`
//! degrees of freedom. Ratios of two series are paired by seed, because equal seeds see the same flows: the logarithms
//! of the seeds' ratios get a t interval, which is then exponentiated. The mean of ratios is geometric, so "a over b"
//! and "b over a" are reciprocal.
//!
//! Where a run ended before everything that a metric is taken over had finished, the metric's value is a lower bound,
//! and so is a mean over seeds with such a value; the interval is that of the lower bound.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Bound;

/// A mean over seeds with its 95 % confidence interval.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Mean over the seeds that have a value (geometric for ratios); null if none has, or if nothing is known from
    /// either side.
    pub mean: Option<f64>,
    /// 95 % confidence interval; null with fewer than two values, which show no spread. Intervals of quantities from 0
    /// to 1, such as drop rates, utilisation and Jain's index, are cut there.
    pub ci95: Option<[f64; 2]>,
    /// Value of each seed, in the study's order; null where the run has none, such as the completion time of a run in
    /// which nothing finished.
    pub per_seed: Vec<Option<f64>>,
    /// The bound that mean and interval are, because runs ended before some flows (or incasts, or jobs) had finished,
    /// which count with their age; absent where the number is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
}

impl Estimate {
    /// Returns the arithmetic mean with its t interval.
    pub fn of_mean(per_seed: Vec<Option<f64>>) -> Self {
        let (mean, half) = t_interval(&per_seed);
        let ci95 = mean.zip(half).map(|(mean, half)| [mean - half, mean + half]);
        Self { mean, ci95, per_seed, bound: None }
    }

    /// Returns the arithmetic mean of a quantity from 0 to 1, with its t interval cut to that range.
    pub(crate) fn of_share(per_seed: Vec<Option<f64>>) -> Self {
        let mut estimate = Self::of_mean(per_seed);
        if let (Some(mean), Some([low, high])) = (estimate.mean, &mut estimate.ci95) {
            (*low, *high) = (low.max(mean.min(0.0)), high.min(mean.max(1.0)));
        }
        estimate
    }

    /// Returns the estimate of a counted quantity, equal for each of `seeds` seeds and exactly known.
    pub(crate) fn counted(value: f64, seeds: usize) -> Self {
        Self { mean: Some(value), ci95: Some([value, value]), per_seed: vec![Some(value); seeds], bound: None }
    }

    /// Returns the estimate marked as a bound; an undecided estimate has no numbers.
    pub(crate) fn bounded(self, bound: Option<Bound>) -> Self {
        match bound {
            Some(Bound::Undecided) => Self { per_seed: vec![None; self.per_seed.len()], bound, ..Self::default() },
            _ => Self { bound: bound.filter(|_| self.mean.is_some()), ..self },
        }
    }

    /// Returns the interval as far as it is known: open on the side that the bound leaves open; `None` without an
    /// interval. For non-negative quantities.
    pub(crate) fn known_interval(&self) -> Option<[f64; 2]> {
        match self.bound {
            Some(Bound::Undecided) => Some([0.0, f64::INFINITY]),
            bound => self.ci95.map(|ci95| Bound::opened(bound, ci95)),
        }
    }

    /// Returns the geometric mean of `of / to`, seed by seed, with the interval described in the module's notes. Seeds
    /// in which either is missing or not positive are left out. The result is a bound if either estimate is one.
    pub fn of_ratio(of: &Self, to: &Self) -> Self {
        let positive = |value: Option<f64>| value.filter(|&value| value > 0.0);
        let per_seed: Vec<_> = of
            .per_seed
            .iter()
            .zip(&to.per_seed)
            .map(|(&of, &to)| positive(of).zip(positive(to)).map(|(of, to)| of / to))
            .collect();
        let logs: Vec<_> = per_seed.iter().map(|ratio| ratio.map(f64::ln)).collect();
        let (mean, half) = t_interval(&logs);
        let ci95 = mean.zip(half).map(|(mean, half)| [(mean - half).exp(), (mean + half).exp()]);
        Self { mean: mean.map(f64::exp), ci95, per_seed, bound: None }.bounded(Bound::of_ratio(of.bound, to.bound))
    }

    /// Returns the geometric mean of `of` over that of `to`, whose seeds are independent, with Welch's t interval of
    /// the difference of logarithms. Values that are missing or not positive are left out. `per_seed` stays empty.
    pub fn of_unpaired_ratio(of: &Self, to: &Self) -> Self {
        let logs = |estimate: &Self| -> Vec<f64> {
            estimate.per_seed.iter().flatten().filter(|value| **value > 0.0).map(|value| value.ln()).collect()
        };
        // Mean of the logarithms, and variance of that mean.
        let moments = |logs: &[f64]| -> Option<(f64, Option<f64>)> {
            let count = logs.len() as f64;
            let mean = (count > 0.0).then(|| logs.iter().sum::<f64>() / count)?;
            let squares: f64 = logs.iter().map(|value| (value - mean).powi(2)).sum();
            Some((mean, (count > 1.0).then(|| squares / (count - 1.0) / count)))
        };
        let bound = Bound::of_ratio(of.bound, to.bound);
        let (of, to) = (logs(of), logs(to));
        let Some(((mean_of, spread_of), (mean_to, spread_to))) = moments(&of).zip(moments(&to)) else {
            return Self::default().bounded(bound);
        };
        let mean = mean_of - mean_to;
        let ci95 = spread_of.zip(spread_to).map(|(a, b)| {
            // Welch and Satterthwaite's degrees of freedom, rounded down.
            let parts = a.powi(2) / (of.len() - 1) as f64 + b.powi(2) / (to.len() - 1) as f64;
            let degrees = if parts > 0.0 { ((a + b).powi(2) / parts) as usize } else { of.len() + to.len() - 2 };
            let half = student_t_975(degrees.max(1)) * (a + b).sqrt();
            [(mean - half).exp(), (mean + half).exp()]
        });
        Self { mean: Some(mean.exp()), ci95, per_seed: Vec::new(), bound: None }.bounded(bound)
    }

    /// Returns the 99.9 % interval of a ratio or a mean, as far as it is known; `None` without an interval.
    pub(crate) fn wide_interval(&self, is_ratio: bool) -> Option<[f64; 2]> {
        let ([low, high], mean) = self.ci95.zip(self.mean)?;
        if low == high {
            return Some(Bound::opened(self.bound, [low, high]));
        }
        let seeds = self.per_seed.iter().flatten().count();
        let wider = (seeds > 1).then(|| student_t_9995(seeds - 1) / student_t_975(seeds - 1))?;
        let interval = if is_ratio {
            [mean * (low / mean).powf(wider), mean * (high / mean).powf(wider)]
        } else {
            [mean - (mean - low) * wider, mean + (high - mean) * wider]
        };
        Some(Bound::opened(self.bound, interval))
    }

    /// Returns the larger distance of the interval's ends from the mean; `None` without an interval.
    pub fn half_width(&self) -> Option<f64> {
        let [low, high] = self.ci95?;
        self.mean.map(|mean| (high - mean).max(mean - low))
    }
}

/// Returns mean and half-width of the values that exist.
fn t_interval(values: &[Option<f64>]) -> (Option<f64>, Option<f64>) {
    let values: Vec<f64> = values.iter().flatten().copied().collect();
    if values.is_empty() {
        return (None, None);
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (Some(mean), None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (Some(mean), Some(student_t_975(values.len() - 1) * (variance / count).sqrt()))
}

/// Returns the 97.5 % quantile of Student's t distribution, for two-sided 95 % intervals.
///
/// Tabulated up to 30 degrees of freedom; beyond, the Cornish-Fisher expansion around the normal quantile (Abramowitz
/// and Stegun 26.7.5), whose error there is below 1e-6.
///
/// # Panics
/// Panics with zero degrees of freedom, for which the distribution is not defined.
pub fn student_t_975(degrees: usize) -> f64 {
    assert!(degrees > 0, "an interval needs two values");
    if let Some(&value) = T_975.get(degrees - 1) {
        return value;
    }
    cornish_fisher(Z_975, degrees)
}

/// Returns the 99.95 % quantile of Student's t distribution, for two-sided 99.9 % intervals.
///
/// # Panics
/// Panics with zero degrees of freedom, for which the distribution is not defined.
fn student_t_9995(degrees: usize) -> f64 {
    assert!(degrees > 0, "an interval needs two values");
    T_9995.get(degrees - 1).copied().unwrap_or_else(|| cornish_fisher(Z_9995, degrees))
}

/// Returns the quantile of Student's t distribution at the level where the normal quantile is `z`.
fn cornish_fisher(z: f64, degrees: usize) -> f64 {
    let v = degrees as f64;
    let (z3, z5, z7, z9) = (z.powi(3), z.powi(5), z.powi(7), z.powi(9));
    z + (z3 + z) / (4.0 * v)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * v.powi(3))
        + (79.0 * z9 + 776.0 * z7 + 1482.0 * z5 - 1920.0 * z3 - 945.0 * z) / (92160.0 * v.powi(4))
}

/// 97.5 % quantile of the normal distribution.
const Z_975: f64 = 1.959_963_984_540_054;
/// 99.95 % quantile of the normal distribution.
const Z_9995: f64 = 3.290_526_731_491_9;
/// 99.95 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const T_9995: [f64; 30] = [
    636.619, 31.5991, 12.924, 8.6103, 6.8688, 5.9588, 5.4079, 5.0413, 4.7809, 4.5869, 4.437, 4.3178, 4.2208, 4.1405,
    4.0728, 4.015, 3.9651, 3.9216, 3.8834, 3.8495, 3.8193, 3.7921, 3.7676, 3.7454, 3.7251, 3.7066, 3.6896, 3.6739,
    3.6594, 3.646,
];
/// 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom.
const T_975: [f64; 30] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
    2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905, 2.109_816, 2.100_922, 2.093_024, 2.085_963,
    2.079_614, 2.073_873, 2.068_658, 2.063_899, 2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn t_quantiles_agree_with_printed_tables() {
        for (degrees, printed) in
            [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (29, 2.045), (40, 2.021), (60, 2.000), (120, 1.980)]
        {
            let found = student_t_975(degrees);
            assert!((found - printed).abs() < 6e-4, "{degrees} degrees: {found}, printed {printed}");
        }
        assert!((student_t_975(1_000_000) - Z_975).abs() < 1e-5);
    }

    #[test]
    fn two_degrees_of_freedom_have_a_closed_form() {
        // t = a sqrt(2 / (1 - a^2)) for the central probability a.
        let a: f64 = 0.95;
        assert!((student_t_975(2) - a * (2.0 / (1.0 - a * a)).sqrt()).abs() < 1e-6);
        // With one degree of freedom this is the Cauchy distribution: tan(pi (0.975 - 1/2)).
        assert!((student_t_975(1) - (std::f64::consts::PI * 0.475).tan()).abs() < 1e-5);
    }

    #[test]
    fn the_expansion_joins_the_table_smoothly() {
        let steps: Vec<f64> = (27..34).map(|degrees| student_t_975(degrees) - student_t_975(degrees + 1)).collect();
        assert!(steps.windows(2).all(|pair| pair[0] > pair[1] && pair[1] > 0.0), "{steps:?}");
    }

    #[test]
    fn a_mean_of_five_has_the_textbook_interval() {
        // Mean 3, standard deviation sqrt(2.5), t(4) = 2.776: half width 1.9632.
        let estimate = Estimate::of_mean(seeds(&[1.0, 2.0, 3.0, 4.0, 5.0]));
        assert_eq!(estimate.mean, Some(3.0));
        assert!((estimate.half_width().unwrap() - 1.963_243).abs() < 1e-5);
    }

    #[test]
    fn intervals_of_shares_end_at_none_and_all() {
        let share = Estimate::of_share(seeds(&[0.0, 0.0, 0.03]));
        let [low, high] = share.ci95.unwrap();
        let whole = Estimate::of_mean(seeds(&[0.0, 0.0, 0.03]));
        assert_eq!((low, high), (0.0, whole.ci95.unwrap()[1]));
        assert!(whole.ci95.unwrap()[0] < 0.0);
        assert!((share.half_width().unwrap() - whole.half_width().unwrap()).abs() < 1e-12, "the end that is free");
        assert_eq!(Estimate::of_share(seeds(&[1.0, 0.9, 1.0])).ci95.unwrap()[1], 1.0);
        let inside = seeds(&[0.4, 0.5, 0.6]);
        assert_eq!(Estimate::of_share(inside.clone()), Estimate::of_mean(inside));
    }

    #[test]
    fn one_seed_has_a_mean_and_no_interval() {
        let estimate = Estimate::of_mean(seeds(&[7.0]));
        assert_eq!((estimate.mean, estimate.ci95), (Some(7.0), None));
    }

    #[test]
    fn missing_seeds_do_not_count() {
        let estimate = Estimate::of_mean(vec![Some(1.0), None, Some(3.0)]);
        assert_eq!(estimate.mean, Some(2.0));
        assert_eq!(estimate.per_seed.len(), 3);
        assert_eq!(Estimate::of_mean(vec![None]).mean, None);
    }

    #[test]
    fn ratios_of_independent_seeds_have_welchs_interval() {
        let [of, to] = [[2.0, 8.0], [1.0, 1.0]].map(|values| Estimate::of_mean(seeds(&values)));
        let ratio = Estimate::of_unpaired_ratio(&of, &to);
        assert!((ratio.mean.unwrap() - 4.0).abs() < 1e-12, "the geometric mean of 2 and 8");
        // Only one side has spread, so its one degree of freedom remains: half of ln 4, times t.
        let half = student_t_975(1) * 2.0_f64.ln();
        let [low, high] = ratio.ci95.unwrap();
        assert!((low.ln() - (4.0_f64.ln() - half)).abs() < 1e-9 && (high.ln() - (4.0_f64.ln() + half)).abs() < 1e-9);
        // Equal spread on both sides gives the sum of both degrees of freedom.
        let [of, to] = [[1.0, 2.0, 4.0], [3.0, 6.0, 12.0]].map(|values| Estimate::of_mean(seeds(&values)));
        let half = student_t_975(4) * (2.0 * 2.0_f64.ln().powi(2) / 3.0).sqrt();
        let [_, high] = Estimate::of_unpaired_ratio(&of, &to).ci95.unwrap();
        assert!((high.ln() - ((1.0 / 3.0_f64).ln() + half)).abs() < 1e-9);
        let one = Estimate::of_mean(seeds(&[2.0]));
        assert_eq!(Estimate::of_unpaired_ratio(&one, &to).ci95, None);
        assert_eq!(Estimate::of_unpaired_ratio(&Estimate::default(), &to), Estimate::default());
    }

    #[test]
    fn ratios_are_paired_and_geometric() {
        let a = Estimate::of_mean(seeds(&[2.0, 20.0, 8.0]));
        let b = Estimate::of_mean(seeds(&[1.0, 5.0, 1.0]));
        let ratio = Estimate::of_ratio(&a, &b);
        // 2, 4, 8: geometric mean 4, spread ln 2.
        assert!((ratio.mean.unwrap() - 4.0).abs() < 1e-12);
        let half = student_t_975(2) * std::f64::consts::LN_2 / 3.0_f64.sqrt();
        assert!((ratio.ci95.unwrap()[1] / 4.0 - half.exp()).abs() < 1e-12);
        let back = Estimate::of_ratio(&b, &a);
        assert!((back.mean.unwrap() * ratio.mean.unwrap() - 1.0).abs() < 1e-12);
        assert!((back.ci95.unwrap()[0] * ratio.ci95.unwrap()[1] - 1.0).abs() < 1e-12);
    }

    #[test]
    fn wide_intervals_agree_with_printed_tables() {
        for (degrees, printed) in [(1, 636.619), (2, 31.599), (9, 4.781), (29, 3.659), (40, 3.551), (60, 3.460)] {
            let found = student_t_9995(degrees);
            assert!((found - printed).abs() < 6e-4, "{degrees} degrees: {found}, printed {printed}");
        }
        let mean = Estimate::of_mean(seeds(&[1.0, 2.0, 3.0, 4.0, 5.0]));
        // t(4) = 8.610 in place of 2.776.
        let [low, high] = mean.wide_interval(false).unwrap();
        assert!(
            (low - (3.0 - 8.6103 * 0.5_f64.sqrt())).abs() < 1e-3 && (high + low - 6.0).abs() < 1e-9,
            "{low} {high}"
        );
        let ratio = Estimate::of_ratio(&mean, &Estimate::of_mean(seeds(&[1.0, 1.0, 1.0, 1.0, 1.0])));
        let [low, high] = ratio.wide_interval(true).unwrap();
        assert!((low * high).sqrt() / ratio.mean.unwrap() - 1.0 < 1e-9 && low > 0.0, "{low} {high}");
        assert_eq!(Estimate::counted(7.0, 3).wide_interval(false), Some([7.0, 7.0]));
        assert_eq!(Estimate::of_mean(seeds(&[7.0])).wide_interval(false), None);
    }

    #[test]
    fn a_ratio_of_two_lower_bounds_has_no_numbers() {
        let whole = Estimate::of_mean(seeds(&[2.0, 8.0]));
        let least = whole.clone().bounded(Some(Bound::AtLeast));
        let ratio = Estimate::of_ratio(&least, &whole);
        assert_eq!((ratio.mean, ratio.bound), (Some(1.0), Some(Bound::AtLeast)));
        assert_eq!(ratio.known_interval(), Some([1.0, f64::INFINITY]));
        assert_eq!(Estimate::of_ratio(&whole, &least).known_interval(), Some([0.0, 1.0]));
        assert_eq!(Estimate::of_unpaired_ratio(&whole, &least).bound, Some(Bound::AtMost));
        for undecided in [Estimate::of_ratio(&least, &least), Estimate::of_unpaired_ratio(&least, &least)] {
            assert_eq!((undecided.mean, undecided.ci95, undecided.bound), (None, None, Some(Bound::Undecided)));
            assert!(undecided.per_seed.iter().all(Option::is_none));
            assert_eq!(undecided.known_interval(), Some([0.0, f64::INFINITY]));
        }
        let missing = Estimate::of_mean(vec![None]).bounded(Some(Bound::AtLeast));
        assert_eq!(missing.bound, None, "there is no number to bound anything");
    }

    #[test]
    fn a_ratio_to_nothing_is_no_ratio() {
        let a = Estimate::of_mean(seeds(&[1.0, 2.0]));
        let b = Estimate::of_mean(seeds(&[0.0, 0.0]));
        let ratio = Estimate::of_ratio(&a, &b);
        assert_eq!((ratio.mean, ratio.ci95, ratio.per_seed), (None, None, vec![None, None]));
    }
}
