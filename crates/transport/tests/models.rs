//! Engines compared with simple models, and exposed to hostile peers, under arbitrary operations.

#[allow(dead_code, reason = "TCP has its own tests")]
mod support;

use proptest::prelude::*;
use selvedge_testkit::model;
use selvedge_transport::recovery::go_back_n::{self, Acks, GoBackNConfig, Nacks};
use selvedge_transport::recovery::irn::{self, IrnConfig, IrnParams, PartialAcks, Timeouts};
use selvedge_transport::recovery::{ParsedAck, Recovery, RecoveryReceiver, Scheme};
use selvedge_transport::{Cx, DataVerdict, Next, Segment};
use selvedge_units::{Duration, Instant, Seq, Setting};
use selvedge_wire::AckKind;

/// An operation on an IRN sender.
#[derive(Clone, Debug)]
enum Operation {
    /// The sender sends up to this many packets; those whose bit is set are lost.
    Send(u8, u64),
    /// The acknowledgement in flight with this index (modulo their number) arrives, and stays in flight if true:
    /// duplication and reordering.
    Hear(usize, bool),
    /// An acknowledgement that the receiver never sent arrives; `expected` and `sack` are relative to the sender's.
    Forged(AckKind, u64, u64),
    /// The sender's timer fires.
    Timeout,
}

fn operation() -> impl Strategy<Value = Operation> {
    let kind = prop_oneof![Just(AckKind::Ack), Just(AckKind::Nack)];
    prop_oneof![
        4 => (1u8..20, any::<u64>(), any::<u64>()).prop_map(|(n, a, b)| Operation::Send(n, a & b)),
        8 => (any::<usize>(), any::<bool>()).prop_map(|(which, stays)| Operation::Hear(which, stays)),
        1 => (kind, 0u64..4, 0u64..200).prop_map(|(kind, expected, sack)| Operation::Forged(kind, expected, sack)),
        1 => Just(Operation::Timeout),
    ]
}

fn irn(cap: u32, nack_threshold: u32, partial_acks: PartialAcks) -> IrnParams {
    let bdp_cap = Setting::Value(cap);
    let irn = IrnConfig { timeouts: Timeouts::Off, bdp_cap, nack_threshold, partial_acks, ..IrnConfig::default() };
    irn.params().expect("valid settings")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_irn_sender_does_what_the_definitions_say(
        operations in prop::collection::vec(operation(), 1..120),
        cap in 1u32..150,
        threshold in 1u32..4,
        partial_acks in prop::sample::select(vec![PartialAcks::Latest, PartialAcks::First, PartialAcks::None]),
    ) {
        let supplied = Seq::new(1 << 20);
        let mut cx = Cx::at(Instant::ZERO);
        let mut engine = irn::Send::new(&irn(cap, threshold, partial_acks));
        let mut model = model::IrnSender::new(cap.into(), threshold, partial_acks);
        let mut receiver = model::Receiver::irn(cap.into());
        let mut acks: Vec<ParsedAck> = Vec::new();
        let hear = |heard: ParsedAck, engine: &mut irn::Send, model: &mut model::IrnSender| {
            let sack = (heard.kind == AckKind::Nack).then_some(heard.sack);
            model.handle_ack(heard.expected, sack);
            engine.handle_ack(&mut Cx::at(Instant::ZERO), &mut (), heard);
        };
        for operation in operations {
            match operation {
                Operation::Send(packets, lost) => {
                    for index in 0..packets {
                        let offer = match engine.next(cx.now, supplied, true) {
                            Next::Idle => None,
                            Next::Send(Segment { seq, retransmission }) => Some((seq, retransmission)),
                            Next::Wait(until) => panic!("without a fetch delay, waits until {until:?}"),
                        };
                        assert_eq!(offer, model.offer(supplied));
                        let Some((seq, _)) = offer else { break };
                        engine.on_sent(&mut cx, &mut (), seq);
                        model.on_sent(seq);
                        if lost >> index & 1 == 0 {
                            let answer = receiver.handle_data(seq);
                            let expected = receiver.expected();
                            acks.extend(answer.ack.map(|kind| ParsedAck { kind, expected, sack: seq, rtt: Duration::ZERO }));
                        }
                    }
                }
                Operation::Hear(_, _) if acks.is_empty() => {}
                Operation::Hear(which, stays) => {
                    let which = which % acks.len();
                    let heard = if stays { acks[which] } else { acks.remove(which) };
                    hear(heard, &mut engine, &mut model);
                }
                Operation::Forged(kind, expected, sack) => {
                    let expected = (engine.acked() + expected).min(engine.sent());
                    hear(ParsedAck { kind, expected, sack: engine.acked() + sack, rtt: Duration::ZERO }, &mut engine, &mut model);
                }
                Operation::Timeout => {
                    if engine.sent() > engine.acked() {
                        while !engine.handle_timeout(&mut cx, &mut ()) {}
                        model.handle_timeout();
                    }
                }
            }
            assert_eq!((engine.acked(), engine.sent()), (model.acked, model.next));
            assert!(engine.sent() - engine.acked() <= u64::from(cap));
        }
    }

    #[test]
    fn receivers_do_what_the_definitions_say(
        // Mostly close to what is expected, sometimes far away.
        packets in prop::collection::vec(prop_oneof![9 => 0u64..20, 1 => 0u64..400], 1..400),
        window in 2u32..200,
    ) {
        let nacks_all = GoBackNConfig {
            rto: Setting::Off,
            acks: Acks::PerPacket,
            nack: Nacks::EveryPacket,
            bdp_cap: Setting::Off,
            ..GoBackNConfig::default()
        };
        let mut irn = (irn::Recv::new(&irn(window, 1, PartialAcks::Auto)), model::Receiver::irn(window.into()));
        let mut go_back_n = (go_back_n::Recv::new(&nacks_all.params().expect("valid settings")), model::Receiver::go_back_n());
        let mut cx = Cx::at(Instant::ZERO);
        for distance in packets {
            let near = |expected: Seq| Seq::new((expected.index() + distance).saturating_sub(5));
            let seq = near(irn.0.expected());
            assert_eq!(irn.0.handle_data(&mut cx, &mut (), seq, false), irn.1.handle_data(seq));
            assert_eq!(irn.0.expected(), irn.1.expected());
            let seq = near(go_back_n.0.expected());
            let answer = go_back_n.0.handle_data(&mut cx, &mut (), seq, false);
            assert_eq!(answer, go_back_n.1.handle_data(seq));
            assert!(answer.verdict != DataVerdict::Invalid);
        }
    }

    #[test]
    fn a_sender_withstands_any_peer(script in prop::collection::vec(any::<u8>(), 0..400)) {
        support::torment_sender(&script);
    }

    #[test]
    fn a_receiver_withstands_any_peer(script in prop::collection::vec(any::<u8>(), 0..400)) {
        support::torment_receiver(&script);
    }

    #[test]
    fn a_tunnel_withstands_any_peer(script in prop::collection::vec(any::<u8>(), 0..600)) {
        support::eqds::torment_tunnel(&script);
    }
}

fn replay(target: &str, check: impl Fn(&[u8])) {
    let corpus = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        check(&std::fs::read(entry.expect("readable corpus").path()).expect("readable corpus"));
        replayed += 1;
    }
    assert!(replayed > 0);
}

#[test]
fn the_fuzz_corpora_pass() {
    replay("sender", support::torment_sender);
    replay("receiver", support::torment_receiver);
    replay("tunnel", support::eqds::torment_tunnel);
}
