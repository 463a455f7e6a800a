//! The sending half's timer and its expiry.

use selvedge_telemetry::Trace;
use selvedge_units::{Instant, Octet};

use super::tail::Tail;
use super::{Mode, Sending, place};
use crate::role::Cx;
use crate::tcp::congestion::Control;

impl Sending {
    pub(super) fn start_timer(&mut self, now: Instant) {
        self.timer = now.saturating_add(self.rto.timeout());
    }

    /// Arms the timer to probe the other end's window (RFC 9293, section 3.8.6.1) while octets wait, nothing is
    /// outstanding and nothing may be sent.
    pub(in crate::tcp) fn watch_window(&mut self, now: Instant) {
        if self.flight() > 0 || self.acked == Octet::SYN {
            return;
        }
        if self.paced_until < Instant::NEVER {
            return;
        }
        let is_stuck = self.supplied > self.next && (self.must_probe || self.next().is_none());
        if !is_stuck {
            self.timer = Instant::NEVER;
        } else if self.timer == Instant::NEVER {
            self.start_timer(now);
        }
    }

    /// Handles the deadlines that are due.
    pub(in crate::tcp) fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.paced_until <= cx.now {
            self.paced_until = Instant::NEVER;
        }
        if self.reorder_at <= cx.now {
            self.detect(cx.now);
            self.recover_lost(cx, 0);
            self.reduce(0, false);
        }
        if self.tail.at <= cx.now {
            self.probe_tail(cx.now);
        }
        if self.timer <= cx.now {
            self.on_expiry(cx);
        }
    }

    /// Handles the expiry of the timer.
    fn on_expiry(&mut self, cx: &mut Cx<'_>) {
        self.rto.back_off();
        if self.flight() == 0 {
            self.timer = Instant::NEVER;
            if self.supplied > self.next {
                self.must_probe = true;
                self.start_timer(cx.now);
            }
            return;
        }
        self.stats.timeouts += 1;
        cx.trace(|| Trace::TimedOut { acked: place(self.acked), quick: false });
        // ssthresh is unchanged if the same octets time out again (RFC 5681, section 3.1).
        let is_first = self.mode != Mode::Slow || self.timed_out_at != self.acked;
        if is_first {
            self.undo = self.state_to_undo();
            self.window.ssthresh = self.control.handle_timeout(&self.window, self.in_network(self.flight()));
        }
        // The receiver reneges, or appears to (RFC 2018, section 8).
        if !is_first || self.board.is_sacked(self.acked) {
            self.board.forget_all();
        }
        self.window.set(self.window.mss);
        self.mode = Mode::Slow;
        self.timed_out_at = self.acked;
        self.recover = self.next;
        self.resent = self.acked;
        self.lose_by_timeout(cx.now);
        self.must_resend = false;
        (self.duplicates, self.limited, self.timed) = (0, 0, None);
        (self.tail, self.paced_until) = (Tail::default(), Instant::NEVER);
        self.marked_until = self.next;
        self.start_timer(cx.now);
        cx.trace(|| Trace::RecoveryEntered { acked: place(self.acked), by_timeout: true });
    }
}
