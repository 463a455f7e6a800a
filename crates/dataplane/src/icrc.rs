//! The invariant CRC of datagrams that leave through a UDP socket.
//!
//! The CRC covers parts of the IP header (InfiniBand architecture, volume 1, annex A17.3.3), which the kernel writes.
//! The addresses and ports are known. Linux sends without fragments and with identification 0 from a socket that is not
//! connected and asks for path MTU discovery, so those fields are known too: [`crate::Udp`] is such a socket.

use std::net::SocketAddrV4;

use selvedge_wire::{Bth, Ecn, Envelope, Icrc, Ipv4, Udp};

/// Returns the ICRC of `datagram`, which begins with its BTH; `None` if the BTH is cut off, or if the datagram does not
/// fit into an IPv4 packet.
pub(crate) fn of(from: SocketAddrV4, to: SocketAddrV4, datagram: &[u8]) -> Option<[u8; Icrc::LENGTH]> {
    let (bth, covered) = datagram.split_first_chunk::<{ Bth::LENGTH }>()?;
    let length = Udp::LENGTH + datagram.len() + Icrc::LENGTH;
    u16::try_from(Ipv4::LENGTH + length).ok()?;
    // Fields that routers may change count as ones, whatever their value here.
    let envelope = Envelope {
        source: *from.ip(),
        destination: *to.ip(),
        dscp: 0,
        ecn: Ecn::NotCapable,
        identification: 0,
        ttl: 0,
    };
    let udp = Udp { source: from.port(), destination: to.port(), length: length as u16, checksum: 0 };
    let mut crc = Icrc::begin(envelope.around(Ipv4::UDP, length).emit(), udp.emit(), *bth);
    crc.update(covered);
    Some(crc.finish())
}
