//! NetRT in a whole fabric: losses that NICs no longer notice, and those that it leaves to them.

use selvedge_sim::SimConfig;
use selvedge_sim::config::{
    BalancingConfig, BufferConfig, DrillConfig, FairQueued, InputQueued, SharedBuffer, Trimming,
};
use selvedge_sim::fault::{Affected, Direction, LossConfig, LossModel, RandomLoss};
use selvedge_sim::topology::{Chain, Graph, LeafSpine};
use selvedge_sim::workload::{HostRef, Many, Operations, Partners, Sizes, Verb, Verbs};
use selvedge_telemetry::{DropReason, PacketKind};
use selvedge_units::{Bytes, Chance, Duration, Setting};

use crate::support::{Outcome, Scene, Series, drops, link, star};

/// Returns a path of host, ToR, core, ToR and host, as in the paper's testbed (section IV-A), at 10 Gb/s.
fn chain() -> Graph {
    let (host_link, switch_link) = (link(10, 5_000), link(10, 5_000));
    Chain { switches: 3, hosts_per_end: 1, hosts_per_inner: 0, host_link, switch_link }.build().unwrap()
}

fn netrt(config: &mut SimConfig) {
    config.switch.netrt.enabled = true;
}

/// Sets random loss of data where it leaves the core.
fn lose(percent: u64) -> impl FnOnce(&mut SimConfig) {
    move |config| {
        config.loss.push(LossConfig {
            link: "s1 - s2".parse().unwrap(),
            direction: Direction::Both,
            packets: Affected::Data,
            model: LossModel::Random(RandomLoss { rate: Chance::ratio(percent, 100) }),
        });
    }
}

fn transfer(size: u64) -> Scene {
    Scene::new(chain(), Series::Roce).flow(0, 1, size, Duration::ZERO)
}

#[test]
fn without_loss_it_changes_no_completion_time() {
    let (with, without) = (transfer(1_000_000).with(netrt).finish(), transfer(1_000_000).finish());
    assert_eq!(with.finish(0), without.finish(0));
    assert_eq!((with.record.netrt.requests, with.record.netrt.messages), (0, 0));
    assert!(with.record.netrt.pool.peak > Bytes::ZERO);
}

#[test]
fn losses_in_the_fabric_are_repaired_before_the_nic_notices() {
    let plain = transfer(1_000_000).with(lose(1)).finish();
    let helped = transfer(1_000_000).with(lose(1)).with(netrt).finish();
    assert!(plain.record.nacks_sent > 0);
    let record = &helped.record;
    assert_eq!((record.nacks_sent, record.timeouts, record.retransmissions), (0, 0, 0));
    assert!(record.netrt.retransmissions > 0 && record.netrt.given_up == 0);
    assert!(helped.finish(0) < plain.finish(0));
    assert_eq!(record.in_flight[PacketKind::Data], 0, "nothing is held for ever");
}

/// A sender with a threshold of nothing is paused while copies wait, and no longer.
#[test]
fn a_threshold_of_nothing_stops_nobody_for_good() {
    let strict = |config: &mut SimConfig| config.switch.netrt.k_low = Bytes::ZERO;
    let outcome = transfer(1_000_000).with(lose(1)).with(netrt).with(strict).finish();
    assert!(outcome.record.netrt.pauses > 0);
}

#[test]
fn without_duplicates_the_nics_repair_as_ever() {
    let off = |config: &mut SimConfig| config.switch.netrt.pool = Setting::Off;
    let outcome = transfer(1_000_000).with(lose(1)).with(netrt).with(off).finish();
    assert_eq!(outcome.record.netrt.retransmissions, 0);
    assert!(outcome.record.netrt.unfulfilled > 0 && outcome.record.netrt.given_up > 0);
    assert!(outcome.record.nacks_sent > 0);
}

#[test]
fn buffers_without_limit_hold_what_is_early() {
    let scene = transfer(1_000_000).with(lose(1)).with(netrt);
    let (ample, boundless) = (scene.clone().buffer(Some(100_000_000)).finish(), scene.buffer(None).finish());
    assert!(boundless.record.netrt.held > 0);
    assert_eq!(boundless.record.netrt, ample.record.netrt);
}

#[test]
fn a_bursty_loss_pauses_its_sender_alone() {
    let harsh = |config: &mut SimConfig| {
        (config.switch.netrt.k_low, config.switch.netrt.k_high) = (Bytes::new(2_000), Bytes::new(10_000));
    };
    let outcome = transfer(3_000_000).with(lose(10)).with(netrt).with(harsh).finish();
    assert!(outcome.record.netrt.pauses > 0);
    let paused: Vec<_> = outcome.record.ports.iter().filter(|port| !port.paused.is_zero()).collect();
    assert_eq!(paused.len(), 1, "PFC between the host and its ToR, nowhere else");
    assert_eq!(paused[0].id.0, 0);
}

#[test]
fn traffic_within_a_rack_is_none_of_its_business() {
    let scene = Scene::new(star(&[link(10, 1_000); 3]), Series::Roce).flow(0, 2, 200_000, Duration::ZERO);
    let outcome = scene.flow(1, 2, 200_000, Duration::ZERO).with(netrt).finish();
    assert_eq!(outcome.record.netrt.pool.peak, Bytes::ZERO);
}

#[test]
fn copies_do_not_overtake_what_still_waits_for_their_host() {
    // On a long path many packets are held, and hence released at once: while they wait for the host's link, copies for
    // the next gap come.
    let (host_link, switch_link) = (link(10, 12_500), link(10, 12_500));
    let graph = Chain { switches: 3, hosts_per_end: 1, hosts_per_inner: 0, host_link, switch_link }.build().unwrap();
    for seed in 1..=5 {
        let vast = |config: &mut SimConfig| {
            config.seed = seed;
            config.switch.netrt.pool = Setting::Value(Bytes::from_kb(300));
            config.switch.netrt.buffer = Setting::Value(Bytes::from_kb(300));
        };
        let scene = Scene::new(graph.clone(), Series::Roce).flow(0, 1, 1_000_000, Duration::ZERO);
        let record = scene.with(lose(1)).with(netrt).with(vast).finish().record;
        assert!(record.netrt.retransmissions > 0);
        assert!(record.netrt.given_up > 0 || record.nacks_sent == 0, "seed {seed}: {} NACKs", record.nacks_sent);
    }
}

/// Runs three senders behind one ToR and one receiver behind another, with DRILL(2, 1) over four paths (section IV-B2)
/// and buffers without limit.
fn drill(change: impl FnOnce(&mut SimConfig)) -> Outcome {
    let (host_link, spine_link) = (link(50, 600), link(50, 600));
    let graph = LeafSpine { leaves: 2, spines: 4, hosts_per_leaf: 4, parallel_links: 1, host_link, spine_link };
    let balance = |config: &mut SimConfig| config.switch.balancing = BalancingConfig::Drill(DrillConfig::default());
    let scene = Scene::new(graph.build().unwrap(), Series::Roce).buffer(None).with(balance).with(change);
    // The queue at the receiver lasts longer than the usual timeout.
    let patient = scene.roce(|roce| roce.rto = Setting::Value(Duration::from_ms(20)));
    (0..3).fold(patient, |scene, src| scene.flow(src, 4, 1_000_000, Duration::ZERO)).finish()
}

/// DRILL with go-back-N causes very many NACKs though nothing is lost: packets overtake each other, a go-back-N
/// receiver discards those that are early and reports a gap, and a sender without congestion control goes back over all
/// that it has in flight, which is overtaken again: every packet is sent a hundred times. This is the paper's case for
/// putting packets in order at the ToR, after which NICs see no reordering. (The ToR must not serve its inputs
/// round-robin: packets of one flow come through several.)
#[test]
fn drill_makes_nics_go_back_for_nothing_and_netrt_puts_packets_in_order() {
    let plain = drill(|_| {}).record;
    assert_eq!((drops(&plain.data_drops, DropReason::BufferFull), plain.timeouts), (0, 0));
    let (nacks, again) = (plain.nacks_sent, plain.retransmissions);
    assert!(nacks > 1_000 && again > 10 * nacks, "{nacks} NACKs, {again} packets");
    let helped = drill(netrt).record;
    assert_eq!((helped.nacks_sent, helped.retransmissions, helped.netrt.given_up), (0, 0, 0));
    assert!(helped.netrt.held > 0);
}

/// Packets that a ToR holds, and retransmissions past a pause, take no headroom: a network without loss stays lossless.
#[test]
fn with_pfc_nothing_finds_the_headroom_full() {
    let graph = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 2,
        host_link: link(10, 1_000),
        spine_link: link(10, 1_000),
        parallel_links: 1,
    };
    let graph = graph.build().unwrap();
    for (balancing, classes) in
        [(BalancingConfig::Spray, 1), (BalancingConfig::Drill(DrillConfig::default()), 1), (BalancingConfig::Spray, 3)]
    {
        for shared in [false, true] {
            let scene = Scene::new(graph.clone(), Series::RocePfc).with(netrt).with(|config| {
                config.switch.balancing = balancing;
                if classes > 1 {
                    config.switch.pfc.classes = vec![config.nic.data_class];
                }
                if shared {
                    config.switch.buffer = BufferConfig::SharedBuffer(SharedBuffer {
                        total: Bytes::new(400_000),
                        ..SharedBuffer::default()
                    });
                }
            });
            let record = (1..4).fold(scene, |scene, src| scene.flow(src, 0, 1_000_000, Duration::ZERO)).finish().record;
            let held = record.netrt.held;
            assert!(held > 0, "{balancing:?}");
            let full = drops(&record.data_drops, DropReason::HeadroomFull);
            assert_eq!(full, 0, "{balancing:?}, shared: {shared}: of {held} held");
        }
    }
}

/// Returns a scene with `senders` senders behind one ToR and one receiver behind another: the paths between have enough
/// capacity, so that packets are dropped at the last hop alone. Windows limit the excess, and duplicates last.
fn last_hop_incast(senders: u32, buffer: BufferConfig, bytes: u64) -> Scene {
    let graph = LeafSpine {
        leaves: 2,
        spines: 8,
        hosts_per_leaf: 15,
        parallel_links: 1,
        host_link: link(50, 600),
        spine_link: link(100, 600),
    };
    let scene = Scene::new(graph.build().unwrap(), Series::Roce).roce(|roce| roce.bdp_cap = Setting::Value(28));
    let scene = scene.with(|config| config.switch.buffer = buffer);
    (0..senders).fold(scene, |scene, src| scene.flow(src, 15, bytes, Duration::from_ns(100 * u64::from(src))))
}

fn lasting(config: &mut SimConfig) {
    netrt(config);
    let netrt = &mut config.switch.netrt;
    netrt.pool = Setting::Value(Bytes::from_kb(2_000));
    netrt.buffer = Setting::Value(Bytes::from_kb(2_000));
    (netrt.lifetime, netrt.pause) = (Setting::Off, false);
}

/// Packets that the destination ToR itself drops have not arrived there (section III-D2: NetRT is in the memory
/// manager).
#[test]
fn what_is_dropped_at_the_last_hop_is_asked_for_like_any_other() {
    let shared =
        |total: u64| BufferConfig::SharedBuffer(SharedBuffer { total: Bytes::new(total), ..SharedBuffer::default() });
    let own = |per_port: u64| {
        BufferConfig::InputQueued(InputQueued {
            per_port: Setting::Value(Bytes::new(per_port)),
            ..InputQueued::default()
        })
    };
    for senders in [3, 5, 8, 15] {
        for buffer in [shared(100_000), shared(300_000), own(20_000), own(60_000)] {
            let scene = last_hop_incast(senders, buffer, 300_000);
            let (plain, helped) = (scene.clone().finish().record, scene.with(lasting).finish().record);
            if plain.data_drops.total() == 0 {
                continue;
            }
            let what = format!("{senders} senders, {buffer:?}: {:?}", helped.netrt);
            let netrt = &helped.netrt;
            assert!(netrt.requests > 0 && netrt.held > 0 && netrt.retransmissions > 0, "{what}");
            // A NIC notices the losses that its ToR has given up, and no others.
            let (nacks, before) = (helped.nacks_sent, plain.nacks_sent);
            assert!(nacks <= netrt.given_up, "{what}: {nacks} NACKs, {before} without");
        }
    }
}

/// Queues that make room for the newest packet: losses of packets that NetRT has already counted as arrived are left to
/// NICs, and packets that found no room are requested again.
#[test]
fn what_is_trimmed_at_the_last_hop_is_asked_for_too() {
    let fair =
        FairQueued { per_port: Setting::Off, per_flow: Setting::Value(Bytes::new(20_000)), ..FairQueued::default() };
    for buffer in [BufferConfig::Trimming(Trimming::default()), BufferConfig::FairQueued(fair)] {
        let record = last_hop_incast(8, buffer, 300_000).with(lasting).finish().record;
        assert!(record.netrt.requests > 0 && record.netrt.retransmissions > 0, "{buffer:?}: {:?}", record.netrt);
        assert_eq!(record.in_flight[PacketKind::Data], 0, "nothing is held for ever");
    }
}

/// Returns a scene in which one host requests operations of another, in turn.
fn verbs(operations: Vec<Verb>) -> Scene {
    let pairs = Partners::Listed(vec![[HostRef::Number(0), HostRef::Number(1)]]);
    let sizes = Sizes::Fixed(Bytes::new(20_000));
    let operations = Operations::InTurn(operations);
    let verbs = Verbs { operations, pairs, messages: Some(150), queue_depth: 8, ..Verbs::of(sizes) };
    Scene::new(chain(), Series::Roce).with(|config| config.workload.verbs = Many::from(verbs)).with(lose(1))
}

/// Requests of each kind are repaired on the way; a Read request takes the numbers of its whole answer.
#[test]
fn requests_of_rdma_are_repaired_before_the_nic_notices() {
    let all = [Verb::Write, Verb::WriteImmediate, Verb::Send, Verb::SendImmediate];
    // A bandwidth-delay product is too little where a copy is lost, too.
    let ample = |config: &mut SimConfig| config.switch.netrt.pool = Setting::Value(Bytes::from_kb(500));
    for operations in all.map(|verb| vec![verb]).into_iter().chain([all.to_vec()]) {
        let outcome = verbs(operations.clone()).with(netrt).with(ample).finish();
        let record = &outcome.record;
        assert_eq!(outcome.flows.len(), 150, "{operations:?}");
        assert_eq!((record.timeouts, record.retransmissions), (0, 0), "{operations:?}");
        assert!(record.netrt.retransmissions > 0 && record.netrt.given_up == 0, "{operations:?}");
    }
}

/// Answers to Reads, and what acknowledges Atomics, pass: the NIC repairs them as it does without NetRT.
#[test]
fn answers_of_rdma_are_left_to_the_nic() {
    let operations = vec![Verb::Read, Verb::Write, Verb::FetchAdd, Verb::CompareSwap];
    let (with, without) = (verbs(operations.clone()).with(netrt).finish(), verbs(operations).finish());
    assert_eq!((with.flows.len(), without.flows.len()), (150, 150));
    assert!(with.record.retransmissions > 0, "answers are lost, and asked for again");
    // No request is missed at the responder.
    assert!(with.record.nacks_sent == 0 && without.record.nacks_sent > 0);
    assert!(with.record.netrt.retransmissions > 0 && with.record.netrt.given_up == 0);
}
