//! A queue pair: its state, and the dispatch to its requester, responder and datagram queues.

use selvedge_transport::Cx;
use selvedge_units::{Instant, QpNumber};
use selvedge_wire::verbs::opcode::{SERVICE, UNRELIABLE, operation as op};

use super::arrival::{Arrival, Site};
use super::attributes::{QpChange, QpInit, QpState, Service, Terms};
use super::datagram::Datagrams;
use super::error::VerbsError;
use super::memory::Memory;
use super::notification::{self, Notification};
use super::paths::PathId;
use super::receives::Receives;
use super::requester::Requester;
use super::responder::Responder;
use super::rnic::Limits;
use super::shared::{Event, Shared};
use super::transition;
use super::transmit::Transmit;
use super::unreliable::{Inbound, Outbound};
use super::work::{Attached, Completion, CompletionKind, Payload, ReceiveRequest, SendRequest, Status};

/// A queue pair.
pub(super) struct QueuePair {
    number: QpNumber,
    pub(super) init: QpInit,
    state: QpState,
    /// All attributes that were ever set.
    set: QpChange,
    terms: Terms,
    requester: Requester,
    responder: Responder,
    datagrams: Datagrams,
    outbound: Outbound,
    inbound: Inbound,
    receives: Receives,
    notification: Notification,
    /// Packets of requests sent since an acknowledgement has been waiting.
    overtook: u8,
    /// Whether the queue pair is in the NIC's ready ring.
    pub(super) is_ready: bool,
    /// Whether the queue pair is in the queue of its path.
    pub(super) is_waiting: bool,
    /// Deadline of the queue pair in the NIC's list of deadlines.
    pub(super) deadline: Instant,
}

/// Packets of requests that may leave before a waiting acknowledgement.
const OVERTAKES: u8 = 8;

/// A failure of the send queue alone.
pub(super) struct SendFailed;

/// Cause of a queue pair's failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Failure {
    /// A request of this side failed.
    Requester,
    /// A request of the other side was malformed.
    InvalidRequest,
    /// A request of the other side was not permitted.
    Access,
    /// Another error on this side.
    Fatal,
}

impl QueuePair {
    pub(super) fn new(number: QpNumber, init: QpInit) -> Self {
        let set = QpChange::default();
        let terms = Terms::of(number, init, &set);
        Self {
            number,
            init,
            state: QpState::Reset,
            set,
            terms,
            requester: Requester::new(&terms),
            responder: Responder::new(&terms),
            datagrams: Datagrams::default(),
            outbound: Outbound::default(),
            inbound: Inbound::new(&terms),
            receives: Receives::default(),
            notification: Notification::new(&terms),
            overtook: 0,
            is_ready: false,
            is_waiting: false,
            deadline: Instant::NEVER,
        }
    }
    /// Releases the on-chip memory of the queue pair, before it is destroyed.
    pub(super) fn release(&mut self, shared: &mut Shared) {
        self.requester.release(shared);
        self.responder.release(shared);
        shared.paths.leave(core::mem::replace(&mut self.terms.path, PathId::NONE), self.number);
        self.is_waiting = false;
    }
    pub(super) fn state(&self) -> QpState {
        self.state
    }
    pub(super) fn attributes(&self) -> QpChange {
        QpChange { state: Some(self.state), ..self.set }
    }

    pub(super) fn modify(&mut self, shared: &mut Shared, change: &QpChange) -> Result<(), VerbsError> {
        let to = transition::check(self.init.service, self.state, change)?;
        let from = self.state;
        transition::merge(&mut self.set, change);
        let path = self.terms.path;
        self.terms = Terms::of(self.number, self.init, &self.set);
        self.terms.path = path;
        if change.route.is_some() && self.init.service == Service::Reliable {
            // Packets left on the old path are no longer counted.
            self.terms.path = shared.paths.enter(&self.terms.route);
            shared.paths.leave(path, self.number);
            self.is_waiting = false;
        }
        match (from, to) {
            (_, QpState::Reset) => {
                // After a reset the queue pair is as new: completions of its earlier requests are dropped.
                for cq in [self.init.send_cq, self.init.receive_cq] {
                    shared.forget(cq, self.number);
                }
                self.release(shared);
                let Self { is_ready, deadline, .. } = *self;
                *self = Self { is_ready, deadline, ..Self::new(self.number, self.init) }
            }
            (_, QpState::Error) => self.fail(shared, None),
            (QpState::Initialised, QpState::ReadyToReceive) => {
                self.responder = Responder::new(&self.terms);
                self.inbound = Inbound::new(&self.terms);
            }
            (QpState::ReadyToReceive, QpState::ReadyToSend) => self.requester.begin(&self.terms),
            _ => {}
        }
        if to != QpState::Error {
            self.state = to;
        }
        if self.state == QpState::Draining {
            self.drained(shared);
        }
        Ok(())
    }

    /// Returns whether all of `requests` can be posted, or the error.
    pub(super) fn check_sends(&self, requests: &[SendRequest]) -> Result<(), VerbsError> {
        match self.state {
            QpState::ReadyToSend | QpState::Draining | QpState::SendError | QpState::Error => {}
            _ => return Err(VerbsError::Invalid("the queue pair is not ready to send")),
        }
        let waiting = match self.init.service {
            Service::Reliable => self.requester.len(),
            Service::Unreliable => self.outbound.len(),
            Service::Datagram => self.datagrams.len(),
        };
        if waiting + requests.len() > self.init.capacities.send_requests as usize {
            return Err(VerbsError::Exhausted("places in the send queue"));
        }
        requests.iter().try_for_each(|request| request.check(&self.init))
    }
    /// Posts a request that [`Self::check_sends`] has accepted.
    pub(super) fn post_send(&mut self, shared: &mut Shared, request: SendRequest) {
        match self.init.service {
            Service::Reliable => self.requester.post(request),
            Service::Unreliable => self.outbound.post(request),
            Service::Datagram => self.datagrams.post(request),
        }
        if matches!(self.state, QpState::Error | QpState::SendError) {
            self.flush_sends(shared);
        }
    }

    /// Adds a receive request; returns whether the other side has to be informed of it.
    pub(super) fn post_recv(&mut self, shared: &mut Shared, request: ReceiveRequest) -> Result<bool, VerbsError> {
        if self.state == QpState::Reset {
            return Err(VerbsError::Invalid("the queue pair is not initialised"));
        }
        if self.init.srq.is_some() {
            return Err(VerbsError::Invalid("the queue pair takes its receive requests from a shared queue"));
        }
        if self.receives.len() >= self.init.capacities.receive_requests as usize {
            return Err(VerbsError::Exhausted("places in the receive queue"));
        }
        if request.scatter.len() > self.init.capacities.receive_pieces as usize {
            return Err(VerbsError::Invalid("more pieces than the receive queue was made for"));
        }
        self.receives.push(request);
        if self.state == QpState::Error {
            self.flush_receives(shared);
        }
        let is_connected = matches!(self.state, QpState::ReadyToReceive | QpState::ReadyToSend | QpState::Draining);
        let tells = self.init.options.credits && is_connected && self.init.service == Service::Reliable;
        Ok(tells && self.responder.on_receives_added(&self.terms, &self.receives))
    }

    pub(super) fn handle_packet(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut Shared,
        memory: &mut impl Memory,
        arrival: &Arrival<'_>,
    ) {
        let headers = arrival.headers;
        if matches!(self.state, QpState::Reset | QpState::Initialised | QpState::Error) {
            return;
        }
        let is_datagram = headers.deth.is_some();
        let is_unreliable = headers.bth.opcode & SERVICE == UNRELIABLE;
        // A connection accepts packets from its peer's address alone; the peer's queue pair number is not in the
        // packet.
        let is_peer = arrival.route.remote == self.terms.route.remote;
        let outcome = match self.init.service {
            Service::Datagram if is_datagram => {
                let mut site = Site { shared, memory, receives: &mut self.receives };
                Datagrams::receive(&self.terms, &mut site, arrival);
                Ok(())
            }
            Service::Unreliable if is_unreliable && is_peer => {
                let mut site = Site { shared, memory, receives: &mut self.receives };
                self.inbound.receive(&self.terms, &mut site, arrival);
                Ok(())
            }
            Service::Reliable if !is_datagram && !is_unreliable && is_peer => {
                self.handle_reliable(cx, shared, memory, arrival)
            }
            _ => Ok(()),
        };
        if let Err(failure) = outcome {
            self.fail(shared, Some(failure));
        }
    }

    /// Handles a packet of a reliable connection: a response to this side's requests, or a request of the other side.
    fn handle_reliable(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut Shared,
        memory: &mut impl Memory,
        arrival: &Arrival<'_>,
    ) -> Result<(), Failure> {
        let headers = arrival.headers;
        self.notification.on_arrival(cx.now, &self.terms, arrival, shared.paths.is_on());
        shared.paths.on_arrival(self.terms.path, cx.now);
        match headers.bth.opcode {
            notification::OPCODE => {
                self.on_congestion(cx, shared);
                Ok(())
            }
            op::ACKNOWLEDGE
            | op::ATOMIC_ACKNOWLEDGE
            | op::READ_RESPONSE_FIRST
            | op::READ_RESPONSE_MIDDLE
            | op::READ_RESPONSE_LAST
            | op::READ_RESPONSE_ONLY => {
                let outcome = self.requester.on_reply(cx, &self.terms, shared, memory, arrival);
                self.drained(shared);
                outcome
            }
            op::READ_ACKNOWLEDGE => self.responder.on_read_ack(cx, &self.terms, shared, headers),
            _ => {
                let is_first = self.state == QpState::ReadyToReceive && self.responder.is_untouched();
                let mut site = Site { shared, memory, receives: &mut self.receives };
                let outcome = self.responder.handle_request(cx, &self.terms, &mut site, arrival);
                if is_first && !self.responder.is_untouched() {
                    shared.events.push_back(Event::Established(self.number));
                }
                if let Some(offered) = self.responder.offer() {
                    self.requester.on_offer(&self.terms, offered);
                }
                outcome
            }
        }
    }

    /// Slows requests and responses down, and the path: packets of this side meet congestion.
    pub(super) fn on_congestion(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        self.requester.on_congestion(cx);
        self.responder.on_congestion(cx);
        shared.paths.on_mark(self.terms.path, cx.now);
    }

    /// Returns whether the queue pair has sent the arriving datagram itself.
    pub(super) fn is_sender_of(&self, arrival: &Arrival<'_>) -> bool {
        let is_ours = |source| source == self.number && self.datagrams.has_sent_from(&arrival.route.remote);
        arrival.headers.deth.is_some_and(|deth| is_ours(deth.source))
    }

    /// Notes that the other side is known to be a Selvedge NIC.
    pub(super) fn agree(&mut self) {
        self.requester.agree(&self.terms);
    }
    /// Returns the next acknowledgement, which is sent before anything else.
    pub(super) fn poll_ack(&mut self) -> Option<Transmit> {
        if self.init.service != Service::Reliable {
            return None;
        }
        let notification = self.notification.poll(&self.terms);
        notification.or_else(|| self.responder.poll_ack(&self.terms)).or_else(|| self.requester.poll_ack(&self.terms))
    }

    /// Returns a repetition of the last acknowledgement, if the queue pair is connected.
    pub(super) fn last_word(&self) -> Option<Transmit> {
        let is_connected = !matches!(self.state, QpState::Reset | QpState::Initialised | QpState::Error);
        (is_connected && self.init.service == Service::Reliable).then(|| self.responder.last_word(&self.terms))?
    }

    /// Returns whether a send request has not completed.
    pub(super) fn has_sends(&self) -> bool {
        self.requester.len() + self.outbound.len() + self.datagrams.len() > 0
    }

    /// Writes the next packet to `transmit`; returns whether there is one.
    pub(super) fn poll_transmit(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut Shared,
        payload: &mut Payload,
        transmit: &mut Transmit,
    ) -> bool {
        if self.init.service != Service::Reliable {
            return write(self.poll_unreliable(shared, payload), transmit);
        }
        if let Some(notification) = self.notification.poll(&self.terms) {
            return write(Some(notification), transmit);
        }
        // The response to a short message is often another message: the acknowledgement of the first leaves behind it,
        // in one go.
        let goes_first = self.init.ack_every > 1 && self.overtook < OVERTAKES && self.responder.has_ack();
        if !goes_first {
            self.overtook = 0;
            // A failed queue pair still sends the NAK that names the cause.
            if self.responder.poll_transmit(cx, &self.terms, shared, payload, transmit) {
                return true;
            }
        }
        if self.poll_requester(cx, shared, payload, transmit) {
            self.overtook += u8::from(goes_first);
            return true;
        }
        self.overtook = 0;
        goes_first && self.responder.poll_transmit(cx, &self.terms, shared, payload, transmit)
    }
    /// Returns the next packet of a datagram or an unreliable connection. A failed request takes down only the requests
    /// behind it.
    fn poll_unreliable(&mut self, shared: &mut Shared, payload: &mut Payload) -> Option<Transmit> {
        if !matches!(self.state, QpState::ReadyToSend | QpState::Draining) {
            return None;
        }
        let admits = self.state == QpState::ReadyToSend;
        let polled = match self.init.service {
            Service::Unreliable => self.outbound.poll_transmit(&self.terms, shared, payload, admits),
            _ if admits => self.datagrams.poll_transmit(&self.terms, shared, payload),
            _ => Ok(None),
        };
        self.drained(shared);
        polled.unwrap_or_else(|SendFailed| {
            self.state = QpState::SendError;
            self.flush_sends(shared);
            None
        })
    }
    fn poll_requester(
        &mut self,
        cx: &mut Cx<'_>,
        shared: &mut Shared,
        payload: &mut Payload,
        transmit: &mut Transmit,
    ) -> bool {
        if !matches!(self.state, QpState::ReadyToSend | QpState::Draining) {
            return false;
        }
        let admits = self.state == QpState::ReadyToSend;
        let polled = self.requester.poll_transmit(cx, &self.terms, shared, payload, transmit, admits);
        polled.unwrap_or_else(|failure| {
            self.fail(shared, Some(failure));
            false
        })
    }

    pub(super) fn handle_timeout(&mut self, cx: &mut Cx<'_>, shared: &mut Shared) {
        if matches!(self.state, QpState::ReadyToReceive | QpState::ReadyToSend | QpState::Draining) {
            self.responder.handle_timeout(cx, &self.terms, shared);
        }
        if matches!(self.state, QpState::ReadyToSend | QpState::Draining)
            && let Err(failure) = self.requester.handle_timeout(cx, &self.terms, shared)
        {
            self.fail(shared, Some(failure));
        }
    }
    pub(super) fn next_deadline(&self) -> Instant {
        match self.state {
            QpState::ReadyToSend | QpState::Draining => {
                self.requester.deadline(&self.terms).min(self.responder.deadline())
            }
            QpState::ReadyToReceive => self.responder.deadline(),
            _ => Instant::NEVER,
        }
    }

    /// Returns whether requests have begun that are not finished.
    pub(super) fn has_begun(&self) -> bool {
        self.requester.has_begun() || self.outbound.has_begun()
    }
    /// Returns whether the queue pair is draining and has unfinished requests that have begun.
    pub(super) fn is_draining(&self) -> bool {
        self.state == QpState::Draining && self.has_begun()
    }
    /// Raises [`Event::Drained`] if the queue pair is draining and all requests that have begun are finished.
    fn drained(&mut self, shared: &mut Shared) {
        if self.state == QpState::Draining && !self.is_draining() && self.set.drained_event == Some(true) {
            self.set.drained_event = None;
            shared.events.push_back(Event::Drained(self.number));
        }
    }

    /// Enters the error state, and flushes all waiting requests.
    fn fail(&mut self, shared: &mut Shared, failure: Option<Failure>) {
        if self.state == QpState::Error {
            return;
        }
        self.state = QpState::Error;
        match failure {
            // The failed completion reports the error.
            None | Some(Failure::Requester) => {}
            Some(Failure::InvalidRequest) => shared.events.push_back(Event::QpRequest(self.number)),
            Some(Failure::Access) => shared.events.push_back(Event::QpAccess(self.number)),
            Some(Failure::Fatal) => shared.events.push_back(Event::QpFatal(self.number)),
        }
        self.flush_sends(shared);
        self.flush_receives(shared);
        if self.init.srq.is_some() {
            shared.events.push_back(Event::LastReceive(self.number));
        }
    }
    fn flush_sends(&mut self, shared: &mut Shared) {
        for request in self.requester.drain().chain(self.outbound.drain()).chain(self.datagrams.drain()) {
            let flushed = Completion::flushed(request.id, request.kind(), self.number);
            shared.complete(self.init.send_cq, flushed);
        }
    }
    fn flush_receives(&mut self, shared: &mut Shared) {
        let begun = self.responder.drain();
        for request in begun.into_iter().chain(self.inbound.drain()).chain(self.receives.drain()) {
            let flushed = Completion::flushed(request.id, CompletionKind::Receive, self.number);
            shared.complete(self.init.receive_cq, flushed);
        }
    }
}

fn write(found: Option<Transmit>, transmit: &mut Transmit) -> bool {
    found.map(|found| *transmit = found).is_some()
}

impl Completion {
    fn flushed(id: u64, kind: CompletionKind, qp: QpNumber) -> Self {
        Self {
            id,
            status: Status::Flushed,
            kind,
            length: 0,
            attached: Attached::Nothing,
            qp,
            source: None,
            solicited: false,
        }
    }
}

impl SendRequest {
    /// Checks a request for errors that are visible before it begins.
    fn check(&self, init: &QpInit) -> Result<(), VerbsError> {
        use super::work::{Data, Operation};
        let length = match &self.data {
            Data::Inline(bytes) => {
                if bytes.len() > init.capacities.inline as usize {
                    return Err(VerbsError::Invalid("more inline data than the queue pair was made for"));
                }
                if !matches!(self.operation, Operation::Send(_) | Operation::Write { .. } | Operation::AtomicWrite(_)) {
                    return Err(VerbsError::Invalid("only data that is sent can be inline"));
                }
                bytes.len() as u64
            }
            Data::Gather(pieces) => {
                if pieces.len() > init.capacities.send_pieces as usize {
                    return Err(VerbsError::Invalid("more pieces than the queue pair was made for"));
                }
                pieces.iter().map(|piece| u64::from(piece.length)).sum()
            }
        };
        if length > u64::from(Limits::HERE.message) {
            return Err(VerbsError::Invalid("a message of more than 2 GB"));
        }
        match (init.service, self.operation) {
            (Service::Datagram, Operation::Send(_)) => match self.destination {
                Some(destination) if !destination.route.remote.is_unspecified() => {}
                _ => return Err(VerbsError::Invalid("a datagram needs an address handle with a global route")),
            },
            (Service::Reliable, _) => {}
            (Service::Datagram, _) => return Err(VerbsError::Invalid("datagram queue pairs only send")),
            (
                Service::Unreliable,
                Operation::Send(Attached::Nothing | Attached::Immediate(_)) | Operation::Write { .. },
            ) => {}
            (Service::Unreliable, _) => return Err(VerbsError::Invalid("unreliable connections only send and write")),
        }
        Ok(())
    }
}
