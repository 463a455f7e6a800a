//! Facts that switches need about an Ethernet frame, and the changes that they make to it.
//!
//! ```text
//! Ethernet 14 | tag 4, or none | IPv4 or IPv6 | TCP, UDP, ... | payload         (no FCS: interfaces strip it)
//! ```
//!
//! 1. A switch reads and does not judge: checksums, lengths and versions that it does not need are the receiver's
//!    business. A field that cannot be read has its default, and the frame is forwarded as one that carries data.
//! 2. The class is the tag's priority (PCP) where there is a tag, else the upper three bits of the DSCP, else 0.
//! 3. The flow hash covers addresses, protocol and ports. RoCEv2 senders put a flow's entropy into the UDP source port,
//!    EQDS tunnels a path's. All fragments of a datagram hash alike: ports are in the first one only.

use std::net::IpAddr;

use selvedge_units::mix64;
use selvedge_wire::verbs::opcode::operation;
use selvedge_wire::{Ecn, EtherType, Ethernet, Ipv4, Ipv6, MacAddress, Opcode, Udp, amend};

/// UDP ports of RoCE: the registered one, and those beside it that software RNICs of one host share.
pub(super) const ROCE: std::ops::Range<u16> = Udp::ROCE..Udp::ROCE + 64;
/// Bytes of a tag.
const TAG: usize = 4;
/// Bytes of the frame check sequence, which interfaces add and strip.
const FCS: usize = 4;

/// A frame as a switch sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Address of the receiver.
    pub destination: MacAddress,
    /// Address of the sender.
    pub source: MacAddress,
    /// Type of the payload, behind the tag if there is one.
    pub kind: u16,
    /// Traffic class, 0 to 7.
    pub class: u8,
    /// ECN field of the IP header; not capable without one.
    pub ecn: Ecn,
    /// Hash of the flow, of which ECMP makes a choice.
    pub flow: u32,
    /// Whether the frame counts as data. Acknowledgements and notifications do not.
    pub has_data: bool,
    /// Bytes on a link, the FCS and padding to the shortest frame included; preamble and gap not.
    pub bytes: u16,
    /// Offset of the payload's first byte, behind the tag if there is one.
    pub payload_at: u16,
    /// Addresses of the IP header and what follows it, if the frame has one.
    pub ip: Option<Ip>,
}

/// Facts of an IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ip {
    /// Address of the sender.
    pub source: IpAddr,
    /// Address of the receiver.
    pub destination: IpAddr,
    /// Protocol of what follows.
    pub protocol: u8,
    /// Offset in the frame of the header of what follows. `None` for a fragment, and if it is missing.
    pub transport_at: Option<u16>,
}

impl Facts {
    /// Reads a frame; `None` if it is shorter than an Ethernet header, or longer than a link carries.
    pub fn parse(frame: &[u8]) -> Option<Self> {
        let (ethernet, _) = Ethernet::parse(frame).ok()?;
        let bytes = u16::try_from(frame.len().max(Ethernet::MINIMUM) + FCS).ok()?;
        let mut facts = Self {
            destination: ethernet.destination,
            source: ethernet.source,
            kind: ethernet.kind,
            class: 0,
            ecn: Ecn::NotCapable,
            flow: 0,
            has_data: true,
            bytes,
            payload_at: Ethernet::LENGTH as u16,
            ip: None,
        };
        let tag = (ethernet.kind == EtherType::VLAN || ethernet.kind == EtherType::SERVICE_VLAN)
            .then(|| frame.get(Ethernet::LENGTH..)?.first_chunk::<TAG>())
            .flatten();
        if let Some(&[control, _, k0, k1]) = tag {
            facts.kind = u16::from_be_bytes([k0, k1]);
            facts.class = control >> 5;
            facts.payload_at += TAG as u16;
        }
        let at = usize::from(facts.payload_at);
        match (facts.kind, frame.get(at..).unwrap_or_default()) {
            (EtherType::IPV4, packet) => facts.read_ipv4(packet, tag.is_some()),
            (EtherType::IPV6, packet) => facts.read_ipv6(packet, tag.is_some()),
            _ => {}
        }
        facts.flow = facts.hash(frame);
        facts.has_data = facts.ip.is_none_or(|ip| ip.has_data(frame));
        Some(facts)
    }

    fn read_ipv4(&mut self, packet: &[u8], is_tagged: bool) {
        let Some(header) = packet.first_chunk::<{ Ipv4::LENGTH }>() else { return };
        let &[version, byte, _, _, _, _, f0, f1, _, protocol, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = header;
        let length = 4 * usize::from(version & 0xf);
        if version >> 4 != 4 || length < Ipv4::LENGTH {
            return;
        }
        self.read_tos(byte, is_tagged);
        let is_fragment = u16::from_be_bytes([f0, f1]) & 0x3fff != 0;
        self.ip = Some(Ip {
            source: [s0, s1, s2, s3].into(),
            destination: [d0, d1, d2, d3].into(),
            protocol,
            transport_at: (!is_fragment && packet.len() > length).then_some(self.payload_at + length as u16),
        });
    }

    /// Reads an IPv6 header. Extension headers count as the protocol: flows that have them are told apart by addresses.
    fn read_ipv6(&mut self, packet: &[u8], is_tagged: bool) {
        let Some(header) = packet.first_chunk::<{ Ipv6::LENGTH }>() else { return };
        if header[0] >> 4 != 6 {
            return;
        }
        self.read_tos(header[0] << 4 | header[1] >> 4, is_tagged);
        let address = |at: usize| IpAddr::from(std::array::from_fn::<u8, 16, _>(|byte| header[at + byte]));
        self.ip = Some(Ip {
            source: address(8),
            destination: address(24),
            protocol: header[6],
            transport_at: (packet.len() > Ipv6::LENGTH).then_some(self.payload_at + Ipv6::LENGTH as u16),
        });
    }

    /// Reads the byte of DSCP and ECN.
    fn read_tos(&mut self, byte: u8, is_tagged: bool) {
        if !is_tagged {
            self.class = byte >> 5;
        }
        self.ecn = match byte & 0b11 {
            0b00 => Ecn::NotCapable,
            0b11 => Ecn::Marked,
            _ => Ecn::Capable,
        };
    }

    fn hash(&self, frame: &[u8]) -> u32 {
        let mixed = |sum: u64, word: u64| mix64(sum ^ word).wrapping_add(sum);
        let number = |MacAddress([a, b, c, d, e, f]): MacAddress| u64::from_be_bytes([0, 0, a, b, c, d, e, f]);
        let Some(ip) = self.ip else {
            let ends = mixed(number(self.source), number(self.destination));
            return (mixed(ends, self.kind.into()) >> 32) as u32;
        };
        let ports = ip.ports(frame).map_or(0, |[source, destination]| u64::from(source) << 16 | u64::from(destination));
        let words = |address: IpAddr| match address {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            IpAddr::V6(address) => {
                let bits = address.to_bits();
                mixed((bits >> 64) as u64, bits as u64)
            }
        };
        let ends = mixed(mixed(1, words(ip.source)), words(ip.destination));
        (mixed(ends, ports << 8 | u64::from(ip.protocol)) >> 32) as u32
    }
}

impl Ip {
    /// Returns the ports of TCP or UDP, source first.
    pub fn ports(&self, frame: &[u8]) -> Option<[u16; 2]> {
        if self.protocol != Ipv4::TCP && self.protocol != Ipv4::UDP {
            return None;
        }
        let &[s0, s1, d0, d1] = frame.get(usize::from(self.transport_at?)..)?.first_chunk()?;
        Some([u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])])
    }

    fn has_data(&self, frame: &[u8]) -> bool {
        let Some(at) = self.transport_at.map(usize::from) else { return true };
        let segment = frame.get(at..).unwrap_or_default();
        match self.protocol {
            Ipv4::TCP => {
                let end = self.end_of_packet(frame, at);
                let header = segment.get(12).map_or(0, |offset| 4 * usize::from(offset >> 4));
                at + header < end
            }
            Ipv4::UDP if self.ports(frame).is_some_and(|[_, port]| ROCE.contains(&port)) => {
                segment.get(Udp::LENGTH).is_none_or(|opcode| roce_has_data(*opcode))
            }
            _ => true,
        }
    }

    /// Returns the offset behind the IP packet, before the padding of a short frame.
    fn end_of_packet(&self, frame: &[u8], transport_at: usize) -> usize {
        let said = |back: usize| {
            let at = transport_at.checked_sub(back)?;
            let &[high, low] = frame.get(at..)?.first_chunk()?;
            Some(usize::from(u16::from_be_bytes([high, low])))
        };
        let end = match self.source {
            // Acknowledgements with IP options are rare: they count as data.
            IpAddr::V4(_) => said(Ipv4::LENGTH - 2).map(|length| (transport_at - Ipv4::LENGTH).saturating_add(length)),
            IpAddr::V6(_) => said(Ipv6::LENGTH - 4).map(|length| transport_at.saturating_add(length)),
        };
        end.map_or(frame.len(), |end| end.min(frame.len()))
    }
}

/// Returns whether a RoCE packet counts as data: all but acknowledgements, notifications and NetRT's messages do, as in
/// the simulator, requests without payload included.
fn roce_has_data(opcode: u8) -> bool {
    !matches!(
        opcode,
        operation::ACKNOWLEDGE | operation::READ_ACKNOWLEDGE | Opcode::CONGESTION_NOTIFICATION | Opcode::NETRT
    )
}

/// Marks a frame as one that met congestion (ECN). Returns whether it can carry the mark and had none.
pub fn mark(frame: &mut [u8], facts: &Facts) -> bool {
    facts.ip.is_some() && frame.get_mut(usize::from(facts.payload_at)..).is_some_and(amend::mark)
}
