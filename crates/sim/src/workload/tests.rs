use std::sync::Arc;

use selvedge_telemetry::GroupParts;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Rng};

use super::*;
use crate::topology::{Framing, Graph, Routes, Topology};
use crate::{ConfigError, Library};

/// Library with one distribution and one flow list.
#[derive(Default)]
struct Shelf(FlowList);
impl Library for Shelf {
    fn cdf(&self, reference: &str) -> Result<Cdf, ConfigError> {
        match reference {
            "cdf:two-sizes" => {
                Cdf::new(&[(Bytes::new(1000), 0.9), (Bytes::new(91_000), 0.9), (Bytes::new(91_000), 1.0)])
            }
            _ => Err(ConfigError::new("", format!("there is no distribution \"{reference}\""))),
        }
    }
    fn flows(&self, _: &str, _: StartUnit) -> Result<FlowList, ConfigError> {
        Ok(self.0.clone())
    }
}

struct World {
    graph: Graph,
    routes: Routes,
    shelf: Shelf,
    seed: u64,
    measure: Measure,
    stop_flows: Option<u64>,
}

impl World {
    fn new() -> Self {
        let topology = "fat-tree = { k = 4, link = { rate = \"40Gbps\", delay = \"2us\" } }";
        let graph = toml::from_str::<Topology>(topology).unwrap().build(&Shelf::default()).unwrap();
        let routes = Routes::new(&graph, &[]);
        Self { graph, routes, shelf: Shelf::default(), seed: 1, measure: Measure::All, stop_flows: None }
    }
    fn build(&self, toml: &str) -> Result<Workload, ConfigError> {
        let config: WorkloadConfig = toml::from_str(toml).expect(toml);
        // The written form of the configuration reads back as the same configuration.
        assert_eq!(toml::from_str::<WorkloadConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        config.build(&BuildEnv {
            graph: &self.graph,
            routes: &self.routes,
            seed: self.seed,
            library: &self.shelf,
            framing: Framing { mtu: Bytes::new(1024), overhead: Bytes::new(62), least: Bytes::ZERO },
            measure: self.measure,
            stop_flows: self.stop_flows,
        })
    }
    fn flows(&self, toml: &str, count: usize) -> Vec<FlowSpec> {
        let mut workload = self.build(toml).unwrap();
        std::iter::from_fn(|| workload.stream.next_flow()).take(count).collect()
    }
}

const POISSON: &str = "poisson = { load = 0.7, sizes = \"cdf:two-sizes\" }";

#[test]
fn poisson_offers_its_load_evenly_to_and_from_all() {
    let world = World::new();
    let count = 200_000;
    let flows = world.flows(POISSON, count);
    assert!(flows.is_sorted_by_key(|flow| flow.start));
    assert!(flows.iter().enumerate().all(|(n, flow)| flow.id == n as u64 && flow.src != flow.dst));
    let time = flows.last().unwrap().start.since(Instant::ZERO).as_secs_f64();
    // 16 hosts at 70 % of 40 Gb/s with a mean of 10,000 B. The number of arrivals in a time has a
    // standard deviation of its root.
    let summary = &world.build(POISSON).unwrap().summaries[0];
    let rate = summary.flows_per_second.unwrap();
    assert_eq!(rate.round(), (16.0 * 0.7 * 40e9 / 8.0 / 10_000.0f64).round());
    assert!((count as f64 / time / rate - 1.0).abs() < 3.0 / (count as f64).sqrt(), "{} {rate}", count as f64 / time);
    let bytes: f64 = flows.iter().map(|flow| flow.size.get() as f64).sum();
    // Sizes of 1,000 and 91,000 B in proportion 9:1 have a standard deviation of 27,000 B.
    let mean = bytes / count as f64;
    assert!((mean - 10_000.0).abs() < 3.0 * 27_000.0 / (count as f64).sqrt(), "{mean}");
    for host in (0..16).map(HostId) {
        let expected = count as f64 / 16.0;
        for end in [|flow: &FlowSpec| flow.src, |flow: &FlowSpec| flow.dst] {
            let found = flows.iter().filter(|flow| end(flow) == host).count() as f64;
            assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{host:?}: {found}, not {expected}");
        }
    }
    // Gaps of one host are exponential: the deviation equals the mean.
    let starts: Vec<f64> =
        flows.iter().filter(|flow| flow.src == HostId(3)).map(|flow| flow.start.as_us_f64()).collect();
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{}", variance.sqrt() / mean);
}

#[test]
fn flows_depend_on_the_seed_alone() {
    let mut world = World::new();
    let flows = world.flows(POISSON, 1000);
    assert_eq!(flows, world.flows(POISSON, 1000));
    // These numbers must be equal on all platforms and in all versions.
    let first = flows[0];
    assert_eq!((first.src, first.dst, first.size, first.start), FIRST_FLOW);
    world.seed = 2;
    assert_ne!(flows, world.flows(POISSON, 1000));
}
const FIRST_FLOW: (HostId, HostId, Bytes, Instant) =
    (HostId(12), HostId(9), Bytes::new(1000), Instant::from_ps(68_878));

#[test]
fn a_host_sends_the_same_flows_whoever_else_takes_part() {
    let world = World::new();
    let of_h3 = |flows: Vec<FlowSpec>| -> Vec<_> {
        flows.into_iter().filter(|flow| flow.src == HostId(3)).map(|flow| (flow.start, flow.size)).take(20).collect()
    };
    let all = of_h3(world.flows(POISSON, 2000));
    let some = "poisson = { load = 0.7, sizes = \"cdf:two-sizes\", hosts = [\"h2..h5\"] }";
    assert_eq!(all, of_h3(world.flows(some, 2000)));
}

#[test]
fn a_copy_continues_from_the_same_place() {
    let mut workload = World::new().build(POISSON).unwrap();
    assert!((0..100).all(|_| workload.stream.next_flow().is_some()));
    let mut copy = workload.clone();
    for _ in 0..100 {
        assert_eq!(workload.stream.peek().copied(), copy.stream.peek().copied());
        assert_eq!(workload.stream.next_flow(), copy.stream.next_flow());
    }
}

#[test]
fn one_half_may_send_to_the_other() {
    let flows = World::new().flows("poisson = { load = 0.5, sizes.fixed = \"1KB\", pairs = \"other-half\" }", 1000);
    assert!(flows.iter().all(|flow| flow.src.0 < 8 && flow.dst.0 >= 8));
    let receivers = (8..16).filter(|&n| flows.iter().any(|flow| flow.dst == HostId(n))).count();
    assert_eq!(receivers, 8);
}

#[test]
fn several_workloads_merge_in_order_of_time() {
    let world = World::new();
    let config = "
        [[poisson]]
        load = 0.3
        sizes.fixed = \"10KB\"
        until = \"1ms\"
        [[poisson]]
        load = 0.1
        sizes.uniform = [\"500KB\", \"5MB\"]
        start = \"200us\"
        flows = 50
        [incast]
        size = \"1MB\"
        senders = 4
        start = \"500us\"
    ";
    let workload = world.build(config).unwrap();
    assert_eq!(workload.extent(), Extent::Bounded);
    let kinds: Vec<&str> = workload.summaries.iter().map(|summary| summary.kind).collect();
    assert_eq!(kinds, ["poisson", "poisson", "incast"]);
    let flows = world.flows(config, usize::MAX);
    assert!(flows.is_sorted_by_key(|flow| flow.start));
    let of = |n| flows.iter().filter(move |flow| flow.workload == n);
    assert!(of(0).all(|flow| flow.start < Instant::ZERO + Duration::from_ms(1)));
    assert_eq!((of(1).count(), of(2).count()), (50, 4));
    assert!(of(1).all(|flow| flow.start >= Instant::ZERO + Duration::from_us(200)));
    assert!(of(1).all(|flow| (Bytes::from_kb(500)..=Bytes::from_kb(5000)).contains(&flow.size)));
}

#[test]
fn the_middle_or_a_window_is_measured() {
    let mut world = World::new();
    world.stop_flows = Some(1000);
    world.measure = Measure::Middle(Fraction::new(0.8).unwrap());
    let flows = world.flows(POISSON, usize::MAX);
    let measured: Vec<usize> = (0..flows.len()).filter(|&n| flows[n].measured).collect();
    assert_eq!((flows.len(), measured.len()), (1000, 800));
    assert_eq!((measured[0], measured[799]), (100, 899));
    assert_eq!(world.build(POISSON).unwrap().extent(), Extent::Known(1000));

    world.measure = toml::from_str::<Measure>("window = { from = \"10us\", to = \"20us\" }").unwrap();
    let window = Duration::from_us(10)..Duration::from_us(20);
    let flows = world.flows(POISSON, usize::MAX);
    assert!(flows.iter().any(|flow| flow.measured));
    assert!(flows.iter().all(|flow| flow.measured == window.contains(&flow.start.since(Instant::ZERO))));

    world.stop_flows = None;
    world.measure = Measure::Middle(Fraction::new(0.8).unwrap());
    let error = world.build(POISSON).err().unwrap();
    assert!(error.key == "measure.middle" && error.message.contains("set stop.flows"), "{error}");
}

#[test]
fn an_incast_stripes_its_size_over_distinct_senders() {
    let world = World::new();
    let config = "incast = { size = \"1MB\", senders = 7, repeat = 20, interval = \"1ms\", jitter = \"1us\" }";
    let flows = world.flows(config, 200);
    assert_eq!(flows.len(), 140);
    assert_eq!(world.build(config).unwrap().summaries[0].group, Some(GroupParts::Flows(7)));
    assert!(flows.is_sorted_by_key(|flow| flow.start));
    for wave in 0..20u32 {
        let flows: Vec<&FlowSpec> = flows.iter().filter(|flow| flow.group == wave).collect();
        assert_eq!(flows.iter().map(|flow| flow.size).sum::<Bytes>(), Bytes::new(1_000_000));
        let mut senders: Vec<HostId> = flows.iter().map(|flow| flow.src).collect();
        senders.sort();
        senders.dedup();
        assert_eq!(senders.len(), 7);
        assert!(flows.iter().all(|flow| flow.dst == flows[0].dst && flow.src != flow.dst));
        let begin = Duration::from_ms(u64::from(wave));
        let late = |flow: &FlowSpec| flow.start.since(Instant::ZERO + begin);
        assert!(flows.iter().all(|flow| late(flow) <= Duration::from_us(1)));
    }
    let receivers = (0..16).filter(|&n| flows.iter().any(|flow| flow.dst == HostId(n))).count();
    assert!(receivers > 6, "{receivers} receivers in 20 repetitions");
}

#[test]
fn senders_of_an_incast_may_have_several_connections() {
    let config = "incast = { size = \"1MB\", senders = 5, connections = 4, stagger = \"1us\" }";
    let flows = World::new().flows(config, 100);
    assert_eq!(flows.len(), 20);
    assert_eq!(flows.iter().map(|flow| flow.size).sum::<Bytes>(), Bytes::new(1_000_000));
    for own in flows.chunks(4) {
        assert!(own.iter().all(|flow| flow.src == own[0].src && flow.start == own[0].start));
    }
    let mut senders: Vec<HostId> = flows.iter().map(|flow| flow.src).collect();
    senders.sort();
    senders.dedup();
    assert_eq!(senders.len(), 5);

    // Jitter is drawn per sender: its connections begin together, and as early as one connection alone.
    let starts = |connections: u32| {
        let config = format!(
            "incast = {{ size = \"1MB\", senders = [0, 1, 2, 3, 4], connections = {connections}, jitter = \"1us\" }}"
        );
        let mut starts: Vec<(HostId, Instant)> =
            World::new().flows(&config, 100).iter().map(|flow| (flow.src, flow.start)).collect();
        starts.sort();
        starts.dedup();
        starts
    };
    assert_eq!(starts(1).len(), 5);
    assert_eq!(starts(4), starts(1));
}

#[test]
fn incasts_may_follow_each_other() {
    let config =
        "incast = { size = \"10KB\", senders = [1, \"h2\"], receiver = \"h9\", repeat = 3, stagger = \"1us\" }";
    let mut workload = World::new().build(config).unwrap();
    assert_eq!(workload.extent(), Extent::Known(6));
    let ends = |config: &str| {
        let summary = &World::new().build(config).unwrap().summaries[0];
        (summary.senders, summary.receivers)
    };
    assert_eq!(ends(config), (2, 1));
    assert_eq!(ends("incast = { size = \"1KB\", senders = 3 }"), (16, 16));
    assert_eq!(ends("incast = { size = \"1KB\", senders = 3, receiver = 9 }"), (15, 1), "the receiver sends nothing");
    assert_eq!(ends("incast = { size = \"1KB\", senders = [1, 2] }"), (2, 14), "senders receive nothing");
    let mut going: Vec<FlowSpec> = std::iter::from_fn(|| workload.stream.next_flow()).collect();
    let mut now = Instant::ZERO;
    for wave in 0..3 {
        assert_eq!(
            going.iter().map(|flow| (flow.src, flow.group)).collect::<Vec<_>>(),
            [(HostId(1), wave), (HostId(2), wave)]
        );
        assert_eq!(
            going.iter().map(|flow| flow.start.since(now)).collect::<Vec<_>>(),
            [Duration::ZERO, Duration::from_us(1)]
        );
        now += Duration::from_ms(1);
        let done: Vec<u32> = going.drain(..).filter_map(|flow| flow.on_received).collect();
        for trigger in done {
            assert!(going.is_empty(), "the barrier waits for both");
            going.extend(workload.triggers.activate(trigger, now));
        }
    }
    assert!(going.is_empty());
}

#[test]
fn a_permutation_is_a_derangement() {
    let mut world = World::new();
    for seed in 0..200 {
        world.seed = seed;
        let mut workload =
            world.build("permutation = { size = \"1MB\", repeat = 2, start = \"5us\", jitter = \"1us\" }").unwrap();
        let permutation = &mut workload.loops[0];
        let mut received = [0; 16];
        for host in (0..16).map(HostId) {
            let first = permutation.begin(host);
            assert_eq!(first.len(), 1);
            let first = first[0];
            assert!(first.dst != host && first.src == host);
            let late = first.start.since(Instant::ZERO + Duration::from_us(5));
            assert!(late <= Duration::from_us(1));
            received[first.dst.index()] += 1;
            let now = first.start + Duration::from_ms(1);
            let second = permutation.next(host, now).unwrap();
            assert_eq!((second.dst, second.start), (first.dst, now));
            assert_eq!(permutation.next(host, now), None);
        }
        assert_eq!(received, [1; 16], "seed {seed}");
    }
}

#[test]
fn all_to_all_reaches_every_pair_once() {
    for outstanding in ["", ", outstanding = 3"] {
        let mut workload = World::new().build(&format!("all-to-all = {{ size = \"64KB\"{outstanding} }}")).unwrap();
        assert_eq!(workload.extent(), Extent::Known(240));
        let all = workload.loop_of(0).unwrap();
        let mut seen = [[0; 16]; 16];
        let mut ids = Vec::new();
        for host in (0..16).map(HostId) {
            let begin = all.begin(host);
            assert_eq!(begin.len(), if outstanding.is_empty() { 15 } else { 3 });
            assert_eq!(begin[0].dst, HostId((host.0 + 1) % 16));
            let rest = std::iter::from_fn(|| all.next(host, Instant::from_ps(7)));
            for flow in begin.into_iter().chain(rest) {
                seen[flow.src.index()][flow.dst.index()] += 1;
                ids.push(flow.id);
            }
        }
        assert!((0..16).all(|a| (0..16).all(|b| seen[a][b] == i32::from(a != b))));
        ids.sort();
        assert_eq!(ids, (0..240).collect::<Vec<u64>>());
    }
}

#[test]
fn a_closed_loop_gives_each_client_the_same_flows_whenever_they_end() {
    let world = World::new();
    let config = "closed-loop = { clients = [\"h0..h3\"], servers = [\"4..15\"], outstanding = 2, sizes.uniform = [\"1KB\", \"2KB\"], think = \"1us\" }";
    let run = |order: &[u32]| -> Vec<Vec<FlowSpec>> {
        let mut workload = world.build(config).unwrap();
        let clients = &mut workload.loops[0];
        let mut flows: Vec<_> = (0..4).map(|n| clients.begin(HostId(n))).collect();
        for &n in order {
            flows[n as usize].extend(clients.next(HostId(n), Instant::from_ps(5)));
        }
        flows
    };
    let flows = run(&[0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(flows, run(&[3, 3, 2, 1, 0, 0, 2, 1]));
    assert!(flows.iter().flatten().all(|flow| flow.src.0 < 4 && flow.dst.0 >= 4));
    assert!(flows[0][2].start == Instant::from_ps(5) + Duration::from_us(1));
    assert_eq!(world.build(config).unwrap().extent(), Extent::Endless);
    assert_eq!(world.build(config).unwrap().loops[0].next(HostId(9), Instant::ZERO), None);
}

fn listed(id: u64, src: u32, dst: u32, start: Start) -> ListedFlow {
    ListedFlow {
        id,
        line: None,
        src: HostId(src),
        dst: HostId(dst),
        size: Bytes::from_kb(1),
        priority: None,
        start,
        on_sent: None,
        on_received: None,
    }
}

#[test]
fn repetitions_are_made_when_they_begin() {
    let world = World::new();
    let workload = world.build("incast = { size = \"1MB\", senders = 10, repeat = 4_000_000 }").unwrap();
    assert_eq!(workload.extent(), Extent::Known(40_000_000));
}

#[test]
fn triggers_release_what_waits_for_them() {
    let mut world = World::new();
    let at = |ps| Start::At(Instant::from_ps(ps));
    world.shelf.0 = FlowList {
        flows: vec![
            ListedFlow { on_sent: Some(0), on_received: Some(1), ..listed(1, 0, 1, at(9)) },
            ListedFlow { on_received: Some(1), ..listed(2, 1, 2, at(3)) },
            ListedFlow { on_received: Some(2), ..listed(3, 2, 3, Start::Triggered(0)) },
            listed(4, 3, 4, Start::Triggered(0)),
            listed(5, 4, 5, Start::Triggered(1)),
            listed(6, 5, 6, Start::Triggered(2)),
            listed(7, 6, 7, Start::Triggered(2)),
        ],
        triggers: vec![TriggerKind::OneShot, TriggerKind::Barrier(2), TriggerKind::MultiShot],
        trigger_places: Vec::new(),
    };
    let mut workload = world.build("flows.path = \"x.cm\"").unwrap();
    let timed: Vec<u64> = std::iter::from_fn(|| workload.stream.next_flow()).map(|flow| flow.id).collect();
    assert_eq!(timed, [2, 1]);
    assert_eq!(workload.triggers.len(), 5);
    let mut activate = |trigger| -> Vec<u64> {
        workload.triggers.activate(trigger, Instant::from_ps(20)).into_iter().map(|flow| flow.id).collect()
    };
    assert_eq!(activate(0), [3, 4]);
    assert!(activate(0).is_empty());
    assert!(activate(1).is_empty());
    assert_eq!(activate(1), [5]);
    assert!(activate(1).is_empty());
    assert_eq!((activate(2), activate(2), activate(2)), (vec![6], vec![7], vec![]));
}

#[test]
fn lists_that_cannot_run_are_refused() {
    let at = Start::At(Instant::ZERO);
    let refused = |flows: Vec<ListedFlow>, triggers: Vec<TriggerKind>| {
        let mut world = World::new();
        world.shelf.0 = FlowList { flows, triggers, ..FlowList::default() };
        let error = world.build("flows.path = \"x.cm\"").err().unwrap();
        assert_eq!(error.key, "flows.path");
        error.message
    };
    assert_eq!(refused(vec![], vec![]), "x.cm: no flows");
    let error = refused(vec![listed(1, 0, 1, at), listed(7, 0, 16, at)], vec![]);
    assert_eq!(error, "x.cm: flow 2 of 2 (id 7): destination 16 does not exist: hosts are numbered from 0 to 15");
    assert!(refused(vec![listed(1, 3, 3, at)], vec![]).contains("host 3 would send to itself"));
    assert!(refused(vec![listed(1, 0, 1, Start::Triggered(0))], vec![]).contains("refers to trigger 1 of 0"));
    let error = refused(vec![listed(1, 0, 1, Start::Triggered(0))], vec![TriggerKind::OneShot]);
    assert!(
        error.contains("trigger 1 of 1") && error.contains("no flow activates it: it would never start"),
        "{error}"
    );
}

#[test]
fn triggers_are_called_as_their_file_does() {
    let mut world = World::new();
    let flow = ListedFlow { line: Some(3), ..listed(7, 0, 1, Start::Triggered(0)) };
    world.shelf.0 = FlowList { flows: vec![flow], triggers: vec![TriggerKind::OneShot], trigger_places: vec![(4, 12)] };
    let error = world.build("flows.path = \"x.cm\"").err().unwrap().message;
    let parts = ["x.cm:3:1: flow 1 of 1 (id 7) waits for", "trigger 1 of 1 (id 4, line 12)", "no flow activates it"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
}

#[test]
fn triggers_that_wait_for_each_other_are_refused() {
    let refused = |waiting: Vec<ListedFlow>, triggers: Vec<TriggerKind>| {
        let mut world = World::new();
        let mut flows = vec![listed(1, 0, 1, Start::At(Instant::ZERO))];
        flows.extend(waiting);
        world.shelf.0 = FlowList { flows, triggers, ..FlowList::default() };
        world.build("flows.path = \"x.cm\"").err().map(|error| error.message)
    };
    let waits = |id, trigger, activates| ListedFlow {
        on_sent: Some(activates),
        ..listed(id, id as u32, 0, Start::Triggered(trigger))
    };
    let itself = refused(vec![waits(2, 0, 0)], vec![TriggerKind::OneShot]).unwrap();
    assert!(itself.starts_with("x.cm: flow 2 of 2 (id 2) waits for trigger 1 of 1, which"), "{itself}");
    assert!(itself.ends_with("it would never start"), "{itself}");
    let ring = vec![waits(2, 0, 1), waits(3, 1, 2), waits(4, 2, 0)];
    assert!(refused(ring.clone(), vec![TriggerKind::OneShot; 3]).unwrap().contains("(id 2) waits for trigger 1 of 3"));

    // One activation from outside opens a ring, unless two are needed.
    let fed = |feeds| [ring.clone(), vec![ListedFlow { on_received: Some(0), ..feeds }]].concat();
    let feeds = listed(9, 8, 9, Start::At(Instant::ZERO));
    assert_eq!(refused(fed(feeds), vec![TriggerKind::OneShot; 3]), None);
    let barrier = vec![TriggerKind::Barrier(2), TriggerKind::OneShot, TriggerKind::OneShot];
    assert!(refused(fed(feeds), barrier).unwrap().contains("never start"));

    // The second flow of a multi-shot trigger that only the second activates.
    let shots =
        vec![ListedFlow { on_received: Some(0), ..feeds }, listed(2, 2, 0, Start::Triggered(0)), waits(3, 0, 0)];
    assert!(refused(shots, vec![TriggerKind::MultiShot]).unwrap().contains("(id 3) waits for trigger 1 of 1"));
}

#[test]
fn loads_count_the_headers_of_short_packets() {
    let world = World::new();
    let fullest = |world: &World, toml: &str| world.build(toml).unwrap().worst_link.unwrap().load;
    // 62 bytes of headers for each packet of up to 1,024.
    let close = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
    close(fullest(&world, "poisson = { load = 0.5, sizes.fixed = \"64B\" }"), 0.5 * 126.0 / 64.0);
    close(fullest(&world, "poisson = { load = 0.5, sizes.fixed = \"1024B\" }"), 0.5 * 1086.0 / 1024.0);
    close(fullest(&world, "poisson = { load = 0.5, sizes.fixed = \"1025B\" }"), 0.5 * 1149.0 / 1025.0);
    // Sizes from 1,000 to 1,100: 25 take one packet, 76 take two.
    let uniform = 0.5 * (1.0 + 62.0 * (25.0 + 2.0 * 76.0) / 101.0 / 1050.0);
    close(fullest(&world, "poisson = { load = 0.5, sizes.uniform = [\"1000B\", \"1100B\"] }"), uniform);
    let verbs =
        "verbs = { sizes.fixed = \"64B\", pairs = \"all-to-all\", load = 0.5, operations = [\"write\", \"read\"] }";
    close(fullest(&world, verbs), 0.5 * 126.0 / 64.0);
    // Each of several workloads has headers of its own.
    let both = "poisson = [{ load = 0.2, sizes.fixed = \"64B\" }, { load = 0.3, sizes.fixed = \"1024B\" }]";
    close(fullest(&world, both), 0.2 * 126.0 / 64.0 + 0.3 * 1086.0 / 1024.0);

    let error = world.build("poisson = { load = 0.7, sizes.fixed = \"64B\" }").err().unwrap();
    assert_eq!(error.key, "poisson");
    assert!(error.message.contains("138 % of its rate (70 % payload, the rest headers)"), "{error}");
    assert!(error.message.contains("multiply the load by at most 0.72"), "{error}");

    // A distribution counts sizes as often as they are drawn.
    let distribution = "poisson = { load = 0.3, sizes = \"cdf:two-sizes\" }";
    let flows = world.flows(distribution, 200_000);
    let bytes: u64 = flows.iter().map(|flow| flow.size.get()).sum();
    let wire: u64 = flows.iter().map(|flow| flow.size.get() + 62 * flow.size.pieces(Bytes::new(1024))).sum();
    let found = fullest(&world, distribution);
    assert!((found / (0.3 * wire as f64 / bytes as f64) - 1.0).abs() < 0.01, "{found}");
}

#[test]
fn errors_name_the_key_and_the_remedy() {
    let world = World::new();
    let cases = [
        ("", "", "nothing is sent: add a workload"),
        ("poisson = { load = 0.5, sizes = \"cdf:none\" }", "poisson.sizes", "no distribution \"cdf:none\""),
        (
            "poisson = { load = 0.5, sizes.uniform = [\"2KB\", \"1KB\"] }",
            "poisson.sizes.uniform",
            "put the smaller size first",
        ),
        ("poisson = { load = 0.5, sizes.fixed = \"0B\" }", "poisson.sizes.fixed", "at least one byte"),
        ("poisson = { load = 0.5, sizes.fixed = \"1KB\", flows = 0 }", "poisson.flows", "at least 1"),
        ("poisson = { load = 0.5, sizes.fixed = \"1KB\", hosts = [\"h1\"] }", "poisson.hosts", "at least two hosts"),
        (
            "poisson = { load = 0.5, sizes.fixed = \"1KB\", hosts = [\"h1\", \"h1O\"] }",
            "poisson.hosts",
            "there is no host \"h1O\", did you mean \"h1\"",
        ),
        ("poisson = { load = 0.5, sizes.fixed = \"1KB\", hosts = [\"h5..h2\"] }", "poisson.hosts", "runs backwards"),
        (
            "poisson = { load = 0.5, sizes.fixed = \"1KB\", hosts = [2, \"h1..h3\"] }",
            "poisson.hosts",
            "\"h2\" is named twice",
        ),
        (
            "poisson = { load = 1.0, sizes.fixed = \"1KB\" }",
            "poisson",
            "106 % of its rate (100 % payload, the rest headers)",
        ),
        (
            "poisson = [{ load = 0.6, sizes.fixed = \"1KB\" }, { load = 0.6, sizes.fixed = \"1KB\" }]",
            "poisson",
            "the link from \"h0\" to \"pod0-edge0\" would have to carry 127 % of its rate",
        ),
        ("incast = { size = \"1MB\", senders = 16 }", "incast.senders", "at most 15 can send"),
        (
            "incast = { size = \"100TB\", senders = 7, connections = 4_294_967_295 }",
            "incast.connections",
            "that makes 30064771065 flows at once, but at most 16777216 can be kept: let each of the 7 senders have at most 2396745",
        ),
        ("incast = { size = \"1MB\", senders = 4, connections = 0 }", "incast.connections", "at least 1"),
        ("incast = { size = \"3B\", senders = 4 }", "incast.size", "cannot be striped over 4 connections"),
        ("incast = { size = \"1MB\", senders = [\"h1\"], receiver = 1 }", "incast.senders", "\"h1\" is the receiver"),
        ("incast = { size = \"1MB\", senders = 3, receiver = 16 }", "incast.receiver", "numbered from 0 to 15"),
        (
            "incast = { size = \"1MB\", senders = 3, repeat = 2, stagger = \"1us\", interval = \"1us\" }",
            "incast.interval",
            "1us is too short: the senders of one repetition take 2us",
        ),
        (
            "incast = { size = \"1MB\", senders = 3, stagger = \"90000s\", interval = \"1000000s\", repeat = 99 }",
            "incast",
            "53 days",
        ),
        ("permutation = { size = \"0B\" }", "permutation.size", "at least one byte"),
        ("all-to-all = { size = \"1KB\", outstanding = 0 }", "all-to-all.outstanding", "at least 1"),
        (
            "closed-loop = [{ sizes.fixed = \"1KB\" }, { sizes.fixed = \"1KB\", servers = [\"h0\"] }]",
            "closed-loop[1].servers",
            "\"h0\" is the only server and a client too",
        ),
    ];
    for (toml, key, message) in cases {
        let error = world.build(toml).err().expect(toml);
        assert_eq!(error.key, key, "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn misspelt_keys_are_refused_with_their_place() {
    let refused = |toml: &str| toml::from_str::<WorkloadConfig>(toml).unwrap_err().to_string();
    let error = refused("[poisson]\nload = 0.5\nsize = \"cdf:x\"");
    assert!(error.contains("line 3") && error.contains("unknown field `size`"), "{error}");
    let error = refused("[[poisson]]\nload = 0.5\nsizes = \"cdf:x\"\n[[poisson]]\nload = 1.5\nsizes = \"cdf:x\"");
    assert!(
        error.contains("line 5") && error.contains("found 1.5, expected a fraction above 0 and at most 1"),
        "{error}"
    );
    let error = refused("[poisson]\nload = 0.5\nsizes = \"64KB\"");
    assert!(error.contains("line 3") && error.contains("write { fixed = \"64KB\" }"), "{error}");
    let error = refused("[poisson]\nload = 0.5\nsizes = { fixed = \"64kb\" }");
    assert!(error.contains("line 3") && error.contains("did you mean \"64KB\"?"), "{error}");
    let sizes = |written: &str| refused(&format!("[poisson]\nload = 0.5\nsizes = {written}"));
    assert!(sizes("{ fixed = \"1KB\", fixd = \"1KB\" }").contains("unknown field `fixd`"));
    assert!(sizes("{ fixed = \"1KB\", uniform = [\"1KB\", \"2KB\"] }").contains("choose exactly one kind of sizes"));
    assert!(sizes("{}").contains("choose exactly one kind of sizes: uniform or fixed"));
    let error = sizes("{ uniform = [\"1KB\", \"2KB\", \"900KB\"] }");
    assert!(error.contains("line 3") && error.contains("found a list of 3, expected a list of two"), "{error}");
    assert!(sizes("{ uniform = [\"1KB\"] }").contains("found a list of 1, expected a list of two"));
    let error = refused("[verbs]\nsizes.fixed = \"1KB\"\npairs = [[\"h0\", \"h1\", \"h2\"]]");
    assert!(error.contains("line 3") && error.contains("found a list of 3, expected a list of two"), "{error}");
    let error = refused("incast = { size = \"1MB\", senders = -3 }");
    assert!(error.contains("negative number of senders"), "{error}");
    let schema = schemars::schema_for!(WorkloadConfig).to_value().to_string();
    assert!(schema.contains("all-to-all") && schema.contains("other-half"));
}

#[test]
fn a_destination_is_never_the_source_and_all_others_are_alike() {
    let hosts: Vec<HostId> = [1, 4, 6, 9].map(HostId).to_vec();
    let mut rng = Rng::stream(1, Domain::Impairment, 4);
    for (src, choices) in [(4, 3), (5, 4)] {
        let mut counts = [0; 10];
        for _ in 0..12_000 {
            counts[hosts::other_than(HostId(src), &hosts, &mut rng).index()] += 1;
        }
        assert_eq!(counts[4] == 0, src == 4);
        let expected = 12_000 / choices;
        assert!(counts.iter().all(|&n: &i32| n == 0 || (n - expected).abs() < 250), "{counts:?}");
    }
}

#[test]
fn distributions_are_shared_not_copied() {
    let cdf = Arc::new(Cdf::new(&[(Bytes::new(10), 1.0)]).unwrap());
    let sizes = SizeDistribution::Cdf(cdf.clone());
    let copies = vec![sizes; 10];
    assert_eq!((Arc::strong_count(&cdf), copies[3].mean()), (11, 10.0));
}
