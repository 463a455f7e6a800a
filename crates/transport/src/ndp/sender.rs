//! The sending end of a flow (NDP section 3.2).
//!
//! Design notes.
//! 1. *Credit.* The first window is sent unasked, of new packets; what was trimmed waits for a pull, for whatever
//!    trimmed it is still there. Each pull allows one packet. Pulls are numbered: what matters is the highest number
//!    seen, so that lost and reordered pulls do no harm.
//! 2. *What goes first*: packets that were trimmed, in the order in which that was heard, then new ones. Credit that
//!    finds neither is kept: a trimmed packet may still be heard of.
//! 3. *Silence.* Where even a header was lost nobody answers, and nobody pulls. Such packets are sent again after a
//!    timeout, on credit of their own. Where the last pulls were lost, one packet goes after as long a silence, to be
//!    answered and pulled.

use alloc::collections::VecDeque;

use selvedge_telemetry::Trace;
use selvedge_units::{Duration, Instant, Psn, Seq};
use selvedge_wire::{Ack, AckKind};

use super::config::NdpConfig;
use super::paths::Paths;
use crate::role::{Cx, Hold};

/// One packet to send, and where.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NdpSegment {
    /// Which.
    pub seq: Seq,
    /// Whether it was sent before.
    pub retransmission: bool,
    /// What ECMP hashes.
    pub entropy: u32,
}

/// A flow's sender.
#[derive(Clone, Debug)]
pub struct NdpSender {
    first: Psn,
    /// Packets of the flow.
    total: u64,
    /// Everything before it has arrived.
    acked: Seq,
    /// Packets from there on that have been sent.
    sent: VecDeque<Sent>,
    /// Those to send again.
    again: VecDeque<Seq>,
    /// New packets that may be sent unasked.
    unasked: u64,
    /// Packets that pulls, and timeouts, allow.
    credit: u64,
    /// The highest number of any pull.
    pulled: u32,
    paths: Paths,
    rto: Duration,
    /// When it last sent or heard something.
    busy: Instant,
    /// Nothing times out before this.
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
    /// On its way, as far as is known.
    Flying,
    /// To be sent again.
    Waiting,
    Arrived,
}

impl NdpSender {
    /// A flow of `total` packets that begins with `first`; `entropy` tells its paths from those of others.
    pub fn new(config: &NdpConfig, first: Psn, total: u64, entropy: u32) -> Self {
        Self {
            first,
            total,
            acked: Seq::new(0),
            sent: VecDeque::new(),
            again: VecDeque::new(),
            unasked: config.window(),
            credit: 0,
            pulled: 0,
            paths: Paths::new(config.paths, config.path_penalty, entropy),
            rto: config.timeout(),
            busy: Instant::ZERO,
            deadline: Instant::NEVER,
            timeouts: 0,
        }
    }

    /// What the receiver says about one packet, and about all before `expected`.
    pub fn on_ack(&mut self, cx: &mut Cx<'_>, ack: &Ack) {
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

    /// The receiver pulls, and has everything before `expected`.
    pub fn on_pull(&mut self, cx: &Cx<'_>, number: u32, expected: Psn) {
        self.busy = cx.now;
        let more = number.wrapping_sub(self.pulled);
        // Serial numbers: what is half the circle ahead is behind.
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

    /// Whether it would send now.
    pub fn is_ready(&self) -> bool {
        match self.credit {
            0 => self.unasked > 0 && self.next_new().is_some(),
            _ => self.next_again().is_some() || self.next_new().is_some(),
        }
    }

    /// The next packet, if there is one to send now.
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

    /// When [`NdpSender::handle_timeout`] wants to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (self.deadline != Instant::NEVER).then_some(self.deadline)
    }

    /// Sends again what nothing was heard of. Early or twice does nothing.
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
            // Nobody will say anything about anything.
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

    /// Packets that were never sent.
    pub fn unsent(&self) -> u64 {
        self.total - self.acked.index() - self.sent.len() as u64
    }

    /// Whether packets that were lost or trimmed wait to be sent again.
    pub fn has_lost(&self) -> bool {
        self.next_again().is_some()
    }

    /// Timeouts so far.
    pub fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Whether everything has arrived.
    pub fn is_done(&self) -> bool {
        self.acked.index() == self.total
    }

    /// Packets believed to be in the network.
    pub fn in_flight(&self) -> u64 {
        self.sent.iter().filter(|sent| sent.state == State::Flying).count() as u64
    }

    /// What it waits for.
    pub fn hold(&self) -> Hold {
        if self.is_ready() {
            Hold::Link
        } else if self.next_new().is_some() || self.next_again().is_some() {
            Hold::Window
        } else {
            Hold::Acks
        }
    }

    /// Everything before `expected` has arrived, and perhaps more.
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

    /// Takes the first packet that is still to be sent again.
    fn take_again(&mut self) -> Option<Seq> {
        while let Some(seq) = self.again.pop_front() {
            if self.is_waiting(seq) {
                return Some(seq);
            }
        }
        None
    }
}
