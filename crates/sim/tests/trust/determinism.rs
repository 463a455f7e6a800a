//! Determinism: one scenario and seed give byte-identical results on any number of threads and partitions, in debug and
//! release builds, and in later versions.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use selvedge_sim::config::{
    BalancingConfig, BufferConfig, Choice, DrillConfig, FairQueued, FlowletConfig, Looks, RdmaConfig, SharedBuffer,
    Stop, TransportConfig, Trimming, TunnelledConfig,
};
use selvedge_sim::fault::{Affected, Bursty, Direction, LinkFailure, LossConfig, LossModel, RandomLoss};
use selvedge_sim::topology::{Chain, FatTree, Graph, LeafSpine};
use selvedge_sim::workload::{
    AllToAll, ClosedLoopConfig, Collective, Fraction, Incast, Many, MixtureOfExperts, Operation, Operations, Order,
    Pairs, Partners, Permutation, Pipeline, Placement, Poisson, Senders, Sizes, Team, Verb, Verbs,
};
use selvedge_sim::{Beside, SimConfig};
use selvedge_telemetry::{FlowRow, TimeProfile};
use selvedge_transport::congestion::dcqcn::DcqcnConfig;
use selvedge_transport::congestion::dctcp::DctcpConfig;
use selvedge_transport::congestion::hpcc::HpccConfig;
use selvedge_transport::congestion::swift::SwiftConfig;
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::eqds::eqif::{RdmaEqif, TcpEqif};
use selvedge_transport::homa::HomaConfig;
use selvedge_transport::ndp::NdpConfig;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::recovery::melo::MeloConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::tcp::congestion::{cubic, dctcp as dctcp_of_tcp, lia};
use selvedge_units::{Bytes, Chance, Duration, Setting, Skew, Toggle};

use crate::support::{Outcome, Scene, Series, link, servers};

fn fat_tree(k: u32) -> Graph {
    FatTree { k, link: link(40, 2_000) }.build().unwrap()
}

fn leaf_spine() -> Graph {
    let (host_link, spine_link) = (link(25, 600), link(100, 1_300));
    LeafSpine { leaves: 6, spines: 3, hosts_per_leaf: 5, host_link, spine_link, parallel_links: 2 }.build().unwrap()
}

fn chain() -> Graph {
    let (host_link, switch_link) = (link(7, 900), link(10, 1_100));
    Chain { switches: 5, hosts_per_end: 2, hosts_per_inner: 1, host_link, switch_link }.build().unwrap()
}

/// Returns a network with links that hold more packets than a switch takes in within a window.
fn far() -> Graph {
    let fast = link(400, 60_000);
    LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 5, host_link: fast, spine_link: fast, parallel_links: 1 }
        .build()
        .unwrap()
}

/// Returns a network with long links between switches, which packets take many windows to cross, and hosts close to
/// these.
fn long() -> Graph {
    let (host_link, switch_link) = (link(10, 900), link(10, 90_000));
    Chain { switches: 3, hosts_per_end: 3, hosts_per_inner: 3, host_link, switch_link }.build().unwrap()
}

fn poisson(config: &mut SimConfig) {
    config.workload.poisson = Many::from(Poisson {
        load: Fraction::new(0.5).unwrap(),
        sizes: Sizes::Uniform([Bytes::new(1), Bytes::new(60_000)]),
        hosts: None,
        pairs: Pairs::Uniform,
        flows: Some(300),
        start: Duration::ZERO,
        until: None,
    });
}

fn incast(config: &mut SimConfig) {
    config.workload.incast = Many::from(Incast {
        size: Bytes::new(600_000),
        senders: Senders::Count(8),
        connections: 1,
        receiver: None,
        start: Duration::from_us(10),
        stagger: Duration::from_ns(100),
        jitter: Duration::from_us(1),
        repeat: 4,
        interval: Some(Duration::from_us(60)),
    });
}

fn triggered_incast(config: &mut SimConfig) {
    incast(config);
    config.workload.incast.0[0].interval = None;
}

fn permutation(config: &mut SimConfig) {
    let (hosts, start, jitter) = (None, Duration::ZERO, Duration::ZERO);
    config.workload.permutation =
        Many::from(Permutation { size: Bytes::new(100_000), repeat: 2, hosts, start, jitter });
}

fn all_to_all(config: &mut SimConfig) {
    let (hosts, start, jitter) = (None, Duration::ZERO, Duration::from_us(2));
    config.workload.all_to_all =
        Many::from(AllToAll { size: Bytes::new(5_000), outstanding: Some(2), hosts, start, jitter });
}

fn closed_loop(config: &mut SimConfig) {
    config.workload.closed_loop = Many::from(ClosedLoopConfig {
        clients: None,
        servers: None,
        outstanding: 2,
        sizes: Sizes::Uniform([Bytes::new(100), Bytes::new(30_000)]),
        flows_per_client: Some(8),
        think: Duration::from_us(3),
        start: Duration::ZERO,
        jitter: Duration::from_us(5),
    });
}

fn loss(config: &mut SimConfig) {
    let (direction, packets) = (Direction::Both, Affected::All);
    let random = LossModel::Random(RandomLoss { rate: Chance::ratio(1, 100) });
    let bursty = LossModel::Bursty(Bursty { mean_burst: 3.0, rate: Chance::ratio(1, 200) });
    for (link, model) in [("all", random), ("host-links", bursty)] {
        config.loss.push(LossConfig { link: link.parse().unwrap(), direction, packets, model });
    }
}

fn failures(config: &mut SimConfig) {
    let us = Duration::from_us;
    for (link, at, until) in [("pod0-edge0 - pod0-agg1", us(40), Some(us(90))), ("core1", us(70), None)] {
        config.failures.push(LinkFailure { link: link.parse().unwrap(), at, until });
    }
}

fn ecn(config: &mut SimConfig) {
    config.switch.ecn.enabled = Toggle::On;
    config.switch.ecn.p_max = Setting::Value(Chance::ratio(1, 2));
}

fn shared(config: &mut SimConfig) {
    let shared = SharedBuffer { total: Bytes::new(600_000), ..SharedBuffer::default() };
    config.switch.buffer = BufferConfig::SharedBuffer(shared);
}

/// Sets short queues, and few headers before data has its turn.
fn trimming(config: &mut SimConfig) {
    let headers_per_data = Setting::Value(2);
    config.switch.buffer = BufferConfig::Trimming(Trimming { packets: 4, headers_per_data, ..Trimming::default() });
}

/// Sets few flow queues, so that flows share them.
fn fair(config: &mut SimConfig) {
    let per_port = Setting::Value(Bytes::new(30_000));
    config.switch.buffer = BufferConfig::FairQueued(FairQueued { per_port, queues: 5, ..FairQueued::default() });
}

/// Sets NDP, with headers and control packets in a class above data.
pub(crate) fn ndp(config: &mut SimConfig) {
    config.transport = TransportConfig::Messages(NdpConfig::default().into());
    config.switch.buffer = BufferConfig::Trimming(Trimming::default());
    config.nic.ack_class = 6;
}

/// Sets Homa, with grants in the highest class.
pub(crate) fn homa(config: &mut SimConfig) {
    config.transport = TransportConfig::Messages(HomaConfig { cutoffs_after: 5, ..HomaConfig::default() }.into());
    config.nic.ack_class = 6;
}

/// Sets native messages of EQDS.
fn eqds(config: &mut SimConfig) {
    let rto = Setting::Value(Duration::from_us(100));
    config.transport = EqdsConfig { rto, ..EqdsConfig::default() }.into();
    config.switch.buffer = BufferConfig::Trimming(Trimming::default());
    config.nic.ack_class = 6;
}

/// Sets native messages of EQDS where switches do not trim.
fn eqds_rts(config: &mut SimConfig) {
    eqds(config);
    config.switch.buffer = BufferConfig::default();
    if let Some(eqds) = config.transport.tunnels_mut() {
        eqds.burst = Toggle::Off;
    }
}

/// Sets TCP through tunnels.
fn tcp_in_tunnels(config: &mut SimConfig) {
    eqds(config);
    let mut tunnels = *config.transport.tunnels().expect("tunnels");
    tunnels.eqif.tcp = Some(TcpEqif::default());
    config.transport = TunnelledConfig::new(tunnels, TcpConfig::default()).into();
}

/// Sets a go-back-N that acknowledges the last packet of a message, and others by count and time.
fn coalesced(config: &mut SimConfig) {
    let (acks, ack_every) = (Acks::Coalesced, 16);
    let ack_interval = Setting::Value(Duration::from_us(5));
    config.transport.rdma_mut().expect("queue pairs").recovery =
        GoBackNConfig { acks, ack_every, ack_interval, ..GoBackNConfig::default() }.into();
}

/// Sets go-back-N with DCQCN through tunnels.
fn roce_in_tunnels(config: &mut SimConfig) {
    let recovery = GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() }.into();
    rdma_in_tunnels(config, RdmaConfig { recovery, congestion: DcqcnConfig::default().into() });
}

/// Sets IRN through tunnels.
fn irn_in_tunnels(config: &mut SimConfig) {
    let irn = *config.transport.rdma().expect("queue pairs");
    rdma_in_tunnels(config, irn);
}

fn rdma_in_tunnels(config: &mut SimConfig, rdma: RdmaConfig) {
    eqds(config);
    let mut tunnels = *config.transport.tunnels().expect("tunnels");
    tunnels.eqif.rdma = Some(RdmaEqif::default());
    config.transport = TunnelledConfig::new(tunnels, rdma).into();
}

fn melo(config: &mut SimConfig) {
    let rto = Setting::Value(Duration::from_us(400));
    config.transport.rdma_mut().expect("queue pairs").recovery =
        MeloConfig { rto, pool_bits: 512, ..MeloConfig::default() }.into();
}

fn failures_of_spines(config: &mut SimConfig) {
    let us = Duration::from_us;
    for (link, at, until) in [("leaf0 - spine1", us(20), Some(us(60))), ("spine2", us(30), None)] {
        config.failures.push(LinkFailure { link: link.parse().unwrap(), at, until });
    }
}

fn classes(config: &mut SimConfig) {
    config.nic.ack_class = 6;
}

fn samples(config: &mut SimConfig) {
    config.sample = Some(Duration::from_us(7));
}

fn stopped(config: &mut SimConfig) {
    config.stop.time = Some(Duration::from_us(101));
}

fn stopped_by_flows(config: &mut SimConfig) {
    config.stop.flows = Some(150);
}

fn hpcc(config: &mut SimConfig) {
    config.transport.rdma_mut().expect("queue pairs").congestion = HpccConfig::default().into();
}

/// Sets NICs with clocks of their own, which do not begin at once, and a buffer in which ports compete.
fn clocks(config: &mut SimConfig) {
    shared(config);
    (config.nic.clock_skew, config.nic.jitter) = (Skew::from_ppm(100), Duration::from_ns(50));
}

fn dctcp(config: &mut SimConfig) {
    config.transport.rdma_mut().expect("queue pairs").congestion = DctcpConfig::default().into();
}

fn dcqcn(config: &mut SimConfig) {
    config.transport.rdma_mut().expect("queue pairs").congestion = DcqcnConfig::default().into();
}

fn swift(config: &mut SimConfig) {
    config.transport.rdma_mut().expect("queue pairs").congestion = SwiftConfig::default().into();
}

/// Sets TCP with connections that open and close.
fn tcp(config: &mut SimConfig) {
    let initial_rto = Setting::Value(Duration::from_us(500));
    let tcp = TcpConfig { handshake: true, fin: true, initial_rto, ..TcpConfig::default() };
    config.transport = tcp.into();
}

fn tcp_cubic(config: &mut SimConfig) {
    let tcp = TcpConfig { congestion: cubic::Config::default().into(), ..TcpConfig::default() };
    config.transport = tcp.into();
}

fn mptcp(config: &mut SimConfig) {
    let tcp = TcpConfig { subflows: 8, congestion: lia::Config::default().into(), ..TcpConfig::default() };
    config.transport = tcp.into();
}

fn tcp_marked(config: &mut SimConfig) {
    let tcp = TcpConfig { congestion: dctcp_of_tcp::Config::default().into(), ..TcpConfig::default() };
    config.transport = tcp.into();
}

fn spray(config: &mut SimConfig) {
    config.switch.balancing = BalancingConfig::Spray;
}

fn drill(config: &mut SimConfig) {
    config.switch.balancing = BalancingConfig::Drill(DrillConfig::default());
}

fn flowlet(config: &mut SimConfig) {
    let (gap, choice) = (Setting::Value(Duration::from_us(3)), Choice::LeastLoaded);
    config.switch.balancing = BalancingConfig::Flowlet(FlowletConfig { gap, choice, entries: 50 });
}

fn training(config: &mut SimConfig) {
    let team = Team { placement: Placement::Random, ..Team::default() };
    config.workload.collective = Many::from(Collective {
        operation: Operation::TreeAllReduce { chunk: Bytes::new(4_000), outstanding: 2 },
        size: Bytes::new(40_000),
        team: team.clone(),
        compute: Duration::from_us(3),
        repeat: 2,
        start: Duration::from_us(1),
    });
    config.workload.mixture_of_experts = Many::from(MixtureOfExperts {
        size: Bytes::new(30_000),
        skew: 0.8,
        layers: 2,
        compute: Duration::from_us(5),
        expert_compute: Duration::from_us(2),
        team: team.clone(),
        repeat: 2,
        start: Duration::ZERO,
    });
    config.workload.pipeline = Many::from(Pipeline {
        size: Bytes::new(9_000),
        micro_batches: 4,
        forward: Duration::from_us(4),
        backward: None,
        order: Order::default(),
        team,
        repeat: 1,
        start: Duration::ZERO,
    });
}

/// Sets incasts by TCP, in a class of their own, beside RDMA.
fn beside_tcp(config: &mut SimConfig) {
    let tcp = TcpConfig::default();
    // With PFC the class is lossless too.
    config.beside = Some(Beside { workloads: vec!["incast".into()], class: Some(1), tcp });
}

fn netrt(config: &mut SimConfig) {
    config.switch.netrt.enabled = true;
    (config.switch.netrt.k_low, config.switch.netrt.k_high) = (Bytes::new(4_000), Bytes::new(20_000));
}

/// Sets all operations of verbs at once, with few receive requests.
fn verbs(config: &mut SimConfig) {
    let all = [
        Verb::Write,
        Verb::WriteImmediate,
        Verb::Read,
        Verb::Send,
        Verb::SendImmediate,
        Verb::FetchAdd,
        Verb::CompareSwap,
    ];
    config.workload.verbs = Many::from(Verbs {
        operations: Operations::Weights(all.into_iter().zip(1..).collect()),
        queue_pairs: 2,
        queue_depth: 5,
        receives: Some(2),
        messages: Some(20),
        jitter: Duration::from_us(2),
        ..Verbs::of(Sizes::Uniform([Bytes::new(1), Bytes::new(20_000)]))
    });
}

/// Sets Writes of many hosts to each host.
fn verbs_writes(config: &mut SimConfig) {
    config.workload.verbs = Many::from(Verbs {
        pairs: Partners::AllToAll,
        queue_depth: 4,
        messages: Some(5),
        ..Verbs::of(Sizes::Fixed(Bytes::new(50_000)))
    });
}

/// Sets applications that post at random, with operations in turn.
fn verbs_poisson(config: &mut SimConfig) {
    config.workload.verbs.0.push(Verbs {
        operations: Operations::InTurn(vec![Verb::Read, Verb::Write, Verb::Send]),
        pairs: Partners::AllToAll,
        load: Fraction::new(0.3),
        queue_depth: 3,
        reads: 1,
        messages: Some(4),
        ..Verbs::of(Sizes::Uniform([Bytes::new(500), Bytes::new(50_000)]))
    });
}

type Change = fn(&mut SimConfig);

/// Returns a few scenarios that use every feature of the fabric.
pub(crate) fn scenarios() -> Vec<(&'static str, Scene)> {
    let scenarios: Vec<(&str, Graph, Series, &[Change])> = vec![
        ("irn-poisson", fat_tree(4), Series::Irn, &[poisson, samples]),
        ("irn-pfc-poisson", fat_tree(4), Series::IrnPfc, &[poisson, ecn]),
        ("roce-poisson", fat_tree(4), Series::Roce, &[poisson]),
        ("roce-pfc-poisson", fat_tree(4), Series::RocePfc, &[poisson, samples]),
        ("irn-incast-loss", fat_tree(4), Series::Irn, &[incast, loss]),
        ("irn-failures", fat_tree(4), Series::Irn, &[poisson, failures, samples]),
        ("roce-loss-failures", fat_tree(4), Series::Roce, &[poisson, loss, failures]),
        ("roce-pfc-failures", fat_tree(4), Series::RocePfc, &[poisson, incast, failures]),
        ("roce-pfc-incast", fat_tree(6), Series::RocePfc, &[incast, samples]),
        ("irn-closed-loop", fat_tree(4), Series::Irn, &[closed_loop, loss]),
        ("roce-pfc-closed-loop", fat_tree(4), Series::RocePfc, &[closed_loop, poisson]),
        ("irn-triggers", fat_tree(4), Series::Irn, &[triggered_incast]),
        ("irn-pfc-shared", leaf_spine(), Series::IrnPfc, &[poisson, incast, shared, ecn]),
        ("irn-shared", leaf_spine(), Series::Irn, &[permutation, incast, shared]),
        ("irn-clocks", leaf_spine(), Series::Irn, &[permutation, incast, clocks]),
        ("roce-pfc-clocks", leaf_spine(), Series::RocePfc, &[permutation, clocks]),
        ("roce-pfc-shared-loss", leaf_spine(), Series::RocePfc, &[permutation, shared, loss]),
        ("irn-all-to-all", leaf_spine(), Series::Irn, &[all_to_all, classes]),
        ("roce-pfc-odd-rates", chain(), Series::RocePfc, &[all_to_all, classes, samples]),
        ("irn-inner-nics", servers(), Series::Irn, &[all_to_all, closed_loop, loss]),
        ("irn-odd-rates", chain(), Series::Irn, &[permutation, loss, stopped_by_flows]),
        ("roce-pfc-stopped", fat_tree(4), Series::RocePfc, &[poisson, permutation, stopped]),
        ("irn-hpcc", fat_tree(4), Series::Irn, &[poisson, incast, loss, hpcc]),
        ("roce-hpcc-odd-rates", chain(), Series::Roce, &[permutation, classes, hpcc]),
        ("irn-dctcp", fat_tree(4), Series::Irn, &[poisson, incast, dctcp]),
        ("irn-swift", leaf_spine(), Series::Irn, &[permutation, incast, swift]),
        ("tcp-incast-loss", fat_tree(4), Series::Irn, &[poisson, incast, loss, tcp]),
        ("tcp-cubic-pfc", fat_tree(4), Series::IrnPfc, &[closed_loop, poisson, tcp_cubic]),
        ("mptcp-loss", fat_tree(4), Series::Irn, &[permutation, incast, loss, mptcp]),
        ("tcp-dctcp-shared", leaf_spine(), Series::Irn, &[permutation, incast, shared, tcp_marked]),
        ("irn-spray-failures", fat_tree(4), Series::Irn, &[poisson, failures, spray]),
        ("roce-drill", leaf_spine(), Series::Roce, &[permutation, incast, drill]),
        ("netrt-incast-loss", fat_tree(4), Series::Roce, &[poisson, incast, loss, netrt]),
        ("netrt-drill-shared", leaf_spine(), Series::Roce, &[permutation, incast, shared, drill, samples, netrt]),
        ("netrt-failures", fat_tree(4), Series::Roce, &[poisson, failures, hpcc, spray, netrt]),
        ("irn-flowlet", fat_tree(4), Series::Irn, &[closed_loop, poisson, incast, flowlet]),
        ("irn-beside-tcp", fat_tree(4), Series::Irn, &[poisson, incast, beside_tcp]),
        ("roce-pfc-beside-tcp", fat_tree(4), Series::RocePfc, &[poisson, incast, beside_tcp, loss]),
        ("irn-trimming", fat_tree(4), Series::Irn, &[poisson, incast, loss, classes, trimming, samples]),
        ("tcp-trimming", leaf_spine(), Series::Irn, &[permutation, incast, failures_of_spines, tcp_marked, trimming]),
        ("irn-training", fat_tree(4), Series::Irn, &[training, loss]),
        ("roce-pfc-training", leaf_spine(), Series::RocePfc, &[training, poisson]),
        ("irn-training-inner-nics", servers(), Series::Irn, &[training]),
        ("tcp-fair", leaf_spine(), Series::Irn, &[permutation, incast, failures_of_spines, tcp_marked, fair]),
        ("ndp-incast-loss", fat_tree(4), Series::Irn, &[poisson, incast, loss, ndp, samples]),
        ("ndp-failures", fat_tree(4), Series::Irn, &[permutation, failures, ndp]),
        ("homa-incast-loss", fat_tree(4), Series::Irn, &[poisson, incast, loss, homa, samples]),
        ("homa-failures", fat_tree(4), Series::Irn, &[permutation, failures, homa]),
        ("eqds-incast-loss", fat_tree(4), Series::Irn, &[poisson, incast, loss, eqds, samples]),
        ("eqds-rts-failures", fat_tree(4), Series::Irn, &[permutation, failures, eqds_rts]),
        ("tcp-eqds-loss", fat_tree(4), Series::Irn, &[poisson, incast, loss, tcp_in_tunnels]),
        ("roce-coalesced", fat_tree(4), Series::Roce, &[poisson, incast, loss, coalesced]),
        ("roce-coalesced-pfc", fat_tree(6), Series::RocePfc, &[permutation, incast, closed_loop, coalesced, samples]),
        ("roce-dcqcn-eqds", leaf_spine(), Series::Roce, &[permutation, incast, roce_in_tunnels, samples]),
        ("melo-incast-loss", fat_tree(4), Series::Irn, &[poisson, incast, loss, melo]),
        ("irn-verbs-loss", fat_tree(4), Series::Irn, &[verbs, loss, samples]),
        ("irn-verbs-beside-flows", leaf_spine(), Series::Irn, &[verbs, poisson, incast]),
        ("irn-pfc-verbs-classes", fat_tree(4), Series::IrnPfc, &[verbs_poisson, classes]),
        ("roce-verbs-loss", fat_tree(4), Series::Roce, &[verbs, loss]),
        ("roce-pfc-verbs", chain(), Series::RocePfc, &[verbs, verbs_poisson]),
        ("melo-verbs-loss", leaf_spine(), Series::Irn, &[verbs_poisson, loss, melo]),
        ("irn-dcqcn-verbs", leaf_spine(), Series::Irn, &[verbs, verbs_poisson, dcqcn]),
        ("irn-swift-verbs-loss", fat_tree(4), Series::Irn, &[verbs, loss, swift]),
        ("roce-pfc-dcqcn-verbs", chain(), Series::RocePfc, &[verbs_writes, dcqcn]),
        ("irn-verbs-eqds-loss", fat_tree(4), Series::Irn, &[verbs, loss, irn_in_tunnels, samples]),
        ("roce-dcqcn-verbs-eqds", leaf_spine(), Series::Roce, &[verbs_writes, incast, roce_in_tunnels]),
        ("irn-verbs-inner-nics", servers(), Series::Irn, &[verbs, stopped_by_flows]),
        ("irn-far", far(), Series::Irn, &[permutation, incast, samples]),
        ("irn-long", long(), Series::Irn, &[permutation, incast, loss]),
        ("irn-stopped-by-flows", fat_tree(4), Series::Irn, &[closed_loop, poisson, stopped_by_flows]),
    ];
    let scene = |(name, graph, series, changes): (_, _, _, &[Change])| {
        (name, changes.iter().fold(Scene::new(graph, series), |scene, change| scene.with(change)))
    };
    scenarios.into_iter().map(scene).collect()
}

/// Returns the part of an outcome that must be equal: all but the time that the run took.
pub(crate) fn essence(mut outcome: Outcome) -> Outcome {
    (outcome.record.cpu_s, outcome.record.wall_s) = (0.0, 0.0);
    outcome
}

#[test]
fn threads_and_partitions_change_nothing() {
    for (name, scene) in scenarios() {
        let alone = essence(scene.run());
        for (threads, partitions) in [(1, 2), (2, 2), (1, 4), (2, 4), (2, 8), (1, 1_000), (2, 1_000)] {
            let outcome = essence(scene.clone().parallel(threads, partitions).run());
            let same = outcome == alone;
            assert_eq!(outcome.record.fingerprint, alone.record.fingerprint, "{name}: {threads} x {partitions}");
            assert!(same, "{name}: {threads} threads, {partitions} partitions");
        }
    }
}

#[test]
fn windows_change_nothing() {
    for (name, scene) in scenarios() {
        let whole = scene.run().record.end.as_ps();
        for tenths in [2, 5, 9] {
            // With a limit on flows, runs end between windows.
            let stop = Stop { time: Some(Duration::from_ps(whole / 10 * tenths)), flows: None };
            let scene = scene.clone().with(|config| config.stop = stop);
            // Flows are examined between windows, hence at other moments.
            let scene = scene.with(|config| config.looks = Looks::Never);
            let in_turns = essence(scene.clone().parallel(1, 3).run());
            let together = essence(scene.all_together().run());
            let same = in_turns == together;
            assert!(same, "{name}, first {tenths} tenths");
        }
    }
}

#[test]
fn looks_change_nothing() {
    for (name, scene) in scenarios() {
        let run = |looks, partitions| {
            let scene = scene.clone().with(|config| config.looks = looks).parallel(1, partitions);
            let mut outcome = essence(scene.run());
            let time = std::mem::take(&mut outcome.record.time);
            (outcome, time)
        };
        let (never, nothing) = run(Looks::Never, 1);
        assert_eq!(nothing, TimeProfile::default());
        let every = Looks::Every(Duration::from_us(3));
        let ((often, time), (cut, same)) = (run(every, 1), run(every, 3));
        let is_same = never == often && never == cut && never == run(Looks::Cheaply, 2).0;
        assert!(is_same, "{name}");
        assert_eq!(time, same, "{name}: looks do not depend on partitions");
        // The number of times that a measured flow is examined is proportional to its duration; the rest is chance.
        let end = never.record.end;
        let whole = |row: &FlowRow| row.finish.unwrap_or(end).since(row.start).as_ps();
        let sum: u64 = never.flows.iter().filter(|row| row.measured).map(whole).sum();
        let seen: u128 = time.workloads.iter().map(|workload| workload.parts.total()).sum();
        let ratio = seen as f64 / sum as f64;
        println!("{name}: {} looks, {ratio:.3}", time.looks);
        assert!((0.9..1.1).contains(&ratio), "{name}: {ratio} in {} looks", time.looks);
    }
}

#[test]
fn another_seed_is_another_run() {
    for (name, scene) in scenarios() {
        let other = scene.clone().with(|config| config.seed = 2);
        assert_ne!(scene.run().record.fingerprint, other.run().record.fingerprint, "{name}");
    }
}

/// Compares the fingerprint of each scenario, and a summary of its run, with the committed table. A commit that changes
/// the table says why.
#[test]
fn fingerprints_are_those_on_record() {
    let rows: BTreeMap<&str, String> = scenarios().into_iter().map(|(name, scene)| (name, row(&scene.run()))).collect();
    let mut text = String::from(
        "# Fingerprints of the scenarios in trust/determinism.rs; `cargo xtask bless sim` writes this file.\n\
         # hash: arrivals and losses, with times and order. The rest tells a reader what changed with it: finished of\n\
         # started flows; data packets sent, retransmitted among them, and dropped; pause and resume frames; median and\n\
         # 99th percentile of the completion times of finished flows, and the end of the run, in nanoseconds.\n",
    );
    for (name, row) in rows {
        writeln!(text, "{name:<27} = {row}").expect("writing to a string succeeds");
    }
    expect_file!["../fingerprints.toml"].assert_eq(&text);
}

/// Returns the fingerprint and a summary of a run, as an inline table of TOML.
fn row(outcome: &Outcome) -> String {
    let record = &outcome.record;
    let mut times: Vec<u64> = outcome.flows.iter().filter_map(FlowRow::fct).map(|fct| fct.as_ps() / 1_000).collect();
    times.sort_unstable();
    // The smallest time that at least this share of the flows does not exceed; 0 if no flow finished.
    let percentile = |share: usize| {
        let rank = (times.len() * share).div_ceil(100);
        times.get(rank.saturating_sub(1)).copied().unwrap_or_default()
    };
    format!(
        "{{ hash = \"{:016x}\", finished = {:>4}, started = {:>4}, sent = {:>6}, resent = {:>6}, dropped = {:>5}, \
         pauses = {:>4}, p50 = {:>8}, p99 = {:>8}, end = {:>9} }}",
        record.fingerprint,
        record.flows_finished,
        record.flows_started,
        record.data_sent,
        record.retransmissions,
        record.data_drops.total(),
        record.pause_frames,
        percentile(50),
        percentile(99),
        record.end.as_ps() / 1_000,
    )
}
