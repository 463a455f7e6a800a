//! Requests to a standard peer (InfiniBand architecture, volume 1, section 9.7).

use alloc::collections::VecDeque;

use selvedge_transport::{Cx, Segment, Sender};
use selvedge_units::{Duration, Instant, Psn, Seq};
use selvedge_wire::verbs::{AtomicEth, Headers};
use selvedge_wire::{Ack, AckKind, Reth, Syndrome};

use super::wqe::Wqe;
use super::{Failed, Mode, Peer, Requester};
use crate::verbs::arrival::Arrival;
use crate::verbs::attributes::Terms;
use crate::verbs::memory::Memory;
use crate::verbs::message::{self, Position, nak};
use crate::verbs::paths::PathId;
use crate::verbs::shared::Shared;
use crate::verbs::work::{Attached, Operation};

/// How often in a timeout something is said again to whoever may be one of our own.
pub(super) const OFTEN: u64 = 8;
/// But no sooner than this: a thread that waits for the processor does so for milliseconds.
pub(super) const NO_SOONER: Duration = Duration::from_ms(4);

/// How often at least an acknowledgement is asked for: so often in a window, its own or that of congestion control.
const ACKS_PER_WINDOW: u64 = 4;
/// And so often in a timeout, where packets leave slowly.
const ACKS_PER_TIMEOUT: u64 = 4;

/// What a standard requester remembers.
#[derive(Debug, Default)]
pub(super) struct Standard {
    /// What it would send next if nothing had to be sent again.
    cursor: Seq,
    /// The answers up to here have been asked for.
    covered: Seq,
    /// The ends of the answers that were asked for and have not all arrived.
    asked: VecDeque<Seq>,
    /// A gap in the answers was noticed, and what is missing asked for again.
    gap: bool,
    since_ack_request: u64,
    /// When an acknowledgement was asked for last, or the message began.
    asked_at: Instant,
    /// When the packet before left.
    sent_at: Instant,
    /// The packet that asked for an acknowledgement last.
    ack_requested: Option<Seq>,
    /// Where paths control congestion: packets that are to be answered, and their time stamps, which standard packets
    /// do not carry.
    stamps: VecDeque<(Seq, Instant)>,
}

impl Standard {
    /// Whether an answer may be asked for now: no more may be under way than the other side can remember, and all of it
    /// has to fit into the window, where everything before `acked` has left it.
    pub(super) fn may_send(&self, terms: &Terms, wqe: Option<&Wqe>, seq: Seq, acked: Seq) -> bool {
        let Some(wqe) = wqe.filter(|wqe| wqe.is_read() && seq >= self.covered) else { return true };
        let is_new = seq == self.cursor;
        let (_, packets) = answer_from(terms, wqe, seq - wqe.first);
        let fits = seq + packets - acked <= u64::from(terms.init.window.max(1));
        fits && (!is_new || self.asked.len() < usize::from(terms.reads_asked.max(1)))
    }
    /// A packet leaves with this time stamp that will be answered: one for all up to it.
    pub(super) fn expect_echo(&mut self, seq: Seq, stamp: Instant) {
        // What is sent again is answered later.
        while self.stamps.back().is_some_and(|&(before, _)| before >= seq) {
            self.stamps.pop_back();
        }
        self.stamps.push_back((seq, stamp));
    }
    /// The newest time stamp that is answered when everything before `acked` is.
    fn echo(&mut self, acked: Seq) -> Option<Instant> {
        let mut echo = None;
        while let Some(&(seq, stamp)) = self.stamps.front()
            && seq < acked
        {
            echo = Some(stamp);
            self.stamps.pop_front();
        }
        echo
    }
    /// How many packets of an answer that was just asked for are still to be counted as sent.
    fn pass(&mut self) -> u64 {
        let packets = self.covered.checked_since(self.cursor).unwrap_or(0);
        self.cursor += packets;
        packets
    }

    /// Whether a packet asks for an acknowledgement, which `sender` has just sent and which stands there in its
    /// message: the last that any window lets go does, unless one that is under way has asked already.
    fn asks(&mut self, now: Instant, terms: &Terms, sender: &Sender, segment: Segment, position: Position) -> bool {
        if position.begins() {
            (self.asked_at, self.sent_at) = (now, now);
        }
        // When the next packet leaves, if it takes as long as this one.
        let next_at = now + now.since(self.sent_at);
        self.sent_at = now;
        let is_late = terms.timeout.is_some_and(|timeout| next_at.since(self.asked_at) >= timeout / ACKS_PER_TIMEOUT);
        self.since_ack_request += 1;
        let window = sender.window().min(terms.init.window.max(1).into());
        let is_time = self.since_ack_request >= (window / ACKS_PER_WINDOW).max(1);
        let is_under_way = self.ack_requested.is_some_and(|asked| asked >= sender.acked());
        let is_last = !is_under_way && segment.seq + 1 - sender.acked() >= window;
        let is_due = is_time || is_late || is_last;
        let asks = position.ends() || is_due || segment.retransmission || segment.seq == Seq::ZERO;
        if asks {
            self.since_ack_request = 0;
            self.asked_at = now;
            self.ack_requested = Some(segment.seq);
        }
        asks
    }

    /// The headers of a packet that `sender` has just sent, and where its payload stands in the message: offset and
    /// bytes.
    pub(super) fn headers(
        &mut self,
        terms: &Terms,
        wqe: &Wqe,
        sender: &Sender,
        segment: Segment,
        psn: Psn,
        now: Instant,
    ) -> (Headers, u64, u32) {
        let seq = segment.seq;
        if seq != self.cursor {
            // Starting over: what was asked for behind it is asked for again.
            self.covered = seq;
            self.asked.clear();
        }
        self.cursor = seq + 1;
        let index = seq - wqe.first;
        let offset = index * u64::from(terms.mtu);
        let position = Position::of(index, wqe.packets);
        let mut headers = Headers {
            bth: terms.bth(message::request_opcode(&wqe.request.operation, position), psn),
            ..Headers::default()
        };
        let is_read = wqe.is_read();
        if is_read {
            let (reth, packets) = answer_from(terms, wqe, index);
            headers.reth = reth;
            once(&mut headers, &wqe.request.operation);
            self.covered = seq + packets;
            self.asked.push_back(self.covered);
        } else if let Operation::Write { remote, .. } = wqe.request.operation
            && position.begins()
        {
            headers.reth = Some(Reth { address: remote.address, key: remote.key, length: wqe.length as u32 });
        }
        if position.ends() {
            attach(&mut headers, &wqe.request.operation);
        }
        headers.bth.solicited = position.ends() && wqe.request.solicited && !is_read;
        headers.bth.ack_request = self.asks(now, terms, sender, segment, position);
        (headers, offset, wqe.payload(seq, terms))
    }
}

/// What asks for the answer from its packet `index` on, and how many packets that are: at most half a window, so
/// that answers do not come faster than they can be taken. What is asked for again ends where it ended the first time:
/// behind that the responder expects something new.
fn answer_from(terms: &Terms, wqe: &Wqe, index: u64) -> (Option<Reth>, u64) {
    match wqe.request.operation {
        Operation::Read(remote) => {
            let most = u64::from(terms.init.window / 2).max(1);
            let packets = (wqe.packets - index).min(most - index % most);
            let offset = index * u64::from(terms.mtu);
            let length = (wqe.length - offset).min(packets * u64::from(terms.mtu));
            let address = remote.address.wrapping_add(offset);
            (Some(Reth { address, key: remote.key, length: length as u32 }), packets)
        }
        _ => (None, 1),
    }
}

/// The headers of what is done once.
pub(super) fn once(headers: &mut Headers, operation: &Operation) {
    /// Bytes of a word.
    const WORD: u32 = 8;
    match *operation {
        Operation::CompareSwap { remote, compare, swap } => {
            headers.atomic = Some(AtomicEth { address: remote.address, key: remote.key, swap_add: swap, compare });
        }
        Operation::FetchAdd { remote, add } => {
            headers.atomic = Some(AtomicEth { address: remote.address, key: remote.key, swap_add: add, compare: 0 });
        }
        Operation::AtomicWrite(remote) => {
            headers.reth = Some(Reth { address: remote.address, key: remote.key, length: WORD });
        }
        Operation::Flush(flush) => {
            let (feth, reth) = flush.headers();
            (headers.flush, headers.reth) = (Some(feth), Some(reth));
        }
        _ => {}
    }
}

/// What the last packet of a message carries.
pub(super) fn attach(headers: &mut Headers, operation: &Operation) {
    match *operation {
        Operation::Send(Attached::Immediate(immediate)) | Operation::Write { immediate: Some(immediate), .. } => {
            headers.immediate = Some(immediate);
        }
        Operation::Send(Attached::Invalidate(key)) => headers.invalidate = Some(key),
        _ => {}
    }
}

impl Requester {
    fn standard(&mut self) -> &mut Standard {
        match &mut self.mode {
            Mode::Standard(standard) => standard,
            Mode::Selective(_) => unreachable!("replies were told apart"),
        }
    }

    /// When all that is under way is to be sent again, to somebody of whom nothing is known, or who is one of our own:
    /// a burst of losses that packets end, not time, is seldom over after seven retries of a single packet.
    pub(super) fn asks_again(&self, terms: &Terms) -> Option<Instant> {
        let may_be_ours = self.peer != Peer::Standard && matches!(self.mode, Mode::Standard(_));
        let timeout = terms.timeout.filter(|_| may_be_ours && self.begun > 0)?;
        Some(self.progress.max(self.asked) + (timeout / OFTEN).max(NO_SOONER).min(timeout))
    }
    /// Begins again with the oldest packet that is not acknowledged.
    pub(super) fn start_over(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        let expected = self.sender.acked().to_psn(self.first_psn);
        let nack = Ack { kind: AckKind::Nack, ecn_echo: false, expected, sack: expected, msn: 0 };
        self.tell(cx, shared, &nack, cx.now);
    }

    /// The answer that was just asked for counts as sent, all of it: it may be here before anyone looks what is next.
    /// Congestion control lets a request go, and has no say in what the other side sends then.
    pub(super) fn pass_over_answers(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared) {
        if let Mode::Standard(standard) = &mut self.mode {
            let packets = standard.pass();
            self.sender.on_train_sent(cx.now, packets);
            if packets > 0 && terms.path != PathId::NONE {
                let (stamp, _) = shared.paths.on_sent(terms.path, cx.now, packets, false);
                standard.expect_echo(Seq::new(standard.cursor.index() - 1), stamp);
            }
        }
    }

    /// The answer that is expected next, if any is.
    fn next_answer(&self) -> Option<Seq> {
        let wqe = &self.queue[(*self.unanswered.front()? - self.completed) as usize];
        Some(wqe.first + wqe.answered)
    }

    pub(super) fn on_standard_reply(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        memory: &mut impl Memory,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failed> {
        let headers = arrival.headers;
        let Some(seq) = headers.bth.psn.near(self.sender.acked(), self.first_psn) else { return Ok(()) };
        if seq >= self.sender.supplied() {
            return Ok(());
        }
        match headers.aeth {
            Some(aeth) if headers.original.is_none() && headers.bth.opcode == super::op::ACKNOWLEDGE => {
                match aeth.syndrome {
                    Syndrome::Ack(_) => {
                        self.on_advertised(aeth.syndrome, seq + 1);
                        self.acknowledge(cx, terms, shared, seq + 1);
                        Ok(())
                    }
                    syndrome => {
                        self.acknowledge(cx, terms, shared, seq);
                        if seq < self.sender.acked() || self.next_answer().is_some_and(|next| next < seq) {
                            return Ok(());
                        }
                        if matches!(syndrome, Syndrome::NotReady(_) | Syndrome::Nak(nak::SEQUENCE)) {
                            self.go_back(cx, terms, shared);
                        }
                        self.on_refusal(cx, terms, shared, aeth, seq)
                    }
                }
            }
            _ => self.on_answer(cx, terms, shared, memory, arrival, seq),
        }
    }

    /// Everything before `to` has arrived, but for answers that have not.
    fn acknowledge(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared, to: Seq) {
        match self.next_answer() {
            Some(answer) if answer < to => {
                self.hear(cx, terms, shared, AckKind::Ack, answer);
                self.on_gap(cx, terms, shared);
            }
            _ => self.hear(cx, terms, shared, AckKind::Ack, to),
        }
    }

    /// Something behind the answer that is expected next has arrived: it was lost (an implied NAK).
    fn on_gap(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared) {
        if !core::mem::replace(&mut self.standard().gap, true) {
            self.go_back(cx, terms, shared);
        }
    }
    fn go_back(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared) {
        self.hear(cx, terms, shared, AckKind::Nack, self.sender.acked());
    }

    fn hear(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared, kind: AckKind, expected: Seq) {
        let expected_psn = expected.to_psn(self.first_psn);
        let ack = Ack { kind, ecn_echo: false, expected: expected_psn, sack: expected_psn, msn: 0 };
        self.tell(cx, shared, &ack, cx.now);
        let acked = self.sender.acked();
        let standard = self.standard();
        if let Some(stamp) = standard.echo(acked) {
            shared.paths.on_echo(terms.path, cx.now, stamp, Some(Duration::ZERO));
        }
        while standard.asked.front().is_some_and(|&end| end <= acked) {
            standard.asked.pop_front();
        }
    }

    fn on_answer(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        memory: &mut impl Memory,
        arrival: &Arrival<'_>,
        seq: Seq,
    ) -> Result<(), Failed> {
        let Some(expected) = self.next_answer() else { return Ok(()) };
        if seq < expected {
            shared.stats.duplicates += 1;
            return Ok(());
        }
        if seq > expected {
            self.acknowledge(cx, terms, shared, expected);
            self.on_gap(cx, terms, shared);
            return Ok(());
        }
        let at = (self.unanswered[0] - self.completed) as usize;
        let wqe = &mut self.queue[at];
        wqe.take_answer(terms, shared, memory, arrival, wqe.answered)?;
        wqe.answered += 1;
        if let Some(aeth) = arrival.headers.aeth {
            self.on_advertised(aeth.syndrome, seq + 1);
        }
        let wqe = &self.queue[at];
        shared.count_accepted(arrival.brings());
        if wqe.is_answered(terms) {
            self.unanswered.pop_front();
        }
        self.standard().gap = false;
        self.hear(cx, terms, shared, AckKind::Ack, seq + 1);
        Ok(())
    }
}
