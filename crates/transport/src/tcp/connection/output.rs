//! Output of a connection: segments and deadlines.

use selvedge_units::{Instant, Octet, TcpSeq};
use selvedge_wire::tcp::{Flags, Sacks, Segment, Timestamps};

use super::{Connection, Phase, Transmit, clock};
use crate::role::Cx;
use crate::tcp::sending::{Piece, Reason};

impl Connection {
    /// Returns whether [`Connection::poll_transmit`] would return a segment now.
    pub fn is_ready(&self) -> bool {
        self.next() != Step::Nothing
    }

    /// Returns the segment to send now, if any.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Transmit> {
        self.sending.restart_after_idle(cx.now);
        match self.next() {
            Step::Acknowledge => Some(self.acknowledgement(cx.now)),
            Step::Send(piece) => Some(self.send(cx, &piece)),
            Step::Nothing => {
                self.sending.note_idle();
                self.sending.watch_window(cx.now);
                None
            }
        }
    }

    /// Returns the time at which [`Connection::handle_timeout`] is due. Until then, without further input,
    /// `poll_transmit` returns `None`. Assumes that `poll_transmit` was called until it returned `None`.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.phase == Phase::Closed {
            return None;
        }
        let earliest = self.sending.deadline().min(self.receiving.deadline()).min(self.forget_at);
        (earliest < Instant::NEVER).then_some(earliest)
    }

    /// Handles the deadlines due at `cx.now`. An early or repeated call has no effect.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if self.phase == Phase::Closed {
            return;
        }
        if self.forget_at <= cx.now {
            self.phase = Phase::Closed;
        }
        if self.receiving.deadline() <= cx.now {
            self.receiving.handle_timeout();
        }
        if self.sending.deadline() <= cx.now {
            self.sending.handle_timeout(cx);
        }
    }

    /// Decides the next step, for [`Connection::is_ready`] and [`Connection::poll_transmit`].
    fn next(&self) -> Step {
        if matches!(self.phase, Phase::Listen | Phase::Closed) {
            return Step::Nothing;
        }
        if self.receiving.has_earlier() {
            return Step::Acknowledge;
        }
        match self.sending.next() {
            Some(piece) => Step::Send(piece),
            None if self.receiving.is_due() && self.phase != Phase::SynSent => Step::Acknowledge,
            None => Step::Nothing,
        }
    }

    fn send(&mut self, cx: &mut Cx<'_>, piece: &Piece) -> Transmit {
        let is_syn = piece.start == Octet::SYN;
        let cwr = self.sending.on_sent(cx, piece);
        if piece.fin {
            self.closes_second |= self.receiving.is_finished() && !piece.is_again();
        }
        let mut segment = self.blank(cx.now, is_syn);
        segment.seq = piece.start.to_seq(self.sending.initial);
        segment.payload = piece.data as u16;
        segment.flags |= Flags::SYN.when(is_syn)
            | Flags::FIN.when(piece.fin)
            | Flags::CWR.when(cwr)
            | Flags::PSH.when(piece.data > 0 && piece.start + piece.data == self.sending.supplied);
        if is_syn {
            self.offer(&mut segment);
        }
        // Only octets sent for the first time are ECN-capable (RFC 3168, section 6.1.5).
        let ecn_capable = self.agreed.ecn && piece.data > 0 && piece.reason == Reason::New;
        Transmit { segment, ecn_capable, is_again: piece.is_again() }
    }

    fn acknowledgement(&mut self, now: Instant) -> Transmit {
        let mut segment = self.blank(now, false);
        segment.seq = self.sending.next.to_seq(self.sending.initial);
        let room = if self.agreed.timestamps { Sacks::BESIDE_TIMESTAMPS } else { Sacks::MOST };
        if self.agreed.sack {
            segment.sacks = self.receiving.take_sacks(room);
        }
        Transmit { segment, ecn_capable: false, is_again: false }
    }

    /// Returns a segment with only the fields about the receiving direction filled in.
    fn blank(&mut self, now: Instant, is_syn: bool) -> Segment {
        let (ack, window, echo) = self.receiving.acknowledge(is_syn);
        let is_first = self.phase == Phase::SynSent;
        let stamps = Timestamps { value: clock(now), echo: self.receiving.stamp() };
        Segment {
            ack: if is_first { TcpSeq::new(0) } else { ack },
            flags: if is_first { Flags::default() } else { Flags::ACK | echo },
            window,
            timestamps: self.agreed.timestamps.then_some(stamps),
            ..Segment::default()
        }
    }

    /// Adds the options of a SYN, and the ECN setup flags.
    fn offer(&self, segment: &mut Segment) {
        segment.syn = self.offers_syn;
        let mut setup = Flags::ECE | Flags::CWR;
        if self.phase != Phase::SynSent {
            segment.syn.sack_permitted = self.agreed.sack;
            segment.syn.window_scale = self.offers_syn.window_scale.filter(|_| self.is_scaled);
            setup = Flags::ECE;
        }
        segment.flags |= setup.when(self.agreed.ecn);
    }
}

/// Next step of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Acknowledge,
    Send(Piece),
    Nothing,
}
