//! Tests of networks that are too large, and of runs that are too short.

use super::{BASE, impossible, plan, with_sets};
use crate::{BUILT_IN, Changes, Plan};

/// Checks that an error which several keys cause together is attributed to the key changed last.
#[test]
fn networks_that_are_too_large_are_blamed_on_what_makes_them_so() {
    let link = "{ rate = '40Gbps', delay = '2us' }";
    let of = |topology: &str| {
        let workload = &BASE[BASE.find("[workload").expect("a workload in BASE")..];
        format!("title = 'large'\nstop = {{ flows = 10 }}\n{topology}host-link = {link}\n{workload}")
    };
    let leaf_spine =
        format!("[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 4\nspine-link = {link}\n");
    let dumbbell = format!("[topology.dumbbell]\nleft = 2\nright = 2\nbottleneck = {link}\n");
    let chain =
        format!("[topology.chain]\nswitches = 3\nhosts-per-end = 2\nhosts-per-inner = 2\nswitch-link = {link}\n");
    for (topology, kind, key) in [
        (&leaf_spine, "topology.leaf-spine", "hosts-per-leaf"),
        (&leaf_spine, "topology.leaf-spine", "leaves"),
        (&leaf_spine, "topology.leaf-spine", "parallel-links"),
        (&dumbbell, "topology.dumbbell", "right"),
        (&chain, "topology.chain", "hosts-per-inner"),
    ] {
        let set = format!("{kind}.{key}=1000000000");
        let earlier = format!("{kind}.host-link.rate=10Gbps");
        let error = plan(&of(topology), &with_sets(&[&earlier, &set])).expect_err("should be refused as too large");
        assert!(error.starts_with(&format!("--set {set}: {kind}: that makes ")), "{error}");
    }
    let error = impossible(&of(&leaf_spine.replace("leaves = 4", "leaves = 100000000")));
    assert!(error.starts_with("study.toml:3:11: topology.leaf-spine: that makes "), "{error}");
}

/// Checks times several times longer than usual, in hosts, switches and their checks.
#[test]
fn times_of_any_length_are_counted() {
    let longest = format!("{}ps", u64::MAX);
    for (series, keys) in [
        ("irn+swift", &["congestion.swift.base-target", "congestion.swift.per-link"][..]),
        ("eqds", &["eqds.rto"]),
        ("ndp", &["ndp.rto", "ndp.pull-interval"]),
        ("tcp", &["tcp.initial-rto", "tcp.max-rto"]),
    ] {
        let sets = keys.iter().map(|key| format!("transport.{key}={longest}"));
        let sets = sets.chain([format!("switch.netrt.interval={longest}")]).collect();
        let changes = Changes { series: Some(series.into()), sets, ..Changes::default() };
        plan(&format!("stop = {{ flows = 10 }}\n{BASE}"), &changes).expect("a valid scenario");
    }
}

/// Checks each of several workloads by itself: whatever the others send, there is no room for a second repetition.
#[test]
fn repetitions_that_no_run_of_so_many_flows_has_are_warned_about() {
    let warnings = |flows: u32, workload: &str| {
        let topology = &BASE[..BASE.find("[workload").expect("a workload in BASE")];
        let text = format!("stop = {{ flows = {flows} }}\n{topology}{workload}");
        plan(&text, &Changes { series: Some("irn,roce+pfc".into()), ..Changes::default() })
            .expect("a valid scenario")
            .warnings
    };
    let incast =
        "[workload.incast]\nsenders = [0, 1, 2, 3]\nreceiver = 9\nsize = '10KB'\nconnections = 1\nrepeat = 1_000\n";
    assert_eq!(warnings(5, incast), [""; 0], "until the run ends");
    let [warning] = &warnings(4, incast)[..] else { panic!("expected one warning for both series") };
    let said = "workload.incast.repeat: of 1000 repetitions of 4 flows, none but the first can be complete: the run ends \
                after 4 flows (stop.flows); give more of them, or repeat = 1";
    assert!(warning.starts_with("study.toml:11:1: ") && warning.ends_with(said), "{warning}");
    assert_eq!(warnings(4, &incast.replace("1_000", "1")), [""; 0]);
    let jobs = "[[workload.collective]]\noperation = 'ring-all-reduce'\nsize = '1MB'\n\
                [[workload.collective]]\noperation = 'ring-all-reduce'\nsize = '2MB'\nrepeat = 2\n";
    let [warning] = &warnings(100, jobs)[..] else { panic!("expected one warning") };
    assert!(warning.contains("workload.collective[1].repeat: of 2 repetitions of 480 flows"), "{warning}");
}

#[test]
fn a_plan_knows_who_ends_it() {
    let built_in = |sets: &[&str]| Plan::built_in(&with_sets(sets)).expect("the scenario is valid").ends_as_built_in;
    assert!(built_in(&[]) && built_in(&["workload.poisson.load=0.5"]));
    assert!(!built_in(&["stop.time=50ms"]));
    let counted = plan(BUILT_IN, &Changes::default()).expect("the scenario is valid");
    assert!(!counted.ends_as_built_in, "somebody has written it");
    assert!(!counted.series[0].is_endless, "it has so many flows");
    let timed = BUILT_IN.replace("flows = 12_500, ", "").replace("measure = { middle = 0.8 }", "");
    assert!(plan(&timed, &Changes::default()).expect("the scenario is valid").series[0].is_endless);
}

/// Checks the advice for loads that are too high: EQDS's headers are longer than RDMA's, and TCP's longer still.
#[test]
fn what_is_advised_for_loads_that_are_too_high_suits_all_series() {
    let text =
        |load: f64| format!("stop = {{ flows = 10 }}\n{}", BASE.replace("load = 0.7", &format!("load = {load}")));
    for list in ["irn,eqds,tcp", "tcp,irn", "eqds,irn+overheads"] {
        let changes = Changes { series: Some(list.into()), ..Changes::default() };
        let error = plan(&text(0.99), &changes).expect_err("should be refused");
        let (_, most) = error.split_once("multiply the load by at most ").expect("an advice");
        let most: f64 = most.parse().expect("a number");
        plan(&text(0.99 * most), &changes).expect("a load below the advised limit");
    }
}

#[test]
fn links_that_are_too_long_for_a_credit_nobody_gave_are_blamed_themselves() {
    let error = |topology: &str, set: &str| {
        let workload = &BASE[BASE.find("[workload").expect("a workload in BASE")..];
        let text = format!("title = 'long'\nstop = {{ flows = 10 }}\n{topology}{workload}");
        let sets = if set.is_empty() { Vec::new() } else { vec![set.to_owned()] };
        plan(&text, &Changes { series: Some("eqds".into()), sets, ..Changes::default() })
            .expect_err("should be refused as too long")
    };
    let tree = "[topology.fat-tree]\nk = 4\nlink = { rate = '40Gbps', delay = '1s' }\n";
    let found = error(tree, "");
    let said = "study.toml:5:27: topology.fat-tree.link.delay: with links as long as 1s, transport.eqds.window \"auto\" is too \
                large (60000007";
    assert!(found.starts_with(said) && found.ends_with("make them shorter, or give that"), "{found}");
    let explicit = "[topology.explicit]\nhosts = ['a', 'b']\nswitches = ['s']\nlinks = [\n\
                    { between = ['a', 's'], rate = '40Gbps', delay = '1us' },\n\
                    { between = ['s', 'b'], rate = '40Gbps', delay = '1s' },\n]\n";
    let found = error(explicit, "");
    assert!(found.starts_with("study.toml:8:42: topology.explicit.links[1].delay: with links"), "{found}");
    let set = "topology.fat-tree.link.delay=2s";
    assert!(error(tree, set).starts_with(&format!("--set {set}: topology.fat-tree.link.delay: with")), "set");
    let given = error(tree, "transport.eqds.window=2GB");
    assert!(given.starts_with("--set transport.eqds.window=2GB: transport.eqds.window: 2000000"), "{given}");
}
