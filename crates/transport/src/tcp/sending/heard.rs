//! Handling of acknowledgements by the sending half.

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Octet};

use super::tail::Tail;
use super::{Acknowledgement, Mode, Sending, place};
use crate::role::Cx;
use crate::tcp::congestion::{Acked, Control, RateSample, Recovery};
use crate::tcp::prr::Prr;
use crate::tcp::sent::Sent;

impl Sending {
    /// Returns whether an acknowledgement covers octets that were never sent.
    pub(in crate::tcp) fn is_beyond(&self, ack: Octet) -> bool {
        ack > self.next.max(self.probed)
    }

    /// Handles an acknowledgement, which must not be older than the newest.
    pub(in crate::tcp) fn handle_ack(&mut self, cx: &mut Cx<'_>, heard: &Acknowledgement<'_>) {
        let flight = self.flight();
        let prior = self.pipe();
        let in_use = prior.saturating_mul(2) >= self.window.cwnd;
        let is_same_window = !self.update_window(heard);
        let octets = heard.ack - self.acked;
        let dsack = if self.settings.has_sack { heard.dsack() } else { None };
        let newest = if self.is_logging() { self.newest(heard) } else { None };
        let news = self.update_scoreboard(heard);
        let delivered = (octets + news).saturating_sub(self.board.sacked_before(heard.ack));
        if let Some((sent, end)) = &newest {
            self.rack.on_delivered(cx.now, sent, *end, heard.rtt);
        }
        let newest = newest.map(|(sent, _)| sent);
        let sample = self.delivery.on_delivered(cx.now, delivered, newest.as_ref(), self.rack.min_rtt());
        self.rack.on_acked(heard.ack);
        if dsack.is_some() {
            self.rack.on_duplicate(self.next);
        }
        if octets > 0 {
            self.on_progress(cx, heard, octets, in_use);
        } else if self.is_duplicate(heard, news, is_same_window) {
            self.on_duplicate(cx, delivered);
        }
        if self.settings.has_ecn {
            self.on_feedback(octets, heard.echo, flight);
        }
        let lost = self.detect(cx.now);
        // Checked on every acknowledgement: SACK blocks reveal losses even if the acknowledgement number advances.
        self.recover_lost(cx, delivered);
        self.reduce(delivered, octets > 0 && lost == 0);
        if self.control.owns_window() {
            self.report(cx.now, newest, sample, delivered, prior, lost);
        }
        if octets > 0 || news > 0 || dsack.is_some() || heard.is_pure {
            let is_dsack = dsack.is_some_and(|dsack| dsack.end == self.acked);
            self.on_tail_acked(is_dsack, octets == 0 && news == 0 && heard.is_pure && is_same_window);
        }
        if octets > 0 || news > 0 {
            self.watch_tail(cx.now);
        }
        self.watch_window(cx.now);
    }

    /// Sets cwnd in fast recovery with PRR, after an acknowledgement or a deadline. `is_safe` tells that octets were
    /// acknowledged and nothing more is lost.
    pub(super) fn reduce(&mut self, delivered: u64, is_safe: bool) {
        if self.mode == Mode::Fast && self.settings.has_prr {
            let (pipe, mss) = (self.pipe(), self.window.mss);
            let cwnd = self.prr.window(delivered, pipe, self.window.ssthresh, is_safe, mss);
            self.window.set(cwnd);
        }
    }

    /// Reports the delivery of octets to a congestion control that has a model of the path.
    fn report(
        &mut self,
        now: Instant,
        newest: Option<Sent>,
        (delivered, interval): (u64, Duration),
        acked: u64,
        prior_in_flight: u64,
        lost: u64,
    ) {
        let in_flight = self.pipe();
        let sample = RateSample {
            now,
            acked,
            total: self.delivery.total,
            delivered,
            interval,
            prior_delivered: newest.map_or(0, |sent| sent.delivered),
            is_app_limited: newest.is_some_and(|sent| sent.is_app_limited),
            rtt: newest.filter(|sent| !sent.is_again).map(|sent| now.since(sent.since)),
            is_maybe_delayed: acked <= self.window.mss,
            srtt: self.rto.smoothed(),
            prior_in_flight,
            in_flight,
            lost,
            recovery: match self.mode {
                Mode::Open => Recovery::None,
                Mode::Fast => Recovery::Fast,
                Mode::Slow => Recovery::Timeout,
            },
        };
        if self.control.on_sample(&mut self.window, &sample) {
            self.delivery.limit(in_flight);
        }
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
    fn update_scoreboard(&mut self, heard: &Acknowledgement<'_>) -> u64 {
        if !self.settings.has_sack {
            return 0;
        }
        let mut news = 0;
        for block in heard.sacks {
            if self.is_news(heard, block) {
                news += self.board.update(block.clone());
            }
        }
        if news > 0 && !self.settings.has_rack {
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
        self.log.forget_before(heard.ack);
        self.check_spurious(cx, heard);
        let rtt = self.take_sample(cx.now, heard, flight);
        if was_syn {
            self.on_syn_acked();
        }
        let data = octets - u64::from(was_syn);
        self.duplicates = 0;
        let mut restarts = true;
        match self.mode {
            Mode::Open => {
                self.limited = 0;
                self.grow(cx.now, data, in_use, rtt);
            }
            Mode::Fast if self.acked >= self.recover => self.leave_fast(cx),
            Mode::Fast if self.settings.has_sack => {}
            Mode::Fast => restarts = self.on_partial(octets),
            Mode::Slow => {
                // Octets SACKed earlier left the network before: they do not open the window.
                self.grow(cx.now, data.saturating_sub(heard_before), true, rtt);
                if self.acked >= self.recover {
                    self.mode = Mode::Open;
                    self.rack.on_recovered();
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

    fn grow(&mut self, now: Instant, octets: u64, in_use: bool, rtt: Option<Duration>) {
        if octets > 0 && in_use {
            let (acked, sent) = (self.acked, self.next);
            if !self.control.owns_window() {
                self.hystart.on_acked(&mut self.window, rtt, acked, sent);
            }
            let srtt = self.rto.smoothed().unwrap_or_default();
            let acked = Acked { octets, now, srtt, rtt, acked, sent, coupling: self.coupling };
            self.control.on_acked(&mut self.window, acked);
        }
    }

    /// Takes a round-trip sample by time stamps (RFC 7323, section 4.1 and appendix G) or Karn's algorithm (RFC 6298,
    /// section 3). Returns it.
    fn take_sample(&mut self, now: Instant, heard: &Acknowledgement<'_>, flight: u64) -> Option<Duration> {
        let timed = self.timed.filter(|(end, _)| heard.ack >= *end);
        if timed.is_some() {
            self.timed = None;
        }
        let (rtt, samples) = match self.settings.has_timestamps {
            true => (heard.rtt, flight.div_ceil(2 * self.window.mss).max(1)),
            false => (timed.map(|(_, sent_at)| now.since(sent_at)), 1),
        };
        if let Some(rtt) = rtt {
            self.rto.sample(rtt, samples);
        }
        rtt
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

    fn on_duplicate(&mut self, cx: &mut Cx<'_>, delivered: u64) {
        self.duplicates += 1;
        let is_enough = self.duplicates >= self.settings.threshold;
        match self.mode {
            Mode::Open if is_enough && !self.settings.has_rack && self.may_enter_fast() => {
                self.enter_fast(cx, delivered);
            }
            Mode::Fast if !self.settings.has_sack => self.window.cwnd += self.window.mss,
            _ => {}
        }
    }

    /// Returns whether fast recovery may begin: not for octets sent before a timeout (RFC 6675, section 5.1; RFC 6582,
    /// section 3.2).
    fn may_enter_fast(&self) -> bool {
        if self.settings.has_sack { self.acked >= self.recover } else { self.acked > self.recover }
    }

    /// Enters fast recovery (RFC 6675, section 5, step 4; RFC 6582, section 3.2, steps 2 and 3). The present
    /// acknowledgement delivers `delivered` octets.
    pub(super) fn enter_fast(&mut self, cx: &mut Cx<'_>, delivered: u64) {
        let flight = self.flight() - self.limited.min(self.flight());
        self.undo = self.state_to_undo();
        self.window.ssthresh = self.control.on_loss(&self.window, self.in_network(flight));
        if !self.control.owns_window() {
            self.window.set(self.window.ssthresh);
        }
        self.prr = Prr::begin(self.board.not_sacked(self.acked, self.next) + delivered);
        if !self.settings.has_sack {
            self.window.cwnd += u64::from(self.settings.threshold) * self.window.mss;
        }
        self.mode = Mode::Fast;
        self.recover = self.next;
        if self.settings.has_rack {
            self.resent = self.resent.max(self.acked);
        } else {
            self.resent = self.acked;
        }
        self.must_resend = !self.settings.has_rack || !(self.settings.has_prr || self.control.owns_window());
        self.tail = Tail::default();
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
        self.rack.on_recovered();
        if self.settings.has_prr {
            self.window.set(self.window.ssthresh);
        }
        // RFC 6582, section 3.2, step 3, option 1; with SACK and without PRR, cwnd equals ssthresh already.
        if !self.settings.has_sack && !self.control.owns_window() {
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
            if !self.control.owns_window() {
                self.window.set(self.window.ssthresh);
            }
            self.marked_until = self.next;
            self.reduced = true;
        }
    }
    /// Enables the reaction to echoed marks.
    pub(in crate::tcp) fn expect_marks(&mut self) {
        self.settings.has_ecn = true;
    }
}
