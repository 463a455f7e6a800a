//! Round-trip times of a tunnel or of one of its paths, and the timeout computed from them (RFC 6298).

use selvedge_units::Duration;

/// Statistics of round-trip times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct RoundTrips {
    /// Number of samples.
    pub samples: u64,
    /// The newest sample.
    pub latest: Duration,
    /// The smallest sample.
    pub least: Duration,
    /// Smoothed round-trip time: SRTT.
    pub smoothed: Duration,
    /// Mean deviation: RTTVAR.
    pub variation: Duration,
}

impl RoundTrips {
    /// Adds a sample (RFC 6298, section 2, with alpha = 1/8 and beta = 1/4).
    pub(super) fn add(&mut self, sample: Duration) {
        if self.samples == 0 {
            (self.smoothed, self.variation, self.least) = (sample, sample / 2, sample);
        } else {
            let (low, high) = (self.smoothed.min(sample), self.smoothed.max(sample));
            self.variation = self.variation - self.variation / 4 + (high - low) / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + sample / 8;
            self.least = self.least.min(sample);
        }
        self.samples += 1;
        self.latest = sample;
    }

    /// Returns the smoothed time plus four deviations; `None` before the first sample.
    pub(super) fn bound(&self) -> Option<Duration> {
        (self.samples > 0).then(|| self.smoothed.saturating_add(self.variation.saturating_mul(4)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_equations_of_rfc_6298() {
        let us = Duration::from_us;
        let mut trips = RoundTrips::default();
        assert_eq!(trips.bound(), None);
        trips.add(us(40));
        assert_eq!(trips.bound(), Some(us(40 + 4 * 20)));
        // RTTVAR = 3/4 * 20 + 1/4 * 40, SRTT = 7/8 * 40 + 1/8 * 80.
        trips.add(us(80));
        assert_eq!(trips.bound(), Some(us(45 + 4 * 25)));
        assert_eq!((trips.least, trips.latest, trips.samples), (us(40), us(80), 2));
    }
}
