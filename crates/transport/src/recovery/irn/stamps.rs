//! Detection of losses by time stamps, where paths keep order. The paper has no such rule: a retransmission that is
//! lost again waits for a timeout. A NIC in software must allow a timeout for its threads to be scheduled, a thousand
//! round trips of the paper's network.
//!
//! An acknowledgement echoes the send time of the packet that triggered it. Packets that were sent before that one and
//! have not arrived are lost (RACK's rule, RFC 8985, without allowance for reordering). Two times determine which
//! packets those are: the time of the retransmission at the cumulative acknowledgement, and the time of the latest
//! retransmission.

use selvedge_units::{Instant, Seq};

/// Send times of retransmissions, for the detection of losses. Valid during recovery.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    /// The latest possible time of the retransmission of the packet at the cumulative acknowledgement, if it was
    /// retransmitted.
    head: Instant,
    /// The time of the latest retransmission.
    latest: Instant,
    /// One past the last packet sent before some packet that has arrived; for retransmitted packets, the first
    /// transmission counts.
    overtaken: Seq,
}

impl Stamps {
    pub(super) fn new() -> Self {
        Self { head: Instant::ZERO, latest: Instant::ZERO, overtaken: Seq::ZERO }
    }
    /// Handles a retransmission at `now`; `is_head` says whether it is that of the packet at the cumulative
    /// acknowledgement.
    pub(super) fn on_resent(&mut self, now: Instant, is_head: bool) {
        self.latest = now;
        if is_head {
            self.head = now;
        }
    }
    /// Handles a move of the cumulative acknowledgement to another retransmitted packet, whose send time is not
    /// recorded.
    pub(super) fn on_head_moved(&mut self) {
        self.head = self.latest;
    }
    /// Handles the arrival of a packet that was sent at `sent_at`; `before` is one past the last new packet before the
    /// latest retransmission.
    pub(super) fn on_arrival(&mut self, sent_at: Instant, before: Seq) {
        if sent_at >= self.latest {
            self.overtaken = self.overtaken.max(before);
        }
    }
    pub(super) fn overtaken(&self) -> Seq {
        self.overtaken
    }
    /// Returns whether a later packet, which was sent at `sent_at`, has overtaken the one at the cumulative
    /// acknowledgement. Of packets sent at the same time, the lower ones leave first.
    pub(super) fn is_head_overtaken(&self, sent_at: Instant) -> bool {
        sent_at >= self.head
    }
}
