//! The sending end of a flow (NDP section 3.2).
//!
//! Design notes.
//! 1. *Credit.* The first window of new packets is sent unsolicited; trimmed packets wait for a pull, since the
//!    congestion that trimmed them persists. Each pull allows one packet. Pulls are numbered, and the highest number
//!    seen counts, so that lost and reordered pulls do no harm.
//! 2. *Order*: trimmed packets, in the order of their reports, then new ones. Credit without a packet to send is kept:
//!    reports of trimmed packets may follow.
//! 3. *Silence.* If even a header was lost, there is neither an answer nor a pull. Such packets are retransmitted after
//!    a timeout, on credit of their own. If the last pulls were lost, one packet is sent after an equally long silence,
//!    to be answered and pulled.

use alloc::collections::VecDeque;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Psn, Seq};
use selvedge_wire::{Ack, AckKind};

use super::config::NdpParams;
use super::paths::Paths;
use crate::role::{Cx, HoldReason};

/// One packet to send, and its path hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NdpSegment {
    /// Sequence number of the packet.
    pub seq: Seq,
    /// Whether the packet was sent before.
    pub retransmission: bool,
    /// Value that ECMP hashes.
    pub entropy: u32,
}

/// The sender of a flow.
#[derive(Clone, Debug)]
pub struct NdpSender {
    first: Psn,
    /// Packets of the flow.
    total: u64,
    /// The lowest packet not known to have arrived.
    acked: Seq,
    /// Packets sent, from `acked` on.
    sent: VecDeque<Sent>,
    /// Packets to retransmit.
    again: VecDeque<Seq>,
    /// New packets that may be sent unsolicited.
    unasked: u64,
    /// Packets allowed by pulls and timeouts.
    credit: u64,
    /// The highest pull number received.
    pulled: u32,
    paths: Paths,
    rto: Duration,
    /// Time of the last transmission or reception.
    busy: Instant,
    /// Time before which no timeout is due.
    deadline: Instant,
    timeouts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    path: u16,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// In flight, as far as known.
    Flying,
    /// To be retransmitted.
    Waiting,
    Arrived,
}

impl NdpSender {
    /// Creates the sender of a flow of `total` packets that begins with `first`; `entropy` distinguishes its paths from
    /// those of other flows.
    pub fn new(params: &NdpParams, first: Psn, total: u64, entropy: u32) -> Self {
        Self {
            first,
            total,
            acked: Seq::new(0),
            sent: VecDeque::new(),
            again: VecDeque::new(),
            unasked: params.window,
            credit: 0,
            pulled: 0,
            paths: Paths::new(params.paths, params.path_penalty, entropy),
            rto: params.rto,
            busy: Instant::ZERO,
            deadline: Instant::NEVER,
            timeouts: 0,
        }
    }

    /// Handles the receiver's report on one packet and on all packets before `expected`.
    pub fn handle_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
        let Some(expected) = ack.expected.near(self.acked, self.first) else { return };
        let Some(seq) = ack.sack.near(self.acked, self.first) else { return };
        let end = self.acked + self.sent.len() as u64;
        if expected > end || seq >= end {
            cx.trace(|| Trace::AckIgnored { sent: end });
            return;
        }
        self.busy = cx.now;
        if seq >= self.acked {
            let sent = &mut self.sent[(seq - self.acked) as usize];
            match (ack.kind, sent.state) {
                (AckKind::Ack, _) => sent.state = State::Arrived,
                (AckKind::Nack, State::Flying) => {
                    sent.state = State::Waiting;
                    self.paths.punish(sent.path);
                    self.again.push_back(seq);
                }
                (AckKind::Nack, State::Waiting | State::Arrived) => {}
            }
        }
        self.advance(expected);
    }

    /// Handles a pull, which also acknowledges everything before `expected`.
    pub fn handle_pull(&mut self, cx: &Cx<'_>, number: u32, expected: Psn) {
        self.busy = cx.now;
        let more = number.wrapping_sub(self.pulled);
        // Serial numbers: more than half the number space ahead means behind.
        if more < 1 << 31 {
            self.pulled = number;
            self.credit += u64::from(more);
        }
        if let Some(expected) = expected.near(self.acked, self.first)
            && expected <= self.acked + self.sent.len() as u64
        {
            self.advance(expected);
        }
    }

    /// Returns whether a packet can be sent now.
    pub fn is_ready(&self) -> bool {
        match self.credit {
            0 => self.unasked > 0 && self.next_new().is_some(),
            _ => self.next_again().is_some() || self.next_new().is_some(),
        }
    }

    /// Returns the next packet, if one can be sent now.
    pub fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<NdpSegment> {
        let again = if self.credit > 0 { self.take_again() } else { None };
        let seq = match again {
            Some(seq) => seq,
            None if self.credit + self.unasked > 0 => self.next_new()?,
            None => return None,
        };
        let path = self.paths.choose();
        let sent = Sent { at: cx.now, path, state: State::Flying };
        if again.is_some() {
            self.sent[(seq - self.acked) as usize] = sent;
            cx.trace(|| Trace::Retransmitted { seq });
        } else {
            self.sent.push_back(sent);
        }
        match again {
            None if self.unasked > 0 => self.unasked -= 1,
            _ => self.credit -= 1,
        }
        self.busy = cx.now;
        self.deadline = self.deadline.min(cx.now.saturating_add(self.rto));
        Some(NdpSegment { seq, retransmission: again.is_some(), entropy: self.paths.entropy(path) })
    }

    /// Returns the time at which [`NdpSender::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.deadline != Instant::NEVER).then_some(self.deadline)
    }

    /// Schedules the retransmission of packets without any answer. An early or repeated call has no effect.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        if cx.now < self.deadline {
            return;
        }
        let (mut lost, mut next) = (0, Instant::NEVER);
        let mut is_silent = true;
        for (offset, sent) in (0..).zip(&mut self.sent) {
            if sent.state != State::Flying {
                continue;
            }
            let due = sent.at.saturating_add(self.rto);
            if due > cx.now {
                (next, is_silent) = (next.min(due), false);
                continue;
            }
            sent.state = State::Waiting;
            self.again.push_back(self.acked + offset);
            lost += 1;
        }
        self.credit += lost;
        if is_silent && lost == 0 && !self.is_done() {
            // No answer is pending for any packet.
            let due = self.busy.saturating_add(self.rto);
            if due <= cx.now && self.credit == 0 {
                self.credit = 1;
            }
            next = if due > cx.now { due } else { cx.now.saturating_add(self.rto) };
        }
        self.deadline = next;
        if lost > 0 {
            self.timeouts += 1;
            cx.trace(|| Trace::TimedOut { acked: self.acked, quick: false });
        }
    }

    /// Returns the number of packets never sent.
    pub fn unsent(&self) -> u64 {
        self.total - self.acked.index() - self.sent.len() as u64
    }

    /// Returns whether lost or trimmed packets wait to be retransmitted.
    pub fn has_lost(&self) -> bool {
        self.next_again().is_some()
    }

    /// Returns the number of timeouts so far.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Returns whether all packets have arrived.
    pub fn is_done(&self) -> bool {
        self.acked.index() == self.total
    }

    /// Returns the number of packets believed to be in the network.
    pub fn in_flight(&self) -> u64 {
        self.sent.iter().filter(|sent| sent.state == State::Flying).count() as u64
    }

    /// Returns the reason why the sender does not send.
    pub fn hold(&self) -> HoldReason {
        if self.is_ready() {
            HoldReason::Link
        } else if self.next_new().is_some() || self.next_again().is_some() {
            HoldReason::Window
        } else {
            HoldReason::Acks
        }
    }

    /// Advances the cumulative acknowledgement to at least `expected`.
    fn advance(&mut self, expected: Seq) {
        while let Some(first) = self.sent.front()
            && (self.acked < expected || first.state == State::Arrived)
        {
            self.sent.pop_front();
            self.acked += 1;
        }
    }

    fn next_new(&self) -> Option<Seq> {
        let next = self.acked + self.sent.len() as u64;
        (next.index() < self.total).then_some(next)
    }

    fn is_waiting(&self, seq: Seq) -> bool {
        seq >= self.acked && self.sent[(seq - self.acked) as usize].state == State::Waiting
    }

    fn next_again(&self) -> Option<Seq> {
        self.again.iter().copied().find(|&seq| self.is_waiting(seq))
    }

    /// Removes and returns the first packet that still needs a retransmission.
    fn take_again(&mut self) -> Option<Seq> {
        while let Some(seq) = self.again.pop_front() {
            if self.is_waiting(seq) {
                return Some(seq);
            }
        }
        None
    }
}
