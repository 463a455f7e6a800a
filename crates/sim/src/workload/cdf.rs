//! Distributions given by points.

use selvedge_units::Bytes;

use super::sizes::packets_between;
use crate::ConfigError;

/// A distribution of flow sizes: points of its cumulative distribution function.
///
/// Between two points, all sizes above the first up to the second are equally likely (linear interpolation). Two points
/// of the same size are a step, and so is a first point above zero probability.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cdf {
    /// Points as `(size, P(X <= size) in units of 2^-64)`, both non-decreasing, the last at `u64::MAX`.
    points: Vec<(Bytes, u64)>,
}

impl Cdf {
    /// Creates the distribution through `points`: pairs of a size and the fraction of flows that are no larger.
    ///
    /// # Errors
    /// No points; sizes or fractions that decrease or are out of range; a last fraction other than 1; only sizes of
    /// zero. Keys are "\[3\]", the position in `points`.
    pub fn new(points: &[(Bytes, f64)]) -> Result<Self, ConfigError> {
        let Some(&(largest, last)) = points.last() else {
            return Err(ConfigError::new("", "a distribution without points: give at least one, as 1000 B at 1.0"));
        };
        let mut before = (Bytes::ZERO, 0.0);
        for (n, &(size, fraction)) in points.iter().enumerate() {
            let error = |message| Err(ConfigError::new(&format!("[{n}]"), message));
            if !(0.0..=1.0).contains(&fraction) {
                return error(format!("the cumulative fraction {fraction} is outside of 0 to 1"));
            }
            if size < before.0 {
                return error(format!("sizes must not decrease, found {size} after {}", before.0));
            }
            if fraction < before.1 {
                return error(format!("cumulative fractions must not decrease, found {fraction} after {}", before.1));
            }
            if size > LARGEST_FLOW {
                return error(format!("{size} is more than any flow can have ({LARGEST_FLOW})"));
            }
            before = (size, fraction);
        }
        if last != 1.0 {
            let message = format!("the last cumulative fraction must be 1 (100 %), found {last}");
            return Err(ConfigError::new(&format!("[{}]", points.len() - 1), message));
        }
        if largest.is_zero() {
            return Err(ConfigError::new("", "every size is zero: a flow has at least one byte"));
        }
        // `as` saturates, so that 1.0 becomes u64::MAX.
        let scaled = points.iter().map(|&(size, fraction)| (size, (fraction * 18_446_744_073_709_551_616.0) as u64));
        Ok(Self { points: scaled.collect() })
    }
    /// Returns the points: `(size, P(X <= size) in units of 2^-64)`.
    pub fn points(&self) -> &[(Bytes, u64)] {
        &self.points
    }
    /// Returns the size at which the distribution reaches a uniform 64-bit `draw`; at least one byte.
    pub fn at(&self, draw: u64) -> Bytes {
        let upper = self.points.partition_point(|&(_, reached)| reached <= draw).min(self.points.len() - 1);
        let (high, reached) = self.points[upper];
        let Some(&(low, passed)) = upper.checked_sub(1).map(|lower| &self.points[lower]) else {
            return high.max(Bytes::new(1));
        };
        let width = u128::from((high - low).get());
        if width == 0 || reached <= passed {
            return high.max(Bytes::new(1));
        }
        let part = u128::from(draw.saturating_sub(passed)) * width / u128::from(reached - passed);
        // Sizes are the integers above `low`, up to `high`.
        low + Bytes::new((part as u64 + 1).min(width as u64))
    }
    /// Returns the mean size in bytes, exact but for the last rounding.
    pub fn mean(&self) -> f64 {
        let mut twice = 0u128;
        let mut before = (Bytes::ZERO, 0);
        for (n, &(size, reached)) in self.points.iter().enumerate() {
            let step = n == 0 || size == before.0;
            let sum = if step { 2 * size.get().max(1) } else { before.0.get() + size.get() + 1 };
            twice += u128::from(sum) * u128::from(reached - before.1);
            before = (size, reached);
        }
        twice as f64 / 2.0 / u64::MAX as f64
    }
    /// Returns the mean number of packets, each of which carries up to `payload`.
    pub fn mean_packets(&self, payload: Bytes) -> f64 {
        let mut sum = 0.0;
        let mut before = (Bytes::ZERO, 0);
        for (n, &(size, reached)) in self.points.iter().enumerate() {
            let packets = if n == 0 || size == before.0 {
                size.max(Bytes::new(1)).pieces(payload) as f64
            } else {
                packets_between(before.0, size, payload)
            };
            sum += packets * (reached - before.1) as f64;
            before = (size, reached);
        }
        sum / u64::MAX as f64
    }
}

/// Largest size of a flow: a thousand terabytes.
pub const LARGEST_FLOW: Bytes = Bytes::new(1_000_000_000_000_000);

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;

    fn kb(points: &[(u64, f64)]) -> Vec<(Bytes, f64)> {
        points.iter().map(|&(size, fraction)| (Bytes::from_kb(size), fraction)).collect()
    }
    fn web_search() -> Cdf {
        let points = [(0, 0.0), (10, 0.15), (20, 0.2), (30, 0.3), (50, 0.4), (80, 0.53), (200, 0.6), (1000, 0.7)];
        let tail = [(2000, 0.8), (5000, 0.9), (10_000, 0.97), (30_000, 1.0)];
        Cdf::new(&kb(&[&points[..], &tail[..]].concat())).unwrap()
    }

    #[test]
    fn sampling_is_linear_between_points() {
        let cdf = Cdf::new(&[(Bytes::new(100), 0.0), (Bytes::new(200), 0.5), (Bytes::new(1200), 1.0)]).unwrap();
        let half = 1u64 << 63;
        assert_eq!(cdf.at(0), Bytes::new(101));
        assert_eq!(cdf.at(half / 2), Bytes::new(151));
        assert_eq!(cdf.at(half - 1), Bytes::new(200));
        assert_eq!(cdf.at(half), Bytes::new(201));
        assert_eq!(cdf.at(u64::MAX), Bytes::new(1200));
    }

    #[test]
    fn points_of_one_size_are_a_step() {
        let cdf = Cdf::new(&[(Bytes::new(1460), 0.0), (Bytes::new(1460), 0.5), (Bytes::new(2920), 1.0)]).unwrap();
        assert_eq!(cdf.at(0), Bytes::new(1460));
        assert_eq!(cdf.at((1 << 63) - 1), Bytes::new(1460));
        assert_eq!(cdf.at(1 << 63), Bytes::new(1461));
        let single = Cdf::new(&[(Bytes::new(64), 1.0)]).unwrap();
        assert_eq!((single.at(0), single.at(u64::MAX), single.mean()), (Bytes::new(64), Bytes::new(64), 64.0));
        let first = Cdf::new(&[(Bytes::ZERO, 0.5), (Bytes::new(4), 1.0)]).unwrap();
        assert_eq!((first.at(5), first.at(1 << 63)), (Bytes::new(1), Bytes::new(1)));
    }

    #[test]
    fn samples_reach_every_point_as_often_as_it_says() {
        let cdf = web_search();
        let mut rng = Rng::stream(5, Domain::FlowSize, 0);
        let samples: Vec<Bytes> = (0..200_000).map(|_| cdf.at(rng.next_u64())).collect();
        for &(size, reached) in cdf.points() {
            let expected = reached as f64 / u64::MAX as f64;
            let found = samples.iter().filter(|sample| **sample <= size).count() as f64 / 200_000.0;
            // Five standard deviations of a fraction of 200,000 samples.
            assert!((found - expected).abs() < 5.0 * 0.5 / 200_000f64.sqrt(), "{size}: {found}, not {expected}");
        }
        let mean = samples.iter().map(|sample| sample.get() as f64).sum::<f64>() / 200_000.0;
        assert!((mean / cdf.mean() - 1.0).abs() < 0.03, "{mean} {}", cdf.mean());
    }

    #[test]
    fn the_mean_is_that_of_the_literature() {
        // DCTCP's web search has a mean of about 1.71 MB (notes).
        assert!((web_search().mean() / 1.711e6 - 1.0).abs() < 0.001, "{}", web_search().mean());
        // Each of 1..=4 equally likely.
        assert_eq!(Cdf::new(&[(Bytes::ZERO, 0.0), (Bytes::new(4), 1.0)]).unwrap().mean(), 2.5);
    }

    #[test]
    fn the_mean_number_of_packets_is_that_of_all_sizes() {
        // 1 to 10 equally likely half of the time, else 10, 0 (which is one byte), each a quarter.
        let points = [(Bytes::ZERO, 0.25), (Bytes::new(10), 0.75), (Bytes::new(10), 1.0)];
        let cdf = Cdf::new(&points).unwrap();
        for payload in 1..12 {
            let packets = |size: u64| Bytes::new(size).pieces(Bytes::new(payload)) as f64;
            let expected = 0.5 * (1..=10).map(packets).sum::<f64>() / 10.0 + 0.25 * (packets(1) + packets(10));
            assert!((cdf.mean_packets(Bytes::new(payload)) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        type Case<'a> = (&'a [(u64, f64)], &'a str, &'a str);
        let cases: [Case<'_>; 7] = [
            (&[], "", "without points"),
            (&[(2, 0.5), (1, 1.0)], "[1]", "sizes must not decrease, found 1KB after 2KB"),
            (&[(1, 0.6), (2, 0.5), (3, 1.0)], "[1]", "must not decrease, found 0.5 after 0.6"),
            (&[(1, 0.5), (2, 0.9)], "[1]", "must be 1 (100 %), found 0.9"),
            (&[(1, 0.5), (2, 1.1)], "[1]", "1.1 is outside"),
            (&[(1, f64::NAN), (2, 1.0)], "[0]", "NaN is outside"),
            (&[(0, 0.5), (0, 1.0)], "", "every size is zero"),
        ];
        for (points, key, message) in cases {
            let error = Cdf::new(&kb(points)).unwrap_err();
            assert_eq!(error.key, key, "{error}");
            assert!(error.message.contains(message), "{error}");
        }
    }
}
