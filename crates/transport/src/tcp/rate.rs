//! Samples of the rate of delivery (draft-cheng-iccrg-delivery-rate-estimation-00).

use selvedge_units::{Duration, Instant, Octet};

use super::sent::Sent;

/// State of a connection's delivery (section 3.1.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// C.delivered: octets delivered so far.
    pub(super) total: u64,
    /// C.delivered_time.
    at: Instant,
    /// C.first_sent_time.
    first_at: Instant,
    /// C.app_limited: end of the octets whose rate the application limits, counted as `total`; 0 for none.
    app_limited: u64,
}

/// Rate of delivery measured by one acknowledgement, and other circumstances that a model of the path may use.
#[derive(Clone, Copy, Debug)]
pub struct RateSample {
    /// Present time.
    pub now: Instant,
    /// Octets that the acknowledgement delivers, in order or not.
    pub acked: u64,
    /// Octets delivered so far.
    pub total: u64,
    /// Octets delivered in `interval`.
    pub delivered: u64,
    /// Time in which `delivered` octets arrived; zero if the acknowledgement gives no sample.
    pub interval: Duration,
    /// Octets that had been delivered when the newest of those acknowledged was sent.
    pub prior_delivered: u64,
    /// Whether the application limited the rate.
    pub is_app_limited: bool,
    /// Round-trip time of the newest segment acknowledged, unless it was retransmitted.
    pub rtt: Option<Duration>,
    /// Whether the receiver may have delayed the acknowledgement.
    pub is_maybe_delayed: bool,
    /// Smoothed round-trip time, after the first sample.
    pub srtt: Option<Duration>,
    /// Octets believed to be in the network before the acknowledgement.
    pub prior_in_flight: u64,
    /// Octets believed to be in the network after the acknowledgement.
    pub in_flight: u64,
    /// Octets that the acknowledgement shows to be lost.
    pub lost: u64,
    /// Progress of loss recovery after the acknowledgement.
    pub recovery: Recovery,
}

/// Progress of loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Recovery {
    /// Nothing is missing.
    None,
    /// Fast recovery.
    Fast,
    /// Recovery from a timeout.
    Timeout,
}

impl Delivery {
    pub(super) const fn new() -> Self {
        Self { total: 0, at: Instant::ZERO, first_at: Instant::ZERO, app_limited: 0 }
    }

    /// Returns the record of a transmission (section 3.2). `is_idle` tells that nothing was in flight before.
    pub(super) fn record(&mut self, now: Instant, start: Octet, end: Octet, is_again: bool, is_idle: bool) -> Sent {
        if is_idle {
            (self.at, self.first_at) = (now, now);
        }
        Sent {
            start,
            end,
            since: now,
            at: now,
            is_again,
            is_tail: false,
            is_app_limited: self.app_limited > 0,
            delivered: self.total,
            delivered_at: self.at,
            first_at: self.first_at,
        }
    }
    /// Counts `octets` as delivered, the newest of which were sent as `newest`; returns the sample's octets and
    /// interval (section 3.3). An interval below `min_rtt` is no sample: it would be that of a retransmission thought
    /// delivered.
    pub(super) fn on_delivered(
        &mut self,
        now: Instant,
        octets: u64,
        newest: Option<&Sent>,
        min_rtt: Option<Duration>,
    ) -> (u64, Duration) {
        if octets > 0 {
            (self.total, self.at) = (self.total + octets, now);
        }
        if self.app_limited > 0 && self.total > self.app_limited {
            self.app_limited = 0;
        }
        let Some(newest) = newest else { return (0, Duration::ZERO) };
        self.first_at = self.first_at.max(newest.at);
        let interval = newest.at.since(newest.first_at).max(now.since(newest.delivered_at));
        if min_rtt.is_some_and(|least| interval < least) {
            return (0, Duration::ZERO);
        }
        (self.total - newest.delivered, interval)
    }
    /// Marks what is in flight, `pipe` octets, as limited by the application (section 3.4).
    pub(super) fn limit(&mut self, pipe: u64) {
        self.app_limited = (self.total + pipe).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }
    fn octet(n: u64) -> Octet {
        Octet::new(n)
    }

    #[test]
    fn a_steady_stream_is_measured_at_its_rate() {
        // A segment of 1,000 octets every 10 us, each delivered after 100 us.
        let mut delivery = Delivery::new();
        let mut log = alloc::vec::Vec::new();
        for n in 0..60 {
            log.push(delivery.record(at(n * 10), octet(n * 1_000), octet((n + 1) * 1_000), false, n == 0));
            if n >= 10 {
                let newest = log[n as usize - 10];
                let (octets, interval) =
                    delivery.on_delivered(at(n * 10), 1_000, Some(&newest), Some(Duration::from_us(90)));
                if n >= 30 {
                    assert_eq!(octets as f64 / interval.as_us_f64(), 100.0, "segment {n}");
                }
            }
        }
    }

    #[test]
    fn a_burst_of_acknowledgements_does_not_make_a_path_fast() {
        // Ten segments sent 10 us apart are acknowledged together: the rate is that of sending.
        let mut delivery = Delivery::new();
        let mut last = None;
        for n in 0..11 {
            last = Some(delivery.record(at(n * 10), octet(n), octet(n + 1), false, n == 0));
        }
        let (octets, interval) = delivery.on_delivered(at(150), 10, last.as_ref(), None);
        assert_eq!(
            (octets, interval),
            (10, Duration::from_us(150)),
            "of the acknowledgements' 150 and the sender's 100"
        );
    }

    #[test]
    fn the_application_limits_until_what_it_had_in_flight_has_arrived() {
        let mut delivery = Delivery::new();
        delivery.limit(3_000);
        let limited = delivery.record(at(0), octet(0), octet(3_000), false, true);
        assert!(limited.is_app_limited);
        delivery.on_delivered(at(10), 3_000, Some(&limited), None);
        assert!(delivery.record(at(10), octet(3_000), octet(4_000), false, true).is_app_limited, "not yet beyond");
        delivery.on_delivered(at(20), 1, Some(&limited), None);
        assert!(!delivery.record(at(20), octet(4_000), octet(5_000), false, false).is_app_limited);
    }
}
