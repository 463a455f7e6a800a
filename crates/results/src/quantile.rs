//! Quantiles of a stream in bounded memory.
//!
//! 1. Up to a limit (2^16 values by default) all values are kept and answers are exact.
//! 2. Beyond the limit, values go to a log-linear histogram: every power of two is cut into 4096 equal parts. The
//!    answer is the middle of a part, so the relative error is at most 1/8192 < 0.02 %.
//! 3. For positive floats, the number of a part is given by the leading bits of the value: exponent and twelve bits of
//!    mantissa. No logarithm is needed, and the order of parts is the order of values.

/// Number of values kept exactly, unless [`Quantiles::with_exact_limit`] sets another limit.
pub(crate) const EXACT_LIMIT: usize = 1 << 16;
/// Low bits of an `f64`'s mantissa that a histogram ignores: 52 - 12.
const IGNORED_BITS: u32 = 40;
/// Values below this one count as zero, because parts for them would be most of a histogram.
const LEAST: f64 = 1e-9;

/// A stream of non-negative values and its quantiles; see the module's notes for the error.
#[derive(Clone, Debug)]
pub struct Quantiles {
    store: Store,
    exact_limit: usize,
    count: u64,
    sum: f64,
    max: f64,
}

#[derive(Clone, Debug)]
enum Store {
    Exact { values: Vec<f64>, sorted: bool },
    Histogram(Histogram),
}

impl Default for Quantiles {
    fn default() -> Self {
        Self::new()
    }
}

impl Quantiles {
    /// Creates an empty set, exact up to 2^16 values and within 0.02 % beyond.
    pub fn new() -> Self {
        Self::with_exact_limit(EXACT_LIMIT)
    }

    /// Creates an empty set, exact up to `limit` values and within 0.02 % beyond (within 1e-9, if that is more).
    pub fn with_exact_limit(limit: usize) -> Self {
        Self {
            store: Store::Exact { values: Vec::new(), sorted: true },
            exact_limit: limit,
            count: 0,
            sum: 0.0,
            max: 0.0,
        }
    }

    /// Adds a value. Negative values and NaN count as zero; completion times are never either.
    pub fn add(&mut self, value: f64) {
        let value = value.max(0.0);
        self.count += 1;
        self.sum += value;
        self.max = self.max.max(value);
        match &mut self.store {
            Store::Exact { values, sorted } if values.len() < self.exact_limit => {
                values.push(value);
                *sorted = false;
            }
            Store::Exact { values, .. } => {
                let mut histogram = Histogram::default();
                values.iter().chain([&value]).for_each(|&value| histogram.add(value));
                self.store = Store::Histogram(histogram);
            }
            Store::Histogram(histogram) => histogram.add(value),
        }
    }

    /// Returns the number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the arithmetic mean, exact up to rounding; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Returns the largest value, exact; `None` without values.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Returns whether answers are exact.
    pub fn is_exact(&self) -> bool {
        matches!(self.store, Store::Exact { .. })
    }

    /// Returns the smallest value that at least a share `level` of all values do not exceed (nearest rank); `level` is
    /// clamped to 0..=1. `None` without values.
    pub fn at(&mut self, level: f64) -> Option<f64> {
        self.at_rank(rank(level, self.count))
    }

    /// Returns the largest possible answer of [`at`](Self::at) after `late` more values, whatever they are; `None` if
    /// it has no upper limit, because the late values alone decide it.
    pub fn at_most(&mut self, level: f64, late: u64) -> Option<f64> {
        self.at_rank(rank(level, self.count + late))
    }

    /// Returns the value of this 1-based rank; `None` if there are fewer values.
    fn at_rank(&mut self, rank: u64) -> Option<f64> {
        if rank > self.count {
            return None;
        }
        Some(match &mut self.store {
            Store::Exact { values, sorted } => {
                if !*sorted {
                    values.sort_unstable_by(f64::total_cmp);
                    *sorted = true;
                }
                values[rank as usize - 1]
            }
            Store::Histogram(histogram) => histogram.at_rank(rank).min(self.max),
        })
    }
}

/// Returns the 1-based rank that answers `level`: ceil(level * count), limited to the existing ranks. The factor just
/// below 1 undoes the rounding by which 0.99 * 100 exceeds 99.
fn rank(level: f64, count: u64) -> u64 {
    let rank = (level.clamp(0.0, 1.0) * count as f64 * (1.0 - 1e-12)).ceil() as u64;
    rank.clamp(1, count.max(1))
}

/// Counts of adjoining parts; only the range that occurred is stored.
#[derive(Clone, Debug, Default)]
struct Histogram {
    zeros: u64,
    /// Number of the part that `counts[0]` counts.
    first: usize,
    counts: Vec<u64>,
}

impl Histogram {
    fn add(&mut self, value: f64) {
        if value < LEAST {
            self.zeros += 1;
            return;
        }
        let part = (value.to_bits() >> IGNORED_BITS) as usize;
        if self.counts.is_empty() {
            self.first = part;
        }
        if part < self.first {
            let missing = self.first - part;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = part;
        }
        let index = part - self.first;
        if index >= self.counts.len() {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] += 1;
    }

    /// Returns the middle of the part that holds the value of this rank.
    fn at_rank(&self, rank: u64) -> f64 {
        let mut seen = self.zeros;
        if seen >= rank {
            return 0.0;
        }
        let index = self.counts.iter().position(|&count| {
            seen += count;
            seen >= rank
        });
        let part = (self.first + index.unwrap_or(self.counts.len() - 1)) as u64;
        f64::from_bits((part << IGNORED_BITS) | (1 << (IGNORED_BITS - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nearest_rank(sorted: &[f64], level: f64) -> f64 {
        sorted[rank(level, sorted.len() as u64) as usize - 1]
    }

    #[test]
    fn the_99th_of_a_hundred_is_the_99th() {
        let mut quantiles = Quantiles::new();
        (1..=100).rev().for_each(|value| quantiles.add(f64::from(value)));
        assert_eq!(quantiles.at(0.99), Some(99.0));
        assert_eq!(quantiles.at(0.5), Some(50.0));
        assert_eq!(quantiles.at(0.0), Some(1.0));
        assert_eq!(quantiles.at(1.0), Some(100.0));
        assert_eq!(quantiles.mean(), Some(50.5));
    }

    #[test]
    fn nothing_has_no_quantiles() {
        let mut quantiles = Quantiles::new();
        assert_eq!((quantiles.at(0.5), quantiles.mean(), quantiles.max()), (None, None, None));
    }

    #[test]
    fn memory_stops_growing_with_the_number_of_values() {
        let mut quantiles = Quantiles::with_exact_limit(1_000);
        let mut state = 1_u64;
        let mut parts_after = |quantiles: &mut Quantiles, values: u64| {
            for _ in 0..values {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                quantiles.add(1.0 + (state >> 44) as f64);
            }
            match &quantiles.store {
                Store::Histogram(histogram) => histogram.counts.len(),
                Store::Exact { .. } => panic!("past the limit the values must be gone"),
            }
        };
        let early = parts_after(&mut quantiles, 10_000);
        let late = parts_after(&mut quantiles, 1_000_000);
        // 1 to 2^20: twenty powers of two of 4096 parts.
        assert!(early <= 20 * 4096 + 1 && late <= 20 * 4096 + 1, "{early} then {late}");
        assert!(!quantiles.is_exact());
    }

    proptest! {
        #[test]
        fn exact_answers_equal_those_of_a_sorted_vector(
            mut values in prop::collection::vec(0.0..1e12_f64, 1..300),
            level in 0.0..=1.0_f64,
        ) {
            let mut quantiles = Quantiles::new();
            values.iter().for_each(|&value| quantiles.add(value));
            values.sort_by(f64::total_cmp);
            prop_assert_eq!(quantiles.at(level), Some(nearest_rank(&values, level)));
        }

        #[test]
        fn a_histogram_is_within_two_in_ten_thousand(
            mut values in prop::collection::vec(
                prop_oneof![1.0..2.0_f64, 1.0..1e3_f64, 1e3..1e12_f64, 1e-6..1.0_f64, Just(0.0)], 20..300),
            level in 0.0..=1.0_f64,
        ) {
            let mut quantiles = Quantiles::with_exact_limit(10);
            values.iter().for_each(|&value| quantiles.add(value));
            values.sort_by(f64::total_cmp);
            let (found, exact) = (quantiles.at(level).unwrap(), nearest_rank(&values, level));
            prop_assert!((found - exact).abs() <= exact * 2e-4, "{} for {}", found, exact);
        }
    }
}
