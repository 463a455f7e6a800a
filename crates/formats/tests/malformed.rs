//! Tests of the exact messages about malformed files, which are in `snapshots/malformed`.

use expect_test::{ExpectFile, expect_file};
use selvedge_formats::{
    FormatError, cdf, detect, fct, goal, htsim_cm, htsim_topo, irn_trace, loss_trace, ns3_flow, ns3_topology,
};
use selvedge_testkit::Answers;

/// Checks that `read` refuses each input, and that the messages are the committed ones. Inputs that differ in few lines
/// from `base` are shown there as differences.
fn check_beside(
    base: &str,
    committed: &ExpectFile,
    read: impl Fn(&[u8]) -> Result<(), FormatError>,
    inputs: &[impl AsRef<[u8]>],
) {
    let mut answers = Answers::beside(&[base]);
    for input in inputs {
        let input = input.as_ref();
        let error = read(input).expect_err(&input.escape_ascii().to_string());
        answers.add("", input, &error.to_string());
    }
    committed.assert_eq(answers.text());
}

fn check(committed: &ExpectFile, read: impl Fn(&[u8]) -> Result<(), FormatError>, inputs: &[&[u8]]) {
    check_beside("", committed, read, inputs);
}

#[test]
fn topologies_of_ns3() {
    check(
        &expect_file!["snapshots/malformed/topologies-of-ns3.txt"],
        |bytes| ns3_topology::read(bytes, "f").map(drop),
        &[
            b"",
            b"\n# nothing\n",
            b"1 2\n",
            b"x 1 1\n",
            b"-3 1 1\n",
            b"3 1 2\n7\n",
            b"3 2 2\n2 2\n",
            b"4 2 2\n3\n0 3 1Gbps 1us 0\n1 3 1Gbps 1us 0\n",
            b"3 1 2\n2\n0 2 100Gbps 1us\n",
            b"3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100G",
            b"3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps",
            b"3 1 2\n2\n0 2 100Gbps 1us\n1 2 100Gbps 1us 0\n",
            b"3 1 2\n2",
            b"12 4 5 12\n",
            b"4 2 1 2\n3\n0 3 25000000000.0 1us 0\n1 3 25000000000.0 1us 0\n",
            b"3 1 2\n2\n0 0 100Gbps 1us 0\n",
            b"3 1 2\n2\n0 2 0Gbps 1us 0\n",
            b"3 1 2\n2\n0 2 100gbps 1us 0\n",
            b"3 1 2\n2\n0 2 400G 1us 0\n",
            b"3 1 2\n2\n0 2 400Gbps 1US 0\n",
            b"3 1 2\n2\n0 2 NaNGbps 1us 0\n",
            b"3 1 2\n2\n0 2 100Gbps 0ns 0\n",
            b"3 1 2\n2\n0 2 100Gbps -1us 0\n",
            b"3 1 2\n2\n0 2 100Gbps 99999999999s 0\n",
            b"3 1 2\n2\n0 2 100Gbps 1us 1.5\n",
            b"3 1 2\r\n2\r\n\t0 2 100Gbps 1us 0 9\r\n",
            b"3 1 2\n2\nhello\n",
            b"4 1 2 1 3 A100\n2 9\n",
            b"3 1 2\n2\n",
            b"3 1 2\n2\n0 2 100\xffGbps 1us 0\n",
            b"PAR1\x15\x04\n",
            b"\x1f\x8b\x08\0",
            b"4 0 1 1 3\n",
        ],
    );
}

#[test]
fn flow_lists_of_ns3() {
    check(
        &expect_file!["snapshots/malformed/flow-lists-of-ns3.txt"],
        |bytes| ns3_flow::read(bytes, "f", ns3_flow::Options::default()).map(drop),
        &[
            b"",
            b"5\n",
            b"five\n",
            b"1 2\n",
            b"1\n1 2 3\n",
            b"1\n0 1 3 100 200 x\n",
            b"1\n0 0 3 100 200 2\n",
            b"1\n0 1 9 100 200 2\n",
            b"1\n0 1 3 70000 200 2\n",
            b"1\n0 1 3 100 0 2\n",
            b"1\n0 1 3 100 -5 2\n",
            b"1\n0 1 3 100 200 -2\n",
            b"1\n0 1 3 100 200 inf\n",
            b"1\n0 1 3 100 200 99999999\n",
            b"1\n0 1 3 100 99999999999999999999 2\n",
            b"2\n0 1 3 100 200 2\n0 1 3 200 2\n",
            b"2\n0 1 3 100 200 2\ngarbage\n",
            b"1\n4294967296 1 3 100 200 2\n",
        ],
    );
}

#[test]
fn matrices_of_htsim() {
    check(
        &expect_file!["snapshots/malformed/matrices-of-htsim.txt"],
        |bytes| htsim_cm::read(bytes, "f", htsim_cm::StartUnit::Auto).map(drop),
        &[
            b"",
            b"Nodes 4\n",
            b"Nodes 4\nConections 1\n",
            b"Nodes 0\n",
            b"0->1 start 0 size 5\n",
            b"Nodes 4\n0->4 start 0 size 5\n",
            b"Nodes 4\n0->0 start 0 size 5\n",
            b"Nodes 4\n->1 start 0 size 5\n",
            b"Nodes 4\n0->1 size 5\n",
            b"Nodes 4\n0->1 start 0\n",
            b"Nodes 4\n0->1 start 0 size 0\n",
            b"Nodes 4\n0->1 start 0 size -1\n",
            b"Nodes 4\n0->1 start 0 trigger 1 size 5\n",
            b"Nodes 4\n0->1 start 0 start 1 size 5\n",
            b"Nodes 4\n0->1 strat 0 size 5\n",
            b"Nodes 4\n0->1 start 0 size 5 colour 3\n",
            b"Nodes 4\n0->1 id 0 start 0 size 5\n",
            b"Nodes 4\n0->1 start 0 size 5 send_done_trigger 7\n",
            b"Nodes 4\n0->1 id 1 trigger 7 size 5\n",
            b"Nodes 4\n0->1 start nan size 5\n",
            b"Nodes 4\n0->1 start 1e30 size 5\n",
            b"Nodes 4\n0->1 start 0 size 5\ntrigger id 1 oneshot\ntrigger id 1 barrier count 2\n",
            b"Nodes 4\ntrigger id 1 barrier\n",
            b"Nodes 4\ntrigger id 1\n",
            b"Nodes 4\ntrigger oneshot\n",
            b"Nodes 4\ntrigger id 1 oneshoot\n",
            b"Nodes 4\ntrigger id 1 barrier cuont 2\n",
            b"Nodes 4\ntrigger id 1 oneshot barrier\n",
            b"Nodes 4\nfailure switch_type SPINE\n",
            b"Nodes 4\nfailure switch_type AGG switch_id 1\n",
            b"Nodes 4\nfailure colour 1\n",
            b"Nodes 4\n0 1 5\n",
        ],
    );
}

#[test]
fn topologies_of_htsim() {
    check(
        &expect_file!["snapshots/malformed/topologies-of-htsim.txt"],
        |bytes| htsim_topo::read(bytes, "f").map(drop),
        &[
            b"",
            b"Nodes 16\n",
            b"Nodes 16\nTiers 4\n",
            b"Nodes x\n",
            b"Nodes 16\nNodes 16\n",
            b"Radix_Down 4\n",
            b"Tier 3\n",
            b"Tier 0\nTier 0\n",
            b"Tier 0\nRadix_Donw 4\n",
            b"Tier 0\nColour 4\n",
            b"Tier 0\nRadix_Down 0\n",
            b"Tier 0\nRadix_Down 4 5\n",
        ],
    );
}

#[test]
fn distributions() {
    check(
        &expect_file!["snapshots/malformed/distributions.txt"],
        |bytes| cdf::read(bytes, "f", cdf::SizeUnit::Auto).map(drop),
        &[
            b"",
            b"0 0\n",
            b"0 0\n10 50\n",
            b"10 50\n5 100\n",
            b"5 60\n10 50\n20 100\n",
            b"0 5\n10 100\n",
            b"-1 0\n",
            b"0 0\n10 101\n",
            b"0 0\n10 nan\n",
            b"0 0\n10 1 1\n",
            b"1\n",
            b"1 x 1\n",
            b"5 2\n10 1\n",
        ],
    );
}

#[test]
fn completion_times() {
    check(
        &expect_file!["snapshots/malformed/completion-times.txt"],
        |bytes| fct::Records::new(bytes, "f", fct::Style::Hpcc).try_for_each(|record| record.map(drop)),
        &[
            b"0b000001 0b000101 1 2 3 4 5\n",
            b"0a000001 0b000101 1 2 3 4 5 6\n",
            b"0b000001 0b000101 1 2 0 4 5 6\n",
            b"0b000001 0b000101 1 99999 3 4 5 6\n",
            b"0b000001 0b000101 1 2 3 4 5 6 7\n",
        ],
    );
}

#[test]
fn loss_traces() {
    check(
        &expect_file!["snapshots/malformed/loss-traces.txt"],
        |bytes| loss_trace::read(bytes, "f").map(drop),
        &[b"0 1\n2 x # y\n", b"-1", b"18446744073709551616"],
    );
}

#[test]
fn receiver_traces() {
    check(
        &expect_file!["snapshots/malformed/receiver-traces.txt"],
        |bytes| irn_trace::receiver_events(bytes, "f").try_for_each(|event| event.map(drop)),
        &[b"", b"x\n", b"1\n1 2\n", b"1\n1 256 0\n", b"1\n1 1 0 0\n", b"1\n1 1 -1\n", b"1\n1 1 16777216\n"],
    );
}

#[test]
fn sender_traces() {
    check(
        &expect_file!["snapshots/malformed/sender-traces.txt"],
        |bytes| irn_trace::sender_events(bytes, "f").try_for_each(|event| event.map(drop)),
        &[
            b"1\n1 3\n",
            b"1\n1 0 5\n",
            b"1\n1 1 5\n",
            b"1\n1 1 16777216 6 1\n",
            b"1\n1 1 5 16777216 1\n",
            b"1\n1 1 5 6 2\n",
            b"1\n1 2 quick\n",
        ],
    );
}

/// Valid tree: 16 hosts, 4 pods.
const TREE: &str = "\
Nodes 16
Tiers 3
Podsize 4
Tier 0
Downlink_speed_Gbps 100
Downlink_Latency_ns 1000
Radix_Down 2
Radix_Up 2
Tier 1
Downlink_speed_Gbps 100
Downlink_Latency_ns 1000
Radix_Down 2
Radix_Up 2
Tier 2
Downlink_speed_Gbps 100
Downlink_Latency_ns 1000
Radix_Down 4
";

#[test]
fn trees_whose_numbers_do_not_fit_together() {
    assert_eq!(htsim_topo::read(TREE.as_bytes(), "f").map(|parsed| parsed.warnings), Ok(vec![]));
    let edits = [
        ("Podsize 4", "Podsize 5"),
        ("Tiers 3", "Tiers 2"),
        ("Radix_Up 2\nTier 2", "Tier 2"),
        ("Radix_Down 4", "Radix_Down 4\nRadix_Up 4"),
        ("Radix_Down 4", "Radix_Down 3"),
        ("Tier 0\n", "Tier 0\nBundle 2\n"),
        ("Tier 1\n", "Tier 1\nBundle 3\n"),
        ("Radix_Down 2\nRadix_Up 2\nTier 1", "Radix_Down 3\nRadix_Up 2\nTier 1"),
        ("Tier 0\n", "Tier 0\nOversubscribed 2\n"),
        ("Tier 1\n", "Tier 1\nBundle 2\n"),
        ("Tier 1\n", "Tier 1\nOversubscribed 3\n"),
        ("Radix_Up 2\nTier 1", "Radix_Up 1\nTier 1"),
        ("Radix_Up 2\nTier 1", "Radix_Up 3\nTier 1"),
        ("Radix_Up 2\nTier 2", "Radix_Up 4\nTier 2"),
        ("Tier 1\nDownlink_speed_Gbps 100", "Tier 1\nDownlink_speed_Gbps 300"),
    ];
    check_beside(
        TREE,
        &expect_file!["snapshots/malformed/trees.txt"],
        |bytes| htsim_topo::read(bytes, "f").map(drop),
        &edits.map(|(find, replace)| {
            assert!(TREE.contains(find), "{find}");
            TREE.replacen(find, replace, 1)
        }),
    );
}

#[test]
fn files_of_no_known_kind() {
    check(
        &expect_file!["snapshots/malformed/files-of-no-known-kind.txt"],
        |bytes| detect(bytes, "f").map(drop),
        &[b"hello world\n", b"1 2\n", b"1\n1 2\n", b"Nodes 5\n", b"Nodes 5\nFoo\n", b"", b"1\n"],
    );
}

#[test]
fn schedules_of_goal() {
    let within = |body: &str| format!("num_ranks 2\nrank 0 {{\n{body}\n}}\n");
    check_beside(
        "num_ranks 2\nrank 0 {\n}\n",
        &expect_file!["snapshots/malformed/schedules-of-goal.txt"],
        |bytes| goal::read(bytes, "f").map(drop),
        &[
            String::new(),
            "num_ranks 0\n".into(),
            within("l1: send 8b to 2"),
            within("l1: send 8k to 1"),
            within("l1: send 8b from 1"),
            within("l1: sned 8b to 1"),
            within("l1: calc 1\nl1: calc 2"),
            within("l1: calc 1\nl1 requires l2"),
            within("l1: calc 1\nl1 requires l1"),
            within(
                "a: calc 1\nb: calc 1\nc: calc 1\nd: calc 1\na requires c\nb irequires a\nd requires a\nc requires b",
            ),
            within("l1: calc 1 tag 2"),
            "num_ranks 2\nrank 0 {\n".into(),
            "num_ranks 2\nrank 0 {\n}\nrank 0 {\n}\n".into(),
        ],
    );
}
