//! Handling of acknowledgements by the sending half.

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Instant, Octet};

use super::{Acknowledgement, Mode, Sending, place};
use crate::role::Cx;
use crate::tcp::congestion::{Acked, Control};

impl Sending {
    /// Returns whether an acknowledgement covers octets that were never sent.
    pub(in crate::tcp) fn is_beyond(&self, ack: Octet) -> bool {
        ack > self.next.max(self.probed)
    }

    /// Handles an acknowledgement, which must not be older than the newest.
    pub(in crate::tcp) fn on_ack(&mut self, cx: &mut Cx<'_>, heard: &Acknowledgement<'_>) {
        let flight = self.flight();
        let in_use = self.pipe() * 2 >= self.window.cwnd;
        let is_same_window = !self.update_window(heard);
        let news = self.update_scoreboard(heard.sacks);
        let octets = heard.ack - self.acked;
        if octets > 0 {
            self.on_progress(cx, heard, octets, in_use);
        } else if self.is_duplicate(heard, news, is_same_window) {
            self.on_duplicate(cx);
        }
        if self.settings.has_ecn {
            self.on_feedback(octets, heard.echo, flight);
        }
        // Checked on every acknowledgement: SACK blocks reveal losses even if the acknowledgement number advances.
        let lost = self.board.is_lost(self.acked) && !self.board.is_empty();
        if self.mode == Mode::Open && lost && self.acked >= self.recover {
            self.enter_fast(cx);
        }
        self.watch_window(cx.now);
    }

    /// Updates the send window (RFC 9293, section 3.10.7.4). Returns whether the window changed.
    fn update_window(&mut self, heard: &Acknowledgement<'_>) -> bool {
        let (seq, ack) = self.window_from;
        if heard.seq < seq || (heard.seq == seq && heard.ack < ack) {
            return false;
        }
        self.window_from = (heard.seq, heard.ack);
        let before = core::mem::replace(&mut self.window_end, heard.ack + heard.window);
        self.largest_window = self.largest_window.max(heard.window);
        before.since(self.acked) != heard.window
    }

    pub(super) fn offer(&mut self, from: Octet, window: u64) {
        self.window_end = from + window;
        self.largest_window = self.largest_window.max(window);
        self.window_from = (Octet::SYN, from);
    }

    /// Adds SACK blocks to the scoreboard. Returns the number of newly SACKed octets.
    fn update_scoreboard(&mut self, sacks: &[Range<Octet>]) -> u64 {
        if !self.settings.has_sack {
            return 0;
        }
        let mut news = 0;
        for block in sacks {
            // Other blocks cover acknowledged or unsent octets, or are malformed.
            if block.start >= self.acked && block.end <= self.next && block.start < block.end {
                news += self.board.update(block.clone());
            }
        }
        if news > 0 {
            self.board.judge(self.settings.threshold, self.window.mss);
        }
        news
    }

    /// Handles an acknowledgement of new data.
    fn on_progress(&mut self, cx: &mut Cx<'_>, heard: &Acknowledgement<'_>, octets: u64, in_use: bool) {
        let was_syn = self.acked == Octet::SYN;
        let flight = self.flight();
        self.acked = heard.ack;
        self.next = self.next.max(heard.ack); // a probe was taken
        self.resent = self.resent.max(heard.ack);
        let heard_before = self.board.sacked_before(heard.ack);
        self.board.forget_before(heard.ack);
        self.take_sample(cx.now, heard, flight);
        if was_syn {
            self.on_syn_acked();
        }
        let data = octets - u64::from(was_syn);
        self.duplicates = 0;
        let mut restarts = true;
        match self.mode {
            Mode::Open => {
                self.limited = 0;
                self.grow(cx.now, data, in_use);
            }
            Mode::Fast if self.acked >= self.recover => self.leave_fast(cx),
            Mode::Fast if self.settings.has_sack => {}
            Mode::Fast => restarts = self.on_partial(octets),
            Mode::Slow => {
                // Octets SACKed earlier left the network before: they do not open the window.
                self.grow(cx.now, data.saturating_sub(heard_before), true);
                if self.acked >= self.recover {
                    self.mode = Mode::Open;
                    cx.trace(|| Trace::RecoveryLeft { acked: place(self.acked) });
                }
            }
        }
        // RFC 6298, section 5, rules 5.2 and 5.3.
        if self.flight() == 0 {
            self.timer = Instant::NEVER;
        } else if restarts {
            self.start_timer(cx.now);
        }
    }

    fn grow(&mut self, now: Instant, octets: u64, in_use: bool) {
        if octets > 0 && in_use {
            let srtt = self.rto.smoothed().unwrap_or_default();
            self.control.on_acked(&mut self.window, Acked { octets, now, srtt, coupling: self.coupling });
        }
    }

    /// Takes a round-trip sample by time stamps (RFC 7323, section 4.1 and appendix G) or Karn's algorithm (RFC 6298,
    /// section 3).
    fn take_sample(&mut self, now: Instant, heard: &Acknowledgement<'_>, flight: u64) {
        let timed = self.timed.filter(|(end, _)| heard.ack >= *end);
        if timed.is_some() {
            self.timed = None;
        }
        if self.settings.has_timestamps {
            if let Some(rtt) = heard.rtt {
                self.rto.sample(rtt, flight.div_ceil(2 * self.window.mss).max(1));
            }
        } else if let Some((_, sent_at)) = timed {
            self.rto.sample(now.since(sent_at), 1);
        }
    }

    /// Handles the acknowledgement of the SYN: after a lost SYN, the window starts at one segment (RFC 5681, section
    /// 3.1, and RFC 6298, rule 5.7).
    fn on_syn_acked(&mut self) {
        self.mode = Mode::Open;
        self.window.set(self.settings.initial_window);
        if self.stats.timeouts > 0 {
            self.window.set(self.window.mss);
            self.window.ssthresh = u64::MAX;
            self.rto.distrust(self.settings.initial_rto.saturating_mul(3));
        }
    }

    /// Returns whether an acknowledgement is a duplicate (RFC 5681, section 2; with SACK RFC 6675, section 2).
    fn is_duplicate(&self, heard: &Acknowledgement<'_>, news: u64, is_same_window: bool) -> bool {
        if self.settings.has_sack { news > 0 } else { heard.is_pure && is_same_window && self.flight() > 0 }
    }

    fn on_duplicate(&mut self, cx: &mut Cx<'_>) {
        self.duplicates += 1;
        let is_enough = self.duplicates >= self.settings.threshold;
        match self.mode {
            Mode::Open if is_enough && self.may_enter_fast() => self.enter_fast(cx),
            Mode::Fast if !self.settings.has_sack => self.window.cwnd += self.window.mss,
            _ => {}
        }
    }

    /// Returns whether fast recovery may begin: not for octets sent before a timeout (RFC 6675, section 5.1; RFC 6582,
    /// section 3.2).
    fn may_enter_fast(&self) -> bool {
        if self.settings.has_sack { self.acked >= self.recover } else { self.acked > self.recover }
    }

    /// Enters fast recovery (RFC 6675, section 5, step 4; RFC 6582, section 3.2, steps 2 and 3).
    fn enter_fast(&mut self, cx: &mut Cx<'_>) {
        let flight = self.flight() - self.limited.min(self.flight());
        self.window.ssthresh = self.control.on_loss(&self.window, self.in_network(flight));
        self.window.set(self.window.ssthresh);
        if !self.settings.has_sack {
            self.window.cwnd += u64::from(self.settings.threshold) * self.window.mss;
        }
        self.mode = Mode::Fast;
        self.recover = self.next;
        self.resent = self.acked;
        self.must_resend = true;
        self.was_partial = false;
        self.limited = 0;
        self.stats.recoveries += 1;
        // A reduction for a loss also covers the marks of the same window.
        self.marked_until = self.next;
        cx.trace(|| Trace::RecoveryEntered { acked: place(self.acked), by_timeout: false });
    }

    fn leave_fast(&mut self, cx: &mut Cx<'_>) {
        self.mode = Mode::Open;
        self.must_resend = false;
        self.limited = 0;
        // RFC 6582, section 3.2, step 3, option 1; with SACK, cwnd equals ssthresh already.
        if !self.settings.has_sack {
            let mss = self.window.mss;
            self.window.set(self.window.ssthresh.min(self.flight().max(mss) + mss));
        }
        cx.trace(|| Trace::RecoveryLeft { acked: place(self.acked) });
    }

    /// Handles a partial acknowledgement (RFC 6582, section 3.2, step 3). Returns whether the timer restarts: only for
    /// the first one.
    fn on_partial(&mut self, octets: u64) -> bool {
        let mss = self.window.mss;
        self.must_resend = true;
        let back = if octets >= mss { mss } else { 0 };
        self.window.cwnd = (self.window.cwnd.saturating_sub(octets) + back).max(mss);
        !core::mem::replace(&mut self.was_partial, true)
    }

    /// Handles ECN feedback (RFC 3168, section 6.1.2; RFC 8257, section 3.3).
    fn on_feedback(&mut self, octets: u64, echo: bool, flight: u64) {
        self.control.on_echo(octets, echo, self.acked, self.next);
        if echo && self.mode == Mode::Open && self.acked > self.marked_until {
            self.window.ssthresh = self.control.on_mark(&self.window, self.in_network(flight));
            self.window.set(self.window.ssthresh);
            self.marked_until = self.next;
            self.reduced = true;
        }
    }
    /// Enables the reaction to echoed marks.
    pub(in crate::tcp) fn expect_marks(&mut self) {
        self.settings.has_ecn = true;
    }
}
