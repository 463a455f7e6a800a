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

use std::sync::Arc;

use selvedge_nic::NicParams;
use selvedge_telemetry::{DropReason, Drops, FlowRow, RunRecord};
use selvedge_units::{Bytes, Duration, HostId, Instant, mix64};
use selvedge_wire::{Packet, Repr};

use super::schedule::{Event, Schedule};
use crate::config::{BufferConfig, EcnConfig};
use crate::net::host::{Host, Notice};
use crate::net::pool::{Pool, Slot};
use crate::net::port::{Port, PortExtra};
use crate::net::queue::{Line, Queue};
use crate::net::switch::Switch;
use crate::topology::{Framing, Graph, Paths, Routes};
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
    pub(crate) ecn: EcnConfig,
    pub(crate) gap: u64,
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
    /// One partition holds everything: what a flow's end releases elsewhere begins at once.
    pub(crate) alone: bool,
    pub(crate) seed: u64,
    pub(crate) graph: Arc<Graph>,
    pub(crate) paths: Paths,
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

/// Packets by kind, as `[data, acknowledgement, pause]`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) drops: [Drops; 3],
    pub(crate) delivered: [u64; 3],
    pub(crate) ecn_marks: u64,
}

/// The index of a packet's kind in a [`Tally`].
#[inline]
pub(crate) fn kind_of(packet: &Packet) -> usize {
    match packet.repr {
        Repr::Data(_) => 0,
        Repr::Ack(_) => 1,
        Repr::Pause(_) => 2,
    }
}

/// A part of the fabric.
pub(crate) struct Partition {
    pub(crate) index: u16,
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) routes: Arc<Routes>,
    pub(crate) schedule: Schedule,
    pub(crate) now: Instant,
    pub(crate) pool: Pool,
    pub(crate) ports: Vec<Port>,
    pub(crate) extras: Vec<PortExtra>,
    pub(crate) lines: Vec<Line>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) hosts: Vec<Host>,
    /// By destination partition.
    pub(crate) outboxes: Vec<Outbox>,
    /// Where flows come from. Every partition has a copy and skips foreign sources.
    pub(crate) workload: Workload,
    /// The next flow that begins by itself.
    pub(crate) next_arrival: Option<FlowSpec>,
    pub(crate) rows: Vec<FlowRow>,
    pub(crate) tally: Tally,
    pub(crate) events: u64,
    pub(crate) flows_started: u64,
    pub(crate) flows_finished: u64,
}

impl Partition {
    /// Handles every event earlier than `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        let limit = end.as_ps();
        loop {
            let (pool, ports) = (&self.pool, &self.ports);
            let on_open = |event: &Event| {
                if event.kind() == kind::ARRIVAL {
                    pool.prefetch(event.payload);
                }
                if matches!(event.kind(), kind::ARRIVAL | kind::PORT_FREE)
                    && let Some(port) = ports.get(event.entity() as usize)
                {
                    super::prefetch(port);
                }
            };
            let Some(event) = self.schedule.pop_before(limit, on_open) else { break };
            self.now = Instant::from_ps(event.time);
            self.events += 1;
            let entity = event.entity();
            match event.kind() {
                kind::ARRIVAL => self.on_arrival(entity, event.payload),
                kind::PORT_FREE => self.on_port_free(entity),
                kind::HOST_WAKE => self.on_host_wake(entity),
                kind::NOTICE => self.on_notice(entity),
                kind::FLOW_START => self.on_flow_start(),
                _ => self.on_pause_timer(entity),
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
        let port = &mut self.ports[at as usize];
        let packet = &self.pool.get(slot).packet;
        port.digest = fold(port.digest, self.now, packet);
        if port.rare_arrivals && self.is_lost(at, slot) {
            return;
        }
        let port = &self.ports[at as usize];
        if let Repr::Pause(pause) = self.pool.get(slot).packet.repr {
            self.on_pause(at, pause);
            self.tally.delivered[2] += 1;
            self.pool.take(slot);
        } else if port.is_host {
            self.arrive_at_host(port.owner, at, slot);
        } else {
            self.arrive_at_switch(port.owner, at, slot);
        }
    }

    /// Asks the loss processes of the link that ends at `at`, and whether it is up at all.
    #[cold]
    fn is_lost(&mut self, at: u32, slot: Slot) -> bool {
        let extra = &mut self.extras[at as usize];
        let kind = kind_of(&self.pool.get(slot).packet);
        let mut reason = extra.down.then_some(DropReason::LinkDown);
        for rule in extra.loss.iter_mut().filter(|rule| rule.kinds & (1 << kind) != 0) {
            // Every process sees every packet, so that each keeps its own count.
            if rule.process.lost() {
                reason = reason.or(Some(DropReason::LinkLoss));
            }
        }
        if let Some(reason) = reason {
            self.drop_packet(at, slot, reason);
        }
        reason.is_some()
    }

    /// Drops a packet that entered through port `at`.
    #[cold]
    pub(crate) fn drop_packet(&mut self, at: u32, slot: Slot, reason: DropReason) {
        let packet = self.pool.take(slot);
        self.extras[at as usize].drops += 1;
        self.tally.drops[kind_of(&packet)].count(reason);
        let port = &mut self.ports[at as usize];
        port.digest = port.digest.wrapping_add(1 + reason as u64).rotate_left(9);
    }

    /// Puts a packet on the wire of port `at`, which is free.
    #[inline]
    pub(crate) fn transmit(&mut self, at: u32, slot: Slot) {
        let port = &mut self.ports[at as usize];
        debug_assert!(port.busy_until <= self.now, "one packet at a time");
        let frame = u64::from(self.pool.get(slot).packet.frame);
        port.busy_until = self.now + port.serialisation(frame + self.fabric.gap);
        port.frames += 1;
        port.bytes += frame;
        let arrival = port.busy_until + port.delay;
        let (peer, partition) = (port.peer, port.peer_partition);
        if partition == self.index {
            self.schedule(arrival, kind::ARRIVAL, peer, slot);
        } else {
            let packet = self.pool.take(slot);
            self.outboxes[partition as usize].parcels.push(Parcel { at: arrival, port: peer, packet });
        }
    }

    /// Makes port `at` serve what waits: now if it is free, else when it will be.
    #[inline]
    pub(crate) fn kick(&mut self, at: u32) {
        let port = &mut self.ports[at as usize];
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

    fn on_port_free(&mut self, at: u32) {
        self.ports[at as usize].free_pending = false;
        self.serve(at);
    }

    /// Sends the next packet of a free port, if there is one, and comes back when it is free again
    /// if more waits.
    fn serve(&mut self, at: u32) {
        let port = &self.ports[at as usize];
        let more = if port.pausing != port.announced {
            self.send_pause(at);
            true
        } else if port.is_host {
            self.serve_host(port.owner, at)
        } else {
            self.serve_switch(at)
        };
        let port = &mut self.ports[at as usize];
        if more && !port.free_pending {
            port.free_pending = true;
            let free_at = port.busy_until;
            self.schedule(free_at, kind::PORT_FREE, at, 0);
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

    /// Whether flows are still to begin by themselves.
    pub(crate) fn expects_arrivals(&self) -> bool {
        self.next_arrival.is_some()
    }

    /// Takes the link at port `at` down, or up again. What waits for a link that goes down is lost.
    pub(crate) fn set_down(&mut self, at: u32, down: bool) {
        let extra = &mut self.extras[at as usize];
        if extra.down == down {
            return;
        }
        extra.down = down;
        let has_loss = !extra.loss.is_empty();
        let port = &mut self.ports[at as usize];
        port.rare_arrivals = down || has_loss;
        if down {
            if port.paused != 0 {
                extra.paused_total += self.now.since(extra.paused_since);
            }
            port.paused = u8::MAX;
            self.flush(at);
        } else {
            port.paused = 0;
            // A pause that the other end was told of ended with the link.
            port.announced = 0;
            self.kick(at);
        }
    }

    /// Drops everything that waits for port `at`.
    fn flush(&mut self, at: u32) {
        while self.ports[at as usize].waiting != 0 {
            let class = self.ports[at as usize].waiting.ilog2();
            let line = &mut self.lines[(at * self.fabric.classes + class) as usize];
            let slot = line.pop(&mut self.queues, &self.pool);
            if line.is_empty() {
                self.ports[at as usize].waiting &= !(1 << class);
            }
            let held = self.pool.get(slot);
            let (ingress, frame) = (held.ingress, u64::from(held.packet.frame));
            let switch = self.ports[at as usize].owner;
            self.release(switch, ingress, frame);
            self.drop_packet(ingress, slot, DropReason::LinkDown);
        }
    }

    /// Adds this partition's share to the record of a run that ended at `now`.
    pub(crate) fn add_to(&self, now: Instant, record: &mut RunRecord) {
        self.totals(now, &mut record.ports);
        for (port, extra) in self.ports.iter().zip(&self.extras) {
            record.packet_hops += port.frames;
            record.pause_frames += extra.pause_frames;
            record.paused += extra.paused_time(port.paused != 0 && !extra.down, now);
            // Summed, so that the order of ports and partitions does not matter; mixed with the
            // port's number, so that two ports do not trade places unseen.
            record.fingerprint =
                record.fingerprint.wrapping_add(mix64(port.digest ^ mix64(u64::from(extra.id.0) + 1)));
        }
        for host in &self.hosts {
            let stats = host.nic.stats();
            record.data_sent += stats.data_sent;
            record.retransmissions += stats.retransmissions;
            record.spurious_retransmissions += stats.duplicates;
            record.goodput += Bytes::new(stats.goodput);
            record.timeouts += stats.timeouts;
            record.nacks_sent += stats.nacks_sent;
            record.acks_sent += stats.acks_sent;
        }
        record.data_delivered += self.tally.delivered[0];
        record.acks_delivered += self.tally.delivered[1];
        record.ecn_marks += self.tally.ecn_marks;
        let drops = [&mut record.data_drops, &mut record.ack_drops, &mut record.pause_drops];
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

    /// The local number of a host of this partition.
    #[inline]
    pub(crate) fn local_host(&self, host: HostId) -> Option<u32> {
        let (partition, local) = self.fabric.home[host.index()];
        (partition == self.index).then_some(local)
    }
}

/// Adds an arrival to a port's rolling hash.
#[inline]
fn fold(digest: u64, now: Instant, packet: &Packet) -> u64 {
    let what = match packet.repr {
        Repr::Data(data) => u64::from(data.psn.get()),
        Repr::Ack(ack) => u64::from(ack.expected.get()) | u64::from(ack.sack.get()) << 24 | 1 << 63,
        Repr::Pause(pause) => u64::from(pause.quanta) | 1 << 62,
    };
    let flow = u64::from(packet.src.0) << 40 ^ u64::from(packet.qp.0) << 8;
    (digest.rotate_left(17) ^ now.as_ps().wrapping_add(what)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ flow
}
