//! EQIFs: stacks of a host send through EQDS tunnels without being aware of it (Olteanu et al., NSDI'22, section 6).
//!
//! ```text
//!   TCP flows ────> hand_over ──> queue per destination ──┐
//!   queue pairs ──> the engine ─> queue per destination ──┼─> Schedule ──> the link
//!   native messages ──────────────────────────────────────┘
//!   ends of flows <── handle_carrier <── reorder queue <────────────────── the link
//! ```
//!
//! Design notes.
//! 1. *Stacks are unchanged.* Their flows are in the NIC's ready ring and add to its queue of control packets, as
//!    without tunnels; after every event of the NIC, [`Nic::hand_over`] moves the packets of both to the queues of the
//!    EQIFs. The packets that leave are tunnel packets, and the driver asks for their cargo ([`Nic::poll_cargo`]).
//! 2. *The RDMA engine* hands over at its own rate and can be paused; control packets go first there, too. It sends for
//!    flows' queue pairs and for those of applications ([`crate::rdma`]). TCP hands over at once, as a kernel does.
//! 3. *One entry in the ring.* All tunnels with packets to send are in the ring as one entry ([`EDGE`]), behind which a
//!    [`Schedule`] determines the next tunnel; flows that do not go through tunnels take turns with that entry.
//! 4. *One tunnel per EQIF and destination*: the header's sender ID is the EQIF. RC packets lack the source's queue
//!    pair, for which the paper tracks connections; Selvedge's packets name it.

mod hand_over;
mod receiving;
mod sending;
mod shelf;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_telemetry::EqifTotals;
use selvedge_transport::eqds::eqif::{Backlog, EqifParams, Schedule};
use selvedge_transport::table::Table;
use selvedge_units::{HostId, Instant, QpNumber};
use selvedge_wire::Packet;

use crate::nic::Nic;
use crate::slot::{EDGE, TUNNELS};

use hand_over::Engine;
use receiving::IngressTunnel;
use sending::EgressTunnel;
use shelf::Shelf;

/// Sender ID of native messages. Sender IDs are the EQIFs of a host.
pub(crate) const NATIVE: u8 = 0;
const OF_TCP: u8 = 1;
const OF_RDMA: u8 = 2;

/// The EQIFs of one NIC.
#[derive(Debug)]
pub(crate) struct EqifSet {
    schedule: Schedule<3>,
    /// Whether [`EDGE`] is in the ready ring.
    queued: bool,
    outbound: Vec<EgressTunnel>,
    by_destination: Table<(HostId, QpNumber)>,
    inbound: Vec<IngressTunnel>,
    by_source: Table<(HostId, QpNumber)>,
    /// Packets that have left tunnels, for the stacks.
    arrived: VecDeque<Packet>,
    /// Headers of the packets of applications' queue pairs that `outbound`, `inbound` and `arrived` keep.
    shelf: Shelf,
    /// Cargo of the packet that was sent last.
    leaving: Option<Packet>,
    backlog: Backlog,
    engine: Engine,
    /// Number of packets at the front of the NIC's control packets that are known to belong to no stack.
    staying: usize,
    stats: EqifTotals,
    /// Bytes in flight in all tunnels.
    in_flight: u64,
}

impl EqifSet {
    pub(crate) fn new(params: &EqifParams) -> Self {
        Self {
            schedule: Schedule::new(params.shares),
            queued: false,
            outbound: Vec::new(),
            by_destination: Table::new(),
            inbound: Vec::new(),
            by_source: Table::new(),
            arrived: VecDeque::new(),
            shelf: Shelf::default(),
            leaving: None,
            backlog: Backlog::default(),
            engine: Engine::new(),
            staying: 0,
            stats: EqifTotals::default(),
            in_flight: 0,
        }
    }

    /// Adds a tunnel of an EQIF that waits for nothing to the schedule; `ready` is the NIC's ring.
    pub(crate) fn join(&mut self, ready: &mut VecDeque<u32>, eqif: u8, tunnel: u32) {
        self.schedule.join(eqif, tunnel);
        self.stand(ready);
    }

    /// Notes that one of the NIC's control packets has left.
    pub(crate) fn on_answer_left(&mut self) {
        self.staying = self.staying.saturating_sub(1);
    }

    /// Adds the tunnels' entry to the ring if some tunnel has a packet to send.
    fn stand(&mut self, ready: &mut VecDeque<u32>) {
        if !self.queued && !self.schedule.is_empty() {
            self.queued = true;
            ready.push_back(EDGE);
        }
    }
}

impl Nic {
    /// Moves the tunnel for native messages that was given the last turn at the link to the schedule, where stacks send
    /// through tunnels. Must be called after every call of those tunnels.
    #[inline]
    pub(crate) fn join_tunnels(&mut self) {
        if let Some(eqifs) = self.eqifs.as_deref_mut()
            && let Some(&slot) = self.port.ready.back()
            && TUNNELS.has(slot)
        {
            self.port.ready.pop_back();
            eqifs.join(&mut self.port.ready, NATIVE, TUNNELS.place(slot));
        }
    }

    /// Returns the counters of the NIC's EQIFs; `None` if it has none.
    pub fn eqif_totals(&self) -> Option<&EqifTotals> {
        self.eqifs.as_ref().map(|eqifs| &eqifs.stats)
    }
}

/// Returns the queue pair number under which tunnels of an EQIF are stored.
fn key(eqif: u8) -> QpNumber {
    QpNumber(eqif.into())
}

/// A time later than any entry in the heap of deadlines.
const UNARMED: Instant = Instant::NEVER;
