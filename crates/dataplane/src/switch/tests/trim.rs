//! Tests of trimming.

use selvedge_wire::eqds::v1::{Body, Common, Data, Flags, LONGEST, Options, PORT, Packet, Report};

use super::super::frame::Facts;
use super::super::trim::{can_be_trimmed, trim};
use super::*;

/// Returns the UDP payload of a packet of a tunnel, with an unset MAC.
fn packet(body: Body, payload: &[u8]) -> Vec<u8> {
    let mut place = [0; LONGEST];
    let packet = Packet { common: Common::default(), body, options: Options::default() };
    let header = packet.emit(payload.len(), &mut place).to_vec();
    [&header[..], payload].concat()
}

fn both(payload: &[u8]) -> [Vec<u8>; 2] {
    [udp4([0xc001, PORT], 26, Ecn::Capable, payload), udp6([0xc001, PORT], 26, Ecn::Capable, payload)]
}

#[test]
fn data_of_tunnels_keep_their_headers_alone() {
    let whole = packet(Body::Data(Data::default()), &[9; 1_000]);
    for mut frame in both(&whole) {
        let facts = Facts::parse(&frame).expect("a frame");
        assert!(can_be_trimmed(&frame, &facts));
        assert!(trim(&mut frame, &facts));
        assert!(has_right_checksums(&frame));
        let after = Facts::parse(&frame).expect("a frame");
        assert_eq!((after.flow, after.class, after.ecn), (facts.flow, facts.class, facts.ecn));
        let udp_at = usize::from(after.ip.and_then(|ip| ip.transport_at).expect("a datagram"));
        let (_, payload) = Udp::parse(&frame[udp_at..]).expect("a datagram");
        let parsed = Packet::parse(payload).expect("a packet");
        assert!(parsed.is_trimmed() && parsed.packet.common.flags.any(Flags::TRIMMED));
        assert_eq!((parsed.sent_payload(), parsed.header().len()), (1_000, payload.len()));
        // The MAC covers what it covered before.
        let mut place = [0; LONGEST];
        assert_eq!(parsed.covered(&mut place), Packet::parse(&whole).expect("a packet").covered(&mut [0; LONGEST]));
        let once = frame.clone();
        assert!(!trim(&mut frame, &after));
        assert_eq!(frame, once);
    }
}

#[test]
fn other_frames_stay_as_they_are() {
    let report = packet(Body::Report(Report::default()), &[]);
    let request = packet(Body::Request(Data::default()), &[]);
    let others = [
        &both(&report)[..],
        &both(&request),
        &both(&packet(Body::Data(Data::default()), &[])),
        &[udp4([1, 2], 0, Ecn::Capable, &packet(Body::Data(Data::default()), &[1; 99]))],
        &[frame(station(1), station(2), EtherType::ARP, &[0; 28])],
    ];
    for mut frame in others.concat() {
        let (facts, before) = (Facts::parse(&frame).expect("a frame"), frame.clone());
        assert!(!trim(&mut frame, &facts) && !can_be_trimmed(&frame, &facts));
        assert_eq!(frame, before);
    }
}

#[test]
fn any_bytes_are_trimmed_or_not() {
    let whole = packet(Body::Data(Data::default()), &[9; 100]);
    let originals = both(&whole);
    let mut trimmed = 0;
    for mut frame in damaged(&originals, 50_000) {
        let Some(facts) = Facts::parse(&frame) else { continue };
        let length = frame.len();
        let is_trimmed = trim(&mut frame, &facts);
        assert!(if is_trimmed { frame.len() < length } else { frame.len() == length });
        trimmed += u32::from(is_trimmed);
    }
    assert!(trimmed > 1_000);
}
