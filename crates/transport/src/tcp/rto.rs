//! TCP's retransmission timeout (RFC 6298).
//!
//! IRN's timeout, which the paper wants "as with TCP", is in `recovery/rto.rs`. The two are separate because they
//! differ in their arithmetic: here the clock has a granularity G, a round trip may be sampled often (RFC 7323,
//! appendix G), the initial timeout obeys the bounds, and averages move by a fraction of the distance, while IRN's
//! rounds each term separately.

use selvedge_units::Duration;

/// Smoothed round-trip time and the timeout derived from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct RetransmissionTimeout {
    /// SRTT and RTTVAR, after the first sample.
    measured: Option<(Duration, Duration)>,
    /// RTO, including back-off.
    timeout: Duration,
    shortest: Duration,
    longest: Duration,
}

/// The clock's granularity G.
const GRANULARITY: Duration = Duration::from_us(1);

impl RetransmissionTimeout {
    /// Creates an estimator without samples, whose timeout is `initial` (section 2, rule 2.1).
    pub(super) fn new(initial: Duration, shortest: Duration, longest: Duration) -> Self {
        Self { measured: None, timeout: initial.max(shortest).min(longest), shortest, longest }
    }

    /// Adds a sample of the round-trip time; about `samples` of them are taken per round trip (section 2, rules 2.2 to
    /// 2.4; RFC 7323, appendix G). Ends any back-off.
    pub(super) fn sample(&mut self, rtt: Duration, samples: u64) {
        let (srtt, rttvar) = match self.measured {
            None => (rtt, rtt / 2),
            Some((srtt, rttvar)) => {
                let distance = if srtt > rtt { srtt - rtt } else { rtt - srtt };
                (towards(srtt, rtt, 8 * samples), towards(rttvar, distance, 4 * samples))
            }
        };
        self.measured = Some((srtt, rttvar));
        self.timeout = (srtt + GRANULARITY.max(rttvar * 4)).max(self.shortest).min(self.longest);
    }
    /// Doubles the timeout after an expiry of the timer (section 5, rule 5.5).
    pub(super) fn back_off(&mut self) {
        self.timeout = Duration::from_ps(self.timeout.as_ps().saturating_mul(2)).min(self.longest);
    }
    /// Sets a timeout of at least `least` until data was sampled: the handshake took more than one SYN (section 5, rule
    /// 5.7).
    pub(super) fn distrust(&mut self, least: Duration) {
        self.timeout = self.timeout.max(least).min(self.longest);
    }
    /// Adapts the timeout after one that was spurious, by the round trip `rtt` that took so long (RFC 4015, section 4).
    pub(super) fn on_spurious(&mut self, rtt: Duration) {
        let (srtt, rttvar) = self.measured.unwrap_or_default();
        let (srtt, rttvar) = (rtt.max(srtt + GRANULARITY * 2), (rtt / 2).max(rttvar));
        self.measured = Some((srtt, rttvar));
        self.timeout = (srtt + GRANULARITY.max(rttvar * 4)).max(self.shortest).min(self.longest);
    }
    /// Returns RTO.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }
    /// Returns SRTT.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.measured.map(|(srtt, _)| srtt)
    }
}

/// Returns `from` moved towards `to` by one part in `parts`.
fn towards(from: Duration, to: Duration, parts: u64) -> Duration {
    if to > from { from + (to - from) / parts } else { from - (from - to) / parts }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_ms(ms)
    }

    #[test]
    fn follows_the_rules_of_section_2() {
        let mut rto = RetransmissionTimeout::new(ms(1_000), ms(1), ms(60_000));
        assert_eq!(rto.timeout(), ms(1_000));
        rto.sample(ms(100), 1);
        assert_eq!(rto.timeout(), ms(100 + 4 * 50));
        rto.sample(ms(180), 1);
        // RTTVAR = 3/4 * 50 + 1/4 * 80, SRTT = 7/8 * 100 + 1/8 * 180.
        assert_eq!(rto.timeout(), Duration::from_us(110_000 + 4 * 57_500));
        rto.back_off();
        rto.back_off();
        assert_eq!(rto.timeout(), Duration::from_us(4 * 340_000));
        rto.sample(ms(110), 1);
        assert_eq!(rto.timeout(), Duration::from_us(110_000 + 4 * 43_125));
    }

    #[test]
    fn stays_between_its_bounds() {
        let mut rto = RetransmissionTimeout::new(ms(1_000), ms(200), ms(3_000));
        rto.sample(ms(1), 1);
        assert_eq!(rto.timeout(), ms(200));
        for _ in 0..80 {
            rto.back_off();
        }
        assert_eq!(rto.timeout(), ms(3_000));
    }

    #[test]
    fn many_samples_per_round_trip_weigh_like_one() {
        let (mut often, mut once) = (
            RetransmissionTimeout::new(ms(1), ms(1), ms(60_000)),
            RetransmissionTimeout::new(ms(1), ms(1), ms(60_000)),
        );
        for rto in [&mut often, &mut once] {
            rto.sample(ms(100), 1);
        }
        once.sample(ms(200), 1);
        for _ in 0..50 {
            often.sample(ms(200), 50);
        }
        let (often, once) = (often.timeout().as_us_f64(), once.timeout().as_us_f64());
        assert!((often / once - 1.0).abs() < 0.05, "{often} {once}");
    }
}
