//! Tests of traces with other programs: tshark dissects every packet, Perfetto's rules hold, and both files are
//! byte-identical for any number of threads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use selvedge_wire::eqds::Body;
use selvedge_wire::tcp::{Flags, TcpDatagram};
use selvedge_wire::{Content, Frame, Opcode, Roce};
use serde_json::Value;

mod support;
use support::{Timeline, packets};

/// Scenario with drops, go-back-N without NACKs, and pauses: an incast into a leaf, and traffic around it.
const SCENARIO: &str = r#"
title = "traced"
seeds = 1
stop = { flows = 60 }
[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 4
host-link = { rate = "40Gbps", delay = "1us" }
spine-link = { rate = "40Gbps", delay = "1us" }
[workload.poisson]
load = 0.5
sizes = { fixed = "30001B" }
[workload.incast]
receiver = 0
senders = 6
size = "600KB"
[switch.buffer.input-queued]
per-port = "40KB"
[[series]]
preset = "irn"
[[series]]
preset = "roce"
[[series]]
preset = "roce+pfc"
[[series]]
preset = "irn+dcqcn"
set.'switch.ecn.k-max' = "20KB"
[[series]]
preset = "roce+timely"
[[series]]
preset = "tcp"
set.'transport.tcp.handshake' = true
set.'transport.tcp.initial-rto' = "1ms"
set.'transport.tcp.fin' = true
[[series]]
preset = "tcp+dctcp"
"#;

const SERIES: [&str; 7] = ["irn", "roce", "roce+pfc", "irn+dcqcn", "roce+timely", "tcp", "tcp+dctcp"];
const TCP: [&str; 2] = ["tcp", "tcp+dctcp"];

/// Study in a folder of its own, which is removed at the end.
struct Traced(PathBuf);

impl Traced {
    fn run(name: &str, arguments: &[&str]) -> Self {
        Self::run_scenario(name, SCENARIO, arguments)
    }
    fn run_scenario(name: &str, scenario: &str, arguments: &[&str]) -> Self {
        let path = std::env::temp_dir().join(format!("selvedge-traces-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).expect("a temporary folder");
        fs::write(path.join("traced.toml"), scenario).expect("writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
        command.current_dir(&path).args(["run", "traced.toml", "--out", "out", "--quiet"]).args(arguments);
        let status = command.stdout(Stdio::null()).status().expect("the program starts");
        assert!(status.success(), "{arguments:?}");
        Self(path)
    }
    fn capture(&self, series: &str) -> PathBuf {
        self.0.join(format!("out/traces/{series}-seed1.pcapng"))
    }
    fn timeline(&self, series: &str) -> PathBuf {
        self.0.join(format!("out/traces/{series}-seed1.perfetto-trace"))
    }
    /// Returns the packet-hops of each series, by its name.
    fn packet_hops(&self) -> BTreeMap<String, u64> {
        let summary = fs::read_to_string(self.0.join("out/summary.json")).expect("a summary");
        let summary: Value = serde_json::from_str(&summary).expect("JSON");
        let points = summary["run"]["points"].as_array().unwrap();
        let hops = |point: &Value| point["packet_hops"].as_u64().expect("a number");
        points.iter().map(|point| (point["series"].as_str().expect("a name").to_owned(), hops(point))).collect()
    }
}
impl Drop for Traced {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns the lines that tshark prints for a capture; `None` without tshark.
fn tshark(capture: &Path, arguments: &[&str]) -> Option<Vec<String>> {
    let checks = ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
    let output = Command::new("tshark").arg("-r").arg(capture).args(checks).args(arguments).output().ok()?;
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// Kinds of packets that a capture may contain.
const KINDS: [&str; 4] = ["RC RDMA Write ", "RC Acknowledge ", "Class Based Flow Control [CBFC] Pause", "7471"];
/// Name of a congestion notification packet: Wireshark 4.0 shows its number, later versions its name.
const CNP: &str = "129";

#[test]
fn tshark_dissects_every_packet_without_complaint() {
    dissect(&Traced::run("tshark", &["--trace", "all"]));
}

#[test]
fn tshark_dissects_every_packet_with_its_payload_without_complaint() {
    dissect(&Traced::run("payload", &["--trace", "all", "--trace-payload"]));
}

/// Checks that a capture leaves out payload, and that it keeps the lengths of packets on the wire.
#[test]
fn payload_is_left_out_and_lengths_are_not() {
    let (series, less) = (["irn", "roce+pfc", "tcp"], ["--trace", "all", "--series", "irn,roce+pfc,tcp"]);
    let headers = Traced::run("headers", &less);
    let whole = Traced::run("whole", &[&less[..], &["--trace-payload"]].concat());
    for series in series {
        let [short, long] = [&headers, &whole].map(|traced| fs::read(traced.capture(series)).expect("a capture"));
        assert!(short.len() < 130 * packets(&short).len(), "{series}: {} bytes", short.len());
        assert!(short.len() * 3 < long.len(), "{series}: {} and {} bytes", short.len(), long.len());
        let lengths = |traced: &Traced| {
            tshark(&traced.capture(series), &["-T", "fields", "-e", "frame.time_epoch", "-e", "frame.len"])
        };
        let (Some(short), Some(long)) = (lengths(&headers), lengths(&whole)) else {
            eprintln!("skipped: tshark is missing; `cargo xtask setup` installs it");
            return;
        };
        assert_eq!(short, long, "{series}");
    }
}

fn dissect(traced: &Traced) {
    let hops = traced.packet_hops();
    for series in SERIES {
        let capture = traced.capture(series);
        // Messages of all dissectors, except those about comments in the capture; the fields of every packet; the state
        // of its checksum. Notes that TCP connects and closes are below the limit; retransmissions are checked below,
        // where one end is captured.
        let least = if TCP.contains(&series) { "0x600000" } else { "0x200000" };
        let complaints =
            format!("_ws.expert.severity >= {least} or _ws.malformed or _ws.short or ip.checksum.status != 1");
        let once = ["-o", "tcp.analyze_sequence_numbers:FALSE", "-Y", &complaints];
        let Some(complaints) = tshark(&capture, &once) else {
            eprintln!("skipped: tshark is missing; `cargo xtask setup` installs it");
            return;
        };
        assert!(complaints.is_empty(), "{series}: {complaints:#?}");
        let fields =
            ["-T", "fields", "-e", "frame.packet_flags_direction", "-e", "infiniband.bth.opcode", "-e", "_ws.col.Info"];
        let (mut sent, mut notifications) = (0, 0);
        for line in tshark(&capture, &fields).expect("tshark runs again") {
            let [direction, opcode, info] = line.splitn(3, '\t').collect::<Vec<_>>()[..] else {
                panic!("{series}: three fields, not {line}");
            };
            assert!(opcode == CNP || KINDS.iter().any(|kind| info.contains(kind)), "{series}: {info}");
            sent += u64::from(direction.ends_with('2'));
            notifications += u32::from(opcode == CNP);
        }
        assert_eq!(sent, hops[series], "{series}: every packet on every hop");
        assert_eq!(notifications > 0, series.contains("dcqcn"), "{series}: {notifications} notifications");
    }
}

#[test]
fn tshark_follows_the_connections_that_one_end_sees() {
    let incast_from_h0 = ["--set", "workload.incast.receiver=5"];
    let traced =
        Traced::run("follows", &[&["--trace", "port=h0", "--series", "tcp,tcp+dctcp"], &incast_from_h0[..]].concat());
    for series in TCP {
        // Findings that are impossible if the capture has all packets that leave h0.
        let gaps = "tcp.analysis.ack_lost_segment or (tcp.analysis.lost_segment and frame.packet_flags_direction == 2)";
        let Some(gaps) = tshark(&traced.capture(series), &["-Y", gaps]) else {
            eprintln!("skipped: tshark is missing; `cargo xtask setup` installs it");
            return;
        };
        assert!(gaps.is_empty(), "{series}: {gaps:#?}");
        let again = "tcp.analysis.retransmission or tcp.analysis.fast_retransmission or tcp.analysis.out_of_order";
        let ours = "frame.comment contains \"retransmission\"";
        let numbers = |what: &str| {
            let filter = format!("frame.packet_flags_direction == 2 and ({what})");
            tshark(&traced.capture(series), &["-Y", &filter, "-T", "fields", "-e", "frame.number"]).expect("tshark")
        };
        assert_eq!(numbers(again), numbers(ours), "{series}: what leaves h0 a second time");
        assert_eq!(numbers(ours).is_empty(), series == "tcp+dctcp", "{series}: DCTCP loses nothing here");
    }
}

/// Scenario with every operation that applications can post, on a link that loses packets.
const OPERATIONS: &str = r#"
title = "operations"
seeds = 1
stop = { time = "300us" }
[topology.dumbbell]
left = 2
right = 2
host-link = { rate = "40Gbps", delay = "1us" }
bottleneck = { rate = "40Gbps", delay = "1us" }
[workload.verbs]
operations = { write = 1, write-immediate = 1, read = 1, send = 1, send-immediate = 1, fetch-add = 1, compare-swap = 1 }
sizes = { fixed = "3001B" }
pairs = "permutation"
queue-depth = 4
[[loss]]
link = "all"
model = { random = { rate = 0.01 } }
[[series]]
preset = "irn"
[[series]]
preset = "roce"
"#;

#[test]
fn tshark_dissects_rdma_operations() {
    let traced = Traced::run_scenario("operations", OPERATIONS, &["--trace", "all"]);
    let hops = traced.packet_hops();
    for series in ["irn", "roce"] {
        let capture = traced.capture(series);
        let complaints = "_ws.expert.severity >= 0x200000 or _ws.malformed or _ws.short or ip.checksum.status != 1";
        let Some(complaints) = tshark(&capture, &["-Y", complaints]) else {
            eprintln!("skipped: tshark is missing; `cargo xtask setup` installs it");
            return;
        };
        assert!(complaints.is_empty(), "{series}: {complaints:#?}");
        let sending = ["-Y", "frame.packet_flags_direction == 2", "-T", "fields", "-e", "infiniband.bth.opcode"];
        let sent = tshark(&capture, &sending).expect("tshark runs again");
        assert_eq!(sent.len() as u64, hops[series], "{series}: every packet on every hop");
        let mut found: Vec<u8> = sent.iter().map(|opcode| opcode.parse().expect("a number")).collect();
        found.sort_unstable();
        found.dedup();
        // Sends and Writes in four packets with and without an immediate, Reads and their answers, Atomics and theirs.
        let mut expected = vec![0, 1, 2, 3, 6, 7, 8, 9, 12, 13, 14, 15, 17, 18, 19, 20];
        // IRN acknowledges answers to Reads, under an opcode that the standard leaves free (its section 5.2); go-back-N
        // asks again for the rest of an answer, which may be one packet.
        expected.push(if series == "irn" { 24 } else { 16 });
        expected.sort_unstable();
        assert_eq!(found, expected, "{series}");
    }
}

/// Checks tshark's dissection of the packets that MELO and NetRT add to RoCE: NACKs with holes, and messages between
/// ToRs under an opcode of their own.
#[test]
fn tshark_dissects_what_melo_and_netrt_add() {
    let loss = "[[loss]]\nlink = \"tier0-tier1\"\npackets = \"data\"\nmodel = { random = { rate = \"3%\" } }\n";
    let traced =
        Traced::run_scenario("added", &(SCENARIO.to_owned() + loss), &["--trace", "all", "--series", "melo,netrt"]);
    let hops = traced.packet_hops();
    for (series, added) in [("melo", "infiniband.aeth.syndrome.opcode == 3"), ("netrt", "infiniband.bth.opcode == 192")]
    {
        let capture = traced.capture(series);
        // Ethernet, IP with its checksum, UDP and the BTH of every packet; bytes behind an opcode or an AETH that
        // Wireshark does not know are data to it.
        let whole = "eth and ip.checksum.status == 1 and udp.dstport == 4791 and infiniband.bth";
        let complaints = format!("_ws.expert.severity >= 0x600000 or _ws.malformed or _ws.short or not ({whole})");
        let Some(complaints) = tshark(&capture, &["-Y", &complaints]) else {
            eprintln!("skipped: tshark is missing; `cargo xtask setup` installs it");
            return;
        };
        assert!(complaints.is_empty(), "{series}: {complaints:#?}");
        let sending = ["-Y", "frame.packet_flags_direction == 2", "-T", "fields", "-e", "frame.number"];
        let sent = tshark(&capture, &sending).expect("tshark runs again");
        assert_eq!(sent.len() as u64, hops[series], "{series}: every packet on every hop");
        let added = tshark(&capture, &["-Y", added]).expect("tshark runs again");
        assert!(added.len() > 10, "{series}: {} of those", added.len());
    }
}

/// Two stacks of each host, each with an EQIF of its own.
const TUNNELS: &str = r#"
title = "tunnels"
seeds = 1
[topology.leaf-spine]
leaves = 2
spines = 2
hosts-per-leaf = 2
host-link = { rate = "40Gbps", delay = "1us" }
spine-link = { rate = "40Gbps", delay = "1us" }
[[workload.incast]]
receiver = 0
senders = 3
size = "300KB"
[[workload.incast]]
receiver = 0
senders = 3
size = "300KB"
[beside]
workloads = ["incast[0]"]
[[series]]
name = "stacks"
preset = "irn+eqds"
set.'transport.eqds.eqif' = { tcp = {}, rdma = {} }
[[series]]
name = "native"
preset = "eqds"
"#;

/// Checks that the sender ID of headers tells the tunnels between two hosts apart, in both directions.
#[test]
fn tunnels_are_told_apart_by_hosts_and_sender_ids() {
    let arguments = ["--trace", "all", "--trace-payload"];
    let traced = Traced::run_scenario("tunnels", TUNNELS, &arguments);
    for (series, expected) in [("stacks", vec![1, 2]), ("native", vec![0])] {
        let (mut data, mut control) = (BTreeSet::new(), BTreeSet::new());
        for packet in packets(&fs::read(traced.capture(series)).expect("a capture")) {
            let Ok((Frame { content: Content::Eqds(datagram), .. }, _)) = Frame::parse(&packet) else { continue };
            let (source, destination) = (datagram.envelope.source, datagram.envelope.destination);
            match datagram.body {
                Body::Data(header) => data.insert((source, destination, header.sender)),
                Body::Control(header) => control.insert((destination, source, header.sender)),
            };
        }
        assert_eq!(data, control, "{series}: control packets name the tunnel that they are about");
        let hosts: BTreeSet<_> = data.iter().map(|&(source, destination, _)| (source, destination)).collect();
        let tunnels: Vec<_> =
            hosts.iter().flat_map(|&(from, to)| expected.iter().map(move |&sender| (from, to, sender))).collect();
        assert_eq!(data.into_iter().collect::<Vec<_>>(), tunnels, "{series}");
        assert!(hosts.len() >= 3, "{series}: {hosts:?}");
    }
}

#[test]
fn every_frame_is_what_its_headers_say() {
    let traced = Traced::run("frames", &["--trace", "all", "--trace-payload"]);
    for series in SERIES {
        let (mut messages, mut bytes) = (0, 0);
        for packet in packets(&fs::read(traced.capture(series)).expect("a capture")) {
            // Checksum and ICRC are checked in passing.
            let (frame, payload) = Frame::parse(&packet).unwrap_or_else(|error| panic!("{series}: {error}"));
            bytes += payload.len();
            match frame.content {
                Content::Roce(Roce { bth, .. }) => {
                    assert_eq!(bth.pad as usize, payload.len().next_multiple_of(4) - payload.len());
                    messages += usize::from(matches!(bth.opcode, Opcode::WRITE_FIRST | Opcode::WRITE_ONLY));
                }
                Content::Tcp(TcpDatagram { header, .. }) => {
                    messages += usize::from(header.segment.flags.contains(Flags::PSH));
                }
                Content::Pfc(_) | Content::Eqds(_) | Content::Rdma(_) => {}
            }
        }
        assert!(messages > 60 && bytes > 60 * 30_001, "{series}: {messages} messages, {bytes} bytes");
    }
}

#[test]
fn slices_end_and_arrows_have_two_ends() {
    let traced = Traced::run("timeline", &["--trace", "flow=12", "--trace", "port=leaf0:h0"]);
    for series in SERIES {
        let timeline = Timeline::read(&fs::read(traced.timeline(series)).expect("a timeline"));
        timeline.check();
        for track in ["leaf0/to h0 (port 8)/queue", "leaf0/to h0 (port 8)/in"] {
            assert!(timeline.events_on(track) > 100, "{series}: {track}");
        }
        // The flow's packets pass from a host through at least one leaf, and the flow completes.
        let flow = timeline.tracks().find(|track| track.contains("/flow 12 to ")).unwrap().to_owned();
        assert_eq!(timeline.events_on(&flow), 2, "{series}: it begins and ends");
        assert!(timeline.arrows() >= 30, "{series}: an arrow for each of its packets");
    }
}

#[test]
fn what_a_link_loses_does_not_arrive() {
    let scenario = SCENARIO.to_owned() + "[[loss]]\nlink = \"h0\"\nmodel = { random = { rate = \"5%\" } }\n";
    let traced = Traced::run_scenario("lossy", &scenario, &["--trace", "port=h0", "--series", "irn"]);
    let (capture, timeline) = (traced.capture("irn"), traced.timeline("irn"));
    let timeline = Timeline::read(&fs::read(timeline).expect("a timeline"));
    timeline.check();
    let entering = "frame.packet_flags_direction == 1";
    let fields = ["-T", "fields", "-e", "ip.dst_host", "-e", "frame.comment", "-N", "n"];
    let Some(arrived) = tshark(&capture, &[&["-Y", entering][..], &fields].concat()) else {
        eprintln!("skipped: tshark is missing; `cargo xtask setup` installs it");
        return;
    };
    let drops = timeline.names().filter(|name| name.ends_with(" dropped")).count();
    let shown = timeline.events_on("h0/to leaf0 (port 0)/in");
    assert!(drops > 10, "the link loses packets: {drops}");
    assert_eq!(shown, arrived.len(), "both files show what came out of the link, and nothing else");
    assert!(arrived.iter().any(|line| line == "h0\tretransmission"), "hosts have names, and repeats a note");
    let lost = arrived.iter().find(|line| line.contains("dropped: link"));
    assert_eq!(lost, None, "what has been lost has not arrived");
}

#[test]
fn threads_change_no_byte() {
    let traces = ["--trace", "all", "--series", "irn"];
    let alone = Traced::run("alone", &[&traces[..], &["--threads", "1"]].concat());
    let together = Traced::run("together", &[&traces[..], &["--threads", "2"]].concat());
    for file in [Traced::capture, Traced::timeline] {
        let [one, two] = [&alone, &together].map(|traced| fs::read(file(traced, "irn")).expect("a trace"));
        assert!(one == two, "{}", file(&alone, "irn").display());
    }
}

#[test]
fn packets_can_be_cut_short() {
    let traced = Traced::run("short", &["--trace", "flow=1", "--trace-snaplen", "64", "--trace-dir", "short"]);
    let packets = packets(&fs::read(traced.0.join("short/irn-seed1.pcapng")).expect("a capture"));
    assert!(packets.len() > 100 && packets.iter().all(|packet| packet.len() <= 64));
}
