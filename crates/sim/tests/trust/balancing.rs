//! Load balancing in a whole fabric: spreading, reordering and order of packets.

use selvedge_sim::config::{BalancingConfig, DrillConfig, FlowletConfig};
use selvedge_sim::topology::LeafSpine;
use selvedge_sim::{SimConfig, port_infos};
use selvedge_telemetry::DropReason;
use selvedge_transport::congestion::fixed::FixedConfig;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_transport::tcp::TcpConfig;
use selvedge_units::{Bytes, Duration, Setting};

use crate::determinism::ndp;
use crate::support::{Outcome, Scene, Series, link};

/// Returns a scene with one flow of 4,000 full packets over four spines.
fn one_flow(series: Series, balancing: BalancingConfig) -> Scene {
    let (host_link, spine_link) = (link(100, 1_000), link(100, 1_000));
    let graph = LeafSpine { leaves: 2, spines: 4, hosts_per_leaf: 4, host_link, spine_link, parallel_links: 1 }
        .build()
        .unwrap();
    let scene = Scene::new(graph, series).flow(0, 4, 4_096_000, Duration::ZERO);
    scene.with(|config| config.switch.balancing = balancing)
}

fn flowlets(gap: Duration) -> BalancingConfig {
    BalancingConfig::Flowlet(FlowletConfig { gap: Setting::Value(gap), ..FlowletConfig::default() })
}

/// Returns the frames that the first leaf sent to each spine.
fn uplinks(scene: &Scene, outcome: &Outcome) -> Vec<u64> {
    let infos = port_infos(scene.config.paths.graph());
    let of = |(port, info): (&selvedge_telemetry::PortTotals, &selvedge_telemetry::PortInfo)| {
        (&*info.node == "leaf0" && info.peer.starts_with("spine")).then_some(port.frames)
    };
    outcome.record.ports.iter().zip(&infos).filter_map(of).collect()
}

#[test]
fn only_ecmp_keeps_a_busy_flow_on_one_way() {
    let drill = BalancingConfig::Drill(DrillConfig::default());
    for (balancing, least) in [(BalancingConfig::Ecmp, 0), (BalancingConfig::Spray, 800), (drill, 800)] {
        let scene = one_flow(Series::Irn, balancing);
        let outcome = scene.finish();
        let mut frames = uplinks(&scene, &outcome);
        frames.sort();
        assert_eq!(frames.len(), 4);
        assert!(frames[0] >= least, "{balancing:?}: {frames:?}");
        assert_eq!(outcome.record.path_switches == Some(0), balancing == BalancingConfig::Ecmp);
        assert_eq!(frames[2] == 0, balancing == BalancingConfig::Ecmp);
    }
}

#[test]
fn a_flow_alone_is_in_order_whatever_way_its_packets_take() {
    // Paths have equal delays and no other traffic, and no short packet at the end could overtake.
    for balancing in [BalancingConfig::Spray, BalancingConfig::Drill(DrillConfig::default())] {
        let outcome = one_flow(Series::Roce, balancing).finish();
        assert_eq!(outcome.record.nacks_sent, 0);
        assert!(outcome.record.path_switches > Some(2_000));
    }
}

#[test]
fn changes_of_way_are_counted_where_hashes_tell_flows() {
    let tcp = |config: &mut SimConfig| config.transport = TcpConfig::default().into();
    let outcome = one_flow(Series::Irn, BalancingConfig::Spray).with(tcp).finish();
    // Of four paths, a packet takes that of the previous one every fourth time, and acknowledgements do not count.
    let (data, found) = (outcome.record.data_sent, outcome.record.path_switches.unwrap());
    assert!(found > data * 7 / 10 && found < data * 8 / 10, "{found} of {data}");
    // NDP's senders choose the hashes.
    assert_eq!(one_flow(Series::Irn, BalancingConfig::Spray).with(ndp).finish().record.path_switches, None);
}

/// Runs the flow of [`one_flow`] while other flows make one spine busier than others.
fn crossed(balancing: BalancingConfig) -> Outcome {
    let others = (1..4)
        .fold(one_flow(Series::Roce, balancing), |scene, host| scene.flow(host, 4 + host, 2_000_000, Duration::ZERO));
    others.with(|config| config.switch.pfc.enabled = true).finish()
}

#[test]
fn spraying_reorders_and_go_back_n_pays_for_it() {
    assert_eq!(crossed(BalancingConfig::Ecmp).record.nacks_sent, 0);
    assert!(crossed(BalancingConfig::Spray).record.nacks_sent > 0);
}

/// Go-back-N without a timeout may wait for ever even where nothing is lost (scenarios for which this is possible cause
/// a warning).
#[test]
fn with_a_timeout_go_back_n_finishes_whatever_overtakes() {
    let rto = Setting::Value(Duration::from_ms(1));
    let unfinished = |roce: GoBackNConfig| -> u64 {
        let of_seed = |seed: u64| {
            let (host_link, spine_link) = (link(40, 1_000), link(10, 1_000));
            let graph = LeafSpine { leaves: 2, spines: 4, hosts_per_leaf: 4, host_link, spine_link, parallel_links: 1 };
            let scene = Scene::new(graph.build().unwrap(), Series::RocePfc).with(|config| {
                config.switch.balancing = BalancingConfig::Drill(DrillConfig::default());
                config.transport.rdma_mut().expect("queue pairs").recovery = roce.into();
                config.seed = seed;
            });
            let scene = (0..4).fold(scene, |scene, host| {
                scene.flow(host, 4 + host, 30_000, Duration::ZERO).flow(4 + host, host, 30_000, Duration::ZERO)
            });
            let record = scene.run().record;
            let lost =
                [DropReason::BufferFull, DropReason::HeadroomFull].map(|why| record.data_drops.by_reason[why as usize]);
            assert_eq!(lost, [0, 0], "seed {seed}");
            record.flows_started - record.flows_finished
        };
        (1..=60).map(of_seed).sum()
    };
    assert!(unfinished(GoBackNConfig { acks: Acks::WithoutPfc, ..GoBackNConfig::default() }) > 0);
    assert_eq!(unfinished(GoBackNConfig { rto, acks: Acks::PerPacket, ..GoBackNConfig::default() }), 0);
}

#[test]
fn flowlets_change_ways_between_bursts_and_keep_order() {
    let bursty = |gap| {
        let scene = one_flow(Series::Irn, flowlets(gap));
        // The window is a fifth of the bandwidth-delay product: bursts of four packets, and pauses of most of a round
        // trip.
        let window = Setting::Value(Bytes::new(20_000));
        scene.with(|config| {
            config.transport.rdma_mut().expect("queue pairs").congestion =
                FixedConfig { window, ..FixedConfig::default() }.into()
        })
    };
    let outcome = bursty(Duration::from_us(2)).finish();
    assert!(outcome.record.path_switches > Some(50), "{:?}", outcome.record.path_switches);
    assert_eq!(outcome.record.nacks_sent, 0);
    assert_eq!(bursty(Duration::from_us(50)).finish().record.path_switches, Some(0), "no pause is that long");
}
