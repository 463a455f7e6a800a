//! Scripted dialogues with both ends of a flow.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use selvedge_units::{Duration, Instant, Psn, Rng, Seq, Setting};
use selvedge_wire::{Ack, AckKind, Data};

use super::{NdpConfig, NdpReceiver, NdpSegment, NdpSender, PullPacer};
use crate::endpoint::EndpointSettings;
use crate::fabric::Fabric;
use crate::role::{Cx, DataVerdict, HoldReason};

const FIRST: Psn = Psn::new(Psn::MODULUS - 3); // wraps soon

fn config(window: u32) -> NdpConfig {
    NdpConfig {
        initial_window: Setting::Value(window),
        pull_interval: Setting::Value(Duration::from_us(1)),
        rto: Setting::Value(Duration::from_us(100)),
        ..NdpConfig::default()
    }
}

fn at(us: u64) -> Instant {
    Instant::ZERO + Duration::from_us(us)
}

fn sends(sender: &mut NdpSender, now: Instant) -> Vec<(u64, bool)> {
    let mut cx = Cx::at(now);
    let all = core::iter::from_fn(|| sender.poll_transmit(&mut cx));
    all.map(|segment| (segment.seq.index(), segment.retransmission)).collect()
}

fn ack(kind: AckKind, expected: u64, seq: u64) -> Ack {
    let psn = |index| Seq::new(index).to_psn(FIRST);
    Ack { kind, ecn_echo: false, expected: psn(expected), sack: psn(seq), msn: 0 }
}

#[test]
fn the_first_window_goes_unasked_and_then_one_packet_per_pull() {
    let mut sender = NdpSender::new(&config(3).params().expect("valid settings"), FIRST, 10, 1);
    assert_eq!(sends(&mut sender, at(0)), [(0, false), (1, false), (2, false)]);
    assert_eq!(sender.hold(), HoldReason::Window);
    sender.handle_ack(&mut Cx::at(at(5)), &ack(AckKind::Ack, 1, 0));
    assert_eq!(sends(&mut sender, at(5)), [], "an acknowledgement alone allows nothing");
    sender.handle_pull(&Cx::at(at(6)), 1, Seq::new(1).to_psn(FIRST));
    assert_eq!(sends(&mut sender, at(6)), [(3, false)]);
    sender.handle_pull(&Cx::at(at(6)), 4, Seq::new(1).to_psn(FIRST));
    assert_eq!(sends(&mut sender, at(7)), [(4, false), (5, false), (6, false)], "it stands for those that were lost");
    sender.handle_pull(&Cx::at(at(6)), 3, Seq::new(1).to_psn(FIRST));
    assert_eq!(sends(&mut sender, at(8)), [], "and those come late for nothing");
}

/// A flow shorter than its first window, to a receiver with a slower link.
#[test]
fn what_was_trimmed_waits_for_a_pull_though_the_first_window_is_not_spent() {
    let mut sender = NdpSender::new(&config(10).params().expect("valid settings"), FIRST, 3, 1);
    assert_eq!(sends(&mut sender, at(0)).len(), 3);
    sender.handle_ack(&mut Cx::at(at(5)), &ack(AckKind::Nack, 1, 1));
    sender.handle_ack(&mut Cx::at(at(5)), &ack(AckKind::Nack, 1, 2));
    assert_eq!((sends(&mut sender, at(5)), sender.is_ready()), (Vec::new(), false));
    sender.handle_pull(&Cx::at(at(6)), 1, Seq::new(1).to_psn(FIRST));
    assert_eq!(sends(&mut sender, at(6)), [(1, true)]);
    sender.handle_pull(&Cx::at(at(7)), 2, Seq::new(1).to_psn(FIRST));
    assert_eq!(sends(&mut sender, at(7)), [(2, true)]);
}

#[test]
fn a_timeout_that_never_comes_can_be_counted() {
    let mut sender = NdpSender::new(
        &NdpConfig { rto: Setting::Value(Duration::MAX), ..config(3) }.params().expect("valid settings"),
        FIRST,
        3,
        1,
    );
    sends(&mut sender, at(7));
    assert_eq!(sender.poll_timeout(), None);
}

#[test]
fn first_windows_are_no_wider_than_receivers_tell_packets_apart() {
    let key = |window| {
        let mut config = config(window);
        config.resolve(&Fabric::IRN_PAPER);
        config.check().map_err(|error| error.key)
    };
    assert_eq!([1, 1 << 22].map(key), [Ok(()); 2]);
    assert_eq!([0, (1 << 22) + 1].map(key), [Err("initial-window"); 2]);
}

#[test]
fn what_was_trimmed_goes_before_what_is_new() {
    let mut sender = NdpSender::new(&config(4).params().expect("valid settings"), FIRST, 10, 1);
    sends(&mut sender, at(0));
    for seq in [2, 1] {
        sender.handle_ack(&mut Cx::at(at(5)), &ack(AckKind::Nack, 1, seq));
    }
    sender.handle_ack(&mut Cx::at(at(5)), &ack(AckKind::Nack, 1, 2));
    assert_eq!(sends(&mut sender, at(5)), [], "it waits for a pull, too");
    sender.handle_pull(&Cx::at(at(6)), 3, Seq::new(1).to_psn(FIRST));
    assert_eq!(sends(&mut sender, at(6)), [(2, true), (1, true), (4, false)]);
}

#[test]
fn what_nothing_is_heard_of_is_sent_again_after_the_timeout() {
    let mut sender = NdpSender::new(&config(3).params().expect("valid settings"), FIRST, 3, 1);
    sends(&mut sender, at(0));
    sender.handle_ack(&mut Cx::at(at(5)), &ack(AckKind::Ack, 0, 1));
    assert_eq!(sender.poll_timeout(), Some(at(100)));
    sender.handle_timeout(&mut Cx::at(at(99)));
    assert_eq!(sends(&mut sender, at(99)), []);
    sender.handle_timeout(&mut Cx::at(at(100)));
    assert_eq!(sends(&mut sender, at(100)), [(0, true), (2, true)]);
    assert_eq!((sender.timeouts(), sender.poll_timeout()), (1, Some(at(200))));
    for seq in [0, 2] {
        sender.handle_ack(&mut Cx::at(at(105)), &ack(AckKind::Ack, 3, seq));
    }
    assert!(sender.is_done());
}

#[test]
fn one_packet_asks_for_pulls_that_were_lost() {
    let mut sender = NdpSender::new(&config(1).params().expect("valid settings"), FIRST, 3, 1);
    sends(&mut sender, at(0));
    sender.handle_ack(&mut Cx::at(at(40)), &ack(AckKind::Ack, 1, 0));
    sender.handle_timeout(&mut Cx::at(at(100)));
    assert_eq!((sends(&mut sender, at(100)), sender.poll_timeout()), (Vec::new(), Some(at(140))));
    sender.handle_timeout(&mut Cx::at(at(140)));
    assert_eq!(sends(&mut sender, at(140)), [(1, false)]);
}

#[test]
fn answers_that_make_no_sense_change_nothing() {
    let mut sender = NdpSender::new(&config(2).params().expect("valid settings"), FIRST, 9, 1);
    sends(&mut sender, at(0));
    for (expected, seq) in [(3, 0), (0, 2), (5, 7)] {
        sender.handle_ack(&mut Cx::at(at(1)), &ack(AckKind::Nack, expected, seq));
    }
    sender.handle_pull(&Cx::at(at(6)), 1, Seq::new(7).to_psn(FIRST));
    assert_eq!(sends(&mut sender, at(1)), [(2, false)]);
}

#[test]
fn receivers_refuse_headers_and_keep_what_comes_early() {
    let mut receiver = NdpReceiver::new(FIRST);
    let mut take = |seq: u64, trimmed| {
        let psn = Seq::new(seq).to_psn(FIRST);
        let data = Data { psn, payload: 1, last: false, retransmission: false, trimmed };
        let reply = receiver.handle_data(&data, false);
        let ack = reply.ack.expect("an answer to each");
        (reply.verdict, ack.kind, ack.expected.near(Seq::new(0), FIRST).expect("a PSN near the first").index())
    };
    let accepted = |seq| DataVerdict::Accepted(Seq::new(seq));
    assert_eq!(take(0, false), (accepted(0), AckKind::Ack, 1));
    assert_eq!(take(1, true), (DataVerdict::Refused, AckKind::Nack, 1));
    assert_eq!(take(3, false), (accepted(3), AckKind::Ack, 1));
    assert_eq!(take(3, false), (DataVerdict::Duplicate, AckKind::Ack, 1));
    assert_eq!(take(1, false), (accepted(1), AckKind::Ack, 2));
    assert_eq!(take(2, false), (accepted(2), AckKind::Ack, 4));
    assert_eq!(take(0, false), (DataVerdict::Duplicate, AckKind::Ack, 4));
}

#[test]
fn flows_of_a_host_are_pulled_in_turn_at_one_pace() {
    let mut pacer = PullPacer::new(&config(1).params().expect("valid settings"));
    for flow in [7, 7, 7, 2, 7, 4] {
        pacer.owe(flow);
    }
    let mut pulls = Vec::new();
    while let Some(due) = pacer.poll_timeout() {
        assert_eq!(due, at(pulls.len() as u64));
        pulls.push(pacer.poll(due).expect("a pull is due"));
        assert_eq!(pacer.poll(due), None, "one at a time");
        if pulls.len() == 4 {
            pacer.forget(7);
            pacer.owe(2);
        }
    }
    assert_eq!(pulls, [7, 2, 4, 7, 2]);
    pacer.owe(7);
    assert_eq!(pacer.poll(at(50)), Some(7), "the same number may be another flow's");
}

/// Transfers one flow over a link that trims, loses, duplicates and reorders, until it is done.
fn transfer(seed: u64, total: u64) {
    let mut rng = Rng::stream(seed, selvedge_units::Domain::Impairment, 0);
    let (mut sender, mut receiver) =
        (NdpSender::new(&config(8).params().expect("valid settings"), FIRST, total, 3), NdpReceiver::new(FIRST));
    let mut pacer = PullPacer::new(&config(8).params().expect("valid settings"));
    let mut there: VecDeque<Data> = VecDeque::new();
    let mut back: VecDeque<Ack> = VecDeque::new();
    let mut pulls: VecDeque<(u32, Psn)> = VecDeque::new();
    let (mut now, mut missing, mut steps) = (at(0), total, 0);
    while !sender.is_done() {
        steps += 1;
        assert!(steps < 100_000, "seed {seed}: it ends");
        now += Duration::from_us(1);
        let mut cx = Cx::at(now);
        sender.handle_timeout(&mut cx);
        while let Some(NdpSegment { seq, retransmission, .. }) = sender.poll_transmit(&mut cx) {
            let trimmed = rng.below(5) == 0;
            let data = Data { psn: seq.to_psn(FIRST), payload: 1, last: false, retransmission, trimmed };
            match rng.below(12) {
                0 => {}
                1 => there.extend([data, data]),
                2 => there.push_front(data),
                _ => there.push_back(data),
            }
        }
        if let Some(data) = there.pop_front() {
            let reply = receiver.handle_data(&data, false);
            missing -= u64::from(matches!(reply.verdict, DataVerdict::Accepted(_)));
            if rng.below(12) > 0 {
                back.extend(reply.ack);
            }
            if missing > 0 {
                pacer.owe(0);
            }
        }
        if pacer.poll(now).is_some() && rng.below(6) > 0 {
            pulls.push_back((receiver.pull(), receiver.expected()));
        }
        if let Some(ack) = back.pop_front() {
            sender.handle_ack(&mut cx, &ack);
        }
        if let Some((number, expected)) = pulls.pop_front() {
            sender.handle_pull(&cx, number, expected);
        }
    }
    assert_eq!(missing, 0, "seed {seed}: what is acknowledged has arrived");
}

#[test]
fn every_flow_ends_whatever_the_network_does() {
    (0..200).for_each(|seed| transfer(seed, 1 + seed * 3));
}
