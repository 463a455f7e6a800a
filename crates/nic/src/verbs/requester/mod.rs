//! The requester of a reliable connection: turns send requests into packets, and responses into completions.
//!
//! A [`Sender`] of `transport` decides when to send which packet of a sequence; each send request takes a part of that
//! sequence. A standard peer and a Selvedge peer differ in the part that a request takes, in its packets, and in the
//! sequence of responses to Reads and Atomics:
//!
//! | | [`standard`] | [`selective`] (IRN, section 5) |
//! |---|---|---|
//! | a Read takes | as many PSNs as its response has packets | one (sPSN); the response counts in rPSN |
//! | acknowledgements | cumulative, a response to a Read is one | each names the packet that caused it |
//! | responses arrive | in order, or are requested again | in any order |
//!
//! A connection begins standard. If the other side turns out to be a Selvedge NIC, the connection goes over once all
//! requests that have begun are finished.

mod credits;
mod recovery;
mod selective;
mod standard;
mod wqe;

use alloc::collections::VecDeque;

use selvedge_transport::{Cx, Next, SchemeParams, Segment, Sender};
use selvedge_units::{Bytes, Instant, Psn, Seq};
use selvedge_wire::verbs::Ours;
use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::{Ack, Aeth, Syndrome};

use self::credits::Credits;
pub(super) use self::recovery::{go_back_n, sender};
use self::selective::Selective;
use self::standard::Standard;
use self::wqe::Wqe;
use super::arrival::Arrival;
use super::attributes::{Terms, not_ready_wait};
use super::memory::Memory;
use super::message::{self, nak};
use super::msn::Msn;
use super::paths::{Attempt, PathId};
use super::qp::Failure;
use super::selective::asks;
use super::shared::Shared;
use super::transmit::Transmit;
use super::work::{Payload, SendRequest, Status};

/// Kind of the other side, as far as known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Peer {
    /// Unknown: one request at a time, until a packet arrives.
    Unknown,
    /// A standard RoCEv2 NIC.
    Standard,
    /// A Selvedge NIC.
    Ours,
}

/// Requester of a reliable connection.
pub(super) struct Requester {
    queue: VecDeque<Wqe>,
    /// Number of requests at the front of the queue that have begun.
    begun: usize,
    /// Number of requests that have left the queue: request `n` of the connection is at index `n - completed`.
    completed: u64,
    /// Number, within the connection, of the request whose packet was sent last: the next packet is likely from the
    /// same request.
    sending: u64,
    /// Reads and Atomics that have begun and are not answered completely, by their numbers within the connection.
    unanswered: VecDeque<u64>,
    /// Whether the limit of outstanding Reads was reached, and not enough of them have been answered since.
    has_asked_enough: bool,
    sender: Sender,
    first_psn: Psn,
    /// MSN of the messages that the other side has reported as completed.
    msn: Msn,
    credits: Credits,
    peer: Peer,
    mode: Mode,
    /// Time before which nothing is sent because a receiver was not ready.
    not_ready_until: Option<Instant>,
    not_ready_tries: u8,
    timeouts: u8,
    /// Time of the last retransmission of everything outstanding to a peer that may be a Selvedge NIC.
    asked: Instant,
    /// Time of the last progress.
    progress: Instant,
    /// Packets and timeouts since the last failed retry.
    attempt: Attempt,
    /// Retries that failed since `progress`.
    failed_retries: u8,
    /// Time before which the connection is not given up, because too few retries have failed.
    extended_until: Instant,
}

enum Mode {
    Standard(Standard),
    Selective(Selective),
}

/// The status with which a request failed.
struct Failed(Status);

impl Requester {
    pub(super) fn new(terms: &Terms) -> Self {
        Self {
            queue: VecDeque::new(),
            begun: 0,
            completed: 0,
            sending: 0,
            unanswered: VecDeque::new(),
            has_asked_enough: false,
            sender: sender(terms, go_back_n(terms).into(), terms.send_psn),
            first_psn: terms.send_psn,
            msn: Msn::default(),
            credits: Credits::new(terms),
            peer: if terms.init.recovery.wire_id().is_some() { Peer::Unknown } else { Peer::Standard },
            mode: Mode::Standard(Standard::default()),
            not_ready_until: None,
            not_ready_tries: 0,
            timeouts: 0,
            asked: Instant::ZERO,
            progress: Instant::ZERO,
            attempt: Attempt::default(),
            failed_retries: 0,
            extended_until: Instant::ZERO,
        }
    }
    /// Prepares for sending: the queue pair can send from now on.
    pub(super) fn begin(&mut self, terms: &Terms) {
        let peer = self.peer;
        *self = Self { queue: core::mem::take(&mut self.queue), ..Self::new(terms) };
        if peer == Peer::Ours {
            self.peer = peer;
        }
    }
    /// Releases the on-chip memory of the requester.
    pub(super) fn release(&mut self, shared: &mut Shared) {
        self.sender.release(&mut shared.pools);
        if let Mode::Selective(selective) = &mut self.mode {
            selective.release(shared);
        }
    }
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }
    pub(super) fn has_begun(&self) -> bool {
        self.begun > 0
    }
    pub(super) fn post(&mut self, request: SendRequest) {
        self.queue.push_back(Wqe::new(request));
    }
    pub(super) fn drain(&mut self) -> impl Iterator<Item = SendRequest> {
        self.begun = 0;
        self.unanswered.clear();
        self.queue.drain(..).map(|wqe| wqe.request)
    }
    /// Notes that the other side is known to be a Selvedge NIC with the same scheme.
    pub(super) fn agree(&mut self, terms: &Terms) {
        if terms.init.recovery.wire_id().is_some() {
            self.peer = Peer::Ours;
        }
    }
    /// Handles the other side's offer: it is a Selvedge NIC with this scheme.
    pub(super) fn on_offer(&mut self, terms: &Terms, offered: u8) {
        if self.peer != Peer::Ours && terms.init.recovery.wire_id() == Some(offered) {
            self.peer = Peer::Ours;
        }
    }

    /// Returns the next acknowledgement of a response.
    pub(super) fn poll_ack(&mut self, terms: &Terms) -> Option<Transmit> {
        if let Mode::Selective(selective) = &mut self.mode { selective.poll_ack(terms) } else { None }
    }

    #[inline(always)]
    pub(super) fn poll_transmit(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        payload: &mut Payload,
        transmit: &mut Transmit,
        admits: bool,
    ) -> Result<bool, Failure> {
        if let Some(ack) = self.poll_ack(terms) {
            *transmit = ack;
            return Ok(true);
        }
        if self.not_ready_until.is_some_and(|until| cx.now < until) {
            return Ok(false);
        }
        self.not_ready_until = None;
        self.go_over(terms);
        self.begin_requests(cx, terms, shared, admits)?;
        let Next::Send(segment) = self.sender.next(cx.now) else { return Ok(false) };
        if !shared.paths.admits(terms.path, terms.number) {
            return Ok(false);
        }
        if let Mode::Standard(standard) = &self.mode {
            let wqe = find(&self.queue, segment.seq).map(|at| &self.queue[at]);
            if !standard.may_send(terms, wqe, segment.seq, self.sender.acked()) {
                return Ok(false);
            }
        }
        let queue = &self.queue;
        let size = |seq| find(queue, seq).map_or(0, |at| queue[at].payload(seq, terms));
        let frame = |seq| Bytes::new(u64::from(size(seq))) + terms.init.overhead;
        let Some(segment) = self.sender.poll_transmit(cx, &mut shared.pools, frame) else { return Ok(false) };
        payload.clear();
        match self.packet(cx, terms, shared, segment, payload, transmit) {
            Ok(()) => {
                self.pass_over_answers(cx, terms, shared);
                Ok(true)
            }
            Err(Failed(status)) => {
                self.fail(terms, shared, segment.seq, status);
                Err(Failure::Requester)
            }
        }
    }

    /// Goes over to selective mode, if the other side supports the scheme and no request has begun.
    fn go_over(&mut self, terms: &Terms) {
        if self.peer == Peer::Ours && self.begun == 0 && matches!(self.mode, Mode::Standard(_)) {
            self.first_psn = self.sender.supplied().to_psn(self.first_psn);
            self.sender = sender(terms, terms.init.recovery, self.first_psn);
            self.mode = Mode::Selective(Selective::new(terms, self.first_psn, self.msn));
        }
    }

    /// Gives requests their part of the sequence, as long as they may begin. New requests begin only where `admits`
    /// permits any.
    fn begin_requests(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        admits: bool,
    ) -> Result<(), Failure> {
        let mut asks_at = self.credits.take_asks_at();
        if self.credits.owed > 0 {
            let is_free = self.credits.allow(self.credits.begun);
            let asks = !is_free && self.credits.may_ask(cx.now, terms, &mut asks_at);
            let packets = if is_free { self.credits.owed } else { u64::from(asks) };
            self.credits.owed -= packets;
            self.supply(cx, packets);
        }
        while admits && self.credits.owed == 0 && self.begun < self.queue.len() {
            let waits = match (&self.mode, self.peer) {
                (Mode::Standard(_), Peer::Ours) => true,
                (Mode::Standard(_), Peer::Unknown) => self.begun > 0,
                (Mode::Standard(_), Peer::Standard) => false,
                (Mode::Selective(_), _) => self.queue[self.begun].is_read() && !self.may_ask(terms),
            };
            if waits || self.is_fenced(terms) {
                break;
            }
            let wqe = &mut self.queue[self.begun];
            let consumed = self.credits.begun + u64::from(wqe.consumes());
            let is_free = !wqe.consumes() || self.credits.allow(consumed);
            if !is_free && !self.credits.may_ask(cx.now, terms, &mut asks_at) {
                break;
            }
            let outcome = wqe.allowed(terms, shared).and_then(|()| wqe.execute(terms, shared));
            if let Err(Failed(status)) = outcome {
                // Earlier requests complete first.
                if self.begun > 0 {
                    break;
                }
                self.fail_front(terms, shared, status);
                return Err(Failure::Requester);
            }
            wqe.first = self.sender.supplied();
            wqe.consumed = consumed;
            self.credits.begun = consumed;
            if let Mode::Selective(selective) = &mut self.mode {
                wqe.msn = selective.msn(wqe.is_local());
            }
            if wqe.is_local() {
                // The request is done, and completes when all before it have.
                self.begun += 1;
                self.complete_done(terms, shared);
                continue;
            }
            let packets = message::packets(wqe.length, terms.mtu);
            match &mut self.mode {
                Mode::Standard(_) => wqe.packets = packets,
                Mode::Selective(selective) => {
                    wqe.packets = if wqe.is_read() { 1 } else { packets };
                    wqe.number = selective.number(&wqe.request.operation);
                }
            }
            if wqe.is_read() {
                self.unanswered.push_back(self.completed + self.begun as u64);
                self.has_asked_enough = self.unanswered.len() >= usize::from(terms.reads_asked.max(1));
            }
            let packets = if is_free { wqe.packets } else { 1 };
            self.credits.owed = wqe.packets - packets;
            self.begun += 1;
            self.supply(cx, packets);
        }
        Ok(())
    }
    /// Returns whether the request that begins next waits for those before it, because of the application's fence or
    /// the driver's.
    fn is_fenced(&self, terms: &Terms) -> bool {
        let wqe = &self.queue[self.begun];
        let by_application = wqe.request.fence && !self.unanswered.is_empty();
        by_application
            || (terms.init.options.fence_overlaps
                && self.queue.iter().take(self.begun).any(|older| wqe.could_overwrite(older)))
    }
    /// Gives the next packets of the newest request their place in the sequence.
    fn supply(&mut self, cx: &mut Cx<'_>, packets: u64) {
        if packets > 0 && self.sender.is_done() {
            self.progress = cx.now;
            self.failed_retries = 0;
        }
        self.sender.supply(packets);
    }
    /// Handles the credits in an acknowledgement of everything before `to`. An acknowledgement older than the newest
    /// one is out of date.
    fn on_advertised(&mut self, syndrome: Syndrome, to: Seq) {
        let is_news = self.sender.acked() <= to && to <= self.sender.supplied();
        if self.credits.counts() && is_news && matches!(syndrome, Syndrome::Ack(_)) {
            let consumed = self.ended_before(to).map_or(self.credits.ended, |last| last.consumed);
            self.credits.on_advertised(consumed, syndrome.advertised());
        }
    }
    /// Returns the last request in the queue that ends before `seq`.
    fn ended_before(&self, seq: Seq) -> Option<&Wqe> {
        let ended = self.queue.partition_point(|wqe| wqe.first + wqe.packets <= seq);
        ended.checked_sub(1).map(|last| &self.queue[last])
    }

    /// Returns whether one more Read may begin. Once the limit is reached, a quarter has to be answered first, unless
    /// `ack_every` is 1: otherwise each response would let a single request go, and single requests get single
    /// responses.
    fn may_ask(&mut self, terms: &Terms) -> bool {
        let most = usize::from(terms.reads_asked.max(1));
        let least = if terms.init.ack_every > 1 { most - most / 4 } else { most - 1 };
        self.has_asked_enough &= self.unanswered.len() > least;
        !self.has_asked_enough && self.unanswered.len() < most
    }

    /// Returns the index in the queue of the request that `seq` belongs to.
    #[inline]
    fn find(&mut self, seq: Seq) -> Option<usize> {
        let likely = self.sending.wrapping_sub(self.completed) as usize;
        let has_it = |at: &usize| {
            let wqe = self.queue.get(*at);
            wqe.is_some_and(|wqe| wqe.first <= seq && seq < wqe.first + wqe.packets)
        };
        let at = [likely, likely.wrapping_add(1)].into_iter().find(has_it).or_else(|| find(&self.queue, seq))?;
        self.sending = self.completed + at as u64;
        Some(at)
    }

    #[inline(always)]
    fn packet(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        segment: Segment,
        payload: &mut Payload,
        transmit: &mut Transmit,
    ) -> Result<(), Failed> {
        let at = self.find(segment.seq).ok_or(Failed(Status::LocalOperation))?;
        let wqe = &self.queue[at];
        let psn = segment.seq.to_psn(self.first_psn);
        let (stamp, path_asks) = shared.paths.on_sent(terms.path, cx.now, 1, segment.retransmission);
        self.attempt.newest = Some(stamp);
        let headers = &mut transmit.headers;
        let (offset, length) = match &mut self.mode {
            Mode::Standard(standard) => {
                let (found, offset, length) = standard.headers(terms, wqe, &self.sender, segment, psn, cx.now);
                *headers = found;
                let asks = &mut headers.bth.ack_request;
                *asks |= path_asks;
                if *asks && terms.path != PathId::NONE {
                    standard.expect_echo(segment.seq, stamp);
                }
                headers.ours = match (self.peer, terms.init.recovery.wire_id()) {
                    (Peer::Unknown, Some(scheme)) => Ours::Offers(scheme),
                    _ => Ours::No,
                };
                (offset, length)
            }
            Mode::Selective(_) => {
                let place = selective::headers(terms, wqe, segment, psn, stamp, headers);
                headers.bth.ack_request = path_asks || asks(terms, &self.sender, segment);
                place
            }
        };
        // A packet beyond the credit limit requests an acknowledgement, which brings new credits.
        transmit.headers.bth.ack_request |= self.credits.owed > 0 && segment.seq + 1 == self.sender.supplied();
        if length > 0 {
            let found = wqe.request.gather(&shared.regions, terms.init.pd, offset, u64::from(length), payload);
            found.ok_or(Failed(Status::LocalProtection))?;
        }
        shared.count_sent(segment.retransmission);
        transmit.route = terms.route;
        transmit.payload = length;
        Ok(())
    }

    /// Handles an acknowledgement, or a response to a Read or an Atomic.
    pub(super) fn on_reply(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        memory: &mut impl Memory,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failure> {
        let headers = arrival.headers;
        let uses = matches!(headers.ours, Ours::Uses(_));
        if uses != matches!(self.mode, Mode::Selective(_)) {
            return Ok(());
        }
        match (headers.ours, self.peer) {
            (Ours::Offers(offered), _) => self.on_offer(terms, offered),
            (Ours::No, Peer::Unknown) => self.peer = Peer::Standard,
            _ => {}
        }
        let before = (self.sender.acked(), self.unanswered.len(), self.answered());
        let outcome = match &self.mode {
            Mode::Standard(_) => self.on_standard_reply(cx, terms, shared, memory, arrival),
            Mode::Selective(_) => self.on_selective_reply(cx, terms, shared, memory, arrival),
        };
        if before != (self.sender.acked(), self.unanswered.len(), self.answered()) {
            self.progress = cx.now;
            self.timeouts = 0;
            self.failed_retries = 0;
        }
        if before.0 != self.sender.acked() {
            self.not_ready_tries = 0;
            // A standard peer may count parts of a Read: only the MSN at the change of modes matters.
            if let (Mode::Standard(_), Some(aeth)) = (&self.mode, headers.aeth) {
                self.msn = Msn::new(aeth.msn);
            }
        }
        self.complete_done(terms, shared);
        outcome.map_err(|Failed(status)| {
            self.fail_front(terms, shared, status);
            Failure::Requester
        })
    }

    /// Returns the number of packets of the oldest response in progress that have arrived.
    fn answered(&self) -> u64 {
        self.unanswered.front().map_or(0, |&number| self.queue[(number - self.completed) as usize].answered)
    }

    /// Handles the syndrome of an acknowledgement for the packet at `seq`, if it is not positive; everything before
    /// `seq` has arrived.
    fn on_refusal(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
        aeth: Aeth,
        seq: Seq,
    ) -> Result<(), Failed> {
        let status = match aeth.syndrome {
            Syndrome::Ack(_) => return Ok(()),
            Syndrome::NotReady(timer) => {
                if seq != self.sender.acked() {
                    return Ok(());
                }
                // Nothing else reports the dropped packet: packets behind it may have been dropped, too, or there are
                // none.
                if matches!(self.mode, Mode::Selective(_)) {
                    self.sender.handle_not_ready(cx, &mut shared.pools);
                }
                if self.not_ready_until.is_some() {
                    return Ok(());
                }
                self.not_ready_tries = self.not_ready_tries.saturating_add(1);
                if terms.not_ready_retries.is_none_or(|retries| self.not_ready_tries <= retries) {
                    let until = cx.now + not_ready_wait(timer);
                    self.not_ready_until = Some(until);
                    // No response can arrive before.
                    self.progress = until;
                    return Ok(());
                }
                Status::NotReadyRetriesExceeded
            }
            Syndrome::Nak(nak::SEQUENCE) => return Ok(()),
            Syndrome::Nak(nak::INVALID_REQUEST) => Status::RemoteInvalidRequest,
            Syndrome::Nak(nak::REMOTE_ACCESS) => Status::RemoteAccess,
            Syndrome::Nak(nak::REMOTE_OPERATION) => Status::RemoteOperation,
            Syndrome::Nak(_) => Status::BadResponse,
        };
        if seq < self.sender.acked() || seq >= self.sender.supplied() {
            return Ok(());
        }
        Err(Failed(status))
    }

    /// Handles a congestion notification: packets of this side arrive with ECN marks.
    pub(super) fn on_congestion(&mut self, cx: &mut Cx<'_>) {
        self.sender.handle_cnp(cx);
    }

    pub(super) fn handle_timeout(
        &mut self,
        cx: &mut Cx<'_>,
        terms: &Terms,
        shared: &mut Shared,
    ) -> Result<(), Failure> {
        if self.not_ready_until.is_some_and(|until| cx.now < until) {
            return Ok(());
        }
        let (sends_at, asks_at) = (self.sender.poll_timeout(), self.asks_again(terms));
        let is_due = sends_at.into_iter().chain(asks_at).any(|at| at <= cx.now) && self.attempt.put_off <= cx.now;
        if is_due && shared.paths.admits_timeout(terms.path, cx.now, &mut self.attempt) {
            let before = self.sender.stats().timeouts;
            self.sender.handle_timeout(cx, &mut shared.pools);
            shared.stats.timeouts += u64::from(self.sender.stats().timeouts - before);
            let timed_out = self.sender.stats().timeouts > before;
            let asks_again = !timed_out && asks_at.is_some_and(|at| at <= cx.now);
            if asks_again {
                shared.stats.timeouts += 1;
                self.asked = cx.now;
                self.start_over(cx, shared);
            }
            // IRN's RTO_low may only have become RTO_high, and no retry failed.
            if timed_out || asks_again {
                self.attempt.on_failed_retry(cx.now);
                self.failed_retries = self.failed_retries.saturating_add(1);
            }
            self.timeouts = self.timeouts.saturating_add(u8::from(timed_out && self.not_ready_until.is_none()));
        }
        let given_up = match self.patience(terms) {
            Some(until) => until <= cx.now && !self.is_extended(cx.now, terms, shared),
            None => matches!(self.mode, Mode::Standard(_)) && self.timeouts > terms.retries,
        };
        if given_up && self.begun > 0 {
            self.complete_done(terms, shared);
            self.fail_front(terms, shared, Status::RetriesExceeded);
            return Err(Failure::Requester);
        }
        Ok(())
    }
    /// Returns the time by which a sign of progress must arrive; `None` for a standard peer, whose timeouts are
    /// counted.
    fn patience(&self, terms: &Terms) -> Option<Instant> {
        let counts_time = self.begun > 0 && (self.peer != Peer::Standard || matches!(self.mode, Mode::Selective(_)));
        let whole = terms.timeout.filter(|_| counts_time)? * (u64::from(terms.retries) + 1);
        Some((self.progress + whole).max(self.extended_until))
    }
    /// Returns whether to wait longer than the application's timeout times its retries: as long as fewer retries than
    /// permitted have failed, and packets of the remote host arrive. Where only a response is missing, nothing is
    /// retransmitted, and each such time counts as a retry.
    fn is_extended(&mut self, now: Instant, terms: &Terms, shared: &Shared) -> bool {
        if terms.path == PathId::NONE || self.begun == 0 || self.failed_retries > terms.retries {
            return false;
        }
        let Some(timeout) = terms.timeout else { return false };
        let whole = timeout * (u64::from(terms.retries) + 1);
        let waits = if self.sender.is_done() {
            if !shared.paths.is_alive(terms.path, self.progress) {
                return false;
            }
            self.failed_retries += 1;
            whole
        } else {
            timeout
        };
        self.extended_until = now + waits;
        true
    }
    pub(super) fn deadline(&self, terms: &Terms) -> Instant {
        if let Some(until) = self.not_ready_until {
            return until;
        }
        let retry = self.sender.poll_timeout().into_iter().chain(self.asks_again(terms)).min();
        let retry = retry.map(|at| at.max(self.attempt.put_off));
        let asks_at = self.credits.asks_at();
        retry.into_iter().chain(self.patience(terms)).chain(asks_at).min().unwrap_or(Instant::NEVER)
    }

    /// Completes finished requests, in order.
    fn complete_done(&mut self, terms: &Terms, shared: &mut Shared) {
        while self.begun > 0 {
            let wqe = &self.queue[0];
            // A response can overtake the acknowledgement of its request, which may then have to be retransmitted.
            let has_arrived = wqe.first + wqe.packets <= self.sender.acked();
            // Between two Selvedge NICs the MSN expires requests (IRN, section 5.3.3).
            let is_acked = match &self.mode {
                Mode::Standard(_) => has_arrived,
                Mode::Selective(_) => self.msn.covers(wqe.msn),
            };
            debug_assert_eq!(is_acked, has_arrived, "the MSN counts what has arrived");
            let is_done = is_acked && (!wqe.is_read() || wqe.is_answered(terms));
            if !is_done {
                break;
            }
            self.begun -= 1;
            self.complete_front(terms, shared, Status::Success);
        }
    }
    /// Completes the oldest request with `status`.
    fn complete_front(&mut self, terms: &Terms, shared: &mut Shared, status: Status) {
        let Some(wqe) = self.queue.pop_front() else { return };
        self.completed += 1;
        self.credits.ended = self.credits.ended.max(wqe.consumed);
        if wqe.request.signaled || terms.init.all_signaled || status != Status::Success {
            let length = if wqe.is_read() { wqe.length as u32 } else { 0 };
            shared.complete(terms.init.send_cq, wqe.request.completion(terms.number, status, length));
        }
    }
    fn fail_front(&mut self, terms: &Terms, shared: &mut Shared, status: Status) {
        self.begun = self.begun.saturating_sub(1);
        self.complete_front(terms, shared, status);
    }
    /// Fails the request that `seq` belongs to, after flushing all requests before it.
    fn fail(&mut self, terms: &Terms, shared: &mut Shared, seq: Seq, status: Status) {
        let before = self.find(seq).unwrap_or(0);
        for _ in 0..before {
            self.fail_front(terms, shared, Status::Flushed);
        }
        self.fail_front(terms, shared, status);
    }

    /// Passes an acknowledgement to the sender: everything before `expected` has arrived, or packets are missing.
    fn tell(&mut self, cx: &mut Cx<'_>, shared: &mut Shared, ack: &Ack, sent_at: Instant) {
        self.sender.handle_ack(cx, &mut shared.pools, ack, sent_at);
    }
}

fn find(queue: &VecDeque<Wqe>, seq: Seq) -> Option<usize> {
    queue.partition_point(|wqe| wqe.first <= seq).checked_sub(1)
}
