//! Events that simulations write for IRN's hardware modules: the modules' engines must react to them as the hosts did.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use selvedge_formats::irn_trace::{SenderEventKind, receiver_events, sender_events};
use selvedge_scenario::{Changes, Plan};
use selvedge_sim::record::{Event, Recorder, What};
use selvedge_sim::topology::Node;
use selvedge_sim::{Parallel, run_recorded};
use selvedge_telemetry::{FlowRow, Observer, PortRow};
use selvedge_testkit::Scratch;
use selvedge_traces::{EventFiles, EventHosts};
use selvedge_transport::replay::{Hardware, IrnReceiverReplay, IrnSenderReplay, SenderEvent, SenderOutcome};
use selvedge_units::HostId;
use selvedge_wire::{AckKind, Repr};

/// Packets that hosts sent, by host and by queue pair of the data.
#[derive(Default)]
struct Sent {
    /// PSNs, by host and queue pair.
    data: BTreeMap<(u32, u32), Vec<u64>>,
    /// Acknowledgements (NACK or not, expected PSN), by responding host, and by host and queue pair of the data.
    answers: BTreeMap<(u32, u32, u32), Vec<(bool, u32)>>,
}

struct Both<'a> {
    files: &'a mut EventFiles,
    sent: Sent,
}

impl Recorder for Both<'_> {
    fn on_events(&mut self, events: &[Event]) {
        self.files.on_events(events);
        for event in events {
            let (Node::Host(HostId(here)), What::Sent { packet, .. }) = (event.node, &event.what) else { continue };
            match packet.repr {
                Repr::Data(data) if packet.src.0 == here => {
                    self.sent.data.entry((here, packet.qp.0)).or_default().push(data.psn.get().into());
                }
                Repr::Ack(ack) if packet.src.0 == here => {
                    let answer = (ack.kind == AckKind::Nack, ack.expected.get());
                    self.sent.answers.entry((here, packet.dst.0, packet.qp.0)).or_default().push(answer);
                }
                _ => {}
            }
        }
    }
}

struct Nobody;

impl Observer for Nobody {
    fn on_flows(&mut self, _: &[FlowRow]) {}
    fn on_ports(&mut self, _: &[PortRow]) {}
}

/// Runs the first point of `text`, and writes the events of all hosts into `folder`.
fn events_of(text: &str, folder: &Path) -> Sent {
    let plan = Plan::from_text("events.toml", text, Path::new(""), &Changes::default()).expect("the scenario is valid");
    let point = plan.points().next().expect("a point");
    let config = plan.config(point);
    let hosts = EventHosts::new(&["irn"], config.paths.graph()).unwrap();
    let mut files = EventFiles::create(folder, "run", &hosts).expect("writable");
    let mut both = Both { files: &mut files, sent: Sent::default() };
    let parallel = Parallel::on(1);
    run_recorded(&config, plan.library(point), parallel, &mut Nobody, &hosts.focus(), &mut both)
        .expect("the run succeeds");
    let sent = both.sent;
    files.finish().expect("writable");
    sent
}

/// Returns the streams in a host's file by number: host and queue pair of the sender.
fn streams(folder: &Path, host: &str, file: &str) -> BTreeMap<u32, (u32, u32)> {
    let text = fs::read_to_string(folder.join(format!("run-{host}-queue-pairs.csv"))).expect("a file of events");
    let rows = text.lines().skip(1).filter(|row| row.starts_with(file));
    rows.map(|row| {
        let words: Vec<u32> = row.split(',').skip(1).map(|word| word.parse().expect("a number")).collect();
        (words[0], (words[1], words[2]))
    })
    .collect()
}

const LOSSY: &str = r#"
title = "events"
seeds = 1
stop = { flows = 300 }
loss = [{ link = "all", packets = "data", model = { random = { rate = 0.02 } } }]
nic = { mtu = "1000B" }
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.poisson]
load = 0.6
sizes = { fixed = "200KB" }
[[series]]
preset = "irn"
set.'transport.recovery.irn.mode' = "hls"
set.'transport.recovery.irn.bdp-cap' = 111
"#;

/// Number of packets of a flow: 200 KB in packets of 1,000 bytes.
const PACKETS: u64 = 200;
/// Window limit in packets, as in the scenario and in the authors' code.
const CAP: u32 = 111;

#[test]
fn the_hardware_sends_what_senders_in_its_mode_sent() {
    let scratch = Scratch::new("study-events-sender");
    let sent = events_of(LOSSY, scratch.path());
    let (mut packets, mut timeouts, mut nacks, mut again) = (0, 0, 0, 0);
    for host in 0..16 {
        let path = scratch.join(&format!("run-h{host}-sender.txt"));
        let text = fs::read_to_string(&path).expect("a file of events");
        let streams = streams(scratch.path(), &format!("h{host}"), "sender");
        let mut replay = IrnSenderReplay::new(Hardware { cap: CAP, ..Hardware::default() }, PACKETS);
        let mut replayed: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        let mut events = sender_events(text.as_bytes(), "sender.txt");
        for event in events.by_ref() {
            let event = event.expect("a well-formed event");
            let kind = match event.kind {
                SenderEventKind::TxFree => SenderEvent::TxFree,
                SenderEventKind::Ack { cum, sack, nack } => {
                    nacks += u64::from(nack);
                    SenderEvent::ReceiveAck { expected: cum, sack, nack }
                }
                SenderEventKind::Timeout { quick } => {
                    timeouts += 1;
                    SenderEvent::Timeout { quick }
                }
            };
            let line = replay.on_event(event.qp, kind);
            if let SenderOutcome::TxFree(Some(seq)) = line.outcome {
                replayed.entry(event.qp).or_default().push(seq.index());
            }
        }
        assert_eq!(events.warning(), None, "{}", path.display());
        for (number, pair) in streams {
            let (ours, theirs) = (&sent.data[&pair], &replayed[&number]);
            assert_eq!(ours, theirs, "host {host}, stream {number}");
            packets += ours.len();
            again += ours.len() as u64 - ours.iter().collect::<std::collections::BTreeSet<_>>().len() as u64;
        }
    }
    assert!(
        packets > 60_000 && nacks > 1_000 && again > 1_000 && timeouts > 10,
        "{packets} {nacks} {again} {timeouts}"
    );
}

#[test]
fn the_hardware_answers_what_receivers_answered() {
    let scratch = Scratch::new("study-events-receiver");
    let sent = events_of(LOSSY, scratch.path());
    let mut answers = 0;
    for host in 0..16 {
        let path = scratch.join(&format!("run-h{host}-receiver.txt"));
        let text = fs::read_to_string(&path).expect("a file of events");
        let streams = streams(scratch.path(), &format!("h{host}"), "receiver");
        let mut replay = IrnReceiverReplay::default();
        let mut replayed: BTreeMap<u32, Vec<(bool, u32)>> = BTreeMap::new();
        let mut messages = BTreeMap::new();
        let mut events = receiver_events(text.as_bytes(), "receiver.txt");
        for event in events.by_ref() {
            let event = event.expect("a well-formed event");
            let line = replay.on_arrival(event.qp, event.opcode, event.psn);
            replayed.entry(event.qp).or_default().push((line.nack, line.expected.get()));
            messages.insert(event.qp, (line.expected.get(), line.msn));
        }
        assert_eq!(events.warning(), None, "{}", path.display());
        for (number, (from, qp)) in streams {
            let ours = &sent.answers[&(host, from, qp)];
            // The run may end before the last answers leave.
            assert_eq!(ours[..], replayed[&number][..ours.len()], "host {host}, stream {number}");
            answers += ours.len();
            let (expected, msn) = messages[&number];
            assert_eq!(msn, u32::from(u64::from(expected) == PACKETS), "a flow is one message");
        }
    }
    assert!(answers > 60_000, "{answers}");
}

#[test]
fn operations_of_applications_have_their_opcodes_and_complete_messages() {
    let text = r#"
title = "operations"
seeds = 1
stop = { time = "3ms" }
loss = [{ link = "all", model = { random = { rate = 0.01 } } }]
[topology.fat-tree]
k = 4
link = { rate = "40Gbps", delay = "2us" }
[workload.verbs]
operations = { write = 4, write-immediate = 1, read = 4, send = 3, send-immediate = 1, fetch-add = 1, compare-swap = 1 }
sizes = "cdf:irn-heavy-tailed"
pairs = "permutation"
queue-depth = 8
[[series]]
preset = "irn"
"#;
    let scratch = Scratch::new("study-events-verbs");
    events_of(text, scratch.path());
    let mut opcodes: BTreeMap<u8, u64> = BTreeMap::new();
    let (mut messages, mut receives, mut nacks) = (0, 0, 0);
    for host in 0..16 {
        let text = fs::read_to_string(scratch.join(&format!("run-h{host}-receiver.txt"))).expect("a file of events");
        let mut replay = IrnReceiverReplay::default();
        let mut msn = BTreeMap::new();
        for event in receiver_events(text.as_bytes(), "receiver.txt") {
            let event = event.expect("a well-formed event");
            *opcodes.entry(event.opcode).or_default() += 1;
            let line = replay.on_arrival(event.qp, event.opcode, event.psn);
            (receives, nacks) = (receives + line.cqes, nacks + u64::from(line.nack));
            msn.insert(event.qp, line.msn);
        }
        messages += msn.values().map(|&msn| u64::from(msn)).sum::<u64>();
    }
    // SENDs, WRITEs, READ requests and responses, Atomics and their responses.
    for opcode in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20] {
        assert!(opcodes.contains_key(&opcode), "{opcode} of {opcodes:?}");
    }
    assert!(messages > 300 && receives > 100 && nacks > 1_000, "{messages} {receives} {nacks} {opcodes:?}");
}

#[test]
fn a_host_that_does_not_exist_is_named_with_those_that_do() {
    let plan =
        Plan::from_text("events.toml", LOSSY, Path::new(""), &Changes::default()).expect("the scenario is valid");
    let point = plan.points().next().expect("a point");
    let config = plan.config(point);
    let graph = config.paths.graph();
    let error = EventHosts::new(&["irn=h99"], graph).expect_err("16 hosts");
    assert_eq!(error, "there is no host \"h99\": hosts are called \"h0\" to \"h15\"");
    let error = EventHosts::new(&["tcp"], graph).expect_err("no such events");
    assert_eq!(error, "\"tcp\" names no events: say irn (of all hosts) or irn=h3 (of host h3)");
}
