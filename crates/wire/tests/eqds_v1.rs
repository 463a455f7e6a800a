//! Tunnel packets of version 1: parsing and emitting are inverse, trimmed packets are read, arbitrary bytes are refused
//! without a panic.

mod support;

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use selvedge_wire::eqds::v1::{
    Body, Capabilities, Close, Common, Cut, Data, Datagram, Flags, KEPT, LONGEST, MAC, Next, Options, Outer, PORT,
    Packet, PacketType, Probe, Range, Ranges, Report, Reset, ResetReason, Service, Words,
};
use selvedge_wire::{Ecn, Ipv4, Ipv6, ParseError, Udp, eqds};

fn common() -> impl Strategy<Value = Common> {
    (any::<u8>(), any::<[u32; 3]>(), any::<u8>(), any::<u16>()).prop_map(
        |(flags, [key_id, key_epoch, packet_number], eqif, path)| {
            let flags = Flags::from_bits(flags).without(Flags::TRIMMED);
            Common { flags, key_id, key_epoch, packet_number, eqif, path }
        },
    )
}

fn body() -> impl Strategy<Value = Body> {
    let data =
        (any::<[u32; 2]>(), any::<u8>(), 0u8..8, 0u8..3).prop_map(|([seq, pull_target], next, priority, service)| {
            Data { seq, pull_target, next: Next::from_code(next), priority, service: Service::from_code(service) }
        });
    let report =
        (any::<[u32; 4]>(), any::<[u16; 2]>()).prop_map(|([number, pull, busy, echo], [echo_epoch, delay])| {
            Body::Report(Report { number, pull, busy, echo, echo_epoch, delay })
        });
    prop_oneof![
        data.clone().prop_map(Body::Data),
        data.prop_map(Body::Request),
        report,
        (any::<u32>(), any::<u8>())
            .prop_map(|(seq, code)| Body::Reset(Reset { seq, reason: ResetReason::from_code(code) })),
        (any::<u32>(), any::<bool>()).prop_map(|(number, from_sender)| Body::Close(Close { number, from_sender })),
        (any::<u32>(), any::<u16>()).prop_map(|(token, size)| Body::Probe(Probe { token, size })),
    ]
}

fn ranges() -> impl Strategy<Value = Ranges> {
    prop::collection::vec(any::<[u16; 2]>(), 0..=Ranges::MOST).prop_map(|all| {
        let mut ranges = Ranges::default();
        for [offset, packets] in all {
            assert!(ranges.push(Range { offset, packets }));
        }
        ranges
    })
}

fn options() -> impl Strategy<Value = Options> {
    let capabilities = any::<u16>().prop_map(Capabilities::from_bits);
    let once =
        (any::<Option<u16>>(), prop::option::of(capabilities), any::<[Option<u32>; 2]>(), any::<[Option<u64>; 2]>());
    (once, ranges(), ranges()).prop_map(|((mtu, capabilities, [rate, floor], [challenge, answer]), sacks, nacks)| {
        Options { mtu, capabilities, rate, sacks, nacks, floor, challenge, answer }
    })
}

fn packet() -> impl Strategy<Value = Packet> {
    (common(), body(), options()).prop_map(|(common, body, options)| Packet { common, body, options })
}

fn datagram() -> impl Strategy<Value = Datagram> {
    let ecn = || prop_oneof![Just(Ecn::NotCapable), Just(Ecn::Capable), Just(Ecn::Marked)];
    let v4 = (0u8..64, ecn(), any::<u16>(), any::<u8>(), any::<[u32; 2]>()).prop_map(
        |(dscp, ecn, identification, ttl, [source, destination])| {
            let (source, destination) = (Ipv4Addr::from_bits(source), Ipv4Addr::from_bits(destination));
            let (length, protocol, dont_fragment) = (0, Ipv4::UDP, true);
            Outer::V4(Ipv4 { dscp, ecn, length, identification, dont_fragment, ttl, protocol, source, destination })
        },
    );
    let v6 = (0u8..64, ecn(), 0u32..1 << 20, any::<u8>(), any::<[u128; 2]>()).prop_map(
        |(dscp, ecn, flow_label, hop_limit, [source, destination])| {
            let (source, destination) = (Ipv6Addr::from_bits(source), Ipv6Addr::from_bits(destination));
            Outer::V6(Ipv6 { dscp, ecn, flow_label, length: 0, protocol: Ipv4::UDP, hop_limit, source, destination })
        },
    );
    (prop_oneof![v4, v6], any::<u16>())
        .prop_map(|(outer, source)| Datagram { outer, udp: Udp { source, destination: PORT, length: 0, checksum: 0 } })
}

/// Returns a packet's header and payload, with a MAC of 0xaa bytes.
fn written(packet: &Packet, payload: &[u8]) -> Vec<u8> {
    let mut buffer = [0; LONGEST];
    let header = packet.emit(payload.len(), &mut buffer);
    let (_, mac) = header.split_last_chunk_mut::<MAC>().expect("a header has a MAC");
    assert_eq!(mac, &[0; MAC]);
    mac.fill(0xaa);
    [header, payload].concat()
}

proptest! {
    #[test]
    fn a_packet_that_was_written_is_read(packet in packet(), payload in prop::collection::vec(any::<u8>(), 0..64)) {
        let bytes = written(&packet, &payload);
        let parsed = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(parsed.packet, packet);
        prop_assert_eq!(parsed.mac(), [0xaa; MAC]);
        prop_assert_eq!(parsed.payload(), Some(&payload[..]));
        let mut place = [0; LONGEST];
        prop_assert_eq!(parsed.covered(&mut place), &bytes[..packet.header() - MAC]);
    }

    #[test]
    fn a_packet_cut_behind_its_header_is_trimmed(
        (packet, payload) in (packet(), prop::collection::vec(any::<u8>(), 1..64)),
        left in any::<prop::sample::Index>(),
        marks in any::<bool>(),
    ) {
        let mut bytes = written(&packet, &payload);
        let whole = bytes.clone();
        bytes.truncate(packet.header() + left.index(payload.len()));
        bytes[1] |= if marks { Flags::TRIMMED.bits() } else { 0 };
        let parsed = Packet::parse(&bytes).unwrap();
        prop_assert!(parsed.is_trimmed());
        prop_assert_eq!(parsed.payload(), None);
        prop_assert_eq!(parsed.sent_payload(), payload.len());
        let mut place = [0; LONGEST];
        prop_assert_eq!(parsed.covered(&mut place), &whole[..packet.header() - MAC]);
        bytes.truncate(packet.header() - 1);
        prop_assert!(Packet::parse(&bytes).is_err(), "a header is never cut");
    }

    #[test]
    fn a_datagram_is_read_whole_cut_and_with_rewritten_lengths(
        datagram in datagram(),
        packet in packet(),
        payload in prop::collection::vec(any::<u8>(), 1..64),
        left in any::<prop::sample::Index>(),
    ) {
        let inside = written(&packet, &payload);
        let mut buffer = vec![0; Datagram::LONGEST + inside.len()];
        let bytes = datagram.emit(&inside, &mut buffer);
        let (again, cut, rest) = Datagram::parse(bytes).unwrap();
        prop_assert_eq!((cut, rest), (Cut::Agrees, &inside[..]));
        let mut place = vec![0; bytes.len()];
        prop_assert_eq!(again.emit(rest, &mut place), bytes);

        let kept = packet.header() + left.index(payload.len());
        let (cut_off, cut, rest) = Datagram::parse(&bytes[..datagram.length() + kept]).unwrap();
        prop_assert_eq!((cut_off, cut, rest), (again, Cut::SaysMore, &inside[..kept]));
        prop_assert!(Packet::parse(rest).unwrap().is_trimmed());

        let mut buffer = vec![0; Datagram::LONGEST + kept];
        let rewritten = datagram.emit(&inside[..kept], &mut buffer);
        let (_, cut, rest) = Datagram::parse(rewritten).unwrap();
        prop_assert_eq!((cut, rest), (Cut::Agrees, &inside[..kept]));
        prop_assert!(Packet::parse(rest).unwrap().is_trimmed());
    }

    #[test]
    fn arbitrary_bytes_are_a_packet_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        support::check_headers(&bytes);
    }

    #[test]
    fn a_damaged_packet_is_a_packet_or_an_error(
        (packet, payload) in (packet(), prop::collection::vec(any::<u8>(), 0..32)),
        at in any::<prop::sample::Index>(),
        bits in 1u8..=255,
    ) {
        let mut bytes = written(&packet, &payload);
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        support::check_headers(&bytes);
    }

    #[test]
    fn reserved_bits_are_ignored(packet in packet(), noise in any::<[u8; 3]>()) {
        let mut bytes = written(&packet, &[]);
        let body = &mut bytes[Common::LENGTH..];
        match packet.body.kind() {
            PacketType::Data | PacketType::Request => {
                body[9] |= noise[0] & 0x07;
                body[10..12].copy_from_slice(&noise[..2]);
            }
            PacketType::Report => {}
            PacketType::Reset => body[5..8].copy_from_slice(&noise),
            PacketType::Close => {
                body[4] |= noise[0] & 0x7f;
                body[5..8].copy_from_slice(&noise);
            }
            PacketType::Probe => body[6..8].copy_from_slice(&noise[..2]),
        }
        prop_assert_eq!(Packet::parse(&bytes).unwrap().packet, packet);
    }

    #[test]
    fn words_that_were_written_are_read(words in any::<[u32; 2]>(), part in prop::collection::vec(any::<u8>(), 0..32)) {
        let [message, offset] = words;
        let Some(length) = offset.checked_add(part.len() as u32) else { return Ok(()) };
        let words = Words { message, offset, length };
        let bytes = [&words.emit()[..], &part].concat();
        prop_assert_eq!(Words::parse(&bytes), Ok((words, &part[..])));
        let longer = [&bytes[..], &[0]].concat();
        prop_assert_eq!(Words::parse(&longer), Err(ParseError::Oversized(part.len() + 1)));
    }
}

const COMMON: Common = Common {
    flags: Flags::SYN,
    key_id: 0x0102_0304,
    key_epoch: 0x0506_0708,
    packet_number: 0x090a_0b0c,
    eqif: 0x0d,
    path: 0x0e0f,
};

#[test]
fn fields_lie_where_the_tables_have_them() {
    let (next, service) = (Next::Ip, Service::Unreliable);
    let data = Data { seq: 0x1011_1213, pull_target: 0x1415_1617, next, priority: 5, service };
    let options = Options {
        mtu: Some(1472),
        capabilities: Some(Capabilities::SEALED.with(Capabilities::ECN)),
        rate: Some(10_000),
        answer: Some(0x2021_2223_2425_2627),
        ..Options::NONE
    };
    let packet = Packet { common: COMMON, body: Body::Data(data), options };
    let mut buffer = [0; LONGEST];
    #[rustfmt::skip]
    assert_eq!(packet.emit(1400, &mut buffer), [
        0x11, 0x01, 0x05, 0xbc, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 17, 13, 14, 15, // common
        0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 4, 0xb0, 0, 0, // data
        1, 4, 0x05, 0xc0, 2, 4, 0, 0x21, 3, 6, 0, 0, 0x27, 0x10, 0, 0, // MTU, capabilities, rate
        8, 10, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0, 0, // answer
        0, 0, 0, 0, 0, 0, 0, 0, // MAC
    ]);
    assert!(packet.header() <= KEPT, "the longest header of data survives trimming");

    let report = Report { number: 1, pull: 2, busy: 3, echo: 4, echo_epoch: 5, delay: 6 };
    let mut sacks = Ranges::default();
    sacks.push(Range { offset: 7, packets: 8 });
    let options = Options { sacks, ..Options::NONE };
    let common = Common { flags: Flags::SACK.with(Flags::PULL), ..COMMON };
    #[rustfmt::skip]
    assert_eq!(Packet { common, body: Body::Report(report), options }.emit(0, &mut buffer)[20..], [
        0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 5, 0, 6, // report
        4, 6, 0, 7, 0, 8, 0, 0, // SACK ranges
        0, 0, 0, 0, 0, 0, 0, 0, // MAC
    ]);
    let close = Body::Close(Close { number: 9, from_sender: true });
    let bytes = Packet { common, body: close, options: Options::NONE }.emit(0, &mut buffer).to_vec();
    assert_eq!(bytes[20..28], [0, 0, 0, 9, 0x80, 0, 0, 0]);
    let reset = Body::Reset(Reset { seq: 9, reason: ResetReason::Challenge });
    let options = Options { floor: Some(3), challenge: Some(4), ..Options::NONE };
    let bytes = Packet { common, body: reset, options }.emit(0, &mut buffer).to_vec();
    assert_eq!(bytes[20..48], [0, 0, 0, 9, 2, 0, 0, 0, 6, 6, 0, 0, 0, 3, 0, 0, 7, 10, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0]);
    let probe = Body::Probe(Probe { token: 9, size: 1472 });
    let bytes = Packet { common, body: probe, options: Options::NONE }.emit(0, &mut buffer).to_vec();
    assert_eq!(bytes[20..28], [0, 0, 0, 9, 0x05, 0xc0, 0, 0]);
}

#[test]
fn packets_of_other_versions_and_types_are_refused() {
    let packet = Packet { common: COMMON, body: Body::Probe(Probe::default()), options: Options::NONE };
    let good = written(&packet, &[]);
    let with = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Packet::parse(&bytes).map(|parsed| parsed.packet)
    };
    assert_eq!(with(0, 0x16), Ok(packet));
    assert_eq!(with(0, 0x26), Err(ParseError::Version(2)));
    assert_eq!(with(0, 0x06), Err(ParseError::Version(0)), "figure 4's headers are version 0");
    assert_eq!(with(0, 0x10), Err(ParseError::Type(0)));
    assert_eq!(with(0, 0x17), Err(ParseError::Type(7)));
    assert!(matches!(with(16, 8), Err(ParseError::Length { .. })), "a header shorter than its type's");
    assert!(matches!(with(16, 41), Err(ParseError::Length { .. })), "a header longer than any");
    assert!(matches!(with(3, 35), Err(ParseError::Length { .. })), "a packet shorter than its header");
    let longer = [&good[..], &[0]].concat();
    assert_eq!(Packet::parse(&longer), Err(ParseError::Length { found: 37, said: 36 }), "more than was sent");
    assert_eq!(Packet::parse(&good[..19]), Err(ParseError::Truncated { found: 19, needed: 20 }));
    assert_eq!(Packet::parse(&good[..35]), Err(ParseError::Truncated { found: 35, needed: 36 }));
}

#[test]
fn unknown_options_are_skipped_unless_they_are_required() {
    let options = Options { mtu: Some(1472), rate: Some(1), ..Options::NONE };
    let packet = Packet { common: COMMON, body: Body::Probe(Probe::default()), options };
    let mut bytes = written(&packet, &[]);
    let rate = Common::LENGTH + 8 + 4;
    bytes[rate] = 77;
    let only_mtu = Options { rate: None, ..options };
    assert_eq!(Packet::parse(&bytes).unwrap().packet.options, only_mtu);
    bytes[rate] = 128;
    assert_eq!(Packet::parse(&bytes), Err(ParseError::Option(128)));
    for length in [0, 1, 5, 9, 255] {
        bytes[rate..rate + 2].copy_from_slice(&[3, length]);
        assert_eq!(Packet::parse(&bytes), Err(ParseError::Option(3)), "length {length}");
    }
    bytes[rate] = 0;
    assert_eq!(Packet::parse(&bytes).unwrap().packet.options, only_mtu, "the rest is padding");
}

#[test]
fn a_datagram_over_ipv6_has_a_checksum() {
    let outer = Outer::V6(Ipv6 {
        dscp: 0,
        ecn: Ecn::NotCapable,
        flow_label: 0,
        length: 0,
        protocol: Ipv4::UDP,
        hop_limit: 64,
        source: Ipv6Addr::LOCALHOST,
        destination: Ipv6Addr::LOCALHOST,
    });
    let udp = Udp { source: 1, destination: 2, length: 0, checksum: 0 };
    let mut buffer = [0; 64];
    let bytes = Datagram { outer, udp }.emit(b"selvedge", &mut buffer);
    // RFC 1071 by hand: the sum over pseudo-header, header and payload, checksum included, is all ones.
    let words = bytes[8..].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
    let mut sum: u32 = words.sum::<u32>() + u32::from(Ipv4::UDP) + 16;
    sum = (sum & 0xffff) + (sum >> 16);
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
}

#[test]
fn engines_flags_survive_the_way_through_a_report() {
    for bits in 0..=u8::MAX {
        let flags = eqds::Flags::from_bits(bits);
        let control = eqds::Control { flags, number: 1, pull: 2, busy: 3, eqif: 0 };
        let back = Report::of(&control).control(Flags::of_report(flags));
        let types = eqds::Flags::RTS.with(eqds::Flags::RST);
        assert_eq!(back.flags.bits(), bits & !types.bits(), "RTS and RST are types");
        assert_eq!((back.number, back.pull, back.busy), (1, 2, 3));
    }
}

#[test]
fn the_fuzz_corpus_passes_and_has_every_type() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/eqds_wire");
    let mut types = Vec::new();
    let (mut trimmed, mut refused) = (0, 0);
    for entry in std::fs::read_dir(corpus).expect("the corpus is part of the repository") {
        let bytes = std::fs::read(entry.expect("a readable file").path()).expect("a readable file");
        support::check_tunnel_packets(&bytes);
        let inside = Datagram::parse(&bytes).map_or(&bytes[..], |(_, _, payload)| payload);
        match Packet::parse(inside) {
            Ok(parsed) => {
                types.push(parsed.packet.body.kind());
                trimmed += u32::from(parsed.is_trimmed());
            }
            Err(_) => refused += 1,
        }
    }
    assert!(PacketType::ALL.iter().all(|kind| types.contains(kind)), "{types:?}");
    assert!(trimmed > 1 && refused > 1);
}
