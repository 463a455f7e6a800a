//! Connections by address and port: the connection manager behind queue pair 1.
//!
//! There is one queue pair 1 per host and any number of processes. So a process that listens on an RDMA port binds the
//! UDP port of the same number, too: the binding shows who has the port, and lets Selvedge peers send requests there. A
//! requesting process tries that port and 4791 in turn. Packets that arrive on 4791 for another process are passed on
//! (see `forward`): requests by their port, all others by this side's identifier of the connection, whose high bits are
//! a slot.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;
use std::sync::Arc;

use selvedge_nic::cm::{CmEvent, ConnectionId, ConnectionManager};
use selvedge_nic::verbs::{Payload, Rnic, Route, Transmit};
use selvedge_transport::Cx;
use selvedge_units::{Duration, Instant, Psn, QpNumber};
use selvedge_wire::Bth;
use selvedge_wire::cm::{self, Mad, Message};
use selvedge_wire::verbs::opcode::{DATAGRAM, operation};
use selvedge_wire::verbs::{Deth, Headers, Ours};

use super::port::ROCE;

/// The callback for events of the connection manager.
pub type Hears = Arc<dyn Fn(CmEvent) + Send + Sync>;

/// Queue pair 1, the destination of management datagrams.
pub(super) const MANAGEMENT: QpNumber = QpNumber(1);
/// Longest time that the end of a connection is withheld until packets are acknowledged and the application has polled:
/// on a busy machine it may be long until a thread has its turn.
const LAST_POLLS: Duration = Duration::from_us(50_000);
/// Flag that marks a flow label as a UDP port.
const IS_PORT: u32 = 1 << 31;

/// A service and the address on which a process listens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct At {
    /// The service: a port space and a port.
    pub service: u64,
    /// An address of this host, or `None` for all of them.
    pub address: Option<Ipv6Addr>,
}

/// The connections of a process.
pub(super) struct Connections {
    pub(super) manager: ConnectionManager,
    services: BTreeMap<At, Hears>,
    hearers: BTreeMap<ConnectionId, Hears>,
    /// Numbers of requests sent, indexed by this side's connection identifier.
    asked: BTreeMap<u32, u32>,
    /// Connections that have ended, and the time when their owners are told at the latest.
    ending: Vec<(ConnectionId, Instant)>,
    psn: u32,
}

impl Connections {
    pub(super) fn new(guid: u64, slot: u8, entropy: u32) -> Self {
        let manager = ConnectionManager::new(guid, u32::from(slot), entropy);
        Self {
            manager,
            services: BTreeMap::new(),
            hearers: BTreeMap::new(),
            asked: BTreeMap::new(),
            ending: Vec::new(),
            psn: 0,
        }
    }
    pub(super) fn listen(&mut self, at: At, hears: Hears) -> io::Result<()> {
        if self.services.contains_key(&at) {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        // A listener on another address of this service may exist already.
        let _ = self.manager.listen(at.service);
        self.serve(at, hears);
        Ok(())
    }
    pub(super) fn serve(&mut self, at: At, hears: Hears) {
        self.services.insert(at, hears);
    }
    pub(super) fn unlisten(&mut self, at: At) {
        self.services.remove(&at);
        if !self.services.keys().any(|other| other.service == at.service) {
            self.manager.unlisten(at.service);
        }
    }
    pub(super) fn own(&mut self, id: ConnectionId, hears: Hears) {
        self.hearers.insert(id, hears);
    }
    pub(super) fn forget(&mut self, id: ConnectionId) {
        self.manager.forget(id);
        self.hearers.remove(&id);
        self.asked.remove(&id.0);
        self.ending.retain(|&(other, _)| other != id);
    }

    /// Writes the next message to `transmit` as a packet, its payload to `payload`; returns whether there is one.
    pub(super) fn poll_transmit(&mut self, payload: &mut Payload, transmit: &mut Transmit) -> bool {
        let Some((route, mad)) = self.manager.poll_transmit() else { return false };
        payload.clear();
        payload.inline.extend_from_slice(&mad.emit());
        let route = Route { flow_label: self.port(&route, &mad), ..route };
        self.psn += 1;
        let bth = Bth {
            opcode: DATAGRAM | operation::SEND_ONLY,
            partition: 0xffff,
            destination: MANAGEMENT,
            psn: Psn::new(self.psn & 0xff_ffff),
            ..Bth::default()
        };
        let deth = Some(Deth { qkey: cm::QKEY, source: MANAGEMENT });
        // The offer makes Selvedge peers answer to the port that the packet is sent from.
        let ours = Ours::Offers(0);
        let headers = Headers { bth, deth, ours, ..Headers::default() };
        *transmit = Transmit { route, headers, payload: cm::LENGTH as u32 };
        true
    }

    /// Returns the destination port as a flow label: requests alternate between the service's own port and RoCE's.
    fn port(&mut self, route: &Route, mad: &Mad) -> u32 {
        let (id, service) = match &mad.message {
            Message::Request(request) => (request.local, request.service),
            Message::Resolve(request) => (request.id, request.service),
            _ => return route.flow_label,
        };
        let asked = self.asked.entry(id).or_default();
        *asked += 1;
        as_label(if *asked % 2 == 1 { service as u16 } else { ROCE })
    }

    /// Handles a packet for queue pair 1.
    pub(super) fn handle(&mut self, cx: &mut Cx<'_>, route: &Route, headers: &Headers, payload: &[u8]) {
        if headers.deth.is_some_and(|deth| deth.qkey == cm::QKEY) {
            // NICs of other makers send from any port, and listen on RoCE's.
            match headers.ours {
                Ours::No => self.manager.handle(cx, &Route { flow_label: as_label(ROCE), ..*route }, payload),
                _ => self.manager.handle_ours(cx, route, payload),
            }
        }
    }
    /// Reports events to their owners. The end of a connection is reported when what was sent on it is acknowledged and
    /// the application has polled the completions, or [`LAST_POLLS`] later. Clients (libfabric's RXM) destroy the queue
    /// pair at once when they hear of the end, and with it completions: the last message, or its acknowledgement, would
    /// be lost. In software both may come between two polls, and the management datagram may overtake an
    /// acknowledgement that another processor sent.
    pub(super) fn tell(&mut self, rnic: &Rnic, now: Instant) {
        while let Some(event) = self.manager.poll_event() {
            if let CmEvent::Disconnected(id) = event {
                self.ending.push((id, now + LAST_POLLS));
                continue;
            }
            let hears = match &event {
                CmEvent::Requested { id, route, request } => self.claimed(*id, request.service, route.local),
                CmEvent::Asked { id, route, request } => self.claimed(*id, request.service, route.local),
                CmEvent::Replied { id, .. }
                | CmEvent::Rejected { id, .. }
                | CmEvent::Resolved { id, .. }
                | CmEvent::Established(id)
                | CmEvent::Unreachable(id)
                | CmEvent::Disconnected(id) => self.hearers.get(id).cloned(),
            };
            if let Some(hears) = hears {
                hears(event);
            }
        }
        let Self { manager, ending, hearers, .. } = self;
        let is_early = |id, until| now < until && manager.queue_pair(id).is_some_and(|qp| rnic.has_unfinished(qp));
        for (id, _) in ending.extract_if(.., |&mut (id, until)| !is_early(id, until)) {
            if let Some(hears) = hearers.get(&id) {
                hears(CmEvent::Disconnected(id));
            }
        }
    }
    /// Returns the latest time to [tell](Self::tell) again, or to let the manager work.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.ending.iter().map(|&(_, until)| until).chain(self.manager.poll_timeout()).min()
    }
    /// Returns the callback of the process's listener, which owns a new connection until somebody else does. Refuses
    /// the connection, like one to an unknown service, if nobody listens at that address.
    fn claimed(&mut self, id: ConnectionId, service: u64, local: Ipv6Addr) -> Option<Hears> {
        let of = |address| self.services.get(&At { service, address });
        let Some(hears) = of(Some(local)).or_else(|| of(None)).cloned() else {
            self.manager.refuse(id);
            return None;
        };
        self.hearers.insert(id, Arc::clone(&hears));
        Some(hears)
    }
}

/// Returns a UDP port encoded as a flow label.
pub(super) fn as_label(port: u16) -> u32 {
    IS_PORT | u32::from(port)
}
/// Returns the UDP port encoded in a flow label, if it is one.
pub(super) fn label_port(label: u32) -> Option<u16> {
    (label & IS_PORT != 0).then_some(label as u16)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use selvedge_nic::cm::Offer;
    use selvedge_nic::verbs::Service;

    use super::super::state::tests::{post, queue_pair, state};
    use super::*;

    /// Hands all pending messages of one manager to the other.
    fn carry(from: &mut ConnectionManager, to: &mut ConnectionManager) {
        while let Some((route, mad)) = from.poll_transmit() {
            to.handle_ours(&mut Cx::at(Instant::ZERO), &route, &mad.emit());
        }
    }

    #[test]
    fn who_has_heard_of_the_others_recovery_begins_with_it() {
        for (theirs, expected) in [(Some(1), Ours::Uses(1)), (Some(2), Ours::Offers(1)), (None, Ours::Offers(1))] {
            let mut state = state();
            let (qp, _) = queue_pair(&mut state.rnic, Service::Reliable);
            let mut cx = Cx::at(Instant::ZERO);
            let mut peer = ConnectionManager::new(2, 1, 7);
            peer.prefer(theirs);
            state.connections.manager.listen(1).expect("the service is free");
            peer.connect(&mut cx, Route::NOWHERE, 1, 4_000, 3, &Offer::default());
            carry(&mut peer, &mut state.connections.manager);
            let Some(CmEvent::Requested { id, .. }) = state.connections.manager.poll_event() else {
                panic!("expected a connection request")
            };
            let offer = Offer { qp, ..Offer::default() };
            state.connections.manager.accept(&mut cx, id, &offer).expect("the connection was requested");
            state.tell(Instant::ZERO);
            post(&mut state, qp);
            let (mut payload, mut transmit) = (Payload::default(), Transmit::default());
            assert!(state.rnic.poll_transmit(&mut cx, &mut payload, &mut transmit));
            assert_eq!(transmit.headers.ours, expected, "they prefer {theirs:?}");
        }
    }

    #[test]
    fn the_end_of_a_connection_comes_after_what_completed_before_it() {
        for polls in [true, false] {
            let mut state = state();
            let (qp, cq) = queue_pair(&mut state.rnic, Service::Unreliable);
            let now = Instant::ZERO;
            let mut cx = Cx::at(now);
            let mut peer = ConnectionManager::new(2, 1, 7);
            state.connections.manager.listen(1).expect("the service is free");
            let theirs = peer.connect(&mut cx, Route::NOWHERE, 1, 4_000, 3, &Offer::default());
            carry(&mut peer, &mut state.connections.manager);
            let Some(CmEvent::Requested { id, .. }) = state.connections.manager.poll_event() else {
                panic!("expected a connection request")
            };
            let heard = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&heard);
            let hears = move |event| match event {
                CmEvent::Disconnected(_) => _ = counter.fetch_add(1, Ordering::Relaxed),
                other => assert!(matches!(other, CmEvent::Established(_)), "{other:?}"),
            };
            state.connections.own(id, Arc::new(hears));
            let offer = Offer { qp, ..Offer::default() };
            state.connections.manager.accept(&mut cx, id, &offer).expect("the connection was requested");
            carry(&mut state.connections.manager, &mut peer);
            peer.ready(&mut cx, theirs).expect("the connection was accepted");
            carry(&mut peer, &mut state.connections.manager);
            post(&mut state, qp);
            peer.disconnect(&mut cx, theirs).expect("the connection is established");
            carry(&mut peer, &mut state.connections.manager);
            state.tell(now);
            assert_eq!(heard.load(Ordering::Relaxed), 0, "what was posted is not completed yet");
            state.transmit(&mut cx);
            state.tell(now);
            assert_eq!(heard.load(Ordering::Relaxed), 0, "what was sent is not polled yet");
            let later = if polls {
                assert_eq!(state.completions(cq, 4, &mut |_| {}), 1);
                now
            } else {
                assert_eq!(state.deadline(), now + LAST_POLLS);
                now + LAST_POLLS
            };
            state.tell(later);
            assert_eq!(heard.load(Ordering::Relaxed), 1, "polls: {polls}");
        }
    }
}
