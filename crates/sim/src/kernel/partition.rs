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

use std::sync::Arc;

use selvedge_telemetry::{DropReason, FlowRow, RankRow, RunRecord};
use selvedge_units::{Bytes, HostId, Instant, mix64};
use selvedge_wire::Repr;

use super::busy_ports::{NEVER, Scratch};
use super::calendar::Calendar;
use super::fabric::FabricParams;
use super::inbox::WriteDescriptor;
use super::log::Log;
use super::order::Order;
use super::parcel::{Outbox, Parcel};
use super::prefetch_queue::{PrefetchQueue, stretch_of};
use super::table::Table;
use super::tally::{Tally, kind_of};
use super::window::WindowSlice;
use super::{CACHE, LINE, prefetch, prefetch_all, prefetch_at, prefetch_bytes};
use crate::net::balancing::Balancer;
use crate::net::buffer::{Account, Accounting};
use crate::net::crossbar::Crossbar;
use crate::net::descriptor::Descriptor;
use crate::net::fair::FairLine;
use crate::net::forward::Forwarding;
use crate::net::host::Host;
use crate::net::netrt::Tor;
use crate::net::pool::{Pool, Slot};
use crate::net::port::{Egress, Ingress, PortExtra};
use crate::net::queue::{Line, Queue, Store};
use crate::net::records::Records;
use crate::net::switch::Switch;
use crate::net::transient::Entry;
use crate::net::trimming::Trimmer;
use crate::net::verbs::Applications;
use crate::workload::{FlowSpec, Workload};

/// Part of the fabric. Code that `RECORDED` guards is compiled separately and costs other runs nothing.
pub(crate) struct Partition<const RECORDED: bool> {
    pub(crate) index: u16,
    pub(crate) fabric: Arc<FabricParams>,
    pub(crate) forwarding: Arc<Forwarding>,
    /// Bytes that every frame takes on the wire in addition to its own.
    pub(crate) gap: u64,
    /// Number of traffic classes in use; see [`FabricParams::classes`].
    pub(crate) classes: u32,
    pub(crate) accounting: Accounting,
    pub(crate) calendar: Calendar,
    /// Nodes that have something left to do in a window that was cut short.
    pub(crate) postponed: Vec<u32>,
    /// Scratch buffer for the list of busy ports of the switch that is visited.
    pub(crate) scratch: Scratch,
    /// Prefetch of the state of switches that will be visited soon.
    pub(crate) prefetch_queue: PrefetchQueue,
    /// Order of the descriptors that are being read. Kept to reuse its memory.
    pub(crate) order: Option<Box<Order>>,
    /// Entries that wait for the output that is visited. Kept to reuse its memory.
    pub(crate) listed: Vec<Entry>,
    pub(crate) now: Instant,
    /// Beginning of the present window: no event that is handled now is earlier.
    pub(crate) begin: u64,
    /// Time before which the visited switch handles events: the window's end, or a timer.
    pub(crate) stop: u64,
    pub(crate) pool: Pool,
    /// Entries that wait in the queues of switches.
    pub(crate) store: Store,
    pub(crate) records: Records,
    pub(crate) egress: Table<Egress>,
    pub(crate) ingress: Table<Ingress>,
    pub(crate) extras: Table<PortExtra>,
    /// Accounts of buffer space, indexed by port and class; empty in the plain case.
    pub(crate) accounts: Table<Account>,
    /// Trimming state of the ports of switches, indexed by port; empty where no switch trims.
    pub(crate) trimmers: Table<Trimmer>,
    /// Fair-queueing state, indexed by port and class; empty where no switch queues fairly.
    pub(crate) fair: Table<FairLine>,
    pub(crate) lines: Table<Line>,
    pub(crate) queues: Table<Queue>,
    pub(crate) switches: Table<Switch>,
    /// Crossbar state, indexed by port; empty where every input may feed all outputs at once.
    pub(crate) crossbar: Crossbar,
    /// Load-balancing state, indexed by switch; empty where hashes choose the paths.
    pub(crate) balancers: Table<Balancer>,
    /// NetRT state of ToR switches, indexed by switch; empty where NetRT is not in use.
    pub(crate) tors: Table<Option<Box<Tor>>>,
    pub(crate) hosts: Table<Host>,
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
    pub(crate) tally: Tally,
    pub(crate) events: u64,
    pub(crate) flows_started: u64,
    /// Flows whose receiver has everything, counted at the receiving host.
    pub(crate) flows_finished: u64,
    /// Flows whose sender knows that they are complete, counted at the sending host.
    pub(crate) flows_closed: u64,
    /// Events since the last window; stays empty unless `RECORDED`.
    pub(crate) log: Log,
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
    pub(crate) fn new(
        index: u16,
        count: usize,
        shared: (Arc<FabricParams>, Arc<Forwarding>),
        gap: Bytes,
        calendar: Calendar,
        workload: Workload,
    ) -> Self {
        let (fabric, forwarding) = shared;
        Self {
            index,
            gap: gap.get(),
            classes: fabric.classes,
            accounting: fabric.accounting,
            fabric,
            forwarding,
            calendar,
            postponed: Vec::new(),
            scratch: Scratch::new(),
            prefetch_queue: PrefetchQueue::new(),
            order: None,
            listed: Vec::new(),
            now: Instant::ZERO,
            begin: 0,
            stop: 0,
            pool: Pool::new(),
            store: Store::new(),
            records: Records::default(),
            egress: Table::new(),
            ingress: Table::new(),
            extras: Table::new(),
            accounts: Table::new(),
            trimmers: Table::new(),
            fair: Table::new(),
            lines: Table::new(),
            queues: Table::new(),
            switches: Table::new(),
            crossbar: Crossbar::new(0, 100),
            balancers: Table::new(),
            tors: Table::new(),
            hosts: Table::new(),
            applications: Vec::new(),
            outboxes: (0..count).map(|_| Outbox::default()).collect(),
            workload,
            next_arrival: None,
            later: 0,
            closing: false,
            rows: Vec::new(),
            ranks: Vec::new(),
            tally: Tally::default(),
            events: 0,
            flows_started: 0,
            flows_finished: 0,
            flows_closed: 0,
            log: Log::default(),
        }
    }

    /// Handles the events that are left of a window, up to the end of `slice`.
    pub(crate) fn run_window(&mut self, slice: WindowSlice) {
        let limit = self.turn_to(slice);
        self.admit_flows(limit);
        while let Some(nodes) = self.calendar.take_agenda() {
            self.visit(nodes, limit);
        }
        for node in self.postponed.drain(..) {
            self.calendar.book_again(node, slice.end.as_ps());
        }
    }

    /// Handles two whole windows section by section: that of the leading side, and that of the other. The results equal
    /// those of one window after the other.
    pub(crate) fn run_pair(&mut self, windows: [WindowSlice; 2]) {
        let mut sections = 0;
        while let Some(section) = self.calendar.section(sections) {
            let limit = self.turn_to(windows[usize::from(!section.leads)]);
            self.admit_flows(limit);
            while let Some(nodes) = self.calendar.take_section(&section) {
                self.visit(nodes, limit);
            }
            sections += 1;
        }
        windows.into_iter().for_each(|window| self.run_window(window));
    }

    /// Turns to a window; returns the time, in picoseconds, at which it ends, or at which `slice` does if that is
    /// earlier.
    fn turn_to(&mut self, slice: WindowSlice) -> u64 {
        if self.closing {
            self.next_arrival = None;
        }
        self.calendar.turn_to(slice.window);
        self.begin = slice.begin.as_ps();
        slice.end.as_ps().min(self.calendar.end())
    }

    /// Visits `nodes`; the list then goes back to the calendar.
    fn visit(&mut self, nodes: Vec<u32>, limit: u64) {
        let hosts = self.hosts.len() as u32;
        for before in (1..=STEPS).rev() {
            self.prepare(&nodes, 0_usize.wrapping_sub(before), hosts);
        }
        for (at, &node) in nodes.iter().enumerate() {
            self.prepare(&nodes, at, hosts);
            if node < hosts { self.visit_host(node, limit) } else { self.visit_switch(node - hosts, limit) }
        }
        self.calendar.return_agenda(nodes);
    }

    /// Prefetches the state that the next visits need. Most addresses are known only when the state that leads to them
    /// has been fetched, so nodes are prepared in several steps as their visit comes nearer. The first nodes are
    /// prepared before any visit. Most of the state of a switch is [prefetched](PrefetchQueue) during the visit before.
    #[inline(always)]
    fn prepare(&mut self, nodes: &[u32], at: usize, hosts: u32) {
        self.prefetch_queue.fetch_rest();
        self.prepare_soon::<STEPS>(nodes, at, hosts);
        self.prepare_soon::<4>(nodes, at, hosts);
        self.prepare_soon::<3>(nodes, at, hosts);
        self.prepare_soon::<2>(nodes, at, hosts);
        self.prepare_soon::<1>(nodes, at, hosts);
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
        let inbox = || self.calendar.inbox(host);
        let nic = || &self.hosts[host].nic;
        match IN {
            5 => {
                self.calendar.prefetch_inbox(host);
                prefetch_bytes((&raw const self.hosts[host]).cast(), self.fabric.busy_host_bytes);
            }
            4 => {
                prefetch_all(inbox());
                let port = self.hosts[host].port;
                prefetch(&self.egress, port);
                prefetch(&self.ingress, port);
            }
            3 => {
                inbox().iter().for_each(|packet| self.pool.prefetch(packet.slot));
                nic().waiting().into_iter().for_each(prefetch_at);
            }
            2 => {
                let all = nic().all_prefetch_targets(&self.fabric.nic);
                // Worthwhile as long as prefetching everything takes less time than reading the packets to find out
                // what they need.
                if all.iter().map(|(_, bytes)| bytes).sum::<usize>() <= inbox().len() * ASKING {
                    all.into_iter().for_each(|(address, bytes)| prefetch_bytes(address, bytes));
                } else {
                    for packet in inbox() {
                        let (address, bytes) = nic().prefetch_targets(self.pool.first(packet.slot).0);
                        prefetch_bytes(address, bytes);
                    }
                }
            }
            1 if nic().queue_pairs_at_least() > AHEAD => {
                for packet in inbox() {
                    let (address, bytes) = nic().farther_prefetch_targets(self.pool.first(packet.slot).0);
                    prefetch_bytes(address, bytes);
                }
                let soon = (0..AHEAD).filter_map(|others| nic().ready_prefetch_target(others));
                soon.for_each(|(address, bytes)| prefetch_bytes(address, bytes));
            }
            _ => {}
        }
    }

    /// Prefetches state of a switch whose visit is `IN` visits away; `node` is its number as a node, `index` its number
    /// among switches.
    #[inline(always)]
    fn prepare_switch<const IN: usize>(&mut self, node: u32, index: u32) {
        let switch = &self.switches[index];
        let line = |port| &self.lines[self.line_of(switch.facts.first_port + port, 0)];
        match IN {
            4 => {
                self.calendar.prefetch_inbox(node);
                prefetch_all(std::slice::from_ref(switch));
            }
            3 => {
                let (first, count) = (switch.facts.first_port, switch.facts.ports);
                switch.busy_ports.prefetch();
                self.prefetch_queue.turn_to([
                    stretch_of(self.calendar.inbox(node)),
                    stretch_of(self.lines.part(self.line_of(first, 0), self.line_of(count, 0))),
                    stretch_of(self.ingress.part(first, count)),
                    stretch_of(self.egress.part(first, count)),
                ]);
            }
            2 => switch.busy_ports.ports().for_each(|port| line(port).prefetch_queues(&self.queues)),
            1 => {
                let is_far = self.queues_exceed_cache();
                let prefetch = |port| line(port).prefetch_packets(&self.queues, &self.store, is_far);
                switch.busy_ports.ports().for_each(prefetch);
                // Where classes have accounts of their own, no input is far from its limits, which tells nothing about
                // pauses.
                if self.accounting.is_plain {
                    self.prefetch_likely_pauses(switch);
                }
            }
            _ => {}
        }
    }

    /// Returns whether the queues take more memory than stays in the cache.
    #[inline]
    pub(crate) fn queues_exceed_cache(&self) -> bool {
        self.queues.len() * size_of::<Queue>() > CACHE
    }

    /// Returns the next window, at `from` or later, in which something may happen; `None` if there is none.
    pub(crate) fn next_window(&self, from: u64) -> Option<u64> {
        let flow = self.next_arrival.map(|spec| self.fabric.schedule.first_with(spec.start.as_ps()).max(from));
        flow.into_iter().chain(self.calendar.next_window(from)).min()
    }

    /// Ends a visit to `node` at `limit`; the node's next event comes at `next`.
    #[inline]
    pub(crate) fn leave(&mut self, node: u32, next: u64, limit: u64) {
        if next == NEVER {
            return;
        }
        if limit < self.calendar.end() && next < self.calendar.end() {
            self.postponed.push(node);
        } else {
            self.calendar.book_again(node, next);
        }
    }

    /// Makes all switches forward by these routes from now on.
    pub(crate) fn set_forwarding(&mut self, forwarding: Arc<Forwarding>) {
        self.switches.iter_mut().for_each(|switch| switch.facts.routes = forwarding.routes_of(switch.id));
        self.forwarding = forwarding;
    }

    /// Sets whether arrivals at port `at` take the slow path from now on.
    pub(crate) fn set_slow_path(&mut self, at: u32, slow: bool) {
        self.ingress[at].slow_path = slow;
        let port = &self.egress[at];
        if !port.is_host {
            let switch = &mut self.switches[port.owner];
            switch.facts.slow_path =
                self.ingress.part(switch.facts.first_port, switch.facts.ports).iter().any(|port| port.slow_path);
        }
    }

    /// Handles a packet with one of the rare cases of the slow path; returns whether the packet goes on.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_slow_path(&mut self, at: u32, packet: &Descriptor) -> bool {
        if self.ingress[at].slow_path && self.is_lost(at, packet.slot) {
            return false;
        }
        if packet.is_pause() {
            self.take_pause(at, packet.slot);
            return false;
        }
        if packet.is_trimmed() && self.egress[at].is_host && !self.hears_trim(packet.slot) {
            self.drop_packet(at, packet.slot, DropReason::Trimmed);
            return false;
        }
        self.tors.is_empty() || self.pass_tor(at, packet)
    }

    /// Returns whether the transport of a trimmed packet wants its headers.
    fn hears_trim(&self, slot: Slot) -> bool {
        self.fabric.hears_trims
            && match self.pool.first(slot).0.repr {
                Repr::EqdsData(_) => true,
                Repr::Data(_) => self.fabric.nic.ndp.is_some(),
                _ => false,
            }
    }

    /// Returns whether the packet is lost on the link that ends at port `at`, because of its loss processes or because
    /// the link is down. A lost packet is dropped here.
    fn is_lost(&mut self, at: u32, slot: Slot) -> bool {
        let extra = &mut self.extras[at];
        let packet = self.pool.first(slot).0;
        let (kind, bytes) = (kind_of(packet), u64::from(packet.frame));
        let lost = extra.loss.as_mut().and_then(|loss| loss.lost(self.now, kind, bytes));
        let reason = if extra.down { Some(DropReason::LinkDown) } else { lost };
        if let Some(reason) = reason {
            self.drop_packet(at, slot, reason);
        }
        reason.is_some()
    }

    /// Drops a packet that entered through port `at`.
    #[cold]
    pub(crate) fn drop_packet(&mut self, at: u32, slot: Slot, reason: DropReason) {
        let packet = self.pool.take(slot);
        if RECORDED {
            self.note_dropped(at, &packet, reason);
        }
        self.extras[at].drops += 1;
        self.extras[at].note_loss(&packet, 1 + reason as u64);
        self.tally.drops[kind_of(&packet)].count(reason);
        self.tally.trimmed_drops += u64::from(packet.is_trimmed());
    }

    /// Sends a packet through port `at`, which is free.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, at: u32, packet: &Descriptor) {
        self.transmit_descriptor(at, packet.slot, packet.frame, packet);
    }

    /// Sends the packet in `slot`, of `frame` bytes, through port `at`, which is free.
    #[inline(always)]
    pub(crate) fn transmit_descriptor(&mut self, at: u32, slot: Slot, frame: u16, packet: impl WriteDescriptor) {
        debug_assert!(self.egress[at].busy_until <= self.now, "one packet at a time");
        if self.egress[at].takes_slow_path() {
            return packet.show(|packet| self.transmit_slow(at, packet));
        }
        if RECORDED {
            self.note_sent(at, slot);
        }
        let frame = u64::from(frame);
        let port = &mut self.egress[at];
        let serialisation = port.plain_serialisation(frame + self.gap);
        let arrival = port.begin_frame(self.now, serialisation, frame);
        self.calendar.send(port.peer_node, arrival.as_ps(), port.peer_port, packet);
    }

    /// Sends a packet like [`Partition::transmit`], but through a port with a slow path.
    #[cold]
    #[inline(never)]
    fn transmit_slow(&mut self, at: u32, packet: &Descriptor) {
        self.write_records(at, packet);
        let (port, frame) = (&mut self.egress[at], u64::from(packet.frame));
        let mut serialisation = port.serialisation(frame + self.gap, || self.extras[at].rate);
        if let Some(clock) = &mut self.extras[at].clock {
            let was_idle = port.busy_until < self.now || port.frames == 0;
            serialisation = clock.send(serialisation, was_idle);
        }
        if RECORDED {
            self.note_sent_slowly(at, packet.slot, serialisation);
        }
        let port = &mut self.egress[at];
        let arrival = port.begin_frame(self.now, serialisation, frame);
        self.calendar.send(port.peer_node, arrival.as_ps(), port.peer_port, packet);
    }

    /// Moves the descriptors in remote inboxes to the outboxes, then their packets, all together because these lie at
    /// random places of the pool.
    pub(crate) fn pack(&mut self) {
        while let Some(((partition, node), window, inbox)) = self.calendar.take_remote_inbox() {
            let outbox = &mut self.outboxes[usize::from(partition)];
            outbox.parcels.push(Parcel { node, window, count: inbox.len() });
            outbox.inbox.extend_from_slice(&inbox);
            self.calendar.return_inbox(inbox);
        }
        for outbox in &mut self.outboxes {
            for number in outbox.packets.len()..outbox.inbox.len() {
                if let Some(soon) = outbox.inbox.get(number + PACKED_AHEAD) {
                    self.pool.prefetch(soon.slot);
                }
                let slot = outbox.inbox[number].slot;
                if self.fabric.reads_records {
                    self.records.send_away(&self.fabric, slot, outbox);
                }
                outbox.packets.push(self.pool.take(slot));
            }
        }
    }

    /// Schedules a return to port `at` for the time when the frame that it has just begun to send has left.
    #[inline]
    pub(crate) fn return_when_free(&mut self, at: u32) {
        let port = &mut self.egress[at];
        if port.free_pending {
            return;
        }
        port.free_pending = true;
        let (owner, free_at) = (port.owner, port.busy_until.as_ps());
        if port.is_host {
            self.hosts[owner].free_at = free_at;
        } else {
            let switch = &mut self.switches[owner];
            switch.busy_ports.put_in_order();
            switch.busy_ports.push(at - switch.facts.first_port, free_at);
        }
    }

    /// Schedules a return to port `at` for the time when it is free, if something is left to do there. Always done for
    /// ports of hosts, where it is not known.
    pub(crate) fn return_to_do_more(&mut self, at: u32) {
        let port = &self.egress[at];
        if port.is_host || port.pause_due() || port.waiting != 0 {
            self.return_when_free(at);
        }
    }

    /// Cancels the return to port `at` of a switch if nothing is left to do there: a packet that arrives just when the
    /// port is free then goes straight through, like at a port where no packet ever waited.
    pub(crate) fn forget_idle(&mut self, at: u32) {
        let port = &mut self.egress[at];
        if port.free_pending && !port.is_host && !port.pause_due() && port.waiting == 0 {
            let switch = &mut self.switches[port.owner];
            // The port that is being served is marked as one to return to, but has no entry in the list.
            if switch.busy_ports.forget(at - switch.facts.first_port) {
                port.free_pending = false;
            }
        }
    }

    /// Makes port `at` serve what waits: now if the port is free, else when it will be.
    #[inline]
    pub(crate) fn kick(&mut self, at: u32) {
        let port = &self.egress[at];
        if port.free_pending {
            return;
        }
        if port.busy_until > self.now {
            self.return_to_do_more(at);
        } else {
            self.serve(at);
        }
    }

    /// Serves a free port: sends the next packet, if there is one, and schedules a return if more packets wait.
    pub(crate) fn serve(&mut self, at: u32) {
        let port = &self.egress[at];
        if port.pause_due() {
            self.send_pause(at);
        } else if port.is_host {
            self.serve_host(port.owner, at);
        } else {
            self.serve_unexpected(at);
        }
    }

    /// Takes in what other partitions sent during the window.
    pub(crate) fn deliver(&mut self, outbox: &mut Outbox) {
        let (mut records, mut headers) = (outbox.records.drain(..), outbox.headers.drain(..));
        let mut inbox = outbox.inbox.drain(..).zip(outbox.packets.drain(..)).map(|(descriptor, packet)| {
            self.pool.prefetch_vacancy(PACKED_AHEAD as u32);
            let slot = self.pool.put(packet);
            self.records.take_in(slot, records.next(), headers.next());
            Descriptor { slot, ..descriptor }
        });
        for Parcel { node, window, count } in outbox.parcels.drain(..) {
            self.calendar.take_in(node, window, inbox.by_ref().take(count));
        }
        drop(inbox);
        drop((records, headers));
        for (host, notice) in outbox.notices.drain(..) {
            self.take_notice(host, notice);
        }
    }

    /// Returns whether flows are still to begin at times of their own.
    pub(crate) fn expects_arrivals(&self) -> bool {
        !self.closing && (self.next_arrival.is_some() || self.later > 0)
    }

    /// Adds this partition's share to the record of a run that ended at `now`.
    pub(crate) fn add_to(&self, now: Instant, record: &mut RunRecord) {
        self.totals(now, &mut record.ports);
        for (port, extra) in self.egress.iter().zip(self.extras.iter()) {
            record.packet_hops += port.frames;
            record.pause_frames += extra.pause_frames;
            record.paused += extra.paused_time(now);
            record.trims += extra.trims;
            add_digest(record, u64::from(extra.id.0), extra.losses);
        }
        for host in self.hosts.iter() {
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
        self.tally.add_to(record);
        if !self.fabric.senders_choose_ways() {
            let switches = self.balancers.iter().map(|balancer| balancer.path_switches).sum::<u64>();
            *record.path_switches.get_or_insert(0) += switches;
        }
        self.tors.iter().flatten().for_each(|tor| tor.add_to(&mut record.netrt));
        for (packet, count) in self.pool.live() {
            record.in_flight[kind_of(packet)] += count;
        }
        record.events += self.events;
        record.flows_started += self.flows_started;
        record.flows_finished += self.flows_finished;
    }

    /// Returns the index of the line of packets of `class` that wait for port `at`.
    #[inline(always)]
    pub(crate) fn line_of(&self, at: u32, class: u8) -> u32 {
        at.wrapping_mul(self.classes).wrapping_add(u32::from(class))
    }

    /// Returns both directions of each port of `switch`.
    #[inline(always)]
    pub(crate) fn ports_of(&self, switch: &Switch) -> impl Iterator<Item = (&Egress, &Ingress)> {
        let (first, count) = (switch.facts.first_port, switch.facts.ports);
        self.egress.part(first, count).iter().zip(self.ingress.part(first, count))
    }

    /// Returns the lines of port `at`, one per class.
    pub(crate) fn lines_of(&self, at: u32) -> &[Line] {
        self.lines.part(self.line_of(at, 0), self.classes)
    }

    /// Returns the local number of a host if it belongs to this partition.
    #[inline]
    pub(crate) fn local_host(&self, host: HostId) -> Option<u32> {
        let (partition, local) = self.fabric.home[host.index()];
        (partition == self.index).then_some(local)
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
