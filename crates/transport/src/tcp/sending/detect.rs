//! Detection of losses by time (RFC 8985, section 6.2), and the end of reductions that were spurious (RFC 3522, 4015).

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Octet};

use super::{Acknowledgement, Mode, Sending, place};
use crate::role::Cx;
use crate::tcp::congestion::Control;
use crate::tcp::connection::{age_of, clock};
use crate::tcp::sent::Sent;

impl Sending {
    /// Returns the transmission that was sent last of those that an acknowledgement delivers, and the end of its octets
    /// that are delivered. Takes note of reordering. Called before the scoreboard learns of the acknowledgement.
    pub(super) fn newest(&mut self, heard: &Acknowledgement<'_>) -> Option<(Sent, Octet)> {
        let mut newest = self.newest_in(self.acked..heard.ack);
        for block in heard.sacks.iter().filter(|block| self.is_news(heard, block)) {
            newest = later(newest, self.newest_in(block.start.max(heard.ack)..block.end));
        }
        let highest = self.board.highest().unwrap_or(self.acked).max(self.acked);
        let mut news = heard.sacks.iter().filter(|block| self.is_news(heard, block)).cloned();
        if self.has_late(self.acked..heard.ack, highest) || news.any(|block| self.has_late(block, highest)) {
            self.rack.on_reordering();
        }
        newest
    }

    /// Returns the transmission that was sent last of those of newly delivered octets, and the end of these.
    fn newest_in(&self, news: Range<Octet>) -> Option<(Sent, Octet)> {
        let end = self.board.last_missing(news.start, news.end)?;
        let (mut newest, mut is_again) = (None, false);
        for sent in self.log.again().filter(|sent| sent.start < news.end && sent.end > news.start) {
            is_again |= sent.start < end && sent.end >= end;
            if self.board.hole(sent.start.max(news.start), sent.end.min(news.end)).is_some() {
                newest = later(newest, Some((*sent, sent.end)));
            }
        }
        // The first transmission of octets sent again is not what arrived, as far as is known.
        let first = self.log.first_of(Octet::new(end.index() - 1)).filter(|_| !is_again);
        later(newest, first.map(|sent| (*sent, end)))
    }

    /// Returns whether a block reports octets in flight, beyond what is acknowledged. Other blocks report duplicates,
    /// cover unsent octets, or are malformed.
    pub(super) fn is_news(&self, heard: &Acknowledgement<'_>, block: &Range<Octet>) -> bool {
        block.start >= self.acked && block.start < block.end && block.end <= self.next && block.end > heard.ack
    }

    /// Returns whether newly delivered octets before `highest` were sent only once: they were overtaken.
    fn has_late(&self, news: Range<Octet>, highest: Octet) -> bool {
        let mut from = news.start.max(self.resent);
        while let Some(hole) = self.board.hole(from, news.end.min(highest)) {
            from = hole.end;
            let is_again = |sent: &Sent| sent.start <= hole.start && sent.end > hole.start;
            if hole.end < highest && !self.log.again().any(is_again) {
                return true;
            }
        }
        false
    }

    /// Marks as lost what was sent sufficiently long before something that arrived (step 5), and arms the timer for
    /// what will be. Returns the octets newly lost.
    pub(super) fn detect(&mut self, now: Instant) -> u64 {
        self.reorder_at = Instant::NEVER;
        let Some((at, end)) = self.rack.latest().filter(|_| self.settings.has_rack && self.flight() > 0) else {
            return 0;
        };
        let patience = self.patience();
        let (mut lost, mut last) = (0, None);
        let until = self.log.sent_before(at, end).min(self.next);
        let before = self.board.lost_before().max(self.acked);
        if until > before && self.board.hole(before, until).is_some() {
            let limit = Instant::from_ps(now.as_ps().saturating_sub(patience.as_ps()));
            let expired =
                if now.since(Instant::ZERO) < patience { before } else { self.log.sent_until(limit).min(until) };
            if expired > before {
                lost += self.board.not_sacked(before, expired);
                self.board.lose_before(expired);
            }
            if self.board.hole(expired.max(before), until).is_some() {
                last = self.log.first_of(Octet::new(until.index() - 1)).map(|sent| sent.at);
            }
        }
        while let Some(sent) = self.log.oldest_again().copied() {
            let left = sent.start.max(self.acked)..sent.end;
            // A tail loss probe is not missed: its first transmission is.
            let is_missed = !sent.is_tail && self.board.hole(left.start, left.end).is_some();
            if is_missed {
                if (sent.since, sent.end) >= (at, end) {
                    break;
                }
                if sent.at.saturating_add(patience) > now {
                    last = last.max(Some(sent.at));
                    break;
                }
                lost += self.board.not_sacked(left.start, left.end);
                self.board.lose_again(left);
            }
            self.log.drop_oldest_again();
        }
        if let Some(last) = last {
            self.reorder_at = last.saturating_add(patience);
        }
        lost
    }

    /// Returns RACK.rtt plus the reordering window.
    fn patience(&self) -> Duration {
        let sacked = self.flight() - self.board.not_sacked(self.acked, self.next);
        let is_enough = sacked > u64::from(self.settings.threshold - 1) * self.window.mss;
        let srtt = self.rto.smoothed().unwrap_or(Duration::MAX);
        self.rack.patience(srtt, self.mode != Mode::Open || is_enough)
    }

    /// Returns octets that are lost and not sent since, the first of them.
    pub(super) fn next_lost(&self) -> Option<Range<Octet>> {
        let again = self.board.first_lost_again();
        again.or_else(|| self.board.hole(self.resent.max(self.acked), self.board.lost_before().min(self.next)))
    }
    /// Returns whether octets are lost and not sent since.
    pub(super) fn has_lost(&self) -> bool {
        match self.settings.has_rack {
            true => self.next_lost().is_some(),
            false => self.mode == Mode::Open && self.board.is_lost(self.acked) && !self.board.is_empty(),
        }
    }
    /// Begins fast recovery if something is lost. `delivered` octets are delivered by the present acknowledgement.
    pub(super) fn recover_lost(&mut self, cx: &mut Cx<'_>, delivered: u64) {
        if self.mode == Mode::Open && self.acked >= self.recover && self.has_lost() {
            self.enter_fast(cx, delivered);
        }
    }

    /// Marks what is lost when the timer expires: the first segment, and what was sent a round trip before (section
    /// 6.3). Without RACK, everything.
    pub(super) fn lose_by_timeout(&mut self, now: Instant) {
        self.log.forget_again();
        self.reorder_at = Instant::NEVER;
        if !self.settings.has_rack {
            return self.board.lose_before(self.next);
        }
        let patience = self.patience();
        let limit = Instant::from_ps(now.as_ps().saturating_sub(patience.as_ps()));
        let first = self.acked + self.window.mss;
        let until = self.log.sent_until(limit).max(first).max(self.board.lost_before());
        self.board.lose_nothing();
        self.board.lose_before(until.min(self.next));
    }

    /// Checks whether the first acknowledgement of new octets since a reduction is of their first transmission (RFC
    /// 3522, section 3.2); if so, takes the reduction back. Unlike RFC 4015, cwnd is wholly restored, as in Linux.
    pub(super) fn check_spurious(&mut self, cx: &mut Cx<'_>, heard: &Acknowledgement<'_>) {
        let Some(rtt) = heard.rtt.filter(|_| self.settings.has_eifel) else { return };
        let Some((undo, resent_at)) = self.undo.and_then(|undo| Some((undo, undo.resent_at?))) else { return };
        self.undo = None;
        // In ticks, as the stamps.
        let since = age_of(clock(resent_at), cx.now);
        if rtt <= since || self.mode == Mode::Open {
            return;
        }
        if !self.control.owns_window() {
            self.window.set(self.window.cwnd.max(undo.cwnd));
        }
        self.window.ssthresh = undo.ssthresh;
        self.control.on_undo();
        match self.mode {
            Mode::Slow => self.rto.on_spurious(rtt),
            // What seemed lost was overtaken, but RACK's own rule (step 3) does not see it once it was sent again.
            _ => self.rack.on_reordering(),
        }
        self.mode = Mode::Open;
        self.stats.undone += 1;
        (self.recover, self.resent, self.must_resend) = (self.acked, self.acked, false);
        self.board.lose_nothing();
        self.log.forget_again();
        cx.trace(|| Trace::RecoveryLeft { acked: place(self.acked) });
    }
}

/// Returns the later of two transmissions, each with the end of its octets that count (`RACK_sent_after`).
fn later(one: Option<(Sent, Octet)>, other: Option<(Sent, Octet)>) -> Option<(Sent, Octet)> {
    let time = |(sent, end): &(Sent, Octet)| (sent.since, *end);
    if one.as_ref().map(time) < other.as_ref().map(time) { other } else { one }
}
