//! Results with a closed form are exact to the picosecond.

use selvedge_sim::topology::{Chain, Dumbbell, FatTree, Graph, LeafSpine};
use selvedge_sim::workload::Start;
use selvedge_units::{Bytes, Duration, HostId, Instant, Rate, Setting};

use crate::support::{Scene, Series, link, pair, servers, star};

/// Returns networks with paths of many kinds, with rates at which a byte does not take a whole number of picoseconds.
fn networks() -> Vec<(&'static str, Graph)> {
    let chain = |switches, host_link, switch_link| {
        Chain { switches, hosts_per_end: 1, hosts_per_inner: 0, host_link, switch_link }.build().unwrap()
    };
    let spine = LeafSpine {
        leaves: 3,
        spines: 2,
        hosts_per_leaf: 4,
        host_link: link(100, 500),
        spine_link: link(400, 1_500),
        parallel_links: 1,
    };
    vec![
        ("back to back", pair(link(100, 1_000))),
        ("a slow link", chain(3, link(100, 700), link(10, 2_300))),
        ("slow ends", chain(4, link(10, 1), link(100, 50))),
        ("odd rates", chain(5, link(7, 999), link(3, 1_001))),
        ("slow, fast, slow", star(&[link(25, 10), link(40, 3_000)])),
        ("fat-tree", FatTree { k: 4, link: link(40, 2_000) }.build().unwrap()),
        ("leaf-spine", spine.build().unwrap()),
    ]
}

#[test]
fn hosts_of_one_server_have_a_way_of_their_own() {
    for series in Series::ALL {
        let scene = Scene::new(servers(), series).flow(0, 1, 1_024, Duration::ZERO).flow(0, 2, 1_024, Duration::ZERO);
        let scene = scene.flow(0, 3, 1_024, Duration::from_us(50));
        let outcome = scene.finish();
        // Two NICs send at once; then two, two and four links store and forward.
        let inner = (scene.data_time(1_024, Rate::from_gbps(400)) + Duration::from_ns(25)) * 2;
        let outer = scene.data_time(1_024, Rate::from_gbps(100)) + Duration::from_ns(500);
        for (id, expected) in [(0, inner), (1, outer * 2), (2, outer * 4)] {
            assert_eq!(outcome.flow(id).fct(), Some(expected), "{series:?}, flow {id}");
            assert_eq!(outcome.delay(id), Duration::ZERO, "{series:?}, flow {id}");
        }
        assert_eq!(outcome.flow(0).dst, HostId(1), "rows name hosts, not NICs");
    }
}

#[test]
fn an_idle_path_takes_the_ideal_time_for_any_size() {
    let sizes = [1, 2, 1_023, 1_024, 1_025, 2_048, 10 * 1_024 + 1, 300_000];
    for (name, graph) in networks() {
        let last = graph.hosts.len() as u32 - 1;
        for series in Series::ALL {
            // Flows follow each other, far enough apart, in both directions.
            let mut scene = Scene::new(graph.clone(), series).irn(|irn| {
                irn.bdp_cap = Setting::Off;
                // An idle path holds more than one buffer's worth where a slow link follows a fast one.
                irn.rto_low = Setting::Value(Duration::from_ms(100));
                irn.rto_high = Setting::Value(Duration::from_ms(100));
            });
            scene = scene.buffer(None).roce(|roce| roce.rto = Setting::Off);
            for (n, &size) in (0..).zip(&sizes) {
                scene = scene.flow(0, last, size, Duration::from_ms(2 * n));
                scene = scene.flow(last, 0, size, Duration::from_ms(2 * n + 1));
            }
            let outcome = scene.finish();
            for row in &outcome.flows {
                assert_eq!(row.fct(), Some(row.ideal), "{name}, {series:?}, {}", row.size);
            }
            assert_eq!(outcome.record.data_sent, outcome.flows.iter().map(|row| row.packets).sum::<u64>());
        }
    }
}

#[test]
fn an_idle_path_by_hand() {
    // Three links of 40 Gb/s (200 ps per byte) and 2 us; five packets of 1024 + 62 + 20 bytes. The
    // first crosses three links, four more follow on the last: 7 x 221.2 ns + 6 us.
    let chain = Chain {
        switches: 2,
        hosts_per_end: 1,
        hosts_per_inner: 0,
        host_link: link(40, 2_000),
        switch_link: link(40, 2_000),
    };
    let outcome = Scene::new(chain.build().unwrap(), Series::RocePfc).flow(0, 1, 5 * 1_024, Duration::ZERO).finish();
    assert_eq!(outcome.flow(0).fct(), Some(Duration::from_ps(7 * 221_200 + 6_000_000)));

    // A fast link, then a slow one (800 ps per byte), then a fast one (80 ps): each packet waits for
    // the one before it on the slow link. One byte more makes a sixth packet of 83 bytes.
    let mixed = Scene::new(star(&[link(10, 100), link(100, 300)]), Series::Irn).buffer(None);
    let mixed = mixed.irn(|irn| irn.bdp_cap = Setting::Off);
    let outcome = mixed.flow(1, 0, 5 * 1_024 + 1, Duration::ZERO).finish();
    let slow = 5 * 1_106 * 800 + 83 * 800;
    assert_eq!(outcome.flow(0).fct(), Some(Duration::from_ps(1_106 * 80 + 300_000 + slow + 100_000)));
}

#[test]
fn a_saturated_link_carries_exactly_its_rate() {
    let dumbbell = |left| {
        let (host_link, bottleneck) = (link(40, 1_000), link(40, 3_000));
        Dumbbell { left, right: left, host_link, bottleneck }.build().unwrap()
    };
    let rate = Rate::from_gbps(40);
    for hosts in [2, 3, 7] {
        // With PFC and its usual buffers, and with buffers that need no pauses: no slot is ever empty.
        for (series, buffer) in
            [(Series::RocePfc, Some(240_000)), (Series::IrnPfc, Some(240_000)), (Series::Roce, None)]
        {
            let mut scene = Scene::new(dumbbell(hosts), series).buffer(buffer).roce(|roce| roce.rto = Setting::Off);
            let packets = 2_000;
            for host in 0..hosts {
                scene = scene.flow(host, hosts + host, packets * 1_024, Duration::ZERO);
            }
            let outcome = scene.finish();
            let last = outcome.flows.iter().filter_map(|row| row.finish).max().unwrap();
            let slot = scene.data_time(1_024, rate);
            // To the bottleneck, all packets one by one through it, and from there to the host. The
            // bottleneck's reverse direction has ACKs and pause frames, which do not matter.
            let expected = slot + slot * u64::from(hosts) * packets + slot + Duration::from_us(1 + 3 + 1);
            assert_eq!(last, Instant::ZERO + expected, "{hosts} hosts, {series:?}");
        }
    }
}

#[test]
fn inputs_share_an_output_to_the_packet() {
    for senders in [2, 3, 5, 8u64] {
        for series in [Series::RocePfc, Series::IrnPfc] {
            let mut scene = Scene::new(star(&vec![link(40, 1_000); senders as usize + 1]), series);
            for host in 0..senders {
                scene = scene.flow(host as u32, senders as u32, 1_000 * 1_024, Duration::ZERO);
            }
            let outcome = scene.finish();
            let finishes: Vec<Instant> = outcome.flows.iter().filter_map(|row| row.finish).collect();
            let (first, last) = (finishes.iter().min().unwrap(), finishes.iter().max().unwrap());
            let slot = scene.data_time(1_024, Rate::from_gbps(40));
            assert_eq!(last.since(*first), slot * (senders - 1), "one round: {senders} senders, {series:?}");
        }
    }
}

#[test]
fn shares_belong_to_inputs_not_to_flows() {
    // h0 and h1 enter s1 together from s0; h2 by itself. IRN section 4.1: round-robin over inputs.
    let (host_link, switch_link) = (link(40, 1_000), link(40, 1_000));
    let chain = Chain { switches: 2, hosts_per_end: 2, hosts_per_inner: 0, host_link, switch_link }.build().unwrap();
    let scene = Scene::new(chain, Series::RocePfc)
        .flow(0, 3, 500 * 1_024, Duration::ZERO)
        .flow(1, 3, 500 * 1_024, Duration::ZERO)
        .flow(2, 3, 1_000 * 1_024, Duration::ZERO);
    let outcome = scene.finish();
    let slot = scene.data_time(1_024, Rate::from_gbps(40));
    // h2 begins one hop earlier, and has the output to itself until the others come.
    let head_start = Duration::from_us(1) + slot;
    let finishes = [0, 1, 2].map(|id| outcome.finish(id));
    let spread = finishes.iter().max().unwrap().since(*finishes.iter().min().unwrap());
    assert!(spread <= head_start * 2 + slot * 4, "{spread}");
}

#[test]
fn a_nic_serves_its_queue_pairs_in_turn() {
    let pairs = 6;
    let packets = 100;
    for series in Series::ALL {
        let mut scene = Scene::new(star(&vec![link(100, 500); pairs as usize + 1]), series);
        scene = scene.irn(|irn| irn.bdp_cap = Setting::Off);
        // While this packet leaves, all others line up.
        scene = scene.flow(0, 1, 1_024, Duration::ZERO);
        for n in 0..pairs {
            scene = scene.flow(0, 1 + n, packets * 1_024, Duration::from_ns(1));
        }
        let outcome = scene.finish();
        let slot = scene.data_time(1_024, Rate::from_gbps(100));
        for n in 0..u64::from(pairs) {
            // The last packet of queue pair n leaves in the last round, as number n of it.
            let sent = slot * (1 + (packets - 1) * u64::from(pairs) + n + 1);
            let expected = sent + Duration::from_ns(500) + slot + Duration::from_ns(500);
            assert_eq!(outcome.finish(1 + n), Instant::ZERO + expected, "queue pair {n}, {series:?}");
        }
    }
}

#[test]
fn a_short_message_waits_one_turn_not_for_the_long_ones() {
    let mut scene = Scene::new(star(&[link(100, 500); 6]), Series::RocePfc);
    for n in 0..4 {
        scene = scene.flow(0, 1 + n, 1_000 * 1_024, Duration::ZERO);
    }
    scene.add(0, 5, 1_024, Start::At(Instant::ZERO + Duration::from_us(20)));
    let outcome = scene.finish();
    let slot = scene.data_time(1_024, Rate::from_gbps(100));
    // Behind each of the four others once, and the packet that is just leaving.
    assert!(outcome.delay(4) <= slot * 5, "{}", outcome.delay(4));
    assert!(outcome.delay(4) > slot * 3, "{}", outcome.delay(4));
}

#[test]
fn acknowledgements_share_the_wire_with_data() {
    // Data both ways: each direction carries a data packet and an acknowledgement in turn once the
    // first ACKs come, so a flow ends later than alone by the ACKs that its host sent before its last
    // packet.
    let scene = Scene::new(pair(link(40, 1_000)), Series::Irn)
        .irn(|irn| irn.bdp_cap = Setting::Off)
        .flow(0, 1, 400 * 1_024, Duration::ZERO)
        .flow(1, 0, 400 * 1_024, Duration::ZERO);
    let outcome = scene.finish();
    let ack = Rate::from_gbps(40).time_for(Bytes::new(66 + 20));
    let delays = [outcome.delay(0), outcome.delay(1)];
    assert_eq!(delays[0], delays[1], "both directions fare alike");
    let acks_before = delays[0].as_ps() / ack.as_ps();
    assert_eq!(delays[0], ack * acks_before, "whole acknowledgements");
    // The missing ones are those that the link still held: a round trip's worth.
    assert!((380..=400).contains(&acks_before), "{acks_before}");
}
