//! Applications that use verbs: every operation completes once, whatever is lost, and costs as much as in the plain
//! engines.

use selvedge_sim::config::{BalancingConfig, BufferConfig, DrillConfig, Trimming, TunnelledConfig};
use selvedge_sim::fault::Affected;
use selvedge_sim::topology::{FatTree, Graph};
use selvedge_sim::workload::{HostRef, Many, Operations, Partners, Sizes, Verb, Verbs};
use selvedge_sim::{SimConfig, fault::LinkFailure};
use selvedge_telemetry::FlowRow;
use selvedge_transport::CongestionConfig;
use selvedge_transport::congestion::aimd::AimdConfig;
use selvedge_transport::congestion::dcqcn::DcqcnConfig;
use selvedge_transport::congestion::dctcp::DctcpConfig;
use selvedge_transport::congestion::fixed::FixedConfig;
use selvedge_transport::congestion::swift::SwiftConfig;
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::eqds::eqif::{EqifConfig, RdmaEqif};
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::recovery::melo::{MeloConfig, Resend};
use selvedge_units::{Bytes, Chance, Duration, Instant, Rate, Setting, Toggle};

use crate::support::{Scene, Series, link, lose, star};

const ALL: [Verb; 7] =
    [Verb::Write, Verb::WriteImmediate, Verb::Read, Verb::Send, Verb::SendImmediate, Verb::FetchAdd, Verb::CompareSwap];

/// Returns two hosts on a switch.
fn two() -> Graph {
    star(&[link(100, 1_000), link(100, 1_000)])
}

fn from_h0_to_h1(verbs: Verbs) -> Verbs {
    Verbs { pairs: Partners::Listed(vec![[HostRef::Number(0), HostRef::Number(1)]]), ..verbs }
}

fn fixed(size: u64) -> Verbs {
    from_h0_to_h1(Verbs::of(Sizes::Fixed(Bytes::new(size))))
}

fn only(verb: Verb) -> Operations {
    Operations::InTurn(vec![verb])
}

fn scene(series: Series, verbs: Verbs) -> Scene {
    Scene::new(two(), series).with(|config| config.workload.verbs = Many::from(verbs))
}

fn melo(config: &mut SimConfig) {
    let rto = Setting::Value(Duration::from_us(400));
    config.transport.rdma_mut().expect("queue pairs").recovery = MeloConfig { rto, ..MeloConfig::default() }.into();
}

/// Sets random loss of packets on each link.
fn losing(packets: Affected, per_mille: u64) -> impl FnOnce(&mut SimConfig) {
    move |config| lose(config, packets, Chance::ratio(per_mille, 1_000))
}

#[test]
fn each_operation_completes_by_each_recovery_whatever_is_lost() {
    for verb in ALL {
        for per_mille in [0, 20] {
            let verbs = Verbs { operations: only(verb), messages: Some(60), queue_depth: 8, ..fixed(5_000) };
            for scene in [
                scene(Series::Irn, verbs.clone()),
                scene(Series::Irn, verbs.clone()).with(melo),
                scene(Series::Roce, verbs.clone()),
            ] {
                let outcome = scene.with(losing(Affected::All, per_mille)).finish();
                assert_eq!(outcome.flows.len(), 60, "{verb:?} with {per_mille} of a thousand lost");
                assert_eq!(outcome.record.retransmissions > 0, per_mille > 0, "{verb:?}");
            }
        }
    }
}

/// Sets tunnels for queue pairs, in a fabric that trims, or by requests to send in one that does not.
fn in_tunnels(burst: Toggle) -> impl FnOnce(&mut SimConfig) {
    move |config| {
        let eqif = EqifConfig { rdma: Some(RdmaEqif::default()), ..EqifConfig::default() };
        let rto = Setting::Value(Duration::from_us(100));
        let tunnels = EqdsConfig { burst, rto, eqif, ..EqdsConfig::default() };
        let rdma = *config.transport.rdma().expect("queue pairs");
        config.transport = TunnelledConfig::new(tunnels, rdma).into();
        if burst != Toggle::Off {
            config.switch.buffer = BufferConfig::Trimming(Trimming::default());
            config.nic.ack_class = Trimming::default().header_class;
        }
    }
}

/// Sets a go-back-N that needs no PFC.
fn acknowledged(config: &mut SimConfig) {
    config.transport.rdma_mut().expect("queue pairs").recovery =
        GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() }.into();
}

#[test]
fn each_operation_completes_in_tunnels_and_loses_nothing_of_its_own() {
    for verb in ALL {
        for (burst, per_mille) in [(Toggle::Auto, 0), (Toggle::Auto, 20), (Toggle::Off, 0), (Toggle::Off, 20)] {
            let verbs = Verbs { operations: only(verb), messages: Some(60), queue_depth: 8, ..fixed(5_000) };
            for recovery in [|_: &mut SimConfig| {}, melo, acknowledged] {
                let scene = scene(Series::Irn, verbs.clone()).with(recovery).with(in_tunnels(burst));
                let outcome = scene.with(losing(Affected::All, per_mille)).finish();
                assert_eq!(outcome.flows.len(), 60, "{verb:?} with {per_mille} of a thousand lost");
                let record = &outcome.record;
                assert!(record.eqif.left >= 120, "{verb:?}: requests and answers wait in EQIFs");
                assert_eq!((record.eqif.dropped, record.eqif.strays), (0, 0), "{verb:?}");
                assert_eq!(record.retransmissions > 0, per_mille > 0, "{verb:?}");
            }
        }
    }
}

/// Many requesters of one host: in the network, tunnels keep their queues short, with any kind of operation.
#[test]
fn an_incast_waits_in_eqifs() {
    let pairs = |of: fn(u64) -> [HostRef; 2]| Partners::Listed((0..8).map(of).collect());
    let to_h8 = pairs(|n| [HostRef::Number(n), HostRef::Number(8)]);
    let from_h8 = pairs(|n| [HostRef::Number(8), HostRef::Number(n)]);
    for (verb, pairs) in [(Verb::Write, to_h8.clone()), (Verb::Send, to_h8), (Verb::Read, from_h8)] {
        for recovery in [|_: &mut SimConfig| {}, acknowledged] {
            let verbs = Verbs { operations: only(verb), messages: Some(4), pairs: pairs.clone(), ..fixed(100_000) };
            let scene =
                Scene::new(star(&[link(40, 500); 9]), Series::Irn).with(recovery).with(in_tunnels(Toggle::Auto));
            let record = scene.with(|config| config.workload.verbs = Many::from(verbs)).finish().record;
            assert_eq!((record.data_drops.total(), record.eqif.dropped), (0, 0), "{verb:?}");
            assert!(record.trims > 0 && record.eqif.peak > Bytes::new(20_000), "{verb:?}: {:?}", record.eqif);
        }
    }
}

/// Only a control that hears CNPs gets them; Writes of queue pairs without one are paused.
#[test]
fn eqifs_press_back_on_queue_pairs() {
    for congestion in [DcqcnConfig::default().into(), CongestionConfig::None(Default::default())] {
        let pairs = Partners::Listed((0..4).map(|n| [HostRef::Number(n), HostRef::Number(4)]).collect());
        let verbs = Verbs { messages: Some(20), pairs, ..fixed(1_000_000) };
        let scene =
            Scene::new(star(&[link(40, 500); 5]), Series::Irn).with(acknowledged).with(in_tunnels(Toggle::Auto));
        let scene = scene.with(|config| {
            config.transport.rdma_mut().expect("queue pairs").congestion = congestion;
            config.workload.verbs = Many::from(verbs);
        });
        let record = scene.finish().record;
        let hears = matches!(congestion, CongestionConfig::Dcqcn(_));
        assert_eq!((record.eqif.cnps > 0, record.eqif.pauses > 0), (hears, !hears), "{:?}", record.eqif);
    }
}

/// A queue pair completes messages in the order in which they were posted.
#[test]
fn messages_are_posted_in_the_order_of_their_numbers() {
    let mixes = [vec![Verb::Send, Verb::Write], vec![Verb::Read, Verb::Write, Verb::FetchAdd, Verb::Send]];
    for (series, operations) in [Series::Irn, Series::Roce].into_iter().zip(mixes) {
        let operations = Operations::InTurn(operations);
        let verbs = Verbs { operations, messages: Some(40), queue_depth: 8, queue_pairs: 3, ..fixed(5_000) };
        let mut flows = scene(series, verbs).finish().flows;
        assert_eq!(flows.len(), 120);
        flows.sort_by_key(|flow| (flow.id % 3, flow.id));
        let is_in_order = |two: &[FlowRow]| two[0].id % 3 != two[1].id % 3 || two[0].finish <= two[1].finish;
        assert!(flows.windows(2).all(is_in_order), "{series:?}");
    }
}

/// Headers of RDMA differ in length: a queue of one packet holds any of them.
#[test]
fn they_complete_where_switches_trim() {
    let trimming = BufferConfig::Trimming(Trimming { packets: 1, ..Trimming::default() });
    for verb in ALL {
        for pairs in [fixed(1).pairs, Partners::AllToAll] {
            let verbs = Verbs { operations: only(verb), messages: Some(20), queue_depth: 8, pairs, ..fixed(5_000) };
            let scene = Scene::new(star(&[link(100, 1_000), link(10, 1_000), link(100, 1_000)]), Series::Irn);
            let scene = scene.with(|config| config.switch.buffer = trimming);
            let outcome = scene.with(|config| config.workload.verbs = Many::from(verbs)).finish();
            assert!(!outcome.flows.is_empty(), "{verb:?}");
            assert!(outcome.flows.iter().all(|flow| flow.finish.is_some()), "{verb:?}");
        }
    }
}

#[test]
fn without_reordering_each_loss_of_data_is_repaired_by_one_packet() {
    for verb in [Verb::Write, Verb::Send, Verb::Read] {
        let verbs = Verbs { operations: only(verb), messages: Some(40), queue_depth: 4, ..fixed(100_000) };
        let outcome = scene(Series::Irn, verbs).with(losing(Affected::Data, 10)).finish();
        let lost = outcome.record.data_drops.total();
        assert!(lost > 50, "{lost} lost");
        assert_eq!((outcome.record.retransmissions, outcome.record.spurious_retransmissions), (lost, 0), "{verb:?}");
    }
}

/// Sends that arrive out of order and find no receive request are dropped, and retransmitted.
#[test]
fn with_credits_no_send_finds_a_receiver_that_is_not_ready() {
    let run = |end_to_end_credits| {
        let limits = Verbs { queue_depth: 32, receives: Some(4), end_to_end_credits, ..fixed(3_000) };
        let verbs = Verbs { operations: only(Verb::Send), messages: Some(2_000), ..limits };
        let outcome = scene(Series::Irn, verbs).with(losing(Affected::Data, 10)).finish();
        assert_eq!(outcome.record.flows_finished, 2_000);
        (outcome.record.data_drops.total(), outcome.record.retransmissions)
    };
    let (lost, again) = run(true);
    assert!(lost > 30 && again == lost, "with credits {again} packets are sent again for {lost} that are lost");
    let (lost, again) = run(false);
    assert!(again > lost + lost / 2, "without, {again} packets are sent again for {lost} that are lost");
}

#[test]
fn a_write_is_repaired_as_a_plain_message_is() {
    let size = 4_000_000;
    let write = Verbs { messages: Some(1), ..fixed(size) };
    let run = |scene: Scene| scene.with(losing(Affected::Data, 5)).finish().record;
    let (plain, verbs) =
        (run(Scene::new(two(), Series::Irn).flow(0, 1, size, Duration::ZERO)), run(scene(Series::Irn, write)));
    assert!(plain.retransmissions > 20);
    assert_eq!(
        (plain.data_sent, plain.retransmissions, plain.spurious_retransmissions),
        (verbs.data_sent, verbs.retransmissions, verbs.spurious_retransmissions),
        "the same packets are lost"
    );
}

#[test]
fn what_melo_keeps_for_applications_is_counted_as_for_plain_messages() {
    let size = 4_000_000;
    let run = |scene: Scene, pool_bits| {
        let rto = Setting::Value(Duration::from_us(400));
        // Each hole is sent once: what is sent again depends on when answers come, which differs here.
        let recovery = MeloConfig { rto, pool_bits, resend: Resend::Once, ..MeloConfig::default() };
        let scene = scene
            .with(|config| config.transport.rdma_mut().expect("queue pairs").recovery = recovery.into())
            .with(losing(Affected::Data, 5));
        scene.finish().record.reordering
    };
    let asking = |verb| scene(Series::Irn, Verbs { operations: only(verb), messages: Some(1), ..fixed(size) });
    let plain = run(Scene::new(two(), Series::Irn).flow(0, 1, size, Duration::ZERO), 64);
    let write = run(asking(Verb::Write), 64);
    // With applications, packets in order are not always acknowledged.
    let difference = plain.buffered.get().abs_diff(write.buffered.get());
    assert!(plain.pool_peak > 0 && difference < plain.buffered.get() / 10, "{plain:?}, {write:?}");
    assert_eq!((write.pool_peak, write.pool_blocks), (plain.pool_peak, plain.pool_blocks));
    // Where the pool is small, answers need it, too.
    for verb in [Verb::Write, Verb::Read] {
        let small = run(asking(verb), 16);
        assert!(small.buffered > Bytes::ZERO && small.refused_full > 0, "{verb:?}: {small:?}");
        assert_eq!((small.pool_peak, small.pool_blocks), (2, 2), "{verb:?}");
    }
}

/// Returns a scene in which four hosts write to a fifth, or are read by it, through a switch with a small buffer.
fn crowd(verb: Verb) -> Scene {
    let at_once = |n| if verb == Verb::Read { [0, n] } else { [n, 0] };
    let pairs = (1..5).map(|n| at_once(n).map(HostRef::Number)).collect();
    let verbs = Verbs {
        operations: only(verb),
        pairs: Partners::Listed(pairs),
        messages: Some(40),
        queue_depth: 4,
        ..Verbs::of(Sizes::Fixed(Bytes::new(100_000)))
    };
    let links = [link(100, 1_000); 5];
    Scene::new(star(&links), Series::Irn).buffer(Some(20_000)).with(|config| config.workload.verbs = Many::from(verbs))
}

#[test]
fn congestion_control_slows_requests_and_answers_down() {
    let controls: [CongestionConfig; 4] = [
        DcqcnConfig::default().into(),
        DctcpConfig::default().into(),
        SwiftConfig::default().into(),
        AimdConfig::default().into(),
    ];
    for verb in [Verb::Write, Verb::Read] {
        let free = crowd(verb).finish().record;
        for congestion in controls {
            let record = crowd(verb)
                .with(|config| config.transport.rdma_mut().expect("queue pairs").congestion = congestion)
                .finish()
                .record;
            assert_eq!(record.flows_finished, 160, "{verb:?}, {congestion:?}");
            assert_eq!(record.cnps_delivered > 0, congestion.name() == "dcqcn", "{verb:?}, {congestion:?}");
            let (some, none) = (record.data_drops.total(), free.data_drops.total());
            assert!(some < none, "{verb:?}, {congestion:?}: {some} lost, {none} without");
        }
    }
}

#[test]
fn in_an_empty_network_an_operation_takes_its_time() {
    for verb in ALL {
        for size in [1, 5_000, 1_000_000] {
            for series in Series::ALL {
                let outcome =
                    scene(series, Verbs { operations: only(verb), messages: Some(1), ..fixed(size) }).finish();
                let slowdown = outcome.flow(0).slowdown().expect("the flow finished");
                // Headers that say where a packet belongs; standard headers are shorter.
                assert!((1.0..1.05).contains(&slowdown), "{verb:?} of {size} by {series:?}: {slowdown}");
            }
        }
    }
}

/// Short packets have the gap of the scenario around them, too.
#[test]
fn with_other_gaps_no_operation_beats_its_ideal() {
    for verb in ALL {
        for gap in [0, 12, 40] {
            for series in Series::ALL {
                let verbs = Verbs { operations: only(verb), messages: Some(5), queue_depth: 1, ..fixed(100) };
                let outcome = scene(series, verbs).with(|config| config.nic.gap = Bytes::new(gap)).finish();
                for row in &outcome.flows {
                    let slowdown = row.slowdown().expect("the flow finished");
                    assert!((1.0..1.05).contains(&slowdown), "{verb:?} by {series:?}, gap {gap}: {slowdown}");
                }
            }
        }
    }
}

/// Returns the most messages under way at a time.
fn most_at_once(rows: &[FlowRow]) -> usize {
    let under_way = |at: Instant| rows.iter().filter(|row| row.start <= at && row.finish > Some(at)).count();
    rows.iter().map(|row| under_way(row.start)).max().unwrap_or(0)
}

#[test]
fn queue_pairs_have_as_many_messages_under_way_as_they_may() {
    for depth in [1, 7] {
        let verbs = Verbs { messages: Some(50), queue_depth: depth, ..fixed(3_000) };
        let outcome = scene(Series::Irn, verbs).finish();
        assert_eq!(most_at_once(&outcome.flows), depth as usize);
    }
}

#[test]
fn sends_wait_for_receive_requests() {
    let verbs = Verbs { operations: only(Verb::Send), messages: Some(200), queue_depth: 16, ..fixed(100) };
    for series in [Series::Irn, Series::Roce] {
        let enough = scene(series, verbs.clone()).finish();
        let scarce =
            scene(series, Verbs { receives: Some(1), ..verbs.clone() }).with(losing(Affected::All, 30)).finish();
        assert_eq!(enough.record.retransmissions, 0);
        assert!(scarce.record.end > enough.record.end);
    }
}

/// A Send that is early because paths reorder, and finds no receive request, is dropped: with PFC, no timeout repairs
/// that.
#[test]
fn sends_wait_for_receive_requests_where_paths_reorder_and_timeouts_are_off() {
    let mix = Operations::InTurn(vec![Verb::SendImmediate, Verb::Send, Verb::Read, Verb::WriteImmediate]);
    for balancing in [BalancingConfig::Spray, BalancingConfig::Drill(DrillConfig::default())] {
        for (seed, recovery) in (1..6).flat_map(|seed| [(seed, None), (seed, Some(melo))]) {
            let verbs = Verbs {
                operations: mix.clone(),
                messages: Some(29),
                queue_depth: 8,
                queue_pairs: 2,
                reads: 1,
                receives: Some(1),
                ..Verbs::of(Sizes::Fixed(Bytes::new(15_000)))
            };
            let scene =
                Scene::new(FatTree { k: 4, link: link(10, 600) }.build().unwrap(), Series::IrnPfc).with(|config| {
                    config.seed = seed;
                    config.switch.balancing = balancing;
                    config.workload.verbs = Many::from(verbs);
                });
            match recovery {
                None => assert_eq!(scene.finish().record.timeouts, 0, "{balancing:?}"),
                // The timeouts of this recovery are never off.
                Some(recovery) => assert!(scene.with(recovery).finish().record.flows_finished > 0),
            }
        }
    }
}

#[test]
fn a_queue_pair_that_hears_nothing_fails_and_the_run_ends() {
    for series in Series::ALL {
        let verbs =
            Verbs { messages: Some(100), timeout: Setting::Value(Duration::from_us(30)), retries: 2, ..fixed(100_000) };
        let down = LinkFailure { link: "h1".parse().unwrap(), at: Duration::from_us(50), until: None };
        let outcome = scene(series, verbs).with(|config| config.failures.push(down)).run();
        assert!(outcome.record.flows_finished > 0 && outcome.record.flows_finished < 100, "{series:?}");
        assert_eq!(outcome.flows.len() as u64, outcome.record.flows_started, "each message is reported");
    }
}

/// No sender waits for an acknowledgement that was not asked for.
#[test]
fn no_congestion_control_needs_timeouts_on_an_idle_path() {
    let fixed_at = |bytes| FixedConfig { window: Setting::Value(Bytes::new(bytes)), ..FixedConfig::default() }.into();
    let paced = FixedConfig { rate: Setting::Value(Rate::from_gbps(1)), ..FixedConfig::default() };
    let controls: [CongestionConfig; 8] = [
        AimdConfig::default().into(),
        DcqcnConfig::default().into(),
        paced.into(),
        fixed_at(1),
        fixed_at(1_106),
        fixed_at(5_000),
        fixed_at(60_000),
        fixed_at(9_000_000),
    ];
    for series in [Series::Roce, Series::RocePfc] {
        for (congestion, verb) in
            controls.iter().flat_map(|&control| [Verb::Write, Verb::Send, Verb::Read].map(|verb| (control, verb)))
        {
            let verbs = Verbs { operations: only(verb), messages: Some(20), queue_depth: 20, ..fixed(70_000) };
            let outcome = scene(series, verbs)
                .with(|config| config.transport.rdma_mut().expect("queue pairs").congestion = congestion)
                .finish();
            let record = outcome.record;
            let unfinished = outcome.flows.iter().filter(|row| row.finish.is_none()).count();
            let found = (record.timeouts, record.retransmissions, unfinished);
            assert_eq!(found, (0, 0, 0), "{series:?}, {verb:?}, {congestion:?}");
        }
    }
}
