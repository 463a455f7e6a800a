//! Probabilities.

use core::fmt;

/// A probability: 0 to 1 in steps of 2^-64 (one is exact).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Chance(u64);

impl Chance {
    /// Never.
    pub const NEVER: Self = Self(0);
    /// Always.
    pub const ALWAYS: Self = Self(u64::MAX);

    /// The nearest chance to `p`; `None` unless 0 <= p <= 1.
    pub fn from_f64(p: f64) -> Option<Self> {
        // `as` saturates, so that 1.0 becomes ALWAYS.
        (0.0..=1.0).contains(&p).then_some(Self((p * 18_446_744_073_709_551_616.0) as u64))
    }
    /// `numerator / denominator`, at most 1.
    ///
    /// # Panics
    /// When the denominator is zero.
    pub const fn ratio(numerator: u64, denominator: u64) -> Self {
        assert!(denominator > 0, "a ratio needs a denominator");
        if numerator >= denominator {
            return Self::ALWAYS;
        }
        Self((((numerator as u128) << 64) / denominator as u128) as u64)
    }
    /// As a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }
    /// Whether a uniform 64-bit draw hits.
    #[inline]
    pub const fn hits(self, draw: u64) -> bool {
        self.0 == u64::MAX || draw < self.0
    }
    /// Whether it never happens.
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
