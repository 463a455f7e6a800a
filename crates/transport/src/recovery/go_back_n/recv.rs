//! The responder of go-back-N.

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Seq};
use selvedge_wire::AckKind;

use super::GoBackNParams;
use crate::recovery::{Answer, RecoveryReceiver, Unanswered};
use crate::role::{Cx, DataVerdict};

/// The responder: accepts packets in order and reports gaps.
#[derive(Clone, Debug)]
pub struct Recv {
    expected: Seq,
    /// The instant before which out-of-order packets trigger no NACK; [`Instant::ZERO`] if the next one does.
    silent_until: Instant,
    /// The time after a NACK in which its gap triggers no other.
    nack_interval: Duration,
    /// Whether a NACK also suppresses NACKs of other gaps.
    paced: bool,
    /// Packets in order per acknowledgement: 1 to acknowledge each, 0 for none.
    every: u16,
    /// Packets in order since the last acknowledgement.
    unacknowledged: u16,
    /// The time after the last acknowledgement, or the first packet, after which a packet in order is acknowledged.
    interval: Duration,
    /// The instant from which a packet in order is acknowledged; [`Instant::ZERO`] before the first packet.
    ack_due: Instant,
}

impl Recv {
    /// Creates a responder that expects the first packet.
    pub fn new(params: &GoBackNParams) -> Self {
        Self {
            expected: Seq::ZERO,
            silent_until: Instant::ZERO,
            nack_interval: params.nack_interval,
            paced: params.paced,
            every: params.ack_every,
            unacknowledged: 0,
            interval: params.ack_interval,
            ack_due: Instant::ZERO,
        }
    }
    /// Skips the next `packets`, which will not arrive because an answer takes their places (InfiniBand's Reads, whose
    /// request counts as many packets as its answer has).
    pub fn skip(&mut self, packets: u64) {
        self.expected += packets;
    }
    /// Handles the arrival of `packets` expected packets.
    #[inline(always)]
    fn advance(&mut self, packets: u64) {
        self.expected += packets;
        if !self.paced {
            self.silent_until = Instant::ZERO;
        }
    }
    /// Returns whether the packet that has just been accepted in order is acknowledged.
    #[inline(always)]
    fn acknowledges(&mut self, now: Instant, last: bool) -> bool {
        if self.every <= 1 {
            return self.every == 1;
        }
        self.unacknowledged += 1;
        if self.ack_due == Instant::ZERO {
            self.ack_due = now.saturating_add(self.interval);
        }
        last || self.unacknowledged >= self.every || now >= self.ack_due
    }
    /// Handles the sending of an acknowledgement, or of a NACK, which acknowledges all packets before it.
    #[inline(always)]
    fn on_answer(&mut self, now: Instant) {
        if self.every > 1 {
            self.unacknowledged = 0;
            self.ack_due = now.saturating_add(self.interval);
        }
    }
}

impl RecoveryReceiver for Recv {
    type Shared = ();

    #[inline]
    fn expected(&self) -> Seq {
        self.expected
    }

    #[inline(always)]
    fn unanswered(&self) -> Unanswered {
        match self.every {
            0 => Unanswered::ALL,
            // The first packet of the flow starts the time until the first acknowledgement.
            _ if self.ack_due == Instant::ZERO => Unanswered::NONE,
            every => Unanswered { packets: u64::from(every - 1 - self.unacknowledged), before: self.ack_due },
        }
    }

    #[inline(always)]
    fn take_unanswered(&mut self, packets: u64) {
        if packets > 0 {
            self.advance(packets);
            if self.every > 1 {
                self.unacknowledged += packets as u16;
            }
        }
    }

    #[inline]
    fn handle_data(&mut self, cx: &mut Cx<'_>, _: &mut (), seq: Seq, last: bool) -> Answer {
        let (verdict, ack) = if seq == self.expected {
            self.advance(1);
            (DataVerdict::Accepted(seq), self.acknowledges(cx.now, last).then_some(AckKind::Ack))
        } else if seq < self.expected {
            // The requester missed the acknowledgement of this packet: repeat it.
            (DataVerdict::Duplicate, (self.every > 0).then_some(AckKind::Ack))
        } else {
            cx.trace(|| Trace::OutOfOrder { expected: self.expected, seq });
            let nack = cx.now >= self.silent_until;
            if nack {
                self.silent_until = cx.now.saturating_add(self.nack_interval);
            }
            (DataVerdict::Refused, nack.then_some(AckKind::Nack))
        };
        if ack.is_some() {
            self.on_answer(cx.now);
        }
        Answer::new(verdict, ack)
    }
}
