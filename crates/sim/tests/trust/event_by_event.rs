//! Switches event by event ([`Fabric`]), as real packets pass them, against the simulator, which visits a switch for a
//! whole window of time: what the hosts of a recorded run sent is sent again, at the same times, and reaches the same
//! hosts at the same times. An observer of the switches, of which recordings of real packets are made, sees the events
//! that the simulator records.

use selvedge_sim::config::{
    BalancingConfig, BufferConfig, DrillConfig, FairQueued, FlowQueues, FlowletConfig, InputQueued, SharedBuffer,
    Trimming,
};
use selvedge_sim::fault::Affected;
use selvedge_sim::record::{Chosen, Event, Focus, What};
use selvedge_sim::topology::Node;
use selvedge_switch::descriptor::{Descriptor, Slot};
use selvedge_switch::{Fabric, FabricObserver, Note, Switches};
use selvedge_telemetry::DropReason;
use selvedge_units::{Bytes, Chance, Domain, Duration, HostId, Instant, PortId, Rng, Setting};
use selvedge_wire::{Ecn, Packet, Repr};

use crate::packet_memory::Memory;
use crate::shortcuts::{one_of, scene};
use crate::support::{Outcome, Scene, lose};

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

/// Event at a port of a switch.
type Seen = (Instant, PortId, Kind);

/// Kind of an event, with what both worlds tell of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Sent(Name, Duration),
    Arrived(Name),
    Queued(Name, PortId),
    Trimmed(Name),
    Dropped(Name, DropReason),
    Paused(u8),
    Link(bool),
    Filled,
}

/// Packet: the time at which it was sent, its ends, its bytes, and whether it is marked.
type Name = (Instant, HostId, HostId, u16, bool);

fn name(packet: &Packet) -> Name {
    let is_marked = packet.ecn == Ecn::Marked;
    match packet.repr {
        // Both worlds make pauses of their own.
        Repr::Pause(_) => (Instant::ZERO, HostId(0), HostId(0), packet.frame, is_marked),
        _ => (packet.sent_at, packet.src, packet.dst, packet.frame, is_marked),
    }
}

/// Returns the events of a recorded run at switches.
fn at_switches(events: &[Event]) -> Vec<Seen> {
    let of_switches = events.iter().filter(|event| matches!(event.node, Node::Switch(_)));
    let seen = of_switches.filter_map(|event| {
        let (port, kind) = match event.what {
            What::Sent { port, packet, serialisation, .. } => (port, Kind::Sent(name(&packet), serialisation)),
            What::Arrived { port, packet, .. } => (port, Kind::Arrived(name(&packet))),
            What::Queued { port, packet, ingress, .. } => (port, Kind::Queued(name(&packet), ingress)),
            What::Trimmed { port, packet, .. } => (port, Kind::Trimmed(name(&packet))),
            What::Dropped { port, packet, reason } => (port, Kind::Dropped(name(&packet), reason)),
            What::Paused { port, classes } => (port, Kind::Paused(classes)),
            What::Link { port, up } => (port, Kind::Link(up)),
            What::Filled { port, .. } => (port, Kind::Filled),
            _ => return None,
        };
        Some((event.at, port, kind))
    });
    seen.collect()
}

/// Observer that keeps the events at switches.
#[derive(Default)]
struct Tape(Vec<Seen>);

impl FabricObserver<Memory> for Tape {
    const LISTENS: bool = true;

    fn on_entered(&mut self, _: &Memory, _: &Switches, _: u32, _: &Descriptor) {}
    fn on_made(&mut self, _: &Descriptor, _: Option<u32>) {}
    fn on_kept(&mut self, _: Slot, _: u32) {}
    fn on_marked(&mut self, _: Slot) {}
    fn on_class(&mut self, _: Slot, _: u8) {}

    fn on_dropped(&mut self, packets: &Memory, net: &Switches, at: u32, slot: Slot, reason: DropReason) {
        if !net.egress[at].is_host {
            self.0.push((net.now, net.extras[at].id, Kind::Dropped(name(&packets.get(slot)), reason)));
        }
    }

    fn on_note(&mut self, packets: &Memory, net: &Switches, note: Note<'_>) {
        let name = |slot| name(&packets.get(slot));
        let (port, kind) = match note {
            Note::Sent { at, slot, serialisation } => (at, Kind::Sent(name(slot), serialisation)),
            Note::Arrived { at, slot } => (at, Kind::Arrived(name(slot))),
            Note::Queued { at, out, slot } => (out, Kind::Queued(name(slot), net.extras[at].id)),
            Note::Trimmed { out, before, .. } => (out, Kind::Trimmed(name(before.slot))),
            Note::Paused { at } => (at, Kind::Paused(net.egress[at].paused)),
            Note::Link { at, up } => (at, Kind::Link(up)),
            Note::Filled { at, .. } => (at, Kind::Filled),
        };
        if !net.egress[port].is_host {
            self.0.push((net.now, net.extras[port].id, kind));
        }
    }
}

impl Kind {
    /// Number of kinds.
    const COUNT: usize = 8;

    fn index(self) -> usize {
        match self {
            Self::Sent(..) => 0,
            Self::Arrived(_) => 1,
            Self::Queued(..) => 2,
            Self::Trimmed(_) => 3,
            Self::Dropped(..) => 4,
            Self::Paused(_) => 5,
            Self::Link(_) => 6,
            Self::Filled => 7,
        }
    }
}

/// Sends the packets of a recorded run event by event, and compares arrivals, events at switches and counters. Adds the
/// number of events of each kind to `counts`.
fn compare(scene: &Scene, counts: &mut [u64; Kind::COUNT]) -> Outcome {
    let focus = Focus { ports: Chosen::All, pauses: true, ..Focus::default() };
    let (outcome, events) = scene.record_unchecked(&focus);
    let (sent, expected) = recorded(&events);
    let end = outcome.record.end;
    let parts = scene.fabric_parts();
    let memory = Memory::new(parts.attachments.clone());
    let mut fabric = Fabric::observed(parts, memory, Tape::default());
    let mut arrived: Vec<Arrival> = Vec::new();
    let mut sent = sent.into_iter().peekable();
    loop {
        let next = sent.peek().map_or(end, |(at, ..)| *at);
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
    let in_order = |mut seen: Vec<Seen>| {
        seen.retain(|(at, ..)| *at < end);
        seen.sort_unstable();
        // The simulator tells of a full input once for each output.
        seen.dedup_by(|a, b| a == b && a.2 == Kind::Filled);
        seen
    };
    let (seen, expected) = (in_order(std::mem::take(&mut fabric.observer_mut().0)), in_order(at_switches(&events)));
    for (n, (found, expected)) in seen.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "event {n} at switches");
    }
    assert_eq!(seen.len(), expected.len());
    seen.iter().for_each(|(.., kind)| counts[kind.index()] += 1);
    assert_eq!(fabric.marks() > 0, outcome.record.ecn_marks > 0);
    // The rest arrives, or is dropped.
    while let Some(time) = fabric.poll_timeout() {
        fabric.handle_timeout(time);
        while let Some(delivery) = fabric.poll_transmit() {
            fabric.packets_mut().take(delivery.packet.slot);
        }
    }
    assert_eq!(fabric.packets().len(), 0);
    outcome
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

/// Returns a scene with flows of four priorities, most of which share outputs by weight, and with switches that trim,
/// queue fairly, do both, or neither.
fn shared_by_weight(seed: u64) -> Scene {
    let mut random = Rng::stream(seed, Domain::Impairment, 2);
    let rng = &mut random;
    let mut scene = scene(seed);
    let small = Setting::Value(Bytes::new(12_000 + 1_000 * rng.below(20)));
    let per_flow = one_of(rng, &[Setting::Off, Setting::Value(Bytes::new(9_000))]);
    let flows = FlowQueues { queues: 1 + rng.below(8) as u32, per_flow, ..FlowQueues::default() };
    let trimming = Trimming { packets: 2 + rng.below(8) as u32, ..Trimming::default() };
    let switch = &mut scene.config.switch;
    switch.buffer = match rng.below(8) {
        0 => BufferConfig::SharedBuffer(SharedBuffer { total: Bytes::from_kb(300), ..SharedBuffer::default() }),
        1 => switch.buffer,
        2 => BufferConfig::FairQueued(FairQueued { queues: 8, per_port: small, ..FairQueued::default() }),
        3 => BufferConfig::Trimming(trimming),
        _ => BufferConfig::Trimming(Trimming { flow_queues: Some(flows), ..trimming }),
    };
    if !matches!(switch.buffer, BufferConfig::SharedBuffer(_) | BufferConfig::InputQueued(_)) {
        switch.pfc.enabled = false;
    }
    let kinds = [[0; 8], [1, 1, 1, 1, 0, 0, 0, 0], [5, 0, 1, 3, 0, 0, 0, 0], [1, 2, 40, 0, 0, 0, 0, 0]];
    switch.weights = one_of(rng, &kinds);
    for flow in &mut scene.list.flows {
        flow.priority = Some(rng.below(4) as u8);
    }
    scene
}

#[test]
fn packets_arrive_as_in_the_simulator_where_flows_and_classes_take_turns() {
    let mut counts = [0; Kind::COUNT];
    for seed in 300..400 {
        eprintln!("scene {seed}");
        compare(&shared_by_weight(seed), &mut counts);
    }
    assert!(counts.iter().all(|count| *count > 10), "each kind of event was compared: {counts:?}");
}

#[test]
fn packets_arrive_as_in_the_simulator_with_netrt() {
    let mut copies = 0;
    for seed in 200..245 {
        eprintln!("scene {seed}");
        let mut scene = if seed < 230 { other_switches(seed) } else { shared_by_weight(seed) };
        scene.config.switch.netrt.enabled = true;
        lose(&mut scene.config, Affected::All, Chance::ratio(1, 200));
        copies += compare(&scene, &mut [0; Kind::COUNT]).record.netrt.retransmissions;
    }
    assert!(copies > 100, "{copies}");
}

#[test]
fn packets_arrive_as_in_the_simulator() {
    for seed in 0..60 {
        eprintln!("scene {seed}");
        compare(&scene(seed), &mut [0; Kind::COUNT]);
    }
}

#[test]
fn packets_arrive_as_in_the_simulator_whatever_the_switches() {
    let mut counts = [0; Kind::COUNT];
    for seed in 100..160 {
        eprintln!("scene {seed}");
        compare(&other_switches(seed), &mut counts);
    }
    assert!(counts.iter().all(|count| *count > 10), "each kind of event was compared: {counts:?}");
}
