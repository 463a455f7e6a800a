//! NetRT in top-of-rack switches: the engines' view of packets, and the execution of their requests.
//!
//! Where NetRT is off, it costs nothing: arrivals at a ToR with NetRT take the slow path
//! ([`Ingress::slow_path`](super::port::Ingress::slow_path)), which exists anyway. The outputs of such a ToR serve
//! packets in order of arrival, whatever the arbitration elsewhere: round-robin over the inputs through which packets
//! of one flow come would undo their order.
//!
//! The engines are part of the memory manager (section III-D2): a destination ToR admits a packet to the buffer first,
//! and checks the order of the admitted packets. A packet that finds no buffer space has not arrived: the next one
//! reveals the gap, and the missing packet is requested like any other. A packet that is held stays in the partition's
//! pool and keeps its place in the buffer until it leaves, so that none is refused once its number has been passed.
//! Packets are held while regular traffic leaves space for them; where nothing may be lost, while they take no
//! headroom. Duplicates are copies of packets, do not count as buffered, and yield to regular traffic.

use selvedge_nic::REQUESTS;
use selvedge_telemetry::{DropReason, Fill, NetRtTotals, PacketKind};
use selvedge_transport::netrt::{
    DstTor, Flow, ForwardingDecision, Occupancy, Passing, Settings, SrcTor, Tracked, WINDOW,
};
use selvedge_units::{Bytes, Instant, Psn, Rate, mix64};
use selvedge_wire::netrt::Message;
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::psns;
use selvedge_wire::{Data, Ecn, Header, Packet, Repr};

use super::buffer::Queueing;
use super::descriptor::Descriptor;
use super::pool::Slot;
use super::port::Egress;
use crate::config::BufferConfig;
use crate::kernel::busy_ports::NEVER;
use crate::kernel::partition::Partition;
use crate::net::records::Record;

/// Both engines of one ToR.
pub(crate) struct Tor {
    pub(crate) src: SrcTor<Duplicate>,
    pub(crate) dst: DstTor<Descriptor>,
    /// Time of the timer.
    timer_at: u64,
    /// Messages sent.
    pub(crate) messages: u64,
    /// Headers of duplicates of RDMA packets, and unused places among them.
    headers: Vec<Headers>,
    free: Vec<u32>,
}

/// A copy of a packet.
#[derive(Clone, Copy)]
pub(crate) struct Duplicate {
    packet: Packet,
    /// Place of the headers of an application's packet.
    headers: Option<u32>,
}

/// Marker of NetRT among a switch's timers, in place of a port.
pub(crate) const TIMER: u32 = u32::MAX;

impl Tor {
    /// Creates the engines of a ToR whose links have these rates.
    pub(crate) fn new(settings: Settings, rates: Vec<Rate>) -> Self {
        let dst = DstTor::new(settings, rates.len());
        Self {
            src: SrcTor::new(settings, rates),
            dst,
            timer_at: NEVER,
            messages: 0,
            headers: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Keeps headers; returns their place.
    fn keep(&mut self, headers: Headers) -> u32 {
        if let Some(place) = self.free.pop() {
            self.headers[place as usize] = headers;
            return place;
        }
        self.headers.push(headers);
        self.headers.len() as u32 - 1
    }

    /// Adds the counters of this ToR to the totals.
    pub(crate) fn add_to(&self, totals: &mut NetRtTotals) {
        let (src, dst) = (self.src.stats(), self.dst.stats());
        totals.requests += dst.requests;
        totals.unfulfilled += src.unfulfilled;
        totals.retransmissions += src.retransmissions;
        totals.held += dst.held;
        totals.given_up += dst.given_up;
        totals.pauses += src.pauses;
        totals.messages += self.messages;
        let add = |fill: &mut Fill, occupancy: &Occupancy| {
            let (area, used) = occupancy.area();
            fill.add(Bytes::new(occupancy.peak()), area, used);
        };
        self.src.occupancy().for_each(|occupancy| add(&mut totals.pool, occupancy));
        self.dst.occupancy().iter().for_each(|occupancy| add(&mut totals.buffer, occupancy));
    }
}

/// Bytes that buffered packets leave free; duplicates and held packets share them.
#[derive(Clone, Copy)]
enum Room {
    /// Free bytes of one input's buffer.
    OfPort(u64),
    /// Free bytes of the whole switch's buffer.
    OfSwitch(u64),
    /// No limit that is known.
    Boundless,
}

/// Destination of an admitted packet for a host of this ToR, if it is in order.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Admission {
    /// Straight to its host: the packet needs no buffer.
    Through,
    /// In line: the packet has a place in the buffer.
    Line,
    /// The queue of its flow, where the packet gets its place.
    FlowQueue,
}

/// Role of a packet for the ToR that it passes.
enum Role {
    /// Data from one of the ToR's hosts into the fabric, and the PSNs that it takes.
    Leaving(Data, u32),
    /// Data from the fabric for one of the ToR's hosts, and the PSNs that it takes.
    Coming(Data, u32),
    /// Message for the ToR.
    Message(Message),
    /// Packet that does not concern the ToR.
    Other,
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Handles a packet that enters a switch through port `at`; returns whether it goes on like any other.
    pub(crate) fn pass_tor(&mut self, at: u32, descriptor: &Descriptor) -> bool {
        let switch = self.egress[at].owner;
        if self.egress[at].is_host || self.tors[switch].is_none() {
            return true;
        }
        match self.role(switch, descriptor) {
            Role::Leaving(data, psns) => {
                self.duplicate(switch, at, descriptor, &data, psns);
                true
            }
            Role::Coming(data, psns) => self.check_order(switch, at, descriptor, &data, psns),
            Role::Message(message) => {
                self.take_message(switch, descriptor, &message);
                false
            }
            Role::Other => true,
        }
    }

    fn role(&self, switch: u32, descriptor: &Descriptor) -> Role {
        let packet = self.pool.get(descriptor.slot);
        let here = self.switches[switch].facts.leaf;
        let from = self.fabric.attachment[packet.src.index()].leaf;
        match packet.repr {
            Repr::Data(data) if data.trimmed || from == descriptor.leaf => Role::Other,
            Repr::Data(data) if from == here || descriptor.leaf == here => match self.psns(descriptor.slot, &packet) {
                Some(psns) if from == here => Role::Leaving(data, psns),
                Some(psns) => Role::Coming(data, psns),
                None => Role::Other,
            },
            Repr::NetRt(message) if descriptor.leaf == here && from != here => Role::Message(message.message()),
            _ => Role::Other,
        }
    }

    /// Returns the PSNs that a data packet takes; `None` for answers to RDMA requests, which travel in the PSN space of
    /// the other direction, with gaps where other requests were: the NIC recovers them.
    fn psns(&self, slot: Slot, packet: &Packet) -> Option<u32> {
        if packet.slot != REQUESTS {
            return Some(1);
        }
        let headers = self.records.headers(slot);
        let length = headers.reth.map_or(0, |reth| reth.length);
        psns(headers.bth.opcode, length, u32::from(self.fabric.nic.mtu))
    }

    /// Keeps a duplicate of a packet that entered through a host's port.
    fn duplicate(&mut self, switch: u32, at: u32, descriptor: &Descriptor, data: &Data, psns: u32) {
        let packet = self.pool.get(descriptor.slot);
        let room = self.room(switch, at);
        let headers = (packet.slot == REQUESTS).then(|| self.records.headers(descriptor.slot));
        let Some(tor) = &mut self.tors[switch] else { return };
        let headers = headers.map(|headers| tor.keep(headers));
        let Tor { src, free, .. } = &mut **tor;
        let mut freed = |duplicate: Duplicate| free.extend(duplicate.headers);
        let room = match room {
            Room::OfPort(room) => room,
            Room::OfSwitch(room) => {
                src.yield_to(self.now, room, &mut freed);
                room - (src.kept() - src.kept_of(descriptor.port))
            }
            Room::Boundless => u64::MAX,
        };
        let passing = Passing {
            handle: Duplicate { packet, headers },
            bytes: u32::from(packet.frame),
            class: packet.class,
            port: descriptor.port,
            room,
            first: data.psn,
            psns,
        };
        src.on_data(self.now, flow_of(&packet), data.psn, &passing, &mut freed);
    }

    /// Passes a packet to the destination ToR's engine; returns whether it goes on like any other.
    fn check_order(&mut self, switch: u32, at: u32, descriptor: &Descriptor, data: &Data, psns: u32) -> bool {
        let room = self.room(switch, at);
        let flow = flow_of(&self.pool.get(descriptor.slot));
        let Some(tor) = &mut self.tors[switch] else { return true };
        let is_copy = descriptor.class == self.fabric.netrt_class;
        let mut descriptor = *descriptor;
        if is_copy {
            let first = || self.fabric.nic.data_classes.trailing_zeros() as u8;
            descriptor.class = tor.dst.class_of(flow).unwrap_or_else(first);
            self.pool.get_mut(descriptor.slot).class = descriptor.class;
        }
        let (bytes, class) = (u32::from(descriptor.frame), descriptor.class);
        let counts = self.lossless_room(switch, at, class);
        if is_copy && counts.is_some_and(|room| room < u64::from(bytes)) {
            // Pauses have not stopped the copy. The receiver's ToR will request it again.
            self.drop_packet(at, descriptor.slot, DropReason::Surplus);
            return false;
        }
        let Some(tor) = &mut self.tors[switch] else { return true };
        let here = tor.dst.occupancy()[usize::from(descriptor.exit)].bytes();
        let room = match (counts, room) {
            // Held packets must leave enough space for the peer's pause to end.
            (Some(room), _) => room.saturating_sub(self.fabric.xon_gap).saturating_add(here),
            (None, Room::OfPort(room)) => room.saturating_add(here).saturating_sub(tor.src.kept_of(descriptor.port)),
            (None, Room::OfSwitch(room)) => room.saturating_add(here).saturating_sub(tor.src.kept()),
            (None, Room::Boundless) => u64::MAX,
        };
        let Some(admission) = self.admit_to_host(switch, at, &descriptor) else { return false };
        let Some(tor) = &mut self.tors[switch] else { return true };
        // Queue pairs begin at 0, as the ToR has seen when they were set up; one far beyond that was forgotten since.
        let first = if data.psn.get() <= WINDOW { Psn::new(0) } else { data.psn };
        let passing = Passing { handle: descriptor, bytes, class, port: descriptor.exit, room, first, psns };
        match tor.dst.on_data(self.now, flow, data.psn, passing, is_copy) {
            ForwardingDecision::Forward => self.send_to_host(switch, at, &descriptor, admission),
            ForwardingDecision::Held if admission != Admission::Line => self.hold(switch, at, u64::from(bytes), class),
            ForwardingDecision::Held => {}
            ForwardingDecision::Drop => {
                if admission == Admission::Line {
                    self.release(switch, at, u64::from(bytes), class);
                }
                self.drop_packet(at, descriptor.slot, DropReason::Surplus);
            }
        }
        self.serve_tor(switch);
        false
    }

    /// Admits a packet that came through port `at` for a host of this switch to the buffer, or drops it.
    fn admit_to_host(&mut self, switch: u32, at: u32, packet: &Descriptor) -> Option<Admission> {
        let out = self.switches[switch].facts.first_port + u32::from(packet.exit);
        let port = &self.egress[out];
        if port.paused == Egress::DOWN {
            self.drop_packet(at, packet.slot, DropReason::LinkDown);
            return None;
        }
        if port.busy_until <= self.now && port.is_clear() {
            return Some(Admission::Through);
        }
        let Err(reason) = self.find_room(switch, at, out, packet) else { return Some(Admission::Line) };
        match self.fabric.queueing {
            Queueing::Fair(rules) if self.has_fair_room(out, packet, &rules) => return Some(Admission::FlowQueue),
            // Waiting packets have passed the order check, so the newest packet is cut.
            Queueing::Trimming(rules) => self.trim_newest(switch, at, out, packet, &rules),
            Queueing::Plain | Queueing::Fair(_) => self.drop_packet(at, packet.slot, reason),
        }
        None
    }

    /// Sends an admitted packet on to its host.
    fn send_to_host(&mut self, switch: u32, at: u32, packet: &Descriptor, admission: Admission) {
        let facts = self.switches[switch].facts;
        let out = facts.first_port + u32::from(packet.exit);
        match (admission, self.fabric.queueing) {
            (Admission::Through, _) => self.transmit(out, packet),
            (Admission::FlowQueue, Queueing::Fair(rules)) => self.join_flow(switch, at, out, packet, &rules),
            (Admission::FlowQueue | Admission::Line, _) => self.wait(&facts, at, out, packet),
        }
    }

    /// Handles a message from the ToR at the other end.
    fn take_message(&mut self, switch: u32, descriptor: &Descriptor, message: &Message) {
        let packet = self.pool.take(descriptor.slot);
        self.tally.delivered[PacketKind::NetRt] += 1;
        let Some(tor) = &mut self.tors[switch] else { return };
        match message {
            Message::Request(request) => {
                // The message comes from the flow's receiver.
                let flow = Flow { src: packet.dst, dst: packet.src, qp: packet.qp };
                if let Some(psn) = tor.src.on_request(self.now, flow, descriptor.exit, request) {
                    self.send_message(switch, flow, Message::Unfulfilled(psn));
                }
            }
            Message::Unfulfilled(psn) => tor.dst.on_unfulfilled(self.now, flow_of(&packet), *psn),
        }
        self.serve_tor(switch);
    }

    /// Handles the timer of a ToR.
    pub(crate) fn wake_tor(&mut self, switch: u32) {
        self.events += 1;
        let now = self.now;
        let Some(tor) = &mut self.tors[switch] else { return };
        if tor.timer_at == now.as_ps() {
            tor.timer_at = NEVER;
            tor.dst.handle_timeout(now);
            self.serve_tor(switch);
        }
    }

    /// Executes the requests of a ToR's engines, and sets its timer.
    fn serve_tor(&mut self, switch: u32) {
        let first = self.switches[switch].facts.first_port;
        while let Some(output) = self.tors[switch].as_mut().and_then(|tor| tor.dst.poll_output()) {
            match output {
                Tracked::Release(held) => self.forward_buffered(switch, first + u32::from(held.port), &held),
                Tracked::Discard(held) => {
                    let at = first + u32::from(held.port);
                    self.release(switch, at, u64::from(held.frame), held.class);
                    self.drop_packet(at, held.slot, DropReason::Surplus);
                }
                Tracked::Request(flow, request) => self.send_message(switch, flow, Message::Request(request)),
            }
        }
        let now = self.now;
        // Done before any copy is sent, so that a burst counts as a whole.
        self.pause_senders(switch);
        while let Some((port, duplicate)) = self.tors[switch].as_mut().and_then(|tor| tor.src.poll_transmit(now)) {
            self.send_copy(switch, port, duplicate);
        }
        self.pause_senders(switch);
        let Some(tor) = &mut self.tors[switch] else { return };
        let due = [tor.src.poll_timeout(), tor.dst.poll_timeout()].into_iter().flatten().min();
        let due = due.unwrap_or(Instant::NEVER).as_ps();
        if due < tor.timer_at {
            tor.timer_at = due.max(now.as_ps() + 1);
            let at = tor.timer_at;
            self.arm(switch, TIMER, at);
        }
    }

    fn pause_senders(&mut self, switch: u32) {
        while let Some((port, shall)) = self.tors[switch].as_mut().and_then(|tor| tor.src.poll_pause()) {
            let at = self.switches[switch].facts.first_port + u32::from(port);
            let classes = self.fabric.nic.data_classes;
            self.ingress[at].held_up = if shall { classes } else { 0 };
            self.note_pause_due(at);
            self.kick(at);
        }
    }

    /// Sends a duplicate of a packet that entered through `port`.
    fn send_copy(&mut self, switch: u32, port: u16, Duplicate { mut packet, headers }: Duplicate) {
        packet.class = self.fabric.netrt_class;
        if let Repr::Data(data) = &mut packet.repr {
            data.retransmission = true;
        }
        let headers = headers.zip(self.tors[switch].as_ref()).map(|(place, tor)| tor.headers[place as usize]);
        self.inject(switch, port, packet, headers);
    }

    /// Sends a message about `flow` to the ToR at its other end, with the flow's addresses.
    fn send_message(&mut self, switch: u32, flow: Flow, message: Message) {
        let (src, dst) = match message {
            Message::Request(_) => (flow.dst, flow.src),
            Message::Unfulfilled(_) => (flow.src, flow.dst),
        };
        let frame = Header::ROCE + Bytes::new(message.length() as u64);
        let packet = Packet {
            sent_at: self.now,
            src,
            dst,
            qp: flow.qp,
            slot: 0,
            entropy: mix64(u64::from(src.0) << 32 | u64::from(flow.qp.0)) as u32,
            frame: frame.get() as u16,
            class: self.fabric.netrt_class,
            ecn: Ecn::NotCapable,
            repr: Repr::NetRt(message.into()),
        };
        if let Some(tor) = &mut self.tors[switch] {
            tor.messages += 1;
        }
        self.inject(switch, self.fabric.attachment[src.index()].port, packet, None);
    }

    /// Adds a packet to a switch as if it had entered through `port`, unless regular traffic needs the buffer space.
    fn inject(&mut self, switch: u32, port: u16, packet: Packet, headers: Option<Headers>) {
        let slot = self.pool.put(packet);
        self.records.take_in(slot, None, headers);
        if !self.records.is_empty() {
            self.records.put(slot, Record::Nothing);
        }
        let to = self.fabric.attachment[packet.dst.index()];
        let descriptor = Descriptor { port, ..Descriptor::of(&packet, slot, to) };
        let at = self.switches[switch].facts.first_port + u32::from(port);
        if self.lossless_room(switch, at, packet.class).is_some_and(|room| room < u64::from(packet.frame)) {
            return self.drop_packet(at, slot, DropReason::Surplus);
        }
        self.forward(switch, at, &descriptor);
    }

    /// Returns the buffer space behind port `at` that regular traffic leaves.
    fn room(&self, switch: u32, at: u32) -> Room {
        let port = &self.ingress[at];
        match self.fabric.buffer {
            BufferConfig::SharedBuffer(_) => Room::OfSwitch(self.switches[switch].shared_free()),
            BufferConfig::InputQueued(_) if !self.accounting.is_plain => {
                let accounts = &self.accounts[at * self.classes];
                Room::OfPort(accounts.limits.most.saturating_sub(port.buffered))
            }
            BufferConfig::InputQueued(_) => Room::OfPort(self.extras[at].limits.most.saturating_sub(port.buffered)),
            // Queues of these switches belong to outputs: inputs limit nothing.
            BufferConfig::Trimming(_) | BufferConfig::FairQueued(_) => Room::Boundless,
        }
    }

    /// Returns whether port `at` belongs to a ToR with NetRT.
    pub(crate) fn is_at_tor(&self, at: u32) -> bool {
        let port = &self.egress[at];
        !port.is_host && self.tors.get(port.owner as usize).is_some_and(Option::is_some)
    }
}

fn flow_of(packet: &Packet) -> Flow {
    Flow { src: packet.src, dst: packet.dst, qp: packet.qp }
}
