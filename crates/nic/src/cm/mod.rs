//! The connection manager: connects queue pairs by address and port (InfiniBand architecture, volume 1, chapter 12),
//! for `librdmacm`.
//!
//! ```text
//!     active                                passive
//!     connect   ── REQ ──────────────────>  Event::Requested
//!     Event::Replied  <───────────── REP ── accept               (or REJ: reject, Event::Rejected)
//!     ready     ── RTU ──────────────────>  Event::Established
//!     disconnect ─ DREQ ─────────────────>  Event::Disconnected  (either side)
//!     Event::Disconnected  <──────── DREP ─
//! ```
//!
//! A process that is killed sends nothing. Therefore each side asks a Selvedge peer every second whether it still knows
//! the connection: if not, or if eight questions in a row have no answer, the connection has ended
//! ([`ConnectionManager::poll_lost`]).
//!
//! Between two Selvedge NICs, REQ and REP also name the loss recovery that queue pairs prefer, so that they need not
//! negotiate it by a first request (IRN, section 7; [`ConnectionManager::poll_agreed`]).
//!
//! Like every engine, the manager has no input or output: messages go in and come out as 256 bytes for queue pair 1.
//! Unanswered messages are repeated; duplicates are answered again.

mod connection;
mod event;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use core::net::Ipv6Addr;

use selvedge_transport::Cx;
use selvedge_units::{Instant, QpNumber};
use selvedge_wire::cm::{Ids, IpAddresses, Life, Mad, Message, PathOf, Reject, Reply, Request, SidrReply, SidrRequest};

use self::connection::{Connection, State};
pub use self::event::{CmError, CmEvent, ConnectionId, Offer};
use crate::verbs::Route;

/// Maximum number of requests of peers that wait for the application's answer; more are ignored.
const BACKLOG: usize = 1_024;

/// All connections of a NIC.
pub struct ConnectionManager {
    guid: u64,
    prefix: u32,
    next_id: u32,
    services: BTreeSet<u64>,
    connections: BTreeMap<u32, Connection>,
    /// Connections by the peer's address and identifier, so that a repeated request is recognised.
    known: BTreeMap<(Ipv6Addr, u32), u32>,
    outgoing: VecDeque<(Route, Mad)>,
    events: VecDeque<CmEvent>,
    /// Queue pairs of this side whose peers were killed.
    lost: VecDeque<QpNumber>,
    /// Loss recovery that queue pairs of this side prefer, 1 to 15; 0 means none.
    scheme: u8,
    /// Queue pairs of this side whose peers prefer the same recovery.
    agreed: VecDeque<QpNumber>,
    /// Whether the message being handled is from a Selvedge peer.
    hears_ours: bool,
}

impl ConnectionManager {
    /// Number of low bits of connection identifiers that count up; above them is a prefix.
    pub const ID_BITS: u32 = 26;

    /// Creates a manager for the NIC of this GUID. Its connection identifiers have `prefix` (6 bits) above
    /// [`Self::ID_BITS`] and begin at `entropy`, so that a restarted process is not confused with the one before.
    pub fn new(guid: u64, prefix: u32, entropy: u32) -> Self {
        Self {
            guid,
            prefix: prefix << Self::ID_BITS,
            next_id: entropy,
            services: BTreeSet::new(),
            connections: BTreeMap::new(),
            known: BTreeMap::new(),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            lost: VecDeque::new(),
            scheme: 0,
            agreed: VecDeque::new(),
            hears_ours: false,
        }
    }

    /// Sets the loss recovery ([`Scheme::wire_id`](selvedge_transport::Scheme::wire_id)) that REQ and REP name as
    /// preferred from now on, in bits that the standard reserves and standard peers ignore, for the negotiation of IRN,
    /// section 7. `None`, the initial setting, names none.
    pub fn prefer(&mut self, scheme: Option<u8>) {
        self.scheme = scheme.unwrap_or(0);
    }
    /// Returns a queue pair of this side whose peer prefers the same loss recovery, for [`Rnic::agree`].
    ///
    /// [`Rnic::agree`]: crate::verbs::Rnic::agree
    pub fn poll_agreed(&mut self) -> Option<QpNumber> {
        self.agreed.pop_front()
    }

    /// Accepts requests for `service` (see [`IpAddresses::TCP_SERVICES`]) from now on: each raises an event.
    ///
    /// # Errors
    /// If the service is accepted already.
    pub fn listen(&mut self, service: u64) -> Result<(), CmError> {
        if self.services.insert(service) { Ok(()) } else { Err(CmError::InUse) }
    }
    /// Rejects requests for `service` from now on.
    pub fn unlisten(&mut self, service: u64) {
        self.services.remove(&service);
    }

    /// Requests a connection with `service` over `route`; `port` is that of this side, `mtu` the code of the path's
    /// MTU.
    pub fn connect(
        &mut self,
        cx: &mut Cx<'_>,
        route: Route,
        service: u64,
        port: u16,
        mtu: u8,
        offer: &Offer,
    ) -> ConnectionId {
        /// Response timeout of Linux's connection manager: 4.3 s.
        const RESPONSE_TIMEOUT: u8 = 20;
        let id = self.fresh();
        let request = Request {
            local: id,
            service,
            guid: self.guid,
            qkey: offer.qkey,
            qp: offer.qp,
            responder_resources: offer.responder_resources,
            initiator_depth: offer.initiator_depth,
            remote_timeout: RESPONSE_TIMEOUT,
            local_timeout: RESPONSE_TIMEOUT,
            transport: 0,
            psn: offer.psn,
            retries: offer.retries,
            not_ready_retries: offer.not_ready_retries,
            mtu,
            srq: offer.srq,
            scheme: self.scheme,
            path: PathOf {
                local: route.local,
                remote: route.remote,
                flow_label: route.flow_label & 0xf_ffff,
                traffic_class: route.traffic_class,
                hop_limit: route.hop_limit,
                ack_timeout: offer.ack_timeout,
            },
            ip: IpAddresses { port, source: route.local, destination: route.remote },
            private: event::padded(&offer.private),
        };
        self.begin(cx, id, route, offer.qp, Message::Request(request));
        ConnectionId(id)
    }
    /// Asks which queue pair serves `service`, to send datagrams to that queue pair.
    pub fn resolve(&mut self, cx: &mut Cx<'_>, route: Route, service: u64, port: u16, private: &[u8]) -> ConnectionId {
        let id = self.fresh();
        let ip = IpAddresses { port, source: route.local, destination: route.remote };
        let question = SidrRequest { id, service, ip, private: event::padded(private) };
        self.begin(cx, id, route, QpNumber(0), Message::Resolve(question));
        ConnectionId(id)
    }
    fn begin(&mut self, cx: &mut Cx<'_>, id: u32, route: Route, our_qp: QpNumber, message: Message) {
        let mut connection = Connection::new(route, 0, u64::from(id), State::Asked);
        connection.our_qp = our_qp;
        connection.say(cx.now, message, true, &mut self.outgoing);
        self.connections.insert(id, connection);
    }
    fn fresh(&mut self) -> u32 {
        loop {
            self.next_id = self.next_id.wrapping_add(1) % (1 << Self::ID_BITS);
            let id = self.prefix | self.next_id;
            if id != 0 && !self.connections.contains_key(&id) {
                return id;
            }
        }
    }

    /// Accepts the request of [`CmEvent::Requested`].
    ///
    /// # Errors
    /// If the connection does not exist or is in another state.
    pub fn accept(&mut self, cx: &mut Cx<'_>, id: ConnectionId, offer: &Offer) -> Result<(), CmError> {
        let (guid, scheme) = (self.guid, self.scheme);
        let connection = self.connections.get_mut(&id.0).filter(|connection| connection.state == State::Requested);
        let connection = connection.ok_or(CmError::NotThus)?;
        let reply = Reply {
            ids: connection.ids(id.0),
            qkey: offer.qkey,
            qp: offer.qp,
            psn: offer.psn,
            responder_resources: offer.responder_resources,
            initiator_depth: offer.initiator_depth,
            not_ready_retries: offer.not_ready_retries,
            srq: offer.srq,
            scheme,
            guid,
            private: event::padded(&offer.private),
        };
        connection.state = State::Granted;
        connection.our_qp = offer.qp;
        if scheme > 0 && connection.scheme == scheme {
            self.agreed.push_back(offer.qp);
        }
        connection.say(cx.now, Message::Reply(reply), true, &mut self.outgoing);
        Ok(())
    }
    /// Answers the question of [`CmEvent::Asked`] with a queue pair and its Q_Key; `None` rejects the question.
    ///
    /// # Errors
    /// If the connection does not exist or is in another state.
    pub fn answer(
        &mut self,
        cx: &mut Cx<'_>,
        id: ConnectionId,
        found: Option<(QpNumber, u32)>,
        private: &[u8],
    ) -> Result<(), CmError> {
        let connection = self.connections.get_mut(&id.0).filter(|connection| connection.state == State::Questioned);
        let connection = connection.ok_or(CmError::NotThus)?;
        let (qp, qkey) = found.unwrap_or_default();
        let reply = SidrReply {
            id: connection.theirs,
            status: if found.is_some() { 0 } else { 2 },
            qp,
            service: connection.service,
            qkey,
            private: event::padded(private),
        };
        connection.state = State::Ended;
        connection.say(cx.now, Message::Resolved(reply), false, &mut self.outgoing);
        connection.linger(cx.now);
        Ok(())
    }
    /// Rejects the request of [`CmEvent::Requested`], or the reply of [`CmEvent::Replied`].
    ///
    /// # Errors
    /// If the connection does not exist or is in another state.
    pub fn reject(&mut self, cx: &mut Cx<'_>, id: ConnectionId, private: &[u8]) -> Result<(), CmError> {
        let connection = self.connections.get_mut(&id.0).ok_or(CmError::NotThus)?;
        let refused = match connection.state {
            State::Requested => 0,
            State::Replied => 1,
            _ => return Err(CmError::NotThus),
        };
        let private = event::padded(private);
        let reject = Reject { ids: connection.ids(id.0), refused, reason: Reject::CONSUMER, private };
        connection.state = State::Ended;
        connection.say(cx.now, Message::Reject(reject), false, &mut self.outgoing);
        connection.linger(cx.now);
        Ok(())
    }
    /// Rejects [`CmEvent::Requested`] or [`CmEvent::Asked`] with the reason that the service does not exist, and
    /// removes the connection.
    pub fn refuse(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get(&id.0).filter(|connection| connection.waits_for_application()) {
            self.outgoing.push_back(connection.no_such_service(id.0));
            self.forget(id);
        }
    }
    /// Establishes a connection after [`CmEvent::Replied`]: the queue pair of this side is ready.
    ///
    /// # Errors
    /// If the connection does not exist or is in another state.
    pub fn ready(&mut self, cx: &mut Cx<'_>, id: ConnectionId) -> Result<(), CmError> {
        let connection = self.connections.get_mut(&id.0).filter(|connection| connection.state == State::Replied);
        let connection = connection.ok_or(CmError::NotThus)?;
        connection.state = State::Established;
        let ids = connection.ids(id.0);
        connection.say(cx.now, Message::Ready(ids, [0; 224]), false, &mut self.outgoing);
        connection.lives(cx.now);
        Ok(())
    }
    /// Notes that an accepted connection is established, because a packet arrived on it: the RTU was lost.
    pub fn established(&mut self, cx: &mut Cx<'_>, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id.0)
            && connection.state == State::Granted
        {
            connection.state = State::Established;
            connection.lives(cx.now);
            self.events.push_back(CmEvent::Established(id));
        }
    }
    /// Disconnects a connection.
    ///
    /// # Errors
    /// If the connection is not established.
    pub fn disconnect(&mut self, cx: &mut Cx<'_>, id: ConnectionId) -> Result<(), CmError> {
        let connection = self.connections.get_mut(&id.0).ok_or(CmError::NotThus)?;
        if !matches!(connection.state, State::Established | State::Granted | State::Replied) {
            return Err(CmError::NotThus);
        }
        connection.state = State::Ending;
        let message = Message::Disconnect(connection.ids(id.0), connection.their_qp, [0; 220]);
        connection.say(cx.now, message, true, &mut self.outgoing);
        Ok(())
    }
    /// Removes a connection in any state: no more events of it are raised. If its DREQ was not answered yet, the DREQ
    /// is repeated a few times, because nothing will repeat it later.
    pub fn forget(&mut self, id: ConnectionId) {
        /// Repetitions of an unanswered DREQ. At a loss rate of one in a hundred, one in a hundred million
        /// disconnections is missed.
        const LAST_WORDS: usize = 3;
        if let Some(connection) = self.connections.remove(&id.0) {
            if connection.state == State::Ending {
                (0..LAST_WORDS).for_each(|_| connection.say_again(&mut self.outgoing));
            }
            self.known.remove(&(connection.route.remote, connection.theirs));
        }
    }

    /// Disconnects all connections and rejects all requests, before the process ends, as an operating system does for
    /// its sockets. Otherwise the other sides would wait for ever.
    pub fn leave(&mut self, cx: &mut Cx<'_>) {
        let all: alloc::vec::Vec<_> = self.connections.keys().copied().map(ConnectionId).collect();
        for id in all {
            if self.disconnect(cx, id).is_err() {
                let _ = self.reject(cx, id, &[]);
            }
            self.forget(id);
        }
    }

    /// Like [`Self::handle`], but for a datagram from a Selvedge peer.
    pub fn handle_ours(&mut self, cx: &mut Cx<'_>, route: &Route, payload: &[u8]) {
        self.hears_ours = true;
        self.handle(cx, route, payload);
        self.hears_ours = false;
    }
    /// Handles a datagram for queue pair 1, received over `route` (local is this side). Anything but a MAD of this
    /// class is ignored.
    pub fn handle(&mut self, cx: &mut Cx<'_>, route: &Route, payload: &[u8]) {
        let Ok(mad) = Mad::parse(payload) else { return };
        match mad.message {
            Message::Request(request) => {
                let event = |id| CmEvent::Requested { id, route: *route, request };
                let said =
                    self.on_question(route, mad.transaction, request.local, request.service, State::Requested, event);
                if let Some(id) = said
                    && let Some(connection) = self.connections.get_mut(&id)
                {
                    connection.their_qp = request.qp;
                    connection.scheme = request.scheme;
                }
            }
            Message::Resolve(request) => {
                let event = |id| CmEvent::Asked { id, route: *route, request };
                self.on_question(route, mad.transaction, request.id, request.service, State::Questioned, event);
            }
            Message::Reply(reply) => self.on_reply(route, reply),
            Message::Resolved(reply) => self.on_resolved(route, reply),
            Message::Reject(reject) => self.on_reject(route, reject),
            Message::Wait(wait) => {
                if let Some(connection) = self.connection(route, wait.ids.remote) {
                    connection.be_patient(cx.now, wait.timeout);
                }
            }
            Message::Ready(ids, _) => {
                if self.connection(route, ids.remote).is_some() {
                    self.established(cx, ConnectionId(ids.remote));
                }
            }
            Message::Disconnect(ids, ..) => self.on_disconnect(cx, route, mad.transaction, ids),
            Message::Disconnected(ids, _) => {
                if let Some(connection) = self.connection(route, ids.remote)
                    && connection.state == State::Ending
                {
                    self.end(cx.now, ids.remote);
                }
            }
            Message::Life(ids, life) => self.on_life(cx, route, mad.transaction, ids, life),
        }
    }

    fn on_life(&mut self, cx: &mut Cx<'_>, route: &Route, transaction: u64, ids: Ids, life: Life) {
        let back = Ids { local: ids.remote, remote: ids.local };
        let Some(connection) = self.connection(route, ids.remote) else {
            if life == Life::Asked {
                self.outgoing.push_back((*route, Mad { transaction, message: Message::Life(back, Life::Gone) }));
            }
            return;
        };
        if connection.theirs != ids.local {
            return;
        }
        let (state, qp) = (connection.state, connection.their_qp);
        if state == State::Established && life != Life::Gone {
            connection.lives(cx.now);
        }
        let answer = match (life, state) {
            // The other side has not received the DREQ.
            (Life::Asked, State::Ending | State::Ended) => Message::Disconnect(back, qp, [0; 220]),
            (Life::Asked, _) => Message::Life(back, Life::Lives),
            (Life::Gone, State::Established) => return self.lose(cx.now, ids.remote),
            (Life::Lives | Life::Gone, _) => return,
        };
        self.outgoing.push_back((*route, Mad { transaction, message: answer }));
    }

    /// Returns the connection of identifier `id`, if its other side is the sender of the message.
    fn connection(&mut self, route: &Route, id: u32) -> Option<&mut Connection> {
        self.connections.get_mut(&id).filter(|connection| connection.route.remote == route.remote)
    }

    /// Handles a request for a connection or a queue pair; returns the new connection's identifier, or `None` for a
    /// duplicate or a rejected request.
    fn on_question(
        &mut self,
        route: &Route,
        transaction: u64,
        theirs: u32,
        service: u64,
        state: State,
        event: impl FnOnce(ConnectionId) -> CmEvent,
    ) -> Option<u32> {
        if let Some(known) = self.known.get(&(route.remote, theirs)) {
            // The answer was lost, or is not given yet.
            if let Some(connection) = self.connections.get_mut(known) {
                connection.say_again(&mut self.outgoing);
            }
            return None;
        }
        let id = self.fresh();
        let mut connection = Connection::new(*route, theirs, transaction, state);
        connection.service = service;
        connection.is_ours = self.hears_ours;
        if !self.services.contains(&service) {
            self.outgoing.push_back(connection.no_such_service(id));
            return None;
        }
        let waiting = self.connections.values().filter(|connection| connection.waits_for_application()).count();
        if waiting >= BACKLOG {
            return None;
        }
        self.known.insert((route.remote, theirs), id);
        self.connections.insert(id, connection);
        self.events.push_back(event(ConnectionId(id)));
        Some(id)
    }

    fn on_reply(&mut self, route: &Route, reply: Reply) {
        let id = reply.ids.remote;
        let (is_ours, scheme) = (self.hears_ours, self.scheme);
        let Some(connection) = self.connection(route, id) else { return };
        match connection.state {
            State::Asked => {
                connection.state = State::Replied;
                connection.is_ours = is_ours;
                connection.hush();
                connection.theirs = reply.ids.local;
                connection.their_qp = reply.qp;
                // Later messages follow the path of the reply.
                connection.route.flow_label = route.flow_label;
                let qp = connection.our_qp;
                self.agreed.extend((scheme > 0 && reply.scheme == scheme).then_some(qp));
                self.known.insert((route.remote, reply.ids.local), id);
                self.events.push_back(CmEvent::Replied { id: ConnectionId(id), reply });
            }
            // The RTU was lost.
            State::Established => {
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.say_again(&mut self.outgoing);
                }
            }
            _ => {}
        }
    }
    fn on_resolved(&mut self, route: &Route, reply: SidrReply) {
        if self.connection(route, reply.id).is_some_and(|connection| connection.state == State::Asked) {
            self.connections.remove(&reply.id);
            let id = ConnectionId(reply.id);
            self.events.push_back(match reply.status {
                0 => CmEvent::Resolved { id, reply },
                status => CmEvent::Rejected { id, reason: u16::from(status), private: alloc::vec::Vec::new() },
            });
        }
    }
    fn on_reject(&mut self, route: &Route, reject: Reject) {
        let id = reject.ids.remote;
        let Some(connection) = self.connection(route, id) else { return };
        if matches!(connection.state, State::Asked | State::Granted | State::Replied) {
            self.forget(ConnectionId(id));
            let private = reject.private.to_vec();
            self.events.push_back(CmEvent::Rejected { id: ConnectionId(id), reason: reject.reason, private });
        }
    }
    fn on_disconnect(&mut self, cx: &mut Cx<'_>, route: &Route, transaction: u64, ids: Ids) {
        let back = Ids { local: ids.remote, remote: ids.local };
        // An unknown connection has ended before: the DREP is repeated.
        self.outgoing.push_back((*route, Mad { transaction, message: Message::Disconnected(back, [0; 224]) }));
        let Some(connection) = self.connection(route, ids.remote) else { return };
        if matches!(connection.state, State::Established | State::Granted | State::Replied | State::Ending) {
            self.end(cx.now, ids.remote);
        }
    }
    fn end(&mut self, now: Instant, id: u32) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.state = State::Ended;
            connection.linger(now);
            self.events.push_back(CmEvent::Disconnected(ConnectionId(id)));
        }
    }

    /// Ends a connection whose other side was killed.
    fn lose(&mut self, now: Instant, id: u32) {
        self.lost.extend(self.connections.get(&id).map(|connection| connection.our_qp).filter(|qp| qp.0 != 0));
        self.end(now, id);
    }

    /// Returns a queue pair of this side whose peer was killed: its posted requests will not complete by themselves.
    /// [`CmEvent::Disconnected`] reports the end of its connection.
    pub fn poll_lost(&mut self) -> Option<QpNumber> {
        self.lost.pop_front()
    }
    /// Returns the queue pair of this side that belongs to a connection, if it is known already.
    pub fn queue_pair(&self, id: ConnectionId) -> Option<QpNumber> {
        self.connections.get(&id.0).map(|connection| connection.our_qp).filter(|qp| qp.0 != 0)
    }
    /// Returns the next message to send, for queue pair 1.
    pub fn poll_transmit(&mut self) -> Option<(Route, Mad)> {
        self.outgoing.pop_front()
    }
    /// Returns whether there is a message to send.
    pub fn has_messages(&self) -> bool {
        !self.outgoing.is_empty()
    }
    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<CmEvent> {
        self.events.pop_front()
    }
    /// Returns when to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(Connection::deadline).min()
    }
    /// Handles all deadlines that have passed.
    pub fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        let is_due = |connection: &Connection| connection.deadline().is_some_and(|at| at <= cx.now);
        let due: alloc::vec::Vec<u32> =
            self.connections.iter().filter(|(_, connection)| is_due(connection)).map(|(&id, _)| id).collect();
        for id in due {
            let Some(connection) = self.connections.get_mut(&id) else { continue };
            if connection.state == State::Established {
                if !connection.asks(cx.now, id, &mut self.outgoing) {
                    self.lose(cx.now, id);
                }
                continue;
            }
            if connection.retry(cx.now, &mut self.outgoing) {
                continue;
            }
            match connection.state {
                // No more messages are expected.
                State::Ended => self.forget(ConnectionId(id)),
                State::Ending => self.end(cx.now, id),
                state => {
                    // The queue pair of this side is ready.
                    self.lost.extend((state == State::Granted).then_some(connection.our_qp).filter(|qp| qp.0 != 0));
                    self.forget(ConnectionId(id));
                    self.events.push_back(CmEvent::Unreachable(ConnectionId(id)));
                }
            }
        }
    }
}
