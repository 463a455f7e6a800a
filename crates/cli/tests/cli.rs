//! The program as people and scripts meet it: exit status, what is said where, what is left behind.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const SMALL: &str = r#"
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

const TOPOLOGY: &str = "4 1 3\n0\n0 1 10Gbps 1us 0\n0 2 10Gbps 1us 0\n0 3 10Gbps 1us 0\n";
const FLOWS: &str = "2\n1 2 3 100 10000 0.001\n3 2 3 100 20000 0.001\n";

/// A folder to work in.
struct Scratch(selvedge_testkit::Scratch);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(selvedge_testkit::Scratch::new(&format!("cli-{name}")))
    }
    fn with(self, name: &str, content: &str) -> Self {
        Self(self.0.with(name, content))
    }
    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.current_dir(self.0.path()).args(arguments).env_remove("COLUMNS");
        command
    }
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }
    /// Runs it and expects this exit status; what was said, on standard output and error.
    fn expect(&self, status: i32, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{out}\n{error}");
        (out, error)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error} in {json}"))
}

#[test]
fn wrong_input_is_answered_in_one_line_with_status_2() {
    let scratch = Scratch::new("wrong")
        .with("ok.toml", SMALL)
        .with("typo.toml", &SMALL.replace("load =", "laod ="))
        .with("topology.txt", TOPOLOGY)
        .with("flow.txt", FLOWS)
        .with("strange.txt", "1\n1 9 3 100 10000 0.001\n")
        .with("broken.txt", "4 1 3\n0\n0 1 10Gbps\n")
        .with("bytes.bin", "\u{0}\u{1}")
        .with("empty/readme", "")
        .with("half.partial/unfinished.json", "{}")
        .with("figure/scenario.toml", SMALL)
        .with("figure/expect.toml", "[[expect]]\nsay='x'\nmetric='speed'\nof='irn'\nvalue={at-most=1}\n");
    let cases: &[(&[&str], &str)] = &[
        (&["run", "missing.toml"], "error: missing.toml: no such file"),
        (&["run", "empty"], "error: empty: this is a folder"),
        (
            &["run", "typo.toml"],
            "error: typo.toml:9:1: workload.poisson.laod: unknown key \"laod\"; did you mean \"load\"?",
        ),
        (&["run", "ok.toml", "--set", "switch.pfc.headrom=1KB"], "--set switch.pfc.headrom=1KB: unknown key"),
        (&["run", "ok.toml", "--set", "topology.fat-tree.k=5"], "--set topology.fat-tree.k=5: topology.fat-tree.k:"),
        (&["run", "ok.toml", "--seeds", "0"], "seeds: no seeds"),
        (&["run", "ok.toml", "--seeds", "x"], "expected a number of seeds"),
        (&["run", "ok.toml", "--series", "irn,rocee"], "unknown scheme \"rocee\"; did you mean \"roce\"?"),
        (&["run", "ok.toml", "--series", "irn,irn"], "two series are called \"irn\""),
        (&["run", "ok.toml", "--out", "ok.toml"], "error: ok.toml: is a file"),
        (&["run", "ok.toml", "--out", "ok.toml/below"], "cannot make this folder"),
        (&["run", "ok.toml", "--out", "empty"], "holds no results of a study"),
        (&["run", "ok.toml", "--threads", "0"], "0"),
        (&["run", "ok.toml", "--seeds", "-1"], "expected a number of seeds"),
        (&["run", "--topology", "topology.txt"], "add --flows"),
        (&["run", "--flows", "flow.txt"], "add --topology"),
        (&["run", "--topology", "flow.txt", "--flows", "topology.txt"], "swapped"),
        (&["run", "--topology", "topology.txt", "--flows", "strange.txt"], "strange.txt:2: node 9 is not a host"),
        (&["run", "--topology", "broken.txt", "--flows", "flow.txt"], "broken.txt:3:"),
        (&["run", "--topology", "topology.txt", "--flows", "missing.txt"], "cannot read missing.txt"),
        (&["run", "--resume", "empty"], "no unfinished results here"),
        (&["run", "ok.toml", "--trace", "flow"], "--trace: \"flow\" names nothing to trace: say flow=12"),
        (
            &["run", "ok.toml", "--trace", "flow=99999999"],
            "there is no flow 99999999: with seed 1, series \"irn\" has flows 0 to 49",
        ),
        (&["run", "ok.toml", "--trace", "flow=1:0"], "there is no workload 1: series \"irn\" has 0 (poisson)"),
        (
            &["run", "ok.toml", "--trace", "port=h99:core0"],
            "there is no port \"h99:core0\": ports are numbered 0 to 95",
        ),
        (&["run", "ok.toml", "--trace-dir", "here"], "--trace <WHAT>"),
        (&["topology", "--topology", "bytes.bin"], "bytes.bin:1:1: found"),
        (&["check", "empty"], "error: empty: no figure here"),
        (&["check", "figure"], "there is no metric \"speed\""),
        (&["replay", "irn-receiver", "missing"], "missing: cannot be read"),
        (&["explain", "missing"], "error: missing: no such folder; expected one that `selvedge run` made"),
        (&["explain", "empty"], "error: empty: holds no results of a study"),
        (&["explain", "half"], "error: half: not complete yet; first: selvedge run --resume half.partial"),
        (&["explain", "half.partial"], "not complete; first: selvedge run --resume half.partial"),
        (&["explain", "empty", "--flow", "first"], "give the flow's number, as in 17, or workload:number"),
        (&["explain", "empty", "--flow", "1", "--worst", "2"], "cannot be used with"),
        (&["explain", "empty", "--worst", "0"], "0"),
        (&["footprint", "missing.toml"], "error: missing.toml: no such file"),
        (&["footprint", "--cache", "0B"], "a NIC without cache"),
        (&["footprint", "--cache", "4"], "\"4\" is not a size: no unit"),
        (&["footprint", "--qps", "99999999999"], "99999999999 is not in 0..="),
        (&["footprint", "--series", "irn,bogus"], "unknown scheme \"bogus\""),
        (&["footprint", "--series", "irn,tcp"], "series \"tcp\" has no queue pairs, and its state is not counted"),
        (&["frobnicate"], "unrecognized subcommand"),
    ];
    for (arguments, message) in cases {
        let (out, error) = scratch.expect(2, arguments);
        assert!(out.is_empty(), "{arguments:?}: {out}");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
    assert!(!scratch.join("results").exists(), "nothing was written");
}

#[test]
fn a_study_prints_its_table_and_leaves_its_folder() {
    let scratch = Scratch::new("study").with("small.toml", SMALL);
    let (out, error) = scratch.expect(0, &["run", "small.toml", "--threads", "2"]);
    assert!(out.contains("average slowdown") && out.contains("roce+pfc / irn"), "{out}");
    assert!(error.contains("report: results/small-1/report.html"), "{error}");
    let mut names: Vec<_> = fs::read_dir(scratch.join("results/small-1"))
        .expect("results")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names, ["flows.parquet", "ports.parquet", "report.html", "scenario.toml", "summary.json"]);

    // Again: the next number; by name: refused, then forced.
    scratch.expect(0, &["run", "small.toml", "-q"]);
    assert!(scratch.join("results/small-2/summary.json").exists());
    let (_, error) = scratch.expect(2, &["run", "small.toml", "--out", "results/small-1"]);
    assert!(error.contains("--force"), "{error}");
    scratch.expect(0, &["run", "small.toml", "--out", "results/small-1", "--force", "--seeds", "1"]);
    let summary = fs::read_to_string(scratch.join("results/small-1/summary.json")).expect("a summary");
    assert_eq!(parsed(&summary)["seeds"], serde_json::json!([1]));

    // A quiet run says nothing on standard error.
    let (_, error) = scratch.expect(0, &["run", "small.toml", "--quiet"]);
    assert_eq!(error, "");
}

#[test]
fn slow_flows_are_explained() {
    let scratch = Scratch::new("explain").with("small.toml", SMALL);
    scratch.expect(0, &["run", "small.toml", "--out", "out", "-q"]);
    let (out, error) = scratch.expect(0, &["explain", "out", "--worst", "3"]);
    assert!(out.starts_with("irn, seed 1: the 3 slowest flows\n"), "{out}");
    assert!(out.contains("its time") && out.contains("s serialisation  p propagation"), "{out}");
    assert!(error.contains("choose with --series and --seed (irn, roce+pfc)"), "{error}");

    // The parts of each flow add up to its completion time, which is the one on record.
    let run = ["explain", "out", "--series", "roce+pfc", "--seed", "2"];
    let (out, error) = scratch.expect(0, &[&run[..], &["--json"]].concat());
    assert_eq!(error, "");
    let explained = parsed(&out);
    assert_eq!((&explained["series"], &explained["seed"]), (&"roce+pfc".into(), &2.into()));
    let flows = explained["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 10);
    for flow in flows {
        let parts = flow["parts"].as_object().expect("parts");
        let sum: u64 = parts.values().filter_map(Value::as_u64).sum();
        assert_eq!(flow["fct_ps"], sum, "{flow}");
    }
    let slowest = flows[0]["flow"].to_string();
    let (out, _) = scratch.expect(0, &[&run[..], &["--flow", &slowest]].concat());
    assert!(out.contains("where the time went") && out.contains("the packet that finished it"), "{out}");

    for (arguments, message) in [
        (["--flow", "50"], "out: no flow 50 in irn, seed 1; they are numbered up to 49"),
        (["--flow", "1:0"], "out: no flow 0 of workload 1 in irn, seed 1; there is no workload 1"),
        (["--series", "roce"], "out: no series \"roce\"; there are irn, roce+pfc"),
        (["--seed", "3"], "out: no seed 3; there are 1, 2"),
    ] {
        let (_, error) = scratch.expect(2, &[&["explain", "out"], &arguments[..]].concat());
        assert!(error.contains(message), "{arguments:?}: {error}");
    }

    // Another network than the one in which the flows were slow.
    let scenario = fs::read_to_string(scratch.join("out/scenario.toml")).expect("a scenario");
    fs::write(scratch.join("out/scenario.toml"), scenario.replace("\"2us\"", "\"3us\"")).expect("writable");
    let (_, error) = scratch.expect(2, &["explain", "out", "--flow", "7"]);
    assert!(error.contains("out: flow 7 took ") && error.contains("run the study again"), "{error}");
}

#[test]
fn a_flow_that_never_finished_has_no_time_to_explain() {
    let scratch = Scratch::new("unfinished").with("small.toml", &SMALL.replace("flows = 50", "time = \"30us\""));
    scratch.expect(0, &["run", "small.toml", "--out", "out", "-q", "--seeds", "1"]);
    let (_, error) = scratch.expect(2, &["explain", "out", "--flow", "999999"]);
    let last = error.trim().rsplit(' ').next().expect("the last number");
    let (_, error) = scratch.expect(2, &["explain", "out", "--flow", last]);
    assert!(error.contains("had not finished when the run ended"), "{error}");
}

#[test]
fn json_is_all_there_is_on_standard_output() {
    let scratch = Scratch::new("json").with("small.toml", SMALL);
    let (out, _) = scratch.expect(0, &["run", "small.toml", "--json", "--out", "here"]);
    let summary = parsed(&out);
    assert_eq!(out, fs::read_to_string(scratch.join("here/summary.json")).expect("a summary"));
    for series in summary["series"].as_array().expect("series") {
        for metric in [
            "slowdown_mean",
            "fct_mean_us",
            "fct_p99_us",
            "drop_rate",
            "pause_time_us",
            "retransmissions",
            "spurious_retransmissions",
        ] {
            let estimate = &series["metrics"][metric];
            assert_eq!(estimate["per_seed"].as_array().map(Vec::len), Some(2), "{metric}: {estimate}");
            assert!(estimate["mean"].is_number() && estimate["ci95"].as_array().is_some_and(|ci| ci.len() == 2));
        }
    }
    for key in ["fingerprint", "packet_hops", "events", "cpu_s", "wall_s", "threads", "version"] {
        assert!(!summary["run"][key].is_null(), "{key}");
    }
}

#[test]
fn the_resolved_scenario_runs_to_the_same_results() {
    let scratch = Scratch::new("resolved").with("small.toml", SMALL);
    let fingerprint = |file: &str, threads: &str| {
        let (out, _) = scratch.expect(0, &["run", file, "--json", "-q", "--threads", threads]);
        parsed(&out)["run"]["fingerprint"].clone()
    };
    let first = fingerprint("small.toml", "1");
    assert_eq!(fingerprint("results/small-1/scenario.toml", "2"), first);
    assert_eq!(fingerprint("results/small-2", "4"), first, "a folder with a scenario.toml will do");
}

#[test]
fn files_of_other_simulators_run_and_give_an_fct_txt() {
    let scratch = Scratch::new("files").with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS);
    let arguments = ["run", "--topology", "topology.txt", "--flows", "flow.txt", "--series", "irn,roce+pfc"];
    scratch.expect(0, &[&arguments[..], &["--out", "out", "--seeds", "1"]].concat());
    let fct = fs::read_to_string(scratch.join("out/fct.txt")).expect("fct.txt");
    let lines: Vec<&str> = fct.lines().collect();
    assert_eq!(lines.len(), 2);
    // 10,000 B in ten packets of 82 B overhead each at 10 Gb/s, one packet of forwarding, 2 us of links.
    assert!(lines[0].starts_with("0b000101 0b000201 10000 100 10000 1000000 "), "{fct}");
    assert!(scratch.join("out/fct-roce+pfc.txt").exists());

    // The resolved scenario names the files wherever it lies.
    fs::create_dir(scratch.join("elsewhere")).expect("writable");
    fs::copy(scratch.join("out/scenario.toml"), scratch.join("elsewhere/scenario.toml")).expect("writable");
    scratch.expect(0, &["run", "elsewhere", "--out", "again", "-q"]);
    assert_eq!(fs::read_to_string(scratch.join("again/fct.txt")).expect("fct.txt"), fct);
}

#[test]
fn priorities_and_queues_of_files_count() {
    let topology = "Nodes 4\nTiers 2\nPodsize 4\n\n\
        Tier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down 2\nRadix_Up 2\nQueue_Up 60000\nQueue_Down 50000\n\n\
        Tier 1\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down 2\nQueue_Down 70000\n";
    let matrix = "Nodes 4\nConnections 4\n0->2 start 0 size 200000 prio 5\n1->2 start 0 size 200000\n\
        3->2 start 0 size 200000 prio 2000000\n0->3 start 0 size 200000 prio 9\n";
    let scratch = Scratch::new("prio")
        .with("own.topo", topology)
        .with("alike.topo", &topology.replace("60000", "50000").replace("70000", "50000"))
        .with("some.topo", &topology.replace("Queue_Up 60000\n", ""))
        .with("x.cm", matrix);
    let run = |topology: &str, out: &str, more: &[&str]| {
        let study = ["run", "--topology", topology, "--flows", "x.cm", "--series", "roce+pfc", "--seeds", "1"];
        let (_, error) = scratch.expect(0, &[&study[..], &["--out", out], more].concat());
        let fct = fs::read_to_string(scratch.join(out).join("fct.txt")).expect("fct.txt");
        (fct, fs::read_to_string(scratch.join(out).join("scenario.toml")).expect("a scenario"), error)
    };
    let (fct, scenario, said) = run("own.topo", "own", &[]);
    assert!(said.contains("x.cm:6: prio 9 is none of the priorities 0 to 7"), "{said}");
    assert!(scenario.contains("per-port = \"auto\""), "each port keeps its own: {scenario}");
    let (_, scenario, _) = run("alike.topo", "alike", &[]);
    assert!(scenario.contains("per-port = \"50KB\""), "{scenario}");
    let (_, scenario, said) = run("some.topo", "some", &[]);
    assert!(said.contains("Queue_Up and Queue_Down are not used, because some tiers lack them"), "{said}");
    assert!(scenario.contains("per-port = \"200KB\""), "twice the BDP: {scenario}");
    let (all_alike, ..) = run("own.topo", "nic", &["--set", "workload.flows.priorities=nic"]);
    // The flow of priority 5 goes first everywhere, unless priorities do not count.
    let times = |fct: &str| -> Vec<u64> {
        fct.lines().map(|line| line.split(' ').nth(6).and_then(|ns| ns.parse().ok()).expect("a time")).collect()
    };
    let (first, alike) = (times(&fct)[0], times(&all_alike)[0]);
    assert!(first + 10_000 < alike, "{first} ns with priority, {alike} ns without");
    // What does not fit.
    let small = scratch.with("small.topo", &topology.replace("50000", "9000"));
    let (_, error) = small.expect(2, &["run", "--topology", "small.topo", "--flows", "x.cm", "--series", "irn+pfc"]);
    assert!(error.contains("leaves nothing of the 9KB buffer"), "{error}");
}

#[test]
fn the_gpus_of_a_simai_server_talk_through_its_nvswitch() {
    let topology = "7 2 2 1 8 A100\n4 5\n6\n0 4 2400Gbps 0.000025ms 0\n0 6 100Gbps 0.0005ms 0\n\
        1 4 2400Gbps 0.000025ms 0\n1 6 100Gbps 0.0005ms 0\n2 5 2400Gbps 0.000025ms 0\n2 6 100Gbps 0.0005ms 0\n\
        3 5 2400Gbps 0.000025ms 0\n3 6 100Gbps 0.0005ms 0\n";
    let flows = "2\n0 1 3 100 1000 0\n1 2 3 100 1000 0\n";
    let scratch = Scratch::new("simai").with("topology", topology).with("flow.txt", flows);
    let (out, error) = scratch.expect(0, &["topology", "--topology", "topology", "--json"]);
    assert_eq!((parsed(&out)["hosts"].as_u64(), error), (Some(4), String::new()));
    let study = ["run", "--topology", "topology", "--flows", "flow.txt", "--series", "irn", "--seeds", "1"];
    scratch.expect(0, &[&study[..], &["--out", "out"]].concat());
    let fct = fs::read_to_string(scratch.join("out/fct.txt")).expect("fct.txt");
    // 1,082 bytes over two links of 2.4 Tb/s and 25 ns, and of 100 Gb/s and 500 ns.
    let lines: Vec<&str> = fct.lines().collect();
    assert!(lines[0].starts_with("0b000001 0b000101 10000 100 1000 0 57 "), "{fct}");
    assert!(lines[1].starts_with("0b000101 0b000201 10001 100 1000 0 1173 "), "{fct}");
}

#[test]
fn looking_before_running() {
    let scratch = Scratch::new("look").with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS);
    let (out, _) = scratch.expect(0, &["topology"]);
    assert!(out.contains("base RTT          24 us") && out.contains("BDP               120000 bytes"), "{out}");
    let (out, _) = scratch.expect(0, &["topology", "--topology", "topology.txt", "--json"]);
    let facts = parsed(&out);
    assert_eq!((&facts["hosts"], &facts["base_rtt_us"]), (&3.into(), &4.0.into()));
    let (out, _) = scratch.expect(0, &["workload", "--set", "workload.poisson.load=0.35"]);
    assert!(out.contains("load 35.0 %") && out.contains("first flows"), "{out}");
    let (out, _) = scratch.expect(0, &["workload", "--topology", "topology.txt", "--flows", "flow.txt", "--json"]);
    let facts = parsed(&out);
    assert_eq!((&facts["flows"], &facts["first_flows"][1]["src"]), (&2.into(), &"3".into()));
}

#[test]
fn the_state_of_schemes_is_counted() {
    let scratch = Scratch::new("footprint").with("ok.toml", SMALL);
    // IRN section 6.1: 160 bits of variables, five bitmaps of 128; three bytes per WQE, ten in all.
    let (out, _) = scratch.expect(0, &["footprint"]);
    assert!(out.contains("irn                    800       24       80         260010      6.5 %"), "{out}");
    assert!(out.contains("IRN section 6.1 says 800 per QP, 24 per WQE, 80 shared"), "{out}");
    // Two links of 2 us each way and four more of 2 us: the same RTT at twice the rate.
    let twice = ["footprint", "ok.toml", "--series", "irn+pfc", "--set", "topology.fat-tree.link.rate=80Gbps"];
    let (out, _) =
        scratch.expect(0, &[&twice[..], &["--cache", "8MB", "--qps", "1", "--wqes", "0", "--json"]].concat());
    let facts = parsed(&out);
    let scheme = &facts["schemes"][0];
    assert_eq!((&facts["bdp_bytes"], &facts["cache_bytes"]), (&240_000.into(), &8_000_000.into()));
    // 222 packets, in pieces of 32.
    assert_eq!((&scheme["name"], &scheme["queue_pair_bits"]), (&"irn+pfc".into(), &(160 + 5 * 224).into()));
    assert_eq!((&scheme["total_bytes"], &scheme["published"]["shared_bits"]), (&170.into(), &80.into()));
}

#[test]
fn figures_are_judged() {
    let expect =
        |bound: &str| format!("[[expect]]\nsay = 'it works'\nmetric = 'slowdown_mean'\nof = 'irn'\nvalue = {bound}\n");
    let smoke = format!("{SMALL}[smoke]\nseeds = 1\n'stop.flows' = 20\n");
    let scratch = Scratch::new("figures")
        .with("figures/paper/good/scenario.toml", &smoke)
        .with("figures/paper/good/expect.toml", &expect("{ at-least = 1 }"))
        .with("figures/paper/bad/scenario.toml", SMALL)
        .with("figures/paper/bad/expect.toml", &expect("{ at-most = 0.5 }"));
    let (out, _) = scratch.expect(0, &["check", "figures/paper/good", "-q"]);
    assert!(out.contains("reproduced") && out.contains("it works"), "{out}");
    let (out, error) = scratch.expect(1, &["check", "figures", "--json", "--out", "kept"]);
    let checked = parsed(&out);
    assert_eq!(checked[0]["figure"], "figures/paper/bad");
    assert_eq!(checked[0]["claims"][0]["fails"], true);
    assert_eq!(checked[1]["claims"][0]["outcome"], "reproduced");
    assert!(error.contains("error: 1 claim fails"), "{error}");
    assert!(scratch.join("kept/paper-good/report.html").exists());
    // Together, what both need is run once, and the table of claims is written.
    let (out, _) = scratch.expect(1, &["check", "figures", "-q", "--markdown", "tables/claims.md"]);
    assert!(out.contains("of them other figures' too"), "{out}");
    let table = fs::read_to_string(scratch.join("tables/claims.md")).expect("the table is there");
    assert!(table.contains("| [paper](#paper) | 2 | 1 | 0 | 1 |"), "{table}");
    assert!(table.contains("## paper\n\n2 claims: 1 reproduced, 0 in direction only, 1 not."), "{table}");
    assert!(table.contains("| it works |") && table.contains("**not reproduced**"), "{table}");
    let page = fs::read_to_string(scratch.join("results/claims.html")).expect("the page is there");
    assert!(page.contains("it works") && !page.contains("http"), "{page}");
    // Smoke runs only show that the figure runs.
    let (out, _) = scratch.expect(0, &["check", "figures", "--smoke", "-q"]);
    assert!(out.contains("runs  not judged") && !out.contains("FAIL"), "{out}");
}

#[test]
fn the_schema_and_completions_are_printed() {
    let scratch = Scratch::new("print");
    let (out, _) = scratch.expect(0, &["schema"]);
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/scenario.schema.json");
    assert_eq!(out, fs::read_to_string(committed).expect("the schema is committed"));
    for shell in ["bash", "zsh", "fish"] {
        let (out, _) = scratch.expect(0, &["completions", shell]);
        assert!(out.contains("selvedge"), "{shell}");
    }
}

#[test]
fn traces_are_replayed_as_they_come() {
    let scratch = Scratch::new("replay")
        .with("in.txt", "4\n0 1 0\n0 1 2\n0 1 1\n0 1 2\n")
        .with("broken.txt", "3\n0 1 0\n0 1 x\n0 1 2\n");
    let (out, error) = scratch.expect(0, &["replay", "irn-receiver", "in.txt"]);
    assert_eq!(out, "0 1 0 0 0\n1 1 2 0 0\n0 3 1 0 0\n0 3 2 0 0\n");
    assert_eq!(error, "");
    // Through standard input, with a wrong count.
    let mut child = scratch
        .command(&["replay", "irn-receiver", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(b"9\n0 1 0\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), "0 1 0 0 0\n");
    assert!(text(&output.stderr).starts_with("warning: standard input:1:"), "{}", text(&output.stderr));
    // What was right before an error is shown.
    let (out, error) = scratch.expect(2, &["replay", "irn-receiver", "broken.txt"]);
    assert_eq!(out, "0 1 0 0 0\n");
    assert!(error.starts_with("error: broken.txt:3:5:"), "{error}");
    // Senders.
    let scratch = scratch.with("sender.txt", "2\n7 0\n7 1 1 0 0\n");
    let (out, _) = scratch.expect(0, &["replay", "irn-sender", "sender.txt"]);
    assert_eq!(out.lines().count(), 2);
    assert!(out.starts_with("0 1 0 1 "), "{out}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let scratch = Scratch::new("pipe");
    let mut input = String::from("100000\n");
    (0..100_000).for_each(|psn| input += &format!("0 1 {psn}\n"));
    let scratch = scratch.with("long.txt", &input);
    let mut child = scratch
        .command(&["replay", "irn-receiver", "long.txt"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut first = [0; 10];
    child.stdout.take().expect("piped").read_exact(&mut first).expect("output");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
}

#[test]
fn the_authors_trace_comes_out_identical() {
    let shared = std::env::var_os("SELVEDGE_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let folder = shared.join("traces/irn-receiver");
    let find = |prefix: &str| -> Option<PathBuf> {
        let mut entries: Vec<_> = fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        entries.into_iter().find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
    };
    let (Some(input), Some(output)) = (find("recvInput"), find("recvOutput")) else {
        eprintln!("skipped: the traces of the IRN authors are not in {}", folder.display());
        return;
    };
    let scratch = Scratch::new("trace");
    let (out, error) = scratch.expect(0, &["replay", "irn-receiver", &input.display().to_string()]);
    assert_eq!(error, "");
    let expected = fs::read_to_string(output).expect("readable");
    assert_eq!(out.lines().count(), 140_361);
    assert!(out.lines().eq(expected.lines().map(str::trim_end)), "every line");
}

/// A study that takes a while, begun and interrupted as by Ctrl-C.
#[cfg(unix)]
#[test]
fn an_interrupted_study_continues_where_it_was() {
    let long = SMALL.replace("flows = 50", "flows = 2_000").replace("seeds = 2", "seeds = 200");
    let scratch = Scratch::new("interrupt").with("long.toml", &long);
    let child = scratch
        .command(&["run", "long.toml", "--out", "out", "--threads", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    wait_for(&child, || fs::read_dir(scratch.join("out.partial/parts")).is_ok_and(|parts| parts.count() > 3));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill exists").success());
    let output = child.wait_with_output().expect("it ends");
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(error.contains("to continue: selvedge run --resume out.partial"), "{error}");
    assert!(scratch.join("out.partial/unfinished.json").exists() && !scratch.join("out").exists());

    let (_, error) = scratch.expect(2, &["run", "long.toml", "--out", "out"]);
    assert!(error.contains("--resume out.partial"), "{error}");
    let (out, _) = scratch.expect(0, &["run", "--resume", "out.partial", "--json"]);
    assert_eq!(parsed(&out)["seeds"].as_array().map(Vec::len), Some(200));
    assert!(scratch.join("out/summary.json").exists() && !scratch.join("out.partial").exists());
    let (_, error) = scratch.expect(2, &["run", "--resume", "out"]);
    assert!(error.contains("these results are complete"), "{error}");
}

/// Files that can be read once, as `--flows <(generate)` in a shell, and an interruption on the way.
#[cfg(unix)]
#[test]
fn files_may_come_through_pipes() {
    let scratch = Scratch::new("pipes").with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS);
    for (pipe, content) in [("t", TOPOLOGY), ("f", FLOWS)] {
        let path = scratch.join(pipe);
        assert!(Command::new("mkfifo").arg(&path).status().expect("mkfifo exists").success());
        std::thread::spawn(move || fs::write(path, content));
    }
    let study = ["--series", "irn,roce+pfc", "--seeds", "500", "--threads", "1"];
    let child = scratch
        .command(&["run", "--topology", "t", "--flows", "f", "--out", "out"])
        .args(study)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    wait_for(&child, || fs::read_dir(scratch.join("out.partial/parts")).is_ok_and(|parts| parts.count() > 3));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill exists").success());
    child.wait_with_output().expect("it ends");

    // What came through the pipes is kept, so that the study can go on, and be done again elsewhere.
    let (piped, _) = scratch.expect(0, &["run", "--resume", "out", "--json"]);
    let files = ["run", "--topology", "topology.txt", "--flows", "flow.txt", "--json"];
    let (read, _) = scratch.expect(0, &[&files[..], &study].concat());
    assert_eq!(parsed(&piped)["series"], parsed(&read)["series"]);
    let kept = fs::read_dir(scratch.join("out/inputs")).expect("a folder").count();
    assert_eq!(kept, 2);
    let (again, _) = scratch.expect(0, &["run", "out/scenario.toml", "--json"]);
    assert_eq!(parsed(&again)["series"], parsed(&read)["series"]);
}

/// Waits until `ready`; panics after half a minute.
#[expect(clippy::disallowed_methods, reason = "a test of a process waits for it")]
fn wait_for(child: &Child, ready: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if ready() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("process {} never got there", child.id());
}
