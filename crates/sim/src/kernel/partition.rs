//! A part of the fabric that runs on its own for the length of a window.
//!
//! ```text
//!           Schedule --event--> Partition --packet--> Port --arrival event--> Schedule
//!                                   |                   \--parcel--> another partition's inbox
//!                                   \--row--> Observer (after the window)
//! ```
//!
//! A partition owns hosts and switches with all their ports. Entities are numbered within the
//! partition in the order of their global numbers, so that ties between events fall the same way
//! however the fabric is cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_nic::NicParams;
use selvedge_telemetry::{DropReason, Drops, FlowRow, RunRecord};
use selvedge_units::{Bytes, Duration, HostId, Instant, mix64};
use selvedge_wire::{Packet, Repr};

use super::log::Log;
use super::schedule::{Event, Schedule};
use super::table::Table;
use crate::config::BufferConfig;
use crate::fault::PacketKind;
use crate::net::forward::Forwarding;
use crate::net::host::{Host, Notice};
use crate::net::pool::{NONE, Pool, Slot};
use crate::net::port::{Egress, Ingress, PortExtra, Size};
use crate::net::queue::{Line, Queue};
use crate::net::switch::Switch;
use crate::topology::{Framing, Graph, InnerNics, Paths};
use crate::workload::{FlowSpec, Workload};

/// Kinds of events, in the order in which simultaneous ones are handled.
pub(crate) mod kind {
    /// A packet's last bit reaches a port. Payload: its slot.
    pub(crate) const ARRIVAL: u32 = 0;
    /// News for a host that travels outside the fabric (connection set-up). Payload: none.
    pub(crate) const NOTICE: u32 = 1;
    /// The application hands flows to NICs.
    pub(crate) const FLOW_START: u32 = 2;
    /// A port has finished sending and something waits.
    pub(crate) const PORT_FREE: u32 = 3;
    /// A host's NIC wants to act.
    pub(crate) const HOST_WAKE: u32 = 4;
    /// A pause has to be refreshed, or may have run out.
    pub(crate) const PAUSE_TIMER: u32 = 5;
}

/// What all partitions share and nobody changes during a window.
pub(crate) struct Fabric {
    pub(crate) nic: NicParams,
    pub(crate) buffer: BufferConfig,
    /// Bit per class: lossless.
    pub(crate) lossless: u8,
    /// Headroom of each port of a shared buffer.
    pub(crate) shared_headroom: u64,
    pub(crate) xon_gap: u64,
    pub(crate) quanta: u16,
    /// Number of traffic classes in use; packets carry an index below it.
    pub(crate) classes: u32,
    /// Leaf switch of each host (as [`Routes`] numbers leaves) and the leaf's local port towards it.
    pub(crate) attachment: Vec<Attachment>,
    /// Partition and local number of each host.
    pub(crate) home: Vec<(u16, u32)>,
    /// The smallest delay of any link: how far a partition may run ahead, and how long notices take.
    pub(crate) lookahead: Duration,
    /// Senders get no acknowledgements: receivers notify them outside the fabric.
    pub(crate) unacknowledged: bool,
    /// Receivers report round-trip times outside the fabric.
    pub(crate) reports_freely: bool,
    pub(crate) seed: u64,
    pub(crate) graph: Arc<Graph>,
    pub(crate) paths: Paths,
    pub(crate) inner: InnerNics,
    pub(crate) framing: Framing,
}

/// Where a host hangs.
#[derive(Clone, Copy)]
pub(crate) struct Attachment {
    /// Index of its leaf switch among the leaves; `u32::MAX` where two hosts stand back to back.
    pub(crate) leaf: u32,
    /// The leaf's port towards it.
    pub(crate) port: u16,
}

/// A packet on its way to another partition.
pub(crate) struct Parcel {
    pub(crate) at: Instant,
    pub(crate) port: u32,
    pub(crate) packet: Packet,
}

/// What a partition has for another one at the end of a window.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) parcels: Vec<Parcel>,
    pub(crate) notices: Vec<(u32, Notice)>,
}

/// Packets by kind, as `[data, acknowledgement, pause, congestion notification]`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) drops: [Drops; 4],
    pub(crate) delivered: [u64; 4],
    pub(crate) ecn_marks: u64,
}

/// The index of a packet's kind in a [`Tally`].
#[inline]
pub(crate) fn kind_of(packet: &Packet) -> usize {
    match packet.repr {
        Repr::Data(_) => 0,
        Repr::Ack(_) => 1,
        Repr::Pause(_) => 2,
        Repr::Cnp => 3,
        Repr::Tcp(tcp) => usize::from(tcp.payload() == 0),
    }
}

/// A part of the fabric. What `RECORDED` guards is compiled apart and costs other runs nothing.
pub(crate) struct Partition<const RECORDED: bool> {
    pub(crate) index: u16,
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) forwarding: Arc<Forwarding>,
    /// What every frame takes on the wire beside itself, and the frames of the usual sizes.
    pub(crate) gap: u64,
    pub(crate) full_frame: u64,
    pub(crate) ack_frame: u64,
    /// See [`Fabric::classes`].
    pub(crate) classes: u32,
    /// Whether it is too large for the cache.
    pub(crate) is_large: bool,
    pub(crate) schedule: Schedule,
    pub(crate) now: Instant,
    pub(crate) pool: Pool,
    pub(crate) egress: Table<Egress>,
    pub(crate) ingress: Table<Ingress>,
    pub(crate) extras: Table<PortExtra>,
    pub(crate) lines: Table<Line>,
    pub(crate) queues: Table<Queue>,
    pub(crate) switches: Table<Switch>,
    pub(crate) hosts: Table<Host>,
    /// By destination partition.
    pub(crate) outboxes: Vec<Outbox>,
    /// Where flows come from. Every partition has a copy and skips foreign sources.
    pub(crate) workload: Workload,
    /// The next flow that begins at a time of its own.
    pub(crate) next_arrival: Option<FlowSpec>,
    /// Flows that others have released and whose time has not come.
    pub(crate) later: BTreeMap<(Instant, u16, u64), FlowSpec>,
    /// As many flows have begun as shall: the end of one releases no others.
    pub(crate) closing: bool,
    pub(crate) rows: Vec<FlowRow>,
    pub(crate) tally: Tally,
    pub(crate) events: u64,
    pub(crate) flows_started: u64,
    /// Flows whose receiver has everything; counted where they end.
    pub(crate) flows_finished: u64,
    /// Flows whose sender knows that; counted where they begin.
    pub(crate) flows_closed: u64,
    /// What has happened since the last window; stays empty unless `RECORDED`.
    pub(crate) log: Log,
}

/// A partition with more ports does not fit into a second-level cache of a megabyte. Debug builds
/// prepare always, so that the fingerprints of both profiles show that it changes nothing.
const LARGE: usize = if cfg!(debug_assertions) { 0 } else { 1_500 };

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles every event earlier than `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        let limit = end.as_ps();
        while let Some(event) = self.schedule.pop_before(limit) {
            if self.is_large {
                self.prepare();
            }
            self.now = Instant::from_ps(event.time());
            self.events += 1;
            let entity = event.entity();
            match event.kind() {
                kind::ARRIVAL => self.on_arrival(entity, event.payload()),
                kind::PORT_FREE => self.on_port_free(entity),
                kind::HOST_WAKE => self.on_host_wake(entity),
                kind::NOTICE => self.on_notice(entity),
                kind::FLOW_START => self.on_flow_start(),
                _ => self.on_pause_timer(entity),
            }
        }
    }

    /// Brings what coming events need into the cache. A large fabric does not fit into it, and each hop
    /// touches half a dozen lines, most of which are known only when the one before is there. So
    /// events are looked at several times as their turn comes nearer, one step each.
    #[inline(always)]
    fn prepare(&mut self) {
        self.schedule.prefetch_upcoming(48);
        if let Some(event) = self.schedule.upcoming(16) {
            let at = event.entity();
            if event.kind() == kind::ARRIVAL {
                super::prefetch(self.pool.places(), event.payload());
                super::prefetch(&self.ingress, at);
            } else {
                super::prefetch(&self.egress, at);
                super::prefetch(&self.lines, at * self.classes);
            }
        }
        if let Some(event) = self.schedule.upcoming(10) {
            let at = event.entity();
            if event.kind() == kind::ARRIVAL {
                self.fetch_way(at, event.payload());
            } else {
                self.lines[at * self.classes].prefetch_queue(&self.queues);
            }
        }
        if let Some(event) = self.schedule.upcoming(4) {
            let at = event.entity();
            if event.kind() == kind::ARRIVAL {
                self.find_way(at, event.payload());
            } else {
                self.lines[at * self.classes].prefetch_packet(&self.queues, &self.pool);
            }
        }
    }

    #[inline]
    pub(crate) fn schedule(&mut self, at: Instant, kind: u32, entity: u32, payload: u32) {
        self.schedule.push(Event::new(at, kind, entity, payload));
    }

    /// A packet's last bit has reached port `at`.
    #[inline]
    fn on_arrival(&mut self, at: u32, slot: Slot) {
        if RECORDED {
            self.note_arrived(at, slot);
        }
        let port = &mut self.ingress[at];
        let packet = &self.pool.get(slot).packet;
        port.digest = fold(port.digest, self.now, packet);
        let (owner, is_host) = (port.owner, port.is_host);
        if port.rare_arrivals && self.is_lost(at, slot) {
            return;
        }
        if let Repr::Pause(pause) = self.pool.get(slot).packet.repr {
            self.take_pause(at, slot, pause);
        } else if is_host {
            self.arrive_at_host(owner, at, slot);
        } else {
            self.arrive_at_switch(owner, at, slot);
        }
    }

    /// Asks the loss processes of the link that ends at `at`, and whether it is up at all.
    #[cold]
    fn is_lost(&mut self, at: u32, slot: Slot) -> bool {
        let extra = &mut self.extras[at];
        let packet = &self.pool.get(slot).packet;
        let kind = match packet.repr {
            Repr::Data(_) => PacketKind::Data,
            Repr::Ack(_) | Repr::Cnp => PacketKind::Ack,
            Repr::Pause(_) => PacketKind::Pause,
            Repr::Tcp(tcp) if tcp.payload() > 0 => PacketKind::Data,
            Repr::Tcp(_) => PacketKind::Ack,
        };
        let lost = extra.loss.as_mut().and_then(|loss| loss.lost(kind, u64::from(packet.frame)));
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
        self.tally.drops[kind_of(&packet)].count(reason);
        let port = &mut self.ingress[at];
        port.digest = port.digest.wrapping_add(1 + reason as u64).rotate_left(9);
    }

    /// Puts a packet on the wire of port `at`, which is free. Returns how long it is.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, at: u32, slot: Slot) -> Size {
        if RECORDED {
            self.note_sent(at, slot);
        }
        let held = self.pool.get_mut(slot);
        held.next = NONE;
        let frame = u64::from(held.packet.frame);
        let size = self.size_of(frame);
        let port = &mut self.egress[at];
        debug_assert!(port.busy_until <= self.now, "one packet at a time");
        port.busy_until = self.now + port.serialisation(frame + self.gap, || self.extras[at].rate);
        port.frames += 1;
        port.bytes += frame;
        let arrival = port.busy_until + port.delay;
        let peer = port.peer;
        if port.peer_partition == self.index {
            let line = port.arrival_lines[size as usize];
            self.schedule.push_line(line, Event::new(arrival, kind::ARRIVAL, peer, slot));
        } else {
            let partition = port.peer_partition;
            self.send_away(partition, arrival, peer, slot);
        }
        size
    }

    #[inline]
    fn size_of(&self, frame: u64) -> Size {
        if frame == self.full_frame {
            Size::Full
        } else if frame == self.ack_frame {
            Size::Ack
        } else {
            Size::Odd
        }
    }

    /// Leaves a packet for another partition.
    #[inline(never)]
    fn send_away(&mut self, partition: u16, at: Instant, port: u32, slot: Slot) {
        let packet = self.pool.take(slot);
        self.outboxes[partition as usize].parcels.push(Parcel { at, port, packet });
    }

    /// Comes back to port `at` when what it has just begun to send has left.
    #[inline]
    pub(crate) fn return_when_free(&mut self, at: u32, size: Size) {
        let port = &mut self.egress[at];
        if !port.free_pending {
            port.free_pending = true;
            let event = Event::new(port.busy_until, kind::PORT_FREE, at, 0);
            self.schedule.push_line(port.free_lines[size as usize], event);
        }
    }

    /// Makes port `at` serve what waits: now if it is free, else when it will be.
    #[inline]
    pub(crate) fn kick(&mut self, at: u32) {
        let port = &mut self.egress[at];
        if port.free_pending {
            return;
        }
        if port.busy_until > self.now {
            port.free_pending = true;
            let free_at = port.busy_until;
            self.schedule(free_at, kind::PORT_FREE, at, 0);
        } else {
            self.serve(at);
        }
    }

    #[inline]
    fn on_port_free(&mut self, at: u32) {
        self.egress[at].free_pending = false;
        self.serve(at);
    }

    /// Sends the next packet of a free port, if there is one, and comes back when it is free again
    /// if more waits.
    fn serve(&mut self, at: u32) {
        let port = &self.egress[at];
        if port.pause_due {
            self.send_pause(at);
        } else if port.is_host {
            self.serve_host(port.owner, at);
        } else {
            self.serve_switch(at);
        }
    }

    /// Takes in what other partitions sent during the window.
    pub(crate) fn deliver(&mut self, inbox: &mut Outbox) {
        for parcel in inbox.parcels.drain(..) {
            let slot = self.pool.put(parcel.packet);
            self.schedule(parcel.at, kind::ARRIVAL, parcel.port, slot);
        }
        for (host, notice) in inbox.notices.drain(..) {
            self.take_notice(host, notice);
        }
    }

    /// Gives frames of the usual sizes delay lines, those of the most frequent links first.
    pub(crate) fn lay_lines(&mut self) {
        self.is_large = self.egress.len() > LARGE;
        let mut ports_by_delay = BTreeMap::new();
        let sizes = [(Size::Full, self.full_frame), (Size::Ack, self.ack_frame)];
        let mut each = |visit: &mut dyn FnMut(&mut Egress, Size, u64, u64)| {
            for (port, extra) in self.egress.iter_mut().zip(self.extras.iter()) {
                for (size, frame) in sizes {
                    let free = port.serialisation(frame + self.gap, || extra.rate);
                    visit(port, size, free.as_ps(), (free + port.delay).as_ps());
                }
            }
        };
        each(&mut |_, _, free, arrival| {
            *ports_by_delay.entry(free).or_insert(0u32) += 1;
            *ports_by_delay.entry(arrival).or_insert(0u32) += 1;
        });
        let mut delays: Vec<_> = ports_by_delay.into_iter().map(|(delay, ports)| (u32::MAX - ports, delay)).collect();
        delays.sort_unstable();
        for (_, delay) in delays {
            self.schedule.line_for(delay);
        }
        let schedule = &mut self.schedule;
        each(&mut |port, size, free, arrival| {
            port.free_lines[size as usize] = schedule.line_for(free);
            port.arrival_lines[size as usize] = schedule.line_for(arrival);
        });
    }

    /// Whether flows are still to begin by themselves.
    pub(crate) fn expects_arrivals(&self) -> bool {
        !self.closing && (self.next_arrival.is_some() || !self.later.is_empty())
    }

    /// Forgets the ways that were found for packets under way: routes have changed.
    pub(crate) fn forget_ways(&mut self) {
        for event in self.schedule.lined_up().filter(|event| event.kind() == kind::ARRIVAL) {
            self.pool.get_mut(event.payload()).next = NONE;
        }
    }

    /// Takes the link at port `at` down, or up again. What waits for a link that goes down is lost.
    pub(crate) fn set_down(&mut self, at: u32, down: bool) {
        let extra = &mut self.extras[at];
        if extra.down == down {
            return;
        }
        extra.down = down;
        if RECORDED {
            self.note_link(at, !down);
        }
        let extra = &mut self.extras[at];
        let has_loss = extra.loss.is_some();
        self.ingress[at].rare_arrivals = down || has_loss;
        let port = &mut self.egress[at];
        if down {
            if port.paused != 0 {
                extra.paused_total += self.now.since(extra.paused_since);
            }
            port.paused = Egress::DOWN;
            self.flush(at);
        } else {
            port.paused = 0;
            // A pause that the other end was told of ended with the link.
            self.ingress[at].announced = 0;
            self.note_pause_due(at);
            self.kick(at);
        }
    }

    /// Drops everything that waits for port `at`.
    fn flush(&mut self, at: u32) {
        while self.egress[at].waiting != 0 {
            let class = self.egress[at].waiting.ilog2();
            let line = &mut self.lines[at * self.classes + class];
            let slot = line.pop(&mut self.queues, &self.pool);
            if line.is_empty() {
                self.egress[at].waiting &= !(1 << class);
            }
            let held = self.pool.get(slot);
            let (ingress, frame) = (held.ingress, u64::from(held.packet.frame));
            let switch = self.egress[at].owner;
            self.release(switch, ingress, frame);
            self.drop_packet(ingress, slot, DropReason::LinkDown);
        }
    }

    /// Adds this partition's share to the record of a run that ended at `now`.
    pub(crate) fn add_to(&self, now: Instant, record: &mut RunRecord) {
        self.totals(now, &mut record.ports);
        for ((port, entry), extra) in self.egress.iter().zip(self.ingress.iter()).zip(self.extras.iter()) {
            record.packet_hops += port.frames;
            record.pause_frames += extra.pause_frames;
            record.paused += extra.paused_time(port.paused != 0 && !extra.down, now);
            // Summed, so that the order of ports and partitions does not matter; mixed with the
            // port's number, so that two ports do not trade places unseen.
            record.fingerprint =
                record.fingerprint.wrapping_add(mix64(entry.digest ^ mix64(u64::from(extra.id.0) + 1)));
        }
        for host in self.hosts.iter() {
            let stats = host.nic.stats();
            record.data_sent += stats.data_sent;
            record.retransmissions += stats.retransmissions;
            record.spurious_retransmissions += stats.duplicates;
            record.goodput += Bytes::new(stats.goodput);
            record.timeouts += stats.timeouts;
            record.nacks_sent += stats.nacks_sent;
            record.acks_sent += stats.acks_sent;
            record.cnps_sent += stats.cnps_sent;
        }
        record.data_delivered += self.tally.delivered[0];
        record.acks_delivered += self.tally.delivered[1];
        record.pauses_delivered += self.tally.delivered[2];
        record.cnps_delivered += self.tally.delivered[3];
        record.ecn_marks += self.tally.ecn_marks;
        let drops = [&mut record.data_drops, &mut record.ack_drops, &mut record.pause_drops, &mut record.cnp_drops];
        for (total, mine) in drops.into_iter().zip(&self.tally.drops) {
            total.add(mine);
        }
        for packet in self.pool.live() {
            record.in_flight[kind_of(packet)] += 1;
        }
        record.events += self.events;
        record.flows_started += self.flows_started;
        record.flows_finished += self.flows_finished;
    }

    /// The lines of port `at`, one per class.
    pub(crate) fn lines_of(&self, at: u32) -> &[Line] {
        let classes = self.classes as usize;
        &self.lines.iter().as_slice()[at as usize * classes..][..classes]
    }

    /// The local number of a host of this partition.
    #[inline]
    pub(crate) fn local_host(&self, host: HostId) -> Option<u32> {
        let (partition, local) = self.fabric.home[host.index()];
        (partition == self.index).then_some(local)
    }
}

/// Adds an arrival to a port's rolling hash: when, and which packet. A host sends one packet at a time,
/// so its number and the time of sending name a data packet, and with the receiver's number the
/// acknowledgement that returns that time.
#[inline]
fn fold(digest: u64, now: Instant, packet: &Packet) -> u64 {
    let which = packet.sent_at.as_ps() ^ u64::from(packet.src.0) << 40;
    (digest.rotate_left(17) ^ now.as_ps()).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(which)
}
