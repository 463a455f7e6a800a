//! Switches event by event ([`Fabric`]), as real packets pass them, against the simulator, which visits a switch for a
//! whole window of time: what the hosts of a recorded run sent is sent again, at the same times, and reaches the same
//! hosts at the same times.

use selvedge_sim::Rack;
use selvedge_sim::config::{
    BalancingConfig, BufferConfig, DrillConfig, FairQueued, FlowletConfig, InputQueued, SharedBuffer, Trimming,
};
use selvedge_sim::record::{Chosen, Event, Focus, What};
use selvedge_sim::topology::Node;
use selvedge_switch::descriptor::{Attachment, Descriptor, Slot};
use selvedge_switch::{Fabric, NetRtPacket, Packets};
use selvedge_telemetry::{DropReason, PacketKind};
use selvedge_transport::netrt::Flow;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, QpNumber, Rng, Setting, mix64};
use selvedge_wire::netrt::Message;
use selvedge_wire::{Ecn, Header, Packet, Pause, Repr};

use crate::shortcuts::{one_of, scene};
use crate::support::Scene;

/// Memory of packets as engines see them.
struct Memory {
    packets: Vec<Packet>,
    free: Vec<Slot>,
    copies: Vec<Packet>,
    attachments: Vec<Attachment>,
}

impl Memory {
    fn put(&mut self, packet: Packet) -> Descriptor {
        let slot = self.free.pop().unwrap_or(self.packets.len() as Slot);
        if slot as usize == self.packets.len() {
            self.packets.push(packet);
        }
        self.packets[slot as usize] = packet;
        let at = |host: HostId| self.attachments.get(host.index()).copied().unwrap_or(Attachment::NONE);
        Descriptor { port: at(packet.src).port, ..Descriptor::of(&packet, slot, at(packet.dst)) }
    }

    fn take(&mut self, slot: Slot) -> Packet {
        self.free.push(slot);
        self.packets[slot as usize]
    }

    fn at(&self, slot: Slot) -> &Packet {
        &self.packets[slot as usize]
    }

    fn at_mut(&mut self, slot: Slot) -> &mut Packet {
        &mut self.packets[slot as usize]
    }
}

fn flow_of(packet: &Packet) -> Flow {
    Flow { src: packet.src, dst: packet.dst, qp: packet.qp }
}

impl Packets for Memory {
    fn name(&self, slot: Slot) -> u64 {
        self.at(slot).sent_at.as_ps()
    }
    fn kind(&self, slot: Slot) -> PacketKind {
        match self.at(slot).repr {
            Repr::Data(_) => PacketKind::Data,
            Repr::Pause(_) => PacketKind::Pause,
            Repr::NetRt(_) => PacketKind::NetRt,
            Repr::Cnp => PacketKind::Cnp,
            _ => PacketKind::Ack,
        }
    }
    fn flow_hash(&self, slot: Slot) -> u64 {
        let packet = self.at(slot);
        mix64(u64::from(packet.src.0) << 32 | u64::from(packet.qp.0)) ^ u64::from(packet.dst.0)
    }
    fn has_payload(&self, slot: Slot) -> bool {
        self.kind(slot) == PacketKind::Data
    }
    fn discard(&mut self, slot: Slot) {
        self.take(slot);
    }
    fn mark(&mut self, slot: Slot) {
        self.at_mut(slot).ecn = Ecn::Marked;
    }
    fn set_class(&mut self, slot: Slot, class: u8) {
        self.at_mut(slot).class = class;
    }
    fn trim(&mut self, slot: Slot, class: u8) -> Option<u16> {
        let packet = self.at_mut(slot);
        packet.class = class;
        packet.trim().then_some(packet.frame)
    }
    fn take_pause(&mut self, slot: Slot) -> Option<Pause> {
        if let Repr::Pause(pause) = self.take(slot).repr { Some(pause) } else { None }
    }
    fn put_pause(&mut self, now: Instant, pause: Pause) -> Descriptor {
        let nobody = HostId(u32::MAX);
        let frame = Header::MINIMUM_FRAME.get() as u16;
        self.put(Packet { sent_at: now, src: nobody, dst: nobody, frame, repr: Repr::Pause(pause), ..Packet::BLANK })
    }
    fn netrt(&self, slot: Slot) -> NetRtPacket {
        let packet = self.at(slot);
        let from = self.attachments[packet.src.index()].leaf;
        match packet.repr {
            Repr::Data(data) if !data.trimmed => {
                NetRtPacket::Data { flow: flow_of(packet), psn: data.psn, psns: Some(1), from }
            }
            Repr::NetRt(_) => NetRtPacket::Message { from },
            _ => NetRtPacket::Other,
        }
    }
    fn keep(&mut self, slot: Slot) -> u32 {
        self.copies.push(*self.at(slot));
        self.copies.len() as u32 - 1
    }
    fn forget(&mut self, _: u32) {}
    fn put_copy(&mut self, copy: u32, class: u8) -> Descriptor {
        let mut packet = Packet { class, ..self.copies[copy as usize] };
        if let Repr::Data(data) = &mut packet.repr {
            data.retransmission = true;
        }
        self.put(packet)
    }
    fn take_message(&mut self, slot: Slot) -> Option<(Flow, Message)> {
        let packet = self.take(slot);
        if let Repr::NetRt(message) = packet.repr { Some((flow_of(&packet), message.message())) } else { None }
    }
    fn put_message(&mut self, now: Instant, flow: Flow, message: Message, class: u8) -> Descriptor {
        let frame = (Header::ROCE + Bytes::new(message.length() as u64)).get() as u16;
        let entropy = mix64(u64::from(flow.src.0) << 32 | u64::from(flow.qp.0)) as u32;
        let Flow { src, dst, qp: QpNumber(qp) } = flow;
        let qp = QpNumber(qp);
        self.put(Packet {
            sent_at: now,
            src,
            dst,
            qp,
            entropy,
            frame,
            class,
            repr: Repr::NetRt(message.into()),
            ..Packet::BLANK
        })
    }
}

/// Arrival of a packet at its host.
type Arrival = (Instant, HostId, Packet);

/// Returns the arrivals of a recorded run at hosts, and the packets that hosts sent.
fn recorded(events: &[Event]) -> (Vec<Arrival>, Vec<Arrival>) {
    let is_lost = |place: usize, lost: &Packet| {
        let after = events[place + 1..].iter().take_while(|event| event.at == events[place].at);
        after.filter(|event| event.node == events[place].node).any(|event| {
            matches!(event.what, What::Dropped { packet, reason, .. } if packet == *lost
                && [DropReason::LinkLoss, DropReason::Corrupt, DropReason::LinkDown].contains(&reason))
        })
    };
    let (mut sent, mut arrived) = (Vec::new(), Vec::new());
    for (place, event) in events.iter().enumerate() {
        let Node::Host(host) = event.node else { continue };
        match event.what {
            What::Sent { packet, .. } => sent.push((event.at, host, packet)),
            What::Arrived { packet, .. } if !matches!(packet.repr, Repr::Pause(_)) && !is_lost(place, &packet) => {
                arrived.push((event.at, host, packet));
            }
            _ => {}
        }
    }
    (sent, arrived)
}

/// Sends the packets of a recorded run event by event, and compares arrivals and counters.
fn compare(scene: &Scene) {
    let focus = Focus { ports: Chosen::All, pauses: true, ..Focus::default() };
    let (outcome, events) = scene.record_unchecked(&focus);
    let (sent, expected) = recorded(&events);
    let end = outcome.record.end;
    let Rack { switches, losses, attachments, mut changes, .. } = scene.rack();
    let memory = Memory { packets: Vec::new(), free: Vec::new(), copies: Vec::new(), attachments };
    let mut fabric = Fabric::new(switches, losses, memory);
    let mut arrived: Vec<Arrival> = Vec::new();
    let mut sent = sent.into_iter().peekable();
    loop {
        let next = sent.peek().map_or(end, |(at, ..)| *at);
        while let Some(change) = changes.pop_if(|change| change.at <= next) {
            change.ports.iter().for_each(|&(port, down)| fabric.set_down(change.at, port.0, down));
            fabric.set_forwarding(change.forwarding);
        }
        match sent.next() {
            Some((at, host, packet)) => {
                let descriptor = fabric.packets_mut().put(packet);
                fabric.handle_packet(at, host.0, &descriptor);
                assert_eq!(fabric.backlog(host.0), 0, "a host sends where its link is free and not paused");
            }
            None => fabric.handle_timeout(end),
        }
        while let Some(delivery) = fabric.poll_transmit() {
            let packet = fabric.packets_mut().take(delivery.packet.slot);
            arrived.push((delivery.at, HostId(delivery.host), packet));
        }
        if next == end && sent.peek().is_none() {
            break;
        }
    }
    // The run ends in a window that other hosts have not finished.
    let order = |(at, host, packet): &Arrival| (*at, *host, packet.sent_at);
    let until = |all: Vec<Arrival>| {
        let mut all: Vec<_> = all.into_iter().filter(|(at, ..)| *at < end).collect();
        all.sort_by_key(order);
        all
    };
    let (arrived, expected) = (until(arrived), until(expected));
    for (n, (found, expected)) in arrived.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "arrival {n}");
    }
    assert_eq!(arrived.len(), expected.len());
    assert_eq!(fabric.marks() > 0, outcome.record.ecn_marks > 0);
}

/// Returns a scene of [`scene`] with switches of another kind.
fn other_switches(seed: u64) -> Scene {
    let mut random = Rng::stream(seed, Domain::Impairment, 1);
    let rng = &mut random;
    let mut scene = scene(seed);
    let switch = &mut scene.config.switch;
    switch.buffer = match rng.below(5) {
        0 => BufferConfig::SharedBuffer(SharedBuffer { total: Bytes::from_kb(300), ..SharedBuffer::default() }),
        1 => BufferConfig::Trimming(Trimming::default()),
        2 => BufferConfig::FairQueued(FairQueued { queues: 8, ..FairQueued::default() }),
        3 => BufferConfig::InputQueued(InputQueued {
            crossbar_speed_up: Setting::Value(1.5),
            per_port: Setting::Value(Bytes::from_kb(100)),
            ..InputQueued::default()
        }),
        _ => switch.buffer,
    };
    if !matches!(switch.buffer, BufferConfig::SharedBuffer(_) | BufferConfig::InputQueued(_)) {
        switch.pfc.enabled = false;
    }
    let flowlet = FlowletConfig { gap: Setting::Value(Duration::from_us(3)), ..FlowletConfig::default() };
    let kinds = [
        BalancingConfig::Ecmp,
        BalancingConfig::Spray,
        BalancingConfig::Drill(DrillConfig::default()),
        BalancingConfig::Flowlet(flowlet),
    ];
    switch.balancing = one_of(rng, &kinds);
    scene
}

#[test]
fn packets_arrive_as_in_the_simulator() {
    for seed in 0..60 {
        eprintln!("scene {seed}");
        compare(&scene(seed));
    }
}

#[test]
fn packets_arrive_as_in_the_simulator_whatever_the_switches() {
    for seed in 100..160 {
        eprintln!("scene {seed}");
        compare(&other_switches(seed));
    }
}
