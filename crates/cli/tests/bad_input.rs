//! Tests of invalid input of all kinds, as in a newcomer's files: one message with the place, the fault and valid
//! input; exit status 2; no file written; no panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use expect_test::expect_file;
use selvedge_testkit::texts::NS3_TOPOLOGY as TOPOLOGY;
use selvedge_testkit::{Answers, Scratch, command_line};

/// Base of all cases: they replace parts of this text, or add to its one series, and name its lines.
const SMALL: &str = r#"
title = "small"
seeds = 1
stop = { flows = 50 }
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.poisson]
load = 0.3
sizes = { fixed = "4KB" }
[[series]]
preset = "irn"
"#;
const CLAIM: &str = "[[expect]]\nsay = 'it works'\nmetric = 'slowdown_mean'\nof = 'irn'\nvalue = { at-least = 1 }\n";
const FLOWS: &str = "1\n1 2 3 100 10000 0.001\n";
const HTSIM: &str = "Nodes 4\nTiers 2\nPodsize 4\n\nTier 0\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\n\
    Radix_Down 2\nRadix_Up 2\n\nTier 1\nDownlink_speed_Gbps 100\nDownlink_Latency_ns 1000\nRadix_Down 2\n";
const MATRIX: &str = "Nodes 4\nConnections 1\n0->2 start 0 size 200000\n";

/// Returns a file to be tried: [`SMALL`] with `what` replaced.
fn scenario(what: &str, by: &str) -> Vec<u8> {
    assert!(SMALL.contains(what), "{what}");
    SMALL.replace(what, by).into()
}

/// Case: the content of the file `input`, and the arguments. The messages are in `snapshots/bad-input`.
type Case = (Vec<u8>, &'static [&'static str]);

const RUN: &[&str] = &["run", "input"];
const LOSSLESS: &[&str] = &["run", "input", "--series", "roce+pfc"];
/// Command of a flow list, with a topology of ns-3's.
const FLOW: &[&str] = &["run", "--topology", "topology.txt", "--flows", "input", "--series", "irn"];
const FILES: &[&str] = &["run", "--topology", "topology.txt", "--flows", "input"];
const NETWORK: &[&str] = &["run", "--topology", "input", "--flows", "flow.txt", "--series", "irn"];
/// Command of a connection matrix, with a topology of htsim's.
const CM: &[&str] = &["run", "--topology", "x.topo", "--flows", "input", "--series", "irn"];
const TOPO: &[&str] = &["run", "--topology", "input", "--flows", "x.cm", "--series", "irn"];
const RECEIVER: &[&str] = &["replay", "irn-receiver", "input"];
const SENDER: &[&str] = &["replay", "irn-sender", "input"];
/// Command of a distribution of sizes.
const SIZES: &[&str] = &["run", "small.toml", "--set", "workload.poisson.sizes=file:input"];

fn scenarios() -> Vec<Case> {
    vec![
        (scenario("k = 4", "k = 5"), RUN),
        (scenario("k = 4", "k = 400"), RUN),
        (scenario("k = 4", "k = -4"), RUN),
        (scenario("[[series]]", "[beside]\nworkloads = [\"poison\"]\n[[series]]"), RUN),
        (scenario("[[series]]", "[beside]\nworkloads = [\"poisson\"]\nclass = 8\n[[series]]"), RUN),
        (scenario("[[series]]", "[beside]\nworkloads = [\"poisson\"]\ntcp = { mss = \"9KB\" }\n[[series]]"), RUN),
        (
            scenario(
                "[workload.poisson]\nload = 0.3\nsizes = { fixed = \"4KB\" }",
                "[workload.collective]\noperation = \"ring-all-reduce\"\nsize = \"10B\"",
            ),
            RUN,
        ),
        (
            scenario(
                "[workload.poisson]\nload = 0.3\nsizes = { fixed = \"4KB\" }",
                "[workload.goal]\npath = \"flow.txt\"",
            ),
            RUN,
        ),
        (scenario("k = 4", "k = 4.5"), RUN),
        (scenario("k = 4", "k = 99999999999999999999"), RUN),
        (scenario("k = 4", "k = 4\nk = 6"), RUN),
        (scenario("k = 4", "kk = 4"), RUN),
        (scenario("40Gbps", "0Gbps"), RUN),
        (scenario("40Gbps", "40GBps"), RUN),
        (scenario("40Gbps", "-40Gbps"), RUN),
        (scenario("40Gbps", "NaNGbps"), RUN),
        (scenario("40Gbps", "999999999999Tbps"), RUN),
        (scenario("\"2us\"", "2"), RUN),
        (scenario("2us", "0us"), RUN),
        (scenario("2us", "1000000000s"), RUN),
        (scenario("load = 0.3", "load = 1.2"), RUN),
        (scenario("load = 0.3", "load = 0.99"), RUN),
        (scenario("load = 0.3", "load = nan"), RUN),
        (scenario("load = 0.3", "load = -0.1"), RUN),
        (scenario("load = 0.3", "load = \"much\""), RUN),
        (scenario("\"4KB\"", "\"0B\""), RUN),
        (scenario("{ fixed = \"4KB\" }", "\"cdf:web-serch\""), RUN),
        (scenario("seeds = 1", "seeds = [1, 1]"), RUN),
        (scenario("seeds = 1", "seeds = -1"), RUN),
        (scenario("seeds = 1", "seeds = 1000000000"), RUN),
        (scenario("stop = { flows = 50 }", "stop = {}"), RUN),
        (scenario("stop = { flows = 50 }", "sample = \"1ps\"\nstop = { flows = 50 }"), RUN),
        (scenario("preset = \"irn\"", "preset = \"irn+pcf\""), RUN),
        (scenario("preset = \"irn\"", "preset = \"irn/../x\"\nname = \"a/b\""), RUN),
        (scenario("[[series]]", "[[series"), RUN),
        (scenario("\"small\"", "\"small\u{0}"), RUN),
        (Vec::new(), RUN),
        (b"title = \"\xff\xfe\"\n".into(), RUN),
        (vec![0; 5_000], RUN),
    ]
}

/// Returns cases of values that contradict each other.
fn contradictions() -> Vec<Case> {
    let irn = |key: &str| scenario("[[series]]", &format!("{key}\n[[series]]"));
    vec![
        (irn("[switch.pfc]\nenabled = true\nheadroom = \"off\""), LOSSLESS),
        (irn("[switch.pfc]\nenabled = true\nheadroom = \"1MB\""), LOSSLESS),
        (irn("[switch.pfc]\nenabled = true\nclasses = [9]"), RUN),
        (irn("[transport.recovery.irn]\nrto-low = \"1ms\"\nrto-high = \"300us\""), RUN),
        (irn("[transport.recovery.irn]\nrto-low = \"0us\""), RUN),
        (irn("[transport.recovery.irn]\nrto-low = \"1ps\""), RUN),
        (
            irn("[switch.ecn]\nenabled = false\n[transport.recovery.irn]\n[transport.congestion.dcqcn]"),
            &["run", "input", "--series", "irn+dcqcn"],
        ),
        (irn("[switch.ecn]\nenabled = true\nk-min = \"1MB\"\nk-max = \"1KB\""), RUN),
        (irn("[nic]\nmtu = \"9001B\""), RUN),
        (irn("[switch.buffer.input-queued]\nper-port = \"100B\""), RUN),
        (irn("[[failures]]\nlink = \"h0\"\nat = \"2ms\"\nuntil = \"1ms\""), RUN),
        (irn("[[loss]]\nlink = \"nowhere\"\nmodel = { random = { rate = 0.1 } }"), RUN),
        (irn("[[loss]]\nlink = \"all\"\nmodel = { random = { rate = 1.5 } }"), RUN),
        (irn("[[workload.incast]]\nreceiver = 99\nsenders = 3\nsize = \"1KB\""), RUN),
        (irn("[[workload.incast]]\nreceiver = 0\nsenders = 99\nsize = \"1KB\""), RUN),
        (irn("[workload.closed-loop]\noutstanding = 4000000000\nsizes = { fixed = \"1KB\" }"), RUN),
        (irn("[workload.verbs]\nsizes = { fixed = \"1KB\" }"), &["run", "input", "--series", "eqds"]),
        (irn("[workload.flows]\npath = \"missing.txt\""), RUN),
        (irn("[workload.flows]\npath = \"folder\""), RUN),
        (irn("[workload.flows]\npath = \"flow.txt\"\npriorities = \"files\""), RUN),
    ]
}

fn topologies() -> Vec<Case> {
    let with = |what: &str, by: &str| -> Vec<u8> { TOPOLOGY.replace(what, by).into() };
    let topo = |what: &str, by: &str| -> Vec<u8> { HTSIM.replace(what, by).into() };
    vec![
        (Vec::new(), NETWORK),
        (with("0 1 10Gbps 1us 0", "0 1 10Gbps"), NETWORK),
        (with("0 1 10Gbps", "0 1 10Gpbs"), NETWORK),
        (with("0 1 10Gbps", "0 9 10Gbps"), NETWORK),
        (with("0 1 10Gbps", "1 1 10Gbps"), NETWORK),
        (with("1us 0\n0 2", "-1us 0\n0 2"), NETWORK),
        (with("1us 0\n0 2", "1us 7\n0 2"), NETWORK),
        (with("4 1 3", "4 9 3"), NETWORK),
        (with("4 1 3", "4 1 99999999999999999999"), NETWORK),
        (with("0 1 10Gbps", "0 1 0Gbps"), NETWORK),
        (b"3 1 1\n1\n0 1 100Gbps 1us 0\n2 1 100Gbpss 1us 0\n".into(), NETWORK),
        (with("0 3 10Gbps", "1 2 10Gbps"), NETWORK),
        (with("4 1 3\n0\n", "7 2 4\n0 4\n4 5 10Gbps 1us 0\n"), NETWORK),
        (
            b"5 2 1 1 4 A100\n3\n4\n0 3 2400Gbps 25ns 0\n1 3 2400Gbps 25ns 0\n2 4 1Gbps 1us 0\n0 4 1Gbps 1us 0\n"
                .into(),
            NETWORK,
        ),
        (with("4 1 3", "4 2 3"), NETWORK),
        (b"4 1 3\n\xff\xfe\n".into(), NETWORK),
        (b"hello world\n".into(), NETWORK),
        (topo("Radix_Up 2", "Radix_Up two"), TOPO),
        (topo("Radix_Up 2", "Radix_Upp 2"), TOPO),
        (topo("Radix_Up 2", "Radix_Up 3"), TOPO),
        (topo("Podsize 4", "Podsize 3"), TOPO),
        (
            topo("Radix_Up 2\n", "Radix_Up 2\nQueue_Up 60000\nQueue_Down 900\n")
                .as_slice()
                .iter()
                .copied()
                .chain(*b"Queue_Down 60000\n")
                .collect(),
            TOPO,
        ),
        (topo("Tiers 2", "Tiers 7"), TOPO),
        (topo("Downlink_speed_Gbps 100", "Downlink_speed_Gbps -1"), TOPO),
    ]
}

fn flows() -> Vec<Case> {
    let line = |line: &str| -> Vec<u8> { format!("1\n{line}\n").into() };
    let matrix = |line: &str| -> Vec<u8> { format!("Nodes 4\nConnections 1\n{line}\n").into() };
    vec![
        (Vec::new(), FLOW),
        (b"0\n".into(), FLOW),
        (line("1 2 3 100"), FLOW),
        (line("1 2 3 100 10000 0.1 7 8"), FLOW),
        (line("1 2 9 100 10000 0.001"), FLOW),
        (line("1 2 3 99999 10000 0.001"), FLOW),
        (line("1 1 3 100 10000 0.001"), FLOW),
        (line("1 7 3 100 10000 0.001"), FLOW),
        // The message ends there: no scheme is the cause.
        (line("1 7 3 100 10000 0.001"), FILES),
        (
            line("1 2 6 100 10000 0.001"),
            &["run", "--topology", "topology.txt", "--flows", "input", "--series", "irn,eqds"],
        ),
        (line("1 2 7 100 10000 0.001"), &["run", "--topology", "topology.txt", "--flows", "input", "--series", "ndp"]),
        (line("1 2 3 100 0 0.001"), FLOW),
        (line("1 2 3 100 -5 0.001"), FLOW),
        (line("1 2 3 100 10000 NaN"), FLOW),
        (line("1 2 3 100 10000 -1"), FLOW),
        (line("1 2 3 100 10000 1e300"), FLOW),
        (line("1 2 3 100 99999999999999999999 0.1"), FLOW),
        (matrix("0=>2 start 0 size 10"), CM),
        (matrix("0->0 start 0 size 10"), CM),
        (matrix("0->9 start 0 size 10"), CM),
        (matrix("0->2 start 0 size 0"), CM),
        (matrix("0->2 start 0"), CM),
        (matrix("0->2 start 0 trigger 1 size 10"), CM),
        (matrix("0->2 trigger 5 size 10"), CM),
        (matrix("0->2 id 7 trigger 1 size 10 send_done_trigger 1\ntrigger id 1 oneshot"), CM),
        (matrix("0->1 start 0 size 10 send_done_trigger 1\n0->2 trigger 1 size 10\ntrigger id 1 barrier count 2"), CM),
        (matrix("0->2 start 0 size 10 prio high"), CM),
    ]
}

fn others() -> Vec<Case> {
    vec![
        (Vec::new(), SIZES),
        (b"0 0\n100 50\n".into(), SIZES),
        (b"0 0\n100 80\n200 50\n300 100\n".into(), SIZES),
        (b"200 0\n100 50\n300 100\n".into(), SIZES),
        (b"0 0\n100 nan\n200 100\n".into(), SIZES),
        (b"0 0\n100 150\n".into(), SIZES),
        (b"0 0\r\n100\t50\r\n200\t99\r\n".into(), SIZES),
        (b"6 1 0\n13 1 1.5\n".into(), SIZES),
        (b"sizes, as I remember them\n".into(), SIZES),
        (b"garbage\n".into(), RECEIVER),
        (b"1 2\n\xff\xff\xff\n".into(), RECEIVER),
        (b"garbage\n".into(), SENDER),
        (b"9 9 9 9 9 9 9\n".into(), SENDER),
        (b"1\n0 1 0 0\n".into(), SENDER),
        (b"1\n0 2 2\n".into(), SENDER),
    ]
}

/// Returns cases with an error in the command rather than in a file.
fn commands() -> Vec<Case> {
    let none = Vec::new;
    vec![
        (none(), &["run", "folder"]),
        (none(), &["run", "small.toml", "--set", "k=4"]),
        (none(), &["run", "small.toml", "--set", "topology.fat-tree.k"]),
        (none(), &["run", "small.toml", "--set", "topology.fat-tree.k=[4"]),
        (none(), &["run", "small.toml", "--set", "stop.flows=-3"]),
        (none(), &["run", "small.toml", "--series", "eqds", "--set", "transport.eqds.eqif.tcp.red.min=30"]),
        (none(), &["run", "small.toml", "--seeds", "-1"]),
        (none(), &["run", "small.toml", "--seeds", "1,x"]),
        (none(), &["run", "small.toml", "--seeds", "99999999999"]),
        (none(), &["run", "small.toml", "--threads", "-1"]),
        (none(), &["run", "small.toml", "--threads", "many"]),
        (none(), &["run", "small.toml", "--series", ""]),
        (none(), &["run", "small.toml", "--out", "small.toml/x"]),
        (none(), &["run", "small.toml", "--out", "/proc/nothing"]),
        (none(), &["run", "small.toml", "--out", "folder"]),
        (none(), &["run", "--resume", "missing"]),
        (none(), &["run", "--resume", "small.toml"]),
        (none(), &["run", "small.toml", "--trace", "flow=99"]),
        (none(), &["run", "small.toml", "--trace", "flow=-1"]),
        (none(), &["run", "small.toml", "--trace", "port=h99"]),
        (none(), &["run", "small.toml", "--trace", "host=1"]),
        (none(), &["run", "small.toml", "--trace", "all", "--trace-dir", "folder/file"]),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "irn=h99"]),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "roce"]),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "irn="]),
        (none(), &["run", "small.toml", "--series", "roce+pfc,tcp,ndp,eqds", "--trace-events", "irn"]),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace-dir", "folder/file"]),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace", "all"]),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace-payload"]),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace-snaplen", "64"]),
        (none(), &["run", "small.toml", "--out", "o", "--trace", "all", "--trace-dir", "o"]),
        (none(), &["run", "small.toml", "--out", "o/", "--trace", "all", "--trace-dir", "./o/mine"]),
        (none(), &["run", "small.toml", "--set", "stop={time='10us'}", "--set", "workload.poisson.start=1ms"]),
        (none(), &["run", "small.toml", "--set", "measure={middle=0.005}"]),
        (none(), &["run", "--topology", "topology.txt", "--flows", "flow.txt", "--set", "measure.middle=0.5"]),
        (none(), &["run", "--topology", "topology.txt", "--flows", "folder"]),
        (none(), &["run", "--topology", "flow.txt", "--flows", "topology.txt"]),
        (none(), &["topology", "missing.toml"]),
        (none(), &["workload", "--set", "workload.poisson.load=2"]),
        (none(), &["check", "missing"]),
        (none(), &["check", "figure", "--html", "small.toml/x.html"]),
        (none(), &["check", "figure", "--markdown", "folder"]),
        (b"\xff".into(), &["check", "figure", "--markdown", "input"]),
        (none(), &["replay", "irn-receiver", "folder"]),
        (none(), &["replay", "irn-sender", "flow.txt", "--flow-packets", "0"]),
        (none(), &["explain", "small.toml"]),
        (none(), &["footprint", "--cache", "1e9"]),
    ]
}

#[test]
fn each_gets_one_message_and_leaves_nothing() {
    let scratch = Scratch::new("bad-input")
        .with("small.toml", SMALL)
        .with("topology.txt", TOPOLOGY)
        .with("flow.txt", FLOWS)
        .with("x.topo", HTSIM)
        .with("x.cm", MATRIX)
        .with("folder/file", "")
        .with("figure/scenario.toml", SMALL)
        .with("figure/expect.toml", CLAIM);
    let committed = [
        (scenarios(), expect_file!["snapshots/bad-input/scenarios.txt"]),
        (contradictions(), expect_file!["snapshots/bad-input/contradictions.txt"]),
        (topologies(), expect_file!["snapshots/bad-input/topologies.txt"]),
        (flows(), expect_file!["snapshots/bad-input/flows.txt"]),
        (others(), expect_file!["snapshots/bad-input/others.txt"]),
        (commands(), expect_file!["snapshots/bad-input/commands.txt"]),
    ];
    let mut wrong = Vec::new();
    let mut told = Vec::new();
    for (cases, committed) in committed {
        let mut answers = Answers::beside(&[SMALL, TOPOLOGY, FLOWS, HTSIM, MATRIX]);
        for (input, arguments) in cases {
            fs::write(scratch.join("input"), &input).expect("writable");
            let before = listing(scratch.path());
            match refused(scratch.path(), arguments) {
                Ok(error) => {
                    let (command, error) = (command_line("selvedge", arguments), scratch.normalised(&error));
                    if arguments.iter().any(|argument| argument.ends_with("input")) {
                        answers.add(&command, &input, &error);
                    } else {
                        answers.add_command(&command, &error);
                    }
                }
                Err(complaint) => {
                    wrong.push(format!("{arguments:?} of {:?}\n  {complaint}", String::from_utf8_lossy(&input)))
                }
            }
            if listing(scratch.path()) != before {
                wrong.push(format!("{arguments:?} of {:?}\n  files changed", String::from_utf8_lossy(&input)));
            }
        }
        told.push((answers, committed));
    }
    assert!(wrong.is_empty(), "{} are answered badly:\n{}", wrong.len(), wrong.join("\n"));
    told.iter().for_each(|(answers, committed)| committed.assert_eq(answers.text()));
}

#[cfg(unix)]
#[test]
fn names_that_are_no_text_are_names() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let name = OsStr::from_bytes(b"o\xff");
    let scratch =
        Scratch::new("bytes").with("small.toml", SMALL).with("topology.txt", TOPOLOGY).with("flow.txt", FLOWS);
    let place = |name: &OsStr| scratch.path().join(name);
    fs::copy(scratch.join("small.toml"), place(name)).expect("writable");
    let results = OsStr::from_bytes(b"results\xff");
    let run = |arguments: &[&OsStr]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        let output =
            command.current_dir(scratch.path()).arg("run").args(arguments).output().expect("the program starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let [out, topology, flows, trace, all, traces, file] =
        ["--out", "--topology", "--flows", "--trace", "all", "--trace-dir", "flow.txt"].map(OsStr::new);
    let (status, error) = run(&[name, out, results]);
    assert_eq!(status, Some(0), "{error}");
    assert!(place(results).join("summary.json").exists());
    for refused in [
        run(&[topology, name, flows, file]),
        run(&[topology, OsStr::new("topology.txt"), flows, name]),
        run(&[OsStr::new("small.toml"), flows, name]),
        run(&[name, trace, all, traces, name]),
    ] {
        assert_eq!(refused.0, Some(2), "{}", refused.1);
        assert!(refused.1.contains("in UTF-8") && refused.1.lines().count() == 1, "{}", refused.1);
    }
}

/// Checks that the program refuses these arguments in one line; returns its standard error.
fn refused(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.current_dir(folder).args(arguments).env_remove("COLUMNS");
    let output = command.output().expect("the program starts");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let errors = error.lines().filter(|line| line.starts_with("error: ")).count();
    // clap adds how the command is used.
    let is_short = error.lines().filter(|line| !line.starts_with("warning: ")).count() == 1 || error.contains("--help");
    let is_right =
        output.status.code() == Some(2) && said.is_empty() && errors == 1 && is_short && !error.contains("panicked");
    if is_right { Ok(error.into_owned()) } else { Err(format!("{}: {said}{error}", output.status)) }
}

/// Returns every file below `folder`, with its length.
fn listing(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is readable").map(|entry| entry.expect("readable").path()) {
        if entry.is_dir() {
            found.extend(listing(&entry));
        }
        found.insert(entry.display().to_string(), entry.metadata().expect("readable").len());
    }
    found
}

/// Change made to a file.
type Damage = fn(&[u8]) -> Vec<u8>;

/// Returns about half of a file, cut inside of a text, after the first quotation mark of a line. Cut between two lines
/// it could be valid.
fn cut_in_a_text(bytes: &[u8]) -> Vec<u8> {
    let next = |from: usize, byte| from + bytes[from..].iter().position(|&b| b == byte).expect("more lines");
    let line = next(bytes.len() / 2, b'\n');
    bytes[..=next(line, b'"')].to_vec()
}

#[test]
fn damaged_results_are_named_with_what_to_do() {
    let scratch = Scratch::new("bad-results").with("small.toml", SMALL);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.current_dir(scratch.path()).args(arguments).output().expect("the program starts")
    };
    assert!(run(&["run", "small.toml", "--out", "whole", "-q"]).status.success());
    let damages: [(&str, Damage, &str); 6] = [
        ("summary.json", cut_in_a_text, "summary.json: damaged"),
        ("flows.parquet", |bytes| bytes[..bytes.len() / 2].to_vec(), "flows.parquet: truncated or damaged"),
        ("flows.parquet", |_| Vec::new(), "flows.parquet: truncated or damaged"),
        ("flows.parquet", |bytes| [&bytes[..64], &[0xff; 64], &bytes[128..]].concat(), "flows.parquet"),
        ("scenario.toml", cut_in_a_text, "scenario.toml"),
        ("scenario.toml", |_| b"\xff".to_vec(), "scenario.toml: not a text in UTF-8"),
    ];
    for (n, (file, damage, message)) in damages.into_iter().enumerate() {
        let folder = format!("damaged-{n}");
        fs::create_dir(scratch.join(&folder)).expect("writable");
        for name in ["flows.parquet", "ports.parquet", "scenario.toml", "summary.json", "report.html"] {
            let bytes = fs::read(scratch.join(&format!("whole/{name}"))).expect("a file of the results");
            let bytes = if name == file { damage(&bytes) } else { bytes };
            fs::write(scratch.join(&format!("{folder}/{name}")), bytes).expect("writable");
        }
        let before = listing(scratch.path());
        match refused(scratch.path(), &["explain", &folder, "--worst", "3"]) {
            Ok(error) => assert!(error.contains(message), "{folder}, {file}: {error}"),
            Err(complaint) => panic!("{folder}, {file}: {complaint}"),
        }
        assert_eq!(listing(scratch.path()), before, "{folder}");
        // The advice of the message is checked for cases that leave the scenario unchanged.
        if file != "scenario.toml" {
            let error = run(&["explain", &folder, "--worst", "3"]).stderr;
            let advice = format!("selvedge run {folder}/scenario.toml --out {folder} --force");
            assert!(String::from_utf8_lossy(&error).contains(&advice), "{}", String::from_utf8_lossy(&error));
            assert!(run(&["run", &format!("{folder}/scenario.toml"), "--out", &folder, "--force"]).status.success());
            assert!(run(&["explain", &folder, "--worst", "3"]).status.success(), "{folder}");
        }
    }
}
