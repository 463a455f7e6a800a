//! Checksums that a kernel left to an interface.

use std::net::IpAddr;

use selvedge_wire::{Ipv4, Ipv6, Udp};

use super::frame::Facts;

/// Offset of TCP's checksum in its header.
const OF_TCP: usize = 16;
/// Offset of UDP's checksum in its header.
const OF_UDP: usize = 6;

/// A TCP segment or UDP datagram in a frame.
struct Segment {
    at: usize,
    length: usize,
    /// Offset of the checksum in the frame.
    checksum_at: usize,
    /// Sum of the pseudo-header.
    pseudo: u16,
}

impl Segment {
    fn of(frame: &[u8]) -> Option<Self> {
        let facts = Facts::parse(frame)?;
        let ip = facts.ip?;
        let at = usize::from(ip.transport_at?);
        let checksum_at = at
            + match ip.protocol {
                Ipv4::TCP => OF_TCP,
                Ipv4::UDP => OF_UDP,
                _ => return None,
            };
        let packet = frame.get(usize::from(facts.payload_at)..)?;
        let (length, pseudo) = match ip.source {
            IpAddr::V4(_) => {
                let (ip, payload) = Ipv4::parse(packet).ok()?;
                (payload.len(), ip.pseudo_header(payload.len() as u16))
            }
            IpAddr::V6(_) => {
                let (ip, payload) = Ipv6::parse(packet).ok()?;
                (payload.len(), ip.pseudo_header(payload.len() as u16))
            }
        };
        (checksum_at + 2 <= at + length).then_some(Self { at, length, checksum_at, pseudo })
    }
}

/// Returns whether a kernel has left the checksum of a TCP segment or UDP datagram to an interface: in its place stands
/// the sum of the pseudo-header. A right checksum may look so, too: completing it does not change it.
pub(super) fn is_left_out(frame: &[u8]) -> bool {
    Segment::of(frame)
        .is_some_and(|segment| frame[segment.checksum_at..segment.checksum_at + 2] == segment.pseudo.to_be_bytes())
}

/// Computes the checksum of a TCP segment or UDP datagram in a frame, in whose place the kernel has left another value.
/// Frames of other protocols are left alone.
pub(super) fn complete(frame: &mut [u8]) {
    let Some(Segment { at, length, checksum_at, pseudo }) = Segment::of(frame) else { return };
    frame[checksum_at..checksum_at + 2].fill(0);
    let checksum = Udp::checksum_of(&frame[at..at + length], pseudo);
    frame[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
}
