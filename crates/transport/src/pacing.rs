//! Spaces a sender's packets so that they keep to a rate.

use selvedge_units::{Bytes, Duration, Instant, Rate};

/// When the next packet may go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    ready: Instant,
    /// The rate that `ps_per_byte` was computed for.
    rate: Rate,
    /// In units of 2^-16, rounded up: a division per change of rate instead of one per packet.
    ps_per_byte: u64,
}

const FRACTION_BITS: u32 = 16;

impl Pacing {
    pub(crate) const fn new() -> Self {
        Self { ready: Instant::ZERO, rate: Rate::MAX, ps_per_byte: 0 }
    }
    /// The earliest time for the next packet.
    #[inline]
    pub(crate) const fn ready(&self) -> Instant {
        self.ready
    }
    /// A packet left at `now`; asks for its size on the wire only if the rate is limited.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, rate: Rate, frame: impl FnOnce() -> Bytes) {
        if rate == Rate::MAX {
            return;
        }
        if rate != self.rate {
            self.set_rate(rate);
        }
        let ps = (u128::from(frame().get()) * u128::from(self.ps_per_byte)) >> FRACTION_BITS;
        self.ready = now.saturating_add(Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX)));
    }
    #[cold]
    fn set_rate(&mut self, rate: Rate) {
        const BIT_PS_PER_BYTE: u64 = 8 * 1_000_000_000_000;
        self.rate = rate;
        self.ps_per_byte = (BIT_PS_PER_BYTE << FRACTION_BITS).div_ceil(rate.as_bps().max(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_to_the_picosecond_at_ethernet_rates() {
        let mut pacing = Pacing::new();
        let now = Instant::from_ps(500);
        for gbps in [10, 25, 40, 100, 400] {
            let rate = Rate::from_gbps(gbps);
            pacing.on_sent(now, rate, || Bytes::new(1_106));
            assert_eq!(pacing.ready(), now + rate.time_for(Bytes::new(1_106)));
        }
    }

    #[test]
    fn never_exceeds_an_awkward_rate() {
        let mut pacing = Pacing::new();
        for bps in [1, 3, 7_777_777, 39_999_999_999, u64::MAX - 1] {
            pacing.on_sent(Instant::ZERO, Rate::from_bps(bps), || Bytes::new(1_106));
            let exact = Duration::from_ps((1_106 * 8 * 1_000_000_000_000u128 / u128::from(bps)) as u64);
            assert!(pacing.ready() >= Instant::ZERO + exact, "{bps}");
        }
    }
}
