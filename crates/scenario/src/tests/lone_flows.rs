//! Tests of single flows: "auto" must not limit a flow that has the whole path for itself, on any kind of path.

use selvedge_sim::Parallel;
use selvedge_telemetry::{FlowRow, Observer, PortRow, RankRow};

use super::plan;
use crate::{Changes, Plan};

/// Returns a scenario of hosts `a` and `b` with links in a row: rates in Gb/s and delays in nanoseconds, in order.
fn row(links: &[(f64, u64)]) -> String {
    let names: Vec<String> = (0..links.len() - 1).map(|n| format!("s{n}")).collect();
    let node = |at: usize| match at {
        0 => "a".to_owned(),
        at if at == links.len() => "b".to_owned(),
        at => names[at - 1].clone(),
    };
    let text = links.iter().enumerate().map(|(at, (gbps, delay))| {
        let (from, to) = (node(at), node(at + 1));
        format!("{{ between = ['{from}', '{to}'], rate = '{}Mbps', delay = '{delay}ns' }}", (gbps * 1_000.0) as u64)
    });
    let links: Vec<String> = text.collect();
    format!("[topology.explicit]\nhosts = ['a', 'b']\nswitches = {names:?}\nlinks = [{}]\n", links.join(", "))
}

/// Returns networks with paths on which one part differs from the rest.
fn networks() -> Vec<(&'static str, String)> {
    let parallel = |gbps: [u32; 2]| {
        let [first, second] = gbps;
        format!(
            "[topology.explicit]\nhosts = ['a', 'b']\nswitches = ['left', 'x', 'y', 'right']\nlinks = [\n\
             {{ between = ['a', 'left'], rate = '100Gbps', delay = '1us' }},\n\
             {{ between = ['left', 'x'], rate = '{first}Gbps', delay = '2us' }},\n\
             {{ between = ['left', 'y'], rate = '{second}Gbps', delay = '1us' }},\n\
             {{ between = ['x', 'right'], rate = '{first}Gbps', delay = '1us' }},\n\
             {{ between = ['y', 'right'], rate = '{second}Gbps', delay = '1us' }},\n\
             {{ between = ['right', 'b'], rate = '100Gbps', delay = '1us' }}]\n"
        )
    };
    vec![
        ("all alike", row(&[(100.0, 1_000); 4])),
        ("slower receiver", row(&[(100.0, 1_000), (100.0, 1_000), (25.0, 1_000)])),
        ("much slower receiver", row(&[(400.0, 500), (400.0, 500), (10.0, 500)])),
        ("slower sender", row(&[(25.0, 1_000), (100.0, 1_000), (100.0, 1_000)])),
        ("slower trunk", row(&[(100.0, 1_000), (50.0, 10_000), (100.0, 1_000)])),
        ("several slower links", row(&[(100.0, 1_000), (50.0, 2_000), (25.0, 3_000), (40.0, 1_000)])),
        ("slower and slower", row(&[(100.0, 600), (40.0, 600), (25.0, 600), (10.0, 600)])),
        ("tiny delays", row(&[(100.0, 10), (100.0, 10), (25.0, 10)])),
        ("large delays", row(&[(100.0, 1_000), (25.0, 500_000), (100.0, 1_000)])),
        ("parallel links", parallel([50, 50])),
        ("unlike parallel links", parallel([50, 25])),
    ]
}

#[derive(Default)]
struct Flows(Vec<FlowRow>);

impl Observer for Flows {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        self.0.extend_from_slice(rows);
    }
    fn on_ranks(&mut self, _: &[RankRow]) {}
    fn on_ports(&mut self, _: &[PortRow]) {}
}

/// Returns the plan of a flow from `a` to `b` that takes about 200 round trips.
fn alone(network: &str, series: &str, sets: &[&str]) -> Plan {
    let size = if network.contains("500000ns") { "300MB" } else { "10MB" };
    let text = format!(
        "title = 'alone'\nmeasure = {{ middle = 1 }}\nsample = 'off'\n{network}[workload.incast]\nsenders = ['a']\n\
         receiver = 'b'\nconnections = 1\nsize = '{size}'\n"
    );
    let changes = Changes { series: Some(series.into()), ..super::with_sets(sets) };
    plan(&text, &changes).unwrap_or_else(|error| panic!("{network}{error}"))
}

/// Returns the flow completion times of the first series, divided by the ideal time.
fn slowdowns(plan: &Plan) -> Vec<f64> {
    let point = plan.points().next().expect("a series");
    let mut flows = Flows::default();
    selvedge_sim::run(&plan.config(point), plan.library(point), Parallel::default(), &mut flows).expect("no error");
    flows.0.iter().map(|flow| flow.slowdown().expect("a finished flow")).collect()
}

#[test]
fn a_lone_flow_of_hpcc_leaves_a_twentieth_free_and_no_more() {
    for (name, network) in networks() {
        for mtu in ["nic.mtu=1000B", "nic.mtu=4096B", "nic.mtu=9000B"] {
            let [slowdown] = slowdowns(&alone(&network, "irn+hpcc", &[mtu]))[..] else { panic!("expected one flow") };
            assert!(slowdown < 1.0 / 0.95 + 0.02, "{name}, {mtu}: {slowdown}");
        }
    }
}

/// Checks lone flows. DCTCP and TIMELY are left out: they start at line rate, which fills the queue before a slower
/// link, and take long to recover from that.
#[test]
fn a_lone_flow_is_not_held_back() {
    for (name, network) in networks() {
        for series in ["irn", "irn+swift", "irn+aimd", "melo+swift"] {
            let [slowdown] = slowdowns(&alone(&network, series, &[]))[..] else { panic!("expected one flow") };
            assert!(slowdown < 1.03, "{name}, {series}: {slowdown}");
        }
    }
}

/// Checks flows whose receivers pull at the rate of their links. Where a link on the path is slower, and its queue
/// short, a part of each window is trimmed; the advice in the warning prevents it.
#[test]
fn a_lone_flow_whose_receiver_pulls_fills_the_path_or_is_warned_about() {
    for (name, network) in networks() {
        for series in ["eqds", "eqds+rts", "ndp"] {
            let said = alone(&network, series, &[]);
            let [slowdown] = slowdowns(&said)[..] else { panic!("expected one flow") };
            let Some(warning) = said.warnings.iter().find(|warning| warning.contains(".pull-")) else {
                let reaches_too_short = said.warnings.iter().any(|warning| warning.contains("transport.eqds.reorder"));
                assert!(slowdown < 1.05 || reaches_too_short, "{name}, {series}: {slowdown}");
                continue;
            };
            let (_, remedy) = warning.rsplit_once("; give ").expect("a warning with a remedy");
            let (value, _) = remedy.split_once(", which").expect("a remedy with its effect");
            let key = if series == "ndp" { "ndp.pull-interval" } else { "eqds.pull-rate" };
            assert!(warning.contains(&format!("transport.{key}:")), "{warning}");
            let mended = alone(&network, series, &[&format!("transport.{key}={value}")]);
            assert!(!mended.warnings.iter().any(|warning| warning.contains(".pull-")), "{name}, {series}");
            let reaches_too_short = mended.warnings.iter().any(|warning| warning.contains("transport.eqds.reorder"));
            let [slowdown] = slowdowns(&mended)[..] else { panic!("expected one flow") };
            assert!(slowdown < 1.05 || reaches_too_short, "{name}, {series} with {value}: {slowdown}");
        }
    }
}
