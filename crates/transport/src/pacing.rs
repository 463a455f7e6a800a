//! Pacing: spaces a sender's packets so that they keep to a rate.
//!
//! Design notes.
//! 1. *A packet is a fluid.* Each packet drains at the current rate; when the rate changes, the remainder drains at the
//!    new rate. A rate therefore holds from the moment it is set, also behind a packet that left at a far slower one.
//! 2. *Lateness of up to one packet time is made up for.* A packet that was due but had to wait for others of the same
//!    NIC does not slow its flow down. A flow that was idle for longer does not catch up.

use selvedge_units::{Bytes, Duration, Instant, Rate};

/// Pacing of one flow: the rate, and when the next packet may be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacing {
    /// The earliest time of the next packet; [`Instant::ZERO`] before the first one.
    ready: Instant,
    rate: Rate,
    /// Picoseconds per byte in units of 2^-16, rounded up: one division per change of rate instead of one per packet.
    /// Zero: not computed yet for this rate.
    ps_per_byte: u64,
}

const FRACTION_BITS: u32 = 16;

impl Pacing {
    pub(crate) const fn at(rate: Rate) -> Self {
        Self { ready: Instant::ZERO, rate, ps_per_byte: 0 }
    }
    /// Returns the earliest time of the next packet.
    #[inline]
    pub(crate) const fn ready(&self) -> Instant {
        self.ready
    }
    /// Returns the rate that packets keep to.
    #[inline]
    pub(crate) const fn rate(&self) -> Rate {
        self.rate
    }
    /// Handles a packet that left at `now`. Only if the rate is limited, calls `frame` for the packet's size on the
    /// wire and returns that size.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, frame: impl FnOnce() -> Bytes) -> Option<Bytes> {
        if self.rate == Rate::MAX {
            return None;
        }
        if self.ps_per_byte == 0 {
            self.ps_per_byte = ps_per_byte(self.rate);
        }
        let frame = frame();
        let ps = (u128::from(frame.get()) * u128::from(self.ps_per_byte)) >> FRACTION_BITS;
        let time = Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX));
        let is_late_by_less = now.since(self.ready) <= time && self.ready != Instant::ZERO;
        let begin = if is_late_by_less { self.ready } else { now };
        self.ready = begin.saturating_add(time);
        Some(frame)
    }
    /// Changes the rate from `now` on.
    #[inline]
    pub(crate) fn change(&mut self, now: Instant, rate: Rate) {
        if self.ready > now {
            let left = (self.ready - now).as_ps() as f64 * self.rate.as_bps() as f64 / rate.as_bps().max(1) as f64;
            self.ready = now.saturating_add(Duration::from_ps(left as u64));
        }
        self.rate = rate;
        self.ps_per_byte = 0;
    }
}

fn ps_per_byte(rate: Rate) -> u64 {
    const BIT_PS_PER_BYTE: u64 = 8 * 1_000_000_000_000;
    (BIT_PS_PER_BYTE << FRACTION_BITS).div_ceil(rate.as_bps().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Bytes = Bytes::new(1_106);

    #[test]
    fn keeps_to_the_picosecond_at_ethernet_rates() {
        let now = Instant::from_ps(500);
        for gbps in [10, 25, 40, 100, 400] {
            let rate = Rate::from_gbps(gbps);
            let mut pacing = Pacing::at(rate);
            pacing.on_sent(now, || FRAME);
            assert_eq!(pacing.ready(), now + rate.time_for(FRAME));
        }
    }

    #[test]
    fn never_exceeds_an_awkward_rate() {
        for bps in [1, 3, 7_777_777, 39_999_999_999, u64::MAX - 1] {
            let mut pacing = Pacing::at(Rate::from_bps(bps));
            pacing.on_sent(Instant::ZERO, || FRAME);
            let exact = Duration::from_ps((1_106 * 8 * 1_000_000_000_000u128 / u128::from(bps)) as u64);
            assert!(pacing.ready() >= Instant::ZERO + exact, "{bps}");
        }
    }

    #[test]
    fn a_new_rate_holds_for_what_is_left_of_a_packet() {
        let us = |us| Instant::ZERO + Duration::from_us(us);
        // One microsecond per frame of a thousand bytes.
        let mut pacing = Pacing::at(Rate::from_gbps(8));
        pacing.on_sent(us(10), || Bytes::new(8_000));
        assert_eq!(pacing.ready(), us(18));
        pacing.change(us(14), Rate::from_gbps(16));
        assert_eq!(pacing.ready(), us(16));
        pacing.change(us(15), Rate::from_gbps(2));
        assert_eq!(pacing.ready(), us(23));
        pacing.change(us(20), Rate::MAX);
        assert_eq!(pacing.ready(), us(20));
        assert_eq!(pacing.on_sent(us(20), || unreachable!("no limit")), None);
    }

    #[test]
    fn a_packet_that_others_delay_does_not_slow_its_flow_down() {
        let rate = Rate::from_gbps(8);
        let mut pacing = Pacing::at(rate);
        let begin = Instant::from_ps(1);
        let mut now = begin;
        for turn in 0..1_000 {
            // Each packet is delayed by up to nine tenths of its transmission time.
            now = now.max(pacing.ready()) + rate.time_for(FRAME) * (turn % 10) / 10;
            pacing.on_sent(now, || FRAME);
        }
        assert_eq!(pacing.ready(), begin + rate.time_for(FRAME) * 1_000);
        // A flow that was idle for long does not catch up.
        now += Duration::from_ms(1);
        pacing.on_sent(now, || FRAME);
        assert_eq!(pacing.ready(), now + rate.time_for(FRAME));
    }
}
