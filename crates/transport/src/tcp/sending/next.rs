//! Selection of the next segment to send, and the bookkeeping of its transmission.

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Bytes, Instant, Octet};

use super::{Mode, Piece, Reason, Sending, place};
use crate::role::Cx;
use crate::tcp::congestion::Control;
use crate::tcp::sent::Sent;

impl Sending {
    /// Returns the segment to send next, if any may be sent.
    pub(in crate::tcp) fn next(&self) -> Option<Piece> {
        if self.next == Octet::SYN {
            return Some(Piece { start: Octet::SYN, data: 0, fin: false, reason: Reason::New });
        }
        let is_fast_by_rack = self.mode == Mode::Fast && self.settings.has_rack;
        if self.must_resend && self.flight() > 0 && !is_fast_by_rack {
            return self.again(self.acked..self.next, Reason::Again);
        }
        if self.paced_until < Instant::NEVER {
            return None;
        }
        if self.tail.is_due {
            return self.next_tail();
        }
        let pipe = self.pipe();
        match self.mode {
            Mode::Fast if is_fast_by_rack => {
                if self.window.cwnd.saturating_sub(pipe) < self.window.mss && !self.must_resend {
                    return None;
                }
                self.next_lost().and_then(|lost| self.again(lost, Reason::Again)).or_else(|| self.new_piece(pipe))
            }
            Mode::Fast if self.settings.has_sack => self.next_by_scoreboard(pipe),
            Mode::Slow => {
                let hole = match self.settings.has_rack {
                    true => self.next_lost(),
                    false => self.board.hole(self.resent, self.recover),
                };
                match hole.and_then(|hole| self.again(hole, Reason::Again)) {
                    Some(piece) => Some(piece).filter(|piece| self.has_room(pipe, piece.data)),
                    None => self.new_piece(pipe),
                }
            }
            Mode::Open | Mode::Fast => self.new_piece(pipe),
        }
    }

    /// Returns the segment that `NextSeg` selects (RFC 6675, section 4), if cwnd allows a segment.
    fn next_by_scoreboard(&self, pipe: u64) -> Option<Piece> {
        if self.window.cwnd.saturating_sub(pipe) < self.window.mss {
            return None;
        }
        let highest = self.board.highest().unwrap_or(self.acked).min(self.next);
        let hole = self.board.hole(self.resent, highest);
        let lost = hole.clone().filter(|hole| self.board.is_lost(hole.start));
        let again = |hole| self.again(hole, Reason::Again);
        lost.and_then(again).or_else(|| self.new_piece(pipe)).or_else(|| hole.and_then(again)).or_else(|| {
            let hole = self.board.last_hole(self.acked, self.next).filter(|_| self.acked > self.rescue)?;
            // One segment that ends with the last octet, on the segment boundaries.
            let before = (hole.end - hole.start).div_ceil(self.window.mss).saturating_sub(1);
            self.again(hole.start + before * self.window.mss..hole.end, Reason::Rescue)
        })
    }

    /// Returns a segment from the beginning of `hole`.
    pub(super) fn again(&self, hole: Range<Octet>, reason: Reason) -> Option<Piece> {
        if hole.is_empty() {
            return None;
        }
        let start = hole.start;
        if start == Octet::SYN {
            return Some(Piece { start, data: 0, fin: false, reason });
        }
        let data_end = hole.end.min(self.supplied).max(start);
        let data = self.window.mss.min(data_end - start);
        let fin = start + data == self.supplied && hole.end > self.supplied;
        Some(Piece { start, data, fin, reason })
    }

    /// Returns a segment of new octets, within the congestion window and the receiver's window, with silly window
    /// avoidance (RFC 9293, section 3.8.6.2.1).
    pub(super) fn new_piece(&self, pipe: u64) -> Option<Piece> {
        let start = self.next;
        if self.acked == Octet::SYN || self.is_fin_sent() {
            return None;
        }
        let waiting = self.supplied - start;
        if waiting == 0 {
            return self.is_closed.then_some(Piece { start, data: 0, fin: true, reason: Reason::New });
        }
        let data = waiting.min(self.window.mss).min(self.window_end.since(start));
        let piece = Piece { start, data, fin: self.is_closed && data == waiting, reason: Reason::New };
        if self.is_worth_it(data, waiting) && self.has_room(pipe, data) {
            return Some(piece);
        }
        let probe = Piece { data: data.max(1), fin: false, reason: Reason::Probe, ..piece };
        self.must_probe.then_some(probe)
    }

    fn is_worth_it(&self, data: u64, waiting: u64) -> bool {
        let may_be_short = !self.settings.has_nagle || self.flight() == 0 || self.is_closed;
        data > 0 && (data == self.window.mss || (data == waiting && may_be_short) || data * 2 >= self.largest_window)
    }

    /// Returns whether cwnd allows `data` more octets in the network. Without SACK, the first two duplicate
    /// acknowledgements allow one segment each (RFC 3042).
    pub(super) fn has_room(&self, pipe: u64, data: u64) -> bool {
        let extra = match self.mode {
            Mode::Open if self.settings.has_limited_transmit && !self.settings.has_sack => {
                u64::from(self.duplicates.min(2)) * self.window.mss
            }
            _ => 0,
        };
        pipe == 0 || pipe + data <= self.window.cwnd.saturating_add(extra)
    }

    /// Returns the octets believed to be in the network.
    pub(super) fn pipe(&self) -> u64 {
        match self.mode {
            // RFC 6582 inflates the window, so the flight is not reduced.
            Mode::Fast if !self.settings.has_sack => self.flight(),
            Mode::Open if !self.settings.has_limited_transmit => self.flight(),
            _ => self.board.pipe(self.acked, self.resent.max(self.acked), self.next),
        }
    }

    /// Records the transmission of the piece that [`Sending::next`] returned. Returns whether the segment carries CWR.
    pub(in crate::tcp) fn on_sent(&mut self, cx: &mut Cx<'_>, piece: &Piece) -> bool {
        let end = piece.end();
        let mut cwr = false;
        self.stats.sent += 1;
        if piece.start > Octet::SYN && piece.reason != Reason::Probe && self.is_logging() {
            let is_idle = self.flight() == 0 || self.pipe() == 0;
            let sent = self.delivery.record(cx.now, piece.start, end, piece.is_again(), is_idle);
            self.log.add(Sent { is_tail: piece.reason == Reason::Tail, ..sent });
        }
        if self.mode == Mode::Fast {
            self.prr.on_sent(piece.data);
        }
        match piece.reason {
            Reason::New => {
                if self.mode == Mode::Open && self.duplicates > 0 && self.flight() + piece.data > self.window.cwnd {
                    self.limited += piece.data;
                }
                self.next = end;
                self.timed.get_or_insert((end, cx.now));
                cwr = piece.data > 0 && core::mem::take(&mut self.reduced);
            }
            Reason::Tail => self.on_sent_again(cx, piece),
            Reason::Rescue => {
                self.on_sent_again(cx, piece);
                self.rescue = self.recover;
            }
            Reason::Again => {
                self.on_sent_again(cx, piece);
                if !self.board.resend(piece.start..end) {
                    self.resent = self.resent.max(end);
                }
                if core::mem::take(&mut self.must_resend) && self.settings.has_sack {
                    self.rescue = self.resent;
                }
            }
            Reason::Probe => {
                self.probed = self.probed.max(end);
                self.must_probe = false;
            }
        }
        self.last_sent = cx.now;
        if self.timer == Instant::NEVER {
            self.start_timer(cx.now);
        }
        if core::mem::take(&mut self.tail.is_due) {
            self.on_tail_sent(cx.now, piece);
        } else if piece.reason == Reason::New {
            self.watch_tail(cx.now);
        }
        if piece.data > 0 {
            self.pace(cx.now, piece.data);
        }
        cwr
    }

    /// Spaces data segments at the congestion control's rate. A sender that was late by less than a segment's time
    /// makes up for it.
    fn pace(&mut self, now: Instant, octets: u64) {
        if self.unpaced > 0 {
            self.unpaced -= 1;
            return;
        }
        let Some(rate) = self.control.pacing() else { return };
        let time = rate.time_for(Bytes::new(octets));
        let begin = if now.since(self.pace_at) < time { self.pace_at } else { now };
        self.pace_at = begin.saturating_add(time);
        if self.pace_at > now {
            self.paced_until = self.pace_at;
        }
    }

    /// Notes that the application has nothing to send while the window would allow it, which makes rate samples too low
    /// (draft-cheng-iccrg-delivery-rate-estimation-00, section 3.4).
    pub(in crate::tcp) fn note_idle(&mut self) {
        if !self.control.owns_window() || self.acked == Octet::SYN || self.paced_until < Instant::NEVER {
            return;
        }
        let pipe = self.pipe();
        if self.supplied.since(self.next) < self.window.mss && pipe < self.window.cwnd && !self.has_lost() {
            self.delivery.limit(pipe);
        }
    }

    fn on_sent_again(&mut self, cx: &mut Cx<'_>, piece: &Piece) {
        self.stats.retransmissions += 1;
        self.resent_ever = self.resent_ever.max(piece.end());
        if let Some(undo) = &mut self.undo {
            undo.resent_at.get_or_insert(cx.now);
        }
        cx.trace(|| Trace::Retransmitted { seq: place(piece.start) });
        // Karn's algorithm: the acknowledgement of a retransmission is ambiguous.
        if self.timed.is_some_and(|(end, _)| piece.start < end) {
            self.timed = None;
        }
        // The timer restarts, the conservative variant of RFC 6675, section 6.
        self.start_timer(cx.now);
    }

    /// Schedules the retransmission of the first outstanding octet, if any.
    pub(in crate::tcp) fn repeat(&mut self) {
        self.must_resend = self.flight() > 0;
    }

    /// Restarts from the initial window after an idle period of an RTO (RFC 5681, section 4.1).
    pub(in crate::tcp) fn restart_after_idle(&mut self, now: Instant) {
        if self.flight() > 0 || self.next <= Octet::FIRST {
            return;
        }
        if self.control.owns_window() {
            if self.has_unsent() {
                self.control.on_restart();
            }
            return;
        }
        let is_idle = now.since(self.last_sent) > self.rto.timeout();
        if is_idle && self.window.cwnd > self.settings.initial_window {
            self.window.set(self.settings.initial_window);
        }
    }
}
