//! An RNIC in the NIC: applications post work requests, and packets of [`Rnic`] share the link with all other packets.
//!
//! ```text
//!   post ────────> Rnic ──Transmit──> Packet, Headers ──> the ready ring ──> the link
//!   poll_completed <── Rnic <── Packet, Headers <───────────────────────────── the link
//! ```
//!
//! Design notes.
//! 1. *One entry in the ring.* All queue pairs of applications are in the NIC's ready ring as one entry ([`REQUESTS`]),
//!    behind which the Rnic lets them take turns packet by packet; their acknowledgements are a separate entry in front
//!    of all others ([`ACKS`]).
//! 2. *A packet is the part that switches see.* It is data if it belongs to a request or a response, and an
//!    acknowledgement otherwise. Its headers travel separately: the driver takes them ([`Nic::poll_headers`]) and
//!    delivers them with the packet ([`Nic::handle_verbs`]).
//! 3. *Through tunnels* ([`crate::eqif`]) the two entries are in the ring of the RDMA engine instead, and the tunnel
//!    keeps headers for as long as their packets.
//! 4. *Payload does not exist* ([`Ledger`]), except the words that atomic operations access.

mod connection;
mod frame;
mod ledger;
#[cfg(test)]
pub(crate) mod tests;

use alloc::collections::VecDeque;

use selvedge_transport::Cx;
use selvedge_transport::endpoint::Handled;
use selvedge_units::{Instant, QpNumber};
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Packet, Repr};

use crate::nic::{Nic, NicParams};
use crate::slot::{ACKS, REQUESTS};
use crate::verbs::{Completion, CqId, Payload, PdId, Rnic, SendRequest, Stats, Transmit, VerbsError};

pub use connection::{ConnectionParams, VerbsParams, WireFormat};
use frame::{packet, route_of};
pub use ledger::Ledger;

/// The RNIC of one NIC.
pub(crate) struct Rdma {
    pub(crate) rnic: Rnic,
    memory: Ledger,
    pd: PdId,
    cq: CqId,
    acks: VecDeque<(Packet, Headers)>,
    /// Headers of the packet that was sent last, or of its cargo.
    pub(crate) leaving: Option<Headers>,
    /// Whether [`REQUESTS`] is in the ready ring.
    queued: bool,
    /// Packets that the queue pair whose turn it is has sent.
    turn: u32,
    /// Earliest entry of the RNIC in the NIC's heap of deadlines.
    armed: Instant,
    /// Location of a packet's payload: never read, kept to reuse its allocation.
    payload: Payload,
    transmit: Transmit,
}

impl core::fmt::Debug for Rdma {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Rdma").field("acks", &self.acks.len()).field("queued", &self.queued).finish_non_exhaustive()
    }
}

impl Nic {
    /// Posts a send request on a queue pair of an application.
    ///
    /// # Errors
    /// Like [`Rnic::post_send`].
    pub fn post(
        &mut self,
        cx: &mut Cx<'_>,
        params: &NicParams,
        qp: QpNumber,
        request: SendRequest,
    ) -> Result<(), VerbsError> {
        let Some(rdma) = &mut self.rdma else { return Err(VerbsError::NoSuch("queue pair")) };
        rdma.rnic.post_send(cx, qp, request)?;
        self.stand();
        self.hand_over(cx, params);
        Ok(())
    }

    /// Returns the next completion of an application's queue pair.
    pub fn poll_completed(&mut self) -> Option<Completion> {
        let rdma = self.rdma.as_mut()?;
        rdma.rnic.poll_cq(rdma.cq)
    }

    /// Returns the headers of the packet that [`Nic::poll_transmit`] has just returned, or of its cargo
    /// ([`Nic::poll_cargo`]), if that belongs to an application's queue pair.
    pub fn poll_headers(&mut self) -> Option<Headers> {
        self.rdma.as_mut()?.leaving.take()
    }

    /// Returns the memory of applications.
    pub fn ledger(&mut self) -> Option<&mut Ledger> {
        self.rdma.as_mut().map(|rdma| &mut rdma.memory)
    }

    /// Handles a packet of an application's queue pair.
    pub fn handle_verbs(&mut self, cx: &mut Cx<'_>, params: &NicParams, packet: &Packet, headers: &Headers) -> Handled {
        let Some(rdma) = &mut self.rdma else { return Handled::Unknown };
        let before = rdma.rnic.stats();
        let (headers, payload) = frame::arrived(packet, headers);
        rdma.rnic.handle_packet(cx, &mut rdma.memory, &route_of(packet), &headers, payload);
        frame::count_arrival(&mut self.port.stats, packet, &before, &rdma.rnic.stats());
        let is_idle = rdma.acks.is_empty();
        while let Some(ack) = rdma.rnic.poll_ack(headers.bth.destination) {
            rdma.acks.push_back((frame::packet(self.port.host, params, cx.now, &ack), ack.headers));
        }
        if is_idle && !rdma.acks.is_empty() {
            self.port.ready.push_front(ACKS);
        }
        self.stand();
        Handled::Taken
    }

    /// Writes the next acknowledgement to `packet`; returns whether there is one.
    pub(crate) fn serve_acks(&mut self, now: Instant, packet: &mut Packet) -> bool {
        let Some(rdma) = &mut self.rdma else { return false };
        let Some((ack, headers)) = rdma.acks.pop_front() else { return false };
        *packet = Packet { sent_at: now, ..ack };
        rdma.leaving = Some(headers);
        if !rdma.acks.is_empty() {
            self.port.ready.push_front(ACKS);
        }
        self.port.stats.count_answer(&packet.repr);
        true
    }

    /// Writes the next packet of a request or a response to `next`; returns whether there is one.
    pub(crate) fn serve_requests(&mut self, cx: &mut Cx<'_>, params: &NicParams, next: &mut Packet) -> bool {
        let Some(rdma) = &mut self.rdma else { return false };
        rdma.queued = false;
        let before = rdma.rnic.stats();
        let found = rdma.rnic.poll_transmit(cx, &mut rdma.payload, &mut rdma.transmit);
        if found {
            let transmit = &rdma.transmit;
            *next = packet(self.port.host, params, cx.now, transmit);
            if let (Repr::Data(_), Some(qp)) = (next.repr, rdma.rnic.whose_turn()) {
                next.qp = qp;
            }
            rdma.leaving = Some(transmit.headers);
            rdma.turn += 1;
            if rdma.turn >= params.qp_burst {
                rdma.turn = 0;
                rdma.rnic.end_turn();
            }
            frame::count_sent(&mut self.port.stats, next, &before, &rdma.rnic.stats());
            self.stand();
        } else {
            rdma.turn = 0;
            self.arm();
        }
        found
    }

    /// Handles a deadline of an application's queue pair.
    pub(crate) fn on_verbs_deadline(&mut self, cx: &mut Cx<'_>, at: Instant) {
        let Some(rdma) = &mut self.rdma else { return };
        if rdma.armed != at {
            return; // an earlier entry has taken its place
        }
        rdma.armed = Instant::NEVER;
        let before = rdma.rnic.stats().timeouts;
        rdma.rnic.handle_timeout(cx);
        self.port.stats.timeouts += rdma.rnic.stats().timeouts - before;
        self.stand();
    }

    /// Slows down a queue pair of an application: its packets wait in this host.
    pub(crate) fn slow_down(&mut self, cx: &mut Cx<'_>, qp: QpNumber) {
        let Some(rdma) = &mut self.rdma else { return };
        rdma.rnic.notify_of_congestion(cx, qp);
        self.arm();
    }

    /// Returns the traffic class of an entry of the ready ring.
    pub(crate) fn verbs_class(&self, params: &NicParams, slot: u32) -> Option<u8> {
        match slot {
            ACKS => Some(params.frames.ack_class),
            REQUESTS => params.verbs.as_ref().map(|verbs| verbs.class),
            _ => None,
        }
    }

    /// Adds the queue pairs to the ready ring: they may have a packet to send.
    pub(super) fn stand(&mut self) {
        if let Some(rdma) = self.rdma.as_mut().filter(|rdma| !rdma.queued) {
            rdma.queued = true;
            self.port.ready.push_back(REQUESTS);
        }
        self.arm();
    }

    fn arm(&mut self) {
        let Some(rdma) = &mut self.rdma else { return };
        let at = rdma.rnic.poll_timeout().unwrap_or(Instant::NEVER);
        if at < rdma.armed {
            rdma.armed = at;
            self.port.deadlines.push(at, REQUESTS);
        }
    }
}

/// Returns the difference between two states of the RNIC's counters.
fn since(before: &Stats, after: &Stats) -> Stats {
    Stats {
        sent: after.sent - before.sent,
        retransmissions: after.retransmissions - before.retransmissions,
        duplicates: after.duplicates - before.duplicates,
        goodput: after.goodput - before.goodput,
        reordered: after.reordered - before.reordered,
        timeouts: after.timeouts - before.timeouts,
        contradictions: after.contradictions - before.contradictions,
    }
}
