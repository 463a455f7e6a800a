//! The estimated cost of studies, compared with the actual cost.

use std::path::Path;

use selvedge_scenario::{Changes, Plan, Point};
use selvedge_sim::{Parallel, run};
use selvedge_study::{Available, StudyEstimate};
use selvedge_telemetry::{FlowRow, Observer, PortRow, RunRecord};
use selvedge_testkit::Scratch;
use selvedge_units::{Bytes, Instant};

const FAT_TREE: &str = "[topology.fat-tree]\nk = 4\nlink = { rate = '40Gbps', delay = '1us' }\n";
const LEAF_SPINE: &str = "[topology.leaf-spine]\nleaves = 4\nspines = 2\nhosts-per-leaf = 4\n\
    host-link = { rate = '100Gbps', delay = '600ns' }\nspine-link = { rate = '200Gbps', delay = '1us' }\n";

/// Schemes with different kinds of acknowledgements.
const SCHEMES: &str = "series = ['irn', 'roce+pfc', 'irn+dcqcn', 'tcp', 'ndp', 'eqds', 'roce+timely+pfc']\n";
/// Schemes that support every workload.
const RDMA: &str = "series = ['irn', 'roce+pfc']\n";

fn plan(text: &str) -> Plan {
    Plan::from_text("estimate.toml", text, Path::new(""), &Changes::default()).expect("the scenario is valid")
}

/// Returns the packet-hops of the first run of each series: estimated, and counted.
fn compare(text: &str) -> Vec<(String, f64, f64)> {
    let plan = plan(&format!("title = 'estimate'\nseeds = 1\n{text}"));
    let points: Vec<Point> = plan.points().collect();
    let estimate = StudyEstimate::new(&plan, &points, 1).expect("an estimate");
    let series = estimate.series.iter().zip(points).map(|(series, point)| {
        let record = run(&plan.config(point), plan.library(point), Parallel::default(), &mut Nobody);
        let RunRecord { packet_hops, .. } = record.expect("the run succeeds");
        (series.series.clone(), series.packet_hops, packet_hops as f64)
    });
    series.collect()
}

/// Asserts that the estimate is within a factor of two of the count for each series.
fn agrees(name: &str, text: &str) {
    for (series, estimated, counted) in compare(text) {
        let ratio = estimated / counted;
        assert!((0.5..=2.0).contains(&ratio), "{name}, {series}: {estimated} packet-hops estimated, {counted} counted");
    }
}

struct Nobody;
impl Observer for Nobody {
    fn on_flows(&mut self, _: &[FlowRow]) {}
    fn on_ports(&mut self, _: &[PortRow]) {}
}

#[test]
fn random_arrivals() {
    let text = "[workload.poisson]\nload = 0.4\nsizes = 'cdf:web-search'\n[stop]\nflows = 100\n";
    agrees("fat-tree", &format!("{SCHEMES}{FAT_TREE}{text}"));
    agrees("leaf-spine", &format!("{SCHEMES}{LEAF_SPINE}{text}"));
    // Flows that begin before the end, most of which end before it too.
    let until = "[workload.poisson]\nload = 0.4\nsizes = { fixed = '30KB' }\n[stop]\ntime = '400us'\n";
    agrees("until a time", &format!("{RDMA}{LEAF_SPINE}{until}"));
}

#[test]
fn incasts_and_permutations() {
    let incast = "[workload.incast]\nsenders = 10\nsize = '1MB'\nrepeat = 3\n";
    agrees("incast", &format!("{SCHEMES}{LEAF_SPINE}{incast}"));
    let timed = "[workload.incast]\nsenders = 10\nsize = '1MB'\nrepeat = 3\ninterval = '1ms'\n";
    agrees("incast by the clock", &format!("{RDMA}{LEAF_SPINE}{timed}"));
    let permutation = "[workload.permutation]\nsize = '500KB'\nrepeat = 2\n";
    agrees("permutation", &format!("{SCHEMES}{FAT_TREE}{permutation}"));
}

#[test]
fn closed_loops() {
    let all = "[workload.all-to-all]\nsize = '40KB'\n";
    agrees("all-to-all", &format!("{SCHEMES}{LEAF_SPINE}{all}"));
    let known = "[workload.closed-loop]\nsizes = { fixed = '100KB' }\noutstanding = 2\nflows-per-client = 5\n";
    agrees("flows per client", &format!("{RDMA}{FAT_TREE}{known}"));
    let counted = "[workload.closed-loop]\nsizes = { fixed = '100KB' }\n[stop]\nflows = 200\n";
    agrees("until so many", &format!("{RDMA}{FAT_TREE}{counted}"));
    let timed = "[workload.closed-loop]\nsizes = { fixed = '20KB' }\nthink = '50us'\n[stop]\ntime = '1ms'\n";
    agrees("until a time", &format!("{RDMA}{FAT_TREE}{timed}"));
}

/// Retransmissions of go-back-N are unknown: the estimate does not include them.
#[test]
fn what_is_sent_again_comes_on_top() {
    let text = format!("series = ['roce', 'melo']\n{LEAF_SPINE}[workload.incast]\nsenders = 10\nsize = '1MB'\n");
    for (series, estimated, counted) in compare(&text) {
        assert!(estimated < counted, "{series}: {estimated} packet-hops at least, {counted} counted");
    }
    let bound = |series: &str| {
        let plan = plan(&format!("title = 'e'\n{}", text.replace("'roce', 'melo'", series)));
        let points: Vec<Point> = plan.points().collect();
        StudyEstimate::new(&plan, &points, 1).expect("an estimate").bound
    };
    assert_eq!(["'roce', 'melo'", "'roce+pfc'"].map(bound), ["at least", "about"]);
    assert_eq!(bound("'roce+pfc', 'roce'"), "at least", "also where packets are lost in one series of several");
}

#[test]
fn a_closed_loop_until_a_time_takes_that_at_most() {
    let text = "[workload.closed-loop]\nsizes = { fixed = '100KB' }\noutstanding = 4\n[stop]\ntime = '1ms'\n";
    for (series, estimated, counted) in compare(&format!("{RDMA}{FAT_TREE}{text}")) {
        assert!(counted < estimated * 1.05, "{series}: {estimated} packet-hops at most, {counted} counted");
        assert!(counted > estimated / 4.0, "{series}: {estimated} packet-hops at most, {counted} counted");
    }
    let plan = plan(&format!("title = 'e'\n{RDMA}{FAT_TREE}{text}"));
    let points: Vec<Point> = plan.points().collect();
    let estimate = StudyEstimate::new(&plan, &points, 1).expect("an estimate");
    assert_eq!(estimate.bound, "at most");
    assert!(estimate.to_string().starts_with("at most "), "{estimate}");
}

#[test]
fn what_repeats_until_a_time_takes_that_at_most() {
    let incast = "[workload.incast]\nsenders = 10\nsize = '1MB'\nrepeat = 1_000_000\n";
    let ring = "[workload.collective]\noperation = 'ring-all-reduce'\nsize = '1MB'\nrepeat = 10_000\n";
    for workload in [incast.to_owned(), format!("{incast}receiver = 0\n"), ring.to_owned()] {
        let text = format!("{RDMA}{LEAF_SPINE}{workload}[stop]\ntime = '4ms'\n");
        for (series, estimated, counted) in compare(&text) {
            let ratio = estimated / counted;
            assert!(
                (0.8..2.5).contains(&ratio),
                "{workload}{series}: {estimated} packet-hops at most, {counted} counted"
            );
        }
        let plan = plan(&format!("title = 'e'\n{text}"));
        let points: Vec<Point> = plan.points().collect();
        let estimate = StudyEstimate::new(&plan, &points, 1).expect("an estimate");
        assert_eq!(estimate.bound, "at most", "{workload}");
        for series in &estimate.series {
            // Of one repetition per 100 us, each with fewer flows than this.
            assert!(series.flows < 40.0 * 480.0, "{workload}{} flows", series.flows);
        }
    }
}

#[test]
fn schedules() {
    let ring = "[workload.collective]\noperation = 'ring-all-reduce'\nsize = '1MB'\nrepeat = 2\n";
    agrees("ring", &format!("{SCHEMES}{LEAF_SPINE}{ring}"));
    let tree = "[workload.collective]\noperation = { tree-all-reduce = { chunk = '128KB' } }\nsize = '1MB'\n";
    agrees("tree", &format!("{RDMA}{LEAF_SPINE}{tree}"));
    let experts =
        "[workload.mixture-of-experts]\nsize = '500KB'\nlayers = 2\ncompute = '10us'\nexpert-compute = '10us'\n";
    agrees("experts", &format!("{RDMA}{LEAF_SPINE}{experts}"));
    let schedule = "num_ranks 16\n".to_owned()
        + &(0..16)
            .map(|rank| {
                let (to, from) = ((rank + 5) % 16, (rank + 11) % 16);
                format!("rank {rank} {{\nl1: send 300000b to {to} tag 1\nl2: recv 300000b from {from} tag 1\n}}\n")
            })
            .collect::<String>();
    let scratch = Scratch::new("estimate-goal").with("x.goal", &schedule);
    let goal = format!("[workload.goal]\npath = '{}'\n", scratch.join("x.goal").display());
    agrees("GOAL", &format!("{RDMA}{LEAF_SPINE}{goal}"));
}

#[test]
fn operations() {
    let verbs = "[workload.verbs]\noperations = { write = 2, read = 1, send = 1, fetch-add = 1 }\n\
        sizes = { fixed = '20KB' }\npairs = 'permutation'\nmessages = 20\n";
    agrees("verbs", &format!("{RDMA}{LEAF_SPINE}{verbs}"));
}

#[test]
fn tcp_beside_rdma() {
    let text = "[workload.poisson]\nload = 0.2\nsizes = { fixed = '30KB' }\n\
        [workload.permutation]\nsize = '300KB'\n[stop]\nflows = 200\n[beside]\nworkloads = ['permutation']\n";
    agrees("beside", &format!("{RDMA}{LEAF_SPINE}{text}"));
}

/// A run reports delivered bytes, which grow up to the total.
#[test]
fn progress_within_a_run_goes_by_bytes() {
    struct Bytewise(Vec<u64>);
    impl Observer for Bytewise {
        fn on_flows(&mut self, _: &[FlowRow]) {}
        fn on_ports(&mut self, _: &[PortRow]) {}
        fn on_delivered(&mut self, payload: Bytes) {
            self.0.push(payload.get());
        }
        fn on_progress(&mut self, _: Instant, _: u64) -> bool {
            true
        }
    }
    let plan = plan(&format!("title = 'e'\nseeds = 1\n{RDMA}{LEAF_SPINE}[workload.permutation]\nsize = '8MB'\n"));
    for point in plan.points() {
        let mut heard = Bytewise(Vec::new());
        let record =
            run(&plan.config(point), plan.library(point), Parallel::default(), &mut heard).expect("the run succeeds");
        let Bytewise(told) = heard;
        assert!(told.len() >= 3 && told.is_sorted(), "{told:?}");
        assert!(told.iter().all(|&bytes| bytes <= record.goodput.get()), "{told:?}");
        assert!(told.last().copied().unwrap_or(0) > record.goodput.get() / 2, "{told:?}");
    }
}

/// Returns the available memory of a machine described by these files.
fn machine(name: &str, files: &[(&str, &str)]) -> Option<Available> {
    let empty = Scratch::new(&format!("estimate-{name}"));
    let scratch = files.iter().fold(empty, |scratch, (path, content)| scratch.with(path, content));
    Available::read(scratch.path())
}

const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 9000000 kB\nMemAvailable:    8000000 kB\n");

#[test]
fn what_limits_memory_is_the_least_of_all_limits() {
    let group = "sys/fs/cgroup/a";
    let known = |available: Option<Available>| available.map(|known| (known.bytes, known.by)).expect("known memory");
    assert_eq!(machine("none", &[]), None);
    assert_eq!(known(machine("free", &[MEMINFO])), (8_000_000 << 10, "free memory".to_owned()));

    let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
        Max data size             unlimited            unlimited            bytes\n\
        Max address space         500000000            unlimited            bytes\n";
    let status = ("proc/self/status", "Name:\tselvedge\nVmSize:\t  100000 kB\nVmData:\t    5000 kB\n");
    let ulimit = machine("ulimit", &[MEMINFO, ("proc/self/limits", limits), status]);
    assert_eq!(known(ulimit), (500_000_000 - 102_400_000, "ulimit -v".to_owned()));

    // Version 2: an ancestor of the group has less left than the group; file caches can be reclaimed.
    let second = machine(
        "second",
        &[
            MEMINFO,
            ("proc/self/cgroup", "0::/a/b\n"),
            (&format!("{group}/b/memory.max"), "max\n"),
            (&format!("{group}/memory.max"), "1000000\n"),
            (&format!("{group}/memory.current"), "700000\n"),
            (&format!("{group}/memory.stat"), "anon 1\ninactive_file 200000\n"),
        ],
    );
    assert_eq!(known(second), (500_000, "the control group's limit".to_owned()));

    // Version 1, in a container whose group is mounted at the root.
    let first = machine(
        "first",
        &[
            MEMINFO,
            ("proc/self/cgroup", "5:cpu:/docker/x\n9:hugetlb,memory:/docker/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "600000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n"),
        ],
    );
    assert_eq!(known(first), (500_000, "the control group's limit".to_owned()));
}

#[test]
fn what_exceeds_memory_is_refused_with_what_makes_it_smaller() {
    let many = plan(&format!(
        "title = 'e'\nseeds = 4\n{RDMA}{LEAF_SPINE}[workload.closed-loop]\nsizes = {{ fixed = '1KB' }}\noutstanding = 50_000\n[stop]\nflows = 10_000_000\n"
    ));
    let points: Vec<Point> = many.points().collect();
    let estimate = |threads: usize, bytes: u64| {
        let estimate = StudyEstimate::new(&many, &points, threads).expect("an estimate");
        let by = "ulimit -v".to_owned();
        estimate.with_available(Some(Available { bytes, by }))
    };
    let alone = estimate(1, 0);
    assert!(alone.memory_bytes > 5e8, "800,000 flows at once: {}", alone.memory_bytes);
    assert!(estimate(1, alone.memory_bytes as u64).check().is_ok());
    let message = |estimate: StudyEstimate| {
        let error = estimate.check().expect_err("should be refused");
        assert!(error.is_input());
        error.to_string()
    };
    let refused = message(estimate(1, 100_000_000));
    for part in ["needs about ", "there are 100 MB (ulimit -v)", "workload.closed-loop.outstanding", "--ignore-memory"]
    {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    assert!(!refused.contains("--threads"), "one run alone does not fit either: {refused}");
    let refused = message(estimate(4, alone.memory_bytes as u64 * 2));
    assert!(refused.contains("4 runs at once") && refused.contains("--threads 1"), "{refused}");
}
