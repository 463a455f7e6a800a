//! Property tests: parsing and emitting headers are inverse, conform to the standard, and never panic.

mod support;

use proptest::prelude::*;
use selvedge_units::{Duration, Instant, Psn, QpNumber};
use selvedge_wire::{
    Ack, AckKind, Aeth, Body, Bth, Data, Datagram, Extension, Hole, HoleNack, ParseError, Syndrome, Waited,
};

fn psn() -> impl Strategy<Value = Psn> {
    (0..Psn::MODULUS).prop_map(Psn::new)
}

fn bth() -> impl Strategy<Value = Bth> {
    let flags = any::<[bool; 5]>();
    (any::<u8>(), flags, 0u8..4, any::<u16>(), 0u32..1 << 24, psn()).prop_map(
        |(opcode, [solicited, migration, fecn, becn, ack_request], pad, partition, qp, psn)| Bth {
            opcode,
            solicited,
            migration,
            pad,
            partition,
            fecn,
            becn,
            destination: QpNumber(qp),
            ack_request,
            psn,
        },
    )
}

fn aeth() -> impl Strategy<Value = Aeth> {
    let syndrome = (0u8..32).prop_flat_map(|value| {
        prop_oneof![Just(Syndrome::Ack(value)), Just(Syndrome::NotReady(value)), Just(Syndrome::Nak(value))]
    });
    (syndrome, 0u32..1 << 24).prop_map(|(syndrome, msn)| Aeth { syndrome, msn })
}

fn extension() -> impl Strategy<Value = Extension> {
    let waited = prop::option::of(any::<u64>().prop_map(Duration::from_ps)).prop_map(Waited::of);
    (any::<u64>(), any::<[bool; 2]>(), psn(), waited).prop_map(|(ps, [retransmission, holes], sack, waited)| {
        Extension { sent_at: Instant::from_ps(ps), retransmission, holes, sack, waited }
    })
}

/// Returns a strategy of datagrams with their payloads.
fn datagram() -> impl Strategy<Value = (Datagram, Vec<u8>)> {
    let data = (psn(), any::<[bool; 2]>(), prop::collection::vec(any::<u8>(), 0..64)).prop_map(
        |(psn, [last, retransmission], payload)| {
            (Body::Data(Data { psn, payload: payload.len() as u16, last, retransmission, trimmed: false }), payload)
        },
    );
    let kind = prop_oneof![Just(AckKind::Ack), Just(AckKind::Nack)];
    let ack = (kind, any::<bool>(), psn(), psn(), 0u32..1 << 24).prop_map(|(kind, ecn_echo, expected, sack, msn)| {
        (Body::Ack(Ack { kind, ecn_echo, expected, sack, msn }), Vec::new())
    });
    let hole = any::<[u16; 2]>().prop_map(|[start, length]| Hole { start, length });
    let nack = (any::<bool>(), psn(), prop::array::uniform3(hole), any::<u16>()).prop_map(
        |(ecn_echo, expected, holes, behind)| {
            (Body::HoleNack(HoleNack { ecn_echo, expected, holes, behind }), Vec::new())
        },
    );
    let cnp = Just((Body::Cnp, Vec::new()));
    (0u32..1 << 24, any::<u64>(), prop_oneof![data, ack, nack, cnp]).prop_map(|(qp, ps, (body, payload))| {
        // A notification carries no time stamp.
        let ps = if body == Body::Cnp { 0 } else { ps };
        (Datagram { qp: QpNumber(qp), sent_at: Instant::from_ps(ps), body }, payload)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bth_survives_the_wire(header in bth()) {
        assert_eq!(Bth::parse(&header.emit()), Ok((header, &[][..])));
    }
    #[test]
    fn an_aeth_survives_the_wire(header in aeth()) {
        assert_eq!(Aeth::parse(&header.emit()), Ok((header, &[][..])));
    }
    #[test]
    fn an_extension_survives_the_wire(header in extension()) {
        assert_eq!(Extension::parse(&header.emit()), Ok((header, &[][..])));
    }
    #[test]
    fn a_datagram_survives_the_wire((datagram, payload) in datagram()) {
        let mut buffer = [0; Datagram::LONGEST_HEADERS];
        let bytes = [datagram.emit(&mut buffer), &payload].concat();
        prop_assert_eq!(Datagram::parse(&bytes), Ok((datagram, &payload[..])));
        // Every prefix of the headers is an error, not a panic.
        let headers = bytes.len() - payload.len();
        for length in 0..headers {
            prop_assert!(Datagram::parse(&bytes[..length]).is_err());
        }
    }
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        support::check_headers(&bytes);
    }
}

#[test]
fn a_nak_looks_as_the_standard_has_it() {
    let nack = Ack { kind: AckKind::Nack, ecn_echo: false, expected: Psn::new(0x123), sack: Psn::new(0x456), msn: 7 };
    let datagram = Datagram { qp: QpNumber(0x11), sent_at: Instant::from_ps(1), body: Body::Ack(nack) };
    let mut buffer = [0; Datagram::LONGEST_HEADERS];
    #[rustfmt::skip]
    assert_eq!(datagram.emit(&mut buffer), [
        0x11, 0x00, 0xff, 0xff, 0x00, 0x00, 0x00, 0x11, 0x00, 0x00, 0x01, 0x23, // BTH: acknowledge, expected PSN
        0x60, 0x00, 0x00, 0x07, // AETH: NAK, PSN sequence error; MSN
        0, 0, 0, 0, 0, 0, 0, 1, 0x00, 0x00, 0x04, 0x56, // extension: time stamp, SACK
    ]);
}

#[test]
fn a_nak_of_melo_carries_its_holes_behind_all_else() {
    let holes = [Hole { start: 0x0456, length: 2 }, Hole { start: 0x0123, length: 1 }, Hole::NONE];
    let nack = HoleNack { ecn_echo: false, expected: Psn::new(0x7_0123), holes, behind: 0 };
    assert_eq!(nack.sack(), Psn::new(0x7_0458), "the packet behind the newest hole");
    let datagram = Datagram { qp: QpNumber(0x11), sent_at: Instant::from_ps(1), body: Body::HoleNack(nack) };
    let mut buffer = [0; Datagram::LONGEST_HEADERS];
    #[rustfmt::skip]
    assert_eq!(datagram.emit(&mut buffer)[12..], [
        0x60, 0x00, 0x00, 0x00, // AETH: NAK, PSN sequence error; MSN
        0, 0, 0, 0, 0, 0, 0, 1, 0x40, 0x07, 0x04, 0x58, // extension: time stamp, holes follow, SACK
        0x04, 0x56, 0, 2, 0x01, 0x23, 0, 1, 0, 0, 0, 0, // holes: start and length, newest first
    ]);
}

#[test]
fn a_congestion_notification_looks_as_the_annex_has_it() {
    let datagram = Datagram { qp: QpNumber(0x11), sent_at: Instant::ZERO, body: Body::Cnp };
    let mut buffer = [0; Datagram::LONGEST_HEADERS];
    #[rustfmt::skip]
    let expected = [
        0x81, 0x00, 0xff, 0xff, 0x40, 0x00, 0x00, 0x11, 0, 0, 0, 0, // BTH: CNP, BECN
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // reserved
    ];
    assert_eq!(datagram.emit(&mut buffer), expected);
}

#[test]
fn what_is_not_in_use_is_an_error() {
    let mut bytes = [0; 28];
    assert_eq!(Datagram::parse(&bytes), Err(ParseError::Opcode(0)));
    assert_eq!(Datagram::parse(&bytes[..11]), Err(ParseError::Truncated { found: 11, needed: 12 }));
    bytes[1] = 0x03;
    assert_eq!(Datagram::parse(&bytes), Err(ParseError::Version(3)));
    bytes[..2].copy_from_slice(&[0x11, 0]);
    bytes[12] = 0x20;
    assert_eq!(Datagram::parse(&bytes), Err(ParseError::Syndrome(0x20)), "receiver not ready");
    bytes[12] = 0x40;
    assert_eq!(Datagram::parse(&bytes), Err(ParseError::Syndrome(0x40)), "reserved");
    bytes[12] = 0x60;
    bytes[24] = 0x01;
    assert_eq!(Datagram::parse(&bytes), Err(ParseError::Reserved));
}

#[test]
fn the_fuzz_corpus_passes() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/wire_headers");
    let mut replayed = 0;
    for entry in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        support::check_headers(&std::fs::read(entry.expect("a readable file").path()).expect("a readable file"));
        replayed += 1;
    }
    assert!(replayed > 0);
}
