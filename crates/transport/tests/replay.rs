//! Traces in the form of the IRN authors: theirs for the receiver, our own for the sender.

use std::fs;
use std::path::PathBuf;

use selvedge_transport::replay::{IrnReceiverReplay, IrnSenderReplay, SenderEvent};

/// Where material that is not ours lies; `None`, with a word to the reader, where it does not.
fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SELVEDGE_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let path = root.join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: {} does not exist; set SELVEDGE_SHARED to the folder that holds it", path.display());
    None
}

fn numbers(line: &str) -> Vec<u32> {
    line.split_whitespace().map(|word| word.parse().expect("traces hold numbers")).collect()
}

#[test]
fn the_authors_receiver_trace_comes_out_identical() {
    let Some(folder) = shared("traces/irn-receiver") else { return };
    let input = fs::read_to_string(folder.join("recvInput-40Gbps-incast.txt")).expect("readable");
    let output = fs::read_to_string(folder.join("recvOutput-40Gbps-incast.txt")).expect("readable");
    let mut replay = IrnReceiverReplay::new();
    let mut compared = 0;
    for (event, expected) in input.lines().skip(1).zip(output.lines()) {
        let [qp, opcode, psn] = numbers(event)[..] else { panic!("three columns, not {event:?}") };
        let line = replay.on_arrival(qp, opcode as u8, psn);
        compared += 1;
        assert_eq!(line.to_string(), expected.trim_end(), "event {compared}: {event}");
    }
    assert_eq!(compared, 140_361);
}

#[test]
fn completions_wait_for_the_packets_before_them() {
    // Opcode and PSN, and the answer: nack, expected, sack, MSN, CQEs.
    let dialogue = [
        (1, 0, "0 1 0 0 0"),         // SEND middle
        (2, 2, "1 1 2 0 0"),         // SEND last, early
        (8, 4, "1 1 4 0 0"),         // WRITE last, early
        (8, 4, "1 1 4 0 0"),         // again: another NACK, nothing counted twice
        (1, 1, "0 3 1 1 1"),         // fills the first gap: the SEND completes
        (1, 1, "0 3 1 1 0"),         // old: a plain ACK
        (12, 3, "0 5 3 3 0"),        // READ request, and the WRITE behind it: messages, but no CQE
        (19, 5, "0 6 5 4 0"),        // an atomic counts as a READ
        (9, 6, "0 7 6 5 1"),         // WRITE last with immediate
        (4, 7, "0 8 7 6 1"),         // SEND only
        (4, 8 + 128, "1 8 136 6 0"), // beyond the bitmap: NACKed, not recorded
        (6, 8, "0 9 8 6 0"),         // WRITE first
    ];
    let mut replay = IrnReceiverReplay::new();
    for (step, (opcode, psn, answer)) in dialogue.into_iter().enumerate() {
        assert_eq!(replay.on_arrival(7, opcode, psn).to_string(), answer, "step {step}");
    }
    // Another queue pair begins afresh.
    assert_eq!(replay.on_arrival(8, 4, 0).to_string(), "0 1 0 1 1");
}

#[test]
fn psns_wrap() {
    let mut replay = IrnReceiverReplay::new();
    for psn in 0..1 << 24 {
        replay.on_arrival(0, 4, psn);
    }
    assert_eq!(replay.on_arrival(0, 4, 1).to_string(), "1 0 1 0 0");
    assert_eq!(replay.on_arrival(0, 4, 0).to_string(), "0 2 0 2 2");
}

#[test]
fn the_hand_derived_sender_trace_comes_out_identical() {
    let trace = include_str!("traces/irn-sender.txt");
    let mut replay = IrnSenderReplay::new(2807);
    let mut compared = 0;
    for line in trace.lines().filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty()) {
        let (event, expected) = line.split_once("->").expect("`event -> answer`");
        let event = event.trim();
        let (event, times) = event
            .split_once('x')
            .map_or((event, 1), |(event, times)| (event.trim(), times.trim().parse().expect("a number of times")));
        let fields = numbers(event);
        let parsed = match fields[1..] {
            [0] => SenderEvent::TxFree,
            [1, expected, sack, nack] => SenderEvent::ReceiveAck { expected, sack, nack: nack == 1 },
            [2, quick] => SenderEvent::Timeout { quick: quick == 1 },
            _ => panic!("not an event: {event:?}"),
        };
        let mut answer = String::new();
        for _ in 0..times {
            answer = replay.on_event(fields[0], parsed).to_string();
        }
        // Columns are aligned, and comments may follow.
        let expected: Vec<_> = expected.split('#').next().unwrap_or_default().split_whitespace().collect();
        assert_eq!(answer, expected.join(" "), "{line}");
        compared += 1;
    }
    assert!(compared > 50, "the trace was read: {compared} lines");
}
