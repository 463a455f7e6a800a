use proptest::prelude::*;
use selvedge_wire::eqds::v1::{Common, Data, MAC, Probe, Report};

use super::*;
use crate::epoch::{EpochError, Epochs};
use crate::keys::{Pair, Secret, Suite};
use crate::outbound::Outbound;

const SECOND: u64 = 1_000_000_000;

fn source() -> IpAddr {
    "192.0.2.1".parse().unwrap()
}

fn pair(own: &str, peer: &str) -> Pair {
    Pair::from_shared(&Secret::new([1; 32]), own, peer, Suite::default()).unwrap()
}

fn epochs(clock: u64) -> Epochs {
    let mut epochs = Epochs::new(None, 1_704_067_200 + clock);
    epochs.stored(epochs.reserve() + 100_000);
    epochs
}

/// One end of a pair, "a" or "b".
struct End {
    gate: Gate,
    out: Outbound,
    epochs: Epochs,
}

impl End {
    fn new(own: &str, peer: &str, clock: u64, floor: Floor, sealed: bool) -> Self {
        let (pair, mut epochs) = (pair(own, peer), epochs(clock));
        let mut gate = Gate::new();
        assert_eq!(gate.add(pair.inbound(), sealed, floor), 0);
        let out = Outbound::new(pair.outbound(), sealed, &mut epochs).unwrap();
        Self { gate, out, epochs }
    }
    fn write(&mut self, packet: &Packet, payload: &[u8]) -> Vec<u8> {
        let mut buffer = [0; 2_000];
        self.out.write(packet, [payload, &[]], &mut self.epochs, &mut buffer).unwrap().to_vec()
    }
    fn obey(&mut self, notice: Notice) {
        let obeyed = match notice {
            Notice::Exceed(floor) => self.out.exceed(floor, &mut self.epochs),
            Notice::Answer(challenge) => self.out.answer(challenge, &mut self.epochs),
        };
        if obeyed == Err(EpochError::Unreserved) {
            self.epochs.stored(self.epochs.reserve());
            match notice {
                Notice::Exceed(floor) => self.out.exceed(floor, &mut self.epochs).unwrap(),
                Notice::Answer(challenge) => self.out.answer(challenge, &mut self.epochs).unwrap(),
            }
        }
    }
    /// Handles a packet; returns the bytes of the reset that answers it, and whether it was accepted.
    fn hear(&mut self, bytes: &[u8]) -> (bool, Option<Vec<u8>>) {
        let mut bytes = bytes.to_vec();
        let (is_accepted, answer, notice) = match self.gate.handle(SECOND, source(), &mut bytes) {
            Ok(accepted) => {
                let syn = accepted.new_epoch && accepted.packet.common.flags.any(Flags::SYN);
                let notice = Notice::of(&accepted.packet);
                if syn {
                    self.out.renew(&mut self.epochs).unwrap();
                }
                (true, None, notice)
            }
            Err(Refused::Stale { answer, notice, seq, .. }) => (false, answer.map(|answer| answer.reset(seq)), notice),
            Err(other) => panic!("{other:?}"),
        };
        if let Some(notice) = notice {
            self.obey(notice);
        }
        let reset = answer.map(|(body, options)| self.write(&Packet { common: Common::default(), body, options }, &[]));
        (is_accepted, reset)
    }
}

fn data(seq: u32) -> Packet {
    let common = Common { flags: Flags::SYN, ..Common::default() };
    let data = Data { seq, ..Data::default() };
    Packet { common, body: Body::Data(data), options: Options::NONE }
}

fn request(seq: u32) -> Packet {
    let Packet { common, body: Body::Data(data), options } = data(seq) else { panic!("data") };
    Packet { common, body: Body::Request(data), options }
}

fn report() -> Packet {
    let common = Common { flags: Flags::SYN.with(Flags::ACK), ..Common::default() };
    Packet { common, body: Body::Report(Report::default()), options: Options::NONE }
}

fn ends(sealed: bool) -> (End, End) {
    (End::new("a", "b", 0, Floor::Known(0), sealed), End::new("b", "a", 0, Floor::Known(0), sealed))
}

#[test]
fn the_first_packet_is_accepted_without_a_handshake() {
    for sealed in [false, true] {
        let (mut a, mut b) = ends(sealed);
        let mut bytes = a.write(&data(1 << 10), b"hello");
        let accepted = b.gate.handle(0, source(), &mut bytes).unwrap();
        assert_eq!((accepted.payload, accepted.sent_payload), (Some(&b"hello"[..]), 5));
        assert!(accepted.new_epoch && accepted.packet.seq() == Some(1 << 10));
        let mut bytes = a.write(&data(1 << 10), b"again");
        assert!(!b.gate.handle(0, source(), &mut bytes).unwrap().new_epoch);
        assert_eq!(*b.gate.counters(), Counters { accepted: 2, ..Counters::default() });
    }
}

#[test]
fn a_trimmed_packet_is_a_header_that_can_be_trusted() {
    for sealed in [false, true] {
        for mark in [0, Flags::TRIMMED.bits()] {
            let (mut a, mut b) = ends(sealed);
            let mut bytes = a.write(&data(1 << 10), b"hello");
            bytes.truncate(data(0).header() + 2);
            bytes[1] |= mark;
            let accepted = b.gate.handle(0, source(), &mut bytes).unwrap();
            assert_eq!((accepted.payload, accepted.sent_payload), (None, 5));
            assert_eq!(*b.gate.counters(), Counters { accepted: 1, trimmed: 1, ..Counters::default() });
        }
    }
}

#[test]
fn a_damaged_payload_counts_like_a_trimmed_one() {
    let (mut a, mut b) = ends(true);
    let mut bytes = a.write(&data(1 << 10), b"hello");
    *bytes.last_mut().unwrap() ^= 1;
    assert_eq!(b.gate.handle(0, source(), &mut bytes).unwrap().payload, None);
    assert_eq!(*b.gate.counters(), Counters { accepted: 1, damaged: 1, ..Counters::default() });
}

#[test]
fn any_change_to_a_header_is_noticed_and_changes_nothing() {
    let (mut a, mut b) = ends(true);
    let good = a.write(&data(1 << 10), b"hello");
    for bit in 0..8 * data(0).header() {
        if bit == 8 + 7 {
            continue; // The mark of trimming.
        }
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(b.gate.handle(SECOND, source(), &mut bytes).is_err(), "bit {bit}");
    }
    let before = *b.gate.counters();
    assert_eq!(before.accepted + before.stale + before.replayed, 0, "{before:?}");
    assert!(before.forged > 100 && before.strangers == 32 && before.other_version == 4, "{before:?}");
    assert!(b.gate.handle(SECOND, source(), &mut good.clone()).unwrap().new_epoch);
}

#[test]
fn replays_are_refused() {
    let (mut a, mut b) = ends(false);
    let all: Vec<Vec<u8>> = (0..50).map(|n| a.write(&data(n), b"hello")).collect();
    for bytes in all.iter().rev() {
        assert!(b.gate.handle(0, source(), &mut bytes.clone()).is_ok());
    }
    for bytes in &all {
        assert_eq!(b.gate.handle(0, source(), &mut bytes.clone()), Err(Refused::Replayed));
    }
}

#[test]
fn a_packet_sent_back_to_its_sender_is_a_stranger() {
    let (mut a, _) = ends(false);
    let mut bytes = a.write(&data(1), b"hello");
    assert_eq!(a.gate.handle(0, source(), &mut bytes), Err(Refused::Stranger));
}

#[test]
fn numbers_do_not_repeat_over_epochs_that_end_by_themselves() {
    let (mut a, mut b) = ends(true);
    let first = a.out.epoch();
    let early = a.write(&data(1), b"early");
    assert!(b.hear(&early).0);
    let late = a.write(&data(2), b"late");
    a.out.renew(&mut a.epochs).unwrap();
    assert!(a.out.epoch() > first && a.out.next_number() == 0);
    let next = a.write(&data(3), b"next");
    assert!(b.hear(&next).0);
    assert!(b.hear(&late).0, "the last packets of an epoch may arrive after the first of the next");
    assert!(matches!(b.gate.handle(0, source(), &mut early.clone()), Err(Refused::Replayed)));
    a.out.renew(&mut a.epochs).unwrap();
    assert!(b.hear(&a.write(&data(4), b"third")).0);
    assert!(!b.hear(&early).0, "two epochs ago");
}

#[test]
fn syns_of_old_epochs_are_told_the_floor_and_are_no_replays() {
    let (mut old, mut b) = ends(false);
    let recorded: Vec<Vec<u8>> = (0..3).map(|n| old.write(&data(n << 10), b"hello")).collect();
    assert!(recorded.iter().all(|bytes| b.hear(bytes).0));
    // "b" restarts with its record of epochs; packets recorded before are of no use.
    let floor = Floor::Known(old.out.epoch());
    let mut b = End::new("b", "a", 10, floor, false);
    for bytes in &recorded {
        let refused = b.gate.handle(0, source(), &mut bytes.clone()).unwrap_err();
        let Refused::Stale { peer: 0, answer, notice: None, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(answer, Some(Notice::Exceed(old.out.epoch())));
    }
    // The real "a" is told once, and goes on.
    let (_, reset) = b.hear(&old.write(&data(5), b"hello"));
    assert!(old.hear(&reset.unwrap()).0);
    assert!(b.hear(&old.write(&data(6), b"hello")).0);
}

#[test]
fn a_receiver_that_lost_its_record_asks_for_proof() {
    let (mut a, mut b) = ends(false);
    let recorded = a.write(&data(1), b"hello");
    assert!(b.hear(&recorded).0);
    let mut b = End::new("b", "a", 10, Floor::Unknown, false);
    let (accepted, reset) = b.hear(&recorded);
    assert!(!accepted);
    let reset = reset.expect("a challenge");
    let challenged = Packet::parse(&reset).unwrap().packet;
    assert!(a.hear(&reset).0);
    assert!(!b.hear(&a.write(&data(2), b"hello")).0, "data have no room for the answer");
    assert!(b.hear(&a.write(&request(2), &[])).0, "the answer rides on the next request");
    assert!(!b.hear(&recorded).0, "a recorded packet proves nothing, although its sender has");
    let epoch = a.out.epoch();
    a.obey(Notice::of(&challenged).unwrap());
    assert_eq!(a.out.epoch(), epoch, "one challenge takes one epoch, however often it comes");
    // An answer is good for one run of one daemon.
    let answered = a.write(&request(3), &[]);
    let mut b = End::new("b", "a", 20, Floor::Unknown, false);
    assert!(!b.hear(&answered).0);
}

#[test]
fn two_ends_in_any_state_of_memory_come_to_talk() {
    let floors = [Floor::Known(0), Floor::Known(u32::MAX >> 12), Floor::Unknown];
    let clocks = [0, 10, 2_000_000];
    for (floor_a, floor_b) in floors.into_iter().flat_map(|a| floors.map(|b| (a, b))) {
        for (clock_a, clock_b) in clocks.into_iter().flat_map(|a| clocks.map(|b| (a, b))) {
            let mut a = End::new("a", "b", clock_a, floor_a, true);
            let mut b = End::new("b", "a", clock_b, floor_b, true);
            let mut round_trips = 0;
            loop {
                round_trips += 1;
                assert!(round_trips < 6, "{floor_a:?} {floor_b:?} {clock_a} {clock_b}");
                let bytes = a.write(&request(round_trips << 10), &[]);
                let (accepted, reset) = b.hear(&bytes);
                let answer = reset.unwrap_or_else(|| b.write(&report(), &[]));
                let (is_heard, reset) = a.hear(&answer);
                if let Some(reset) = reset {
                    b.hear(&reset);
                }
                if accepted && is_heard {
                    break;
                }
            }
        }
    }
}

#[test]
fn resets_are_few_and_answer_nobody_else() {
    let (mut a, mut b) = (End::new("a", "b", 0, Floor::Known(0), false), End::new("b", "a", 0, Floor::Unknown, false));
    let answers = (0..1_000).filter(|n| {
        let mut bytes = a.write(&data(*n), b"hello");
        matches!(b.gate.handle(0, source(), &mut bytes), Err(Refused::Stale { answer: Some(_), .. }))
    });
    assert_eq!(answers.count(), Gate::RESETS as usize / 10);
    let mut other = Outbound::new(pair("c", "b").outbound(), false, &mut epochs(0)).unwrap();
    let mut buffer = [0; 100];
    let length = other.write(&data(1), [b"x", &[]], &mut epochs(0), &mut buffer).unwrap().len();
    assert_eq!(b.gate.handle(0, source(), &mut buffer[..length]), Err(Refused::Stranger));
}

#[test]
fn floods_of_strange_epochs_are_limited_and_leave_known_ones_alone() {
    let (mut a, mut b) = ends(false);
    assert!(b.hear(&a.write(&data(1), b"hello")).0);
    let mut forged = a.write(&data(2), b"hello");
    for epoch in 0..10_000u32 {
        forged[8..12].copy_from_slice(&(epoch << 8).to_be_bytes());
        assert!(b.gate.handle(SECOND, source(), &mut forged.clone()).is_err());
    }
    let counters = *b.gate.counters();
    assert_eq!(counters.forged, u64::from(Gate::ATTEMPTS) / 10);
    assert_eq!(counters.forged + counters.limited, 10_000);
    assert!(b.gate.handle(SECOND, source(), &mut a.write(&data(3), b"hello")).is_ok());
}

#[test]
fn a_payload_in_clear_is_refused_where_it_should_be_sealed() {
    let mut a = End::new("a", "b", 0, Floor::Known(0), false);
    let mut b = End::new("b", "a", 0, Floor::Known(0), true);
    let mut bytes = a.write(&data(1), b"hello");
    assert_eq!(b.gate.handle(0, source(), &mut bytes), Err(Refused::Unsealed));
    let probe = Packet { common: Common::default(), body: Body::Probe(Probe::default()), options: Options::NONE };
    assert!(b.gate.handle(0, source(), &mut a.write(&probe, &[])).is_ok(), "nothing to seal");
}

#[test]
fn peers_whose_key_ids_are_equal_by_chance_are_told_apart() {
    let (mut a, mut b) = ends(false);
    let bytes = a.write(&data(1), b"hello");
    let id = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
    let mut gate = Gate::new();
    for peer in ["x", "y", "a"] {
        let mut direction = pair("b", peer).inbound();
        direction.id = id;
        gate.add(direction, false, Floor::Known(0));
    }
    assert_eq!(gate.handle(0, source(), &mut bytes.clone()).unwrap().peer, 2);
    assert!(b.hear(&bytes).0);
}

#[test]
fn a_header_without_room_for_a_mac_is_malformed() {
    let (mut a, mut b) = ends(false);
    let mut bytes = a.write(&data(1), &[]);
    bytes.truncate(bytes.len() - MAC);
    assert!(matches!(b.gate.handle(0, source(), &mut bytes), Err(Refused::Malformed(_))));
}

proptest! {
    #[test]
    fn nothing_but_packets_of_peers_changes_anything(
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        is_like_one in any::<bool>(),
    ) {
        let (mut a, mut b) = ends(true);
        let mut bytes = bytes;
        if is_like_one {
            let good = a.write(&data(1), b"hello");
            let length = bytes.len().min(12);
            bytes[..length].copy_from_slice(&good[..length]);
        }
        prop_assert!(b.gate.handle(0, source(), &mut bytes).is_err());
        prop_assert!(b.gate.peers[0].current.is_none());
    }
}
