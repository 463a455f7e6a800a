//! Requests of a Selvedge peer, in any order (IRN, section 5.3).
//!
//! Payload is placed on arrival, unless the recovery has a reorder buffer, which payload leaves in order (MELO, section
//! 3.2.2). Steps that must happen in order wait: counting a message (MSN), completing a receive request (a premature
//! CQE, kept here), executing a Read or an Atomic.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use selvedge_transport::recovery::irn::{Completion as Bits, Completions};
use selvedge_transport::{Cx, DataVerdict, Next, Receiver, SchemeParams, Sender};
use selvedge_units::{Bytes, Duration, Instant, Psn, Seq};
use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::verbs::{Headers, Ours, Placement};
use selvedge_wire::{Ack, AckKind, Aeth, Extension, Syndrome};

use super::Refusal;
use super::advertised::Advertised;
use super::inbound::{self, FORBIDDEN, MALFORMED};
use super::query::{Found, Query};
use super::reads::{Disordered, ReadBuffer};
use crate::reorder::{Kept, ReorderBuffer};
use crate::verbs::arrival::{Arrival, Site};
use crate::verbs::attributes::Terms;
use crate::verbs::memory::{Memory, Origin};
use crate::verbs::message::{self, Asked, Position};
use crate::verbs::paths::Attempt;
use crate::verbs::qp::Failure;
use crate::verbs::receives::Receives;
use crate::verbs::region::Intent;
use crate::verbs::requester::sender;
use crate::verbs::selective::{self, Pending, PendingAck};
use crate::verbs::shared::Shared;
use crate::verbs::transmit::Transmit;
use crate::verbs::work::{Attached, Completion, CompletionKind, Payload, ReceiveRequest, Span, Status};

/// Number of timeouts in a row after which the wait for a response's acknowledgement becomes longer.
const TIMEOUTS: u32 = 32;
/// First pause after too many timeouts; each later one is twice as long.
const PAUSE: Duration = Duration::from_ms(20);
/// Number of pauses after which an unacknowledged response is given up, which takes hours: the requester, which alone
/// knows how long it waits, has gone.
const PAUSES: u32 = 18;

/// Responder of a selective connection.
pub(super) struct Selective {
    receiver: Receiver,
    first_psn: Psn,
    /// Time stamp of the packet that came last.
    newest: Instant,
    acks: Pending,
    advertised: Advertised,
    /// Acknowledgement that no packet has caused, about receive requests.
    unasked: Option<PendingAck>,
    /// NAKs waiting to be sent.
    refusals: VecDeque<(Seq, Aeth, Instant)>,
    /// Packets that were rejected before their turn, and dropped.
    too_early: BTreeMap<Seq, Refused>,
    msn: u32,
    /// The 2-bitmap (IRN, section 5.3.3).
    completions: Completions,
    /// Payload that arrived out of order, if it has to be placed in order.
    reorder: ReorderBuffer<Target>,
    /// Receive requests, indexed by recv_WQE_SN from `oldest_receive` on.
    slots: VecDeque<Slot>,
    oldest_receive: u32,
    /// Requests with a response that wait for everything sent before them.
    waiting: ReadBuffer,
    /// Sender of responses, in rPSN.
    sender: Sender,
    answers: VecDeque<Answer>,
    /// Timeouts of the sender at the last acknowledgement of a response.
    timeouts: u32,
    /// Packets and timeouts since the last failed retry.
    attempt: Attempt,
}

/// A receive request that has begun, or that a later one has caused to begin.
struct Slot {
    request: Option<ReceiveRequest>,
    /// Premature CQE, and the packet that brought it.
    completion: Option<(Completion, Seq)>,
}

/// Destination of a packet in the reorder buffer, as the packet names it. It is looked up when the payload leaves the
/// buffer: until then the application may have deregistered the memory.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// Memory of the region with this key.
    Write { key: u32, address: u64 },
    /// Memory of a receive request.
    Receive(Placement),
}

/// Rejection of a packet.
struct Refused {
    refusal: Refusal,
    /// Completion of the packet's receive request, if that fails with the packet.
    failed: Option<Completion>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, failed: None }
    }
}

/// A response in progress.
struct Answer {
    first: Seq,
    packets: u64,
    number: u32,
    msn: u32,
    what: Found,
}

impl Answer {
    /// Returns the payload bytes in the response's packet with sequence number `seq`.
    fn payload(&self, seq: Seq, terms: &Terms) -> u32 {
        match self.what {
            Found::Read { length, .. } => message::bytes_in(seq - self.first, length, terms.mtu),
            Found::Word(_) | Found::Nothing => 0,
        }
    }
}

impl Selective {
    pub(super) fn new(terms: &Terms, first_psn: Psn, msn: u32) -> Self {
        let recovery = selective::widest(terms.init.recovery);
        Self {
            receiver: Receiver::new(&recovery, first_psn),
            first_psn,
            newest: Instant::ZERO,
            acks: Pending::default(),
            advertised: Advertised::default(),
            unasked: None,
            refusals: VecDeque::new(),
            too_early: BTreeMap::new(),
            msn,
            completions: Completions::default(),
            reorder: ReorderBuffer::new(recovery.reorder_slots()),
            slots: VecDeque::new(),
            oldest_receive: 0,
            waiting: ReadBuffer::default(),
            sender: sender(terms, terms.init.recovery, first_psn),
            answers: VecDeque::new(),
            timeouts: 0,
            attempt: Attempt::default(),
        }
    }
    /// Releases the on-chip memory of the responder.
    pub(super) fn release(&mut self, shared: &mut Shared) {
        self.receiver.release(&mut shared.pools);
        self.sender.release(&mut shared.pools);
        self.reorder.clear(&mut shared.spare);
    }
    pub(super) fn drain(&mut self) -> Vec<ReceiveRequest> {
        self.slots.drain(..).filter_map(|slot| slot.request).collect()
    }

    pub(super) fn handle_request(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failure> {
        let &Arrival { headers, payload, .. } = arrival;
        let (Some(extension), Some(placement)) = (headers.extension, headers.placement) else { return Ok(()) };
        let before = self.receiver.expected();
        let Some(seq) = headers.bth.psn.near(before, self.first_psn) else { return Ok(()) };
        // The packet belongs to an earlier use of the queue pair.
        if seq >= before + u64::from(selective::reach(&terms.init.recovery)) {
            return Ok(());
        }
        self.newest = extension.sent_at;
        if seq >= before {
            let waits = seq > before && self.reorder.has_slots();
            let origin = if waits { Origin::Nowhere } else { Origin::Packet };
            let outcome = self.place(terms, site, arrival, origin, seq);
            if let Err(refused) = outcome {
                return self.refuse(terms, site.shared, refused, seq, extension.sent_at);
            }
        }
        let reply = self.receiver.handle_data(cx, &mut site.shared.pools, &arrival.data(), headers.bth.fecn);
        if reply.verdict == DataVerdict::Duplicate {
            site.shared.stats.duplicates += 1;
        }
        if reply.verdict.accepted().is_some() {
            site.shared.count_accepted(payload);
            self.note(terms, site.memory, arrival, placement, seq);
            if let DataVerdict::Buffered(_) = reply.verdict {
                self.keep(site, arrival, placement, seq);
            }
            let bits = match (Bits::of_opcode(headers.bth.opcode), headers.invalidate) {
                (_, Some(_)) => Bits::Receive,
                (bits, None) => bits,
            };
            if let DataVerdict::Released { run, .. } = reply.verdict {
                self.advance(terms, site, seq, bits, [seq, seq + 1])?;
                for next in (1..=u64::from(run)).map(|ahead| seq + ahead) {
                    self.place_kept(terms, site, next)?;
                    self.advance(terms, site, next, Bits::Nothing, [next, next + 1])?;
                }
            } else {
                self.advance(terms, site, seq, bits, [before, self.receiver.expected()])?;
            }
            self.recall(terms, site.shared)?;
        }
        // The packet was the next in order and did not request an acknowledgement.
        let is_quiet = !headers.bth.ack_request && self.receiver.expected() == before + 1;
        if let Some(ack) = reply.ack.filter(|_| !is_quiet) {
            let ack = PendingAck::by(&self.receiver, Ack { msn: self.msn, ..ack }, extension.sent_at);
            self.acknowledge(terms, site, ack.after(site.shared.paths.waited));
        }
        Ok(())
    }

    /// Takes the steps in order that were due before `until` and not before `from`, after packet `seq`, which has
    /// `bits`, has been accepted.
    fn advance(
        &mut self,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        seq: Seq,
        bits: Bits,
        [from, until]: [Seq; 2],
    ) -> Result<(), Failure> {
        let completed = self.completions.on_accepted(seq, bits, from, until);
        self.msn = self.msn.wrapping_add(completed.messages as u32) & 0xff_ffff;
        self.complete(terms, site, completed.receives)?;
        self.execute(terms, site, until)
    }

    /// Keeps the payload of a packet in the reorder buffer until all packets before it have arrived.
    fn keep(&mut self, site: &mut Site<'_, impl Memory>, arrival: &Arrival<'_>, placement: Placement, seq: Seq) {
        let headers = arrival.headers;
        let target = match (Asked::of(headers.bth.opcode), headers.reth) {
            (Some(Asked::Send(_)), _) => Target::Receive(placement),
            (Some(Asked::Write(_)), Some(reth)) => Target::Write { key: reth.key, address: reth.address },
            _ => return,
        };
        if arrival.payload > 0 {
            let memory = &site.memory;
            self.reorder.keep(seq, target, arrival.payload, &mut site.shared.spare, |into| memory.keep(into));
        }
    }

    /// Places the payload of packet `seq`, which has waited in the reorder buffer, if it has any.
    fn place_kept(&mut self, terms: &Terms, site: &mut Site<'_, impl Memory>, seq: Seq) -> Result<(), Failure> {
        let Some(Kept { destination, length, payload }) = self.reorder.take(seq) else { return Ok(()) };
        let (memory, origin) = (&mut *site.memory, Origin::Kept(&payload));
        let placed = match destination {
            Target::Write { key, address } => {
                inbound::write(terms, site.shared, memory, origin, key, address, length).map_err(Refused::from)
            }
            Target::Receive(placement) => {
                let ahead = placement.wqe.wrapping_sub(self.oldest_receive) as usize;
                match self.slots.get(ahead).and_then(|slot| slot.request.as_ref()) {
                    Some(request) => receive(terms, site.shared, memory, origin, request, placement, length),
                    None => Ok(()),
                }
            }
        };
        site.shared.spare.give(payload);
        match placed {
            Ok(()) => {
                site.shared.stats.reordered += u64::from(length);
                Ok(())
            }
            Err(refused) => self.refuse(terms, site.shared, refused, seq, self.newest),
        }
    }

    fn acknowledge(&mut self, terms: &Terms, site: &Site<'_, impl Memory>, mut ack: PendingAck) {
        if ack.is_positive() {
            ack = ack.advertising(self.advertised.advertise(terms, site.receives, self.slots.len()));
            self.unasked = None;
        }
        self.acks.push(ack);
    }
    /// Handles new receive requests; returns whether the other side is informed of them.
    pub(super) fn on_receives_added(&mut self, terms: &Terms, receives: &Receives) -> bool {
        let is_due = self.advertised.is_due(terms, receives, self.slots.len());
        if is_due && let Some(ack) = self.last_ack() {
            let syndrome = self.advertised.advertise(terms, receives, self.slots.len());
            self.unasked = Some(ack.advertising(syndrome).unasked());
            return true;
        }
        false
    }

    fn refuse(
        &mut self,
        terms: &Terms,
        shared: &mut Shared,
        refused: Refused,
        seq: Seq,
        sent_at: Instant,
    ) -> Result<(), Failure> {
        let is_early = match refused.refusal {
            Refusal::NotReady => seq > self.receiver.expected(),
            // A NAK acknowledges all packets before it, and ends all responses.
            Refusal::Nak(..) => self.is_early(seq),
        };
        if is_early {
            // The packet counts as lost: when it is sent again, a receive request may be ready.
            self.too_early.insert(seq, refused);
            return Ok(());
        }
        match refused.refusal {
            Refusal::NotReady => {
                self.say_not_ready(terms.not_ready_timer, seq, sent_at);
                Ok(())
            }
            Refusal::Nak(code, failure) => {
                if let Some(failed) = refused.failed {
                    // All receive requests before it are complete.
                    if let Some(slot) = self.slots.front_mut() {
                        slot.request = None;
                    }
                    shared.complete(terms.init.receive_cq, failed);
                }
                self.refusals.push_back((seq, Aeth { syndrome: Syndrome::Nak(code), msn: self.msn }, sent_at));
                Err(failure)
            }
        }
    }

    fn say_not_ready(&mut self, timer: u8, seq: Seq, sent_at: Instant) {
        let aeth = Aeth { syndrome: Syndrome::NotReady(timer), msn: self.msn };
        self.refusals.push_back((seq, aeth, sent_at));
    }

    /// Rejects the expected packet at last if it was rejected before its turn and dropped. Nothing else would cause its
    /// retransmission if it was the last packet, or a retransmission itself, and timeouts are off.
    fn recall(&mut self, terms: &Terms, shared: &mut Shared) -> Result<(), Failure> {
        /// RNR timer code for 10 us. No longer wait is needed: a receive request may be ready now.
        const SHORTEST: u8 = 1;
        let expected = self.receiver.expected();
        while let Some(entry) = self.too_early.first_entry()
            && *entry.key() <= expected
        {
            let (seq, is_nak) = (*entry.key(), matches!(entry.get().refusal, Refusal::Nak(..)));
            if seq < expected {
                // The packet has been retransmitted since, and was accepted.
                entry.remove();
            } else if !is_nak {
                entry.remove();
                self.say_not_ready(SHORTEST, seq, self.newest);
            } else if self.answers.is_empty() {
                let refused = entry.remove();
                return self.refuse(terms, shared, refused, seq, self.newest);
            } else {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether a packet that has just arrived is before its turn: earlier packets are missing, or responses are
    /// in progress.
    fn is_early(&self, seq: Seq) -> bool {
        let expected = self.receiver.expected();
        seq > expected || (seq == expected && !self.answers.is_empty())
    }

    /// Places a packet's payload, or only checks whether it may be placed where `origin` is nowhere. A duplicate is
    /// placed again, with the same content.
    fn place(
        &mut self,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
        origin: Origin<'_>,
        seq: Seq,
    ) -> Result<(), Refused> {
        let &Arrival { headers, payload, .. } = arrival;
        let placement = headers.placement.unwrap_or_default();
        match Asked::of(headers.bth.opcode).ok_or(MALFORMED)? {
            Asked::Send(position) => {
                inbound::check_length(terms, position, payload)?;
                let slot = self.slot(terms, site, placement)?;
                let Some(request) = &slot.request else { return Ok(()) };
                receive(terms, site.shared, site.memory, origin, request, placement, payload)
            }
            Asked::Write(position) => {
                inbound::check_length(terms, position, payload)?;
                let reth = headers.reth.ok_or(MALFORMED)?;
                if position.ends() != (reth.length == payload) || reth.length < payload {
                    return Err(MALFORMED.into());
                }
                if headers.immediate.is_some() {
                    self.slot(terms, site, placement)?;
                }
                // The rest of the message is checked, so that no part of a message that does not fit is written.
                let (key, address, length) = (reth.key, reth.address, u64::from(reth.length));
                let at = inbound::reach(terms, site.shared, Intent::RemoteWrite, key, address, length)?;
                if payload == 0 {
                    return Ok(());
                }
                origin.place(site.memory, at, 0, payload).map_err(|_| FORBIDDEN.into())
            }
            Asked::Read | Asked::Once => {
                Query::of(arrival, site.memory)?.check(terms, site.shared)?;
                Ok(self.has_room(terms, placement.wqe, seq)?)
            }
        }
    }

    /// Checks whether one more Read can be stored.
    fn has_room(&self, terms: &Terms, number: u32, seq: Seq) -> Result<(), Refusal> {
        // Twice the permitted number: the requester knows that a response is complete before this side does.
        let most = 2 * usize::from(terms.reads_answered.max(1));
        self.waiting.check(number, seq, (most + 1).saturating_sub(self.answers.len()))
    }

    /// Returns the slot of the receive request that a packet is for; all receive requests before it begin with it.
    fn slot(
        &mut self,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        placement: Placement,
    ) -> Result<&mut Slot, Refusal> {
        let ahead = placement.wqe.wrapping_sub(self.oldest_receive) as usize;
        let missing = (ahead + 1).saturating_sub(self.slots.len());
        if missing > site.receives.available(site.shared, &terms.init) {
            return Err(Refusal::NotReady);
        }
        for _ in 0..missing {
            let request = site.receives.take(site.shared, &terms.init);
            self.slots.push_back(Slot { request, completion: None });
        }
        Ok(&mut self.slots[ahead])
    }

    /// Notes the effects of an accepted packet beyond its payload: a premature CQE, or a request that waits for its
    /// turn.
    fn note(&mut self, terms: &Terms, memory: &impl Memory, arrival: &Arrival<'_>, placement: Placement, seq: Seq) {
        let &Arrival { headers, payload, .. } = arrival;
        let (kind, position) = match Asked::of(headers.bth.opcode) {
            Some(Asked::Send(position)) => (CompletionKind::Receive, position),
            Some(Asked::Write(position)) if headers.immediate.is_some() => (CompletionKind::ReceiveWrite, position),
            Some(Asked::Read | Asked::Once) => {
                let Ok(what) = Query::of(arrival, memory) else { return };
                self.waiting.put(placement.wqe, seq, what);
                return;
            }
            _ => return,
        };
        if !position.ends() {
            return;
        }
        let ahead = placement.wqe.wrapping_sub(self.oldest_receive) as usize;
        let Some(slot) = self.slots.get_mut(ahead) else { return };
        let Some(request) = &slot.request else { return };
        let length = u64::from(placement.packet) * u64::from(terms.mtu) + u64::from(payload);
        let (attached, solicited) = (inbound::attached(headers), headers.bth.solicited);
        let completion = inbound::completion(terms, request.id, Status::Success, kind, length, attached, solicited);
        slot.completion = Some((completion, seq));
    }

    /// Completes the next `receives` receive requests in order.
    fn complete(&mut self, terms: &Terms, site: &mut Site<'_, impl Memory>, receives: u64) -> Result<(), Failure> {
        for _ in 0..receives {
            let Some(slot) = self.slots.pop_front() else { break };
            self.oldest_receive = self.oldest_receive.wrapping_add(1);
            let Some((completion, seq)) = slot.completion else { continue };
            if matches!(completion.attached, Attached::Invalidate(_)) {
                self.execute(terms, site, seq)?;
            }
            if let Err(refusal) = inbound::deliver(terms, site.shared, completion) {
                return self.refuse(terms, site.shared, refusal.into(), seq, Instant::ZERO);
            }
        }
        Ok(())
    }

    /// Executes the waiting requests that were sent before `until`, up to which everything has arrived; Reads begin.
    fn execute(&mut self, terms: &Terms, site: &mut Site<'_, impl Memory>, until: Seq) -> Result<(), Failure> {
        loop {
            let (seq, number, what) = match self.waiting.take_before(until) {
                Ok(Some(found)) => found,
                Ok(None) => return Ok(()),
                Err(Disordered(seq)) => {
                    return self.refuse(terms, site.shared, MALFORMED.into(), seq, Instant::ZERO);
                }
            };
            let what = match what.execute(terms, site.shared, site.memory) {
                Ok(found) => found,
                Err(refusal) => return self.refuse(terms, site.shared, refusal.into(), seq, Instant::ZERO),
            };
            let packets = what.packets(terms);
            let first = self.sender.supplied();
            self.answers.push_back(Answer { first, packets, number, msn: self.msn, what });
            self.sender.supply(packets);
        }
    }

    /// Handles an acknowledgement of a response.
    pub(super) fn on_read_ack(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        headers: &Headers,
    ) -> Result<(), Failure> {
        let (Some(aeth), Some(extension)) = (headers.aeth, headers.extension) else { return Ok(()) };
        let (kind, expected) = match aeth.syndrome {
            Syndrome::Ack(_) => (AckKind::Ack, headers.bth.psn.next()),
            Syndrome::SEQUENCE_ERROR => (AckKind::Nack, headers.bth.psn),
            _ => return Ok(()),
        };
        let ack = Ack { kind, ecn_echo: headers.bth.becn, expected, sack: extension.sack, msn: 0 };
        selective::hear(&mut self.sender, cx, terms, shared, &ack, headers);
        self.timeouts = self.sender.stats().timeouts;
        self.forget_answers();
        // A rejection may have waited for the last response.
        self.recall(terms, shared)
    }
    /// Handles a congestion notification: responses arrive with ECN marks.
    pub(super) fn on_congestion(&mut self, cx: &mut Cx<'_>) {
        self.sender.handle_cnp(cx);
    }
    fn forget_answers(&mut self) {
        let acked = self.sender.acked();
        while self.answers.front().is_some_and(|answer| answer.first + answer.packets <= acked) {
            self.answers.pop_front();
        }
    }

    pub(super) fn has_ack(&self) -> bool {
        !self.acks.is_empty() || self.unasked.is_some()
    }
    /// Returns a repetition of the last acknowledgement.
    pub(super) fn last_word(&self, terms: &Terms) -> Option<Transmit> {
        let ack = self.last_ack()?.advertising(Advertised::nothing_new(terms));
        Some(selective::acknowledgement(terms, op::ACKNOWLEDGE, &ack))
    }
    /// Returns an acknowledgement of all that has arrived in order, if any packet has.
    fn last_ack(&self) -> Option<PendingAck> {
        let expected = self.receiver.expected();
        let last = Seq::new(expected.index().checked_sub(1)?);
        let [expected, sack] = [expected, last].map(|seq| seq.to_psn(self.first_psn));
        let ack = Ack { kind: AckKind::Ack, ecn_echo: false, expected, sack, msn: self.msn };
        Some(PendingAck::by(&self.receiver, ack, self.newest))
    }
    /// Returns the next acknowledgement or NAK.
    pub(super) fn poll_ack(&mut self, terms: &Terms) -> Option<Transmit> {
        if let Some(ack) = self.acks.pop().or_else(|| self.unasked.take()) {
            return Some(selective::acknowledgement(terms, op::ACKNOWLEDGE, &ack));
        }
        let ours = terms.init.recovery.wire_id().map_or(Ours::No, Ours::Uses);
        if let Some((seq, aeth, sent_at)) = self.refusals.pop_front() {
            let psn = seq.to_psn(self.first_psn);
            let extension = Extension { sent_at, sack: psn, ..Extension::default() };
            let bth = terms.bth(op::ACKNOWLEDGE, psn);
            let headers = Headers { bth, ours, aeth: Some(aeth), extension: Some(extension), ..Headers::default() };
            return Some(Transmit { route: terms.route, headers, payload: 0 });
        }
        None
    }

    /// Writes the next packet to `transmit`; returns whether there is one.
    pub(super) fn poll_transmit(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        payload: &mut Payload,
        transmit: &mut Transmit,
    ) -> bool {
        if let Some(ack) = self.poll_ack(terms) {
            *transmit = ack;
            return true;
        }
        let answers = &self.answers;
        let find = |seq| answers.get(answers.partition_point(|answer| answer.first <= seq).checked_sub(1)?);
        let size = |seq| find(seq).map_or(0, |answer| answer.payload(seq, terms));
        let frame = |seq| Bytes::new(u64::from(size(seq))) + terms.init.overhead;
        if !matches!(self.sender.next(cx.now), Next::Send(_)) || !shared.paths.admits(terms.path, terms.number) {
            return false;
        }
        let Some(segment) = self.sender.poll_transmit(cx, &mut shared.pools, frame) else { return false };
        let Some(answer) = find(segment.seq) else { return false };
        let (stamp, asks) = shared.paths.on_sent(terms.path, cx.now, 1, segment.retransmission);
        self.attempt.newest = Some(stamp);
        let index = segment.seq - answer.first;
        let mut bth = terms.bth(op::READ_RESPONSE_ONLY, segment.seq.to_psn(self.first_psn));
        bth.ack_request = asks || selective::asks(terms, &self.sender, segment);
        let headers = &mut transmit.headers;
        headers.begin(bth);
        headers.ours = terms.init.recovery.wire_id().map_or(Ours::No, Ours::Uses);
        headers.aeth = Some(Aeth { syndrome: Advertised::nothing_new(terms), msn: answer.msn });
        headers.extension =
            Some(Extension { sent_at: stamp, retransmission: segment.retransmission, ..Extension::default() });
        headers.placement = Some(Placement { wqe: answer.number, packet: index as u32 });
        transmit.route = terms.route;
        transmit.payload = 0;
        shared.count_sent(segment.retransmission);
        match answer.what {
            Found::Word(_) | Found::Nothing => (headers.bth.opcode, headers.original) = answer.what.answer(),
            Found::Read { key, address, length } => {
                headers.bth.opcode = message::response_opcode(Position::of(index, answer.packets));
                let bytes = message::bytes_in(index, length, terms.mtu);
                let at = address.wrapping_add(index * u64::from(terms.mtu));
                // If the window was closed since, an empty packet says so: the connection goes on.
                if let Ok(address) = inbound::reach(terms, shared, Intent::RemoteRead, key, at, u64::from(bytes))
                    && bytes > 0
                {
                    payload.spans.push(Span { address, length: bytes });
                    transmit.payload = bytes;
                }
            }
        }
        true
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Cx<'_>, terms: &Terms, shared: &mut Shared) {
        let before = self.sender.stats().timeouts;
        if self.deadline() <= cx.now && shared.paths.admits_timeout(terms.path, cx.now, &mut self.attempt) {
            self.sender.handle_timeout(cx, &mut shared.pools);
            let timed_out = self.sender.stats().timeouts - before;
            shared.stats.timeouts += u64::from(timed_out);
            if timed_out > 0 {
                self.attempt.on_failed_retry(cx.now);
            }
        }
    }
    pub(super) fn deadline(&self) -> Instant {
        let until = self.sender.poll_timeout().unwrap_or(Instant::NEVER).max(self.attempt.put_off);
        match (self.sender.stats().timeouts - self.timeouts).checked_sub(TIMEOUTS) {
            None => until,
            Some(pauses) if pauses < PAUSES => until.saturating_add(PAUSE * (1 << pauses)),
            Some(_) => Instant::NEVER,
        }
    }
}

/// Places `payload` bytes of a Send's packet into its receive request.
fn receive(
    terms: &Terms,
    shared: &Shared,
    memory: &mut impl Memory,
    origin: Origin<'_>,
    request: &ReceiveRequest,
    placement: Placement,
    payload: u32,
) -> Result<(), Refused> {
    let offset = u64::from(placement.packet) * u64::from(terms.mtu);
    inbound::scatter(terms, shared, memory, origin, request, offset, payload).map_err(|status| {
        let (kind, length) = (CompletionKind::Receive, offset + u64::from(payload));
        let failed = inbound::completion(terms, request.id, status, kind, length, Attached::Nothing, false);
        Refused { refusal: inbound::refusal_of(status), failed: Some(failed) }
    })
}
