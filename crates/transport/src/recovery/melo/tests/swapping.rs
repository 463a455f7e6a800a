//! Transfers of connections that are swapped between chip and memory, compared with a chip that holds all of them.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_units::{Domain, Duration, Instant, Psn, Rng, Seq, Setting};
use selvedge_wire::{Ack, AckKind, Data, HoleNack};

use crate::dialogue::{FRAME, with};
use crate::recovery::melo::Pools;
use crate::recovery::melo::{MeloConfig, Send};
use crate::recovery::{ParsedAck, Recovery, Scheme};
use crate::recovery::{SharedPart, SharedState};
use crate::{Cx, DataVerdict, Receiver, SchemeParams, Sender};

const FLOWS: usize = 6;
const PACKETS: u64 = 400;

enum Answer {
    Ack(Ack),
    Holes(HoleNack),
}

/// One connection and its network, which drops random packets and delays both directions by some turns.
struct Flow {
    sender: Sender,
    receiver: Receiver,
    data: VecDeque<Option<Data>>,
    answers: VecDeque<Option<Answer>>,
    accepted: u64,
    /// Packets that wait in the reorder buffer.
    buffered: u64,
}

impl Flow {
    fn new(config: MeloConfig) -> Self {
        let mut sender = Sender::new(&with(config), Psn::new(0));
        sender.supply(PACKETS);
        let receiver = Receiver::new(&with(config).recovery, Psn::new(0));
        let idle = |_| None;
        let (data, answers) = ((0..20).map(idle).collect(), (0..20).map(|_| None).collect());
        Self { sender, receiver, data, answers, accepted: 0, buffered: 0 }
    }

    fn turn(&mut self, cx: &mut Cx<'_>, sending: &mut SharedState, receiving: &mut SharedState, rng: &mut Rng) {
        self.sender.handle_timeout(cx, sending);
        let segment = self.sender.poll_transmit(cx, sending, |_| FRAME);
        let is_lost = rng.below(50) == 0;
        self.data.push_back(segment.filter(|_| !is_lost).map(|segment| Data {
            psn: segment.seq.to_psn(Psn::new(0)),
            payload: 1,
            last: false,
            retransmission: segment.retransmission,
            trimmed: false,
        }));
        let answer = self.data.pop_front().flatten().and_then(|data| self.receive(cx, receiving, &data));
        self.answers.push_back(answer);
        match self.answers.pop_front().flatten() {
            Some(Answer::Ack(ack)) => self.sender.handle_ack(cx, sending, &ack, cx.now),
            Some(Answer::Holes(nack)) => self.sender.handle_hole_nack(cx, sending, &nack, cx.now),
            None => {}
        }
    }

    fn receive(&mut self, cx: &mut Cx<'_>, pools: &mut SharedState, data: &Data) -> Option<Answer> {
        let reply = self.receiver.handle_data(cx, pools, data, false);
        self.accepted += u64::from(reply.verdict.accepted().is_some());
        match reply.verdict {
            DataVerdict::Buffered(_) => self.buffered += 1,
            DataVerdict::Released { run, .. } => self.buffered -= u64::from(run),
            _ => {}
        }
        let ack = reply.ack?;
        let holes = if ack.kind == AckKind::Nack { self.receiver.with_holes(&ack) } else { None };
        Some(holes.map_or(Answer::Ack(ack), Answer::Holes))
    }
}

/// Runs all flows to their ends; returns the number of turns and of swaps.
fn run(on_chip: Setting<u32>, pool_bits: u32) -> (u64, u64) {
    let config = MeloConfig {
        pool_bits,
        reorder_buffer: Setting::Value(64),
        rto: Setting::Value(Duration::from_us(500)),
        bdp_cap: Setting::Value(64),
        on_chip,
        ..MeloConfig::default()
    };
    let params = config.params().expect("valid settings");
    let (mut sending, mut receiving) = (params.shared(), params.shared());
    let mut flows: Vec<Flow> = (0..FLOWS).map(|_| Flow::new(config)).collect();
    let mut rngs: Vec<Rng> = (0..FLOWS as u64).map(|flow| Rng::stream(9, Domain::Impairment, flow)).collect();
    let mut turns = 0;
    while flows.iter().any(|flow| !flow.sender.is_done()) {
        turns += 1;
        assert!(turns < 100_000, "stuck");
        let mut cx = Cx::at(Instant::ZERO + Duration::from_us(turns));
        for (flow, rng) in flows.iter_mut().zip(&mut rngs) {
            flow.turn(&mut cx, &mut sending, &mut receiving, rng);
        }
    }
    for flow in &mut flows {
        assert_eq!((flow.accepted, flow.buffered), (PACKETS, 0), "each packet once, none left in the buffer");
        flow.sender.release(&mut sending);
        flow.receiver.release(&mut receiving);
    }
    assert_eq!((sending.melo.sending.in_use(), receiving.melo.receiving.in_use()), (0, 0), "no block is lost");
    (turns, sending.reordering().swaps + receiving.reordering().swaps)
}

#[test]
fn swapping_changes_nothing_but_where_bits_are() {
    let (turns, swaps) = run(Setting::Off, 1024);
    assert_eq!(swaps, 0);
    for connections in [1, 2, 5] {
        let (with, swaps) = run(Setting::Value(connections), 1024);
        assert_eq!(with, turns, "{connections} on the chip");
        assert!(swaps > 100, "{swaps} swaps");
    }
    assert_eq!(run(Setting::Value(FLOWS as u32), 1024), (turns, 0), "all of them fit");
}

#[test]
fn who_finds_no_room_when_it_returns_drops_packets_and_goes_back() {
    for connections in [1, 2, 5] {
        run(Setting::Value(connections), 32);
    }
}

#[test]
fn whoever_finds_no_room_and_goes_back_reports_a_loss() {
    let (on_chip, reorder_buffer) = (Setting::Value(2), Setting::Value(32));
    let config = MeloConfig { pool_bits: 32, on_chip, reorder_buffer, rto: Setting::Off, ..MeloConfig::default() };
    let params = config.params().expect("valid settings");
    let mut pools = params.pools();
    let mut senders = [(); 3].map(|()| Send::new(&params));
    let (seq, cx) = (Seq::new, &mut Cx::at(Instant::ZERO));
    let heard =
        |kind, expected, sack| ParsedAck { kind, expected: seq(expected), sack: seq(sack), rtt: Duration::ZERO };
    let send = |sender: &mut Send, cx: &mut Cx<'_>, pools: &mut Pools, until| {
        (sender.sent().index()..until).for_each(|packet| sender.on_sent(cx, pools, seq(packet)));
    };
    let nack = |sender: &mut Send, cx: &mut Cx<'_>, pools: &mut Pools, from, sack| {
        let holes = [seq(from)..seq(sack), seq(0)..seq(0), seq(0)..seq(0)];
        sender.handle_holes(cx, pools, heard(AckKind::Nack, 0, sack), &holes).loss
    };
    let [first, second, third] = &mut senders;
    // The recovery of packet 0 ends while a hole is open that was reported meanwhile.
    send(first, cx, &mut pools, 4);
    assert!(nack(first, cx, &mut pools, 0, 1));
    send(first, cx, &mut pools, 24);
    assert!(!nack(first, cx, &mut pools, 10, 20), "an episode is reported once");
    assert!(!first.handle_ack(cx, &mut pools, heard(AckKind::Ack, 10, 0)).loss);
    // Others take the blocks of the first one's bits.
    for (sender, sack) in [(&mut *second, 1), (&mut *third, 20)] {
        send(sender, cx, &mut pools, 24);
        assert!(nack(sender, cx, &mut pools, 0, sack));
    }
    assert_eq!((pools.sending.in_use(), pools.forgotten), (4, 0));
    assert!(first.handle_ack(cx, &mut pools, heard(AckKind::Ack, 11, 0)).loss);
    assert_eq!((pools.forgotten, first.in_flight()), (1, 0), "it goes back");
    assert!(!first.handle_ack(cx, &mut pools, heard(AckKind::Ack, 12, 0)).loss);
}

#[test]
fn whoever_closes_while_away_leaves_nothing_behind() {
    let (on_chip, reorder_buffer) = (Setting::Value(1), Setting::Value(64));
    let config = MeloConfig { on_chip, reorder_buffer, rto: Setting::Off, ..MeloConfig::default() };
    let recovery = with(config).recovery;
    let mut pools = recovery.shared();
    let receiver = || Receiver::new(&recovery, Psn::new(0));
    let mut all = [receiver(), receiver(), receiver()];
    for receiver in &mut all {
        let data = Data { psn: Psn::new(20), payload: 1, last: false, retransmission: false, trimmed: false };
        receiver.handle_data(&mut Cx::at(Instant::ZERO), &mut pools, &data, false);
    }
    assert_eq!((pools.melo.receiving.in_use(), pools.reordering().swaps), (3, 2), "one of them is there");
    all.iter_mut().for_each(|receiver| receiver.release(&mut pools));
    assert_eq!(pools.melo.receiving.in_use(), 0);
}
