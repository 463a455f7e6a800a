//! Requests to a Selvedge peer (IRN, sections 5.2 and 5.3): packets arrive in any order and are placed at once, because
//! each names its destination, unless the recovery has a reorder buffer (MELO, section 3.2.2). Responses to Reads and
//! Atomics have their own sequence, in which each packet is acknowledged.

use selvedge_transport::{Cx, DataVerdict, Receiver, SchemeParams, Segment};
use selvedge_units::{Instant, Psn, Seq};
use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::verbs::{Headers, Ours, Placement};
use selvedge_wire::{Ack, AckKind, Aeth, Extension, Reth, Syndrome};

use super::standard::{attach, once};
use super::wqe::{Answer, Wqe};
use super::{Failed, Mode, Requester};
use crate::reorder::{Kept, ReorderBuffer};
use crate::verbs::arrival::Arrival;
use crate::verbs::attributes::Terms;
use crate::verbs::memory::{Memory, Origin};
use crate::verbs::message::{self, Position};
use crate::verbs::msn::Msn;
use crate::verbs::selective::{self, Pending, PendingAck};
use crate::verbs::shared::Shared;
use crate::verbs::transmit::Transmit;
use crate::verbs::work::Operation;

/// State of a selective requester, apart from its sender.
#[derive(Debug)]
pub(super) struct Selective {
    /// Receiver of responses, in rPSN.
    answers: Receiver,
    /// Packets of responses that arrived out of order, if they have to be placed in order; each with the number of its
    /// request within the connection.
    reorder: ReorderBuffer<(u64, Answer)>,
    /// Acknowledgements of responses waiting to be sent.
    acks: Pending,
    /// Next recv_WQE_SN.
    next_receive: u32,
    /// Next read_WQE_SN.
    next_read: u32,
    /// Read_WQE_SN of the oldest unanswered Read.
    oldest_read: u32,
    /// MSN by which all requests that have begun are completed.
    begun: Msn,
}

impl Selective {
    /// Creates the state for a peer that has completed `msn` messages and sends responses from `first_psn` on.
    pub(super) fn new(terms: &Terms, first_psn: Psn, msn: Msn) -> Self {
        Self {
            answers: Receiver::new(&selective::widest(terms.init.recovery), first_psn),
            reorder: ReorderBuffer::new(terms.init.recovery.reorder_slots()),
            acks: Pending::default(),
            next_receive: 0,
            next_read: 0,
            oldest_read: 0,
            begun: msn,
        }
    }
    /// Returns the next recv_WQE_SN or read_WQE_SN for a request.
    pub(super) fn number(&mut self, operation: &Operation) -> u32 {
        let counter = match operation {
            Operation::Send(_) | Operation::Write { immediate: Some(_), .. } => &mut self.next_receive,
            Operation::Read(_)
            | Operation::CompareSwap { .. }
            | Operation::FetchAdd { .. }
            | Operation::AtomicWrite(_)
            | Operation::Flush(_) => &mut self.next_read,
            Operation::Write { immediate: None, .. } | Operation::LocalInvalidate(_) | Operation::Bind(_) => return 0,
        };
        let number = *counter;
        *counter = counter.wrapping_add(1);
        number
    }
    /// Returns the MSN by which the next request is completed, if all begin in order. A local request sends nothing and
    /// has no MSN of its own.
    pub(super) fn msn(&mut self, is_local: bool) -> Msn {
        if !is_local {
            self.begun = self.begun.next();
        }
        self.begun
    }
    pub(super) fn release(&mut self, shared: &mut Shared) {
        self.answers.release(&mut shared.pools);
        self.reorder.clear(&mut shared.spare);
    }
    /// Returns the next acknowledgement of a response (IRN, section 5.2: a read (N)ACK).
    pub(super) fn poll_ack(&mut self, terms: &Terms) -> Option<Transmit> {
        let ack = self.acks.pop()?;
        Some(selective::acknowledgement(terms, op::READ_ACKNOWLEDGE, &ack))
    }
}

/// Returns the headers of a packet, and the offset and length in bytes of its payload in the message. The
/// acknowledgement request is not set.
#[inline]
pub(super) fn headers(
    terms: &Terms,
    wqe: &Wqe,
    segment: Segment,
    psn: Psn,
    now: Instant,
    headers: &mut Headers,
) -> (u64, u32) {
    let operation = &wqe.request.operation;
    let index = segment.seq - wqe.first;
    let offset = index * u64::from(terms.mtu);
    let position = Position::of(index, wqe.packets);
    headers.begin(terms.bth(message::request_opcode(operation, position), psn));
    headers.ours = terms.init.recovery.wire_id().map_or(Ours::No, Ours::Uses);
    headers.extension =
        Some(Extension { sent_at: now, retransmission: segment.retransmission, ..Extension::default() });
    headers.placement = Some(Placement { wqe: wqe.number, packet: index as u32 });
    match *operation {
        // Each packet names its own destination address (IRN, section 5.3.1).
        Operation::Write { remote, .. } => {
            let address = remote.address.wrapping_add(offset);
            headers.reth = Some(Reth { address, key: remote.key, length: (wqe.length - offset) as u32 });
        }
        Operation::Read(remote) => {
            headers.reth = Some(Reth { address: remote.address, key: remote.key, length: wqe.length as u32 });
        }
        _ => once(headers, operation),
    }
    if position.ends() {
        attach(headers, operation);
    }
    let is_read = wqe.is_read();
    headers.bth.solicited = position.ends() && wqe.request.solicited && !is_read;
    (offset, wqe.payload(segment.seq, terms))
}

impl Requester {
    fn selective(&mut self) -> &mut Selective {
        match &mut self.mode {
            Mode::Selective(selective) => selective,
            Mode::Standard(_) => unreachable!("replies were told apart"),
        }
    }

    pub(super) fn on_selective_reply(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        memory: &mut impl Memory,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failed> {
        let headers = arrival.headers;
        let Some(extension) = headers.extension else { return Ok(()) };
        if headers.bth.opcode != op::ACKNOWLEDGE {
            return self.on_selective_answer(cx, terms, shared, memory, arrival);
        }
        let Some(aeth) = headers.aeth else { return Ok(()) };
        let kind = match aeth.syndrome {
            Syndrome::SEQUENCE_ERROR => AckKind::Nack,
            _ => AckKind::Ack,
        };
        // An ACK names the last packet that has arrived in order; all others name the first that has not.
        let expected = match aeth.syndrome {
            Syndrome::Ack(_) => headers.bth.psn.next(),
            _ => headers.bth.psn,
        };
        let said = expected.near(self.sender.acked(), self.first_psn);
        if said.is_some_and(|seq| self.contradicts_itself(aeth, seq)) {
            shared.stats.contradictions += 1;
            return Ok(());
        }
        if let Some(seq) = said {
            self.on_advertised(aeth.syndrome, seq);
        }
        if extension.retransmission {
            // Only new receive requests have caused the acknowledgement.
            return Ok(());
        }
        let ack = Ack { kind, ecn_echo: headers.bth.becn, expected, sack: extension.sack, msn: aeth.msn };
        let before = self.sender.acked();
        selective::hear(&mut self.sender, cx, terms, shared, &ack, headers);
        if before < self.sender.acked() {
            // The acknowledgement has just been checked to count that many messages.
            self.msn = self.msn_at(self.sender.acked());
        }
        match expected.near(self.sender.acked(), self.first_psn) {
            Some(seq) => self.on_refusal(cx, terms, shared, aeth, seq),
            None => Ok(()),
        }
    }

    /// Returns the MSN once everything before `seq`, which is acknowledged or begun, has arrived.
    fn msn_at(&self, seq: Seq) -> Msn {
        self.ended_before(seq).map_or(self.msn, |last| last.msn)
    }
    /// Returns whether an acknowledgement counts as completed other messages than those that end before `seq`, up to
    /// which it acknowledges. Acknowledgements that are out of date are not checked, and a NAK may count the message
    /// that it rejects.
    fn contradicts_itself(&self, aeth: Aeth, seq: Seq) -> bool {
        let is_refusal = matches!(aeth.syndrome, Syndrome::Nak(_)) && aeth.syndrome != Syndrome::SEQUENCE_ERROR;
        let is_news = self.sender.acked() <= seq && seq <= self.sender.supplied();
        is_news && !is_refusal && Msn::new(aeth.msn) != self.msn_at(seq)
    }

    /// Handles a packet of a response, in any order.
    fn on_selective_answer(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        memory: &mut impl Memory,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failed> {
        let headers = arrival.headers;
        let (Some(extension), Some(placement)) = (headers.extension, headers.placement) else { return Ok(()) };
        let selective = self.selective();
        let behind = placement.wqe.wrapping_sub(selective.oldest_read);
        let before = selective.answers.expected();
        let reply = selective.answers.handle_data(cx, &mut shared.pools, &arrival.data(), headers.bth.fecn);
        let is_quiet = !headers.bth.ack_request && selective.answers.expected() == before + 1;
        if let Some(ack) = reply.ack.filter(|_| !is_quiet) {
            selective.acks.push(PendingAck::by(&selective.answers, ack, extension.sent_at).after(shared.paths.waited));
        }
        if reply.verdict.accepted().is_none() {
            shared.stats.duplicates += u64::from(reply.verdict == DataVerdict::Duplicate);
            return Ok(());
        }
        shared.count_accepted(arrival.brings());
        let Some(&number) = self.unanswered.get(behind as usize) else {
            return Err(Failed(super::Status::BadResponse));
        };
        let wqe = &mut self.queue[(number - self.completed) as usize];
        let answer = Answer::of(arrival, u64::from(placement.packet));
        let waits = matches!(reply.verdict, DataVerdict::Buffered(_));
        let origin = if waits { Origin::Nowhere } else { Origin::Packet };
        wqe.take_answer(terms, shared, memory, origin, &answer)?;
        wqe.answered += 1;
        match reply.verdict {
            DataVerdict::Buffered(seq) => {
                let (reorder, memory) = (&mut self.selective().reorder, &*memory);
                reorder.keep(seq, (number, answer), arrival.payload, &mut shared.spare, |into| memory.keep(into));
            }
            DataVerdict::Released { seq, run } => {
                for ahead in 1..=u64::from(run) {
                    self.place_kept(terms, shared, memory, seq + ahead)?;
                }
            }
            _ => {}
        }
        while let Some(&number) = self.unanswered.front()
            && self.queue[(number - self.completed) as usize].is_answered(terms)
        {
            self.unanswered.pop_front();
            let selective = self.selective();
            selective.oldest_read = selective.oldest_read.wrapping_add(1);
        }
        Ok(())
    }

    /// Places packet `seq` of a response, which has waited in the reorder buffer.
    fn place_kept(
        &mut self,
        terms: &Terms,
        shared: &mut Shared,
        memory: &mut impl Memory,
        seq: Seq,
    ) -> Result<(), Failed> {
        let Some(Kept { destination: (number, answer), payload, .. }) = self.selective().reorder.take(seq) else {
            return Ok(());
        };
        // A peer that answers one request twice may have made it complete.
        let at = number.checked_sub(self.completed).ok_or(Failed(super::Status::BadResponse))?;
        let wqe = self.queue.get(at as usize).ok_or(Failed(super::Status::BadResponse))?;
        wqe.take_answer(terms, shared, memory, Origin::Kept(&payload), &answer)?;
        shared.stats.reordered += u64::from(answer.brings());
        shared.spare.give(payload);
        Ok(())
    }
}
