use std::collections::BTreeMap;
use std::sync::Arc;

use selvedge_units::{Bytes, Domain, Duration, HostId, Rate, Rng, SwitchId};

use super::*;
use crate::NoFiles;

fn build(toml: &str) -> Result<Graph, ConfigError> {
    toml::from_str::<Topology>(toml).expect(toml).build(&NoFiles)
}
fn fat_tree(k: u32) -> Graph {
    build(&format!("fat-tree = {{ k = {k}, link = {{ rate = \"40Gbps\", delay = \"2us\" }} }}")).unwrap()
}
fn leaf_spine(spine_rate: &str) -> Graph {
    build(&format!(
        "[leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 8\nparallel-links = 2\n\
         host-link = {{ rate = \"100Gbps\", delay = \"1us\" }}\nspine-link = {{ rate = \"{spine_rate}\", delay = \"1us\" }}"
    ))
    .unwrap()
}
fn hosts(graph: &Graph) -> impl Iterator<Item = HostId> + Clone {
    (0..graph.host_count()).map(HostId)
}
fn pairs(graph: &Graph) -> impl Iterator<Item = (HostId, HostId)> {
    let all = hosts(graph);
    all.clone().flat_map(move |a| all.clone().map(move |b| (a, b))).filter(|(a, b)| a != b)
}
/// Follows every equal-cost path to its end; returns the number of paths, and of their links.
fn walk(routes: &Routes, switch: SwitchId, dst: HostId) -> (u64, u32) {
    let leaf = routes.leaf_of(dst).unwrap();
    if switch == routes.leaves()[leaf] {
        assert_eq!(routes.ports().of(switch)[usize::from(routes.down_port(dst))].peer, Node::Host(dst));
        return (1, 1);
    }
    let hops = routes.next_hops(switch, leaf);
    assert!(!hops.is_empty() && hops.is_sorted(), "{switch:?} has no way to {dst:?}");
    let onward: Vec<_> = (hops.iter())
        .map(|&hop| walk(routes, routes.ports().of(switch)[usize::from(hop)].peer.switch().unwrap(), dst))
        .collect();
    assert!(onward.iter().all(|(_, links)| *links == onward[0].1), "paths of unequal length");
    (onward.iter().map(|(paths, _)| paths).sum(), onward[0].1 + 1)
}
/// Returns a connected network of random shape, with parallel links and uneven rates and delays.
fn random_graph(rng: &mut Rng) -> Graph {
    let mut graph = Graph::default();
    let link = |rng: &mut Rng| LinkConfig {
        rate: Rate::from_gbps([10, 25, 40, 100][rng.below(4) as usize]),
        delay: Duration::from_ns(1 + rng.below(3000)),
    };
    let switches = 1 + rng.below(8) as u32;
    for n in 0..switches {
        let switch = graph.add_switch(format!("s{n}"), 0, 0);
        if n > 0 {
            let other = SwitchId(rng.below(u64::from(n)) as u32);
            let config = link(rng);
            graph.connect(switch.into(), other.into(), config);
        }
    }
    for _ in 0..rng.below(2 * u64::from(switches)) {
        let (a, b) = (rng.below(u64::from(switches)) as u32, rng.below(u64::from(switches)) as u32);
        if a != b {
            let config = link(rng);
            graph.connect(SwitchId(a).into(), SwitchId(b).into(), config);
        }
    }
    for _ in 0..2 + rng.below(6) {
        let on = SwitchId(rng.below(u64::from(switches)) as u32);
        let config = link(rng);
        graph.add_host_on(on, 0, config);
    }
    graph.check().unwrap();
    graph
}
/// Returns `graph` with second NICs on networks inside two servers, or one, for some of the hosts.
fn with_servers(mut graph: Graph, rng: &mut Rng) -> Graph {
    let link = LinkConfig { rate: Rate::from_gbps(100 * (1 + rng.below(9))), delay: Duration::from_ns(100) };
    let servers: Vec<SwitchId> = (0..2).map(|n| graph.add_switch(format!("server{n}"), 0, 0)).collect();
    for host in hosts(&graph).collect::<Vec<_>>() {
        if let Some(&server) = servers.get(rng.below(3) as usize) {
            let nic = graph.add_inner_nic(format!("{host:?}-inner"), host);
            graph.connect(nic.into(), server.into(), link);
        }
    }
    graph
}
fn paths(graph: &Graph) -> Paths {
    Paths::new(Arc::new(graph.clone()), Arc::new(Routes::new(graph, &[])))
}

#[test]
fn fat_trees_have_the_counts_of_the_paper() {
    for k in (2..=16u32).step_by(2) {
        let graph = fat_tree(k);
        assert_eq!(graph.hosts.len() as u32, k * k * k / 4);
        assert_eq!(graph.switches.len() as u32, k * k + k * k / 4);
        assert_eq!(graph.links.len() as u32, 3 * k * k * k / 4);
        let ports = Ports::new(&graph);
        assert!((0..graph.switches.len() as u32).all(|n| ports.of(SwitchId(n)).len() as u32 == k), "k = {k}");
    }
    // The IRN paper's network (section 4.1).
    let irn = fat_tree(6);
    assert_eq!((irn.hosts.len(), irn.switches.len()), (54, 45));
}

#[test]
fn fat_trees_are_wired_and_named_as_usual() {
    let graph = fat_tree(4);
    let ports = Ports::new(&graph);
    let agg = graph.find("pod2-agg1").unwrap().switch().unwrap();
    let peers: Vec<&str> = ports.of(agg).iter().map(|port| graph.name(port.peer)).collect();
    assert_eq!(peers, ["pod2-edge0", "pod2-edge1", "core2", "core3"]);
    let core = graph.find("core3").unwrap().switch().unwrap();
    let peers: Vec<&str> = ports.of(core).iter().map(|port| graph.name(port.peer)).collect();
    assert_eq!(peers, ["pod0-agg1", "pod1-agg1", "pod2-agg1", "pod3-agg1"]);
    let edge = graph.find("pod1-edge0").unwrap().switch().unwrap();
    let peers: Vec<&str> = ports.of(edge).iter().map(|port| graph.name(port.peer)).collect();
    assert_eq!(peers, ["h4", "h5", "pod1-agg0", "pod1-agg1"]);
    assert_eq!(graph.hosts[4].unit, 1);
    assert_eq!(graph.switches[core.index()].unit, 3);
}

#[test]
fn fat_tree_routes_use_every_core_between_pods() {
    for k in [2u32, 4, 6, 8] {
        let graph = fat_tree(k);
        let routes = Routes::new(&graph, &[]);
        let (half, per_pod) = (k / 2, k * k / 4);
        for (src, dst) in pairs(&graph) {
            let from = routes.leaves()[routes.leaf_of(src).unwrap()];
            let expected = match (src.0 / half == dst.0 / half, src.0 / per_pod == dst.0 / per_pod) {
                (true, _) => (1, 1),
                (false, true) => (u64::from(half), 3),
                (false, false) => (u64::from(per_pod), 5),
            };
            assert_eq!(walk(&routes, from, dst), expected, "k = {k}, {src:?} to {dst:?}");
        }
    }
}

#[test]
fn routes_share_their_groups() {
    let routes = Routes::new(&fat_tree(8), &[]);
    let RouteTable { table, groups, members, leaves, .. } = routes.raw();
    assert_eq!((leaves, table.len()), (32, 80 * 32));
    // The groups are the empty one, one port each of 8, and all uplinks.
    assert_eq!(groups.len(), 1 + 8 + 1);
    assert_eq!(members.len(), 8 + 4);
}

#[test]
fn routes_agree_with_brute_force_and_avoid_links_that_are_down() {
    for seed in 0..300 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 0);
        let graph = random_graph(&mut rng);
        let down: Vec<bool> = graph.links.iter().map(|_| rng.below(4) == 0).collect();
        assert_shortest(&graph, &down, seed);
    }
}
fn assert_shortest(graph: &Graph, down: &[bool], seed: u64) {
    let routes = Routes::new(graph, down);
    let distance = floyd_warshall(graph, down);
    for (leaf, &to) in routes.leaves().iter().enumerate() {
        for from in (0..graph.switches.len() as u32).map(SwitchId) {
            let ports = (0u16..).zip(routes.ports().of(from));
            let expected: Vec<u16> = ports
                .filter(|(_, port)| !down[port.link as usize])
                .filter_map(|(n, port)| Some((n, port.peer.switch()?)))
                .filter(|(_, peer)| from != to && distance[peer.index()][to.index()] < FAR)
                .filter(|(_, peer)| distance[peer.index()][to.index()] + 1 == distance[from.index()][to.index()])
                .map(|(n, _)| n)
                .collect();
            assert_eq!(routes.next_hops(from, leaf), expected, "seed {seed}, {from:?} to {to:?}");
        }
    }
}
const FAR: u32 = 1_000_000;
fn floyd_warshall(graph: &Graph, down: &[bool]) -> Vec<Vec<u32>> {
    let n = graph.switches.len();
    let mut distance = vec![vec![FAR; n]; n];
    distance.iter_mut().enumerate().for_each(|(i, row)| row[i] = 0);
    for (link, _) in graph.links.iter().zip(down).filter(|(_, down)| !**down) {
        if let (Some(a), Some(b)) = (link.a.switch(), link.b.switch()) {
            distance[a.index()][b.index()] = 1;
            distance[b.index()][a.index()] = 1;
        }
    }
    for k in 0..n {
        for i in 0..n {
            for j in 0..n {
                distance[i][j] = distance[i][j].min(distance[i][k] + distance[k][j]);
            }
        }
    }
    distance
}

/// Fabrics in which many leaves have the same neighbours, so that one is searched for: every shortest path to all of
/// them is found.
#[test]
fn routes_of_leaves_with_the_same_neighbours_agree_with_brute_force() {
    for seed in 0..40 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 1);
        let graph = if seed % 2 == 0 { fat_tree(4) } else { leaf_spine("100Gbps") };
        let down: Vec<bool> = graph.links.iter().map(|_| seed > 1 && rng.below(8) == 0).collect();
        assert_shortest(&graph, &down, seed);
    }
}

#[test]
fn parallel_links_are_separate_next_hops() {
    let graph = leaf_spine("100Gbps");
    let routes = Routes::new(&graph, &[]);
    let leaf0 = graph.find("leaf0").unwrap().switch().unwrap();
    assert_eq!(routes.next_hops(leaf0, 1), [8, 9, 10, 11]);
    let spine0 = graph.find("spine0").unwrap().switch().unwrap();
    assert_eq!(routes.next_hops(spine0, 1), [2, 3]);
}

#[test]
fn eight_thousand_hosts_are_routed_quickly() {
    let graph = fat_tree(32);
    let routes = Routes::new(&graph, &[]);
    assert_eq!(routes.raw().table.len(), 1280 * 512);
    let (first, last) = (HostId(0), HostId(8191));
    assert_eq!(walk(&routes, routes.leaves()[0], last), (256, 5));
    assert_eq!(walk(&routes, routes.leaves()[511], first), (256, 5));
}

#[test]
fn the_longest_path_of_the_irn_paper_has_six_links_and_120_kb() {
    let paths = paths(&fat_tree(6));
    let longest = paths.longest().unwrap();
    assert_eq!((longest.links, longest.propagation), (6, Duration::from_us(12)));
    assert_eq!(paths.bdp(), Bdp { bytes: Bytes::from_kb(120), sender_is_slowest: true });
    let rtt = paths.base_rtt(longest.src, longest.dst, Bytes::ZERO, Bytes::ZERO);
    assert_eq!(rtt, Some(Duration::from_us(24)));
    // 1,000 B at 40 Gb/s take 200 ns on each of six links, 50 B take 10 ns.
    let rtt = paths.base_rtt(longest.src, longest.dst, Bytes::new(1000), Bytes::new(50));
    assert_eq!(rtt, Some(Duration::from_ns(24_000 + 6 * 200 + 6 * 10)));
    assert_eq!(paths.between(HostId(0), HostId(1)).unwrap().links, 2);
    assert_eq!(paths.between(HostId(3), HostId(3)), None);
}

#[test]
fn the_longest_path_is_the_longest_of_all_pairs() {
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 1);
        let graph = with_servers(random_graph(&mut rng), &mut rng);
        let nics = InnerNics::new(&graph, Routes::new(&graph, &[]).ports());
        let propagation = |links: Vec<Link>| links.iter().map(|link| link.delay).sum::<Duration>();
        let between = |(a, b)| {
            let (a, b) = nics.between(a, b);
            all_paths(&graph, a, b).into_iter().map(propagation).max()
        };
        let brute = pairs(&graph).filter_map(between).max();
        let paths = paths(&graph);
        let longest = paths.longest().unwrap();
        assert_eq!(Some(longest.propagation), brute, "seed {seed}");
        let one_way = paths.base_rtt(longest.src, longest.dst, Bytes::ZERO, Bytes::ZERO).unwrap() / 2;
        assert_eq!(one_way, longest.propagation, "seed {seed}");
    }
}

#[test]
fn the_bandwidth_delay_product_is_the_largest_of_all_pairs() {
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 1);
        let mut graph = with_servers(random_graph(&mut rng), &mut rng);
        let nics = InnerNics::new(&graph, Routes::new(&graph, &[]).ports());
        if seed % 4 == 0 {
            graph.links.iter_mut().for_each(|link| link.rate = Rate::from_gbps(40));
        }
        let paths = paths(&graph);
        let of = |rate: Rate, one_way: Duration| rate.min(paths.fastest_host()).amount_in(one_way * 2);
        let ways = pairs(&graph).flat_map(|(a, b)| {
            let (a, b) = nics.between(a, b);
            all_paths(&graph, a, b)
        });
        let rate = |way: &[Link]| way.iter().map(|link| link.rate).min().unwrap();
        let most = ways.map(|way| of(rate(&way), way.iter().map(|link| link.delay).sum())).max().unwrap();
        // Any of several shortest paths may have it.
        let bdp = paths.bdp().bytes;
        assert_eq!(bdp, most, "seed {seed}");
        if seed % 4 == 0 {
            assert_eq!(bdp, paths.fastest_host().amount_in(paths.longest().unwrap().propagation * 2), "seed {seed}");
        }
    }
}

#[test]
fn a_slow_link_in_the_middle_counts() {
    let dumbbell = |left, right| {
        let text =
            "host-link = { rate = \"100Gbps\", delay = \"1us\" }\nbottleneck = { rate = \"1Gbps\", delay = \"10us\" }";
        build(&format!("[dumbbell]\nleft = {left}\nright = {right}\n{text}")).unwrap()
    };
    // 1 Gb/s x 24 us across; between neighbours 100 Gb/s x 4 us.
    assert_eq!(paths(&dumbbell(1, 1)).bdp(), Bdp { bytes: Bytes::new(3_000), sender_is_slowest: false });
    assert_eq!(paths(&dumbbell(3, 5)).bdp(), Bdp { bytes: Bytes::new(50_000), sender_is_slowest: true });
}

#[test]
fn of_several_shortest_paths_the_worst_counts_for_each_question() {
    let graph = build(
        r#"
        [explicit]
        hosts = ["a", "b"]
        switches = ["left", "long", "wide", "slow", "right"]
        links = [
            { between = ["a", "left"], rate = "100Gbps", delay = "1us" },
            { between = ["left", "long"], rate = "1Gbps", delay = "9us" },
            { between = ["left", "wide"], rate = "50Gbps", delay = "8us" },
            { between = ["left", "slow"], rate = "10Mbps", delay = "2us" },
            { between = ["long", "right"], rate = "100Gbps", delay = "1us" },
            { between = ["wide", "right"], rate = "100Gbps", delay = "1us" },
            { between = ["slow", "right"], rate = "100Gbps", delay = "1us" },
            { between = ["right", "b"], rate = "100Gbps", delay = "1us" },
        ]
        "#,
    )
    .unwrap();
    let paths = paths(&graph);
    assert_eq!(paths.longest().unwrap().propagation, Duration::from_us(12));
    assert_eq!(paths.bdp().bytes, Bytes::new(50 * 1_000 * 22 / 8), "50 Gb/s x 22 us");
    let rtt = |forth, back| paths.base_rtt(HostId(0), HostId(1), Bytes::new(forth), Bytes::new(back)).unwrap();
    assert_eq!(rtt(0, 0), Duration::from_us(24), "9 us longer than the slow one");
    // 1,000 B take 800 us at 10 Mb/s, and 80 ns at 100 Gb/s.
    assert_eq!(rtt(1_000, 0), Duration::from_ns(5_000 + 800_000 + 3 * 80 + 12_000));
    assert_eq!(paths.kinds(HostId(0), HostId(1)).iter().map(|kind| kind.ways).collect::<Vec<_>>(), [1; 3]);
}

#[test]
fn the_farthest_pairs_have_the_longest_round_trips_of_all_pairs() {
    let mut alike = 0;
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 3);
        let graph = with_servers(random_graph(&mut rng), &mut rng);
        let paths = paths(&graph);
        let nics = InnerNics::new(&graph, Routes::new(&graph, &[]).ports());
        let farthest = paths.farthest();
        alike += pairs(&graph).count() - farthest.len();
        for (forth, back) in [(0, 0), (1_106, 84), (9_000, 9_000), (1_000_000, 0)] {
            // Longest round trip by the rates of both hosts' links.
            let longest = |pairs: &mut dyn Iterator<Item = (HostId, HostId)>| {
                let mut longest = BTreeMap::new();
                for (src, dst) in pairs {
                    let Some(rtt) = paths.base_rtt(src, dst, Bytes::new(forth), Bytes::new(back)) else { continue };
                    let (from, to) = nics.between(src, dst);
                    let one_way = |from, to, size| {
                        let time = |links: Vec<Link>| {
                            links.iter().map(|link| link.rate.time_for(Bytes::new(size)) + link.delay).sum::<Duration>()
                        };
                        all_paths(&graph, from, to).into_iter().map(time).max().expect("a path exists")
                    };
                    assert_eq!(rtt, one_way(from, to, forth) + one_way(to, from, back), "seed {seed}");
                    let found = longest.entry((paths.host_rate(from), paths.host_rate(to))).or_insert(rtt);
                    *found = rtt.max(*found);
                }
                longest
            };
            let brute = longest(&mut pairs(&graph));
            assert_eq!(longest(&mut farthest.iter().copied()), brute, "seed {seed}, {forth} B and {back} B");
        }
    }
    assert!(alike > 200, "{alike} pairs fewer");
}

#[test]
fn the_ideal_fct_is_that_of_a_queue_of_packets_on_every_mix_of_rates() {
    let mut several = 0;
    for seed in 0..400 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 2);
        let graph = random_graph(&mut rng);
        let paths = paths(&graph);
        for (src, dst) in pairs(&graph) {
            let [mtu, overhead, least] = [1 + rng.below(1500), rng.below(100), rng.below(200)].map(Bytes::new);
            let framing = Framing { mtu, overhead, least };
            let size = Bytes::new(1 + rng.below(20_000));
            let all = all_paths(&graph, src, dst);
            several += u32::from(all.len() > 1);
            assert_eq!(
                paths.ideal_fct(src, dst, size, framing),
                all.iter().map(|links| packet_by_packet(links, size, framing)).min(),
                "seed {seed}, {src:?} to {dst:?}, {size}"
            );
        }
    }
    assert!(several > 100, "{several} pairs have several paths");
}
/// Returns the links of all paths of the least length.
fn all_paths(graph: &Graph, src: HostId, dst: HostId) -> Vec<Vec<Link>> {
    let routes = Routes::new(graph, &[]);
    let [first, last] = [src, dst].map(|host| routes.ports().of_host(host));
    let Some(leaf) = routes.leaf_of(dst) else { return vec![vec![graph.links[last.link as usize]]] };
    let mut found = Vec::new();
    let mut open = vec![(first.peer.switch().unwrap(), vec![graph.links[first.link as usize]])];
    while let Some((switch, mut links)) = open.pop() {
        if switch == routes.leaves()[leaf] {
            links.push(graph.links[last.link as usize]);
            found.push(links);
            continue;
        }
        for &port in routes.next_hops(switch, leaf) {
            let port = routes.ports().of(switch)[usize::from(port)];
            let mut links = links.clone();
            links.push(graph.links[port.link as usize]);
            open.push((port.peer.switch().unwrap(), links));
        }
    }
    found
}

/// Returns when the last of the packets arrives: each waits for its predecessor on every link.
fn packet_by_packet(links: &[Link], size: Bytes, framing: Framing) -> Duration {
    let mut free = vec![Duration::ZERO; links.len()];
    let mut left = size;
    let mut arrival = Duration::ZERO;
    while !left.is_zero() {
        let payload = left.min(framing.mtu);
        left -= payload;
        arrival = Duration::ZERO;
        for (link, free) in links.iter().zip(&mut free) {
            *free = arrival.max(*free) + link.rate.time_for((payload + framing.overhead).max(framing.least));
            arrival = *free + link.delay;
        }
    }
    arrival
}

#[test]
fn of_several_shortest_paths_the_fastest_is_ideal() {
    let graph = build(
        r#"
        [explicit]
        hosts = ["a", "b"]
        switches = ["left", "slow", "near", "far", "right"]
        links = [
            { between = ["a", "left"], rate = "100Gbps", delay = "1us" },
            { between = ["left", "slow"], rate = "10Gbps", delay = "1us" },
            { between = ["left", "far"], rate = "100Gbps", delay = "5us" },
            { between = ["left", "near"], rate = "100Gbps", delay = "2us" },
            { between = ["slow", "right"], rate = "100Gbps", delay = "1us" },
            { between = ["far", "right"], rate = "100Gbps", delay = "1us" },
            { between = ["near", "right"], rate = "100Gbps", delay = "1us" },
            { between = ["right", "b"], rate = "100Gbps", delay = "1us" },
        ]
        "#,
    )
    .unwrap();
    let paths = paths(&graph);
    let path = paths.between(HostId(0), HostId(1)).unwrap();
    assert_eq!((path.links, path.propagation, path.bottleneck), (4, Duration::from_us(5), Rate::from_gbps(100)));
    // A short flow is faster by the slow link, which is near: 4 us, and 80 bits at 10 Gb/s and three times at 100 Gb/s.
    let framing = Framing { mtu: Bytes::new(1000), overhead: Bytes::new(9), least: Bytes::ZERO };
    let ideal = |size| paths.ideal_fct(HostId(0), HostId(1), Bytes::new(size), framing);
    assert_eq!(ideal(1), Some(Duration::from_us(4) + Duration::from_ps(8_000 + 3 * 800)));
    assert_eq!(ideal(1_000_000), Some(Duration::from_us(5) + Duration::from_ps((1_000 + 3) * 80 * 1_009)));
}

#[test]
fn two_hosts_may_stand_back_to_back() {
    let graph = build(
        r#"
        [explicit]
        hosts = ["a", "b"]
        links = [{ between = ["a", "b"], rate = "10Gbps", delay = "1us" }]
        "#,
    )
    .unwrap();
    let paths = paths(&graph);
    let path = paths.longest().unwrap();
    assert_eq!((path.links, path.propagation), (1, Duration::from_us(1)));
    let framing = Framing { mtu: Bytes::new(1000), overhead: Bytes::ZERO, least: Bytes::ZERO };
    // 2,500 B at 10 Gb/s: 2 us.
    let fct = paths.ideal_fct(HostId(1), HostId(0), Bytes::new(2500), framing);
    assert_eq!(fct, Some(Duration::from_us(3)));
    assert_eq!(graph.hosts.iter().map(|host| host.unit).collect::<Vec<_>>(), [0, 1]);
    let loads = uniform_link_loads(&graph, &Routes::new(&graph, &[]), 0.5);
    assert_eq!((loads.of(0, true), loads.of(0, false)), (0.5, 0.5));
}

#[test]
fn uniform_traffic_loads_a_fat_tree_evenly() {
    let graph = fat_tree(6);
    let loads = uniform_link_loads(&graph, &Routes::new(&graph, &[]), 0.7);
    for (n, link) in (0u32..).zip(&graph.links) {
        let fabric = link.a.host().is_none();
        // Of 53 destinations, 51 lie on other edges, 45 in other pods.
        let share = match (fabric, graph.height(link.b)) {
            (false, _) => 1.0,
            (true, 2) => 51.0 / 53.0,
            (true, _) => 45.0 / 53.0,
        };
        for from_a in [true, false] {
            assert!((loads.of(n, from_a) - 0.7 * share).abs() < 1e-9, "{}", graph.link_name(link));
        }
    }
    assert!((loads.worst().unwrap().load - 0.7).abs() < 1e-9);
}

#[test]
fn oversubscribed_uplinks_are_the_worst() {
    // Eight hosts of 100G over four uplinks of 100G: 2:1.
    let graph = leaf_spine("100Gbps");
    let loads = uniform_link_loads(&graph, &Routes::new(&graph, &[]), 0.6);
    let worst = loads.worst().unwrap();
    assert!((worst.load - 0.6 * 2.0 * 24.0 / 31.0).abs() < 1e-9);
    assert_eq!(graph.link_name(&graph.links[worst.link as usize]), "leaf0 - spine0");
}

#[test]
fn loads_agree_with_pair_by_pair_spreading() {
    for seed in 0..100 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 3);
        let graph = with_servers(random_graph(&mut rng), &mut rng);
        let routes = Routes::new(&graph, &[]);
        let nics = InnerNics::new(&graph, routes.ports());
        let loads = uniform_link_loads(&graph, &routes, 0.5);
        let mut brute = vec![[0.0; 2]; graph.links.len()];
        let others = f64::from(graph.host_count()) - 1.0;
        for (src, dst) in pairs(&graph) {
            let port = routes.ports().of_host(src);
            let bps = 0.5 * graph.links[port.link as usize].rate.as_bps() as f64 / others;
            let (src, dst) = nics.between(src, dst);
            push(&graph, &routes, Node::Host(src), dst, bps, &mut brute);
        }
        for (n, link) in graph.links.iter().enumerate() {
            for direction in [0, 1] {
                let expected = brute[n][direction] / link.rate.as_bps() as f64;
                let found = loads.of(n as u32, direction == 0);
                assert!((found - expected).abs() < 1e-9, "seed {seed}, {}: {found} {expected}", graph.link_name(link));
            }
        }
    }
}
fn push(graph: &Graph, routes: &Routes, node: Node, dst: HostId, bps: f64, loads: &mut [[f64; 2]]) {
    let ports: Vec<Port> = match node {
        Node::Host(host) if host == dst => return,
        Node::Host(host) => vec![routes.ports().of_host(host)],
        Node::Switch(switch) => {
            let leaf = routes.leaf_of(dst).unwrap();
            let ports = routes.ports().of(switch);
            match routes.next_hops(switch, leaf) {
                [] => vec![ports[usize::from(routes.down_port(dst))]],
                hops => hops.iter().map(|&hop| ports[usize::from(hop)]).collect(),
            }
        }
    };
    let share = bps / ports.len() as f64;
    for port in ports {
        let direction = usize::from(graph.links[port.link as usize].a != node);
        loads[port.link as usize][direction] += share;
        push(graph, routes, port.peer, dst, share, loads);
    }
}

#[test]
fn chains_and_dumbbells_have_hosts_where_asked() {
    let link = "host-link = { rate = \"10Gbps\", delay = \"1us\" }\n";
    let dumbbell =
        build(&format!("[dumbbell]\nleft = 3\nright = 2\n{link}bottleneck = {{ rate = \"5Gbps\", delay = \"10us\" }}"))
            .unwrap();
    assert_eq!((dumbbell.hosts.len(), dumbbell.links.len()), (5, 6));
    let path = paths(&dumbbell).between(HostId(0), HostId(4)).unwrap();
    assert_eq!((path.links, path.bottleneck), (3, Rate::from_gbps(5)));

    let inner = "switch-link = { rate = \"10Gbps\", delay = \"1us\" }\n";
    let chain = build(&format!("[chain]\nswitches = 5\nhosts-per-inner = 0\n{link}{inner}")).unwrap();
    assert_eq!((chain.hosts.len(), chain.links.len()), (2, 6));
    assert_eq!(chain.switches.iter().map(|switch| switch.tier).collect::<Vec<_>>(), [0, 1, 2, 1, 0]);
    let lot = build(&format!("[chain]\nswitches = 3\nhosts-per-end = 2\nhosts-per-inner = 1\n{link}{inner}")).unwrap();
    assert_eq!(lot.hosts.iter().map(|host| host.unit).collect::<Vec<_>>(), [0, 0, 1, 2, 2]);
    let single = build(&format!("[chain]\nswitches = 1\nhosts-per-end = 3\n{link}{inner}")).unwrap();
    assert_eq!((single.hosts.len(), single.switches.len(), single.links.len()), (6, 1, 6));
}

#[test]
fn a_network_written_out_is_placed_like_one_that_was_built() {
    let built = fat_tree(4);
    let quote = |names: Vec<&str>| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let links: Vec<String> = (built.links.iter())
        .map(|link| {
            let (a, b) = (built.name(link.a), built.name(link.b));
            format!("{{ between = [\"{a}\", \"{b}\"], rate = \"{}\", delay = \"{}\" }}", link.rate, link.delay)
        })
        .collect();
    let written = build(&format!(
        "explicit.hosts = [{}]\nexplicit.switches = [{}]\nexplicit.links = [{}]",
        quote(built.hosts.iter().map(|host| host.name.as_str()).collect()),
        quote(built.switches.iter().map(|switch| switch.name.as_str()).collect()),
        links.join(", "),
    ))
    .unwrap();
    assert_eq!(written.links, built.links);
    let tiers = |graph: &Graph| graph.switches.iter().map(|switch| switch.tier).collect::<Vec<_>>();
    assert_eq!(tiers(&written), tiers(&built));
    // One unit per edge switch; aggregations and cores are spread over them.
    let mut used: Vec<u32> =
        written.switches.iter().filter(|switch| switch.tier > 0).map(|switch| switch.unit).collect();
    used.sort();
    used.dedup();
    assert!(used.len() >= 4 && used.iter().all(|unit| *unit < 8), "{used:?}");
}

#[test]
fn errors_name_the_key_and_the_remedy() {
    let link = "link = { rate = \"40Gbps\", delay = \"2us\" }";
    let explicit = |hosts: &str, switches: &str, links: &[(&str, &str)]| {
        let links: Vec<String> = (links.iter())
            .map(|(a, b)| format!("{{ between = [\"{a}\", \"{b}\"], rate = \"1Gbps\", delay = \"1us\" }}"))
            .collect();
        format!("explicit = {{ hosts = [{hosts}], switches = [{switches}], links = [{}] }}", links.join(", "))
    };
    let cases = [
        (
            format!("fat-tree = {{ k = 5, {link} }}"),
            "fat-tree.k",
            "even number of ports per switch, found 5: try 4 or 6",
        ),
        (format!("fat-tree = {{ k = 0, {link} }}"), "fat-tree.k", "found 0, but a fat-tree can have 2 to 80"),
        (format!("fat-tree = {{ k = 82, {link} }}"), "fat-tree.k", "found 82"),
        (
            "fat-tree = { k = 4, link = { rate = \"0bps\", delay = \"2us\" } }".into(),
            "fat-tree.link.rate",
            "set a rate as \"40Gbps\"",
        ),
        (
            "fat-tree = { k = 4, link = { rate = \"1Gbps\", delay = \"0us\" } }".into(),
            "fat-tree.link.delay",
            "above zero, as \"1us\"",
        ),
        (
            format!("leaf-spine = {{ leaves = 2, spines = 0, hosts-per-leaf = 1, host-{link}, spine-{link} }}"),
            "leaf-spine.spines",
            "found 0, but a leaf-spine network needs at least 1",
        ),
        (
            format!(
                "leaf-spine = {{ leaves = 70_000, spines = 9, hosts-per-leaf = 70_000, host-{link}, spine-{link} }}"
            ),
            "leaf-spine",
            "4900000000 hosts, but at most 131072",
        ),
        (
            format!(
                "dumbbell = {{ left = 0, right = 1, host-{link}, bottleneck = {{ rate = \"1Gbps\", delay = \"1us\" }} }}"
            ),
            "dumbbell.left",
            "each side needs at least 1",
        ),
        (
            format!("leaf-spine = {{ leaves = 60_000, spines = 1, hosts-per-leaf = 1, host-{link}, spine-{link} }}"),
            "leaf-spine",
            "put more hosts on each switch",
        ),
        (format!("chain = {{ switches = 0, host-{link}, switch-{link} }}"), "chain.switches", "at least 1"),
        (
            explicit("\"a\", \"b\"", "\"sw\"", &[("a", "sw"), ("b", "swx")]),
            "explicit.links[1].between",
            "no node \"swx\" in `hosts` or `switches`, did you mean \"sw\"?",
        ),
        (explicit("\"a\", \"a\"", "\"sw\"", &[]), "explicit.hosts[1]", "\"a\" is named twice"),
        (explicit("\"a\", \"b\"", "\"a\"", &[]), "explicit.switches[0]", "\"a\" is named twice"),
        (explicit("\"a\", \"b\"", "\"sw\"", &[("a", "sw")]), "explicit.hosts", "host \"b\" has no link"),
        (
            explicit("\"a\", \"b\"", "\"sw\"", &[("a", "sw"), ("b", "sw"), ("a", "sw")]),
            "explicit.hosts",
            "host \"a\" has 2 links",
        ),
        (
            explicit("\"a\", \"b\"", "\"s\", \"t\"", &[("a", "s"), ("b", "t")]),
            "explicit.links",
            "no path leads from \"a\" to \"b\"",
        ),
        (explicit("\"a\", \"b\"", "\"s\"", &[("s", "s")]), "explicit.links[0]", "\"s\" is linked to itself"),
        (explicit("\"a\"", "\"s\"", &[("a", "s")]), "explicit.hosts", "at least two hosts, found 1"),
    ];
    for (toml, key, message) in cases {
        let error = build(&toml).expect_err(&toml);
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn misspelt_keys_are_refused_with_their_place() {
    let error = toml::from_str::<Topology>("[fat-tree]\nk = 6\nlinks = 3").unwrap_err().to_string();
    assert!(error.contains("line 3") && error.contains("unknown field `links`"), "{error}");
    let three = "[explicit]\nhosts = [\"a\", \"b\"]\n[[explicit.links]]\nrate = \"1Gbps\"\ndelay = \"1us\"\nbetween = [\"a\", \"b\", \"c\"]";
    let error = toml::from_str::<Topology>(three).unwrap_err().to_string();
    assert!(error.contains("line 6") && error.contains("found a list of 3, expected a list of two"), "{error}");
    let error = toml::from_str::<Topology>("[fattree]\nk = 6").unwrap_err().to_string();
    assert!(error.contains("unknown variant `fattree`") && error.contains("fat-tree"), "{error}");
    assert!(schemars::schema_for!(Topology).to_value().to_string().contains("hosts-per-leaf"));
}

#[test]
fn a_fat_tree_has_a_class_of_paths_for_each_distance() {
    for (k, name) in [(6, "54 hosts"), (32, "8,192 hosts")] {
        let paths = paths(&fat_tree(k));
        let (per_edge, per_pod) = (u64::from(k / 2), u64::from(k * k / 4));
        let hosts = per_pod * u64::from(k);
        let mut found: Vec<_> = paths.classes().all().iter().map(|class| (class.links(), class.pairs)).collect();
        found.sort_unstable();
        let expected = [(2, per_edge - 1), (4, per_pod - per_edge), (6, hosts - per_pod)];
        assert_eq!(found, expected.map(|(links, others)| (links, hosts * others)), "{name}");
    }
}

#[test]
fn a_class_of_paths_says_of_each_pair_what_its_path_is_like() {
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 1);
        let mut graph = with_servers(random_graph(&mut rng), &mut rng);
        if seed % 4 == 0 {
            graph
                .links
                .iter_mut()
                .for_each(|link| (link.rate, link.delay) = (Rate::from_gbps(40), Duration::from_us(1)));
        }
        let paths = paths(&graph);
        let nics = InnerNics::new(&graph, Routes::new(&graph, &[]).ports());
        for (src, dst) in pairs(&graph) {
            let Some(class) = paths.class_of(src, dst) else {
                assert_eq!(paths.between(src, dst), None, "seed {seed}");
                continue;
            };
            let class = &paths.classes().all()[class];
            let (from, to) = nics.between(src, dst);
            assert_eq!((class.sender, class.receiver), (paths.host_rate(from), paths.host_rate(to)), "seed {seed}");
            for (forth, back) in [(0, 0), (1_106, 84), (1_000_000, 0)].map(|(a, b)| (Bytes::new(a), Bytes::new(b))) {
                assert_eq!(Some(class.base_rtt(forth, back)), paths.base_rtt(src, dst, forth, back), "seed {seed}");
            }
            let slowest = paths.kinds(src, dst).iter().map(Kind::bottleneck).min();
            assert_eq!(Some(class.bottleneck()), slowest, "seed {seed}");
        }
    }
}

#[test]
fn where_all_paths_differ_classes_are_few_and_promise_no_shorter_ones() {
    let hosts = 300;
    let names: Vec<String> = (0..hosts).map(|n| format!("\"h{n}\"")).collect();
    let links = (0..hosts)
        .map(|n| format!("{{ between = [\"h{n}\", \"s\"], rate = \"100Gbps\", delay = \"{}ns\" }}", 500 + 7 * n * n));
    let links: Vec<String> = links.collect();
    let graph = build(&format!(
        "[explicit]\nhosts = [{}]\nswitches = [\"s\"]\nlinks = [{}]",
        names.join(", "),
        links.join(", ")
    ));
    let paths = paths(&graph.unwrap());
    let classes = paths.classes().all();
    assert!(classes.len() > 512 && classes.len() <= 2_048, "{}", classes.len());
    for (src, dst) in pairs(paths.graph()).step_by(7) {
        let class = &classes[paths.class_of(src, dst).unwrap()];
        let own = paths.base_rtt(src, dst, Bytes::ZERO, Bytes::ZERO).unwrap();
        let promised = class.base_rtt(Bytes::ZERO, Bytes::ZERO);
        assert!(promised >= own && promised <= own + own / 4, "{own}: {promised}");
    }
}
