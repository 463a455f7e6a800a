//! By how much clocks differ.

use core::fmt;

use crate::{Bytes, Duration};

/// How far the rate of a clock may lie from its nominal rate, either way: 0 to 1 in steps of one in a thousand million.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Skew(u64);

impl Skew {
    /// Clocks that agree.
    pub const ZERO: Self = Self(0);

    /// So many parts in a thousand million.
    pub const fn from_ppb(ppb: u64) -> Self {
        Self(ppb)
    }
    /// So many parts in a million.
    ///
    /// # Panics
    /// When that overflows 64 bits in parts per thousand million.
    pub const fn from_ppm(ppm: u64) -> Self {
        Self(ppm * 1_000)
    }
    /// Parts in a thousand million.
    pub const fn as_ppb(self) -> u64 {
        self.0
    }
    /// The longest time, rounded up, that a clock may show while nominally `span` passes.
    pub const fn longest(self, span: Duration) -> Duration {
        let more = (span.as_ps() as u128 * self.0 as u128).div_ceil(1_000_000_000);
        span.saturating_add(Duration::from_ps(more as u64))
    }
    /// The most, rounded up, that a link may carry while it nominally carries `bytes`.
    pub const fn most(self, bytes: Bytes) -> Bytes {
        let more = (bytes.get() as u128 * self.0 as u128).div_ceil(1_000_000_000);
        Bytes::new(bytes.get().saturating_add(more as u64))
    }
    /// Whether clocks agree.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// As "100ppm" or "7ppb".
impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_scaled(f, self.0, &[(1_000, "ppm"), (1, "ppb")])
    }
}
