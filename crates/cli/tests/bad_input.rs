//! Tests of invalid input of all kinds, as in a newcomer's files: one message with the place, the fault and valid
//! input; exit status 2; no file written; no panic.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use selvedge_testkit::Scratch;
use selvedge_testkit::texts::NS3_TOPOLOGY as TOPOLOGY;

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

/// Case: the content of the file `input`, the arguments, and the text that the message must contain.
type Case = (Vec<u8>, &'static [&'static str], &'static str);

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
        (scenario("k = 4", "k = 5"), RUN, "input:6:1: topology.fat-tree.k: a fat-tree needs an even number"),
        (
            scenario("k = 4", "k = 400"),
            RUN,
            "input:6:1: topology.fat-tree.k: found 400, but a fat-tree can have 2 to 80",
        ),
        (scenario("k = 4", "k = -4"), RUN, "expected a whole number, zero or above"),
        (
            scenario("[[series]]", "[beside]\nworkloads = [\"poison\"]\n[[series]]"),
            RUN,
            "input:12:1: beside.workloads: there is no workload \"poison\"; there are poisson",
        ),
        (
            scenario("[[series]]", "[beside]\nworkloads = [\"poisson\"]\nclass = 8\n[[series]]"),
            RUN,
            "beside.class: 8 is not a priority: they are 0 to 7",
        ),
        (
            scenario("[[series]]", "[beside]\nworkloads = [\"poisson\"]\ntcp = { mss = \"9KB\" }\n[[series]]"),
            RUN,
            "beside.tcp.mss: 9KB is more than a packet carries",
        ),
        (
            scenario(
                "[workload.poisson]\nload = 0.3\nsizes = { fixed = \"4KB\" }",
                "[workload.collective]\noperation = \"ring-all-reduce\"\nsize = \"10B\"",
            ),
            RUN,
            "workload.collective.size: 10B cannot be cut into 16 parts",
        ),
        (
            scenario(
                "[workload.poisson]\nload = 0.3\nsizes = { fixed = \"4KB\" }",
                "[workload.goal]\npath = \"flow.txt\"",
            ),
            RUN,
            "workload.goal.path: flow.txt is a ns-3 RDMA flow list",
        ),
        (scenario("k = 4", "k = 4.5"), RUN, "input:6:5: topology.fat-tree.k: found floating point 4.5"),
        (scenario("k = 4", "k = 99999999999999999999"), RUN, "input:6:5: topology.fat-tree.k: too large a number"),
        (scenario("k = 4", "k = 4\nk = 6"), RUN, "input:7:1: not TOML: duplicate key"),
        (
            scenario("k = 4", "kk = 4"),
            RUN,
            "input:6:1: topology.fat-tree.kk: unknown key \"kk\"; known here: k or link",
        ),
        (scenario("40Gbps", "0Gbps"), RUN, "topology.fat-tree.link.rate: nothing crosses a link of rate zero"),
        (scenario("40Gbps", "40GBps"), RUN, "unit \"GBps\""),
        (scenario("40Gbps", "-40Gbps"), RUN, "\"-40Gbps\" is not a rate"),
        (scenario("40Gbps", "NaNGbps"), RUN, "\"NaNGbps\" is not a rate"),
        (
            scenario("40Gbps", "999999999999Tbps"),
            RUN,
            "\"999999999999Tbps\" is too large: expected at most 18446744Tbps",
        ),
        (
            scenario("\"2us\"", "2"),
            RUN,
            "input:7:35: topology.fat-tree.link.delay: found integer 2, expected a time in quotes",
        ),
        (scenario("2us", "0us"), RUN, "a link needs a propagation delay above zero"),
        (scenario("2us", "1000000000s"), RUN, "\"1000000000s\""),
        (scenario("load = 0.3", "load = 1.2"), RUN, "workload.poisson.load: found 1.2, expected a fraction above 0"),
        (scenario("load = 0.3", "load = 0.99"), RUN, "multiply the load by at most"),
        (scenario("load = 0.3", "load = nan"), RUN, "workload.poisson.load: found"),
        (scenario("load = 0.3", "load = -0.1"), RUN, "workload.poisson.load: found -0.1, expected"),
        (scenario("load = 0.3", "load = \"much\""), RUN, "workload.poisson.load"),
        (scenario("\"4KB\"", "\"0B\""), RUN, "workload.poisson.sizes"),
        (scenario("{ fixed = \"4KB\" }", "\"cdf:web-serch\""), RUN, "did you mean \"cdf:web-search\"?"),
        (scenario("seeds = 1", "seeds = [1, 1]"), RUN, "input:3:1: seeds: seed 1 twice"),
        (scenario("seeds = 1", "seeds = -1"), RUN, "input:3:9: seeds: expected a number of seeds"),
        (scenario("seeds = 1", "seeds = 1000000000"), RUN, "1000000000 seeds are too many; give at most 10000"),
        (scenario("stop = { flows = 50 }", "stop = {}"), RUN, "the traffic never ends: say when to stop"),
        (
            scenario("stop = { flows = 50 }", "sample = \"1ps\"\nstop = { flows = 50 }"),
            RUN,
            "sample: 1ps is shorter than any packet",
        ),
        (scenario("preset = \"irn\"", "preset = \"irn+pcf\""), RUN, "unknown modifier \"pcf\"; did you mean \"pfc\"?"),
        (
            scenario("preset = \"irn\"", "preset = \"irn/../x\"\nname = \"a/b\""),
            RUN,
            "error: input:11:1: series.name: \"a/b\" is not a name",
        ),
        (scenario("[[series]]", "[[series"), RUN, "not TOML"),
        (scenario("\"small\"", "\"small\u{0}"), RUN, "input:2:"),
        (Vec::new(), RUN, "input:1:1: the key \"title\" is missing"),
        (b"title = \"\xff\xfe\"\n".into(), RUN, "input: not a text in UTF-8"),
        (vec![0; 5_000], RUN, "input:1:5001: not TOML"),
    ]
}

/// Returns cases of values that contradict each other.
fn contradictions() -> Vec<Case> {
    let irn = |key: &str| scenario("[[series]]", &format!("{key}\n[[series]]"));
    vec![
        (
            irn("[switch.pfc]\nenabled = true\nheadroom = \"off\""),
            LOSSLESS,
            "switch.pfc.headroom: PFC without headroom drops",
        ),
        (irn("[switch.pfc]\nenabled = true\nheadroom = \"1MB\""), LOSSLESS, "leaves nothing of the"),
        (irn("[switch.pfc]\nenabled = true\nclasses = [9]"), RUN, "9 is not a traffic class: they are 0 to 7"),
        (
            irn("[transport.recovery.irn]\nrto-low = \"1ms\"\nrto-high = \"300us\""),
            RUN,
            "300us is less than rto-low, 1ms",
        ),
        (irn("[transport.recovery.irn]\nrto-low = \"0us\""), RUN, "a timeout of zero never waits"),
        (
            irn("[transport.recovery.irn]\nrto-low = \"1ps\""),
            RUN,
            "a timeout of 1ps is over at once; give 10ns or more",
        ),
        (
            irn("[switch.ecn]\nenabled = false\n[transport.recovery.irn]\n[transport.congestion.dcqcn]"),
            &["run", "input", "--series", "irn+dcqcn"],
            "dcqcn hears of congestion by ECN marks",
        ),
        (irn("[switch.ecn]\nenabled = true\nk-min = \"1MB\"\nk-max = \"1KB\""), RUN, "k-max must not be less"),
        (irn("[nic]\nmtu = \"9001B\""), RUN, "nic.mtu: 9001B is out of range"),
        (irn("[switch.buffer.input-queued]\nper-port = \"100B\""), RUN, "does not hold one frame"),
        (irn("[[failures]]\nlink = \"h0\"\nat = \"2ms\"\nuntil = \"1ms\""), RUN, "before it fails"),
        (irn("[[loss]]\nlink = \"nowhere\"\nmodel = { random = { rate = 0.1 } }"), RUN, "there is no node \"nowhere\""),
        (irn("[[loss]]\nlink = \"all\"\nmodel = { random = { rate = 1.5 } }"), RUN, "1.5 is not a probability"),
        (
            irn("[[workload.incast]]\nreceiver = 99\nsenders = 3\nsize = \"1KB\""),
            RUN,
            "there is no host 99: hosts are numbered from 0 to 15",
        ),
        (irn("[[workload.incast]]\nreceiver = 0\nsenders = 99\nsize = \"1KB\""), RUN, "workload.incast"),
        (
            irn("[workload.closed-loop]\noutstanding = 4000000000\nsizes = { fixed = \"1KB\" }"),
            RUN,
            "flows at once, but at most",
        ),
        (
            irn("[workload.verbs]\nsizes = { fixed = \"1KB\" }"),
            &["run", "input", "--series", "roce+eqds"],
            "applications that use verbs need queue pairs, and EQDS's tunnels do not carry them: give series as",
        ),
        (irn("[workload.flows]\npath = \"missing.txt\""), RUN, "workload.flows.path: cannot read missing.txt"),
        (irn("[workload.flows]\npath = \"folder\""), RUN, "folder"),
        (irn("[workload.flows]\npath = \"flow.txt\"\npriorities = \"files\""), RUN, "workload.flows.priorities"),
    ]
}

fn topologies() -> Vec<Case> {
    let with = |what: &str, by: &str| -> Vec<u8> { TOPOLOGY.replace(what, by).into() };
    let topo = |what: &str, by: &str| -> Vec<u8> { HTSIM.replace(what, by).into() };
    vec![
        (Vec::new(), NETWORK, "input"),
        (with("0 1 10Gbps 1us 0", "0 1 10Gbps"), NETWORK, "input:3:"),
        (with("0 1 10Gbps", "0 1 10Gpbs"), NETWORK, "input:3:5: found \"10Gpbs\""),
        (with("0 1 10Gbps", "0 9 10Gbps"), NETWORK, "input:3:3: found \"9\""),
        (with("0 1 10Gbps", "1 1 10Gbps"), NETWORK, "input:3:"),
        (with("1us 0\n0 2", "-1us 0\n0 2"), NETWORK, "input:3:12: found \"-1us\""),
        (with("1us 0\n0 2", "1us 7\n0 2"), NETWORK, "input:3:"),
        (with("4 1 3", "4 9 3"), NETWORK, "input:1:3:"),
        (with("4 1 3", "4 1 99999999999999999999"), NETWORK, "input:1:5:"),
        (with("0 1 10Gbps", "0 1 0Gbps"), NETWORK, "input:3:5:"),
        (
            b"3 1 1\n1\n0 1 100Gbps 1us 0\n2 1 100Gbpss 1us 0\n".into(),
            NETWORK,
            "input: traffic needs at least two hosts, found 1 host with a link (input:4: the header says 1 link, and more",
        ),
        (with("0 3 10Gbps", "1 2 10Gbps"), NETWORK, "input:5:1: node 1 is a host and has a link already (line 3)"),
        (
            with("4 1 3\n0\n", "7 2 4\n0 4\n4 5 10Gbps 1us 0\n"),
            NETWORK,
            "input:4:1: no path leads from node 4 to node 0: the network must hang together",
        ),
        (
            b"5 2 1 1 4 A100\n3\n4\n0 3 2400Gbps 25ns 0\n1 3 2400Gbps 25ns 0\n2 4 1Gbps 1us 0\n0 4 1Gbps 1us 0\n"
                .into(),
            NETWORK,
            "input:5:1: no path leads from node 2 to node 1: NVSwitches join the GPUs of a server alone; give each GPU",
        ),
        (
            with("4 1 3", "4 2 3"),
            NETWORK,
            "input:1:1: found 1 switch id above the first link (line 3), expected 2 as said here",
        ),
        (b"4 1 3\n\xff\xfe\n".into(), NETWORK, "input:2:1:"),
        (b"hello world\n".into(), NETWORK, "input:1:1:"),
        (topo("Radix_Up 2", "Radix_Up two"), TOPO, "input:9:10: found \"two\""),
        (topo("Radix_Up 2", "Radix_Upp 2"), TOPO, "input:9:1: found \"Radix_Upp\", expected \"Radix_Up\""),
        (topo("Radix_Up 2", "Radix_Up 3"), TOPO, "input:9:10: found 2 ports down and 3 up, expected no more up than"),
        (topo("Podsize 4", "Podsize 3"), TOPO, "input:"),
        (
            topo("Radix_Up 2\n", "Radix_Up 2\nQueue_Up 60000\nQueue_Down 900\n")
                .as_slice()
                .iter()
                .copied()
                .chain(*b"Queue_Down 60000\n")
                .collect(),
            TOPO,
            "topology.file.path: input:11:12: Queue_Down 900: 900B does not hold one frame of",
        ),
        (topo("Tiers 2", "Tiers 7"), TOPO, "input:2:7: found \"7\""),
        (topo("Downlink_speed_Gbps 100", "Downlink_speed_Gbps -1"), TOPO, "input:6:21: found \"-1\""),
    ]
}

fn flows() -> Vec<Case> {
    let line = |line: &str| -> Vec<u8> { format!("1\n{line}\n").into() };
    let matrix = |line: &str| -> Vec<u8> { format!("Nodes 4\nConnections 1\n{line}\n").into() };
    vec![
        (Vec::new(), FLOW, "input"),
        (b"0\n".into(), FLOW, "input"),
        (line("1 2 3 100"), FLOW, "input:2:"),
        (line("1 2 3 100 10000 0.1 7 8"), FLOW, "input:2:"),
        (line("1 2 9 100 10000 0.001"), FLOW, "input:2:5: found \"9\", expected a priority group"),
        (line("1 2 3 99999 10000 0.001"), FLOW, "input:2:7: found \"99999\""),
        (line("1 1 3 100 10000 0.001"), FLOW, "input:2:"),
        (
            line("1 7 3 100 10000 0.001"),
            FLOW,
            "input:2:3: node 7 is not a host: the topology's hosts have numbers from 1 to 3",
        ),
        // The message ends there: no scheme is the cause.
        (line("1 7 3 100 10000 0.001"), FILES, "the topology's hosts have numbers from 1 to 3\n"),
        (
            line("1 2 6 100 10000 0.001"),
            &["run", "--topology", "topology.txt", "--flows", "input", "--series", "irn,eqds"],
            "--series eqds: switch.buffer.trimming.header-class: headers of trimmed packets have priority 6, and a flow of \
             workload.flows has priority 6: headers must be above all data; give 7 here and to nic.ack-class, or set \
             workload.flows.priorities = \"nic\" (\"eqds\" sets this)",
        ),
        (
            line("1 2 7 100 10000 0.001"),
            &["run", "--topology", "topology.txt", "--flows", "input", "--series", "ndp"],
            "has priority 7: headers must be above all data; set workload.flows.priorities = \"nic\" (\"ndp\"",
        ),
        (line("1 2 3 100 0 0.001"), FLOW, "input:2:11:"),
        (line("1 2 3 100 -5 0.001"), FLOW, "input:2:11: found \"-5\""),
        (line("1 2 3 100 10000 NaN"), FLOW, "input:2:17: found \"NaN\""),
        (line("1 2 3 100 10000 -1"), FLOW, "input:2:17: found \"-1\""),
        (line("1 2 3 100 10000 1e300"), FLOW, "input:2:17: found \"1e300\""),
        (line("1 2 3 100 99999999999999999999 0.1"), FLOW, "input:2:11:"),
        (matrix("0=>2 start 0 size 10"), CM, "input:3:1:"),
        (matrix("0->0 start 0 size 10"), CM, "input:3:4: found a flow from node 0 to itself"),
        (matrix("0->9 start 0 size 10"), CM, "input:3:4: found \"9\""),
        (matrix("0->2 start 0 size 0"), CM, "input:3:19:"),
        (matrix("0->2 start 0"), CM, "input:3:"),
        (matrix("0->2 start 0 trigger 1 size 10"), CM, "either a start or a trigger, not both"),
        (matrix("0->2 trigger 5 size 10"), CM, "input:3:14:"),
        (
            matrix("0->2 id 7 trigger 1 size 10 send_done_trigger 1\ntrigger id 1 oneshot"),
            CM,
            "input:3:1: flow 1 of 1 (id 7) waits for trigger 1 of 1",
        ),
        (
            matrix("0->1 start 0 size 10 send_done_trigger 1\n0->2 trigger 1 size 10\ntrigger id 1 barrier count 2"),
            CM,
            "which releases it at activation 2, but one flow activates it: it would never start",
        ),
        (matrix("0->2 start 0 size 10 prio high"), CM, "input:3:27: found \"high\", expected a priority"),
    ]
}

fn others() -> Vec<Case> {
    vec![
        (Vec::new(), SIZES, "input"),
        (b"0 0\n100 50\n".into(), SIZES, "input"),
        (b"0 0\n100 80\n200 50\n300 100\n".into(), SIZES, "input:3:"),
        (b"200 0\n100 50\n300 100\n".into(), SIZES, "input:2:"),
        (b"0 0\n100 nan\n200 100\n".into(), SIZES, "input:2:"),
        (b"0 0\n100 150\n".into(), SIZES, "input:2:"),
        (b"0 0\r\n100\t50\r\n200\t99\r\n".into(), SIZES, "input:3:5: found \"99\", expected 100 (percent) or 1"),
        (b"6 1 0\n13 1 1.5\n".into(), SIZES, "input:2:6: found \"1.5\""),
        (b"sizes, as I remember them\n".into(), SIZES, "input:1:1:"),
        (b"garbage\n".into(), RECEIVER, "input:1:1: found \"garbage\""),
        (b"1 2\n\xff\xff\xff\n".into(), RECEIVER, "input:"),
        (b"garbage\n".into(), SENDER, "input:1:1: found \"garbage\""),
        (
            b"9 9 9 9 9 9 9\n".into(),
            SENDER,
            "input:1:3: found \"9\", expected the number of events alone in the first line",
        ),
        (b"1\n0 1 0 0\n".into(), SENDER, "input:2:8: the line ends here, expected the syndrome"),
        (b"1\n0 2 2\n".into(), SENDER, "input:2:5: found \"2\", expected the quick flag from 0 to 1"),
    ]
}

/// Returns cases with an error in the command rather than in a file.
fn commands() -> Vec<Case> {
    let none = Vec::new;
    vec![
        (none(), &["run", "folder"], "error: folder: this is a folder"),
        (none(), &["run", "small.toml", "--set", "k=4"], "--set k=4: unknown key \"k\""),
        (none(), &["run", "small.toml", "--set", "topology.fat-tree.k"], "expected key=value"),
        (none(), &["run", "small.toml", "--set", "topology.fat-tree.k=[4"], "--set topology.fat-tree.k=[4"),
        (none(), &["run", "small.toml", "--set", "stop.flows=-3"], "--set stop.flows=-3"),
        (
            none(),
            &["run", "small.toml", "--series", "eqds", "--set", "transport.eqds.eqif.tcp.red.min=30"],
            "no stack sends through the tunnels of \"eqds\" here: give a series that does, as \"tcp+eqds\"",
        ),
        (none(), &["run", "small.toml", "--seeds", "-1"], "expected a number of seeds"),
        (none(), &["run", "small.toml", "--seeds", "1,x"], "expected a number of seeds"),
        (
            none(),
            &["run", "small.toml", "--seeds", "99999999999"],
            "error: --seeds 99999999999: 99999999999 seeds are too many; give at most 10000",
        ),
        (none(), &["run", "small.toml", "--threads", "-1"], "-1 is not in 1..=65535"),
        (none(), &["run", "small.toml", "--threads", "many"], "invalid digit"),
        (none(), &["run", "small.toml", "--series", ""], "no series to run; give at least one"),
        (none(), &["run", "small.toml", "--out", "small.toml/x"], "cannot make this folder"),
        (none(), &["run", "small.toml", "--out", "/proc/nothing"], "/proc/nothing"),
        (none(), &["run", "small.toml", "--out", "folder"], "holds no results of a study"),
        (none(), &["run", "--resume", "missing"], "missing"),
        (none(), &["run", "--resume", "small.toml"], "small.toml"),
        (none(), &["run", "small.toml", "--trace", "flow=99"], "there is no flow 99"),
        (none(), &["run", "small.toml", "--trace", "flow=-1"], "--trace"),
        (none(), &["run", "small.toml", "--trace", "port=h99"], "there is no port \"h99\""),
        (none(), &["run", "small.toml", "--trace", "host=1"], "--trace"),
        (none(), &["run", "small.toml", "--trace", "all", "--trace-dir", "folder/file"], "cannot write it"),
        (
            none(),
            &["run", "small.toml", "--series", "irn", "--trace-events", "irn=h99"],
            "--trace-events: there is no host \"h99\": hosts are called \"h0\" to \"h15\"",
        ),
        (
            none(),
            &["run", "small.toml", "--series", "irn", "--trace-events", "roce"],
            "--trace-events: \"roce\" names no events: say irn (of all hosts) or irn=h3 (of host h3)",
        ),
        (none(), &["run", "small.toml", "--series", "irn", "--trace-events", "irn="], "there is no host \"\""),
        (
            none(),
            &["run", "small.toml", "--series", "roce+pfc,tcp,ndp,eqds", "--trace-events", "irn"],
            "no series has IRN's loss recovery, outside of tunnels; choose one that has, e.g. --series irn",
        ),
        (
            none(),
            &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace-dir", "folder/file"],
            "cannot write it",
        ),
        (
            none(),
            &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace", "all"],
            "cannot be used with",
        ),
        (
            none(),
            &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace-payload"],
            "cannot be used with",
        ),
        (
            none(),
            &["run", "small.toml", "--series", "irn", "--trace-events", "irn", "--trace-snaplen", "64"],
            "cannot be used with",
        ),
        (
            none(),
            &["run", "small.toml", "--out", "o", "--trace", "all", "--trace-dir", "o"],
            "traces there would be in the way of the results",
        ),
        (
            none(),
            &["run", "small.toml", "--out", "o/", "--trace", "all", "--trace-dir", "./o/mine"],
            "traces there would be in the way of the results",
        ),
        (
            none(),
            &["run", "small.toml", "--set", "stop={time='10us'}", "--set", "workload.poisson.start=1ms"],
            "stop.time: the run ends at 10us, but no flow starts before 1ms: give a later time",
        ),
        (
            none(),
            &["run", "small.toml", "--set", "measure={middle=0.005}"],
            "measure.middle: the middle 0.005 of 50 flows is less than one: give more, or let there be more flows",
        ),
        (
            none(),
            &["run", "--topology", "topology.txt", "--flows", "flow.txt", "--set", "measure.middle=0.5"],
            "measure is \"all\" here, not \"middle\"; replace it as a whole: 'measure = { middle = 0.5 }'",
        ),
        (none(), &["run", "--topology", "topology.txt", "--flows", "folder"], "folder"),
        (none(), &["run", "--topology", "flow.txt", "--flows", "topology.txt"], "swapped"),
        (none(), &["topology", "missing.toml"], "missing.toml: no such file"),
        (none(), &["workload", "--set", "workload.poisson.load=2"], "found 2, expected a fraction"),
        (none(), &["check", "missing"], "missing"),
        (none(), &["check", "figure", "--html", "small.toml/x.html"], "error: small.toml/x.html: cannot write it"),
        (none(), &["check", "figure", "--markdown", "folder"], "error: folder: cannot write it"),
        (b"\xff".into(), &["check", "figure", "--markdown", "input"], "error: input: cannot read it"),
        (none(), &["replay", "irn-receiver", "folder"], "folder"),
        (none(), &["replay", "irn-sender", "flow.txt", "--flow-packets", "0"], "flow"),
        (none(), &["explain", "small.toml"], "small.toml"),
        (none(), &["footprint", "--cache", "1e9"], "\"1e9\" is not a size"),
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
    let cases = [scenarios(), contradictions(), topologies(), flows(), others(), commands()].concat();
    assert!(cases.len() >= 100, "{}", cases.len());
    let mut wrong = Vec::new();
    for (input, arguments, message) in cases {
        fs::write(scratch.join("input"), &input).expect("writable");
        let before = listing(scratch.path());
        if let Err(complaint) = refused(scratch.path(), arguments, message) {
            wrong.push(format!("{arguments:?} of {:?}\n  {complaint}", String::from_utf8_lossy(&input)));
        }
        if listing(scratch.path()) != before {
            wrong.push(format!("{arguments:?} of {:?}\n  files changed", String::from_utf8_lossy(&input)));
        }
    }
    assert!(wrong.is_empty(), "{} are answered badly:\n{}", wrong.len(), wrong.join("\n"));
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

/// Checks that the program refuses these arguments with `message`.
fn refused(folder: &Path, arguments: &[&str], message: &str) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    let output = command.current_dir(folder).args(arguments).output().expect("the program starts");
    let (said, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let errors = error.lines().filter(|line| line.starts_with("error: ")).count();
    // clap adds how the command is used.
    let is_short = error.lines().filter(|line| !line.starts_with("warning: ")).count() == 1 || error.contains("--help");
    let is_right = output.status.code() == Some(2)
        && said.is_empty()
        && errors == 1
        && is_short
        && error.contains(message)
        && !error.contains("panicked");
    if is_right { Ok(()) } else { Err(format!("{}: {said}{error}  expected {message:?}", output.status)) }
}

/// Returns every file below `folder`, with its length.
fn listing(folder: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("readable").path()) {
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
        if let Err(complaint) = refused(scratch.path(), &["explain", &folder, "--worst", "3"], message) {
            panic!("{folder}, {file}: {complaint}");
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
