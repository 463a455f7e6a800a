//! Tests of the exact messages about malformed files.

use selvedge_formats::{
    FormatError, cdf, detect, fct, htsim_cm, htsim_topo, irn_trace, loss_trace, ns3_flow, ns3_topology,
};

/// Checks that `read` refuses each input with the message beside it.
fn check<I: AsRef<[u8]>>(read: impl Fn(&[u8]) -> Result<(), FormatError>, table: &[(I, &str)]) {
    for (input, expected) in table {
        let input = input.as_ref();
        let shown = input.escape_ascii();
        match read(input) {
            Ok(()) => panic!("{shown} was read, expected {expected}"),
            Err(error) => assert_eq!(error.to_string(), *expected, "{shown}"),
        }
    }
}

#[test]
fn topologies_of_ns3() {
    check(
        |bytes| ns3_topology::read(bytes, "f").map(drop),
        &[
            (&b""[..], "f:1:1: the file ends here, expected a header with the number of nodes, switches and links"),
            (
                &b"\n# nothing\n"[..],
                "f:3:1: the file ends here, expected a header with the number of nodes, switches and links",
            ),
            (
                &b"1 2\n"[..],
                r#"f:1:1: found 2 words, expected "nodes switches links", "nodes switches tors links" or SimAI's "nodes gpus_per_server nvswitches switches links gpu_type""#,
            ),
            (&b"x 1 1\n"[..], r#"f:1:1: found "x", expected the number of nodes of at least 1"#),
            (&b"-3 1 1\n"[..], r#"f:1:1: found "-3", expected the number of nodes of at least 1"#),
            (&b"3 1 2\n7\n"[..], r#"f:2:1: found "7", expected a node id from 0 to 2"#),
            (&b"3 2 2\n2 2\n"[..], "f:2:3: found switch 2 a second time, expected each switch once"),
            (
                &b"4 2 2\n3\n0 3 1Gbps 1us 0\n1 3 1Gbps 1us 0\n"[..],
                "f:1:1: found 1 switch id above the first link (line 3), expected 2 as said here",
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps 1us\n"[..],
                r#"f:3:16: the line ends here, expected a loss probability, as in "0"; the file ends with this line: of the 2 links that the header says, 2 are missing"#,
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100G"[..],
                r#"f:4:5: found "100G", expected a rate above zero as in "100Gbps" or "12.5GB/s", did you mean "100Gbps"?; the file ends with this line: of the 2 links that the header says, 1 is missing"#,
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps"[..],
                r#"f:4:12: the line ends here, expected a delay as in "1000ns"; the file ends with this line: of the 2 links that the header says, 1 is missing"#,
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps 1us\n1 2 100Gbps 1us 0\n"[..],
                r#"f:3:16: the line ends here, expected a loss probability, as in "0""#,
            ),
            (
                &b"3 1 2\n2"[..],
                r#"f:3:1: the file ends here, expected a link as in "0 1 100Gbps 1000ns 0" (all 2 links of the header are missing)"#,
            ),
            (
                &b"12 4 5 12\n"[..],
                r#"f:1:6: found "5", expected the number of top-of-rack switches among these switches from 0 to 4"#,
            ),
            (
                &b"4 2 1 2\n3\n0 3 25000000000.0 1us 0\n1 3 25000000000.0 1us 0\n"[..],
                "f:1:1: found 1 switch id above the first link (line 3), expected 2 as said here",
            ),
            (
                &b"3 1 2\n2\n0 0 100Gbps 1us 0\n"[..],
                "f:3:3: found a link from node 0 to itself, expected two different nodes",
            ),
            (
                &b"3 1 2\n2\n0 2 0Gbps 1us 0\n"[..],
                r#"f:3:5: found "0Gbps", expected a rate above zero as in "100Gbps" or "12.5GB/s""#,
            ),
            (
                &b"3 1 2\n2\n0 2 100gbps 1us 0\n"[..],
                r#"f:3:5: found "100gbps", expected a rate above zero as in "100Gbps" or "12.5GB/s", did you mean "100Gbps"?"#,
            ),
            (
                &b"3 1 2\n2\n0 2 400G 1us 0\n"[..],
                r#"f:3:5: found "400G", expected a rate above zero as in "100Gbps" or "12.5GB/s", did you mean "400Gbps"?"#,
            ),
            (
                &b"3 1 2\n2\n0 2 400Gbps 1US 0\n"[..],
                r#"f:3:13: found "1US", expected a delay as in "1000ns" or "0.001ms", above zero and at most 100s, did you mean "1us"?"#,
            ),
            (
                &b"3 1 2\n2\n0 2 NaNGbps 1us 0\n"[..],
                r#"f:3:5: found "NaNGbps", expected a rate above zero as in "100Gbps" or "12.5GB/s""#,
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps 0ns 0\n"[..],
                r#"f:3:13: found "0ns", expected a delay as in "1000ns" or "0.001ms", above zero and at most 100s"#,
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps -1us 0\n"[..],
                r#"f:3:13: found "-1us", expected a delay as in "1000ns" or "0.001ms", above zero and at most 100s"#,
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps 99999999999s 0\n"[..],
                r#"f:3:13: found "99999999999s", expected a delay as in "1000ns" or "0.001ms", above zero and at most 100s"#,
            ),
            (
                &b"3 1 2\n2\n0 2 100Gbps 1us 1.5\n"[..],
                r#"f:3:17: found "1.5", expected a loss probability from 0 to 1"#,
            ),
            (&b"3 1 2\r\n2\r\n\t0 2 100Gbps 1us 0 9\r\n"[..], r#"f:3:20: found "9", expected the end of the line"#),
            (&b"3 1 2\n2\nhello\n"[..], r#"f:3:1: found "hello", expected a node id from 0 to 2"#),
            (&b"4 1 2 1 3 A100\n2 9\n"[..], r#"f:2:3: found "9", expected a node id from 0 to 3"#),
            (
                &b"3 1 2\n2\n"[..],
                r#"f:3:1: the file ends here, expected a link as in "0 1 100Gbps 1000ns 0" (all 2 links of the header are missing)"#,
            ),
            (&b"3 1 2\n2\n0 2 100\xffGbps 1us 0\n"[..], "f:3:8: found byte 0xff, expected text in UTF-8"),
            (&b"PAR1\x15\x04\n"[..], "f:1:1: found a Parquet file, expected a text file"),
            (&b"\x1f\x8b\x08\0"[..], "f:1:1: found what gzip has packed, expected a text file"),
            (
                &b"4 0 1 1 3\n"[..],
                r#"f:1:1: found 5 words, expected "nodes switches links", "nodes switches tors links" or SimAI's "nodes gpus_per_server nvswitches switches links gpu_type""#,
            ),
        ],
    );
}

#[test]
fn flow_lists_of_ns3() {
    check(
        |bytes| ns3_flow::read(bytes, "f", ns3_flow::Options::default()).map(drop),
        &[
            (&b""[..], "f:1:1: the file ends here, expected the number of flows"),
            (&b"5\n"[..], r#"f:2:1: the file ends here, expected a flow as in "2 1 3 100 200000 2.0""#),
            (&b"five\n"[..], r#"f:1:1: found "five", expected the number of flows"#),
            (&b"1 2\n"[..], r#"f:1:3: found "2", expected the end of the line"#),
            (
                &b"1\n1 2 3\n"[..],
                "f:2:1: found 3 words, expected 5 (src dst pg size start), 6 (src dst pg dport size start) or 7 (id src dst pg dport size start)",
            ),
            (
                &b"1\n0 1 3 100 200 x\n"[..],
                r#"f:2:15: found "x", expected a start in seconds as in "2.000028356", at most 53 days"#,
            ),
            (&b"1\n0 0 3 100 200 2\n"[..], "f:2:3: found a flow from node 0 to itself, expected two different nodes"),
            (&b"1\n0 1 9 100 200 2\n"[..], r#"f:2:5: found "9", expected a priority group from 0 to 7"#),
            (&b"1\n0 1 3 70000 200 2\n"[..], r#"f:2:7: found "70000", expected a port from 0 to 65535"#),
            (&b"1\n0 1 3 100 0 2\n"[..], r#"f:2:11: found "0", expected a size in bytes from 1 to 1000000000000000"#),
            (&b"1\n0 1 3 100 -5 2\n"[..], r#"f:2:11: found "-5", expected a size in bytes of at least 1"#),
            (
                &b"1\n0 1 3 100 200 -2\n"[..],
                r#"f:2:15: found "-2", expected a start in seconds as in "2.000028356", at most 53 days"#,
            ),
            (
                &b"1\n0 1 3 100 200 inf\n"[..],
                r#"f:2:15: found "inf", expected a start in seconds as in "2.000028356", at most 53 days"#,
            ),
            (
                &b"1\n0 1 3 100 200 99999999\n"[..],
                r#"f:2:15: found "99999999", expected a start in seconds as in "2.000028356", at most 53 days"#,
            ),
            (
                &b"1\n0 1 3 100 99999999999999999999 2\n"[..],
                r#"f:2:11: found "99999999999999999999", expected a size in bytes from 1 to 1000000000000000"#,
            ),
            (&b"2\n0 1 3 100 200 2\n0 1 3 200 2\n"[..], "f:3:1: found 5 columns, expected 6 as in the flows above"),
            (&b"2\n0 1 3 100 200 2\ngarbage\n"[..], r#"f:3:1: found "garbage", expected a node id"#),
            (
                &b"1\n4294967296 1 3 100 200 2\n"[..],
                r#"f:2:1: found "4294967296", expected a node id from 0 to 4294967295"#,
            ),
        ],
    );
}

#[test]
fn matrices_of_htsim() {
    check(
        |bytes| htsim_cm::read(bytes, "f", htsim_cm::StartUnit::Auto).map(drop),
        &[
            (&b""[..], r#"f:1:1: the file ends here, expected "Nodes" and their number"#),
            (&b"Nodes 4\n"[..], r#"f:2:1: the file ends here, expected a flow as in "0->1 start 0 size 1000""#),
            (&b"Nodes 4\nConections 1\n"[..], r#"f:2:1: found "Conections", expected "Connections""#),
            (&b"Nodes 0\n"[..], r#"f:1:7: found "0", expected the number of nodes from 1 to 4294967295"#),
            (
                &b"0->1 start 0 size 5\n"[..],
                r#"f:1:1: found "0->1", expected "Nodes" and their number before the first flow"#,
            ),
            (&b"Nodes 4\n0->4 start 0 size 5\n"[..], r#"f:2:4: found "4", expected a node from 0 to 3"#),
            (
                &b"Nodes 4\n0->0 start 0 size 5\n"[..],
                "f:2:4: found a flow from node 0 to itself, expected two different nodes",
            ),
            (&b"Nodes 4\n->1 start 0 size 5\n"[..], r#"f:2:1: found "", expected a node from 0 to 3"#),
            (
                &b"Nodes 4\n0->1 size 5\n"[..],
                r#"f:2:12: the line ends here, expected "start" and a time, or "trigger" and an id"#,
            ),
            (&b"Nodes 4\n0->1 start 0\n"[..], r#"f:2:13: the line ends here, expected "size" and a number of bytes"#),
            (
                &b"Nodes 4\n0->1 start 0 size 0\n"[..],
                r#"f:2:19: found "0", expected a size in bytes from 1 to 1000000000000000"#,
            ),
            (&b"Nodes 4\n0->1 start 0 size -1\n"[..], r#"f:2:19: found "-1", expected a size in bytes of at least 1"#),
            (
                &b"Nodes 4\n0->1 start 0 trigger 1 size 5\n"[..],
                r#"f:2:14: found "trigger", expected either a start or a trigger, not both"#,
            ),
            (
                &b"Nodes 4\n0->1 start 0 start 1 size 5\n"[..],
                r#"f:2:14: found "start", expected each word once per flow"#,
            ),
            (&b"Nodes 4\n0->1 strat 0 size 5\n"[..], r#"f:2:6: found "strat", expected "start""#),
            (
                &b"Nodes 4\n0->1 start 0 size 5 colour 3\n"[..],
                r#"f:2:21: found "colour", expected one of start, trigger, size, id, msg, send_done_trigger, recv_done_trigger, prio, addon"#,
            ),
            (
                &b"Nodes 4\n0->1 id 0 start 0 size 5\n"[..],
                r#"f:2:9: found "0", expected a flow id from 1 to 4294967295"#,
            ),
            (
                &b"Nodes 4\n0->1 start 0 size 5 send_done_trigger 7\n"[..],
                r#"f:2:39: found "7", expected a trigger that a line "trigger id 7 ..." defines"#,
            ),
            (
                &b"Nodes 4\n0->1 id 1 trigger 7 size 5\n"[..],
                r#"f:2:19: found "7", expected a trigger that a line "trigger id 7 ..." defines"#,
            ),
            (&b"Nodes 4\n0->1 start nan size 5\n"[..], r#"f:2:12: found "nan", expected a start time as in "1000000""#),
            (&b"Nodes 4\n0->1 start 1e30 size 5\n"[..], r#"f:2:12: found "1e30", expected a start of at most 53 days"#),
            (
                &b"Nodes 4\n0->1 start 0 size 5\ntrigger id 1 oneshot\ntrigger id 1 barrier count 2\n"[..],
                "f:4:12: found trigger 1, which line 3 defines already, expected each trigger once",
            ),
            (
                &b"Nodes 4\ntrigger id 1 barrier\n"[..],
                r#"f:2:21: the line ends here, expected "count" and the activations that the barrier waits for"#,
            ),
            (
                &b"Nodes 4\ntrigger id 1\n"[..],
                "f:2:1: found a trigger of no kind, expected oneshot, multishot, or barrier and its count",
            ),
            (
                &b"Nodes 4\ntrigger oneshot\n"[..],
                r#"f:2:16: the line ends here, expected "id" and the trigger's number"#,
            ),
            (
                &b"Nodes 4\ntrigger id 1 oneshoot\n"[..],
                r#"f:2:14: found "oneshoot", expected a kind of trigger: oneshot, multishot, or barrier and its count"#,
            ),
            (&b"Nodes 4\ntrigger id 1 barrier cuont 2\n"[..], r#"f:2:22: found "cuont", expected "count""#),
            (
                &b"Nodes 4\ntrigger id 1 oneshot barrier\n"[..],
                r#"f:2:22: found "barrier", expected one kind of trigger"#,
            ),
            (&b"Nodes 4\nfailure switch_type SPINE\n"[..], r#"f:2:21: found "SPINE", expected TOR, AGG or CORE"#),
            (
                &b"Nodes 4\nfailure switch_type AGG switch_id 1\n"[..],
                r#"f:2:36: the line ends here, expected "link_id" and a number"#,
            ),
            (
                &b"Nodes 4\nfailure colour 1\n"[..],
                r#"f:2:9: found "colour", expected one of switch_type, switch_id, link_id"#,
            ),
            (
                &b"Nodes 4\n0 1 5\n"[..],
                r#"f:2:1: found "0", expected a flow as in "0->1", "trigger", "failure" or a header key"#,
            ),
        ],
    );
}

#[test]
fn topologies_of_htsim() {
    check(
        |bytes| htsim_topo::read(bytes, "f").map(drop),
        &[
            (&b""[..], r#"f:1:1: the file ends here, expected "Nodes" and a number"#),
            (&b"Nodes 16\n"[..], r#"f:2:1: the file ends here, expected "Tiers" and a number"#),
            (&b"Nodes 16\nTiers 4\n"[..], r#"f:2:7: found "4", expected a number for Tiers from 2 to 3"#),
            (&b"Nodes x\n"[..], r#"f:1:7: found "x", expected a number for Nodes from 1 to 16777216"#),
            (
                &b"Nodes 16\nNodes 16\n"[..],
                "f:2:1: found Nodes, which stands in line 1 already, expected each key once",
            ),
            (&b"Radix_Down 4\n"[..], r#"f:1:1: found "Radix_Down", expected "Tier 0" before the keys of a tier"#),
            (&b"Tier 3\n"[..], r#"f:1:6: found "3", expected a tier from 0 to 2"#),
            (&b"Tier 0\nTier 0\n"[..], "f:2:6: found tier 0, which begins in line 1, expected each tier once"),
            (&b"Tier 0\nRadix_Donw 4\n"[..], r#"f:2:1: found "Radix_Donw", expected "Radix_Down""#),
            (
                &b"Tier 0\nColour 4\n"[..],
                r#"f:2:1: found "Colour", expected one of Tier, Nodes, Tiers, Podsize, Downlink_speed_Gbps, Downlink_Latency_ns, Radix_Down, Radix_Up, Oversubscribed, Bundle, Switch_Latency_ns, Queue_Up, Queue_Down"#,
            ),
            (&b"Tier 0\nRadix_Down 0\n"[..], r#"f:2:12: found "0", expected a number for Radix_Down from 1 to 65536"#),
            (&b"Tier 0\nRadix_Down 4 5\n"[..], r#"f:2:14: found "5", expected the end of the line"#),
        ],
    );
}

#[test]
fn distributions() {
    check(
        |bytes| cdf::read(bytes, "f", cdf::SizeUnit::Auto).map(drop),
        &[
            (&b""[..], r#"f:1:1: the file ends here, expected a point as in "10000 15""#),
            (&b"0 0\n"[..], r#"f:1:3: found "0", expected 100 (percent) or 1 at the last point"#),
            (&b"0 0\n10 50\n"[..], r#"f:2:4: found "50", expected 100 (percent) or 1 at the last point"#),
            (&b"10 50\n5 100\n"[..], r#"f:2:1: found "5", expected a size of at least 10, as in the line above"#),
            (&b"5 60\n10 50\n20 100\n"[..], r#"f:2:4: found "50", expected at least the share in the line above"#),
            (&b"0 5\n10 100\n"[..], r#"f:1:1: found "0", expected sizes above zero where the share is above zero"#),
            (&b"-1 0\n"[..], r#"f:1:1: found "-1", expected a size"#),
            (
                &b"0 0\n10 101\n"[..],
                r#"f:2:4: found "101", expected a cumulative share from 0 to 100 percent, or from 0 to 1"#,
            ),
            (
                &b"0 0\n10 nan\n"[..],
                r#"f:2:4: found "nan", expected a cumulative share from 0 to 100 percent, or from 0 to 1"#,
            ),
            (&b"0 0\n10 1 1\n"[..], "f:2:1: found 3 words, expected 2"),
            (&b"1\n"[..], "f:1:1: found 1 word, expected 2 (size share) or 3 (size weight share)"),
            (&b"1 x 1\n"[..], r#"f:1:3: found "x", expected a weight, as in "1""#),
            (&b"5 2\n10 1\n"[..], r#"f:2:4: found "1", expected at least the share in the line above"#),
        ],
    );
}

#[test]
fn completion_times() {
    check(
        |bytes| fct::Records::new(bytes, "f", fct::Style::Hpcc).try_for_each(|record| record.map(drop)),
        &[
            (
                &b"0b000001 0b000101 1 2 3 4 5\n"[..],
                "f:1:28: the line ends here, expected the standalone completion time",
            ),
            (
                &b"0a000001 0b000101 1 2 3 4 5 6\n"[..],
                r#"f:1:1: found "0a000001", expected an address as in "0b000101""#,
            ),
            (
                &b"0b000001 0b000101 1 2 0 4 5 6\n"[..],
                r#"f:1:23: found "0", expected a size in bytes from 1 to 1000000000000000"#,
            ),
            (&b"0b000001 0b000101 1 99999 3 4 5 6\n"[..], r#"f:1:21: found "99999", expected a port from 0 to 65535"#),
            (&b"0b000001 0b000101 1 2 3 4 5 6 7\n"[..], r#"f:1:31: found "7", expected the end of the line"#),
        ],
    );
}

#[test]
fn loss_traces() {
    let expected = "expected the number of a packet, from 0, with blanks or lines between them";
    check(
        |bytes| loss_trace::read(bytes, "f").map(drop),
        &[
            (&b"0 1\n2 x # y\n"[..], &*format!(r#"f:2:3: found "x", {expected}"#)),
            (&b"-1"[..], &*format!(r#"f:1:1: found "-1", {expected}"#)),
            (&b"18446744073709551616"[..], &*format!(r#"f:1:1: found "18446744073709551616", {expected}"#)),
        ],
    );
}

#[test]
fn receiver_traces() {
    check(
        |bytes| irn_trace::receiver_events(bytes, "f").try_for_each(|event| event.map(drop)),
        &[
            (&b""[..], "f:1:1: the file ends here, expected the number of events"),
            (&b"x\n"[..], r#"f:1:1: found "x", expected the number of events"#),
            (&b"1\n1 2\n"[..], "f:2:4: the line ends here, expected a sequence number"),
            (&b"1\n1 256 0\n"[..], r#"f:2:3: found "256", expected an opcode from 0 to 255"#),
            (&b"1\n1 1 0 0\n"[..], r#"f:2:7: found "0", expected the end of the line"#),
            (&b"1\n1 1 -1\n"[..], r#"f:2:5: found "-1", expected a sequence number from 0 to 16777215"#),
            (&b"1\n1 1 16777216\n"[..], r#"f:2:5: found "16777216", expected a sequence number from 0 to 16777215"#),
        ],
    );
}

#[test]
fn sender_traces() {
    check(
        |bytes| irn_trace::sender_events(bytes, "f").try_for_each(|event| event.map(drop)),
        &[
            (&b"1\n1 3\n"[..], r#"f:2:3: found "3", expected an event: 0 (txFree), 1 (receiveAck) or 2 (timeout)"#),
            (&b"1\n1 0 5\n"[..], r#"f:2:5: found "5", expected the end of the line"#),
            (&b"1\n1 1 5\n"[..], "f:2:6: the line ends here, expected the acknowledged sequence number"),
            (
                &b"1\n1 1 16777216 6 1\n"[..],
                r#"f:2:5: found "16777216", expected the next expected sequence number from 0 to 16777215"#,
            ),
            (
                &b"1\n1 1 5 16777216 1\n"[..],
                r#"f:2:7: found "16777216", expected the acknowledged sequence number from 0 to 16777215"#,
            ),
            (&b"1\n1 1 5 6 2\n"[..], r#"f:2:9: found "2", expected the syndrome from 0 to 1"#),
            (&b"1\n1 2 quick\n"[..], r#"f:2:5: found "quick", expected the quick flag from 0 to 1"#),
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
        ("Podsize 4", "Podsize 5", "f:3:9: found pods of 5 for 16 nodes, expected a divisor of the nodes"),
        ("Tiers 3", "Tiers 2", "f:14:1: found tier 2, expected tiers 0 to 1 only"),
        ("Radix_Up 2\nTier 2", "Tier 2", r#"f:9:1: found tier 1 without Radix_Up, expected "Radix_Up" and a number"#),
        (
            "Radix_Down 4",
            "Radix_Down 4\nRadix_Up 4",
            "f:18:10: found uplinks for tier 2, expected none at the top tier",
        ),
        ("Radix_Down 4", "Radix_Down 3", "f:17:12: found 16 links for cores with 3 ports, expected a multiple"),
        ("Tier 0\n", "Tier 0\nBundle 2\n", "f:5:8: found bundled links to hosts, expected Bundle 1 at tier 0"),
        ("Tier 1\n", "Tier 1\nBundle 3\n", "f:13:12: found Radix_Down 2 with bundles of 3, expected a multiple"),
        (
            "Radix_Down 2\nRadix_Up 2\nTier 1",
            "Radix_Down 3\nRadix_Up 2\nTier 1",
            "f:7:12: found 3 hosts per ToR in pods of 4, expected a divisor",
        ),
        (
            "Tier 0\n",
            "Tier 0\nOversubscribed 2\n",
            "f:9:10: found 2 ports down and 2 up with Oversubscribed 2, expected Oversubscribed 1",
        ),
        (
            "Tier 1\n",
            "Tier 1\nBundle 2\n",
            "f:8:10: found Radix_Up 2 to 2 switches above, in bundles of 2, expected Radix_Up 4 or Bundle 1 at tier 1",
        ),
        (
            "Tier 1\n",
            "Tier 1\nOversubscribed 3\n",
            "f:16:21: found 16 links of 100 Gb/s, oversubscribed 3 to 1, below links of 100 Gb/s, expected a whole number of those",
        ),
        (
            "Radix_Up 2\nTier 1",
            "Radix_Up 1\nTier 1",
            "f:8:10: found 2 ports down and 1 up with Oversubscribed 1, expected Oversubscribed 2",
        ),
        (
            "Radix_Up 2\nTier 1",
            "Radix_Up 3\nTier 1",
            "f:8:10: found 2 ports down and 3 up, expected no more up than down (Radix_Up 2)",
        ),
        (
            "Radix_Up 2\nTier 2",
            "Radix_Up 4\nTier 2",
            "f:13:10: found Radix_Up 4 to 2 switches above, in bundles of 1, expected Radix_Up 2 or Bundle 2 at tier 2",
        ),
        (
            "Tier 1\nDownlink_speed_Gbps 100",
            "Tier 1\nDownlink_speed_Gbps 300",
            "f:10:21: found 16 links of 100 Gb/s, oversubscribed 1 to 1, below links of 300 Gb/s, expected a whole number of those",
        ),
    ];
    for (find, replace, expected) in edits {
        let edited = TREE.replacen(find, replace, 1);
        check(|bytes| htsim_topo::read(bytes, "f").map(drop), &[(edited, expected)]);
    }
}

#[test]
fn files_of_no_known_kind() {
    let known = "ns-3 RDMA topology (first line \"nodes switches links\" or \"nodes switches tors links\"), \
        SimAI topology (first line of 6 words, the last a GPU type), \
        ns-3 RDMA flow list (a count, then lines of 5, 6 or 7 numbers), \
        htsim topology (\"Nodes\", \"Tiers\", \"Podsize\"), \
        htsim connection matrix (\"Nodes\", \"Connections\", lines \"0->1 ...\"), \
        GOAL schedule (\"num_ranks\")";
    let table = [
        ("hello world\n", r#"f:1:1: found "hello""#),
        ("1 2\n", "f:1:1: found 2 words in the first line"),
        ("1\n1 2\n", "f:2:1: found 1 word in the first line and 2 in the second"),
        ("Nodes 5\n", r#"f:1:1: found "Nodes" alone"#),
        ("Nodes 5\nFoo\n", r#"f:2:1: found "Foo""#),
    ];
    for (input, found) in table {
        let expected = format!("{found}, expected one of: {known}");
        check(|bytes| detect(bytes, "f").map(drop), &[(input, &*expected)]);
    }
    check(
        |bytes| detect(bytes, "f").map(drop),
        &[
            ("", "f:1:1: the file ends here, expected a topology or a flow list"),
            (
                "1\n",
                "f:1:1: found a number alone, which may be a count of flows; expected the flows, of 5, 6 or 7 numbers each",
            ),
        ],
    );
}
