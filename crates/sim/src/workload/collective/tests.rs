use std::collections::BTreeMap;

use selvedge_units::{Bytes, Duration, HostId, Instant};

use crate::topology::{Framing, Graph, Routes, Topology};
use crate::workload::schedule::{Action, Executor};
use crate::workload::{BuildEnv, Extent, FlowSpec, Measure, Workload, WorkloadConfig};
use crate::{ConfigError, NoFiles};

/// Builds the workload in `toml` among 16 hosts.
fn build(toml: &str) -> Result<Workload, ConfigError> {
    let topology = "fat-tree = { k = 4, link = { rate = \"40Gbps\", delay = \"2us\" } }";
    let graph: Graph = toml::from_str::<Topology>(topology).unwrap().build(&NoFiles).unwrap();
    let config: WorkloadConfig = toml::from_str(toml).expect(toml);
    assert_eq!(toml::from_str::<WorkloadConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
    config.build(&BuildEnv {
        graph: &graph,
        routes: &Routes::new(&graph, &[]),
        seed: 1,
        library: &NoFiles,
        framing: Framing { mtu: Bytes::new(1024), overhead: Bytes::new(62), least: Bytes::ZERO },
        measure: Measure::All,
        stop_flows: None,
    })
}

/// Returns the flows that are sent when each message takes a microsecond, and the time at which the last job ends.
fn flows_of(toml: &str) -> (Vec<FlowSpec>, Instant) {
    let workload = build(toml).unwrap();
    let [executor] = workload.executors.as_slice() else { panic!("expected one schedule") };
    let (flows, end) = run(executor.clone());
    assert_eq!(workload.extent(), Extent::Known(flows.len() as u64));
    assert!(flows.iter().all(|flow| flow.src != flow.dst && flow.id < executor.numbers()));
    (flows, end)
}

fn run(mut executor: Executor) -> (Vec<FlowSpec>, Instant) {
    let mut actions = Vec::new();
    executor.hosts().for_each(|host| executor.begin(host, &mut actions));
    let (mut flows, mut end) = (Vec::new(), Instant::ZERO);
    // Later actions with their times, in order of time.
    let mut later: Vec<(Instant, Action)> = Vec::new();
    loop {
        for action in actions.drain(..) {
            match action {
                Action::Flow(flow) => {
                    flows.push(flow);
                    later.push((flow.start + Duration::from_us(1), action));
                }
                Action::Compute { at, .. } => later.push((at, action)),
                Action::Done(row) => end = row.end.map_or(end, |row_end| end.max(row_end)),
            }
        }
        let Some(next) = (0..later.len()).min_by_key(|&n| later[n].0) else { return (flows, end) };
        let (now, action) = later.remove(next);
        match action {
            Action::Flow(flow) => {
                executor.on_received(flow.id, now, &mut actions);
                executor.on_sent(flow.id, now, &mut actions);
            }
            Action::Compute { place, .. } => executor.on_computed(place, now, &mut actions),
            Action::Done(_) => {}
        }
    }
}

/// Returns the bytes that each host sends, and the number of hosts that it sends to.
fn sent(flows: &[FlowSpec], host: u32) -> (u64, usize) {
    let own = || flows.iter().filter(|flow| flow.src == HostId(host));
    let mut peers: Vec<HostId> = own().map(|flow| flow.dst).collect();
    peers.sort();
    peers.dedup();
    (own().map(|flow| flow.size.get()).sum(), peers.len())
}

fn collective(operation: &str, more: &str) -> String {
    format!("collective = {{ operation = {operation}, size = \"16KB\", {more} }}")
}

#[test]
fn a_ring_sends_what_theory_says_in_as_many_steps() {
    let (flows, end) = flows_of(&collective("\"ring-all-reduce\"", ""));
    // 2 (n - 1) / n of the buffer, in 2 (n - 1) steps.
    assert!((0..16).all(|host| sent(&flows, host) == (30 * 1000, 1)));
    assert_eq!(end, Instant::ZERO + Duration::from_us(30));
    let (flows, end) = flows_of(&collective("\"all-gather\"", "repeat = 2, compute = \"10us\""));
    assert!((0..16).all(|host| sent(&flows, host) == (2 * 15 * 1000, 1)));
    // The second repetition begins on each host when it is done itself, and finds its neighbour ready.
    assert_eq!(end, Instant::ZERO + Duration::from_us(2 * 25));
}

#[test]
fn trees_send_the_buffer_up_and_down() {
    let (flows, _) = flows_of(&collective("{ tree-all-reduce = { chunk = \"1KB\" } }", ""));
    let all: u64 = flows.iter().map(|flow| flow.size.get()).sum();
    assert_eq!(all, 2 * 15 * 16_000, "n - 1 edges, both ways, half of the buffer in each of two trees");
    let busiest = (0..16).map(|host| sent(&flows, host).0).max();
    assert_eq!(busiest, Some(3 * 8_000 + 8_000), "inside one tree: up, and down to two; a leaf of the other");
}

#[test]
fn chunks_of_a_connection_follow_each_other() {
    for (outstanding, most) in [("", 2), (", outstanding = 1", 1), (", outstanding = 100", 8)] {
        let toml = collective(&format!("{{ tree-all-reduce = {{ chunk = \"1KB\"{outstanding} }} }}"), "");
        let (flows, _) = flows_of(&toml);
        // Each message takes a microsecond: those under way at a time began together. Eight chunks go up a tree.
        let mut under_way: BTreeMap<_, usize> = BTreeMap::new();
        let leaves = flows.iter().filter(|flow| flow.src == HostId(15) && flow.dst == HostId(7));
        leaves.for_each(|flow| *under_way.entry(flow.start).or_default() += 1);
        assert_eq!(under_way.into_values().max(), Some(most), "{toml}");
    }
    let wrong = build(&collective("{ tree-all-reduce = { chunk = \"1KB\", outstanding = 0 } }", ""));
    assert_eq!(wrong.err().unwrap().key, "collective.operation.tree-all-reduce.outstanding");
}

#[test]
fn halving_and_doubling_takes_logarithmically_many_steps() {
    let (flows, end) = flows_of(&collective("\"halving-doubling-all-reduce\"", ""));
    assert!((0..16).all(|host| sent(&flows, host) == (30 * 1000, 4)));
    assert_eq!(end, Instant::ZERO + Duration::from_us(8));
    let wrong = build(&collective("\"halving-doubling-all-reduce\"", "team = { hosts = [\"h0..h5\"] }"));
    assert_eq!(wrong.err().unwrap().key, "collective.operation");
}

#[test]
fn all_to_all_obeys_its_limit() {
    let (flows, end) = flows_of(&collective("{ all-to-all = { } }", ""));
    assert!((0..16).all(|host| sent(&flows, host) == (15 * 1000, 15)));
    assert_eq!(end, Instant::ZERO + Duration::from_us(1));
    let (_, end) = flows_of(&collective("{ all-to-all = { outstanding = 5 } }", ""));
    assert_eq!(end, Instant::ZERO + Duration::from_us(3));
}

#[test]
fn what_is_too_large_is_told_what_makes_it_smaller() {
    let team = "team = { group-size = 4 }";
    for (workload, remedy) in [
        (
            collective("{ tree-all-reduce = { chunk = \"1B\" } }", "").replace("size = \"16KB\"", "size = \"1GB\""),
            "chunk",
        ),
        (
            format!("pipeline = {{ size = \"1KB\", micro-batches = 4_000_000, forward = \"1us\", {team} }}"),
            "micro-batches",
        ),
        (format!("mixture-of-experts = {{ size = \"1KB\", layers = 4_000_000, {team} }}"), "layers"),
    ] {
        let error = build(&workload).err().unwrap();
        assert!(error.message.contains("can be kept: give"), "{error}");
        assert!(error.message.contains(remedy), "{error}");
    }
}

#[test]
fn groups_keep_to_themselves() {
    for (placement, distance) in [("adjacent", 1), ("strided", 4)] {
        let team = format!("team = {{ group-size = 4, placement = \"{placement}\" }}");
        let (flows, _) = flows_of(&collective("\"reduce-scatter\"", &team));
        let near = |flow: &FlowSpec| flow.dst.0.abs_diff(flow.src.0);
        assert!(flows.iter().all(|flow| [distance, 3 * distance].contains(&near(flow))), "{placement}");
        let mut groups: Vec<u32> = flows.iter().map(|flow| flow.group).collect();
        groups.sort_unstable();
        groups.dedup();
        assert_eq!(groups, [0, 1, 2, 3]);
    }
    let wrong = build(&collective("\"reduce-scatter\"", "team = { group-size = 5 }")).err().unwrap();
    assert_eq!(wrong.key, "collective.team.group-size");
    assert!(wrong.message.contains("divides the 16 hosts"), "{}", wrong.message);
}

#[test]
fn experts_get_what_tokens_choose_and_send_it_back() {
    let model =
        "mixture-of-experts = { size = \"16KB\", skew = 1.0, layers = 2, compute = \"5us\", expert-compute = \"3us\" }";
    let (flows, end) = flows_of(model);
    // Two layers of: compute, dispatch, compute, combine.
    assert_eq!(end, Instant::ZERO + Duration::from_us(2 * (5 + 1 + 3 + 1)));
    let received = |host: u32, tag: fn(&&FlowSpec) -> bool| -> u64 {
        flows.iter().filter(tag).filter(|flow| flow.dst == HostId(host)).map(|flow| flow.size.get()).sum()
    };
    // The first dispatch: the most popular expert gets what Zipf gives it, of 15 other hosts.
    let harmonic: f64 = (1..=16).map(|n| 1.0 / f64::from(n)).sum();
    let first = |flow: &&FlowSpec| flow.start == Instant::ZERO + Duration::from_us(5);
    let most = (0..16).map(|host| received(host, first)).max().unwrap();
    assert_eq!(most, 15 * (16_000.0 / harmonic).round() as u64);
    let all: u64 = flows.iter().map(|flow| flow.size.get()).sum();
    assert!(all.abs_diff(4 * 15 * 16_000) < 4 * 15 * 16, "{all}");
}

#[test]
fn pipelines_overlap_their_batches() {
    let pipeline = |more: &str| {
        let team = "team = { hosts = [\"h0..h3\"] }";
        format!("pipeline = {{ size = \"1KB\", micro-batches = 8, forward = \"10us\", {team}, {more} }}")
    };
    let stages = 4;
    for order in ["one-forward-one-backward", "all-forward-first"] {
        let (flows, end) = flows_of(&pipeline(&format!("order = \"{order}\"")));
        assert_eq!(flows.len(), 8 * 2 * (stages - 1));
        // Forward 10 us and backward 20 us: (batches + stages - 1) rounds of both, and a microsecond per
        // message on the way, some of which computing hides.
        let computing = 30 * (8 + stages as u64 - 1);
        let end = end.since(Instant::ZERO).as_ps() / 1_000_000;
        assert!((computing..computing + 40).contains(&end), "{order}: {end} us");
    }
}
