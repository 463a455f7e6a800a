//! Tests that every sample, a file as users have them, reads to the numbers that its authors meant.

mod common;

use common::shared;
use expect_test::expect;
use selvedge_formats::cdf::{self, CdfPoints};
use selvedge_formats::{Dialect, Warning, detect, htsim_cm, htsim_topo, irn_trace, ns3_flow, ns3_topology};
use selvedge_units::{Bytes, Chance, Duration, Instant, Rate};

fn messages(warnings: &[Warning]) -> Vec<String> {
    warnings.iter().map(|warning| format!("{}: {}", warning.line, warning.message)).collect()
}

/// Returns the warnings, one per line.
fn told(warnings: &[Warning]) -> String {
    messages(warnings).iter().map(|message| format!("{message}\n")).collect()
}

#[test]
fn ns3_topologies_of_conweave() {
    let cases = [
        ("leaf_spine_128_100G_OS2.txt", 144, 16, 192, Rate::from_gbps(100)),
        ("fat_k4_100G_OS2.txt", 52, 20, 64, Rate::from_gbps(100)),
        ("fat.txt", 376, 56, 480, Rate::from_gbps(400)),
    ];
    for (name, nodes, switches, links, last_rate) in cases {
        let Some(bytes) = shared(&format!("formats/ns3/{name}")) else { return };
        assert_eq!(detect(&bytes, name), Ok(Dialect::Ns3Topology));
        let parsed = ns3_topology::read(&*bytes, name).unwrap();
        assert_eq!(parsed.warnings, [], "{name}");
        let topology = parsed.value;
        assert_eq!(topology.node_count, nodes);
        assert_eq!(topology.switches.len(), switches);
        assert_eq!(topology.hosts().count(), nodes as usize - switches);
        assert_eq!(topology.links.len(), links);
        assert!(topology.links.iter().all(|link| link.delay == Duration::from_us(1) && link.loss == Chance::NEVER));
        assert_eq!(topology.links.last().unwrap().rate, last_rate);
    }
}

#[test]
fn ns3_topology_of_hpcc_has_a_switch_0_and_left_over_links() {
    let Some(bytes) = shared("formats/ns3/topology.txt") else { return };
    assert_eq!(detect(&bytes, "topology.txt"), Ok(Dialect::Ns3Topology));
    let parsed = ns3_topology::read(&*bytes, "topology.txt").unwrap();
    let topology = parsed.value;
    assert_eq!(topology.switches.keys().collect::<Vec<_>>(), [&0]);
    assert!(topology.hosts().eq(1..=65));
    assert_eq!(topology.links.len(), 65);
    assert_eq!(topology.links[0].delay, Duration::from_us(1));
    expect![[r#"
        68: the header says 65 links, and more lines follow, of which this one does not fit (found "66", expected a node id from 0 to 65): only the first 65 are taken, as ns-3 does
    "#]]
    .assert_eq(&told(&parsed.warnings));
}

#[test]
fn ns3_flows_of_hpcc_declare_2_and_list_256() {
    let Some(bytes) = shared("formats/ns3/flow.txt") else { return };
    assert_eq!(detect(&bytes, "flow.txt"), Ok(Dialect::Ns3Flows6));
    let parsed = ns3_flow::read(&*bytes, "flow.txt", ns3_flow::Options::default()).unwrap();
    assert_eq!(parsed.dialect, Dialect::Ns3Flows6);
    assert_eq!(parsed.warnings, []);
    let mut list = parsed.value;
    let first = list.flows[0];
    assert_eq!((first.src, first.dst, first.priority, first.dst_port), (2, 1, 3, Some(100)));
    assert_eq!((first.size, first.start), (Bytes::new(200_000_000), Instant::from_ps(2_000_000_000_000)));

    // Together with HPCC's topology, whose hosts end at 65, only the declared flows make sense; with a
    // larger one all do.
    let mut all = list.clone();
    let says = "the first line says 2 flows, the file has 256 above the notes from line 259 on";
    let warning = all.settle_surplus(|_| true).unwrap();
    assert_eq!((all.flows.len(), warning.message), (256, format!("{says}: all are taken")));
    assert_eq!(all.settle_surplus(|_| true), None, "said once");

    let warning = list.settle_surplus(|node| (1..=65).contains(&node)).unwrap();
    assert_eq!((list.flows.len(), warning.line), (2, 1));
    let why = "only the first 2 are taken, as ns-3 does, because others are between nodes that are no hosts of this topology (node 66 in line 66)";
    assert_eq!(warning.message, format!("{says}: {why}"));
}

#[test]
fn htsim_topologies_make_htsims_networks() {
    let cases = [
        ("fat_tree_1024.topo", 1024, [16, 8, 8, 64], 1024 + 1024 + 1024),
        ("fat_tree_128_4os.topo", 128, [8, 4, 4, 4], 128 + 128 + 32),
        ("leaf_spine_tiny.topo", 32, [1, 4, 2, 0], 32 + 8),
    ];
    for (name, hosts, counts, links) in cases {
        let Some(bytes) = shared(&format!("formats/htsim/{name}")) else { return };
        assert_eq!(detect(&bytes, name), Ok(Dialect::HtsimTopology));
        let parsed = htsim_topo::read(&*bytes, name).unwrap();
        assert_eq!(parsed.warnings, [], "{name}");
        let tree = parsed.value;
        assert_eq!(tree.hosts, hosts);
        assert_eq!([tree.pods, tree.tors_per_pod, tree.aggs_per_pod, tree.cores], counts, "{name}");
        assert_eq!(tree.links().count(), links, "{name}");
        assert!(tree.links().all(|link| link.rate == Rate::from_gbps(100) && link.delay == Duration::from_us(1)));
    }
}

#[test]
fn htsim_matrices() {
    for (name, nodes, flows, last) in [
        ("one.cm", 16, 1, (0, 13)),
        ("incast.cm", 16, 15, (14, 15)),
        ("perm_16n_16c_2MB.cm", 16, 16, (8, 9)),
        ("perm_1024n_1024c_0u_2000000b.cm", 1024, 1024, (530, 825)),
    ] {
        let Some(bytes) = shared(&format!("formats/htsim/{name}")) else { return };
        assert_eq!(detect(&bytes, name), Ok(Dialect::HtsimMatrix));
        let parsed = htsim_cm::read(&*bytes, name, htsim_cm::StartUnit::Auto).unwrap();
        assert_eq!(parsed.warnings, [], "{name}");
        let matrix = parsed.value;
        assert_eq!((matrix.nodes, matrix.flows.len()), (nodes, flows));
        assert!(matrix.flows.iter().all(|flow| flow.size == Bytes::new(2_000_000)));
        assert!(matrix.flows.iter().all(|flow| flow.start == htsim_cm::Start::At(Instant::ZERO)));
        let flow = matrix.flows.last().unwrap();
        assert_eq!((flow.src, flow.dst), last);
    }
}

#[test]
fn distributions_of_published_files() {
    for (name, dialect, points, mean, known) in [
        ("AliStorage2019.txt", Dialect::CdfPercent, 9, 0, "ali-storage"),
        ("FbHdp_distribution.txt", Dialect::CdfPercent, 20, 0, "fb-hadoop"),
        ("WebSearch_distribution.txt", Dialect::CdfPercent, 12, 1_711_250, "web-search"),
        ("GoogleRPC2008.txt", Dialect::CdfPercent, 843, 2_892, "google-rpc"),
        ("irn_heavy_tailed_packets.txt", Dialect::CdfPackets, 12, 195_357, "irn-heavy-tailed"),
        ("datamining_packets.txt", Dialect::CdfPackets, 9, 0, "data-mining"),
    ] {
        let Some(bytes) = shared(&format!("workloads/{name}")) else { return };
        let parsed = cdf::read(&*bytes, name, cdf::SizeUnit::Auto).unwrap();
        assert_eq!(parsed.dialect, dialect, "{name}");
        assert_eq!(parsed.value.points.len(), points, "{name}");
        assert_eq!(parsed.warnings.len(), usize::from(dialect == Dialect::CdfPackets), "{name}");
        if mean > 0 {
            assert_eq!(parsed.value.mean().get(), mean, "{name}");
        }
        let known = cdf::known(known).unwrap();
        match name {
            "GoogleRPC2008.txt" => assert_close(&known, &parsed.value, 3),
            // Half of it lies below one packet: see `known`.
            "irn_heavy_tailed_packets.txt" => assert_eq!(known.points[2..], parsed.value.points[1..]),
            // Packets in one source, bytes in the other.
            "datamining_packets.txt" => {}
            _ => assert_eq!(known, parsed.value, "{name}"),
        }
    }
}

/// Checks that `thin` stays within `thousandths` of `full` at the points of `full`.
fn assert_close(thin: &CdfPoints, full: &CdfPoints, thousandths: u128) {
    for &(size, share) in &full.points {
        let after = thin.points.iter().position(|point| point.0 >= size).unwrap();
        let (b, a) = (thin.points[after], thin.points[after.saturating_sub(1)]);
        let width = u128::from((b.0 - a.0).get()).max(1);
        let there = u128::from(a.1) + u128::from(b.1 - a.1) * u128::from((size - a.0).get()) / width;
        let miss = (there.abs_diff(u128::from(share)) * 1000) >> 64;
        assert!(size == b.0 || miss < thousandths, "{size}: {miss} thousandths");
    }
}

#[test]
fn receiver_trace_of_the_irn_authors() {
    let Some(bytes) = shared("traces/irn-receiver/recvInput-40Gbps-incast.txt") else { return };
    let mut events = irn_trace::receiver_events(&*bytes, "recvInput");
    let mut count = 0;
    for event in events.by_ref() {
        let event = event.unwrap();
        assert!(event.qp < 50 && event.opcode == 1 && event.psn < 2807);
        count += 1;
    }
    assert_eq!(count, 140_361);
    assert_eq!(events.warning(), None);
}
