//! EQIFs: a host's stacks, unaware of it, send through EQDS tunnels (Olteanu et al., NSDI'22, section 6).
//!
//! ```text
//!   TCP flows ────> hand_over ──> queue per destination ──┐
//!   queue pairs ──> the engine ─> queue per destination ──┼─> Schedule ──> the link
//!   native messages ──────────────────────────────────────┘
//!   ends of flows <── handle_carrier <── reorder queue <────────────────── the link
//! ```
//!
//! Design notes.
//! 1. *Stacks stay as they are.* Their flows stand in the NIC's ready ring and answer into its queue of answers, as
//!    ever; whatever happens to the NIC, [`Nic::hand_over`] empties both into the EQIFs' queues afterwards. What leaves
//!    is a packet of a tunnel, and the driver asks what it carries ([`Nic::poll_cargo`]).
//! 2. *The RDMA engine* hands over at a rate of its own and can be paused; answers go first there, too. TCP hands over
//!    at once, as a kernel does.
//! 3. *One place in the ring.* All tunnels that want to send stand there as one ([`EDGE`]), behind which a [`Schedule`]
//!    says whose turn it is; flows that do not go through tunnels take turns with it.
//! 4. *One tunnel per EQIF and destination*: the header's sender ID is the EQIF. RC packets lack the source's queue
//!    pair, for which the paper tracks connections; ours name it.

mod hand_over;
mod receiving;
mod sending;
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
use crate::slot::EDGE;

use hand_over::Engine;
use receiving::Carried;
use sending::Carrier;

/// Sender IDs: the EQIFs of a host.
pub(crate) const NATIVE: u8 = 0;
const OF_TCP: u8 = 1;
const OF_RDMA: u8 = 2;

/// The EQIFs of one NIC.
#[derive(Debug)]
pub(crate) struct Eqifs {
    schedule: Schedule,
    /// Whether [`EDGE`] stands in the ready ring.
    queued: bool,
    outbound: Vec<Carrier>,
    by_destination: Table<(HostId, QpNumber)>,
    inbound: Vec<Carried>,
    by_source: Table<(HostId, QpNumber)>,
    /// What came out of tunnels and goes up.
    arrived: VecDeque<Packet>,
    /// What the packet carries that was sent last.
    leaving: Option<Packet>,
    backlog: Backlog,
    engine: Engine,
    /// How many of the NIC's answers, from the first on, are known to be no stack's.
    staying: usize,
    stats: EqifTotals,
}

impl Eqifs {
    pub(crate) fn new(params: &EqifParams) -> Self {
        Self {
            schedule: Schedule::new(&params.shares),
            queued: false,
            outbound: Vec::new(),
            by_destination: Table::new(),
            inbound: Vec::new(),
            by_source: Table::new(),
            arrived: VecDeque::new(),
            leaving: None,
            backlog: Backlog::default(),
            engine: Engine::new(),
            staying: 0,
            stats: EqifTotals::default(),
        }
    }

    /// A tunnel of an EQIF that waits for nothing joins the others; `ready` is the NIC's ring.
    pub(crate) fn join(&mut self, ready: &mut VecDeque<u32>, eqif: u8, tunnel: u32) {
        self.schedule.join(eqif, tunnel);
        self.stand(ready);
    }

    /// One of the NIC's answers has left.
    pub(crate) fn on_answer_left(&mut self) {
        self.staying = self.staying.saturating_sub(1);
    }

    /// Stands in the ring while some tunnel wants to send.
    fn stand(&mut self, ready: &mut VecDeque<u32>) {
        if !self.queued && !self.schedule.is_empty() {
            self.queued = true;
            ready.push_back(EDGE);
        }
    }
}

impl Nic {
    /// What its EQIFs have done so far; `None` where it has none.
    pub fn eqif_totals(&self) -> Option<&EqifTotals> {
        self.eqifs.as_ref().map(|eqifs| &eqifs.stats)
    }
}

/// Under which queue pair number tunnels of an EQIF are found.
fn key(eqif: u8) -> QpNumber {
    QpNumber(eqif.into())
}

/// Later than any entry in the heap of deadlines.
const UNARMED: Instant = Instant::NEVER;
