//! Function that the fuzz target `switches` calls, so that `cargo test` can replay its corpus.

mod packet_memory;

use std::collections::BTreeSet;

use selvedge_sim::Simulation;
use selvedge_sim::config::{
    BalancingConfig, BufferConfig, DrillConfig, FairQueued, FlowQueues, FlowletConfig, InputQueued, SharedBuffer,
    SwitchConfig, Trimming,
};
use selvedge_sim::fault::{Affected, Direction, LossConfig, LossModel, RandomLoss};
use selvedge_sim::topology::{Chain, Graph, LeafSpine, LinkConfig};
use selvedge_switch::{Fabric, Packets};
use selvedge_testkit::Script;
use selvedge_units::{Bytes, Chance, Duration, HostId, Instant, Psn, QpNumber, Rate, Setting, Toggle};
use selvedge_wire::{Data, Ecn, Packet, Pause, Repr};

use self::packet_memory::Memory;

fn link(script: &mut Script<'_>) -> LinkConfig {
    let rates = [1, 10, 25, 100].map(Rate::from_gbps);
    let delays = [50, 600, 5_000, 50_000].map(Duration::from_ns);
    let byte = usize::from(script.byte());
    LinkConfig { rate: rates[byte % 4], delay: delays[byte / 4 % 4] }
}

fn graph(script: &mut Script<'_>) -> Graph {
    let (host_link, inner) = (link(script), link(script));
    let graph = if script.byte() & 1 == 0 {
        let topology =
            LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, host_link, spine_link: inner, parallel_links: 1 };
        topology.build()
    } else {
        Chain { switches: 3, hosts_per_end: 2, hosts_per_inner: 1, host_link, switch_link: inner }.build()
    };
    graph.expect("a valid network")
}

fn switch(script: &mut Script<'_>) -> SwitchConfig {
    let mut switch = SwitchConfig::default();
    let small = Bytes::new(2_000 + 100 * u64::from(script.byte()));
    switch.buffer = match script.byte() % 6 {
        0 => BufferConfig::SharedBuffer(SharedBuffer { total: small * 8, ..SharedBuffer::default() }),
        1 => {
            let shape = script.byte();
            let flows = FlowQueues {
                queues: 1 + u32::from(shape / 8 % 4),
                per_flow: if shape & 128 == 0 { Setting::Off } else { Setting::Value(small) },
                ..FlowQueues::default()
            };
            BufferConfig::Trimming(Trimming {
                packets: 1 + u32::from(shape % 8),
                flow_queues: (shape & 64 != 0).then_some(flows),
                ..Trimming::default()
            })
        }
        2 => BufferConfig::FairQueued(FairQueued {
            per_port: Setting::Value(small),
            queues: 1 + u32::from(script.byte() % 8),
            ..FairQueued::default()
        }),
        3 => BufferConfig::InputQueued(InputQueued {
            crossbar_speed_up: Setting::Value(1.0 + f64::from(script.byte()) / 100.0),
            per_port: Setting::Value(small),
            ..InputQueued::default()
        }),
        _ => BufferConfig::InputQueued(InputQueued { per_port: Setting::Value(small), ..InputQueued::default() }),
    };
    let features = script.byte();
    let has_inputs = matches!(switch.buffer, BufferConfig::SharedBuffer(_) | BufferConfig::InputQueued(_));
    switch.pfc.enabled = features & 1 != 0 && has_inputs;
    switch.pfc.headroom = Setting::Value(Bytes::new(small.get() / 2));
    // Short pauses are refreshed so often that a script would have no end.
    switch.pfc.quanta = 300 + 200 * u16::from(script.byte());
    switch.ecn.enabled = if features & 2 != 0 { Toggle::On } else { Toggle::Off };
    switch.ecn.k_min = Setting::Value(Bytes::new(500));
    switch.ecn.k_max = Setting::Value(Bytes::new(3_000));
    let has_crossbar = matches!(switch.buffer, BufferConfig::InputQueued(own) if own.crossbar().is_some());
    switch.netrt.enabled = features & 4 != 0 && !has_crossbar;
    if features & 8 != 0 && !has_crossbar {
        switch.weights[..6].fill(1 + u16::from(features / 16));
        switch.weights[0] = 1;
    }
    switch.balancing = match script.byte() % 4 {
        0 => BalancingConfig::Ecmp,
        1 => BalancingConfig::Spray,
        2 => BalancingConfig::Drill(DrillConfig::default()),
        _ => BalancingConfig::Flowlet(FlowletConfig::default()),
    };
    switch
}

/// Builds switches and lets hosts send anything, with links that fail, as `bytes` say. Each packet is delivered, or
/// dropped with a reason; what switches made and buffered is gone in the end.
///
/// # Panics
/// If one of that does not hold.
pub(crate) fn torment_switches(bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let graph = graph(&mut script);
    let hosts = graph.hosts.len() as u32;
    let mut builder = Simulation::builder(graph).switch(switch(&mut script)).seed(script.byte().into());
    builder = builder.flow(HostId(0), HostId(1), Bytes::new(1), Duration::ZERO);
    if script.byte() & 1 != 0 {
        let model = LossModel::Random(RandomLoss { rate: Chance::ratio(script.byte().into(), 255) });
        let (link, direction) = ("all".parse().expect("a selector"), Direction::Both);
        builder = builder.loss(LossConfig { link, direction, packets: Affected::All, model });
    }
    // Scripts describe some switches that nobody can build.
    let Ok(simulation) = builder.build() else { return };
    let parts = simulation.fabric_parts().expect("the builder has checked it");
    let (switches, memory) = (&parts.switches, Memory::new(parts.attachments.clone()));
    let (classes, ports) = (switches.params.classes as u8, switches.egress.len() as u32);
    let peers: Vec<u32> = switches.egress.iter().map(|port| port.peer).collect();
    let is_netrt = !switches.tors.is_empty();
    let mut fabric = Fabric::new(parts, memory);
    let (mut now, mut seen) = (Instant::ZERO, BTreeSet::new());
    while script.left() > 0 {
        let action = script.byte();
        let host = u32::from(script.byte()) % hosts;
        match action % 16 {
            0 => {
                let at = u32::from(script.byte()) % ports;
                [at, peers[at as usize]].into_iter().for_each(|port| fabric.set_down(port, action < 0x40));
            }
            1 => now = fabric.poll_timeout().unwrap_or(now).max(now),
            2 => {
                let pause = Pause { classes: script.byte(), quanta: script.short() };
                let packet = fabric.packets_mut().put_pause(now, pause);
                fabric.handle_packet(now, host, &packet);
            }
            _ => {
                let packet = any_packet(&mut script, now, host, hosts, classes);
                let descriptor = fabric.packets_mut().put(packet);
                fabric.handle_packet(now, host, &descriptor);
            }
        }
        // Numbers of packets are times.
        now += Duration::from_ps(1 + u64::from(script.byte()).pow(3));
        fabric.handle_timeout(now);
        take(&mut fabric, &mut seen, is_netrt);
    }
    (0..ports).for_each(|port| fabric.set_down(port, false));
    let mut events = 0;
    while let Some(time) = fabric.poll_timeout() {
        fabric.handle_timeout(time);
        take(&mut fabric, &mut seen, is_netrt);
        events += 1;
        assert!(events < 1_000_000, "the last packet ends all activity");
    }
    assert_eq!(fabric.packets().len(), 0, "packets in memory that are nowhere");
    let switches = fabric.switches();
    for (at, (egress, ingress)) in switches.egress.iter().zip(switches.ingress.iter()).enumerate() {
        assert_eq!((ingress.buffered, egress.waiting), (0, 0), "port {at}");
    }
    assert!(switches.lines.iter().all(|line| line.bytes == 0));
    assert!(
        switches.switches.iter().all(|switch| switch.shared_free() == switch.shared_total || switch.shared_total == 0)
    );
}

/// Returns a packet of `host`, to any host, of any kind that hosts send.
fn any_packet(script: &mut Script<'_>, now: Instant, host: u32, hosts: u32, classes: u8) -> Packet {
    let kind = script.byte();
    let dst = (host + 1 + u32::from(script.byte()) % (hosts - 1)) % hosts;
    let payload = 1 + script.short() % 1_500;
    let psn = Psn::new(u32::from(script.byte() % 200));
    let data = Data { psn, payload, last: kind & 1 != 0, retransmission: false, trimmed: false };
    let (repr, frame) = if kind < 200 { (Repr::Data(data), 64 + payload) } else { (Repr::Cnp, 64) };
    Packet {
        sent_at: now,
        src: HostId(host),
        dst: HostId(dst),
        qp: QpNumber(u32::from(script.byte() % 3)),
        entropy: u32::from(script.short()) << 16,
        frame,
        class: script.byte() % classes,
        ecn: if kind & 2 != 0 { Ecn::Capable } else { Ecn::NotCapable },
        repr,
        ..Packet::BLANK
    }
}

/// Takes what has reached hosts.
fn take(fabric: &mut Fabric<Memory>, seen: &mut BTreeSet<(Instant, HostId)>, is_netrt: bool) {
    while let Some(delivery) = fabric.poll_transmit() {
        let packet = fabric.packets_mut().take(delivery.packet.slot);
        assert_eq!(packet.dst, HostId(delivery.host), "each packet reaches its own host");
        assert!(!matches!(packet.repr, Repr::Pause(_) | Repr::NetRt(_)), "these are for switches");
        // Only NetRT's switches send copies.
        assert!(seen.insert((packet.sent_at, packet.src)) || is_netrt, "{packet:?} arrived twice");
    }
}
