//! Connections by address and port: the connection manager behind queue pair 1.
//!
//! There is one queue pair 1 per host and any number of processes. So who listens on an RDMA port binds the UDP port of
//! the same number, too: that tells who has it, and lets our own peers ask there. Who asks tries that port and 4791 in
//! turn. What comes on 4791 for somebody else is passed on (see `forward`): questions by their port, all else by our
//! name for the connection, whose high bits are a slot.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv6Addr;
use std::sync::Arc;

use selvedge_nic::cm::{CmEvent, ConnectionId, ConnectionManager};
use selvedge_nic::verbs::{Payload, Route, Transmit};
use selvedge_transport::Cx;
use selvedge_units::{Psn, QpNumber};
use selvedge_wire::Bth;
use selvedge_wire::cm::{self, Mad, Message};
use selvedge_wire::verbs::opcode::{DATAGRAM, operation};
use selvedge_wire::verbs::{Deth, Headers, Ours};

use super::port::ROCE;

/// Who hears of events.
pub type Hears = Arc<dyn Fn(CmEvent) + Send + Sync>;

/// Queue pair 1, which management datagrams are for.
pub(super) const MANAGEMENT: QpNumber = QpNumber(1);
/// Marks a flow label as a UDP port.
const IS_PORT: u32 = 1 << 31;

/// What somebody listens to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct At {
    /// The service: a port space and a port.
    pub service: u64,
    /// An address of this host, or all of them.
    pub address: Option<Ipv6Addr>,
}

/// The connections of a process.
pub(super) struct Connections {
    pub(super) manager: ConnectionManager,
    services: BTreeMap<At, Hears>,
    hearers: BTreeMap<ConnectionId, Hears>,
    /// How often was asked, by our names.
    asked: BTreeMap<u32, u32>,
    psn: u32,
}

impl Connections {
    pub(super) fn new(guid: u64, slot: u8, entropy: u32) -> Self {
        let manager = ConnectionManager::new(guid, u32::from(slot), entropy);
        Self { manager, services: BTreeMap::new(), hearers: BTreeMap::new(), asked: BTreeMap::new(), psn: 0 }
    }
    pub(super) fn listen(&mut self, at: At, hears: Hears) -> io::Result<()> {
        if self.services.contains_key(&at) {
            return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
        }
        // On other addresses somebody may listen already.
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
        // So that those who know us answer to the port that we send from.
        let ours = Ours::Offers(0);
        let headers = Headers { bth, deth, ours, ..Headers::default() };
        *transmit = Transmit { route, headers, payload: cm::LENGTH as u32 };
        true
    }

    /// Where to: whoever asks tries the service's own port first, then RoCE's, in turn.
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

    /// A packet for queue pair 1.
    pub(super) fn handle(&mut self, cx: &mut Cx<'_>, route: &Route, headers: &Headers, payload: &[u8]) {
        if headers.deth.is_some_and(|deth| deth.qkey == cm::QKEY) {
            // Others send from any port, and listen on RoCE's.
            match headers.ours {
                Ours::No => self.manager.handle(cx, &Route { flow_label: as_label(ROCE), ..*route }, payload),
                _ => self.manager.handle_ours(cx, route, payload),
            }
        }
    }
    /// Tells what has happened.
    pub(super) fn tell(&mut self) {
        while let Some(event) = self.manager.poll_event() {
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
    }
    /// A new connection belongs to who listens, until somebody else owns it. What nobody listens to at that address is
    /// refused as what nobody serves.
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

/// A UDP port in the place of a flow label.
pub(super) fn as_label(port: u16) -> u32 {
    IS_PORT | u32::from(port)
}
/// The UDP port in the place of a flow label, if it is one.
pub(super) fn label_port(label: u32) -> Option<u16> {
    (label & IS_PORT != 0).then_some(label as u16)
}
