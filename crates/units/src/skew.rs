//! Clock skew.

use core::fmt;

use crate::{Bytes, Duration};

/// Largest relative deviation of a clock's rate from its nominal rate, in either direction: 0 to 1 in steps of 10^-9.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Skew(u64);

impl Skew {
    /// No deviation.
    pub const ZERO: Self = Self(0);

    /// Creates a skew of `ppb` parts in 10^9.
    pub const fn from_ppb(ppb: u64) -> Self {
        Self(ppb)
    }
    /// Creates a skew of `ppm` parts in 10^6.
    ///
    /// # Panics
    /// If the value in parts per 10^9 overflows 64 bits.
    pub const fn from_ppm(ppm: u64) -> Self {
        Self(ppm * 1_000)
    }
    /// Returns the skew in parts per 10^9.
    pub const fn as_ppb(self) -> u64 {
        self.0
    }
    /// Returns the longest time, rounded up, that a clock may show during a nominal `span`.
    pub const fn longest(self, span: Duration) -> Duration {
        let more = (span.as_ps() as u128 * self.0 as u128).div_ceil(1_000_000_000);
        span.saturating_add(Duration::from_ps(more as u64))
    }
    /// Returns the most bytes, rounded up, that a link may carry while its nominal capacity is `bytes`.
    pub const fn most(self, bytes: Bytes) -> Bytes {
        let more = (bytes.get() as u128 * self.0 as u128).div_ceil(1_000_000_000);
        Bytes::new(bytes.get().saturating_add(more as u64))
    }
    /// Returns whether there is no deviation.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// Formats as "100ppm" or "7ppb".
impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_scaled(f, self.0, &[(1_000, "ppm"), (1, "ppb")])
    }
}
