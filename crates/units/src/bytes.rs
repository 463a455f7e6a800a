//! Amounts of data.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// An amount of data in bytes. "KB" is 1,000 bytes, as in the papers; "KiB" is 1,024.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(u64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);
    /// The largest amount, more than any buffer.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns `n` bytes.
    #[inline]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// Returns `n` times 1,000 bytes.
    #[inline]
    pub const fn from_kb(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// Returns the number of bytes.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// Returns `self - other`, or zero.
    #[inline]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// Returns the number of pieces of `piece` bytes; the last may be short.
    ///
    /// # Panics
    /// If `piece` is zero.
    #[inline]
    pub const fn pieces(self, piece: Self) -> u64 {
        self.0.div_ceil(piece.0)
    }
    /// Returns whether the amount is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add for Bytes {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}
impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}
impl Sub for Bytes {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}
impl SubAssign for Bytes {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Bytes {
    type Output = Self;
    #[inline]
    fn mul(self, times: u64) -> Self {
        Self(self.0 * times)
    }
}
impl core::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
/// Formats the shortest exact text: "1024B", "240KB".
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_scaled(f, self.0, &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB"), (1, "B")])
    }
}
