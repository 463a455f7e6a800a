//! Log of the transmissions in flight: when each segment left, and what had been delivered by then.
//!
//! First transmissions form one queue, which is in the order of time and of octets alike; retransmissions form another,
//! in the order of time. Segments sent within one tick of the time stamp clock share an entry, which has the times of
//! the first and of the last: a delivery counts from the former, a loss from the latter. Entries leave when their
//! octets are acknowledged, so that there are no more of them than segments in flight.

use alloc::collections::VecDeque;

use selvedge_units::{Instant, Octet};

use super::connection::clock;

/// A transmission of one or more segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) start: Octet,
    pub(super) end: Octet,
    /// Time at which the first of the segments left.
    pub(super) since: Instant,
    /// Time at which the last of the segments left.
    pub(super) at: Instant,
    pub(super) is_again: bool,
    /// Whether this is a tail loss probe that was sent before.
    pub(super) is_tail: bool,
    /// Whether the application limited the rate at that time.
    pub(super) is_app_limited: bool,
    /// Octets delivered by then, and the time of the last delivery.
    pub(super) delivered: u64,
    pub(super) delivered_at: Instant,
    /// Time at which the segment left whose delivery was the last.
    pub(super) first_at: Instant,
}

/// Log of the transmissions in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    first: VecDeque<Sent>,
    again: VecDeque<Sent>,
}

impl Log {
    /// Adds a transmission, which is not earlier than any other.
    pub(super) fn add(&mut self, sent: Sent) {
        if sent.is_again {
            return self.again.push_back(sent);
        }
        match self.first.back_mut() {
            Some(last) if last.end == sent.start && clock(last.since) == clock(sent.at) => {
                *last = Sent { start: last.start, since: last.since, ..sent };
            }
            _ => self.first.push_back(sent),
        }
    }

    /// Drops what was acknowledged.
    pub(super) fn forget_before(&mut self, acked: Octet) {
        while self.first.front().is_some_and(|sent| sent.end <= acked) {
            self.first.pop_front();
        }
        while self.again.front().is_some_and(|sent| sent.end <= acked) {
            self.again.pop_front();
        }
    }
    /// Drops all retransmissions, which count as lost or as unnecessary.
    pub(super) fn forget_again(&mut self) {
        self.again.clear();
    }

    /// Returns the first transmission of an octet in flight.
    pub(super) fn first_of(&self, octet: Octet) -> Option<&Sent> {
        let at = self.first.partition_point(|sent| sent.end <= octet);
        self.first.get(at).filter(|sent| sent.start <= octet)
    }
    /// Returns the last transmission of new octets.
    pub(super) fn last(&self) -> Option<&Sent> {
        self.first.back()
    }
    /// Returns the retransmissions, the oldest first.
    pub(super) fn again(&self) -> impl DoubleEndedIterator<Item = &Sent> {
        self.again.iter()
    }
    pub(super) fn oldest_again(&self) -> Option<&Sent> {
        self.again.front()
    }
    pub(super) fn drop_oldest_again(&mut self) {
        self.again.pop_front();
    }

    /// Returns the octet before which every octet was first sent earlier than the one that left at `at` and ended at
    /// `end` (`RACK_sent_after`; RFC 8985, section 5.2).
    pub(super) fn sent_before(&self, at: Instant, end: Octet) -> Octet {
        let index = self.first.partition_point(|sent| sent.since < at);
        match self.first.get(index) {
            Some(sent) if sent.since == at => end.clamp(sent.start, sent.end),
            Some(sent) => sent.start,
            None => self.first.back().map_or(Octet::SYN, |sent| sent.end),
        }
    }
    /// Returns the octet before which every octet was first sent at `limit` or earlier.
    pub(super) fn sent_until(&self, limit: Instant) -> Octet {
        let index = self.first.partition_point(|sent| sent.at <= limit);
        let last = index.checked_sub(1).and_then(|index| self.first.get(index));
        last.map_or(Octet::SYN, |sent| sent.end)
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::Duration;

    use super::*;

    fn sent(start: u64, end: u64, ns: u64, is_again: bool) -> Sent {
        let at = Instant::ZERO + Duration::from_ns(ns);
        let (start, end) = (Octet::new(start), Octet::new(end));
        let (delivered_at, first_at) = (Instant::ZERO, Instant::ZERO);
        Sent {
            start,
            end,
            since: at,
            at,
            is_again,
            is_tail: false,
            is_app_limited: false,
            delivered: 0,
            delivered_at,
            first_at,
        }
    }

    #[test]
    fn segments_of_one_tick_share_an_entry() {
        let mut log = Log::default();
        for (n, ns) in [100, 200, 999, 1_000, 2_500].into_iter().enumerate() {
            log.add(sent(n as u64 * 10, n as u64 * 10 + 10, ns, false));
        }
        assert_eq!(log.first.len(), 3);
        assert_eq!(log.first_of(Octet::new(5)).map(|sent| sent.at), Some(Instant::ZERO + Duration::from_ns(999)));
        log.forget_before(Octet::new(25));
        assert_eq!(log.first.len(), 3, "half of the first entry is still in flight");
        log.forget_before(Octet::new(30));
        assert_eq!(log.first.len(), 2);
        assert!(log.first_of(Octet::new(29)).is_none() && log.first_of(Octet::new(50)).is_none());
    }

    #[test]
    fn times_divide_the_octets() {
        let mut log = Log::default();
        for n in 0..5 {
            log.add(sent(n * 10, n * 10 + 10, n * 10_000, false));
        }
        let before = |ns, end| log.sent_before(Instant::ZERO + Duration::from_ns(ns), Octet::new(end)).index();
        assert_eq!([before(0, 5), before(15_000, 1), before(20_000, 30), before(90_000, 7)], [5, 20, 30, 50]);
        let until = |ns| log.sent_until(Instant::ZERO + Duration::from_ns(ns)).index();
        assert_eq!([until(0), until(9_999), until(10_000), until(99_999)], [10, 10, 20, 50]);
    }
}
