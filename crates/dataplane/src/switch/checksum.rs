//! Checksums that a kernel left to an interface.

use selvedge_wire::{Ipv4, Ipv6, Udp};

use super::frame::Facts;

/// Offset of TCP's checksum in its header.
const OF_TCP: usize = 16;
/// Offset of UDP's checksum in its header.
const OF_UDP: usize = 6;

/// Computes the checksum of a TCP segment or UDP datagram in a frame, in whose place the kernel has left another value.
/// Frames of other protocols are left alone.
pub(super) fn complete(frame: &mut [u8]) {
    let Some(facts) = Facts::parse(frame) else { return };
    let Some(ip) = facts.ip else { return };
    let Some(at) = ip.transport_at.map(usize::from) else { return };
    let place = match ip.protocol {
        Ipv4::TCP => OF_TCP,
        Ipv4::UDP => OF_UDP,
        _ => return,
    };
    let packet = frame.get(usize::from(facts.payload_at)..).unwrap_or_default();
    let parsed = match ip.source {
        std::net::IpAddr::V4(_) => {
            Ipv4::parse(packet).ok().map(|(ip, payload)| (payload.len(), ip.pseudo_header(payload.len() as u16)))
        }
        std::net::IpAddr::V6(_) => {
            Ipv6::parse(packet).ok().map(|(ip, payload)| (payload.len(), ip.pseudo_header(payload.len() as u16)))
        }
    };
    let Some((length, pseudo)) = parsed else { return };
    let Some(segment) = frame.get_mut(at..at + length).filter(|segment| segment.len() >= place + 2) else { return };
    segment[place..place + 2].fill(0);
    let checksum = Udp::checksum_of(segment, pseudo);
    segment[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
}
