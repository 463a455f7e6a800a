//! Partition: a part of the fabric that runs on its own for the length of a window.
//!
//! ```text
//!    Calendar ---node, inbox----> Partition --packet--> Port --descriptor--> Calendar (a later window)
//!                                     |                                \--parcel--> another partition's calendar
//!                                     \--row--> Observer (after the window)
//! ```
//!
//! A partition owns hosts and switches with all their ports. In each window it visits the nodes that are due and have
//! something to do, one after the other; a node handles its events of the whole window in the order of (time, kind,
//! port). Nodes interact only through packets and notices, which arrive in later windows.
//!
//! Nodes are numbered within the partition: hosts first, then switches. Ports are numbered in the same order.

use std::ops::Range;

use selvedge_memory::CACHE;
use selvedge_prefetch::{LINE, PrefetchQueue, PrefetchRange, prefetch, prefetch_all};
use selvedge_switch::Switches;
use selvedge_switch::descriptor::Descriptor;
use selvedge_switch::queue::Queue;
use selvedge_telemetry::{FlowRow, RankRow, RunRecord};
use selvedge_units::{Bytes, HostId, Instant, mix64};

use super::edge::Edge;
use super::order::Order;
use super::parcel::{Outbox, Parcel};
use super::tally::kind_of;
use crate::kernel::calendar::Calendar;
use crate::kernel::nodes::Nodes;
use crate::net::transient::Entry;
use crate::net::verbs::Applications;
use crate::workload::{FlowSpec, Workload};

/// Part of the fabric. Code that `RECORDED` guards is compiled separately and costs other runs nothing.
pub(crate) struct Partition<const RECORDED: bool> {
    pub(crate) index: u16,
    /// Switches, and all ports.
    pub(crate) net: Switches,
    /// Hosts, packets and links.
    pub(crate) edge: Edge<RECORDED>,
    /// Nodes that have something left to do in a window that was cut short.
    pub(crate) postponed: Vec<u32>,
    /// Prefetch of the state of switches that will be visited soon.
    pub(crate) prefetch_queue: PrefetchQueue,
    /// Order of the descriptors that are being read. Kept to reuse its memory.
    pub(crate) order: Option<Box<Order>>,
    /// Entries that wait for the output that is visited. Kept to reuse its memory.
    pub(crate) listed: Vec<Entry>,
    /// Beginning of the present window: no event that is handled now is earlier.
    pub(crate) begin: u64,
    /// Applications that use verbs, indexed by host; empty where there are none.
    pub(crate) applications: Vec<Applications>,
    /// Outboxes, indexed by destination partition.
    pub(crate) outboxes: Vec<Outbox>,
    /// Source of flows. Every partition has a copy and skips flows of other partitions' hosts.
    pub(crate) workload: Workload,
    /// Next flow that begins at a time of its own.
    pub(crate) next_arrival: Option<FlowSpec>,
    /// Number of flows that hosts of this partition will begin later.
    pub(crate) later: u64,
    /// Whether as many flows have begun as configured: the end of a flow releases no others.
    pub(crate) closing: bool,
    pub(crate) rows: Vec<FlowRow>,
    /// Ranks that have finished their part in a repetition.
    pub(crate) ranks: Vec<RankRow>,
    pub(crate) flows_started: u64,
    /// Flows whose receiver has everything, counted at the receiving host.
    pub(crate) flows_finished: u64,
    /// Flows whose sender knows that they are complete, counted at the sending host.
    pub(crate) flows_closed: u64,
}

/// Bytes per packet of an inbox up to which a host's state is prefetched as a whole, because finding out what a packet
/// needs would take as long.
const ASKING: usize = 4 * LINE;

/// Distance, in packets, at which the pool's entries of packets to or from other partitions are prefetched.
const PACKED_AHEAD: usize = 16;

/// Number of steps in which a visit is prepared.
const STEPS: usize = 5;

/// Number of queue pairs that are prefetched before their turn to send.
pub(crate) const AHEAD: usize = 4;

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Creates partition number `index` of `count`, without nodes; `shared` holds what all partitions have in common.
    pub(crate) fn new(index: u16, count: usize, net: Switches, edge: Edge<RECORDED>, workload: Workload) -> Self {
        Self {
            index,
            net,
            edge,
            postponed: Vec::new(),
            prefetch_queue: PrefetchQueue::new(),
            order: None,
            listed: Vec::new(),
            begin: 0,
            applications: Vec::new(),
            outboxes: (0..count).map(|_| Outbox::default()).collect(),
            workload,
            next_arrival: None,
            later: 0,
            closing: false,
            rows: Vec::new(),
            ranks: Vec::new(),
            flows_started: 0,
            flows_finished: 0,
            flows_closed: 0,
        }
    }

    /// Prefetches state of the node whose visit is `IN` visits away.
    #[inline(always)]
    fn prepare_soon<const IN: usize>(&mut self, nodes: &[u32], at: usize, hosts: u32) {
        match nodes.get(at.wrapping_add(IN)) {
            Some(&node) if node < hosts => self.prepare_host::<IN>(node),
            Some(&node) => self.prepare_switch::<IN>(node, node - hosts),
            None => {}
        }
    }

    /// Prefetches state of a host whose visit is `IN` visits away.
    #[inline(always)]
    fn prepare_host<const IN: usize>(&self, host: u32) {
        let inbox = || self.edge.calendar.inbox(host);
        let nic = || &self.edge.hosts[host].nic;
        match IN {
            5 => {
                self.edge.calendar.prefetch_inbox(host);
                PrefetchRange::beginning_of(&self.edge.hosts[host], self.edge.fabric.busy_host_bytes).prefetch();
            }
            4 => {
                prefetch_all(inbox());
                let port = self.edge.hosts[host].port;
                prefetch(&self.net.egress, port);
                prefetch(&self.net.ingress, port);
            }
            3 => {
                inbox().iter().for_each(|packet| self.edge.pool.prefetch(packet.slot));
                nic().state_of_waiting().into_iter().for_each(PrefetchRange::prefetch);
            }
            2 => {
                let all = nic().state(&self.edge.fabric.nic);
                // Worthwhile as long as prefetching everything takes less time than reading the packets to find out
                // what they need.
                if all.iter().map(PrefetchRange::bytes).sum::<usize>() <= inbox().len() * ASKING {
                    all.into_iter().for_each(PrefetchRange::prefetch);
                } else {
                    for packet in inbox() {
                        nic().state_of(self.edge.pool.first(packet.slot).0).prefetch();
                    }
                }
            }
            1 if nic().queue_pairs_at_least() > AHEAD => {
                for packet in inbox() {
                    nic().state_behind(self.edge.pool.first(packet.slot).0).prefetch();
                }
                (0..AHEAD).filter_map(|others| nic().state_to_send(others)).for_each(PrefetchRange::prefetch);
            }
            _ => {}
        }
    }

    /// Prefetches state of a switch whose visit is `IN` visits away; `node` is its number as a node, `index` its number
    /// among switches.
    #[inline(always)]
    fn prepare_switch<const IN: usize>(&mut self, node: u32, index: u32) {
        let switch = &self.net.switches[index];
        let line = |port| &self.net.lines[self.net.line_of(switch.facts.first_port + port, 0)];
        match IN {
            4 => {
                self.edge.calendar.prefetch_inbox(node);
                prefetch_all(std::slice::from_ref(switch));
            }
            3 => {
                let (first, count) = (switch.facts.first_port, switch.facts.ports);
                switch.busy_ports.prefetch();
                self.prefetch_queue.turn_to([
                    PrefetchRange::of(self.edge.calendar.inbox(node)),
                    PrefetchRange::of(self.net.lines.part(self.net.line_of(first, 0), self.net.line_of(count, 0))),
                    PrefetchRange::of(self.net.ingress.part(first, count)),
                    PrefetchRange::of(self.net.egress.part(first, count)),
                ]);
            }
            2 => switch.busy_ports.ports().for_each(|port| line(port).prefetch_queues(&self.net.queues)),
            1 => {
                let is_far = self.queues_exceed_cache();
                let prefetch = |port| line(port).prefetch_packets(&self.net.queues, &self.net.store, is_far);
                switch.busy_ports.ports().for_each(prefetch);
                // Where classes have accounts of their own, no input is far from its limits, which tells nothing about
                // pauses.
                if self.net.params.accounting.is_plain {
                    self.net.prefetch_likely_pauses(switch);
                }
            }
            _ => {}
        }
    }

    /// Returns whether the queues take more memory than stays in the cache.
    #[inline]
    pub(crate) fn queues_exceed_cache(&self) -> bool {
        self.net.queues.len() * size_of::<Queue>() > CACHE
    }

    /// Returns whether flows are still to begin at times of their own.
    pub(crate) fn expects_arrivals(&self) -> bool {
        !self.closing && (self.next_arrival.is_some() || self.later > 0)
    }

    /// Adds this partition's share to the record of a run that ended at `now`.
    pub(crate) fn add_to(&self, now: Instant, record: &mut RunRecord) {
        self.net.totals(now, &mut record.ports);
        for (port, extra) in self.net.egress.iter().zip(self.net.extras.iter()) {
            record.packet_hops += port.frames;
            record.pause_frames += extra.pause_frames;
            record.paused += extra.paused_time(now);
            record.trims += extra.trims;
            add_digest(record, u64::from(extra.id.0), extra.losses);
        }
        for host in self.edge.hosts.iter() {
            add_digest(record, u64::from(host.id.0) | 1 << 32, host.digest);
            let stats = host.nic.stats();
            record.data_sent += stats.data_sent;
            record.retransmissions += stats.retransmissions;
            record.spurious_retransmissions += stats.duplicates;
            record.goodput += Bytes::new(stats.goodput);
            record.timeouts += stats.timeouts;
            record.nacks_sent += stats.nacks_sent;
            record.acks_sent += stats.acks_sent;
            record.cnps_sent += stats.cnps_sent;
            record.reordering.add(&host.nic.reordering());
            if let Some(eqif) = host.nic.eqif_totals() {
                record.eqif.add(eqif);
            }
        }
        self.edge.tally.add_to(record);
        if !self.edge.fabric.senders_choose_ways {
            let switches = self.net.balancers.iter().map(|balancer| balancer.path_switches).sum::<u64>();
            *record.path_switches.get_or_insert(0) += switches;
        }
        self.net.tors.iter().flatten().for_each(|tor| tor.add_to(&mut record.netrt));
        for (packet, count) in self.edge.pool.live() {
            record.in_flight[kind_of(packet)] += count;
        }
        record.events += self.net.events;
        record.flows_started += self.flows_started;
        record.flows_finished += self.flows_finished;
    }

    /// Returns the local number of a host if it belongs to this partition.
    #[inline]
    pub(crate) fn local_host(&self, host: HostId) -> Option<u32> {
        let (partition, local) = self.edge.fabric.home[host.index()];
        (partition == self.index).then_some(local)
    }
}

impl<const RECORDED: bool> Nodes for Partition<RECORDED> {
    type Message = Descriptor;
    type Outbox = Outbox;

    const PREPARED: usize = STEPS;

    #[inline(always)]
    fn calendar(&self) -> &Calendar<Descriptor> {
        &self.edge.calendar
    }

    #[inline(always)]
    fn calendar_mut(&mut self) -> &mut Calendar<Descriptor> {
        &mut self.edge.calendar
    }

    #[inline(always)]
    fn postponed(&mut self) -> &mut Vec<u32> {
        &mut self.postponed
    }

    fn enter(&mut self, part: Range<u64>) {
        if self.closing {
            self.next_arrival = None;
        }
        self.begin = part.start;
        self.admit_flows(part.end);
    }

    /// Most addresses are known only when the state that leads to them has been fetched, so nodes are prepared in
    /// several steps as their visit comes nearer. Most of the state of a switch is [prefetched](PrefetchQueue) during
    /// the visit before.
    #[inline(always)]
    fn prepare(&mut self, nodes: &[u32], at: usize) {
        let hosts = self.edge.hosts.len() as u32;
        self.prefetch_queue.fetch_rest();
        self.prepare_soon::<STEPS>(nodes, at, hosts);
        self.prepare_soon::<4>(nodes, at, hosts);
        self.prepare_soon::<3>(nodes, at, hosts);
        self.prepare_soon::<2>(nodes, at, hosts);
        self.prepare_soon::<1>(nodes, at, hosts);
    }

    #[inline(always)]
    fn visit(&mut self, node: u32, limit: u64) {
        let hosts = self.edge.hosts.len() as u32;
        if node < hosts { self.visit_host(node, limit) } else { self.visit_switch(node - hosts, limit) }
    }

    fn next_beginning(&self, from: u64) -> Option<u64> {
        self.next_arrival.map(|spec| self.edge.fabric.schedule.first_with(spec.start.as_ps()).max(from))
    }

    /// Moves the descriptors in remote inboxes to the outboxes, then their packets, all together because these lie at
    /// random places of the pool.
    fn pack(&mut self) {
        while let Some(((partition, node), window, inbox)) = self.edge.calendar.take_remote_inbox() {
            let outbox = &mut self.outboxes[usize::from(partition)];
            outbox.parcels.push(Parcel { node, window, count: inbox.len() });
            outbox.inbox.extend_from_slice(&inbox);
            self.edge.calendar.return_inbox(inbox);
        }
        for outbox in &mut self.outboxes {
            for number in outbox.packets.len()..outbox.inbox.len() {
                if let Some(soon) = outbox.inbox.get(number + PACKED_AHEAD) {
                    self.edge.pool.prefetch(soon.slot);
                }
                let slot = outbox.inbox[number].slot;
                if self.edge.fabric.reads_records {
                    self.edge.records.send_away(&self.edge.fabric, slot, outbox);
                }
                outbox.packets.push(self.edge.pool.take(slot));
            }
        }
    }

    fn deliver(&mut self, outbox: &mut Outbox) {
        let (mut records, mut headers) = (outbox.records.drain(..), outbox.headers.drain(..));
        let mut inbox = outbox.inbox.drain(..).zip(outbox.packets.drain(..)).map(|(descriptor, packet)| {
            self.edge.pool.prefetch_vacancy(PACKED_AHEAD as u32);
            let slot = self.edge.pool.put(packet);
            self.edge.records.take_in(slot, records.next(), headers.next());
            Descriptor { slot, ..descriptor }
        });
        for Parcel { node, window, count } in outbox.parcels.drain(..) {
            self.edge.calendar.take_in(node, window, inbox.by_ref().take(count));
        }
        drop(inbox);
        drop((records, headers));
        for (host, notice) in outbox.notices.drain(..) {
            self.take_notice(host, notice);
        }
    }

    fn outboxes(&mut self) -> &mut [Outbox] {
        &mut self.outboxes
    }

    fn events(&self) -> u64 {
        self.net.events
    }
}

/// Adds a digest of the events at some place to the fingerprint. Digests are summed, so that the order of places and
/// partitions does not matter, and mixed with the place's number, so that two places cannot exchange their events
/// unnoticed.
fn add_digest(record: &mut RunRecord, place: u64, digest: u64) {
    record.fingerprint = record.fingerprint.wrapping_add(mix64(digest ^ mix64(place + 1)));
}

/// Returns a host's rolling hash after an arrival of the packet with hash `name` at `now`.
#[inline(always)]
pub(crate) fn fold(digest: u64, now: Instant, name: u64) -> u64 {
    (digest.rotate_left(17) ^ now.as_ps()).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(name)
}
