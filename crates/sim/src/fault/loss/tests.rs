use selvedge_telemetry::PacketKind;
use selvedge_units::{Duration, Instant};

use super::*;
use crate::fault::{LinkEvent, LinkFailure, link_events};
use crate::topology::Topology;

/// Library with one list of drops.
struct Shelf;
impl Library for Shelf {
    fn drops(&self, _: &str) -> Result<Vec<u64>, ConfigError> {
        Ok(vec![2, 1, 2])
    }
}

fn fat_tree() -> Graph {
    let topology = "fat-tree = { k = 4, link = { rate = \"40Gbps\", delay = \"2us\" } }";
    toml::from_str::<Topology>(topology).unwrap().build(&Shelf).unwrap()
}
fn rule(toml: &str) -> LossConfig {
    let rule: LossConfig = toml::from_str(toml).expect(toml);
    assert_eq!(toml::from_str::<LossConfig>(&toml::to_string(&rule).unwrap()).unwrap(), rule);
    rule
}
fn plan(graph: &Graph, rules: &[&str]) -> Result<LossPlan, ConfigError> {
    let rules: Vec<LossConfig> = rules.iter().map(|toml| rule(toml)).collect();
    LossPlan::new(graph, &rules, 1, &Shelf)
}
fn lanes(graph: &Graph, selector: &str, direction: Direction) -> Vec<(String, bool)> {
    let lanes = selector.parse::<LinkSelector>().unwrap().lanes(graph, direction).unwrap();
    lanes.iter().map(|lane| (graph.link_name(&graph.links[lane.link as usize]), lane.from_a)).collect()
}

/// Returns whether the next packet of this kind is lost.
fn loses(lane: &mut LaneLoss, kind: PacketKind) -> bool {
    lane.lost(Instant::ZERO, kind, 1_000).is_some()
}

#[test]
fn selectors_find_their_links() {
    let graph = fat_tree();
    let count = |selector: &str| selector.parse::<LinkSelector>().unwrap().links(&graph).unwrap().len();
    assert_eq!([count("all"), count("host-links"), count("tier0-tier1"), count("tier2-tier1")], [48, 16, 16, 16]);
    assert_eq!(count("core3"), 4);
    let agg_to_edge = |from_a| vec![("pod0-edge1 - pod0-agg0".to_owned(), from_a)];
    assert_eq!(lanes(&graph, "pod0-agg0 - pod0-edge1", Direction::AToB), agg_to_edge(false));
    assert_eq!(lanes(&graph, "pod0-edge1 - pod0-agg0", Direction::AToB), agg_to_edge(true));
    assert_eq!(lanes(&graph, "pod0-agg0 - pod0-edge1", Direction::Up), agg_to_edge(true));
    assert_eq!(lanes(&graph, "pod0-agg0 - pod0-edge1", Direction::Down), agg_to_edge(false));
    assert_eq!(lanes(&graph, "h3", Direction::Both), [true, false].map(|way| ("h3 - pod0-edge1".to_owned(), way)));
    // Named like ports in traces.
    assert_eq!(lanes(&graph, "pod0-agg0:pod0-edge1", Direction::AToB), agg_to_edge(false));
    // A node alone is the end "A".
    assert!(lanes(&graph, "core3", Direction::AToB).iter().all(|(_, from_a)| !from_a));
    assert_eq!(LinkSelector::Index(7).links(&graph).unwrap(), [7]);
}

#[test]
fn a_colon_in_a_name_is_no_link_unless_both_nodes_exist() {
    let link = |a: &str, b: &str| format!("{{ between = [\"{a}\", \"{b}\"], rate = \"1Gbps\", delay = \"1us\" }}");
    let graph = |hosts: &str, links: &str| {
        let toml =
            format!("explicit = {{ hosts = {hosts}, switches = [\"rack:a\", \"rack\", \"a\"], links = [{links}] }}");
        toml::from_str::<Topology>(&toml).unwrap().build(&Shelf).unwrap()
    };
    let links = [link("x:1", "rack:a"), link("y", "rack"), link("rack", "a"), link("rack:a", "a")].join(",");
    let graph = graph("[\"x:1\", \"y\"]", &links);
    let found = |selector: &str| selector.parse::<LinkSelector>().unwrap().links(&graph).map_err(|error| error.message);
    assert_eq!(found("rack:a"), Ok(vec![0, 3]), "the node of that name");
    assert_eq!(found("y:rack"), Ok(vec![1]));
    assert_eq!(found("x:1:rack:a"), Ok(vec![0]));
    assert!(found("y:rock").unwrap_err().contains("there is no node \"rock\""));
    assert!(found("rock:y").unwrap_err().contains("there is no node \"rock\""));
    assert!(found("y:a").unwrap_err().contains("no link joins \"y\" and \"a\""));
}

#[test]
fn selectors_that_select_nothing_say_what_there_is() {
    let graph = fat_tree();
    let refused = |selector: &str| selector.parse::<LinkSelector>().unwrap().links(&graph).unwrap_err().message;
    let error = refused("pod0-egde1 - pod0-agg0");
    assert!(error.contains("no node \"pod0-egde1\", did you mean \"pod0-edge1\""), "{error}");
    let error = refused("pod0-edge1 - core0");
    assert!(error.contains("no link joins \"pod0-edge1\" and \"core0\"") && error.contains("\"pod0-agg1\""), "{error}");
    assert!(refused("tier2-tier3").contains("tiers go from 0 (with hosts) to 2"));
    assert!(refused("hostlinks").contains("\"host-links\""));
    let error = LinkSelector::Index(48).links(&graph).unwrap_err().message;
    assert_eq!(error, "there is no link 48: links are numbered from 0 to 47");

    let flat = "dumbbell = { left = 1, right = 1, host-link = { rate = \"1Gbps\", delay = \"1us\" }, \
                bottleneck = { rate = \"1Gbps\", delay = \"1us\" } }";
    let flat = toml::from_str::<Topology>(flat).unwrap().build(&Shelf).unwrap();
    let error = "left - right".parse::<LinkSelector>().unwrap().lanes(&flat, Direction::Up).unwrap_err();
    assert!(error.key == "direction" && error.message.contains("write \"a-to-b\""), "{error}");
}

#[test]
fn each_lane_and_kind_has_a_fate_of_its_own() {
    let graph = fat_tree();
    let config = ["link = \"all\"\nmodel.random.rate = \"50%\""];
    let mut plan = plan(&graph, &config).unwrap();
    assert_eq!(plan.lanes().count(), 96);
    let mut sequences = Vec::new();
    for loss in plan.lanes.values_mut() {
        for kind in [PacketKind::Data, PacketKind::Ack, PacketKind::Pause] {
            sequences.push((0..64).map(|_| loses(loss, kind)).collect::<Vec<bool>>());
        }
    }
    sequences.sort();
    sequences.dedup();
    assert_eq!(sequences.len(), 96 * 3);
}

#[test]
fn the_nth_data_packet_fares_alike_however_many_acks_pass() {
    let graph = fat_tree();
    let lane = Lane { link: 5, from_a: true };
    let data = ["link = 5\npackets = \"data\"\nmodel.bursty = { mean-burst = 3.0, rate = 0.1 }"];
    let all = ["link = 5\nmodel.bursty = { mean-burst = 3.0, rate = 0.1 }"];
    let mut quiet = plan(&graph, &data).unwrap().lane(lane).unwrap().clone();
    let mut busy = plan(&graph, &all).unwrap().lane(lane).unwrap().clone();
    let mut lost = 0;
    for n in 0..10_000 {
        (0..n % 3).for_each(|_| _ = loses(&mut busy, PacketKind::Ack));
        let fate = loses(&mut quiet, PacketKind::Data);
        assert_eq!(fate, loses(&mut busy, PacketKind::Data));
        assert!(!loses(&mut quiet, PacketKind::Ack));
        lost += u32::from(fate);
    }
    assert!((800..1200).contains(&lost), "{lost} of 10,000, not a tenth");
}

#[test]
fn rules_add_up_and_count_on_their_own() {
    let mut graph = fat_tree();
    let rules = [
        "link = 5\ndirection = \"up\"\npackets = \"data\"\nmodel.trace.drops = [3, 0]",
        "link = 5\nmodel.trace.path = \"x\"",
    ];
    let plan = plan(&graph, &rules).unwrap();
    let mut up = plan.lane(Lane { link: 5, from_a: true }).unwrap().clone();
    assert_eq!([0; 5].map(|_| loses(&mut up, PacketKind::Data)), [true, true, true, true, false]);
    let mut down = plan.lane(Lane { link: 5, from_a: false }).unwrap().clone();
    assert_eq!([0; 5].map(|_| loses(&mut down, PacketKind::Pause)), [false, true, true, false, false]);
    assert!(plan.lane(Lane { link: 6, from_a: true }).is_none());

    graph.links[9].loss = Chance::ALWAYS;
    let mut plan = LossPlan::new(&graph, &[], 1, &Shelf).unwrap();
    assert_eq!(plan.lanes().map(|(lane, _)| lane.link).collect::<Vec<_>>(), [9, 9]);
    assert!(plan.lanes.values_mut().all(|lane| loses(lane, PacketKind::Ack)));
}

#[test]
fn impossible_bursts_are_refused() {
    let graph = fat_tree();
    let error = plan(&graph, &["link = \"all\"\nmodel.bursty = { mean-burst = 0.5, rate = 0.1 }"]).unwrap_err();
    assert_eq!(error.key, "[0].model.bursty.mean-burst");
    let error = plan(&graph, &["link = \"all\"\nmodel.bursty = { mean-burst = 1.0, rate = 0.6 }"]).unwrap_err();
    assert!(error.key == "[0].model.bursty.rate" && error.message.contains("0.5000 at most"), "{error}");
    let error = toml::from_str::<LossConfig>("link = \"all\"\nmodel.random.rat = 0.1").unwrap_err().to_string();
    assert!(error.contains("line 2") && error.contains("expected `rate`"), "{error}");
}

#[test]
fn failures_become_events_and_overlaps_merge() {
    let graph = fat_tree();
    let us = |n| Duration::from_us(n);
    let failure = |link, at, until: Option<u64>| LinkFailure {
        link: LinkSelector::Index(link),
        at: us(at),
        until: until.map(us),
    };
    let failures = [failure(3, 20, Some(40)), failure(3, 10, Some(25)), failure(1, 20, None), failure(3, 50, Some(51))];
    let event = |at, link, up| LinkEvent { at: Instant::ZERO + us(at), link, up };
    let expected =
        [event(10, 3, false), event(20, 1, false), event(40, 3, true), event(50, 3, false), event(51, 3, true)];
    assert_eq!(link_events(&graph, &failures).unwrap(), expected);
    let error = link_events(&graph, &[failure(3, 20, None), failure(3, 20, Some(20))]).unwrap_err();
    assert_eq!(error.key, "[1].until");
}
