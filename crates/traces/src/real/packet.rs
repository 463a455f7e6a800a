//! Facts of a real frame that captures do not show and people want: its flow, and its place there.

use std::fmt;
use std::net::IpAddr;

use selvedge_wire::eqds::v1::PORT as EQDS;
use selvedge_wire::tcp::Flags;
use selvedge_wire::verbs::{self, opcode};
use selvedge_wire::{Bth, Ecn, EtherType, Ethernet, Icrc, Ipv4, Ipv6, Opcode, Syndrome, Udp, tcp};

/// UDP ports of RoCE: the registered one, and those beside it that software RNICs of one host share.
const ROCE: std::ops::Range<u16> = Udp::ROCE..Udp::ROCE + 64;
/// Bytes of a VLAN tag.
const TAG: usize = 4;

/// Facts of a frame, from its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameSummary {
    /// Addresses of sender and receiver, if the frame has an IP header.
    pub addresses: Option<[IpAddr; 2]>,
    /// Protocol, with the numbers of the packet.
    pub protocol: FrameProtocol,
    /// Bytes of payload behind all headers that are known.
    pub payload: u32,
    /// Offset of the IP header, if there is one.
    pub(crate) ip_at: Option<usize>,
}

/// Protocol of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameProtocol {
    /// TCP.
    Tcp {
        /// Ports of sender and receiver.
        ports: [u16; 2],
        /// Sequence number of the first octet.
        seq: u32,
        /// Sequence numbers that the segment takes: its payload, SYN and FIN.
        length: u32,
        /// Next octet that the sender expects, if the segment says.
        ack: Option<u32>,
        /// Control bits.
        flags: Flags,
    },
    /// RoCEv2.
    Roce {
        /// UDP port of the receiver.
        port: u16,
        /// Opcode of the BTH.
        opcode: u8,
        /// Queue pair of the receiver.
        qp: u32,
        /// PSN.
        psn: u32,
        /// Whether the packet is a negative acknowledgement: NAK or RNR NAK.
        is_nak: bool,
    },
    /// Packet of an EQDS tunnel.
    Eqds,
    /// Any other UDP datagram.
    Udp {
        /// Ports of sender and receiver.
        ports: [u16; 2],
    },
    /// IP without a known transport, or a fragment: number of the protocol.
    Ip(u8),
    /// No IP: EtherType.
    Ethernet(u16),
}

impl FrameSummary {
    /// Reads the first bytes of a frame; whatever cannot be read counts as an unknown protocol.
    pub fn read(frame: &[u8]) -> Self {
        let none = Self { addresses: None, protocol: FrameProtocol::Ethernet(0), payload: 0, ip_at: None };
        let Ok((ethernet, mut packet)) = Ethernet::parse(frame) else { return none };
        let (mut kind, mut at) = (ethernet.kind, Ethernet::LENGTH);
        if (kind == EtherType::VLAN || kind == EtherType::SERVICE_VLAN)
            && let Some((&[_, _, k0, k1], rest)) = packet.split_first_chunk::<TAG>()
        {
            (kind, packet, at) = (u16::from_be_bytes([k0, k1]), rest, at + TAG);
        }
        let other = Self { protocol: FrameProtocol::Ethernet(kind), ..none };
        let (addresses, protocol, length, rest) = match kind {
            EtherType::IPV4 => match Ipv4::parse_cut(packet) {
                Ok((ip, rest)) => {
                    let length = usize::from(ip.length).saturating_sub(Ipv4::LENGTH);
                    ([ip.source.into(), ip.destination.into()], ip.protocol, length, rest)
                }
                Err(_) => match packet.first_chunk::<{ Ipv4::LENGTH }>() {
                    // Options, or a fragment.
                    Some(&[0x45..=0x4f, _, l0, l1, _, _, _, _, _, protocol, _, _, a, b, c, d, e, f, g, h]) => {
                        let addresses = [[a, b, c, d].into(), [e, f, g, h].into()];
                        let payload = u32::from(u16::from_be_bytes([l0, l1])).saturating_sub(20);
                        let protocol = FrameProtocol::Ip(protocol);
                        return Self { addresses: Some(addresses), protocol, payload, ip_at: Some(at) };
                    }
                    _ => return other,
                },
            },
            EtherType::IPV6 => match Ipv6::parse_cut(packet) {
                Ok((ip, rest)) => {
                    ([ip.source.into(), ip.destination.into()], ip.protocol, usize::from(ip.length), rest)
                }
                Err(_) => return other,
            },
            _ => return other,
        };
        let (protocol, payload) = transport(protocol, length, rest);
        Self { addresses: Some(addresses), protocol, payload: payload as u32, ip_at: Some(at) }
    }

    /// Marks a frame as one that met congestion, as switches do.
    pub(crate) fn mark(&self, frame: &mut [u8]) {
        if let Some(packet) = self.ip_at.and_then(|at| frame.get_mut(at..)) {
            selvedge_wire::amend::mark(packet);
        }
    }

    /// Returns whether the frame says that it met congestion.
    pub fn is_marked(&self, frame: &[u8]) -> bool {
        let Some(packet) = self.ip_at.and_then(|at| frame.get(at..)) else { return false };
        let ecn =
            Ipv4::parse_cut(packet).map(|(ip, _)| ip.ecn).or_else(|_| Ipv6::parse_cut(packet).map(|(ip, _)| ip.ecn));
        ecn.is_ok_and(|ecn| ecn == Ecn::Marked)
    }

    /// Returns the title of the packet among those of its flow: "WRITE first 345", "data 1448 at 78213".
    pub fn title(&self) -> String {
        match self.protocol {
            FrameProtocol::Tcp { seq, ack, flags, .. } => {
                let named = [(Flags::SYN, "SYN"), (Flags::FIN, "FIN"), (Flags::RST, "RST")];
                let mut words: Vec<String> = named
                    .iter()
                    .filter(|(flag, _)| flags.contains(*flag))
                    .map(|(_, name)| (*name).to_owned())
                    .collect();
                if self.payload > 0 {
                    words.push(format!("data {} at {seq}", self.payload));
                }
                if let Some(ack) = ack.filter(|_| words.is_empty()) {
                    words.push(format!("ACK {ack}"));
                }
                words.join(" ")
            }
            FrameProtocol::Roce { opcode, psn, is_nak, .. } => {
                format!("{} {psn}", if is_nak { "NAK" } else { operation_name(opcode) })
            }
            FrameProtocol::Eqds => "EQDS".to_owned(),
            FrameProtocol::Udp { .. } => format!("datagram {}", self.payload),
            FrameProtocol::Ip(protocol) => match protocol {
                1 | 58 => "ICMP".to_owned(),
                other => format!("IP protocol {other}"),
            },
            FrameProtocol::Ethernet(EtherType::ARP) => "ARP".to_owned(),
            FrameProtocol::Ethernet(other) => format!("EtherType {other:#06x}"),
        }
    }
}

/// Names the direction of the packet's flow: "TCP 10.77.0.1:40000 > 10.77.0.2:5201".
impl fmt::Display for FrameSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some([from, to]) = self.addresses else { return f.write_str(&self.title()) };
        let end = |address: IpAddr, port: u16| std::net::SocketAddr::new(address, port);
        match self.protocol {
            FrameProtocol::Tcp { ports: [a, b], .. } => write!(f, "TCP {} > {}", end(from, a), end(to, b)),
            FrameProtocol::Udp { ports: [a, b] } => write!(f, "UDP {} > {}", end(from, a), end(to, b)),
            FrameProtocol::Roce { qp, .. } => write!(f, "RoCE {from} > {to} QP {qp}"),
            FrameProtocol::Eqds => write!(f, "EQDS {from} > {to}"),
            FrameProtocol::Ip(_) | FrameProtocol::Ethernet(_) => write!(f, "{} {from} > {to}", self.title()),
        }
    }
}

/// Reads what follows an IP header that announces `length` bytes, of which `bytes` are there.
fn transport(protocol: u8, length: usize, bytes: &[u8]) -> (FrameProtocol, usize) {
    let unknown = (FrameProtocol::Ip(protocol), length);
    match protocol {
        Ipv4::TCP => {
            let Ok((header, _)) = tcp::Header::parse(bytes) else { return unknown };
            let flags = header.segment.flags;
            let offset = bytes.get(12).map_or(0, |byte| 4 * usize::from(byte >> 4));
            let payload = length.saturating_sub(offset);
            let numbers =
                payload as u32 + u32::from(flags.contains(Flags::SYN)) + u32::from(flags.contains(Flags::FIN));
            let ack = flags.contains(Flags::ACK).then(|| header.segment.ack.get());
            let ports = [header.source, header.destination];
            (FrameProtocol::Tcp { ports, seq: header.segment.seq.get(), length: numbers, ack, flags }, payload)
        }
        Ipv4::UDP => {
            let Ok((udp, payload)) = Udp::parse_cut(bytes) else { return unknown };
            let length = usize::from(udp.length).saturating_sub(Udp::LENGTH);
            if ROCE.contains(&udp.destination)
                && let Ok((bth, _)) = Bth::parse(payload)
            {
                return roce(udp.destination, &bth, length, payload);
            }
            let ports = [udp.source, udp.destination];
            (if udp.destination == EQDS { FrameProtocol::Eqds } else { FrameProtocol::Udp { ports } }, length)
        }
        _ => unknown,
    }
}

fn roce(port: u16, bth: &Bth, length: usize, packet: &[u8]) -> (FrameProtocol, usize) {
    let headers = verbs::Headers::parse(packet).ok().map(|(headers, _)| headers);
    let is_nak = headers
        .and_then(|headers| headers.aeth)
        .is_some_and(|aeth| matches!(aeth.syndrome, Syndrome::Nak(_) | Syndrome::NotReady(_)));
    let is_nak = is_nak && bth.opcode == Opcode::ACKNOWLEDGE;
    let known = headers.map_or(Bth::LENGTH, |headers| headers.length());
    let payload = length.saturating_sub(known + Icrc::LENGTH + usize::from(bth.pad));
    let protocol = FrameProtocol::Roce { port, opcode: bth.opcode, qp: bth.destination.0, psn: bth.psn.get(), is_nak };
    (protocol, if carries_payload(bth.opcode) { payload } else { 0 })
}

/// Returns whether packets with this opcode may carry an application's bytes.
fn carries_payload(opcode: u8) -> bool {
    use opcode::operation::*;
    match opcode {
        Opcode::CONGESTION_NOTIFICATION | Opcode::NETRT => false,
        _ => !matches!(
            opcode & !opcode::SERVICE,
            READ_REQUEST | ACKNOWLEDGE | ATOMIC_ACKNOWLEDGE | COMPARE_SWAP | FETCH_ADD | READ_ACKNOWLEDGE | FLUSH
        ),
    }
}

/// Returns the name of an opcode.
fn operation_name(opcode: u8) -> &'static str {
    use opcode::operation::*;
    match opcode {
        Opcode::CONGESTION_NOTIFICATION => return "CNP",
        Opcode::NETRT => return "NetRT",
        _ => {}
    }
    match opcode & !opcode::SERVICE {
        SEND_FIRST => "Send first",
        SEND_MIDDLE => "Send middle",
        SEND_LAST | SEND_LAST_IMMEDIATE | SEND_LAST_INVALIDATE => "Send last",
        SEND_ONLY | SEND_ONLY_IMMEDIATE | SEND_ONLY_INVALIDATE => "Send only",
        WRITE_FIRST => "Write first",
        WRITE_MIDDLE => "Write middle",
        WRITE_LAST | WRITE_LAST_IMMEDIATE => "Write last",
        WRITE_ONLY | WRITE_ONLY_IMMEDIATE => "Write only",
        READ_REQUEST => "Read request",
        READ_RESPONSE_FIRST => "Read response first",
        READ_RESPONSE_MIDDLE => "Read response middle",
        READ_RESPONSE_LAST => "Read response last",
        READ_RESPONSE_ONLY => "Read response only",
        ACKNOWLEDGE => "ACK",
        ATOMIC_ACKNOWLEDGE => "atomic ACK",
        COMPARE_SWAP | FETCH_ADD => "atomic",
        READ_ACKNOWLEDGE => "Read ACK",
        FLUSH => "flush",
        ATOMIC_WRITE => "atomic write",
        _ => "packet",
    }
}
