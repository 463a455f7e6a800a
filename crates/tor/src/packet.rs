//! A RoCEv2 packet as a switch reads it, and what a switch changes in packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crc32fast::Hasher;
use selvedge_units::{Psn, QpNumber};
use selvedge_wire::netrt::Message;
use selvedge_wire::verbs::opcode::{operation, psns};
use selvedge_wire::{Bth, Ecn, Envelope, Icrc, Ipv4, Ipv6, Opcode, Reth, Udp};

/// UDP ports of RoCE: the registered one, and those beside it that software RNICs of one host share.
const PORTS: std::ops::Range<u16> = Udp::ROCE..Udp::ROCE + 64;
/// Time to live of messages.
const TTL: u8 = 64;
/// Partition of messages: the default one.
const PARTITION: u16 = 0xffff;
/// First UDP source port of RoCE's range for entropy (annex A17): messages take one of it by flow.
const ENTROPY: u16 = 0xc000;

/// The headers of a RoCEv2 packet, up to its BTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// DSCP, 6 bits.
    pub dscp: u8,
    /// UDP destination port.
    pub port: u16,
    /// Base transport header.
    pub bth: Bth,
    /// Offset of the UDP header.
    udp_at: usize,
    /// Offset behind the ICRC.
    end: usize,
}

impl Headers {
    /// Reads the headers of an IP packet; `None` if it is no whole RoCEv2 packet: another protocol, a fragment, IP
    /// options, a wrong length.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let (source, destination, dscp, udp_at, datagram): (IpAddr, IpAddr, _, _, _) = match packet.first()? >> 4 {
            4 => {
                let (ip, datagram) = Ipv4::parse(packet).ok().filter(|(ip, _)| ip.protocol == Ipv4::UDP)?;
                (ip.source.into(), ip.destination.into(), ip.dscp, Ipv4::LENGTH, datagram)
            }
            6 => {
                let (ip, datagram) = Ipv6::parse(packet).ok().filter(|(ip, _)| ip.protocol == Ipv4::UDP)?;
                (ip.source.into(), ip.destination.into(), ip.dscp, Ipv6::LENGTH, datagram)
            }
            _ => return None,
        };
        let (udp, payload) = Udp::parse(datagram).ok().filter(|(udp, _)| PORTS.contains(&udp.destination))?;
        let (bth, rest) = Bth::parse(payload).ok().filter(|(_, rest)| rest.len() >= Icrc::LENGTH)?;
        let end = udp_at + Udp::LENGTH + Bth::LENGTH + rest.len();
        Some(Self { source, destination, dscp, port: udp.destination, bth, udp_at, end })
    }

    /// Returns the bytes between BTH and ICRC.
    pub fn content<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet.get(self.udp_at + Udp::LENGTH + Bth::LENGTH..self.end - Icrc::LENGTH).unwrap_or_default()
    }

    /// Returns whether the ICRC is right.
    pub fn is_intact(&self, packet: &[u8]) -> bool {
        let sent = packet.get(self.end - Icrc::LENGTH..self.end);
        sent.is_some() && icrc(packet, self.udp_at, self.end - Icrc::LENGTH).as_ref().map(|crc| &crc[..]) == sent
    }

    /// Returns the flow's queue pair: software RNICs of one host number theirs separately, and differ in the port.
    pub fn queue_pair(&self) -> QpNumber {
        QpNumber(self.bth.destination.0 | u32::from(self.port - PORTS.start) << 24)
    }

    /// Returns the number of PSNs that a request of a reliable connection takes where full packets have `path_mtu`
    /// bytes; `None` for packets whose order is not tracked.
    pub fn psns(&self, packet: &[u8], path_mtu: u32) -> Option<u32> {
        let length = match self.bth.opcode {
            operation::READ_REQUEST => Reth::parse(self.content(packet)).ok()?.0.length,
            _ => 0,
        };
        psns(self.bth.opcode, length, path_mtu)
    }

    /// Returns the path MTU that a packet shows, in bytes: the first or a middle one of a message is full.
    pub fn path_mtu(&self, packet: &[u8]) -> Option<u32> {
        use operation::*;
        let is_full = [SEND_FIRST, SEND_MIDDLE, WRITE_FIRST, WRITE_MIDDLE];
        let length = self.content(packet).len();
        // Headers before the payload do not reach the next power of two.
        let mtu = (length > 0).then(|| 1 << length.ilog2())?;
        (is_full.contains(&self.bth.opcode) && (256..=4096).contains(&mtu)).then_some(mtu)
    }

    /// Returns the message to a switch that an intact packet is; `None` if it is malformed.
    pub(crate) fn message(&self, packet: &[u8]) -> Option<Message> {
        Message::parse(self.content(packet)).ok().filter(|(_, rest)| rest.is_empty()).map(|(message, _)| message)
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

/// Sender and receiver of a message, with what a switch needs to find the flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    /// Queue pair of the flow, as [`Headers::queue_pair`] returns it.
    pub(crate) qp: QpNumber,
    pub(crate) dscp: u8,
}

/// Appends the packet of a message between switches; nothing if the addresses are of different families.
pub(crate) fn emit_message(to: &Address, message: &Message, packet: &mut Vec<u8>) {
    let QpNumber(qp) = to.qp;
    let bth = Bth {
        opcode: Opcode::NETRT,
        partition: PARTITION,
        destination: QpNumber(qp & 0xff_ffff),
        psn: Psn::new(0),
        ..Bth::default()
    };
    let mut content = [0; Message::LONGEST];
    let content = &mut content[..message.length()];
    message.emit(content);
    let length = (Udp::LENGTH + Bth::LENGTH + content.len() + Icrc::LENGTH) as u16;
    let port = ENTROPY | qp as u16 & !ENTROPY;
    let udp = Udp { source: port, destination: PORTS.start + (qp >> 24) as u16, length, checksum: 0 };
    let pseudo = match (to.source, to.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet.extend_from_slice(&envelope(source, destination, to.dscp).around(Ipv4::UDP, length.into()).emit());
            None
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let ip = ipv6(source, destination, to.dscp, length);
            packet.extend_from_slice(&ip.emit());
            Some(ip.pseudo_header(length))
        }
        _ => return,
    };
    let udp_at = packet.len();
    packet.extend_from_slice(&udp.emit());
    packet.extend_from_slice(&bth.emit());
    packet.extend_from_slice(content);
    let crc = icrc(packet, udp_at, packet.len()).expect("the headers are there");
    packet.extend_from_slice(&crc);
    // Over IPv6 a checksum is mandatory.
    if let Some(pseudo) = pseudo {
        let checksum = Udp::checksum_of(&packet[udp_at..], pseudo);
        packet[udp_at + 6..udp_at + 8].copy_from_slice(&checksum.to_be_bytes());
    }
}

fn envelope(source: Ipv4Addr, destination: Ipv4Addr, dscp: u8) -> Envelope {
    Envelope { source, destination, dscp, ecn: Ecn::NotCapable, identification: 0, ttl: TTL }
}

fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, dscp: u8, length: u16) -> Ipv6 {
    let ecn = Ecn::NotCapable;
    Ipv6 { dscp, ecn, flow_label: 0, length, protocol: Ipv4::UDP, hop_limit: TTL, source, destination }
}
