//! End-to-end credits, as the requester uses them (InfiniBand architecture, volume 1, section 9.7.7.2).
//!
//! Each positive acknowledgement advertises receive requests. Their number plus the number of acknowledged requests
//! that have consumed one is a limit: how many requests that consume one may begin in all. Receive requests are never
//! taken back, so the highest limit counts, in whatever order acknowledgements arrive.
//!
//! At the limit, one packet asks for new credits: at once as long as the other side has advertised nothing, and again
//! whenever it has advertised nothing new for a while, because unrequested advertisements may be lost. The packet is
//! the next request, or its first packet: if no receive request is ready for it, an RNR NAK is the response.

use selvedge_units::Instant;

use super::standard::{NO_SOONER, OFTEN};
use crate::verbs::attributes::Terms;

/// End-to-end credits of one connection, at the requester.
#[derive(Debug, Default)]
pub(super) struct Credits {
    limit: Limit,
    /// Number of requests that have begun and consume a receive request.
    pub(super) begun: u64,
    /// Number of requests that consume a receive request and have left the queue.
    pub(super) ended: u64,
    /// Number of packets of the newest request that wait for the limit.
    pub(super) owed: u64,
    /// Time at which a packet asks for new credits.
    asks_at: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Limit {
    /// The other side has advertised nothing yet.
    #[default]
    Unknown,
    /// Number of requests that consume a receive request and may begin in all.
    Known(u64),
    /// The other side does not use credits.
    Unlimited,
}

impl Credits {
    /// Creates the credits of a connection; with credits off, nothing is limited.
    pub(super) fn new(terms: &Terms) -> Self {
        let limit = if terms.init.options.credits { Limit::Unknown } else { Limit::Unlimited };
        Self { limit, ..Self::default() }
    }
    /// Handles an acknowledgement that advertises receive requests in addition to those that `consumed` requests have
    /// consumed; `None`: the other side does not use credits.
    pub(super) fn on_advertised(&mut self, consumed: u64, advertised: Option<u32>) {
        let limit = match (self.limit, advertised) {
            (Limit::Unlimited, _) | (_, None) => Limit::Unlimited,
            (Limit::Unknown, Some(more)) => Limit::Known(consumed + u64::from(more)),
            (Limit::Known(before), Some(more)) => Limit::Known(before.max(consumed + u64::from(more))),
        };
        if limit != self.limit {
            self.limit = limit;
            self.asks_at = None;
        }
    }
    /// Returns whether credits limit requests at all.
    pub(super) fn counts(&self) -> bool {
        self.limit != Limit::Unlimited
    }
    /// Returns whether `begun` requests that consume a receive request may have begun.
    pub(super) fn allow(&self, begun: u64) -> bool {
        match self.limit {
            Limit::Unknown => false,
            Limit::Known(limit) => begun <= limit,
            Limit::Unlimited => true,
        }
    }
    /// Returns whether a packet may leave beyond the limit, to ask for new credits. The time of the next such packet is
    /// stored in place of `asks_at`.
    pub(super) fn may_ask(&mut self, now: Instant, terms: &Terms, asks_at: &mut Option<Instant>) -> bool {
        let interval = terms.timeout.map_or(NO_SOONER, |timeout| (timeout / OFTEN).max(NO_SOONER).min(timeout));
        let asks = match *asks_at {
            Some(at) => at <= now,
            None => self.limit == Limit::Unknown,
        };
        if asks || asks_at.is_none() {
            *asks_at = Some(now + interval);
        }
        self.asks_at = *asks_at;
        asks
    }
    /// Takes the time at which a packet asks for new credits; the caller may store it again.
    pub(super) fn take_asks_at(&mut self) -> Option<Instant> {
        self.asks_at.take()
    }
    pub(super) fn asks_at(&self) -> Option<Instant> {
        self.asks_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_in_any_order_give_the_highest_limit() {
        let mut credits = Credits::default();
        assert!(!credits.allow(1));
        credits.on_advertised(3, Some(4));
        credits.on_advertised(1, Some(2));
        assert!(credits.allow(7) && !credits.allow(8));
        credits.on_advertised(7, Some(0));
        assert!(credits.allow(7) && !credits.allow(8));
        credits.on_advertised(0, None);
        credits.on_advertised(7, Some(0));
        assert!(credits.allow(u64::MAX) && !credits.counts());
    }
}
