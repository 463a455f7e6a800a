//! NetRT in top-of-rack switches: the engines' view of packets, and the execution of their requests.
//!
//! Where NetRT is off, it costs nothing: arrivals at a ToR with NetRT take the slow path
//! ([`Ingress::slow_path`](crate::port::Ingress::slow_path)), which exists anyway. The outputs of such a ToR serve
//! packets in order of arrival, whatever the arbitration elsewhere: round-robin over the inputs through which packets
//! of one flow come would undo their order.
//!
//! The engines are part of the memory manager (section III-D2): a destination ToR admits a packet to the buffer first,
//! and checks the order of the admitted packets. A packet that finds no buffer space has not arrived: the next one
//! reveals the gap, and the missing packet is requested like any other. A packet that is held stays in the partition's
//! pool and keeps its place in the buffer until it leaves, so that none is refused once its number has been passed.
//! Packets are held while regular traffic leaves space for them; where nothing may be lost, while they take no
//! headroom. Duplicates are copies of packets, do not count as buffered, and yield to regular traffic.

use selvedge_telemetry::{DropReason, Fill, NetRtTotals};
use selvedge_transport::netrt::{
    DstTor, DstTorStats, Flow, ForwardingDecision, Occupancy, Passing, Settings, SrcTor, SrcTorStats, Tracked, WINDOW,
};
use selvedge_units::{Bytes, Instant, Psn, Rate};
use selvedge_wire::netrt::Message;

use crate::buffer::Buffer;
use crate::busy_ports::NEVER;
use crate::descriptor::Descriptor;
use crate::environment::{Environment, NetRtPacket};
use crate::port::Egress;
use crate::switches::{Switches, Way};

/// Both engines of one ToR. The source ToR's copies belong to the environment.
pub struct Tor {
    settings: Settings,
    src: SrcTor<u32>,
    dst: DstTor<Descriptor>,
    /// Time of the timer.
    timer_at: u64,
    /// Messages sent.
    messages: u64,
}

/// Marker of NetRT among a switch's timers, in place of a port.
pub const TIMER: u32 = u32::MAX;

impl Tor {
    /// Creates the engines of a ToR whose links have these rates.
    pub fn new(settings: Settings, rates: Vec<Rate>) -> Self {
        let dst = DstTor::new(settings, rates.len());
        Self { settings, src: SrcTor::new(settings, rates), dst, timer_at: NEVER, messages: 0 }
    }

    /// Lets a jump of PSNs beyond the window begin a flow anew ([`Settings::restarting`]), for networks of real queue
    /// pairs: switches do not see when these are set up and reused. To be called before any packet passes.
    pub fn restart_flows(&mut self) {
        self.settings = self.settings.restarting();
        self.dst = DstTor::new(self.settings, self.dst.occupancy().len());
    }

    /// Returns the counters of the source ToR.
    pub fn source(&self) -> &SrcTorStats {
        self.src.stats()
    }
    /// Returns the counters of the destination ToR.
    pub fn destination(&self) -> &DstTorStats {
        self.dst.stats()
    }
    /// Returns the number of messages sent to other ToRs.
    pub fn messages(&self) -> u64 {
        self.messages
    }
    /// Returns the occupancy of the duplicate pool of each port.
    pub fn pools(&self) -> impl Iterator<Item = &Occupancy> {
        self.src.occupancy()
    }
    /// Returns the occupancy of each port's buffer of held packets.
    pub fn buffers(&self) -> &[Occupancy] {
        self.dst.occupancy()
    }

    /// Adds the counters of this ToR to the totals.
    pub fn add_to(&self, totals: &mut NetRtTotals) {
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

/// Flow of a data packet, its number, and how many numbers it takes.
#[derive(Clone, Copy)]
struct Numbered {
    flow: Flow,
    psn: Psn,
    psns: u32,
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

impl Switches {
    /// Handles a packet that enters a switch through port `at`; returns whether it goes on like any other.
    pub fn pass_tor<E: Environment>(&mut self, env: &mut E, at: u32, descriptor: &Descriptor) -> bool {
        let switch = self.egress[at].owner;
        if self.tors[switch].is_none() {
            return true;
        }
        let (here, to) = (self.switches[switch].facts.leaf, descriptor.leaf);
        match env.netrt(descriptor.slot) {
            NetRtPacket::Data { flow, psn, psns: Some(psns), from } if from == here && to != here => {
                self.duplicate(env, switch, at, descriptor, Numbered { flow, psn, psns });
                true
            }
            NetRtPacket::Data { flow, psn, psns: Some(psns), from } if to == here && from != here => {
                self.check_order(env, switch, at, descriptor, Numbered { flow, psn, psns })
            }
            NetRtPacket::Message { from } if to == here && from != here => {
                self.take_message(env, switch, descriptor);
                false
            }
            _ => true,
        }
    }

    /// Keeps a duplicate of a packet that entered through a host's port.
    fn duplicate<E: Environment>(
        &mut self,
        env: &mut E,
        switch: u32,
        at: u32,
        descriptor: &Descriptor,
        data: Numbered,
    ) {
        let room = self.room(switch, at);
        let Some(tor) = &mut self.tors[switch] else { return };
        let copy = env.keep(descriptor.slot);
        let src = &mut tor.src;
        let mut freed = |copy: u32| env.forget(copy);
        let room = match room {
            Room::OfPort(room) => room,
            Room::OfSwitch(room) => {
                src.yield_to(self.now, room, &mut freed);
                room - (src.kept() - src.kept_of(descriptor.port))
            }
            Room::Boundless => u64::MAX,
        };
        let passing = Passing {
            handle: copy,
            bytes: u32::from(descriptor.frame),
            class: descriptor.class,
            port: descriptor.port,
            room,
            first: data.psn,
            psns: data.psns,
        };
        src.handle_data(self.now, data.flow, data.psn, &passing, &mut freed);
    }

    /// Passes a packet to the destination ToR's engine; returns whether it goes on like any other.
    fn check_order<E: Environment>(
        &mut self,
        env: &mut E,
        switch: u32,
        at: u32,
        descriptor: &Descriptor,
        data: Numbered,
    ) -> bool {
        let room = self.room(switch, at);
        let Numbered { flow, psn, psns } = data;
        let Some(tor) = &mut self.tors[switch] else { return true };
        let is_copy = descriptor.class == self.params.netrt_class;
        let mut descriptor = *descriptor;
        if is_copy {
            let first = || self.params.data_classes.trailing_zeros() as u8;
            descriptor.class = tor.dst.class_of(flow).unwrap_or_else(first);
            env.set_class(descriptor.slot, descriptor.class);
        }
        let (bytes, class) = (u32::from(descriptor.frame), descriptor.class);
        let counts = self.lossless_room(switch, at, class);
        if is_copy && counts.is_some_and(|room| room < u64::from(bytes)) {
            // Pauses have not stopped the copy. The receiver's ToR will request it again.
            self.drop_packet(env, at, descriptor.slot, DropReason::Surplus);
            return false;
        }
        let Some(tor) = &mut self.tors[switch] else { return true };
        let here = tor.dst.occupancy()[usize::from(descriptor.exit)].bytes();
        let room = match (counts, room) {
            // Held packets must leave enough space for the peer's pause to end.
            (Some(room), _) => room.saturating_sub(self.params.xon_gap).saturating_add(here),
            (None, Room::OfPort(room)) => room.saturating_add(here).saturating_sub(tor.src.kept_of(descriptor.port)),
            (None, Room::OfSwitch(room)) => room.saturating_add(here).saturating_sub(tor.src.kept()),
            (None, Room::Boundless) => u64::MAX,
        };
        let Some(admission) = self.admit_to_host(env, switch, at, &descriptor) else { return false };
        let Some(tor) = &mut self.tors[switch] else { return true };
        // Queue pairs begin at 0, as the ToR has seen when they were set up; one far beyond that was forgotten since.
        let first = if psn.get() <= WINDOW { Psn::new(0) } else { psn };
        let passing = Passing { handle: descriptor, bytes, class, port: descriptor.exit, room, first, psns };
        match tor.dst.handle_data(self.now, flow, psn, passing, is_copy) {
            ForwardingDecision::Forward => self.send_to_host(env, switch, at, &descriptor, admission),
            ForwardingDecision::Held if admission != Admission::Line => self.hold(switch, at, u64::from(bytes), class),
            ForwardingDecision::Held => {}
            ForwardingDecision::Drop => {
                if admission == Admission::Line {
                    self.release(env, switch, at, u64::from(bytes), class);
                }
                self.drop_packet(env, at, descriptor.slot, DropReason::Surplus);
            }
        }
        self.serve_tor(env, switch);
        false
    }

    /// Admits a packet that came through port `at` for a host of this switch to the buffer, or drops it.
    fn admit_to_host<E: Environment>(
        &mut self,
        env: &mut E,
        switch: u32,
        at: u32,
        packet: &Descriptor,
    ) -> Option<Admission> {
        let out = self.switches[switch].facts.first_port + u32::from(packet.exit);
        let port = &self.egress[out];
        if port.paused == Egress::DOWN {
            self.drop_packet(env, at, packet.slot, DropReason::LinkDown);
            return None;
        }
        if port.busy_until <= self.now && port.is_clear() {
            return Some(Admission::Through);
        }
        let way = Way { switch, at, out };
        let Err(reason) = self.find_room(env, way, packet) else { return Some(Admission::Line) };
        if let Some(rules) = self.params.queueing.fair_for(packet.class)
            && !self.lines[self.line_of(out, packet.class)].is_empty()
            && self.has_fair_room(env, out, packet, rules)
        {
            return Some(Admission::FlowQueue);
        }
        match self.params.queueing.trims {
            // Waiting packets have passed the order check, so the newest packet is cut.
            Some(rules) => self.trim(env, way, packet, &rules),
            None => self.drop_packet(env, at, packet.slot, reason),
        }
        None
    }

    /// Sends an admitted packet on to its host.
    fn send_to_host<E: Environment>(
        &mut self,
        env: &mut E,
        switch: u32,
        at: u32,
        packet: &Descriptor,
        admission: Admission,
    ) {
        let facts = self.switches[switch].facts;
        let out = facts.first_port + u32::from(packet.exit);
        match (admission, self.params.queueing.fair_for(packet.class)) {
            (Admission::Through, _) => self.transmit(env, out, packet),
            (Admission::FlowQueue, Some(&rules)) => self.join_flow(env, Way { switch, at, out }, packet, &rules),
            (Admission::FlowQueue | Admission::Line, _) => self.wait(env, &facts, at, out, packet),
        }
    }

    /// Handles a message from the ToR at the other end.
    fn take_message<E: Environment>(&mut self, env: &mut E, switch: u32, descriptor: &Descriptor) {
        let Some((from, message)) = env.take_message(descriptor.slot) else { return };
        let Some(tor) = &mut self.tors[switch] else { return };
        match message {
            Message::Request(request) => {
                // The message comes from the flow's receiver.
                let flow = Flow { src: from.dst, dst: from.src, qp: from.qp };
                if let Some(psn) = tor.src.handle_request(self.now, flow, descriptor.exit, &request) {
                    self.send_message(env, switch, flow, Message::Unfulfilled(psn));
                }
            }
            Message::Unfulfilled(psn) => tor.dst.on_unfulfilled(self.now, from, psn),
        }
        self.serve_tor(env, switch);
    }

    /// Handles the timer of a ToR.
    pub fn wake_tor<E: Environment>(&mut self, env: &mut E, switch: u32) {
        self.events += 1;
        let now = self.now;
        let Some(tor) = &mut self.tors[switch] else { return };
        if tor.timer_at == now.as_ps() {
            tor.timer_at = NEVER;
            tor.dst.handle_timeout(now);
            self.serve_tor(env, switch);
        }
    }

    /// Executes the requests of a ToR's engines, and sets its timer.
    fn serve_tor<E: Environment>(&mut self, env: &mut E, switch: u32) {
        let first = self.switches[switch].facts.first_port;
        while let Some(output) = self.tors[switch].as_mut().and_then(|tor| tor.dst.poll_output()) {
            match output {
                Tracked::Release(held) => self.forward_buffered(env, switch, first + u32::from(held.port), &held),
                Tracked::Discard(held) => {
                    let at = first + u32::from(held.port);
                    self.release(env, switch, at, u64::from(held.frame), held.class);
                    self.drop_packet(env, at, held.slot, DropReason::Surplus);
                }
                Tracked::Request(flow, request) => self.send_message(env, switch, flow, Message::Request(request)),
            }
        }
        let now = self.now;
        // Done before any copy is sent, so that a burst counts as a whole.
        self.pause_senders(env, switch);
        while let Some((port, duplicate)) = self.tors[switch].as_mut().and_then(|tor| tor.src.poll_transmit(now)) {
            self.send_copy(env, switch, port, duplicate);
        }
        self.pause_senders(env, switch);
        let Some(tor) = &mut self.tors[switch] else { return };
        let due = [tor.src.poll_timeout(), tor.dst.poll_timeout()].into_iter().flatten().min();
        let due = due.unwrap_or(Instant::NEVER).as_ps();
        if due < tor.timer_at {
            tor.timer_at = due.max(now.as_ps() + 1);
            let at = tor.timer_at;
            self.arm(switch, TIMER, at);
        }
    }

    fn pause_senders<E: Environment>(&mut self, env: &mut E, switch: u32) {
        while let Some((port, shall)) = self.tors[switch].as_mut().and_then(|tor| tor.src.poll_pause()) {
            let at = self.switches[switch].facts.first_port + u32::from(port);
            let classes = self.params.data_classes;
            self.ingress[at].held_up = if shall { classes } else { 0 };
            self.note_pause_due(at);
            self.kick(env, at);
        }
    }

    /// Sends a copy of a packet that entered through `port`.
    fn send_copy<E: Environment>(&mut self, env: &mut E, switch: u32, port: u16, copy: u32) {
        let packet = env.put_copy(copy, self.params.netrt_class);
        self.inject(env, switch, &Descriptor { port, ..packet });
    }

    /// Sends a message about `flow` to the ToR at its other end, with the flow's addresses.
    fn send_message<E: Environment>(&mut self, env: &mut E, switch: u32, flow: Flow, message: Message) {
        let from = match message {
            Message::Request(_) => Flow { src: flow.dst, dst: flow.src, ..flow },
            Message::Unfulfilled(_) => flow,
        };
        if let Some(tor) = &mut self.tors[switch] {
            tor.messages += 1;
        }
        let packet = env.put_message(self.now, from, message, self.params.netrt_class);
        self.inject(env, switch, &packet);
    }

    /// Adds a packet to a switch as if it had entered through its port, unless regular traffic needs the buffer space.
    fn inject<E: Environment>(&mut self, env: &mut E, switch: u32, packet: &Descriptor) {
        let at = self.switches[switch].facts.first_port + u32::from(packet.port);
        if self.lossless_room(switch, at, packet.class).is_some_and(|room| room < u64::from(packet.frame)) {
            return self.drop_packet(env, at, packet.slot, DropReason::Surplus);
        }
        self.forward(env, switch, at, packet);
    }

    /// Returns the buffer space behind port `at` that regular traffic leaves.
    fn room(&self, switch: u32, at: u32) -> Room {
        let port = &self.ingress[at];
        match self.params.buffer {
            Buffer::Shared(_) => Room::OfSwitch(self.switches[switch].shared_free()),
            Buffer::PerInput if !self.params.accounting.is_plain => {
                let accounts = &self.accounts[at * self.params.classes];
                Room::OfPort(accounts.limits.most.saturating_sub(port.buffered))
            }
            Buffer::PerInput => Room::OfPort(self.extras[at].limits.most.saturating_sub(port.buffered)),
            // Queues of these switches belong to outputs: inputs limit nothing.
            Buffer::PerOutput => Room::Boundless,
        }
    }

    /// Returns whether port `at` belongs to a ToR with NetRT.
    pub fn is_at_tor(&self, at: u32) -> bool {
        let port = &self.egress[at];
        !port.is_host && self.tors.get(port.owner as usize).is_some_and(Option::is_some)
    }
}
