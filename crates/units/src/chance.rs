//! Probabilities.

use core::fmt;

/// A probability: 0 to 1 in steps of 2^-64 (one is exact).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Chance(u64);

impl Chance {
    /// Probability zero.
    pub const NEVER: Self = Self(0);
    /// Probability one.
    pub const ALWAYS: Self = Self(u64::MAX);

    /// Returns the probability nearest to `p`; `None` unless 0 <= p <= 1.
    pub fn from_f64(p: f64) -> Option<Self> {
        // `as` saturates, so that 1.0 becomes ALWAYS.
        (0.0..=1.0).contains(&p).then_some(Self((p * 18_446_744_073_709_551_616.0) as u64))
    }
    /// Returns `numerator / denominator`, at most 1.
    ///
    /// # Panics
    /// If the denominator is zero.
    pub const fn ratio(numerator: u64, denominator: u64) -> Self {
        assert!(denominator > 0, "a ratio needs a denominator");
        if numerator >= denominator {
            return Self::ALWAYS;
        }
        Self((((numerator as u128) << 64) / denominator as u128) as u64)
    }
    /// Returns the probability that at least one of `n` independent events of this probability happens: 1 - (1 - p)^n.
    pub const fn of_any(self, mut n: u64) -> Self {
        // The union of two is p + q - pq, exact to one step; that of n by doubling.
        const fn either(p: u64, q: u64) -> u64 {
            let (p, q) = (p as u128, q as u128);
            let sum = p + q - ((p * q) >> 64);
            if sum > u64::MAX as u128 { u64::MAX } else { sum as u64 }
        }
        let (mut any, mut power) = (0, self.0);
        while n > 0 {
            if n & 1 == 1 {
                any = either(any, power);
            }
            power = either(power, power);
            n >>= 1;
        }
        Self(any)
    }
    /// Returns the probability as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }
    /// Returns the complementary probability as a number from 0 to 1.
    pub fn of_not(self) -> f64 {
        if self == Self::ALWAYS { 0.0 } else { !self.0 as f64 / 18_446_744_073_709_551_616.0 }
    }
    /// Returns whether a uniform 64-bit draw hits.
    #[inline]
    pub const fn hits(self, draw: u64) -> bool {
        self.0 == u64::MAX || draw < self.0
    }
    /// Returns whether the probability is zero.
    #[inline]
    pub const fn is_never(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}
impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::Chance;

    #[test]
    fn any_of_several() {
        for (p, n) in [(0.5_f64, 3), (0.25, 1), (1e-3, 1_000), (1e-12, 8_688), (1e-15, 72_000), (0.3, 100), (0.9, 0)] {
            let expected = -(n as f64 * (-p).ln_1p()).exp_m1();
            let found = Chance::from_f64(p).unwrap().of_any(n).as_f64();
            assert!((found - expected).abs() <= 1e-4 * expected, "{p}, {n}: {found}, not {expected}");
        }
        assert_eq!(Chance::ALWAYS.of_any(7), Chance::ALWAYS);
        assert_eq!(Chance::NEVER.of_any(u64::MAX), Chance::NEVER);
    }
}
