//! EQDS: tunnels to and from other hosts instead of queue pairs.
//!
//! Design notes.
//! 1. *Native messages.* A flow is a message of a transport that speaks EQDS itself (section 6 of the paper). All
//!    messages to one host share one tunnel, hence one window of credit. They take turns, packet by packet, or stand in
//!    a queue ([`Messages`](selvedge_transport::eqds::Messages)).
//! 2. *What is shared.* Tunnels stand in the NIC's ready ring as queue pairs do; what receivers say goes first, with
//!    the acknowledgements; deadlines lie in the NIC's heap. They have slots of their own: RDMA pays nothing for them.
//! 3. *One pacer* for all tunnels that end here. Its pulls leave on time or behind other control packets.
//!
//! Tunnels that carry what other stacks send are in [`crate::eqif`].

mod receiving;
mod sending;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_transport::Cx;
use selvedge_transport::eqds::{EqdsParams, Pacer};
use selvedge_transport::table::Table;
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber, Rate};
use selvedge_wire::{Packet, Repr};

use crate::nic::{Deadlines, Due, Nic, NicParams};
use crate::qp::Completion;
use crate::slot::TUNNELS;

pub(crate) use receiving::{Arrival, End, Origin, control_packet, name};
use receiving::{Arriving, Inbound};
use sending::{Message, Outbound};

/// Under which queue pair number tunnels are found, and their deadlines lie.
pub(crate) const TUNNEL: QpNumber = QpNumber(0);

/// All tunnels of one NIC.
#[derive(Debug)]
pub(crate) struct Tunnels {
    outbound: Vec<Outbound>,
    by_destination: Table<(HostId, QpNumber)>,
    inbound: Vec<Inbound>,
    by_source: Table<(HostId, QpNumber)>,
    /// Messages being sent, and being received.
    messages: Vec<Option<Message>>,
    free_messages: Vec<u32>,
    arriving: Vec<Option<Arriving>>,
    free_arriving: Vec<u32>,
    /// None before the first tunnel ends here.
    pub(crate) pacer: Option<Pacer>,
    /// The least time between two pulls that the host's own link allows.
    least_interval: Duration,
    /// What is complete, and not yet reported.
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
    /// See [`Nic::all_whereabouts`].
    #[inline]
    pub(crate) fn all_whereabouts(&self) -> [(*const u8, usize); 3] {
        let outbound = (self.outbound.as_ptr().cast(), self.outbound.len() * size_of::<Outbound>());
        let inbound = (self.inbound.as_ptr().cast(), self.inbound.len() * size_of::<Inbound>());
        [outbound, inbound, self.by_source.all_whereabouts()]
    }

    /// The pacer, which is built when the first tunnel ends here.
    #[inline]
    pub(crate) fn pacer(&mut self, eqds: &EqdsParams) -> &mut Pacer {
        let least = self.least_interval;
        self.pacer.get_or_insert_with(|| {
            let interval = eqds.pull_interval.max(least);
            Pacer::new(interval, eqds.control_time(interval), eqds.policy)
        })
    }
}

impl Nic {
    /// Its link has this rate: receivers grant no more credit than their own links carry (EQDS). To be called before
    /// anything is sent.
    pub fn set_link_rate(&mut self, params: &NicParams, rate: Rate) {
        if let Some(eqds) = &params.eqds {
            let frame = u64::from(eqds.quantum) + u64::from(params.gap);
            self.tunnels.least_interval = rate.time_for(Bytes::new(frame));
        }
    }

    /// The next message that was completed; one packet may complete several.
    #[inline]
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.tunnels.completions.pop_front()
    }

    /// See [`Nic::whereabouts`].
    pub(crate) fn whereabouts_of_tunnel(&self, packet: &Packet) -> (*const u8, usize) {
        match packet.repr {
            Repr::EqdsData(_) => self.tunnels.by_source.whereabouts((packet.src, TUNNEL)),
            _ => {
                let tunnel = TUNNELS.place(packet.slot) as usize;
                (self.tunnels.outbound.as_ptr().wrapping_add(tunnel).cast(), size_of::<Outbound>())
            }
        }
    }

    /// A deadline of a tunnel has come.
    #[inline(never)]
    pub(crate) fn on_tunnel_deadline(&mut self, cx: &mut Cx<'_>, params: &NicParams, at: Instant, slot: u32) {
        let Some(eqds) = &params.eqds else { return };
        self.on_outbound_deadline(cx, params.mtu, eqds, at, TUNNELS.place(slot));
    }

    pub(crate) fn arm_tunnel(&mut self, at: Instant, slot: u32) {
        arm(&mut self.deadlines, at, slot);
    }
}

/// The tunnel at `slot` has a deadline.
#[cold]
fn arm(deadlines: &mut Deadlines, at: Instant, slot: u32) {
    deadlines.push(at, Due::timer(slot), TUNNEL);
}
