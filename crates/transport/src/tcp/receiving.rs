//! The receiving half of a connection: reassembly and acknowledgements.

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Octet, TcpSeq};
use selvedge_wire::tcp::{Flags, Sacks};

use super::Params;
use super::connection::{TICK, age_of};
use super::ranges::Ranges;
use super::sending::place;
use crate::role::Cx;

/// The receiving half of a connection.
#[derive(Clone, Debug)]
pub(super) struct Receiving {
    /// IRS, the initial receive sequence number.
    pub(super) initial: TcpSeq,
    /// RCV.NXT, the next octet expected.
    pub(super) next: Octet,
    /// Octets that have arrived beyond a gap.
    queue: Ranges,
    /// An octet of each of the most recently changed blocks, newest first (RFC 2018, section 4).
    recent: [Octet; Sacks::MOST],
    /// Octets that have arrived twice, to report with the next acknowledgement (RFC 2883).
    twice: Option<Range<Octet>>,
    /// Position of the other end's FIN.
    fin: Option<Octet>,

    // Flow control.
    buffer: u64,
    /// Octets in order that the application has not read.
    unread: u64,
    /// The announced right edge of the window; never decreases.
    edge: Octet,
    pub(super) scale: u8,
    mss: u64,

    // Acknowledging.
    /// The newest acknowledgement sent: Last.ACK.sent.
    acknowledged: Octet,
    /// Octets received in order since the newest acknowledgement.
    pending: u64,
    /// Deadline of the delayed acknowledgement.
    timer: Instant,
    /// Whether an acknowledgement is to be sent now.
    is_due: bool,
    /// An acknowledgement to send first, of the octets received before marks began or ended (RFC 8257, section 3.2).
    earlier: Option<(Octet, bool)>,
    delay: Duration,
    every: u64,
    echo: Echo,

    /// TS.Recent, after the first time stamp.
    stamp: Option<Stamp>,
}

/// A time stamp of the other end, and the time at which the shared time stamp clock showed it.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    value: u32,
    sent_at: Instant,
}

/// Validity period of TS.Recent (RFC 7323, section 5.5): less than the time in which the time stamp clock changes its
/// sign bit, after which new stamps appear old. With a clock of one tick per millisecond the RFC has 24 of 24.8 days;
/// this clock ticks once per microsecond ([`TICK`]): 34.56 of 35.8 minutes.
const STAMP_LASTS: Duration = Duration::from_ps(TICK.as_ps() * 24 * 86_400_000);

/// Mode of echoing congestion marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Echo {
    /// No echo.
    Off,
    /// Echo from a mark until CWR (RFC 3168, section 6.1.3).
    UntilReduced(bool),
    /// Echo of the newest segment's mark (RFC 8257, section 3.2).
    Exact(bool),
}

/// A segment's text, with its numbers expanded.
pub(super) struct Text {
    pub(super) start: Octet,
    pub(super) data: u64,
    pub(super) fin: bool,
    pub(super) marked: bool,
    pub(super) cwr: bool,
}

/// The effect of a segment's data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrival {
    /// Octets that arrived for the first time, in order or not.
    pub fresh: u64,
    /// Octets that became readable for the application.
    pub in_order: u64,
    /// Whether the segment carried only data that had arrived before.
    pub is_duplicate: bool,
}

impl Receiving {
    /// Creates a half that has received nothing.
    pub(super) fn new(params: &Params) -> Self {
        Self {
            initial: TcpSeq::new(0),
            next: Octet::SYN,
            queue: Ranges::default(),
            recent: [Octet::SYN; Sacks::MOST],
            twice: None,
            fin: None,
            buffer: params.buffer,
            unread: 0,
            edge: Octet::SYN,
            scale: 0,
            mss: params.mss,
            acknowledged: Octet::SYN,
            pending: 0,
            timer: Instant::NEVER,
            is_due: false,
            earlier: None,
            delay: params.settings.ack_delay,
            every: params.settings.ack_every,
            echo: Echo::Off,
            stamp: None,
        }
    }

    /// Handles the other end's SYN.
    pub(super) fn begin(&mut self, initial: TcpSeq) {
        self.initial = initial;
        self.next = Octet::FIRST;
        self.acknowledged = Octet::FIRST;
        self.edge = Octet::FIRST + self.buffer.min(u64::from(u16::MAX) << self.scale);
    }
    /// Enables the echo of marks.
    pub(super) fn echo_marks(&mut self, echo: Echo) {
        self.echo = echo;
    }

    pub(super) fn deadline(&self) -> Instant {
        self.timer
    }
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }
    pub(super) fn has_earlier(&self) -> bool {
        self.earlier.is_some()
    }
    /// Schedules an immediate acknowledgement.
    pub(super) fn hurry(&mut self) {
        self.is_due = true;
    }
    /// Handles the deadline of the delayed acknowledgement.
    pub(super) fn handle_timeout(&mut self) {
        self.timer = Instant::NEVER;
        self.is_due = true;
    }
    /// Returns whether everything up to the other end's FIN has arrived.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// Returns whether a segment is outdated by its time stamp (PAWS; RFC 7323, section 5.3, rule R1); if not, records
    /// the stamp to echo (section 4.3, rule 2). After a long silence no segment is outdated (section 5.5).
    pub(super) fn is_outdated(&mut self, now: Instant, value: u32, start: Octet) -> bool {
        if let Some(recent) = self.stamp
            && (value.wrapping_sub(recent.value) as i32) < 0
            && now.since(recent.sent_at) <= STAMP_LASTS
        {
            return true;
        }
        if start <= self.acknowledged {
            let age = age_of(value, now);
            self.stamp = Some(Stamp { value, sent_at: Instant::from_ps(now.as_ps().saturating_sub(age.as_ps())) });
        }
        false
    }
    /// Returns TS.Recent.
    pub(super) fn stamp(&self) -> u32 {
        self.stamp.map_or(0, |stamp| stamp.value)
    }

    /// Handles a segment's text.
    pub(super) fn on_text(&mut self, cx: &mut Cx<'_>, text: &Text) -> Arrival {
        let end = text.start + text.data;
        if text.data == 0 && !text.fin {
            // A segment before the window is a keep-alive or a probe.
            self.is_due |= text.start < self.next;
            return Arrival::default();
        }
        self.note_mark(text);
        if text.fin && self.fin.is_none() && (self.next..=self.edge).contains(&end) {
            self.fin = Some(end);
        }
        if text.data > 0 && text.start < self.next {
            self.twice = Some(text.start.max(Octet::FIRST)..end.min(self.next)).filter(|twice| !twice.is_empty());
        }
        let from = text.start.max(self.next);
        let to = end.min(self.edge).min(self.fin.unwrap_or(end));
        let arrival = if from >= to {
            self.is_due = true;
            Arrival { is_duplicate: text.data > 0 && end <= self.next, ..Arrival::default() }
        } else if from == self.next {
            self.in_order(cx.now, to)
        } else {
            self.behind_a_gap(cx, from..to)
        };
        if self.fin == Some(self.next) {
            self.next += 1;
            self.is_due = true;
        }
        arrival
    }

    /// Accepts the octets up to `to`, which are in order.
    fn in_order(&mut self, now: Instant, to: Octet) -> Arrival {
        let from = self.next;
        let fresh = (to - from) - self.queue.octets_before(to);
        // A segment that fills a gap, wholly or partly, is acknowledged at once (RFC 5681, section 4.2).
        self.is_due |= !self.queue.is_empty();
        self.next = self.queue.around(to).map_or(to, |block| block.end);
        self.queue.forget_before(self.next);
        let in_order = self.next - from;
        self.unread += in_order;
        self.pending += in_order;
        if self.delay.is_zero() || self.pending >= self.every {
            self.is_due = true;
        } else if self.timer == Instant::NEVER {
            self.timer = now.saturating_add(self.delay);
        }
        Arrival { fresh, in_order, is_duplicate: false }
    }

    /// Keeps octets that arrived out of order, unless they would make too many ranges.
    fn behind_a_gap(&mut self, cx: &mut Cx<'_>, range: Range<Octet>) -> Arrival {
        self.is_due = true;
        cx.trace(|| Trace::OutOfOrder { expected: place(self.next), seq: place(range.start) });
        if self.queue.len() >= self.most_pieces() && self.queue.is_apart(&range) {
            return Arrival::default();
        }
        let first = range.start;
        let fresh = self.queue.insert(range.clone());
        if fresh == 0 {
            self.twice = Some(range);
        }
        let is_in_block = |octet: &Octet| self.queue.around(first).is_some_and(|block| block.contains(octet));
        let last = self.recent.iter().position(is_in_block).unwrap_or(Sacks::MOST - 1);
        self.recent[..=last].rotate_right(1);
        self.recent[0] = first;
        Arrival { fresh, in_order: 0, is_duplicate: fresh == 0 }
    }

    /// Returns the most ranges kept: as many as full segments can make.
    fn most_pieces(&self) -> usize {
        ((self.buffer / self.mss) as usize).max(Sacks::MOST)
    }

    fn note_mark(&mut self, text: &Text) {
        match self.echo {
            Echo::Off => {}
            Echo::UntilReduced(echo) => {
                self.echo = Echo::UntilReduced(text.marked || (echo && !text.cwr));
            }
            Echo::Exact(before) if before != text.marked => {
                if self.pending > 0 {
                    self.earlier = Some((self.next, before));
                }
                self.echo = Echo::Exact(text.marked);
            }
            Echo::Exact(_) => {}
        }
    }

    /// Records that the application has read `octets`. A window that was nearly closed is announced when it has opened
    /// far enough (RFC 9293, section 3.8.6.2.2).
    pub(super) fn read(&mut self, octets: u64) {
        self.unread -= octets.min(self.unread);
        let worth = (2 * self.mss).min(self.buffer / 2);
        self.is_due |= self.edge.since(self.next) < worth && self.room().since(self.edge) >= worth;
    }

    /// Returns the right edge that the buffer allows.
    fn room(&self) -> Octet {
        self.next + self.buffer.saturating_sub(self.unread)
    }

    /// Returns the acknowledgement to send now: number, window field, ECN flags.
    pub(super) fn acknowledge(&mut self, with_syn: bool) -> (TcpSeq, u16, Flags) {
        if let Some((next, echo)) = self.earlier.take() {
            let window = self.window_field(next, with_syn);
            return (next.to_seq(self.initial), window, Flags::ECE.when(echo));
        }
        // Silly window avoidance (RFC 9293, section 3.8.6.2.2).
        let room = self.room();
        if room.since(self.edge) >= self.mss.min(self.buffer / 2) {
            self.edge = room;
        }
        self.acknowledged = self.next;
        (self.pending, self.timer, self.is_due) = (0, Instant::NEVER, false);
        let echo = matches!(self.echo, Echo::UntilReduced(true) | Echo::Exact(true));
        (self.next.to_seq(self.initial), self.window_field(self.next, with_syn), Flags::ECE.when(echo))
    }

    /// Returns the window field, scaled except on a SYN (RFC 7323, section 2.3).
    fn window_field(&self, from: Octet, with_syn: bool) -> u16 {
        let shift = if with_syn { 0 } else { self.scale };
        u16::try_from(self.edge.since(from) >> shift).unwrap_or(u16::MAX)
    }

    /// Returns the SACK blocks, newest first (RFC 2018, section 4), behind a duplicate, which is reported once (RFC
    /// 2883, section 4).
    pub(super) fn take_sacks(&mut self, room: usize) -> Sacks {
        let twice = self.twice.take();
        if self.queue.is_empty() && twice.is_none() {
            return Sacks::default();
        }
        let mut blocks: [Option<&Range<Octet>>; Sacks::MOST] = [None; Sacks::MOST];
        let mut count = 0;
        let recent = self.recent.iter().filter_map(|&octet| self.queue.around(octet));
        for block in recent.chain(self.queue.iter()) {
            if count + usize::from(twice.is_some()) == room {
                break;
            }
            if !blocks[..count].contains(&Some(block)) {
                blocks[count] = Some(block);
                count += 1;
            }
        }
        let seq = |octet: Octet| octet.to_seq(self.initial);
        let all = twice.iter().chain(blocks.into_iter().flatten());
        all.map(|block| (seq(block.start), seq(block.end))).collect()
    }
}
