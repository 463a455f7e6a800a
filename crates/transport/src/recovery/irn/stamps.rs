//! What time stamps tell about losses, where paths keep order. It is not the paper's, whose retransmissions that are
//! lost again wait for a timeout: a NIC in software must allow a timeout for its threads to be scheduled, a thousand
//! round trips of the paper's.
//!
//! An acknowledgement echoes when the packet that triggered it was sent. What was sent before that packet and has not
//! arrived is lost (RACK's rule, RFC 8985, without allowance for reordering). Two times say which packets those are:
//! when the packet at the cumulative acknowledgement was sent again, and when any was sent again latest.

use selvedge_units::{Instant, Seq};

/// See above. Means something during recovery.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    /// The packet at the cumulative acknowledgement, if it was sent again, was so no later than this.
    head: Instant,
    /// The latest retransmission.
    latest: Instant,
    /// Every packet before this one was sent before one that has arrived; of those that were sent again, the first
    /// time.
    overtaken: Seq,
}

impl Stamps {
    pub(super) fn new() -> Self {
        Self { head: Instant::ZERO, latest: Instant::ZERO, overtaken: Seq::ZERO }
    }
    /// A packet is sent again at `now`; the one at the cumulative acknowledgement, if `is_head`.
    pub(super) fn on_resent(&mut self, now: Instant, is_head: bool) {
        self.latest = now;
        if is_head {
            self.head = now;
        }
    }
    /// The cumulative acknowledgement moved to another packet that was sent again: when is not remembered.
    pub(super) fn on_head_moved(&mut self) {
        self.head = self.latest;
    }
    /// A packet has arrived that was sent at `sent_at`; `before` is one past the last new packet before the latest
    /// retransmission.
    pub(super) fn on_arrival(&mut self, sent_at: Instant, before: Seq) {
        if sent_at >= self.latest {
            self.overtaken = self.overtaken.max(before);
        }
    }
    pub(super) fn overtaken(&self) -> Seq {
        self.overtaken
    }
    /// Whether a later packet that was sent at `sent_at` has overtaken the one at the cumulative acknowledgement. Of
    /// those that leave at the same time, the lower leave first.
    pub(super) fn is_head_overtaken(&self, sent_at: Instant) -> bool {
        sent_at >= self.head
    }
}
