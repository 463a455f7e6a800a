//! Traces in the format of the IRN authors: their traces for the receiver, this project's for the sender.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use selvedge_transport::replay::{Hardware, IrnReceiverReplay, IrnSenderReplay, SenderEvent};

/// Returns the path of third-party material; prints a note and returns `None` if it does not exist.
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
    let input = fs::read_to_string(folder.join("recvInput-40Gbps-incast.txt")).expect("the trace is readable");
    let output = fs::read_to_string(folder.join("recvOutput-40Gbps-incast.txt")).expect("the trace is readable");
    let mut replay = IrnReceiverReplay::new(Hardware::default());
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
    let mut replay = IrnReceiverReplay::new(Hardware::default());
    for (step, (opcode, psn, answer)) in dialogue.into_iter().enumerate() {
        assert_eq!(replay.on_arrival(7, opcode, psn).to_string(), answer, "step {step}");
    }
    // Another queue pair begins with a fresh context.
    assert_eq!(replay.on_arrival(8, 4, 0).to_string(), "0 1 0 1 1");
}

#[test]
fn psns_wrap() {
    let mut replay = IrnReceiverReplay::new(Hardware::default());
    for psn in 0..1 << 24 {
        replay.on_arrival(0, 4, psn);
    }
    assert_eq!(replay.on_arrival(0, 4, 1).to_string(), "1 0 1 0 0");
    assert_eq!(replay.on_arrival(0, 4, 0).to_string(), "0 2 0 2 2");
}

#[test]
fn the_hand_derived_sender_trace_comes_out_identical() {
    let trace = include_str!("traces/irn-sender.txt");
    let mut replay = IrnSenderReplay::new(Hardware::default(), 2807);
    let mut compared = 0;
    for line in trace.lines().filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty()) {
        let (event, expected) = line.split_once("->").expect("`event -> answer`");
        let event = event.trim();
        let (event, times) = event
            .split_once('x')
            .map_or((event, 1), |(event, times)| (event.trim(), times.trim().parse().expect("a repetition count")));
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

/// A model of the sender's modules that keeps the bitmap like the hardware: a word of 128 bits that is shifted.
#[derive(Default)]
struct Shifted {
    next: i64,
    acked: i64,
    retransmit: i64,
    recover: i64,
    pending: bool,
    in_recovery: bool,
    search: bool,
    sacks: u128,
}

/// Returns `word` shifted right, or shifted left if `by` is negative.
fn right(word: u128, by: i64) -> u128 {
    let by_bits = u32::try_from(by.unsigned_abs()).unwrap_or(u32::MAX);
    let shifted = if by >= 0 { word.checked_shr(by_bits) } else { word.checked_shl(by_bits) };
    shifted.unwrap_or(0)
}

impl Shifted {
    fn on_event(&mut self, event: SenderEvent) -> String {
        let answer = match event {
            SenderEvent::TxFree => self.tx_free(),
            SenderEvent::ReceiveAck { expected, sack, nack } => {
                self.receive_ack(expected.into(), sack.into(), nack);
                "1".to_owned()
            }
            SenderEvent::Timeout { quick } => {
                let extend = quick && self.next - self.acked > 3;
                if !extend {
                    self.mark();
                }
                format!("2 {}", u8::from(extend))
            }
        };
        let flags = [self.pending, self.in_recovery, self.search].map(u8::from);
        let [pending, in_recovery, search] = flags;
        let Self { next, acked, retransmit, recover, .. } = self;
        format!("{answer} {next} {acked} {retransmit} {recover} {pending} {in_recovery} {search}")
    }
    fn mark(&mut self) {
        (self.retransmit, self.pending, self.search) = (self.acked, true, false);
    }
    fn tx_free(&mut self) -> String {
        let mut offered = None;
        if self.pending && self.retransmit >= self.acked {
            offered = Some(self.retransmit);
            self.in_recovery |= self.retransmit == self.acked;
            self.recover = (self.next - 1) & 0xff_ffff;
            self.search = true;
        } else if self.next - self.acked < 111 {
            offered = Some(self.next);
            self.next += 1;
        }
        self.pending = false;
        if std::mem::take(&mut self.search) {
            let from = self.acked.max(self.retransmit + 1);
            let above = right(self.sacks, from - self.acked);
            let run = above.trailing_ones();
            // A hole has a SACK above it.
            if right(above, run.into()) != 0 {
                (self.retransmit, self.pending) = (from + i64::from(run), true);
            }
        }
        match offered {
            Some(seq) if seq < 2807 => format!("0 1 {seq}"),
            beyond => {
                self.next -= i64::from(beyond.is_some());
                "0 0 0".to_owned()
            }
        }
    }
    fn receive_ack(&mut self, expected: i64, sack: i64, nack: bool) {
        self.next = self.next.max(expected);
        let advances = expected > self.acked;
        if advances {
            self.sacks = right(self.sacks, expected - self.acked);
            self.acked = expected;
        }
        if nack {
            self.sacks |= right(1, self.acked - sack);
            if self.in_recovery && self.pending && self.retransmit == sack {
                (self.search, self.pending) = (true, false);
            } else if self.in_recovery && !self.pending && right(self.sacks, sack - self.acked + 1) == 0 {
                self.search = true;
            }
        }
        if expected > self.recover {
            (self.in_recovery, self.search, self.pending) = (false, false, false);
        }
        let partial = self.retransmit < self.acked || self.retransmit == self.acked && self.pending;
        if advances && self.in_recovery && partial || !advances && !self.in_recovery && nack && self.acked < self.next {
            self.mark();
        }
    }
}

/// Generates events around a flow's 2807 packets; `expected` and `sack` are mostly close to one another.
fn sender_event() -> impl Strategy<Value = SenderEvent> {
    let ack = (0u32..300, 0u32..160, any::<bool>()).prop_map(|(expected, above, nack)| SenderEvent::ReceiveAck {
        expected,
        sack: (expected + above).saturating_sub(30),
        nack,
    });
    let beyond = (2700u32..2900, 2700u32..2900, any::<bool>())
        .prop_map(|(expected, sack, nack)| SenderEvent::ReceiveAck { expected, sack, nack });
    prop_oneof![
        10 => Just(SenderEvent::TxFree),
        10 => ack,
        1 => beyond,
        1 => any::<bool>().prop_map(|quick| SenderEvent::Timeout { quick }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_sender_does_what_shifted_words_would(events in prop::collection::vec(sender_event(), 1..300)) {
        let (mut replay, mut shifted) = (IrnSenderReplay::new(Hardware::default(), 2807), Shifted::default());
        for event in events {
            assert_eq!(replay.on_event(0, event).to_string(), shifted.on_event(event), "{event:?}");
        }
    }

    #[test]
    fn no_trace_makes_a_replay_panic(
        acks in prop::collection::vec(any::<(u32, u32, bool, u32, u8)>(), 1..100),
    ) {
        let (mut sender, mut receiver) = (IrnSenderReplay::new(Hardware::default(), 10), IrnReceiverReplay::new(Hardware::default()));
        for (expected, sack, nack, psn, opcode) in acks {
            sender.on_event(0, SenderEvent::ReceiveAck { expected, sack, nack });
            sender.on_event(0, SenderEvent::TxFree);
            sender.on_event(0, SenderEvent::Timeout { quick: nack });
            receiver.on_arrival(0, opcode, psn);
        }
    }
}
