//! Requests to a standard peer (InfiniBand architecture, volume 1, section 9.7).

use alloc::collections::VecDeque;

use selvedge_transport::{Cx, Segment, Sender};
use selvedge_units::{Duration, Instant, Psn, Seq};
use selvedge_wire::verbs::{AtomicEth, Headers};
use selvedge_wire::{Ack, AckKind, Reth, Syndrome};

use super::wqe::{Answer, Wqe};
use super::{Failed, Mode, Peer, Requester};
use crate::verbs::arrival::Arrival;
use crate::verbs::attributes::Terms;
use crate::verbs::memory::{Memory, Origin};
use crate::verbs::message::{self, Position, nak};
use crate::verbs::paths::PathId;
use crate::verbs::shared::Shared;
use crate::verbs::work::{Attached, Operation};

/// Number of times per timeout that packets are repeated to a peer that may be a Selvedge NIC.
pub(super) const OFTEN: u64 = 8;
/// Minimum time between repetitions to a peer that may be a Selvedge NIC: a thread may wait for the processor for
/// milliseconds.
pub(super) const NO_SOONER: Duration = Duration::from_ms(4);

/// Minimum number of acknowledgement requests per window, the requester's own or that of congestion control.
const ACKS_PER_WINDOW: u64 = 4;
/// Minimum number of acknowledgement requests per timeout, where packets leave slowly.
const ACKS_PER_TIMEOUT: u64 = 4;

/// State of a standard requester.
#[derive(Debug, Default)]
pub(super) struct Standard {
    /// Sequence number that would be sent next without any retransmission.
    cursor: Seq,
    /// Sequence number up to which responses have been requested.
    covered: Seq,
    /// Ends of the responses that were requested and have not all arrived.
    asked: VecDeque<Seq>,
    /// Whether a gap in the responses was noticed, and the missing packets were requested again.
    gap: bool,
    since_ack_request: u64,
    /// Time of the last acknowledgement request, or of the beginning of the message.
    asked_at: Instant,
    /// Time at which the previous packet left.
    sent_at: Instant,
    /// Last packet that requested an acknowledgement.
    ack_requested: Option<Seq>,
    /// Packets that will be acknowledged, with their time stamps, which standard packets do not carry. Used where paths
    /// control congestion.
    stamps: VecDeque<(Seq, Instant)>,
}

impl Standard {
    /// Returns whether a Read may be sent now: no more may be outstanding than the other side can store, and the whole
    /// response has to fit into the window, from which everything before `acked` has left.
    pub(super) fn may_send(&self, terms: &Terms, wqe: Option<&Wqe>, seq: Seq, acked: Seq) -> bool {
        let Some(wqe) = wqe.filter(|wqe| wqe.is_read() && seq >= self.covered) else { return true };
        let is_new = seq == self.cursor;
        let (_, packets) = answer_from(terms, wqe, seq - wqe.first);
        let fits = seq + packets - acked <= u64::from(terms.init.window.max(1));
        fits && (!is_new || self.asked.len() < usize::from(terms.reads_asked.max(1)))
    }
    /// Notes the time stamp of a packet that will be acknowledged, for all packets up to that one.
    pub(super) fn expect_echo(&mut self, seq: Seq, stamp: Instant) {
        // Retransmitted packets are acknowledged later.
        while self.stamps.back().is_some_and(|&(before, _)| before >= seq) {
            self.stamps.pop_back();
        }
        self.stamps.push_back((seq, stamp));
    }
    /// Returns the newest time stamp that is acknowledged when everything before `acked` is.
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
    /// Returns how many packets of a response that was just requested are still to be counted as sent.
    fn pass(&mut self) -> u64 {
        let packets = self.covered.checked_since(self.cursor).unwrap_or(0);
        self.cursor += packets;
        packets
    }

    /// Returns whether a packet that `sender` has just sent, at `position` of its message, requests an acknowledgement.
    /// The last packet that the window permits does, unless an outstanding packet has already requested one.
    fn asks(&mut self, now: Instant, terms: &Terms, sender: &Sender, segment: Segment, position: Position) -> bool {
        if position.begins() {
            (self.asked_at, self.sent_at) = (now, now);
        }
        // Time at which the next packet leaves, if it takes as long as this one.
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

    /// Returns the headers of a packet that `sender` has just sent, and the offset and length in bytes of its payload
    /// in the message.
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
            // Starting over: all responses behind this one are requested again.
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

/// Returns the header that requests the response from its packet `index` on, and how many packets that covers: at most
/// half a window, so that responses do not arrive faster than they can be taken. A repeated request ends where the
/// original one ended: behind that the responder expects a new request.
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

/// Adds the headers of a request that is executed once.
pub(super) fn once(headers: &mut Headers, operation: &Operation) {
    /// Length of a word in bytes.
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

/// Adds the extra information of a message to its last packet.
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

    /// Returns when to retransmit everything outstanding, to a peer that may be a Selvedge NIC: a burst of losses whose
    /// length is counted in packets, not in time, is seldom over after seven retries of a single packet.
    pub(super) fn asks_again(&self, terms: &Terms) -> Option<Instant> {
        let may_be_ours = self.peer != Peer::Standard && matches!(self.mode, Mode::Standard(_));
        let timeout = terms.timeout.filter(|_| may_be_ours && self.begun > 0)?;
        Some(self.progress.max(self.asked) + (timeout / OFTEN).max(NO_SOONER).min(timeout))
    }
    /// Starts over with the oldest unacknowledged packet.
    pub(super) fn start_over(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        let expected = self.sender.acked().to_psn(self.first_psn);
        let nack = Ack { kind: AckKind::Nack, ecn_echo: false, expected, sack: expected, msn: 0 };
        self.tell(cx, shared, &nack, cx.now);
    }

    /// Counts the whole response that was just requested as sent: it may arrive before the next poll. Congestion
    /// control limits the request, but not what the other side sends in response.
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

    /// Returns the sequence number of the next expected response packet, if any response is due.
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

    /// Handles the arrival of everything before `to`, except responses that have not arrived.
    fn acknowledge(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared, to: Seq) {
        match self.next_answer() {
            Some(answer) if answer < to => {
                self.hear(cx, terms, shared, AckKind::Ack, answer);
                self.on_gap(cx, terms, shared);
            }
            _ => self.hear(cx, terms, shared, AckKind::Ack, to),
        }
    }

    /// Handles a gap: packets behind the expected response packet have arrived, so that one was lost (an implied NAK).
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
        wqe.take_answer(terms, shared, memory, Origin::Packet, &Answer::of(arrival, wqe.answered))?;
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
