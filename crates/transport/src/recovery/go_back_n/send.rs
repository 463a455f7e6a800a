//! The requester of go-back-N.

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Seq};
use selvedge_wire::AckKind;

use super::GoBackNParams;
use crate::recovery::timer::Timer;
use crate::recovery::{AckOutcome, ParsedAck, Recovery};
use crate::role::{Cx, Next};

/// The requester: sends in order, and resumes from the packet that the responder names.
#[derive(Clone, Debug)]
pub struct Send {
    acked: Seq,
    /// The next packet to send; goes back to `acked` at a NACK or timeout.
    next: Seq,
    /// One past the highest packet that was ever sent.
    sent: Seq,
    timer: Timer,
    cap: u64,
    /// The instant before which nothing is sent.
    ready: Instant,
    nack_processing: Duration,
}

impl Send {
    /// Creates a requester that has sent nothing.
    pub fn new(params: &GoBackNParams) -> Self {
        Self {
            acked: Seq::ZERO,
            next: Seq::ZERO,
            sent: Seq::ZERO,
            timer: params.timer,
            ready: Instant::ZERO,
            nack_processing: params.nack_processing,
            cap: params.window(),
        }
    }
    /// Goes back to the first unacknowledged packet and restarts the timer: the outstanding packets no longer count.
    fn go_back(&mut self, cx: &mut Cx<'_>, by_timeout: bool) {
        self.next = self.acked;
        self.timer.restart(cx.now);
        cx.trace(|| Trace::RecoveryEntered { acked: self.acked, by_timeout });
    }
}

impl Recovery for Send {
    type Shared = ();

    #[inline]
    fn acked(&self) -> Seq {
        self.acked
    }
    #[inline]
    fn sent(&self) -> Seq {
        self.sent
    }
    #[inline]
    fn in_flight(&self) -> u64 {
        self.next - self.acked
    }
    #[inline]
    fn has_lost(&self) -> bool {
        self.next < self.sent
    }

    #[inline(always)]
    fn next(&self, now: Instant, supplied: Seq, window_open: bool) -> Next {
        if self.next >= supplied || !window_open || self.in_flight() >= self.cap {
            return Next::Idle;
        }
        if self.ready > now {
            return Next::Wait(self.ready);
        }
        Next::packet(self.next, self.next < self.sent)
    }

    #[inline]
    fn on_sent(&mut self, cx: &mut Cx<'_>, _: &mut (), seq: Seq) {
        self.next += 1;
        if self.next > self.sent {
            self.sent = self.next;
        } else {
            cx.trace(|| Trace::Retransmitted { seq });
            if seq == self.acked {
                self.timer.on_oldest_sent(cx.now);
            }
        }
        self.timer.ensure_running(cx.now);
    }

    #[inline]
    fn train(&self, supplied: Seq) -> u64 {
        if self.has_lost() || self.in_flight() == 0 {
            return 0;
        }
        (supplied - self.next).min(self.cap - self.in_flight())
    }

    #[inline]
    fn on_train_sent(&mut self, packets: u64) {
        self.next += packets;
        self.sent = self.sent.max(self.next);
    }

    #[inline]
    fn handle_ack(&mut self, cx: &mut Cx<'_>, _: &mut (), heard: ParsedAck) -> AckOutcome {
        // An old NACK reports a gap that has been filled since.
        let Some(delivered) = heard.expected.checked_since(self.acked) else { return AckOutcome::default() };
        if delivered > 0 {
            self.acked = heard.expected;
            self.next = self.next.max(self.acked);
            if self.acked == self.sent {
                self.timer.stop();
            } else {
                self.timer.restart(cx.now);
            }
        } else {
            self.timer.on_answer(cx.now);
        }
        // A NACK for the packet that will be sent next has no effect.
        let loss = heard.kind == AckKind::Nack && self.next > self.acked;
        if loss {
            self.go_back(cx, false);
            self.ready = cx.now + self.nack_processing;
        }
        AckOutcome { delivered, loss }
    }

    #[inline]
    fn deadline(&self) -> Instant {
        self.timer.deadline()
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>, _: &mut ()) -> bool {
        if self.timer.is_quick() && !self.timer.is_few(self.sent - self.acked) {
            let until = self.timer.extend();
            // RTO_high may have passed as well, if this call comes late.
            if until > cx.now {
                cx.trace(|| Trace::TimeoutExtended { until });
                return false;
            }
        }
        cx.trace(|| Trace::TimedOut { acked: self.acked, quick: self.timer.is_quick() });
        self.go_back(cx, true);
        true
    }
    fn handle_not_ready(&mut self, cx: &mut Cx<'_>, _: &mut ()) {
        if self.next > self.acked {
            self.go_back(cx, false);
        }
    }
}
