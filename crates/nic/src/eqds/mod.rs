//! EQDS: tunnels to and from other hosts, in place of queue pairs.
//!
//! Design notes.
//! 1. *Native messages.* A flow is a message of a transport that uses EQDS itself (section 6 of the paper). All
//!    messages to one host share one tunnel, hence one window of credit. They take turns, packet by packet, or are sent
//!    in order ([`Messages`](selvedge_transport::eqds::Messages)).
//! 2. *Shared state.* Tunnels are in the NIC's ready ring like queue pairs; control packets of receivers go first, with
//!    the acknowledgements; deadlines are in the NIC's heap. Tunnels have slots of their own: RDMA pays nothing for
//!    them.
//! 3. *One pacer* for all tunnels that end here. Its pulls leave on time or behind other control packets.
//!
//! Tunnels that carry packets of other stacks are in [`crate::eqif`].

mod receiving;
mod sending;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_prefetch::PrefetchRange;
use selvedge_transport::Cx;
use selvedge_transport::endpoint::Completion;
use selvedge_transport::eqds::{EqdsParams, Pacer};
use selvedge_transport::table::Table;
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber, Rate};
use selvedge_wire::{Packet, Repr};

use crate::nic::{Deadlines, Due, Nic, NicParams};
use crate::slot::TUNNELS;

pub(crate) use receiving::{Arrival, End, Origin, Outward, control_packet, name, teardown};
use receiving::{Arriving, Inbound};
use sending::{Message, Outbound};

/// Queue pair number under which tunnels and their deadlines are stored.
pub(crate) const TUNNEL: QpNumber = QpNumber(0);

/// Queue pair number of the deadlines of tunnels for native messages that end here. Their slots are those of tunnels
/// for packets of stacks.
pub(crate) const NATIVE_END: QpNumber = QpNumber(1);

/// All tunnels of one NIC.
#[derive(Debug)]
pub(crate) struct Tunnels {
    outbound: Vec<Outbound>,
    by_destination: Table<(HostId, QpNumber)>,
    inbound: Vec<Inbound>,
    by_source: Table<(HostId, QpNumber)>,
    /// Messages being sent. `arriving` holds those being received.
    messages: Vec<Option<Message>>,
    free_messages: Vec<u32>,
    arriving: Vec<Option<Arriving>>,
    free_arriving: Vec<u32>,
    /// Pacer of credit; `None` before the first tunnel ends here.
    pub(crate) pacer: Option<Pacer>,
    /// Minimum time between two pulls that the host's own link permits.
    least_interval: Duration,
    /// Completions that are not yet reported.
    pub(crate) completions: VecDeque<Completion>,
}

impl Default for Tunnels {
    fn default() -> Self {
        Self {
            outbound: Vec::new(),
            by_destination: Table::new(),
            inbound: Vec::new(),
            by_source: Table::new(),
            messages: Vec::new(),
            free_messages: Vec::new(),
            arriving: Vec::new(),
            free_arriving: Vec::new(),
            pacer: None,
            least_interval: Duration::ZERO,
            completions: VecDeque::new(),
        }
    }
}

impl Tunnels {
    /// Returns all tunnel state, see [`Nic::state`].
    #[inline]
    pub(crate) fn state(&self) -> [PrefetchRange; 3] {
        [PrefetchRange::of(&self.outbound), PrefetchRange::of(&self.inbound), self.by_source.state()]
    }

    /// Returns the tunnel state that handling `packet` will touch first, see [`Nic::state_of`].
    pub(crate) fn state_of(&self, packet: &Packet) -> PrefetchRange {
        match packet.repr {
            Repr::EqdsData(_) => self.by_source.state_of((packet.src, TUNNEL)),
            _ => {
                let tunnel = TUNNELS.place(packet.slot) as usize;
                PrefetchRange::of_entry(&self.outbound, tunnel, size_of::<Outbound>())
            }
        }
    }

    /// Returns the pacer, which is created when the first tunnel ends here.
    #[inline]
    pub(crate) fn pacer(&mut self, eqds: &EqdsParams) -> &mut Pacer {
        let least = self.least_interval;
        self.pacer.get_or_insert_with(|| {
            let interval = eqds.pull_interval.max(least);
            Pacer::new(eqds.pulls(interval), eqds.policy)
        })
    }
}

impl Nic {
    /// Sets the rate of the host's link: receivers grant no more credit than their own links carry (EQDS). Must be
    /// called before anything is sent.
    pub fn set_link_rate(&mut self, params: &NicParams, rate: Rate) {
        if let Some(eqds) = &params.eqds {
            let frame = u64::from(eqds.quantum) + u64::from(params.frames.gap);
            self.tunnels.least_interval = rate.time_for(Bytes::new(frame));
        }
    }

    /// Returns the next completed message; one packet may complete several.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.tunnels.completions.pop_front()
    }

    /// Handles a deadline of a tunnel.
    #[inline(never)]
    pub(crate) fn on_tunnel_deadline(&mut self, cx: &mut Cx<'_>, params: &NicParams, at: Instant, slot: u32) {
        let Some(eqds) = &params.eqds else { return };
        self.on_outbound_deadline(cx, params, eqds, at, TUNNELS.place(slot));
    }

    pub(crate) fn arm_tunnel(&mut self, at: Instant, slot: u32) {
        arm(&mut self.deadlines, at, slot);
    }
}

/// Adds a deadline of the tunnel at `slot`.
#[cold]
fn arm(deadlines: &mut Deadlines, at: Instant, slot: u32) {
    deadlines.push(at, Due::timer(slot), TUNNEL);
}
