//! Priority flow control: nothing is dropped, nothing stops for ever, and the costs of pauses.

use selvedge_sim::config::{BufferConfig, LinkHeadroom, NicConfig, PfcConfig, SharedBuffer};
use selvedge_sim::fault::{Affected, Direction, DropList, LinkSelector, LossConfig, LossModel};
use selvedge_sim::topology::{Chain, FatTree, Graph};
use selvedge_sim::workload::Start;
use selvedge_sim::{SimConfig, port_infos};
use selvedge_telemetry::{DropReason, PortKind};
use selvedge_transport::recovery::go_back_n::Acks;
use selvedge_transport::recovery::irn::Timeouts;
use selvedge_units::{Bytes, Chance, Duration, Instant, Rate, Setting};

use crate::support::{Outcome, PAUSE_FRAME, Scene, Series, drops, link, lose, star};

fn fat_tree() -> Graph {
    FatTree { k: 4, link: link(40, 2_000) }.build().unwrap()
}

/// Returns a scene in which fifteen hosts send to the sixteenth.
fn incast(series: Series, size: u64) -> Scene {
    (1..16).fold(Scene::new(fat_tree(), series), |scene, host| scene.flow(host, 0, size, Duration::ZERO))
}

fn shared(total: u64) -> impl FnOnce(&mut SimConfig) {
    move |config| {
        let shared = SharedBuffer { total: Bytes::new(total), ..SharedBuffer::default() };
        config.switch.buffer = BufferConfig::SharedBuffer(shared);
    }
}

/// Returns the drops of data in switches. Spurious retransmissions that arrive after the queue pair has been closed are
/// not counted.
fn data_drops(outcome: &Outcome) -> u64 {
    outcome.record.data_drops.total() - drops(&outcome.record.data_drops, DropReason::UnknownQp)
}

#[test]
fn a_heavy_incast_loses_nothing() {
    for series in [Series::IrnPfc, Series::RocePfc] {
        for buffers in ["own", "tight", "shared"] {
            let mut scene = incast(series, 1_000_000);
            scene = match buffers {
                "own" => scene,
                "tight" => scene.buffer(Some(28_000)),
                _ => scene.with(shared(400_000)),
            };
            let outcome = scene.finish();
            assert_eq!(data_drops(&outcome), 0, "{series:?}, {buffers} buffers");
            assert_eq!(outcome.record.retransmissions, 0);
            // IRN's cap alone keeps 15 flows within 240 KB per input, if buffers are no smaller.
            if series == Series::RocePfc || buffers == "tight" {
                assert!(outcome.record.pause_frames > 0, "{series:?}, {buffers} buffers");
            }
        }
    }
}

#[test]
fn pauses_spread_upstream_to_the_hosts_and_their_time_is_counted() {
    let outcome = incast(Series::RocePfc, 1_000_000).finish();
    let infos = port_infos(&fat_tree());
    let paused = |wanted: PortKind| {
        let ports = outcome.record.ports.iter().zip(&infos).filter(|(_, info)| info.kind == wanted);
        ports.filter(|(port, _)| !port.paused.is_zero()).count()
    };
    assert!(paused(PortKind::Host) > 10, "hosts are paused: {}", paused(PortKind::Host));
    for tier in 0..3 {
        assert!(paused(PortKind::Switch { tier }) > 0, "switches of tier {tier} are paused");
    }
    for (port, info) in outcome.record.ports.iter().zip(&infos) {
        let peer = &outcome.record.ports[info.peer_id.index()];
        assert_eq!(port.paused.is_zero(), peer.pauses_sent == 0, "who is paused was told so: {}", info.node);
    }
    // A host sends or is paused, until its last packet waits in the fabric.
    for host in 1..16 {
        let port = &outcome.record.ports[host];
        let busy = Rate::from_gbps(40).time_for(Bytes::new(port.bytes.get() + port.frames * 20));
        let row = outcome.flows.iter().find(|row| row.src.index() == host).unwrap();
        let share = (port.paused + busy).as_ps() as f64 / row.fct().unwrap().as_ps() as f64;
        assert!((0.2..1.0).contains(&share), "{share} at host {host}");
    }
}

/// Returns a scene in which a host sends through a port that hardly drains, while another keeps its reverse direction
/// busy with full frames, so that pause frames wait as long as they can.
fn blocked(delay_ns: u64, phase_ns: u64) -> Scene {
    let graph = star(&[link(40, delay_ns), link(1, delay_ns), link(40, delay_ns)]);
    Scene::new(graph, Series::RocePfc).flow(0, 1, 80 * 1_024, Duration::ZERO).flow(
        2,
        0,
        80 * 1_024,
        Duration::from_ns(phase_ns),
    )
}

#[test]
fn headroom_is_enough_whatever_the_phase() {
    // Thresholds lie at every place within a frame, delays and the other direction at every place within a frame's
    // time.
    let rate = Rate::from_gbps(40);
    let mut drops_with_less = 0;
    for (delay, phase) in
        (1_000..1_120).step_by(10).flat_map(|delay| (0..220).step_by(20).map(move |phase| (delay, phase)))
    {
        for buffer in (40_000..41_100).step_by(109) {
            let outcome = blocked(delay, phase).buffer(Some(buffer)).finish();
            assert_eq!(data_drops(&outcome), 0, "delay {delay} ns, phase {phase} ns, buffer {buffer}");
            // X-OFF is sent at the same level, but there is room for a frame less behind that.
            let less = blocked(delay, phase).buffer(Some(buffer - 1_086)).with(|config| {
                let headroom = config.switch.pfc.headroom_on(rate, Duration::from_ns(delay), &config.nic);
                config.switch.pfc.headroom = Setting::Value(headroom - Bytes::new(1_086));
            });
            drops_with_less += data_drops(&less.finish());
        }
    }
    assert!(drops_with_less > 0, "the worst case was met, to less than a frame");
}

#[test]
fn headroom_of_a_shared_buffer_is_enough_whatever_the_phase() {
    for (delay, phase) in
        (1_000..1_120).step_by(20).flat_map(|delay| (0..220).step_by(20).map(move |phase| (delay, phase)))
    {
        for total in (100_000..117_400).step_by(1_609) {
            let outcome = blocked(delay, phase).with(shared(total)).finish();
            assert_eq!(data_drops(&outcome), 0, "delay {delay} ns, phase {phase} ns, buffer {total}");
            assert!(outcome.record.pause_frames > 0);
        }
    }
}

#[test]
fn headroom_of_a_shared_buffer_is_each_links_own() {
    let unlike = [link(40, 2_000), link(100, 2_001), link(40, 100)];
    let scene = Scene::new(star(&unlike), Series::RocePfc).with(shared(400_000));
    let outcome = scene.flow(0, 2, 3_000_000, Duration::ZERO).flow(1, 2, 3_000_000, Duration::ZERO).finish();
    assert_eq!(data_drops(&outcome), 0);
    assert!(outcome.record.pause_frames > 0);
}

#[test]
fn too_little_headroom_drops_for_real_and_says_so() {
    for (shared_buffer, series) in [(false, Series::IrnPfc), (true, Series::IrnPfc), (false, Series::RocePfc)] {
        let mut scene = incast(series, 500_000).irn(|irn| irn.bdp_cap = Setting::Value(500));
        // Without timeouts, losses would be final.
        scene = scene.irn(|irn| irn.timeouts = Timeouts::On);
        scene = scene.roce(|roce| {
            roce.acks = Acks::PerPacket;
            roce.rto = Setting::Value(Duration::from_us(320));
        });
        if shared_buffer {
            scene = scene.with(shared(400_000));
        }
        let outcome = scene.with(|config| config.switch.pfc.headroom = Setting::Value(Bytes::new(3_000))).finish();
        let dropped = drops(&outcome.record.data_drops, DropReason::HeadroomFull);
        assert!(dropped > 0, "{series:?}, shared: {shared_buffer}");
        assert_eq!(dropped, data_drops(&outcome), "for no other reason");
    }
}

#[test]
fn only_listed_classes_are_lossless() {
    for (listed, lossless) in [(vec![3], true), (vec![0, 1, 2, 4, 5, 6, 7], false), (vec![], false)] {
        let scene = incast(Series::Irn, 500_000).irn(|irn| irn.bdp_cap = Setting::Value(500)).with(|config| {
            config.switch.pfc.enabled = true;
            config.switch.pfc.classes = listed;
        });
        let scene = scene.irn(|irn| irn.timeouts = Timeouts::On);
        let outcome = scene.run_unchecked();
        assert_eq!(outcome.record.flows_finished, 15);
        assert_eq!(data_drops(&outcome) == 0, lossless);
        assert_eq!(outcome.record.pause_frames > 0, lossless);
    }
}

#[test]
fn acknowledgements_in_a_higher_class_pass_paused_data() {
    // Each host sends to another host's neighbour and into the incast, so that ACKs meet paused data.
    let crossing = |ack_class| {
        let mut scene = incast(Series::IrnPfc, 300_000).buffer(Some(60_000));
        for host in 0..15 {
            scene = scene.flow(host, host + 1, 300_000, Duration::ZERO);
        }
        scene.with(|config| config.nic.ack_class = ack_class).finish()
    };
    let (same, higher, lower) = (crossing(3), crossing(5), crossing(0));
    for outcome in [&same, &higher, &lower] {
        assert_eq!(outcome.record.data_drops, Default::default());
        assert_eq!(outcome.record.ack_drops, Default::default());
        assert!(outcome.record.pause_frames > 0);
    }
    let mean = |outcome: &Outcome| outcome.flows.iter().map(|row| row.slowdown().unwrap()).sum::<f64>();
    assert!(mean(&higher) < mean(&lower), "ACKs that need not wait open windows sooner");
    assert_ne!(same.record.fingerprint, higher.record.fingerprint);
}

#[test]
fn flows_of_another_priority_pass_paused_ones() {
    // Host 1 sends into an incast of four, which stops it most of the time, and to a host that is idle.
    for series in [Series::IrnPfc, Series::RocePfc] {
        let beside = |priority| {
            let scene = Scene::new(star(&[link(40, 1_000); 6]), series);
            let mut scene = scene.irn(|irn| irn.bdp_cap = Setting::Value(200)).buffer(Some(60_000));
            scene = (1..5).fold(scene, |scene, host| scene.flow(host, 0, 1_000_000, Duration::ZERO));
            scene.add(1, 5, 300_000, Start::At(Instant::ZERO)).priority = priority;
            let outcome = scene.finish();
            assert_eq!(outcome.record.data_drops, Default::default());
            assert!(outcome.record.pause_frames > 0);
            let row = outcome.flows.iter().find(|row| row.id == 4).expect("the flow is reported");
            (row.slowdown().expect("the flow has finished"), outcome.record.fingerprint)
        };
        let (none, same, other) = (beside(None), beside(Some(3)), beside(Some(5)));
        assert_eq!(none, same, "priority 3 is that of nic.data-class");
        assert!(same.0 > 2.0 * other.0, "{series:?}: {} as {}", other.0, same.0);
    }
}

#[test]
fn a_pause_frame_takes_its_time_on_the_wire() {
    // Two hosts fill a third's link, while the third sends to a host of its own: the pause frames that the switch sends
    // to h0 and h1 share the wire with the third's packets to them, packet by packet.
    let scene = |buffer| {
        Scene::new(star(&[link(40, 1_000); 4]), Series::RocePfc)
            .buffer(buffer)
            .flow(0, 2, 400 * 1_024, Duration::ZERO)
            .flow(1, 2, 400 * 1_024, Duration::ZERO)
            .flow(3, 0, 800 * 1_024, Duration::ZERO)
            .finish()
    };
    let (with, without) = (scene(Some(60_000)), scene(None));
    assert_eq!(without.delay(2), Duration::ZERO);
    // The switch's port to h0 carried all of the flow from h3, and every pause frame to h0 in between.
    let frame = Rate::from_gbps(40).time_for(PAUSE_FRAME + Bytes::new(20));
    let port_to_h0 = &with.record.ports[4];
    let pauses = port_to_h0.frames - 800;
    assert!(pauses > 4, "{pauses}");
    let delay = with.delay(2);
    assert_eq!(delay.as_ps() % frame.as_ps(), 0, "whole pause frames: {delay}");
    assert!((1..=pauses).contains(&(delay.as_ps() / frame.as_ps())), "{delay} for {pauses} pause frames");
}

/// Runs a fast host behind a slow one's link, so that the switch pauses it again and again.
fn throttled(quanta: u16, loss: Option<LossModel>) -> Outcome {
    let scene = Scene::new(star(&[link(100, 1_000), link(10, 1_000)]), Series::RocePfc)
        .buffer(Some(60_000))
        .flow(0, 1, 2_000_000, Duration::ZERO)
        .with(|config| {
            config.switch.pfc.quanta = quanta;
            config.loss.extend(loss.map(|model| LossConfig {
                link: LinkSelector::Index(0),
                direction: Direction::Down,
                packets: Affected::Pause,
                model,
            }));
        });
    scene.finish()
}

#[test]
fn pausing_costs_no_throughput_and_lasts_as_long_as_it_must() {
    let outcome = throttled(u16::MAX, None);
    // The slow link never idles: the fast one takes the rest of the time in pauses.
    assert_eq!(outcome.delay(0), Duration::ZERO);
    let paused = outcome.record.paused.as_ps() as f64 / outcome.flow(0).ideal.as_ps() as f64;
    assert!((0.8..0.95).contains(&paused), "{paused}");
}

#[test]
fn a_long_pause_is_kept_alive() {
    // 200 quanta at 100 Gb/s are 1.024 us, far less than each pause lasts: only refreshes keep it.
    let (short, long) = (throttled(200, None), throttled(u16::MAX, None));
    assert_eq!(data_drops(&short), 0);
    assert_eq!(short.delay(0), Duration::ZERO);
    assert!(short.record.pause_frames > long.record.pause_frames * 3, "{}", short.record.pause_frames);
    assert_eq!(short.record.paused, long.record.paused, "the port feels no difference");
}

/// Returns a scene in which two hosts send and receive pauses between frames of 4 KB: one sends to a slow host, the
/// other, without pause, to the first.
fn interleaved(quanta: u16) -> Outcome {
    let links = [link(10, 1_000), link(10, 1_000), link(1, 1_000)];
    let scene = Scene::new(star(&links), Series::RocePfc).buffer(Some(100_000)).with(|config| {
        config.nic.mtu = Bytes::new(4_000);
        config.switch.pfc.headroom = Setting::Value(Bytes::from_kb(20));
        config.switch.pfc.xon_gap = Setting::Value(Bytes::from_kb(40));
        config.switch.pfc.quanta = quanta;
    });
    scene.flow(0, 2, 500_000, Duration::ZERO).flow(1, 0, 8_000_000, Duration::ZERO).finish()
}

#[test]
fn a_resume_is_sent_whenever_it_is_time_to_refresh() {
    // Of 15,000 quanta, half have passed while a frame is being sent behind which the resume waits.
    for quanta in (14_900..=15_100).step_by(10) {
        let outcome = interleaved(quanta);
        assert_eq!(outcome.delay(0), Duration::ZERO, "{quanta} quanta: the slow link never idles");
    }
}

#[test]
fn what_waits_for_a_port_is_looked_at_when_it_is_free() {
    for quanta in (14_900..=15_100).step_by(10) {
        let record = interleaved(quanta).record;
        assert!(record.events < 3 * record.packet_hops, "{quanta} quanta: {} events", record.events);
    }
}

#[test]
fn a_lost_resume_does_not_stop_the_link_for_ever() {
    // Pause frames to h0 alternate: stop, go, stop, go. The second is lost, and the pause runs out
    // after 65,535 quanta of 512 bits: 335.5392 us at 100 Gb/s.
    let lost = throttled(u16::MAX, Some(LossModel::Trace(DropList::Drops(vec![1]))));
    assert_eq!(lost.record.pause_drops.total(), 1);
    let expiry = Duration::from_ps(65_535 * 512 * 10);
    let late = lost.delay(0);
    assert!(late < expiry && late.as_ps() > expiry.as_ps() * 8 / 10, "{late} of {expiry}");
    // Shorter pauses recover sooner.
    let lost = throttled(1_000, Some(LossModel::Trace(DropList::Drops(vec![1]))));
    assert!(lost.delay(0) < Duration::from_us(6), "{}", lost.delay(0));
}

#[test]
fn pause_frames_may_be_lost_at_random() {
    // A lost stop overruns the buffer until the refresh: drops for real, which go-back-N repairs.
    let scene = Scene::new(star(&[link(100, 1_000), link(100, 1_000), link(10, 1_000)]), Series::RocePfc);
    let scene = scene.flow(0, 2, 1_000_000, Duration::ZERO).flow(1, 2, 1_000_000, Duration::ZERO);
    let scene = scene.roce(|roce| {
        roce.acks = Acks::PerPacket;
        roce.rto = Setting::Value(Duration::from_ms(1));
    });
    let outcome =
        scene.buffer(Some(60_000)).with(|config| lose(config, Affected::Pause, Chance::ratio(3, 10))).finish();
    assert!(outcome.record.pause_drops.total() > 0);
    assert!(drops(&outcome.record.data_drops, DropReason::HeadroomFull) > 0);
}

#[test]
fn a_chain_pauses_hop_by_hop() {
    let (host_link, switch_link) = (link(40, 1_000), link(40, 1_000));
    let chain = Chain { switches: 6, hosts_per_end: 2, hosts_per_inner: 0, host_link, switch_link }.build().unwrap();
    // Two hosts at the near end and one at the far end send to the other at the far end.
    let scene = Scene::new(chain.clone(), Series::RocePfc)
        .flow(0, 2, 2_000_000, Duration::ZERO)
        .flow(1, 2, 2_000_000, Duration::ZERO)
        .flow(3, 2, 2_000_000, Duration::ZERO);
    let outcome = scene.finish();
    assert_eq!(data_drops(&outcome), 0);
    let infos = port_infos(&chain);
    for n in 1..6 {
        let (from, to) = (format!("s{}", n - 1), format!("s{n}"));
        let port = infos.iter().position(|info| *info.node == *from && *info.peer == *to).unwrap();
        assert!(!outcome.record.ports[port].paused.is_zero(), "{from} is paused by {to}");
    }
}

#[test]
fn headroom_that_all_inputs_share_may_be_less_than_their_sum_but_not_too_little() {
    let with_pool = |pool: Setting<Bytes>| {
        // Packets that are dropped in spite of PFC are retransmitted after timeouts.
        let scene = incast(Series::IrnPfc, 1_000_000).irn(|irn| irn.timeouts = Timeouts::On).with(shared(200_000));
        let scene = scene.with(move |config| {
            if let BufferConfig::SharedBuffer(shared) = &mut config.switch.buffer {
                shared.headroom_pool = pool;
            }
        });
        let outcome = scene.finish();
        (drops(&outcome.record.data_drops, DropReason::HeadroomFull), outcome.record.pause_frames)
    };
    let rate = Rate::from_gbps(40);
    let one = PfcConfig::default().headroom_on(rate, Duration::from_us(2), &NicConfig::default());
    // Of the four inputs of a switch three fill up, on the way to one host.
    for (pool, is_enough) in [(one * 4, true), (one * 3, true), (Bytes::new(4_000), false)] {
        let (dropped, pauses) = with_pool(Setting::Value(pool));
        assert!(pauses > 0);
        assert_eq!(dropped == 0, is_enough, "{pool}: {dropped} dropped");
    }
    let (dropped, pauses) = with_pool(Setting::Off);
    assert!(dropped == 0 && pauses > 0, "each has its own");
}

#[test]
fn an_input_that_holds_no_more_than_xon_goes_on_however_low_its_threshold() {
    for (buffer, xon) in [("own", 100_000), ("shared", 16_000)] {
        let pauses = |xon: u64| {
            let scene = incast(Series::RocePfc, 1_000_000).with(|config| {
                // Below any threshold: without `xon` an input has to run empty first.
                config.switch.pfc.xon_gap = Setting::Value(Bytes::new(10_000_000));
                config.switch.pfc.xon = Bytes::new(xon);
            });
            let outcome = if buffer == "own" { scene } else { scene.with(shared(400_000)) }.finish();
            assert_eq!(data_drops(&outcome), 0, "{buffer}");
            outcome.record.pause_frames
        };
        let [empty, early] = [0, xon].map(pauses);
        assert!(early > empty, "{buffer}: shorter pauses are more pauses: {empty}, {early}");
    }
}

#[test]
fn a_table_of_headroom_goes_before_the_formula_for_the_links_that_it_has() {
    let row = |gbps, us, kb| LinkHeadroom {
        rate: Rate::from_gbps(gbps),
        delay: Duration::from_us(us),
        headroom: Bytes::from_kb(kb),
    };
    let pfc =
        PfcConfig { headroom_by_link: vec![row(40, 5, 90), row(40, 1, 50), row(100, 1, 70)], ..PfcConfig::default() };
    let headroom = |pfc: &PfcConfig, gbps, ns| {
        pfc.headroom_on(Rate::from_gbps(gbps), Duration::from_ns(ns), &NicConfig::default())
    };
    for (gbps, ns, kb) in [(40, 1, 50), (40, 1_000, 50), (40, 1_001, 90), (40, 5_000, 90), (100, 1_000, 70)] {
        assert_eq!(headroom(&pfc, gbps, ns), Bytes::from_kb(kb), "{gbps} Gb/s, {ns} ns");
    }
    for (gbps, ns) in [(40, 5_001), (100, 1_001), (25, 1)] {
        assert_eq!(headroom(&pfc, gbps, ns), headroom(&PfcConfig::default(), gbps, ns), "{gbps} Gb/s, {ns} ns");
    }
    let given = PfcConfig { headroom: Setting::Value(Bytes::new(9)), ..pfc };
    assert_eq!(headroom(&given, 40, 1), Bytes::new(9));
}
