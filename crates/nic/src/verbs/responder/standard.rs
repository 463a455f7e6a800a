//! Requests of a standard peer (InfiniBand architecture, volume 1, section 9.7): packets are accepted in order only.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_transport::recovery::go_back_n;
use selvedge_transport::{Cx, DataVerdict, Receiver};
use selvedge_units::{Psn, Seq};
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::{Aeth, Syndrome};

use super::Refusal;
use super::advertised::Advertised;
use super::in_order::InOrder;
use super::inbound::{self, MALFORMED};
use super::query::{Found, Query};
use crate::verbs::arrival::{Arrival, Site};
use crate::verbs::attributes::Terms;
use crate::verbs::memory::Memory;
use crate::verbs::message::{self, Asked, Position, nak};
use crate::verbs::qp::Failure;
use crate::verbs::receives::Receives;
use crate::verbs::region::Intent;
use crate::verbs::requester::go_back_n as go_back_n_of;
use crate::verbs::selective::reach;
use crate::verbs::shared::Shared;
use crate::verbs::transmit::Transmit;
use crate::verbs::work::{Payload, ReceiveRequest, Span};

/// Responder of a standard connection.
pub(super) struct Standard {
    receiver: Receiver<go_back_n::Recv>,
    /// Number of messages completed.
    msn: u32,
    messages: InOrder,
    replies: VecDeque<Reply>,
    /// Results of recent requests that are executed once: a repeated request gets the same response again.
    done: VecDeque<(Seq, Found)>,
    /// Whether no receive request was ready for the expected packet: packets behind it are dropped.
    not_ready: bool,
    advertised: Advertised,
}

/// Acknowledgements and responses, which are sent in order.
enum Reply {
    Ack { seq: Seq, aeth: Aeth },
    Read { first: Seq, key: u32, address: u64, length: u64, sent: u64, aeth: Aeth, again: bool },
    Done { seq: Seq, found: Found, aeth: Aeth, again: bool },
}

impl Reply {
    fn seq(&self) -> Seq {
        match *self {
            Self::Ack { seq, .. } | Self::Done { seq, .. } => seq,
            Self::Read { first, .. } => first,
        }
    }
    /// Returns whether this is the response to a repeated request.
    fn is_again(&self) -> bool {
        matches!(self, Self::Read { again: true, .. } | Self::Done { again: true, .. })
    }
    fn is_read(&self) -> bool {
        matches!(self, Self::Read { .. })
    }
    /// Returns whether this response has a packet in common with `answer`.
    fn overlaps(&self, answer: &Self, mtu: u32) -> bool {
        let end = |of: &Self| of.seq() + of.packets(mtu);
        self.seq() < end(answer) && answer.seq() < end(self)
    }
    /// Returns the number of packets of a response; an acknowledgement has none.
    fn packets(&self, mtu: u32) -> u64 {
        match *self {
            Self::Ack { .. } => 0,
            Self::Done { .. } => 1,
            Self::Read { length, .. } => message::packets(length, mtu),
        }
    }
}

impl Standard {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            receiver: Receiver::with(go_back_n::Recv::new(&go_back_n_of(terms)), terms.receive_psn),
            msn: 0,
            messages: InOrder::default(),
            replies: VecDeque::new(),
            done: VecDeque::new(),
            not_ready: false,
            advertised: Advertised::default(),
        }
    }
    pub(super) fn expected_psn(&self, terms: &Terms) -> Psn {
        self.receiver.expected().to_psn(terms.receive_psn)
    }
    /// Returns whether no message is in progress, and a packet with this PSN is neither a duplicate nor from an earlier
    /// use of the queue pair.
    pub(super) fn is_idle_at(&self, terms: &Terms, psn: Psn) -> bool {
        let expected = self.receiver.expected();
        let near = expected..expected + u64::from(reach(&terms.init.recovery));
        self.messages.is_idle() && psn.near(expected, terms.receive_psn).is_some_and(|seq| near.contains(&seq))
    }
    pub(super) fn msn(&self) -> u32 {
        self.msn
    }
    pub(super) fn drain(&mut self) -> Vec<ReceiveRequest> {
        self.messages.drain().into_iter().collect()
    }

    pub(super) fn handle_request(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failure> {
        let headers = arrival.headers;
        let Some(seq) = headers.bth.psn.near(self.receiver.expected(), terms.receive_psn) else { return Ok(()) };
        let is_next = seq == self.receiver.expected();
        if seq > self.receiver.expected() && self.not_ready {
            return Ok(());
        }
        if seq < self.receiver.expected() {
            site.shared.stats.duplicates += 1;
            self.say_again(terms, site, headers, seq);
            return Ok(());
        }
        if is_next {
            let messages = match self.execute(terms, site, arrival, seq) {
                Ok(packets) => packets,
                Err(Refusal::NotReady) => {
                    self.not_ready = true;
                    self.say(seq, Syndrome::NotReady(terms.not_ready_timer));
                    return Ok(());
                }
                Err(Refusal::Nak(code, failure)) => {
                    self.say(seq, Syndrome::Nak(code));
                    return Err(failure);
                }
            };
            self.not_ready = false;
            site.shared.count_accepted(arrival.payload);
            self.take(cx, arrival);
            self.receiver.skip(messages - 1);
            if headers.bth.ack_request && !matches!(Asked::of(headers.bth.opcode), Some(Asked::Read | Asked::Once)) {
                let syndrome = self.positive(terms, site.receives);
                self.say(seq, syndrome);
            }
            return Ok(());
        }
        if let Some(gap) = self.take(cx, arrival) {
            self.say(gap, Syndrome::SEQUENCE_ERROR);
        }
        Ok(())
    }

    /// Passes a packet to the receiver; returns the missing sequence number if a NAK is due.
    fn take(&mut self, cx: &mut Cx<'_>, arrival: &Arrival<'_>) -> Option<Seq> {
        let reply = self.receiver.handle_data(cx, &mut (), &arrival.data(), arrival.headers.bth.fecn);
        (reply.verdict == DataVerdict::Refused && reply.ack.is_some()).then(|| self.receiver.expected())
    }

    /// Returns the syndrome of an acknowledgement that is sent now.
    fn positive(&mut self, terms: &Terms, receives: &Receives) -> Syndrome {
        self.advertised.advertise(terms, receives, self.messages.begun())
    }
    /// Handles new receive requests. Returns whether the other side is informed of them, by a repetition of the last
    /// acknowledgement.
    pub(super) fn on_receives_added(&mut self, terms: &Terms, receives: &Receives) -> bool {
        let Some(last) = self.receiver.expected().index().checked_sub(1) else { return false };
        let is_due = self.advertised.is_due(terms, receives, self.messages.begun());
        if is_due {
            let syndrome = self.positive(terms, receives);
            self.say(Seq::new(last), syndrome);
        }
        is_due
    }

    fn say(&mut self, seq: Seq, syndrome: Syndrome) {
        let aeth = Aeth { syndrome, msn: self.msn };
        if let (Some(Reply::Ack { seq: last, aeth: said }), Syndrome::Ack(_)) = (self.replies.back_mut(), syndrome)
            && matches!(said.syndrome, Syndrome::Ack(_))
        {
            (*last, *said) = (seq, aeth);
            return;
        }
        self.replies.push_back(Reply::Ack { seq, aeth });
    }

    /// Responds to a duplicate request, whose response was lost.
    fn say_again(&mut self, terms: &Terms, site: &Site<'_, impl Memory>, headers: &Headers, seq: Seq) {
        let syndrome = self.positive(terms, site.receives);
        let aeth = Aeth { syndrome, msn: self.msn };
        match (Asked::of(headers.bth.opcode), headers.reth) {
            (Some(Asked::Read), Some(reth)) => {
                let length = u64::from(reth.length);
                let is_within = seq + message::packets(length, terms.mtu) <= self.receiver.expected();
                let allowed = inbound::reach(terms, site.shared, Intent::RemoteRead, reth.key, reth.address, length);
                if is_within && allowed.is_ok() {
                    let (key, address) = (reth.key, reth.address);
                    self.answer_again(
                        terms,
                        Reply::Read { first: seq, key, address, length, sent: 0, aeth, again: true },
                    );
                }
            }
            (Some(Asked::Once), _) => {
                if let Some(&(_, found)) = self.done.iter().find(|(done, _)| *done == seq) {
                    self.answer_again(terms, Reply::Done { seq, found, aeth, again: true });
                }
            }
            _ => {
                let last = Seq::new(self.receiver.expected().index() - 1);
                self.say(last, syndrome);
            }
        }
    }

    /// Responds to a repeated Read. The requester has started over: it ignores pending responses to the same request,
    /// and takes those behind it for a gap.
    fn answer_again(&mut self, terms: &Terms, answer: Reply) {
        self.replies.retain(|reply| !reply.overlaps(&answer, terms.mtu));
        if self.reads_under_way() <= usize::from(terms.reads_answered) {
            let at = self.replies.partition_point(|reply| reply.seq() <= answer.seq());
            self.replies.insert(at, answer);
        }
    }
    fn reads_under_way(&self) -> usize {
        self.replies.iter().filter(|reply| reply.is_read()).count()
    }

    /// Executes the expected packet; returns how many sequence numbers the packet takes.
    fn execute(
        &mut self,
        terms: &Terms,
        site: &mut Site<'_, impl Memory>,
        arrival: &Arrival<'_>,
        seq: Seq,
    ) -> Result<u64, Refusal> {
        let asked = Asked::of(arrival.headers.bth.opcode).ok_or(MALFORMED)?;
        match asked {
            Asked::Send(_) | Asked::Write(_) => {
                let is_complete = self.messages.take(terms, site, arrival, asked)?;
                self.msn = self.msn.wrapping_add(u32::from(is_complete));
            }
            Asked::Read | Asked::Once if !self.messages.is_idle() => return Err(MALFORMED),
            Asked::Read | Asked::Once => {
                let query = Query::of(arrival, site.memory)?;
                query.check(terms, site.shared)?;
                let found = query.execute(terms, site.shared, site.memory)?;
                let syndrome = self.positive(terms, site.receives);
                let aeth = Aeth { syndrome, msn: self.msn.wrapping_add(1) };
                if let Found::Read { key, address, length } = found {
                    let first = seq;
                    return self.read(terms, Reply::Read { first, key, address, length, sent: 0, aeth, again: false });
                }
                if self.done.len() >= usize::from(terms.reads_answered.max(1)) {
                    self.done.pop_front();
                }
                self.done.push_back((seq, found));
                self.msn = self.msn.wrapping_add(1);
                self.replies.push_back(Reply::Done { seq, found, aeth, again: false });
            }
        }
        Ok(1)
    }

    fn read(&mut self, terms: &Terms, answer: Reply) -> Result<u64, Refusal> {
        if self.reads_under_way() >= usize::from(terms.reads_answered.max(1)) {
            // The requester may not exceed its limit of outstanding Reads: a further Read shows that the original
            // response to the oldest repeated Read has arrived late.
            let stale = self.replies.iter().position(|reply| reply.is_read() && reply.is_again());
            self.replies.remove(stale.ok_or(MALFORMED)?);
        }
        let packets = answer.packets(terms.mtu);
        self.msn = self.msn.wrapping_add(1);
        self.replies.push_back(answer);
        Ok(packets)
    }

    /// Returns a repetition of the last acknowledgement; `None` while responses are due, of which nothing more will be
    /// heard.
    pub(super) fn last_word(&self, terms: &Terms) -> Option<Transmit> {
        let last = self.receiver.expected().index().checked_sub(1).filter(|_| self.replies.is_empty())?;
        let bth = terms.bth(op::ACKNOWLEDGE, Seq::new(last).to_psn(terms.receive_psn));
        let aeth = Some(Aeth { syndrome: Advertised::nothing_new(terms), msn: self.msn });
        Some(Transmit { route: terms.route, headers: Headers { bth, aeth, ..Headers::default() }, payload: 0 })
    }
    /// Returns an acknowledgement or NAK, if that is the next packet.
    pub(super) fn poll_ack(&mut self, terms: &Terms) -> Option<Transmit> {
        let &Reply::Ack { seq, aeth } = self.replies.front()? else { return None };
        self.replies.pop_front();
        let bth = terms.bth(op::ACKNOWLEDGE, seq.to_psn(terms.receive_psn));
        let headers = Headers { bth, aeth: Some(aeth), ..Headers::default() };
        Some(Transmit { route: terms.route, headers, payload: 0 })
    }

    pub(super) fn poll_transmit(
        &mut self,
        terms: &Terms,
        shared: &mut Shared,
        payload: &mut Payload,
    ) -> Option<Transmit> {
        let psn = |seq: Seq| seq.to_psn(terms.receive_psn);
        let reply = |headers, payload| Some(Transmit { route: terms.route, headers, payload });
        if let Some(ack) = self.poll_ack(terms) {
            return Some(ack);
        }
        match *self.replies.front_mut()? {
            Reply::Ack { .. } => None,
            Reply::Done { seq, found, aeth, again } => {
                self.replies.pop_front();
                shared.count_sent(again);
                let (opcode, original) = found.answer();
                let bth = terms.bth(opcode, psn(seq));
                reply(Headers { bth, aeth: Some(aeth), original, ..Headers::default() }, 0)
            }
            Reply::Read { first, key, address, length, ref mut sent, aeth, again } => {
                let (index, packets) = (*sent, message::packets(length, terms.mtu));
                *sent += 1;
                let bytes = message::bytes_in(index, length, terms.mtu);
                let at = address.wrapping_add(index * u64::from(terms.mtu));
                let found = inbound::reach(terms, shared, Intent::RemoteRead, key, at, u64::from(bytes));
                if index + 1 == packets || found.is_err() {
                    self.replies.pop_front();
                }
                let Ok(found) = found else {
                    // The region was deregistered since.
                    let aeth = Some(Aeth { syndrome: Syndrome::Nak(nak::REMOTE_ACCESS), ..aeth });
                    let bth = terms.bth(op::ACKNOWLEDGE, psn(first + index));
                    return reply(Headers { bth, aeth, ..Headers::default() }, 0);
                };
                if bytes > 0 {
                    payload.spans.push(Span { address: found, length: bytes });
                }
                shared.count_sent(again);
                let position = Position::of(index, packets);
                let bth = terms.bth(message::response_opcode(position), psn(first + index));
                let aeth = (position != Position::Middle).then_some(aeth);
                reply(Headers { bth, aeth, ..Headers::default() }, bytes)
            }
        }
    }
}
