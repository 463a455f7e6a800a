//! A timeout computed from round-trip times like TCP's (RFC 6298).
//!
//! Acknowledgements echo the time stamp of the packet that triggered them, so each of them is a sample, retransmissions
//! included (RFC 7323 rather than Karn's rule). The clock is exact: its granularity G counts as zero.
//!
//! TCP's estimator is in `tcp/rto.rs`. The two are separate because they compute differently. Here, every
//! acknowledgement has the weight that RFC 6298 gives one sample, however many there are per round trip, the initial
//! timeout is a setting, and each term of an average is rounded separately (`srtt - srtt / 8 + rtt / 8`).

use selvedge_units::Duration;

/// An estimator of the round-trip time, its variation, and the timeout.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct RtoEstimator {
    /// The smoothed round-trip time; zero before the first sample.
    smoothed: Duration,
    variation: Duration,
    rto: Duration,
    min: Duration,
    max: Duration,
}

impl RtoEstimator {
    /// Creates an estimator without samples, whose timeout is `initial`.
    pub(crate) fn new(initial: Duration, min: Duration, max: Duration) -> Self {
        Self { smoothed: Duration::ZERO, variation: Duration::ZERO, rto: initial, min, max }
    }
    /// Returns the timeout.
    pub(crate) fn rto(&self) -> Duration {
        self.rto
    }
    /// Adds a sample (section 2, with alpha = 1/8, beta = 1/4, K = 4) and ends any back-off.
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        if self.smoothed.is_zero() {
            self.smoothed = rtt;
            self.variation = rtt / 2;
        } else {
            let (low, high) = (self.smoothed.min(rtt), self.smoothed.max(rtt));
            self.variation = self.variation - self.variation / 4 + (high - low) / 4;
            self.smoothed = self.smoothed - self.smoothed / 8 + rtt / 8;
        }
        self.rto = self.smoothed.saturating_add(self.variation * 4).max(self.min).min(self.max);
    }
    /// Doubles the timeout after it has passed (rule 5.5).
    pub(crate) fn back_off(&mut self) {
        self.rto = self.rto.saturating_add(self.rto).min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_us(us)
    }

    #[test]
    fn follows_the_equations_of_rfc_6298() {
        let mut estimator = RtoEstimator::new(us(320), us(1), us(10_000));
        assert_eq!(estimator.rto(), us(320));
        // SRTT = 40, RTTVAR = 20.
        estimator.on_sample(us(40));
        assert_eq!(estimator.rto(), us(120));
        // RTTVAR = 3/4 x 20 + 1/4 x |40 - 80| = 25, SRTT = 7/8 x 40 + 1/8 x 80 = 45.
        estimator.on_sample(us(80));
        assert_eq!(estimator.rto(), us(145));
    }

    #[test]
    fn backs_off_up_to_the_maximum_until_the_next_sample() {
        let mut estimator = RtoEstimator::new(us(320), us(100), us(1_000));
        for expected in [640, 1_000, 1_000] {
            estimator.back_off();
            assert_eq!(estimator.rto(), us(expected));
        }
        estimator.on_sample(us(10));
        assert_eq!(estimator.rto(), us(100));
    }
}
