//! Tests of the switch's pure parts.

mod bridge;
mod frame;
mod trim;

use std::net::{Ipv4Addr, Ipv6Addr};

use selvedge_units::{Domain, Rng};
use selvedge_wire::{Ecn, Envelope, EtherType, Ethernet, Ipv4, Ipv6, MacAddress, Udp};

/// Returns the address of a host's interface.
fn station(host: u32) -> MacAddress {
    MacAddress::local(host)
}

/// Returns the IPv4 address of a host.
fn address(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 0, host)
}

/// Returns the IPv6 address of a host.
fn address6(host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host)
}

/// Returns a frame from one station to another.
fn frame(from: MacAddress, to: MacAddress, kind: u16, content: &[u8]) -> Vec<u8> {
    [&Ethernet { destination: to, source: from, kind }.emit()[..], content].concat()
}

/// Returns a frame with a UDP datagram over IPv4, from host 1 to host 2.
fn udp4(ports: [u16; 2], dscp: u8, ecn: Ecn, payload: &[u8]) -> Vec<u8> {
    let length = (Udp::LENGTH + payload.len()) as u16;
    let envelope = Envelope { source: address(1), destination: address(2), dscp, ecn, identification: 7, ttl: 64 };
    let ip = envelope.around(Ipv4::UDP, length.into());
    let packet = [&ip.emit()[..], &datagram(ports, payload, ip.pseudo_header(length))].concat();
    frame(station(1), station(2), EtherType::IPV4, &packet)
}

/// Returns a frame with a UDP datagram over IPv6, from host 1 to host 2.
fn udp6(ports: [u16; 2], dscp: u8, ecn: Ecn, payload: &[u8]) -> Vec<u8> {
    let length = (Udp::LENGTH + payload.len()) as u16;
    let (source, destination) = (address6(1), address6(2));
    let ip = Ipv6 { dscp, ecn, flow_label: 5, length, protocol: Ipv4::UDP, hop_limit: 64, source, destination };
    let packet = [&ip.emit()[..], &datagram(ports, payload, ip.pseudo_header(length))].concat();
    frame(station(1), station(2), EtherType::IPV6, &packet)
}

fn datagram([source, destination]: [u16; 2], payload: &[u8], pseudo: u16) -> Vec<u8> {
    let length = (Udp::LENGTH + payload.len()) as u16;
    let mut bytes = [&Udp { source, destination, length, checksum: 0 }.emit()[..], payload].concat();
    let checksum = Udp::checksum_of(&bytes, pseudo);
    bytes[6..8].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

/// Returns a frame with a tag of this priority.
fn tagged(frame: &[u8], priority: u8) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(12);
    [addresses, &[0x81, 0x00, priority << 5, 7], rest].concat()
}

/// Returns whether the checksums of IP and UDP in a frame are right.
fn has_right_checksums(frame: &[u8]) -> bool {
    let (ethernet, packet) = Ethernet::parse(frame).expect("a frame");
    let (payload, pseudo) = if ethernet.kind == EtherType::IPV4 {
        let Ok((ip, payload)) = Ipv4::parse(packet) else { return false };
        (payload, ip.pseudo_header(payload.len() as u16))
    } else {
        let Ok((ip, payload)) = Ipv6::parse(packet) else { return false };
        (payload, ip.pseudo_header(payload.len() as u16))
    };
    // The sum over data with their checksum is all ones, whose complement is the mark of "none".
    Udp::parse(payload).is_ok() && Udp::checksum_of(payload, pseudo) == u16::MAX
}

/// Returns frames that are nearly right: each is one of `originals`, cut, lengthened and with some bytes changed.
fn damaged(originals: &[Vec<u8>], count: u64) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(move |number| {
        let mut rng = Rng::stream(number, Domain::Impairment, 0);
        let mut frame = originals[rng.below(originals.len() as u64) as usize].clone();
        for _ in 0..rng.below(6) {
            if !frame.is_empty() {
                let at = rng.below(frame.len() as u64) as usize;
                frame[at] = rng.next_u64() as u8;
            }
        }
        if rng.below(2) == 0 {
            frame.truncate(rng.below(frame.len() as u64 + 1) as usize);
        }
        if rng.below(4) == 0 {
            frame.extend((0..rng.below(90)).map(|_| rng.next_u64() as u8));
        }
        frame
    })
}
