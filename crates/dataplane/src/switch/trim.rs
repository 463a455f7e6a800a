//! Trimming: cutting a frame to its headers where it would have been dropped.
//!
//! The receiver must be able to tell that a packet was trimmed, and must be able to trust the headers that are left.
//! Data packets of EQDS tunnels (version 1) are the only ones on real links that allow both: their header has a flag, a
//! length of its own and a MAC that covers neither flag nor payload. A RoCEv2 packet without its payload has a wrong
//! ICRC, and a TCP segment a wrong checksum: receivers drop both, so that sending them on would only take room. A
//! switch drops frames that cannot be trimmed, and counts them.

use selvedge_wire::eqds::v1::{Body, Flags, PORT, Packet};
use selvedge_wire::{Ipv4, Ipv6, Udp, amend};

use super::frame::Facts;

/// Offset of the flags in the header of a tunnel's packet.
const FLAGS_AT: usize = 1;

/// Cuts a frame to its headers and records that in them. Lengths and checksums of IP and UDP become those of the
/// shorter packet. `facts` are those of the whole frame. Returns whether the frame was trimmed: only data of EQDS
/// tunnels can be, and only once.
pub fn trim(frame: &mut Vec<u8>, facts: &Facts) -> bool {
    let Some(Tunnel { payload_at, header }) = Tunnel::of(frame, facts) else { return false };
    let (ip_at, udp_at) = (usize::from(facts.payload_at), payload_at - Udp::LENGTH);
    frame.truncate(payload_at + header);
    frame[payload_at + FLAGS_AT] |= Flags::TRIMMED.bits();
    let length = (frame.len() - udp_at) as u16;
    frame[udp_at + 4..udp_at + 8].copy_from_slice(&[length.to_be_bytes(), [0; 2]].concat());
    let packet = &mut frame[ip_at..];
    let pseudo = match packet[0] >> 4 {
        4 => {
            amend::set_length(packet, packet.len() as u16);
            // No checksum is one that is right; headers with options are too rare to compute another.
            Ipv4::parse_cut(packet).ok().map(|(ip, _)| ip.pseudo_header(length))
        }
        _ => {
            amend::set_length(packet, (packet.len() - Ipv6::LENGTH) as u16);
            Ipv6::parse_cut(packet).ok().map(|(ip, _)| ip.pseudo_header(length))
        }
    };
    if let Some(pseudo) = pseudo {
        let checksum = Udp::checksum_of(&frame[udp_at..], pseudo);
        frame[udp_at + 6..udp_at + 8].copy_from_slice(&checksum.to_be_bytes());
    }
    true
}

/// Returns whether a frame can be trimmed.
pub fn can_be_trimmed(frame: &[u8], facts: &Facts) -> bool {
    Tunnel::of(frame, facts).is_some()
}

/// A data packet of a tunnel, whole.
struct Tunnel {
    /// Offset of the UDP payload in the frame.
    payload_at: usize,
    /// Bytes of the packet's header.
    header: usize,
}

impl Tunnel {
    fn of(frame: &[u8], facts: &Facts) -> Option<Self> {
        let ip = facts.ip.filter(|ip| ip.protocol == Ipv4::UDP)?;
        let [_, port] = ip.ports(frame)?;
        let udp_at = usize::from(ip.transport_at?);
        let (_, payload) = Udp::parse(frame.get(udp_at..)?).ok().filter(|_| port == PORT)?;
        let parsed = Packet::parse(payload).ok()?;
        let is_data =
            matches!(parsed.packet.body, Body::Data(_)) && parsed.payload().is_some_and(|rest| !rest.is_empty());
        is_data.then_some(Self { payload_at: udp_at + Udp::LENGTH, header: parsed.header().len() })
    }
}
