//! Networks that are too large.

use super::*;

/// What several keys make together is blamed on the one that was changed last.
#[test]
fn networks_that_are_too_large_are_blamed_on_what_makes_them_so() {
    let link = "{ rate = '40Gbps', delay = '2us' }";
    let of = |topology: &str| {
        let workload = &BASE[BASE.find("[workload").expect("it is there")..];
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
        let error = plan(&of(topology), &with_sets(&[&earlier, &set])).expect_err("too large");
        assert!(error.starts_with(&format!("--set {set}: {kind}: that makes ")), "{error}");
    }
    let error = impossible(&of(&leaf_spine.replace("leaves = 4", "leaves = 100000000")));
    assert!(error.starts_with("study.toml:3:11: topology.leaf-spine: that makes "), "{error}");
}
