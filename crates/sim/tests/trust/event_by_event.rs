//! Switches event by event ([`Fabric`]), as real packets pass them, against the simulator, which visits a switch for a
//! whole window of time: what the hosts of a recorded run sent is sent again, at the same times, and reaches the same
//! hosts at the same times.

use selvedge_sim::config::{
    BalancingConfig, BufferConfig, DrillConfig, FairQueued, FlowletConfig, InputQueued, SharedBuffer, Trimming,
};
use selvedge_sim::fault::{Affected, Direction, LossConfig, LossModel, RandomLoss};
use selvedge_sim::record::{Chosen, Event, Focus, What};
use selvedge_sim::topology::Node;
use selvedge_switch::Fabric;
use selvedge_telemetry::DropReason;
use selvedge_units::{Bytes, Chance, Domain, Duration, HostId, Instant, Rng, Setting};
use selvedge_wire::{Packet, Repr};

use crate::packet_memory::Memory;
use crate::shortcuts::{one_of, scene};
use crate::support::{Outcome, Scene};

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
fn compare(scene: &Scene) -> Outcome {
    let focus = Focus { ports: Chosen::All, pauses: true, ..Focus::default() };
    let (outcome, events) = scene.record_unchecked(&focus);
    let (sent, expected) = recorded(&events);
    let end = outcome.record.end;
    let parts = scene.fabric_parts();
    let memory = Memory::new(parts.attachments.clone());
    let mut fabric = Fabric::new(parts, memory);
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

#[test]
fn packets_arrive_as_in_the_simulator_with_netrt() {
    let mut copies = 0;
    for seed in 200..230 {
        eprintln!("scene {seed}");
        let mut scene = other_switches(seed);
        scene.config.switch.netrt.enabled = true;
        scene.config.loss.push(LossConfig {
            link: "all".parse().unwrap(),
            direction: Direction::Both,
            packets: Affected::All,
            model: LossModel::Random(RandomLoss { rate: Chance::ratio(1, 200) }),
        });
        copies += compare(&scene).record.netrt.retransmissions;
    }
    assert!(copies > 100, "{copies}");
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
