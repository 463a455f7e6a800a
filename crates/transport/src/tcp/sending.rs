//! The sending half of a connection: what to send next, and what an acknowledgement means.
//!
//! Design notes.
//! 1. *Three ways to repair.* `Mode::Open`: nothing is missing. `Mode::Fast`: fast recovery, by the
//!    scoreboard (RFC 6675) or by partial acknowledgements (RFC 6582). `Mode::Slow`: after a
//!    timeout, everything that was in flight and is not SACKed goes again, in slow start.
//! 2. *One pointer for retransmissions.* `resent` is HighRxt of RFC 6675; after a timeout it is what
//!    SND.NXT is in RFC 9293. `next` is HighData and never goes back.
//! 3. *One timer* for retransmission and for probing a closed window: while octets are outstanding
//!    it is the former, else, if some wait, the latter.

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Octet, Seq, TcpSeq};

use super::congestion::{Acked, AnyControl, Control, Coupling, Window};
use super::rto::Rto;
use super::scoreboard::Scoreboard;
use super::{TcpConfig, TcpStats};
use crate::fabric::resolved;
use crate::role::Cx;

/// The sending half.
#[derive(Clone, Debug)]
pub(super) struct Sending {
    /// ISS.
    pub(super) initial: TcpSeq,
    /// SND.UNA.
    pub(super) acked: Octet,
    /// SND.NXT, one past the highest octet sent.
    pub(super) next: Octet,
    /// One past the last octet that the application has supplied; a FIN stands there.
    pub(super) supplied: Octet,
    /// The application will supply no more.
    pub(super) is_closed: bool,

    // The other end's window.
    /// SND.UNA + SND.WND.
    window_end: Octet,
    /// The largest window ever offered.
    largest_window: u64,
    /// SND.WL1 and SND.WL2.
    window_from: (Octet, Octet),

    // Repair.
    board: Scoreboard,
    mode: Mode,
    /// RecoveryPoint: recovery is over when everything before it is acknowledged.
    recover: Octet,
    /// HighRxt.
    resent: Octet,
    /// RescueRxt.
    rescue: Octet,
    /// The first octet outstanding goes again, whatever the window says.
    must_resend: bool,
    /// This fast recovery has seen a partial acknowledgement.
    was_partial: bool,
    duplicates: u32,
    /// Octets that limited transmit has sent: they are no flight that ssthresh is computed from.
    limited: u64,
    /// SND.UNA at the last timeout.
    timed_out_at: Octet,

    // Congestion.
    window: Window,
    control: AnyControl,
    /// What other subflows make of its window.
    pub(super) coupling: Coupling,
    /// No further reduction for marks before this is acknowledged.
    marked_until: Octet,
    /// CWR goes out with the next new segment.
    reduced: bool,

    // Time.
    rto: Rto,
    timer: Instant,
    /// Karn: an octet whose acknowledgement ends a sample, and when it was sent.
    timed: Option<(Octet, Instant)>,
    last_sent: Instant,
    /// A closed window is probed now; how far it was.
    must_probe: bool,
    probed: Octet,

    settings: Settings,
    stats: TcpStats,
}

/// What does not change.
#[derive(Clone, Copy, Debug)]
struct Settings {
    threshold: u32,
    has_limited_transmit: bool,
    has_nagle: bool,
    initial_window: u64,
    initial_rto: Duration,
    has_sack: bool,
    has_timestamps: bool,
    has_ecn: bool,
}

/// How losses are being repaired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Open,
    Fast,
    Slow,
}

/// Octets to send as one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// The first octet; the SYN stands alone.
    pub(super) start: Octet,
    /// Octets of data.
    pub(super) data: u64,
    /// Whether a FIN follows.
    pub(super) fin: bool,
    /// Why.
    pub(super) reason: Reason,
}

/// Why octets are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reason {
    New,
    /// Sent before, and lost.
    Again,
    /// Sent before; the last resort of RFC 6675, rule 4 of `NextSeg`.
    Rescue,
    /// Beyond the other end's window, to hear of it.
    Probe,
}

impl Piece {
    /// One past its last octet.
    pub(super) fn end(&self) -> Octet {
        let syn = u64::from(self.start == Octet::SYN);
        self.start + (syn + self.data + u64::from(self.fin))
    }
    pub(super) fn is_again(&self) -> bool {
        matches!(self.reason, Reason::Again | Reason::Rescue)
    }
}

/// What an acknowledgement says, its numbers expanded.
pub(super) struct Heard<'a> {
    pub(super) ack: Octet,
    /// The place of the segment that carries it, for the window.
    pub(super) seq: Octet,
    /// The window, unscaled.
    pub(super) window: u64,
    pub(super) sacks: &'a [Range<Octet>],
    /// It carries nothing else.
    pub(super) is_pure: bool,
    /// Age of the time stamp that it echoes.
    pub(super) rtt: Option<Duration>,
    /// It echoes a mark.
    pub(super) echo: bool,
}

impl Sending {
    /// A half that has sent nothing, not even a SYN.
    pub(super) fn new(config: &TcpConfig, initial: TcpSeq) -> Self {
        let mss = config.mss();
        let segments = |setting, key| resolved(setting, key).map_or(u64::MAX, |count| u64::from(count) * mss);
        let initial_window = segments(config.initial_window, "initial-window");
        let ssthresh = resolved(config.initial_ssthresh, "initial-ssthresh").map_or(u64::MAX, |bytes| bytes.get());
        let limit = segments(config.slow_start_limit, "slow-start-limit");
        Self {
            initial,
            acked: Octet::SYN,
            next: Octet::SYN,
            supplied: Octet::FIRST,
            is_closed: false,
            window_end: Octet::FIRST,
            largest_window: 0,
            window_from: (Octet::SYN, Octet::SYN),
            board: Scoreboard::default(),
            mode: Mode::Open,
            recover: Octet::SYN,
            resent: Octet::SYN,
            rescue: Octet::SYN,
            must_resend: false,
            was_partial: false,
            duplicates: 0,
            limited: 0,
            timed_out_at: Octet::SYN,
            window: Window::new(initial_window, ssthresh, mss, limit),
            control: AnyControl::from(&config.congestion),
            coupling: Coupling::ALONE,
            marked_until: Octet::SYN,
            reduced: false,
            rto: Rto::new(config.initial_rto(), config.min_rto(), config.max_rto),
            timer: Instant::NEVER,
            timed: None,
            last_sent: Instant::ZERO,
            must_probe: false,
            probed: Octet::SYN,
            settings: Settings {
                threshold: config.dup_thresh,
                has_limited_transmit: config.limited_transmit,
                has_nagle: config.nagle,
                initial_window,
                initial_rto: config.initial_rto(),
                has_sack: false,
                has_timestamps: false,
                has_ecn: false,
            },
            stats: TcpStats::default(),
        }
    }

    /// The SYN has been sent and acknowledged already.
    pub(super) fn skip_handshake(&mut self, window: u64) {
        (self.acked, self.next, self.resent) = (Octet::FIRST, Octet::FIRST, Octet::FIRST);
        self.offer(Octet::FIRST, window);
    }
    /// What both ends agreed upon.
    pub(super) fn agree(&mut self, mss: u64, has_sack: bool, has_timestamps: bool) {
        if mss < self.window.mss {
            let segments = |octets: u64| if octets == u64::MAX { octets } else { octets / self.window.mss * mss };
            self.settings.initial_window = segments(self.settings.initial_window);
            let limit = self.window.scaled_limit(mss);
            let cwnd = segments(self.window.cwnd);
            self.window = Window::new(cwnd, self.window.ssthresh, mss, limit);
        }
        self.settings.has_sack = has_sack;
        self.settings.has_timestamps = has_timestamps;
    }

    /// Octets sent and not acknowledged: FlightSize.
    pub(super) fn flight(&self) -> u64 {
        self.next - self.acked
    }
    /// What a reduction begins from, with `flight` octets outstanding: no more than may be in the network.
    /// While a hole stays open, what was SACKed behind it is outstanding, too, and may be many windows;
    /// and who loses a retransmission reduces twice (RFC 5681, section 4.3).
    fn in_network(&self, flight: u64) -> u64 {
        let is_inflated = self.mode == Mode::Fast && !self.settings.has_sack;
        flight.min(if is_inflated { self.window.ssthresh } else { self.window.cwnd })
    }
    /// Full segments believed to be in the network, and the octets that may be.
    pub(super) fn in_flight(&self) -> (u64, u64) {
        (self.pipe().div_ceil(self.window.mss), self.window.cwnd)
    }
    /// Congestion window in octets and smoothed round-trip time, if there is one.
    pub(super) fn window_and_rtt(&self) -> (u64, Option<Duration>) {
        (self.window.cwnd, self.rto.smoothed())
    }
    /// Whether a full segment more would be sent at once.
    pub(super) fn has_room_for_more(&self) -> bool {
        let is_open = self.acked > Octet::SYN && !self.must_resend && !self.has_unsent();
        let pipe = self.pipe();
        let fits = match self.mode {
            Mode::Fast if self.settings.has_sack => self.window.cwnd.saturating_sub(pipe) >= self.window.mss,
            _ => self.has_room(pipe, self.window.mss),
        };
        is_open && fits && self.window_end.since(self.next) >= self.window.mss
    }
    /// Whether all was sent and nothing more could be.
    pub(super) fn is_full(&self) -> bool {
        self.acked > Octet::SYN && !self.has_unsent() && !self.has_room_for_more()
    }
    /// Whether the application has supplied octets that were never sent.
    pub(super) fn has_unsent(&self) -> bool {
        self.supplied > self.next
    }
    /// Whether a FIN was sent.
    pub(super) fn is_fin_sent(&self) -> bool {
        self.next > self.supplied
    }
    pub(super) fn deadline(&self) -> Instant {
        self.timer
    }
    pub(super) fn stats(&self) -> TcpStats {
        TcpStats { cwnd: self.window.cwnd, ssthresh: self.window.ssthresh, ..self.stats }
    }
    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rto.smoothed()
    }
}

/// What to send.
impl Sending {
    /// The segment to send next, if any may be sent.
    pub(super) fn next(&self) -> Option<Piece> {
        if self.next == Octet::SYN {
            return Some(Piece { start: Octet::SYN, data: 0, fin: false, reason: Reason::New });
        }
        if self.must_resend && self.flight() > 0 {
            return self.again(self.acked..self.next, Reason::Again);
        }
        let pipe = self.pipe();
        match self.mode {
            Mode::Fast if self.settings.has_sack => self.next_by_scoreboard(pipe),
            Mode::Slow => {
                let hole = self.board.hole(self.resent, self.recover);
                match hole.and_then(|hole| self.again(hole, Reason::Again)) {
                    Some(piece) => Some(piece).filter(|piece| self.has_room(pipe, piece.data)),
                    None => self.new_piece(pipe),
                }
            }
            Mode::Open | Mode::Fast => self.new_piece(pipe),
        }
    }

    /// `NextSeg` (RFC 6675, section 4), if cwnd has room for a segment.
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
            // One segment that includes the last octet, cut where segments are cut.
            let before = (hole.end - hole.start).div_ceil(self.window.mss).saturating_sub(1);
            self.again(hole.start + before * self.window.mss..hole.end, Reason::Rescue)
        })
    }

    /// A segment from the beginning of `hole`.
    fn again(&self, hole: Range<Octet>, reason: Reason) -> Option<Piece> {
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

    /// Octets that were never sent: congestion window, receiver's window, and no silly ones (RFC 9293,
    /// section 3.8.6.2.1).
    fn new_piece(&self, pipe: u64) -> Option<Piece> {
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

    /// Whether cwnd lets `data` octets more into the network. Without SACK, the first two duplicate
    /// acknowledgements let one segment each (RFC 3042).
    fn has_room(&self, pipe: u64, data: u64) -> bool {
        let extra = match self.mode {
            Mode::Open if self.settings.has_limited_transmit && !self.settings.has_sack => {
                u64::from(self.duplicates.min(2)) * self.window.mss
            }
            _ => 0,
        };
        pipe == 0 || pipe + data <= self.window.cwnd.saturating_add(extra)
    }

    /// Octets believed to be in the network.
    fn pipe(&self) -> u64 {
        match self.mode {
            // RFC 6582 inflates the window instead.
            Mode::Fast if !self.settings.has_sack => self.flight(),
            Mode::Open if !self.settings.has_limited_transmit => self.flight(),
            _ => self.board.pipe(self.acked, self.resent.max(self.acked), self.next),
        }
    }

    /// The piece that [`Sending::next`] named leaves now. Returns whether CWR goes with it.
    pub(super) fn on_sent(&mut self, cx: &mut Cx<'_>, piece: &Piece) -> bool {
        let end = piece.end();
        let mut cwr = false;
        self.stats.sent += 1;
        match piece.reason {
            Reason::New => {
                if self.mode == Mode::Open && self.duplicates > 0 {
                    self.limited += piece.data;
                }
                self.next = end;
                self.timed.get_or_insert((end, cx.now));
                cwr = piece.data > 0 && core::mem::take(&mut self.reduced);
            }
            Reason::Again | Reason::Rescue => {
                self.on_sent_again(cx, piece);
                if piece.reason == Reason::Rescue {
                    self.rescue = self.recover;
                } else {
                    self.resent = self.resent.max(end);
                    if core::mem::take(&mut self.must_resend) && self.settings.has_sack {
                        self.rescue = self.resent;
                    }
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
        cwr
    }

    fn on_sent_again(&mut self, cx: &mut Cx<'_>, piece: &Piece) {
        self.stats.retransmissions += 1;
        cx.trace(|| Trace::Retransmitted { seq: place(piece.start) });
        // Karn: whose acknowledgement is it?
        if self.timed.is_some_and(|(end, _)| piece.start < end) {
            self.timed = None;
        }
        // The careful variant of RFC 6675, section 6.
        self.start_timer(cx.now);
    }

    /// The first octet outstanding goes again.
    pub(super) fn repeat(&mut self) {
        self.must_resend = self.flight() > 0;
    }

    /// RFC 5681, section 4.1: who has been silent for an RTO begins again.
    pub(super) fn restart_after_idle(&mut self, now: Instant) {
        let is_idle = self.flight() == 0 && self.next > Octet::FIRST && now.since(self.last_sent) > self.rto.timeout();
        if is_idle && self.window.cwnd > self.settings.initial_window {
            self.window.set(self.settings.initial_window);
        }
    }
}

/// What is heard.
impl Sending {
    /// Whether an acknowledgement names octets that were never sent.
    pub(super) fn is_beyond(&self, ack: Octet) -> bool {
        ack > self.next.max(self.probed)
    }

    /// An acknowledgement, no older than the newest.
    pub(super) fn on_ack(&mut self, cx: &mut Cx<'_>, heard: &Heard<'_>) {
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
        // Checked on every acknowledgement: SACK blocks beside progress tell of losses, too.
        let lost = self.board.is_lost(self.acked) && !self.board.is_empty();
        if self.mode == Mode::Open && lost && self.acked >= self.recover {
            self.enter_fast(cx);
        }
        self.watch_window(cx.now);
    }

    /// RFC 9293, section 3.10.7.4. Returns whether the window changed.
    fn update_window(&mut self, heard: &Heard<'_>) -> bool {
        let (seq, ack) = self.window_from;
        if heard.seq < seq || (heard.seq == seq && heard.ack < ack) {
            return false;
        }
        self.window_from = (heard.seq, heard.ack);
        let before = core::mem::replace(&mut self.window_end, heard.ack + heard.window);
        self.largest_window = self.largest_window.max(heard.window);
        before.since(self.acked) != heard.window
    }

    fn offer(&mut self, from: Octet, window: u64) {
        self.window_end = from + window;
        self.largest_window = self.largest_window.max(window);
        self.window_from = (Octet::SYN, from);
    }

    /// Returns how many octets are newly SACKed.
    fn update_scoreboard(&mut self, sacks: &[Range<Octet>]) -> u64 {
        if !self.settings.has_sack {
            return 0;
        }
        let mut news = 0;
        for block in sacks {
            // What is acknowledged, never sent, or nonsense.
            if block.start >= self.acked && block.end <= self.next && block.start < block.end {
                news += self.board.update(block.clone());
            }
        }
        if news > 0 {
            self.board.judge(self.settings.threshold, self.window.mss);
        }
        news
    }

    /// New data is acknowledged.
    fn on_progress(&mut self, cx: &mut Cx<'_>, heard: &Heard<'_>, octets: u64, in_use: bool) {
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
                // What was SACKed left the network long ago: it makes no room.
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

    /// RFC 7323, section 4.1 and appendix G, or Karn's algorithm (RFC 6298, section 3).
    fn take_sample(&mut self, now: Instant, heard: &Heard<'_>, flight: u64) {
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

    /// RFC 5681, section 3.1, and RFC 6298, rule 5.7: who lost a SYN begins with one segment.
    fn on_syn_acked(&mut self) {
        self.mode = Mode::Open;
        self.window.set(self.settings.initial_window);
        if self.stats.timeouts > 0 {
            self.window.set(self.window.mss);
            self.window.ssthresh = u64::MAX;
            self.rto.distrust(self.settings.initial_rto * 3);
        }
    }

    /// RFC 5681, section 2; with SACK RFC 6675, section 2.
    fn is_duplicate(&self, heard: &Heard<'_>, news: u64, is_same_window: bool) -> bool {
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

    /// Not for what was sent before a timeout (RFC 6675, section 5.1; RFC 6582, section 3.2).
    fn may_enter_fast(&self) -> bool {
        if self.settings.has_sack { self.acked >= self.recover } else { self.acked > self.recover }
    }

    /// RFC 6675, section 5, step 4; RFC 6582, section 3.2, steps 2 and 3.
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
        // A reduction for a loss is one for marks of the same window.
        self.marked_until = self.next;
        cx.trace(|| Trace::RecoveryEntered { acked: place(self.acked), by_timeout: false });
    }

    fn leave_fast(&mut self, cx: &mut Cx<'_>) {
        self.mode = Mode::Open;
        self.must_resend = false;
        self.limited = 0;
        // RFC 6582, section 3.2, step 3, the first way; with SACK, cwnd is ssthresh already.
        if !self.settings.has_sack {
            let mss = self.window.mss;
            self.window.set(self.window.ssthresh.min(self.flight().max(mss) + mss));
        }
        cx.trace(|| Trace::RecoveryLeft { acked: place(self.acked) });
    }

    /// A partial acknowledgement (RFC 6582, section 3.2, step 3). Returns whether the timer restarts:
    /// for the first one only.
    fn on_partial(&mut self, octets: u64) -> bool {
        let mss = self.window.mss;
        self.must_resend = true;
        let back = if octets >= mss { mss } else { 0 };
        self.window.cwnd = (self.window.cwnd.saturating_sub(octets) + back).max(mss);
        !core::mem::replace(&mut self.was_partial, true)
    }

    /// ECN (RFC 3168, section 6.1.2; RFC 8257, section 3.3).
    fn on_feedback(&mut self, octets: u64, echo: bool, flight: u64) {
        self.control.on_echo(octets, echo, self.acked, self.next);
        if echo && self.mode == Mode::Open && self.acked > self.marked_until {
            self.window.ssthresh = self.control.on_mark(&self.window, self.in_network(flight));
            self.window.set(self.window.ssthresh);
            self.marked_until = self.next;
            self.reduced = true;
        }
    }
    /// Marks will be echoed.
    pub(super) fn expect_marks(&mut self) {
        self.settings.has_ecn = true;
    }
}

/// Time.
impl Sending {
    fn start_timer(&mut self, now: Instant) {
        self.timer = now.saturating_add(self.rto.timeout());
    }

    /// While something waits, nothing is outstanding and nothing may be sent, the timer probes the
    /// other end's window (RFC 9293, section 3.8.6.1).
    pub(super) fn watch_window(&mut self, now: Instant) {
        if self.flight() > 0 || self.acked == Octet::SYN {
            return;
        }
        let is_stuck = self.supplied > self.next && (self.must_probe || self.next().is_none());
        if !is_stuck {
            self.timer = Instant::NEVER;
        } else if self.timer == Instant::NEVER {
            self.start_timer(now);
        }
    }

    /// The deadline has passed.
    pub(super) fn on_timeout(&mut self, cx: &mut Cx<'_>) {
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
        cx.trace(|| Trace::TimedOut { acked: place(self.acked) });
        // ssthresh is held while the same octets time out again (RFC 5681, section 3.1).
        let is_first = self.mode != Mode::Slow || self.timed_out_at != self.acked;
        if is_first {
            self.window.ssthresh = self.control.on_timeout(&self.window, self.in_network(self.flight()));
        }
        // A receiver that reneges, or seems to (RFC 2018, section 8).
        if !is_first || self.board.is_sacked(self.acked) {
            self.board.forget_all();
        }
        self.window.set(self.window.mss);
        self.mode = Mode::Slow;
        self.timed_out_at = self.acked;
        self.recover = self.next;
        self.resent = self.acked;
        self.board.lose_all(self.next);
        self.must_resend = false;
        (self.duplicates, self.limited, self.timed) = (0, 0, None);
        self.marked_until = self.next;
        self.start_timer(cx.now);
        cx.trace(|| Trace::RecoveryEntered { acked: place(self.acked), by_timeout: true });
    }
}

/// Traces count packets where engines of RDMA speak, octets here.
pub(super) fn place(octet: Octet) -> Seq {
    Seq::new(octet.index())
}
