//! RACK: losses inferred from the times of transmissions (RFC 8985, section 6).

use selvedge_units::{Duration, Instant, Octet};

use super::connection::TICK;
use super::sent::Sent;

/// State of RACK, without the segments, which are in [`super::sent::Log`] and the scoreboard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// RACK.xmit_ts and RACK.end_seq: the delivered transmission that was sent last.
    latest: Option<(Instant, Octet)>,
    /// RACK.rtt: the round trip of the latest.
    rtt: Duration,
    /// RACK.min_RTT, and the time of that sample.
    min_rtt: Option<(Duration, Instant)>,
    /// Whether a segment arrived behind one that was sent later.
    has_seen_reordering: bool,
    /// RACK.dsack_round: end of the round trip in which no further duplicate counts.
    round: Option<Octet>,
    /// RACK.reo_wnd_mult.
    quarters: u64,
    /// RACK.reo_wnd_persist: recoveries until the multiplier is forgotten.
    persist: u32,
}

/// Recoveries without duplicates after which the reordering window is small again (section 6.2, step 4).
const PERSIST: u32 = 16;
/// Time for which a minimum holds. The RFC asks for a windowed minimum; Linux's window is five minutes.
const MINIMUM_LASTS: Duration = Duration::from_ms(300_000);

impl Rack {
    pub(super) const fn new() -> Self {
        let (latest, min_rtt, round) = (None, None, None);
        Self { latest, rtt: Duration::ZERO, min_rtt, has_seen_reordering: false, round, quarters: 1, persist: PERSIST }
    }

    /// Takes note of the delivered transmission that was sent last among those of an acknowledgement, up to `end`;
    /// `age` is that of the echoed time stamp (steps 1 and 2). A retransmission counts only if its own delivery was
    /// acknowledged, not that of the original.
    pub(super) fn on_delivered(&mut self, now: Instant, sent: &Sent, end: Octet, age: Option<Duration>) {
        let rtt = now.since(sent.since);
        if sent.is_again {
            // The stamp counts whole ticks: it may seem older than the transmission by less than one.
            let is_older = age.is_some_and(|age| age > rtt.saturating_add(TICK));
            if is_older || self.min_rtt.is_some_and(|(least, _)| rtt < least) {
                return;
            }
        } else if self.min_rtt.is_none_or(|(least, at)| rtt <= least || now.since(at) > MINIMUM_LASTS) {
            self.min_rtt = Some((rtt, now));
        }
        self.rtt = rtt;
        if self.latest.is_none_or(|latest| (sent.since, end) > latest) {
            self.latest = Some((sent.since, end));
        }
    }
    /// Takes note of a segment that arrived behind one that was sent later (step 3).
    pub(super) fn on_reordering(&mut self) {
        self.has_seen_reordering = true;
    }
    /// Takes note of a reported duplicate (step 4): once per round trip, the window grows by a quarter of the minimum
    /// round trip.
    pub(super) fn on_duplicate(&mut self, sent: Octet) {
        if self.round.is_none() {
            self.round = Some(sent);
            self.quarters += 1;
            self.persist = PERSIST;
        }
    }
    /// Takes note of an acknowledgement up to `acked`, before its duplicates.
    pub(super) fn on_acked(&mut self, acked: Octet) {
        if self.round.is_some_and(|end| acked >= end) {
            self.round = None;
        }
    }
    /// Takes note of the end of a recovery (step 4).
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.quarters = 1;
        }
    }

    /// Returns the time and the end of the delivered transmission that was sent last.
    pub(super) fn latest(&self) -> Option<(Instant, Octet)> {
        self.latest
    }
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|(least, _)| least)
    }
    /// Returns the time after which a transmission is lost if a later one was delivered: RACK.rtt and RACK.reo_wnd
    /// (steps 4 and 5). `is_hurried` tells that losses are repaired already, or that as many segments as make
    /// duplicate acknowledgements count were delivered.
    pub(super) fn patience(&self, srtt: Duration, is_hurried: bool) -> Duration {
        let least = self.min_rtt().unwrap_or_default();
        let window = match self.has_seen_reordering || !is_hurried {
            true => (least / 4).saturating_mul(self.quarters).min(srtt),
            false => Duration::ZERO,
        };
        self.rtt.saturating_add(window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }
    fn sent(at: Instant, is_again: bool) -> Sent {
        let (start, end) = (Octet::new(1), Octet::new(2));
        let (is_tail, is_app_limited, delivered) = (false, false, 0);
        Sent { start, end, since: at, at, is_again, is_tail, is_app_limited, delivered, delivered_at: at, first_at: at }
    }

    #[test]
    fn the_window_is_a_quarter_of_the_least_round_trip_and_grows_with_duplicates() {
        let mut rack = Rack::new();
        rack.on_delivered(at(100), &sent(at(0), false), Octet::new(2), None);
        let window = |rack: &Rack, hurried| rack.patience(Duration::from_us(90), hurried).as_ps() / 1_000_000 - 100;
        assert_eq!((window(&rack, false), window(&rack, true)), (25, 0));
        rack.on_reordering();
        assert_eq!(window(&rack, true), 25);
        for (acked, expected) in [(1, 50), (5, 50), (10, 75), (20, 90), (30, 90)] {
            rack.on_acked(Octet::new(acked));
            rack.on_duplicate(Octet::new(acked + 9));
            assert_eq!(window(&rack, true), expected, "at most the smoothed round trip");
        }
        for _ in 0..PERSIST {
            rack.on_recovered();
        }
        assert_eq!(window(&rack, true), 25);
    }

    #[test]
    fn a_retransmission_counts_if_it_was_what_arrived() {
        let mut rack = Rack::new();
        rack.on_delivered(at(100), &sent(at(0), false), Octet::new(2), None);
        // Its acknowledgement comes too soon, or echoes the original's stamp.
        rack.on_delivered(at(160), &sent(at(100), true), Octet::new(2), None);
        rack.on_delivered(at(210), &sent(at(100), true), Octet::new(2), Some(Duration::from_us(190)));
        assert_eq!(rack.latest(), Some((at(0), Octet::new(2))));
        rack.on_delivered(at(210), &sent(at(100), true), Octet::new(2), Some(Duration::from_us(110)));
        assert_eq!(rack.latest(), Some((at(100), Octet::new(2))));
        assert_eq!(rack.min_rtt(), Some(Duration::from_us(100)), "retransmissions are no minimum");
    }
}
