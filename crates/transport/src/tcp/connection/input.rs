//! Input of a connection: segments of the other end.

use core::ops::Range;

use selvedge_telemetry::Trace;
use selvedge_units::{Instant, Octet, TcpSeq};
use selvedge_wire::tcp::{Flags, Sacks, Segment};

use super::{Connection, Phase, State, age_of};
use crate::role::Cx;
use crate::tcp::TcpConfig;
use crate::tcp::receiving::{Arrival, Echo, Text};
use crate::tcp::sending::{Acknowledgement, place};

impl Connection {
    /// Handles a segment; `marked` tells whether it arrived with congestion experienced. Call
    /// [`Connection::poll_transmit`] afterwards.
    pub fn handle_segment(&mut self, cx: &mut Cx<'_>, segment: &Segment, marked: bool) -> Arrival {
        let arrival = match self.phase {
            Phase::Closed => Arrival::default(),
            Phase::Listen => {
                if segment.flags.contains(Flags::SYN) && !segment.flags.intersects(Flags::ACK | Flags::RST) {
                    self.take_syn(cx.now, segment, Flags::ECE | Flags::CWR);
                    self.phase = Phase::SynReceived;
                }
                Arrival::default()
            }
            Phase::SynSent => {
                self.on_answer(cx, segment);
                Arrival::default()
            }
            Phase::SynReceived | Phase::Synchronised => self.on_segment(cx, segment, marked),
        };
        self.settle(cx.now);
        arrival
    }

    /// Handles the other end's SYN (RFC 9293, section 3.10.7.2). With ECN it carries the flags `setup` (RFC 3168,
    /// section 6.1.1).
    fn take_syn(&mut self, now: Instant, segment: &Segment, setup: Flags) {
        let scale = segment.syn.window_scale.zip(self.offers_syn.window_scale);
        // RFC 7323, section 2.3: shifts above 14 are treated as 14.
        self.is_scaled = scale.is_some();
        self.agreed.scale = scale.map_or(0, |(theirs, _)| theirs.min(14));
        self.receiving.scale = scale.map_or(0, |(_, ours)| ours);
        self.agreed.sack &= segment.syn.sack_permitted;
        self.agreed.timestamps &= segment.timestamps.is_some();
        self.agreed.ecn &= segment.flags.contains(setup);
        self.receiving.begin(segment.seq);
        if let Some(stamps) = segment.timestamps {
            let _ = self.receiving.is_outdated(now, stamps.value, Octet::SYN);
        }
        // RFC 9293, section 3.7.1: 536 without the option. The MSS excludes options (RFC 6691).
        let theirs = u64::from(segment.syn.mss.unwrap_or(536));
        let options = if self.agreed.timestamps { TcpConfig::STAMP } else { 0 };
        self.agree(theirs.saturating_sub(options).max(1));
    }

    pub(super) fn agree(&mut self, mss: u64) {
        self.sending.agree(mss, self.agreed.sack, self.agreed.timestamps);
        if self.agreed.ecn {
            self.sending.expect_marks();
            self.receiving.echo_marks(if self.has_exact_echo { Echo::Exact(false) } else { Echo::UntilReduced(false) });
        }
    }

    /// Handles a segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    fn on_answer(&mut self, cx: &mut Cx<'_>, segment: &Segment) {
        let has_ack = segment.flags.contains(Flags::ACK);
        if has_ack && segment.ack != Octet::FIRST.to_seq(self.sending.initial) {
            cx.trace(|| Trace::AckIgnored { sent: place(self.sending.next) });
            return;
        }
        if segment.flags.contains(Flags::RST) {
            self.reset(has_ack);
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        if has_ack {
            self.take_syn(cx.now, segment, Flags::ECE);
            self.phase = Phase::Synchronised;
            self.receiving.hurry();
            self.take_ack(cx, segment, Octet::SYN);
        } else {
            // Simultaneous open.
            self.take_syn(cx.now, segment, Flags::ECE | Flags::CWR);
            self.phase = Phase::SynReceived;
            self.sending.repeat();
        }
    }

    /// Handles a segment in a later state (RFC 9293, section 3.10.7.4; with the checks of RFC 5961).
    fn on_segment(&mut self, cx: &mut Cx<'_>, segment: &Segment, marked: bool) -> Arrival {
        let start = segment.seq.near(self.receiving.next, self.receiving.initial);
        let Some(start) = start else {
            self.receiving.hurry();
            return Arrival::default();
        };
        if segment.flags.contains(Flags::RST) {
            self.reset(start == self.receiving.next);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::SYN) {
            // In a simultaneous open, the other end acknowledges our SYN with its SYN.
            if segment.flags.contains(Flags::ACK) {
                self.take_ack(cx, segment, start);
            }
            match self.phase {
                Phase::SynReceived => self.sending.repeat(),
                _ => self.receiving.hurry(),
            }
            return Arrival::default();
        }
        if self.agreed.timestamps {
            let Some(stamps) = segment.timestamps else { return Arrival::default() };
            if self.receiving.is_outdated(cx.now, stamps.value, start) {
                self.receiving.hurry();
                return Arrival::default();
            }
        }
        if !segment.flags.contains(Flags::ACK) || !self.take_ack(cx, segment, start) {
            return Arrival::default();
        }
        if self.receiving.is_finished() && segment.flags.contains(Flags::FIN) && self.forget_at != Instant::NEVER {
            self.forget_at = cx.now.saturating_add(self.time_wait); // TIME-WAIT begins again
        }
        let text = Text {
            start,
            data: u64::from(segment.payload),
            fin: segment.flags.contains(Flags::FIN),
            marked: marked && self.agreed.ecn,
            cwr: segment.flags.contains(Flags::CWR),
        };
        self.receiving.on_text(cx, &text)
    }

    /// Handles the acknowledgement of a segment that begins at `start`. Returns whether the rest of the segment is
    /// processed.
    fn take_ack(&mut self, cx: &mut Cx<'_>, segment: &Segment, start: Octet) -> bool {
        let initial = self.sending.initial;
        let near = |seq: TcpSeq| seq.near(self.sending.next, initial);
        let Some(ack) = near(segment.ack).filter(|&ack| !self.sending.is_beyond(ack)) else {
            cx.trace(|| Trace::AckIgnored { sent: place(self.sending.next) });
            self.receiving.hurry();
            return false;
        };
        if self.phase == Phase::SynReceived && ack >= Octet::FIRST {
            self.phase = Phase::Synchronised;
        }
        if ack < self.sending.acked {
            return true;
        }
        let mut sacks: [Range<Octet>; Sacks::MOST] = core::array::from_fn(|_| Octet::SYN..Octet::SYN);
        for (block, (from, to)) in sacks.iter_mut().zip(segment.sacks.iter()) {
            *block = near(from).unwrap_or_default()..near(to).unwrap_or_default();
        }
        let is_syn = segment.flags.contains(Flags::SYN);
        let rtt = segment.timestamps.filter(|_| self.agreed.timestamps).map(|stamps| age_of(stamps.echo, cx.now));
        let heard = Acknowledgement {
            ack,
            seq: start,
            window: u64::from(segment.window) << if is_syn { 0 } else { self.agreed.scale },
            sacks: &sacks[..segment.sacks.len()],
            is_pure: segment.payload == 0 && !segment.flags.intersects(Flags::FIN | Flags::SYN),
            rtt,
            echo: self.agreed.ecn && !is_syn && segment.flags.contains(Flags::ECE),
        };
        self.sending.handle_ack(cx, &heard);
        true
    }

    /// Handles a reset: accepted at the expected sequence number, else challenged (RFC 5961, section 3.2).
    fn reset(&mut self, is_believed: bool) {
        if is_believed {
            self.phase = Phase::Closed;
            self.is_reset = true;
        } else {
            self.receiving.hurry();
        }
    }

    /// Updates the state once both directions are closed.
    fn settle(&mut self, now: Instant) {
        if self.phase == Phase::Synchronised && self.state() == State::TimeWait {
            if self.closes_second {
                self.phase = Phase::Closed;
            } else if self.forget_at == Instant::NEVER {
                self.forget_at = now.saturating_add(self.time_wait);
            }
        }
    }
}
