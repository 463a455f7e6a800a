//! Rates of data.

use core::fmt;

use crate::{Bytes, Duration};

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

const PS_PER_SECOND: u128 = 1_000_000_000_000;

impl Rate {
    /// Zero rate.
    pub const ZERO: Self = Self(0);
    /// Unlimited rate.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns `n` bits per second.
    #[inline]
    pub const fn from_bps(n: u64) -> Self {
        Self(n)
    }
    /// Returns `n` times 10^9 bits per second.
    #[inline]
    pub const fn from_gbps(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }
    /// Returns the rate in bits per second.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Returns the rate in units of 10^9 bits per second, for display.
    pub fn as_gbps_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Returns whether the rate is zero.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// Returns the time for `amount` at this rate, rounded up to a picosecond; at most [`Duration::MAX`].
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub const fn time_for(self, amount: Bytes) -> Duration {
        assert!(self.0 > 0, "a rate of zero never finishes");
        let bits_ps = amount.get() as u128 * 8 * PS_PER_SECOND;
        let ps = bits_ps.div_ceil(self.0 as u128);
        Duration::from_ps(if ps > u64::MAX as u128 { u64::MAX } else { ps as u64 })
    }
    /// Returns the amount in `span` at this rate, rounded down to a byte; at most [`Bytes::MAX`].
    #[inline]
    pub const fn amount_in(self, span: Duration) -> Bytes {
        let bytes = self.0 as u128 * span.as_ps() as u128 / (8 * PS_PER_SECOND);
        Bytes::new(if bytes > u64::MAX as u128 { u64::MAX } else { bytes as u64 })
    }
    /// Returns the picoseconds per byte if they are an integer (all Ethernet rates from 10 Gb/s up).
    #[inline]
    pub const fn whole_ps_per_byte(self) -> Option<u64> {
        let ps = 8 * PS_PER_SECOND as u64;
        if self.0 > 0 && ps.is_multiple_of(self.0) { Some(ps / self.0) } else { None }
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
/// Formats the shortest exact text: "40Gbps".
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_scaled(
            f,
            self.0,
            &[(1_000_000_000_000, "Tbps"), (1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "Kbps"), (1, "bps")],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_rates_are_whole_picoseconds_per_byte() {
        for gbps in [10, 25, 40, 50, 100, 200, 400, 800, 1600] {
            let rate = Rate::from_gbps(gbps);
            let ps = rate.whole_ps_per_byte().expect("a whole number of picoseconds");
            assert_eq!(rate.time_for(Bytes::new(1086)).as_ps(), 1086 * ps);
            assert_eq!(rate.amount_in(Duration::from_ps(1086 * ps)), Bytes::new(1086));
        }
        assert_eq!(Rate::from_gbps(2880).whole_ps_per_byte(), None);
        assert_eq!(Rate::from_gbps(2880).time_for(Bytes::new(9)).as_ps(), 25);
        assert_eq!(Rate::from_gbps(2880).time_for(Bytes::new(10)).as_ps(), 28);
    }

    #[test]
    fn what_takes_longer_than_can_be_counted_takes_for_ever() {
        let slow = Rate::from_bps(1);
        let most = u64::MAX / 8_000_000_000_000;
        assert_eq!(slow.time_for(Bytes::new(most)).as_ps(), most * 8_000_000_000_000);
        for bytes in [most + 1, 9_000_000, u64::MAX] {
            assert_eq!(slow.time_for(Bytes::new(bytes)), Duration::MAX);
        }
        assert_eq!(Rate::MAX.time_for(Bytes::MAX).as_ps(), 8_000_000_000_000);
    }

    #[test]
    fn what_is_more_than_can_be_counted_is_the_most() {
        let second = Duration::from_ps(PS_PER_SECOND as u64);
        assert_eq!(Rate::MAX.amount_in(second), Bytes::new(u64::MAX / 8));
        assert_eq!(Rate::MAX.amount_in(second * 9), Bytes::MAX);
        assert_eq!(Rate::MAX.amount_in(Duration::MAX), Bytes::MAX);
    }
}
