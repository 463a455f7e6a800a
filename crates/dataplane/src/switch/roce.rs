//! Headers of RoCEv2 packets as NetRT's switches read them.
//!
//! 1. NetRT repairs requests of reliable connections: Sends, Writes, Atomics, and Read requests. Read responses and
//!    acknowledgements of Atomics travel in the PSN space of the other direction, with gaps where other requests were:
//!    they pass untouched, like acknowledgements, datagrams, unreliable connections and the connection manager, and the
//!    NIC recovers them.
//! 2. No state moves before the ICRC is verified: a damaged packet is a lost one. It is forwarded, since the NIC drops
//!    it anyway.
//! 3. Whatever is not understood is forwarded: other protocols, flows beyond the table, IP options, fragments.

use crc32fast::Hasher;
use selvedge_units::QpNumber;
use selvedge_wire::verbs::opcode::{operation, psns};
use selvedge_wire::{Bth, Icrc, Ipv4, Ipv6, Reth, Udp};

use super::frame::ROCE;

/// Headers of a RoCEv2 packet, up to its BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Headers {
    /// UDP destination port.
    port: u16,
    /// Base transport header.
    pub(super) bth: Bth,
    /// Offset of the UDP header.
    udp_at: usize,
    /// Offset behind the ICRC.
    end: usize,
}

impl Headers {
    /// Reads the headers of an IP packet; `None` if it is no whole RoCEv2 packet: another protocol, a fragment, IP
    /// options, a wrong length.
    pub(super) fn parse(packet: &[u8]) -> Option<Self> {
        let (udp_at, datagram) = match packet.first()? >> 4 {
            4 => (Ipv4::LENGTH, Ipv4::parse(packet).ok().filter(|(ip, _)| ip.protocol == Ipv4::UDP)?.1),
            6 => (Ipv6::LENGTH, Ipv6::parse(packet).ok().filter(|(ip, _)| ip.protocol == Ipv4::UDP)?.1),
            _ => return None,
        };
        let (udp, payload) = Udp::parse(datagram).ok().filter(|(udp, _)| ROCE.contains(&udp.destination))?;
        let (bth, rest) = Bth::parse(payload).ok().filter(|(_, rest)| rest.len() >= Icrc::LENGTH)?;
        let end = udp_at + Udp::LENGTH + Bth::LENGTH + rest.len();
        Some(Self { port: udp.destination, bth, udp_at, end })
    }

    /// Returns the bytes between BTH and ICRC.
    fn content<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.udp_at + Udp::LENGTH + Bth::LENGTH..self.end - Icrc::LENGTH).unwrap_or_default()
    }

    /// Returns whether the ICRC is right.
    pub(super) fn is_intact(&self, packet: &[u8]) -> bool {
        let sent = packet.get(self.end - Icrc::LENGTH..self.end);
        sent.is_some() && icrc(packet, self.udp_at, self.end - Icrc::LENGTH).as_ref().map(|crc| &crc[..]) == sent
    }

    /// Returns the flow's queue pair: software RNICs of one host number theirs separately, and differ in the port.
    pub(super) fn queue_pair(&self) -> QpNumber {
        QpNumber(self.bth.destination.0 | u32::from(self.port - ROCE.start) << 24)
    }

    /// Returns the number of PSNs that a request of a reliable connection takes where full packets have `path_mtu`
    /// bytes; `None` for packets whose order is not tracked.
    pub(super) fn psns(&self, packet: &[u8], path_mtu: u32) -> Option<u32> {
        let length = match self.bth.opcode {
            operation::READ_REQUEST => Reth::parse(self.content(packet)).ok()?.0.length,
            _ => 0,
        };
        psns(self.bth.opcode, length, path_mtu)
    }

    /// Returns the path MTU that a packet shows, in bytes: the first or a middle one of a message is full.
    pub(super) fn path_mtu(&self, packet: &[u8]) -> Option<u32> {
        use operation::*;
        let is_full = [SEND_FIRST, SEND_MIDDLE, WRITE_FIRST, WRITE_MIDDLE];
        let length = self.content(packet).len();
        // Headers before the payload do not reach the next power of two.
        let mtu = (length > 0).then(|| 1 << length.ilog2())?;
        (is_full.contains(&self.bth.opcode) && (256..=4096).contains(&mtu)).then_some(mtu)
    }
}

/// Returns the ICRC of a packet whose covered bytes end at `end`.
fn icrc(packet: &[u8], udp_at: usize, end: usize) -> Option<[u8; Icrc::LENGTH]> {
    let (udp, rest) = packet.get(udp_at..end)?.split_first_chunk::<{ Udp::LENGTH }>()?;
    let (bth, rest) = rest.split_first_chunk::<{ Bth::LENGTH }>()?;
    let headers = match udp_at {
        Ipv4::LENGTH => Icrc::begin(*packet.first_chunk()?, *udp, *bth),
        _ => Icrc::begin_ipv6(*packet.first_chunk()?, *udp, *bth),
    };
    // Where the processor can, many bytes at a time.
    let mut crc = Hasher::new_with_initial(u32::from_le_bytes(headers.finish()));
    crc.update(rest);
    Some(crc.finalize().to_le_bytes())
}
