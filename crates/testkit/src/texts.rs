//! Small input files, for tests of their readers.

/// A scenario of two series and two seeds with a short run time.
pub const SCENARIO: &str = r#"
title = "small"
seeds = 2
stop = { flows = 50 }
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.poisson]
load = 0.3
sizes = { fixed = "4KB" }
[[series]]
preset = "irn"
[[series]]
preset = "roce+pfc"
"#;

/// Returns a topology of five switches in a ring with two hosts each, h0 and h1 at s0. If every host sends to a host
/// two switches further, all traffic takes the same direction, and PFC may deadlock.
pub fn ring() -> String {
    let list = |name: &str, count: u32| (0..count).map(|n| format!("'{name}{n}'")).collect::<Vec<_>>().join(", ");
    let link = |a: String, b: String| {
        format!("[[topology.explicit.links]]\nbetween = ['{a}', '{b}']\nrate = '40Gbps'\ndelay = '1us'\n")
    };
    let hosts = (0..10).map(|n| link(format!("h{n}"), format!("s{}", n / 2)));
    let switches = (0..5).map(|n| link(format!("s{n}"), format!("s{}", (n + 1) % 5)));
    let links: String = hosts.chain(switches).collect();
    format!("[topology.explicit]\nhosts = [{}]\nswitches = [{}]\n{links}", list("h", 10), list("s", 5))
}

/// A `topology.txt` of ns-3: three hosts at one switch.
pub const NS3_TOPOLOGY: &str = "4 1 3\n0\n0 1 10Gbps 1us 0\n0 2 10Gbps 1us 0\n0 3 10Gbps 1us 0\n";

/// A `flow.txt` of ns-3 for [`NS3_TOPOLOGY`].
pub const NS3_FLOWS: &str = "2\n1 2 3 100 10000 0.001\n3 2 3 100 20000 0.001\n";
