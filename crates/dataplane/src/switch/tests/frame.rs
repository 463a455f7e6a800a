//! Tests of what is read from frames and of marks.

use std::collections::BTreeSet;

use selvedge_wire::verbs::opcode::operation;
use selvedge_wire::{Bth, Ecn, EtherType, Ipv4, Udp};

use super::super::checksum;
use super::super::frame::{Facts, mark};
use super::*;

fn facts(frame: &[u8]) -> Facts {
    Facts::parse(frame).expect("a frame")
}

/// Returns a frame with a RoCEv2 packet of an opcode.
fn roce(opcode: u8) -> Vec<u8> {
    let bth = Bth { opcode, ..Bth::default() };
    udp4([0xc123, Udp::ROCE], 26, Ecn::Capable, &[&bth.emit()[..], &[0; 20]].concat())
}

/// Returns a frame with a TCP segment with options and a payload of this many bytes.
fn tcp(payload: usize) -> Vec<u8> {
    let mut segment = [0; 32].to_vec();
    segment[..4].copy_from_slice(&[0x12, 0x34, 0, 80]);
    segment[12] = 8 << 4;
    segment.resize(32 + payload, 1);
    let envelope = Envelope {
        source: address(1),
        destination: address(2),
        dscp: 0,
        ecn: Ecn::Capable,
        identification: 0,
        ttl: 64,
    };
    let packet = [&envelope.around(Ipv4::TCP, segment.len()).emit()[..], &segment].concat();
    frame(station(1), station(2), EtherType::IPV4, &packet)
}

#[test]
fn the_class_is_the_upper_part_of_the_dscp_or_the_tags_priority() {
    for dscp in [0, 7, 8, 26, 46, 48, 63] {
        for frame in [udp4([1, 2], dscp, Ecn::Capable, b"x"), udp6([1, 2], dscp, Ecn::Capable, b"x")] {
            assert_eq!(facts(&frame).class, dscp >> 3);
            for priority in 0..8 {
                let with_tag = facts(&tagged(&frame, priority));
                assert_eq!((with_tag.class, with_tag.flow), (priority, facts(&frame).flow));
            }
        }
    }
    assert_eq!(facts(&frame(station(1), station(2), EtherType::ARP, &[0xff; 28])).class, 0);
}

#[test]
fn lengths_are_those_on_a_link() {
    assert_eq!(facts(&frame(station(1), station(2), EtherType::ARP, &[0; 28])).bytes, 64);
    assert_eq!(facts(&frame(station(1), station(2), EtherType::IPV4, &[0; 1_500])).bytes, 1_518);
    assert_eq!(Facts::parse(&[0; 13]), None);
    assert_eq!(Facts::parse(&[0; 1 << 16]), None);
}

#[test]
fn marks_leave_checksums_right_and_are_set_once() {
    for original in [udp4([1, 2], 26, Ecn::Capable, b"data"), udp6([1, 2], 26, Ecn::Capable, b"data")] {
        let mut frame = original.clone();
        assert!(has_right_checksums(&frame));
        assert!(mark(&mut frame, &facts(&original)));
        assert_eq!((facts(&frame).ecn, facts(&frame).class), (Ecn::Marked, 3));
        assert!(has_right_checksums(&frame) && !mark(&mut frame, &facts(&original)));
        let mut with_tag = tagged(&original, 5);
        let before = facts(&with_tag);
        assert!(mark(&mut with_tag, &before));
        assert_eq!(with_tag, tagged(&frame, 5));
    }
    let mut deaf = udp4([1, 2], 0, Ecn::NotCapable, b"data");
    let before = deaf.clone();
    assert!(!mark(&mut deaf, &facts(&before)));
    assert_eq!(deaf, before);
}

#[test]
fn flows_differ_by_ports_and_fragments_of_one_do_not() {
    let flow = |ports| facts(&udp4(ports, 0, Ecn::Capable, b"x")).flow;
    let sources: BTreeSet<u32> = (0..1_000).map(|entropy| flow([0xc000 + entropy, Udp::ROCE])).collect();
    assert_eq!(sources.len(), 1_000);
    let low: BTreeSet<u32> = sources.iter().map(|flow| flow % 4).collect();
    assert_eq!(low.len(), 4);
    assert_eq!(flow([7, 8]), facts(&udp4([7, 8], 46, Ecn::Marked, b"another")).flow);
    assert_ne!(flow([7, 8]), flow([8, 7]));

    let mut fragments = [udp4([1, 2], 0, Ecn::Capable, b"abcd"), udp4([3, 4], 0, Ecn::Capable, b"abcd")];
    fragments[0][20] = 0x20;
    fragments[1][21] = 0x10;
    assert_eq!(facts(&fragments[0]).flow, facts(&fragments[1]).flow);
    assert_eq!(facts(&fragments[1]).ip.and_then(|ip| ip.transport_at), None);
}

#[test]
fn data_is_told_from_answers() {
    use operation::*;
    for opcode in [SEND_ONLY, WRITE_FIRST, WRITE_LAST_IMMEDIATE, READ_REQUEST, FETCH_ADD, READ_RESPONSE_MIDDLE, 0x64] {
        assert!(facts(&roce(opcode)).has_data, "{opcode:#x}");
    }
    for opcode in [ACKNOWLEDGE, READ_ACKNOWLEDGE, 0x81, 0xc0] {
        assert!(!facts(&roce(opcode)).has_data, "{opcode:#x}");
    }
    assert!(facts(&tcp(1)).has_data && !facts(&tcp(0)).has_data);
    // Padding of a short frame is no data.
    let mut padded = tcp(0);
    padded.resize(80, 0);
    assert!(!facts(&padded).has_data);
    assert!(facts(&udp4([1, 2], 0, Ecn::Capable, b"")).has_data);
}

#[test]
fn missing_checksums_are_completed() {
    for original in [udp4([1, 2], 26, Ecn::Capable, b"odd"), udp6([1, 2], 26, Ecn::Capable, b"even")] {
        let mut left_out = original.clone();
        let at = usize::from(facts(&original).ip.and_then(|ip| ip.transport_at).expect("a datagram"));
        left_out[at + 6] ^= 0x55;
        checksum::complete(&mut left_out);
        assert_eq!(left_out, original);
        left_out.extend_from_slice(&[0; 9]);
        checksum::complete(&mut left_out);
        assert_eq!(left_out[..original.len()], original);
    }
    let mut segment = tcp(5);
    assert!(!checksum::is_left_out(&segment));
    let (ip, payload) = Ipv4::parse(&segment[14..]).expect("a packet");
    let left = ip.pseudo_header(payload.len() as u16).to_be_bytes();
    segment[14 + 20 + 16..][..2].copy_from_slice(&left);
    assert!(checksum::is_left_out(&segment));
    checksum::complete(&mut segment);
    assert!(!checksum::is_left_out(&segment));
    let (ip, payload) = Ipv4::parse(&segment[14..]).expect("a packet");
    assert_eq!(Udp::checksum_of(payload, ip.pseudo_header(payload.len() as u16)), u16::MAX);
}

#[test]
fn any_bytes_are_read() {
    let originals = [
        udp4([1, 2], 26, Ecn::Capable, b"data"),
        udp6([1, 2], 26, Ecn::Capable, b"data"),
        tagged(&udp4([1, Udp::ROCE], 26, Ecn::Capable, &[0; 16]), 3),
        roce(operation::ACKNOWLEDGE),
        tcp(3),
    ];
    let mut read = 0;
    for mut frame in damaged(&originals, 50_000) {
        let Some(facts) = Facts::parse(&frame) else { continue };
        read += 1;
        let length = frame.len();
        checksum::complete(&mut frame);
        mark(&mut frame, &facts);
        assert_eq!(frame.len(), length);
        assert!(facts.class < 8 && usize::from(facts.payload_at) <= length);
    }
    assert!(read > 20_000);
}
