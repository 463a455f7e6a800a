//! Tests of destinations, answers and counters.

use std::collections::VecDeque;

use selvedge_telemetry::PortRow;
use selvedge_units::Instant;
use selvedge_wire::Pfc;

use super::super::{Arrival, Bridge, Directory, Engine, Leaving, pause_frame};
use super::*;

/// An engine that forwards at once.
#[derive(Default)]
struct Wires {
    frames: VecDeque<(usize, Vec<u8>)>,
    lent: Vec<u8>,
    pauses: Vec<(usize, Pfc)>,
}

impl Engine for Wires {
    fn handle_packet(&mut self, _: Instant, arrival: Arrival<'_>) {
        assert_ne!(arrival.from, arrival.to);
        self.frames.push_back((arrival.to, arrival.frame.to_vec()));
    }
    fn handle_pause(&mut self, _: Instant, port: usize, pause: &Pfc) {
        self.pauses.push((port, *pause));
    }
    fn poll_transmit(&mut self, _: Instant) -> Option<Leaving<'_>> {
        let (port, frame) = self.frames.pop_front()?;
        self.lent = frame;
        Some(Leaving { port, frame: &self.lent })
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.frames.front().map(|_| Instant::ZERO)
    }
    fn handle_timeout(&mut self, _: Instant) {}
    fn sample(&mut self, _: Instant, _: &mut Vec<PortRow>) {}

    fn visit_counts(&self, _: &mut dyn FnMut(&str, &'static str, u64)) {}
}

/// Returns a bridge with three ports; hosts 1 and 2 are known to be at ports 0 and 1.
fn bridge() -> Bridge<Wires> {
    let mut directory = Directory::new(3);
    for host in [1, 2] {
        let addresses = [address(host as u8).into(), address6(host as u16).into()];
        directory.add(host as usize - 1, station(host), addresses);
    }
    Bridge::new(Wires::default(), directory)
}

/// Returns the ports that a frame comes out of, and the frames.
fn through(bridge: &mut Bridge<Wires>, from: usize, frame: &[u8]) -> Vec<(usize, Vec<u8>)> {
    bridge.handle_frame(Instant::ZERO, from, frame);
    std::iter::from_fn(|| bridge.poll_transmit(Instant::ZERO).map(|out| (out.port, out.frame.to_vec()))).collect()
}

fn arp(from: u32, target: Ipv4Addr) -> Vec<u8> {
    let sender = [&station(from).0[..], &address(from as u8).octets()].concat();
    let content = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &sender, &[0; 6], &target.octets()].concat();
    frame(station(from), MacAddress::BROADCAST, EtherType::ARP, &content)
}

fn solicitation(from: u32, target: Ipv6Addr) -> Vec<u8> {
    let mut message = [&[135, 0, 0, 0, 0, 0, 0, 0][..], &target.octets(), &[1, 1], &station(from).0].concat();
    let ip = Ipv6 {
        dscp: 0,
        ecn: Ecn::NotCapable,
        flow_label: 0,
        length: message.len() as u16,
        protocol: 58,
        hop_limit: 255,
        source: address6(from as u16),
        destination: Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 2),
    };
    let checksum = Udp::checksum_of(&message, ip.pseudo_header(ip.length));
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    let packet = [&ip.emit()[..], &message].concat();
    frame(station(from), MacAddress([0x33, 0x33, 0xff, 0, 0, 2]), EtherType::IPV6, &packet)
}

#[test]
fn frames_go_to_the_port_of_their_station() {
    let mut bridge = bridge();
    let there = udp4([1, 2], 0, Ecn::Capable, b"x");
    assert_eq!(through(&mut bridge, 0, &there), [(1, there.clone())]);
    let unknown = frame(station(1), station(3), EtherType::IPV4, &[0; 40]);
    assert_eq!(through(&mut bridge, 0, &unknown), [(1, unknown.clone()), (2, unknown.clone())]);
    assert_eq!(through(&mut bridge, 2, &frame(station(3), station(1), EtherType::IPV4, &[0; 40])).len(), 1);
    assert_eq!(through(&mut bridge, 0, &unknown), [(2, unknown.clone())]);
    let itself = frame(station(1), station(1), EtherType::IPV4, &[0; 40]);
    assert_eq!(through(&mut bridge, 0, &itself), []);
    assert_eq!(through(&mut bridge, 1, b"short"), []);
    let counts = bridge.counts();
    assert_eq!((counts[0].received, counts[0].flooded, counts[0].local), (4, 1, 1));
    assert_eq!((counts[1].received, counts[1].malformed, counts[1].received_bytes), (1, 1, 5));
}

#[test]
fn a_host_cannot_take_the_address_of_another() {
    let mut bridge = bridge();
    let forged = frame(station(2), station(1), EtherType::IPV4, &[0; 40]);
    assert_eq!(through(&mut bridge, 2, &forged), []);
    let nobody = frame(MacAddress::BROADCAST, station(1), EtherType::IPV4, &[0; 40]);
    assert_eq!(through(&mut bridge, 2, &nobody), []);
    assert_eq!((bridge.counts()[2].forged, bridge.counts()[2].received), (2, 2));
    // A port fills the table of learnt stations with its own share alone, and its frames pass all the same.
    for host in 100..1_000 {
        assert_eq!(through(&mut bridge, 2, &frame(station(host), station(1), EtherType::IPV4, &[0; 40])).len(), 1);
    }
    assert_eq!(through(&mut bridge, 0, &frame(station(1), station(999), EtherType::IPV4, &[0; 40])).len(), 2);
    assert_eq!(through(&mut bridge, 0, &frame(station(1), station(100), EtherType::IPV4, &[0; 40])).len(), 1);
}

#[test]
fn questions_for_addresses_of_known_hosts_are_answered_at_the_port() {
    let mut bridge = bridge();
    let answers = through(&mut bridge, 0, &arp(1, address(2)));
    let [(0, answer)] = &answers[..] else { panic!("{answers:?}") };
    let expected = [&[0, 1, 8, 0, 6, 4, 0, 2][..], &station(2).0, &address(2).octets(), &station(1).0].concat();
    assert_eq!((&answer[..6], &answer[6..12]), (&station(1).0[..], &station(2).0[..]));
    assert_eq!((&answer[14..14 + expected.len()], answer.len()), (&expected[..], Ethernet::MINIMUM));

    let answers = through(&mut bridge, 0, &solicitation(1, address6(2)));
    let [(0, answer)] = &answers[..] else { panic!("{answers:?}") };
    let (ip, message) = Ipv6::parse(&answer[14..]).expect("a packet");
    assert_eq!((ip.source, ip.destination, message[0]), (address6(2), address6(1), 136));
    assert_eq!(Udp::checksum_of(message, ip.pseudo_header(ip.length)), u16::MAX);
    assert_eq!(message[26..32], station(2).0);

    // A question for oneself is a probe for duplicates, and nobody else's address is known.
    assert_eq!(through(&mut bridge, 0, &arp(1, address(1))).len(), 2);
    assert_eq!(through(&mut bridge, 0, &arp(1, address(9))).len(), 2);
    assert_eq!((bridge.counts()[0].answered, bridge.counts()[0].flooded), (2, 2));
}

#[test]
fn pauses_end_at_the_switch() {
    let mut bridge = bridge();
    let pause = Pfc::new(0b1000, 500);
    assert_eq!(through(&mut bridge, 0, &pause_frame(station(1), &pause)), []);
    // Another operation of MAC control; a pause whose source is another host's; one that is cut.
    let mut other = pause_frame(station(1), &pause);
    other[15] = 2;
    assert_eq!(through(&mut bridge, 0, &other), []);
    assert_eq!(through(&mut bridge, 2, &pause_frame(station(1), &pause)), []);
    assert_eq!(through(&mut bridge, 0, &pause_frame(station(1), &pause)[..20]), []);
    assert_eq!(bridge.engine.pauses, [(0, pause)]);
    let counts = bridge.counts();
    assert_eq!((counts[0].pauses, counts[0].local, counts[2].forged), (1, 2, 1));
}

#[test]
fn any_bytes_are_forwarded_or_counted() {
    let mut bridge = bridge();
    let originals = [
        udp4([1, 2], 0, Ecn::Capable, b"x"),
        udp6([1, 2], 0, Ecn::Capable, b"x"),
        arp(1, address(2)),
        solicitation(1, address6(2)),
        pause_frame(station(1), &Pfc::new(1, 1)).to_vec(),
        tagged(&arp(1, address(2)), 3),
    ];
    for (number, frame) in damaged(&originals, 50_000).enumerate() {
        let port = number % 3;
        let before = bridge.counts()[port];
        let out = through(&mut bridge, port, &frame);
        let after = bridge.counts()[port];
        let dropped = |counts: super::super::PortCounts| {
            counts.malformed + counts.forged + counts.local + counts.pauses + counts.refused
        };
        assert_eq!(after.received, before.received + 1);
        assert_eq!(out.is_empty(), dropped(after) == dropped(before) + 1);
    }
}
