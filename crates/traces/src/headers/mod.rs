//! The frame that a RoCEv2 NIC would send for a packet of the simulator.
//!
//! Design notes.
//! 1. *One Ethernet segment.* Frames go from NIC to NIC with the same addresses on every link; switches change only
//!    ECN. Host `n` has the address 10.0.0.1 + `n` and the MAC address 02:00 followed by `n`; switch ports, which send
//!    pauses, have MAC addresses of their own.
//! 2. *A flow is one RDMA Write*, or one TCP connection (`tcp.rs`). The Write's first packet carries a RETH with the
//!    flow's size, and the flow's number as key. The simulator does not charge for that header, nor for padding, nor
//!    for the extension of IRN's NACKs; frames that have these are longer here. Headers that a scheme adds to each
//!    packet (IRN, section 6.3) become payload.
//! 3. *NDP* has no dissector: its packets have the form of RoCE's, its pulls that of acknowledgements whose MSN is the
//!    number of the pull. A trimmed packet keeps its headers, with the lengths of the whole packet.
//! 4. *Applications' queue pairs* (`[workload.verbs]`) have real headers, which are recorded beside their packets.
//! 5. *Tunnels* of EQDS are told apart by their hosts' addresses and the header's sender ID, which is the sending EQIF.
//! 6. *Priorities* are DSCPs, eight times the priority: no frame has a VLAN tag.

mod tcp;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use selvedge_sim::SimConfig;
use selvedge_telemetry::FlowRow;
use selvedge_transport::Scheme;
use selvedge_units::{HostId, PortId, Psn, QpNumber};
use selvedge_wire::tcp::{Tcp, TcpDatagram};
use selvedge_wire::{
    Ack, AckKind, Bth, Content, Control, Data, Envelope, Extended, Extension, Frame, Header, HoleNack, MacAddress,
    NetRt, Opcode, Packet, Pause, Pfc, Repr, Reth, Roce, Udp, eqds, verbs,
};

use tcp::Connections;

/// The form of one run's packets on the wire.
pub(crate) struct Headers {
    /// 802.1p priority of each class.
    priorities: Vec<u8>,
    /// Whether data is acknowledged.
    acknowledged: bool,
    /// Whether NACKs name the packet that triggered them.
    selective: bool,
    /// Flows by sending host and its queue pair.
    flows: BTreeMap<(HostId, QpNumber), FlowRow>,
    connections: Connections,
    /// Layout of the headers of tunnels.
    layout: eqds::Layout,
}

/// Returns the BTH opcode of a flow's packet: a flow is one Write.
pub(crate) fn opcode_of(data: &Data) -> u8 {
    match (is_first(data), data.last) {
        (true, true) => Opcode::WRITE_ONLY,
        (true, false) => Opcode::WRITE_FIRST,
        (false, false) => Opcode::WRITE_MIDDLE,
        (false, true) => Opcode::WRITE_LAST,
    }
}

fn is_first(data: &Data) -> bool {
    data.psn == Psn::new(0)
}

/// Initial TTL that hosts commonly use.
const TTL: u8 = 64;
/// Key of the default partition.
const PARTITION: u16 = 0xffff;

impl Headers {
    pub(crate) fn new(config: &SimConfig, priorities: Vec<u8>) -> Self {
        Self {
            priorities,
            acknowledged: config.transport.recovery().is_none_or(Scheme::acknowledges),
            selective: config.transport.recovery().is_some_and(Scheme::extends_nacks),
            flows: BTreeMap::new(),
            connections: Connections::default(),
            layout: config.transport.tunnels().map_or(eqds::Layout::Wide, |eqds| eqds.headers.into()),
        }
    }

    /// Records that a flow has begun on this queue pair of this host.
    pub(crate) fn learn(&mut self, flow: &FlowRow, pair: (HostId, QpNumber)) {
        self.flows.insert(pair, *flow);
    }

    /// Returns the frame of `packet` and the number of its payload bytes; a pause was sent by `port`. Packets come in
    /// the order of sending; those of applications' queue pairs have headers of their own.
    pub(crate) fn frame(&mut self, packet: &Packet, headers: Option<&verbs::Headers>, port: PortId) -> (Frame, usize) {
        let (content, payload) = match packet.repr {
            Repr::Data(Data { payload, .. }) if let Some(headers) = headers => {
                (self.rdma(packet, headers), usize::from(payload))
            }
            Repr::Ack(_) | Repr::HoleNack(_) if let Some(headers) = headers => (self.rdma(packet, headers), 0),
            Repr::Data(data) => self.data(packet, &data),
            Repr::Ack(ack) => self.ack(packet, &ack),
            Repr::HoleNack(nack) => (self.hole_nack(packet, &nack), 0),
            Repr::Cnp => (self.cnp(packet), 0),
            Repr::NetRt(message) => (self.netrt(packet, message), 0),
            Repr::Control(control) => (self.control(packet, &control), 0),
            Repr::Tcp(tcp) => self.tcp(packet, &tcp),
            Repr::EqdsData(data) => self.tunnel_data(packet, &data),
            Repr::EqdsControl(control) => (self.tunnel_control(packet, &control), 0),
            Repr::Pause(pause) => return (self.pause(&pause, port), 0),
        };
        let (destination, source) = (MacAddress::local(packet.dst.0), MacAddress::local(packet.src.0));
        (Frame { destination, source, content }, payload)
    }

    fn pause(&self, pause: &Pause, port: PortId) -> Frame {
        let named = self.priorities.iter().enumerate().filter(|(class, _)| pause.classes >> class & 1 == 1);
        let classes = named.fold(0, |bits, (_, priority)| bits | 1 << priority);
        Frame {
            destination: MacAddress::MAC_CONTROL,
            source: MacAddress::local(port.0),
            content: Content::Pfc(Pfc::new(classes, pause.quanta)),
        }
    }

    fn tcp(&mut self, packet: &Packet, tcp: &Tcp) -> (Content, usize) {
        let opener = if tcp.is_backward() { packet.dst } else { packet.src };
        let flow = self.flows.get(&(opener, packet.qp));
        let header = self.connections.header(packet, tcp, opener, flow);
        let datagram = TcpDatagram { envelope: self.envelope(packet, header.segment.seq.get()), header };
        (Content::Tcp(datagram), usize::from(tcp.payload()))
    }

    /// Returns the content of a packet in a tunnel. Its header is followed by a native message's two words and its
    /// payload, or by a stack's packet from its IP header on.
    fn tunnel_data(&self, packet: &Packet, data: &eqds::Data) -> (Content, usize) {
        let header = eqds::DataHeader {
            flags: data.flags,
            priority: self.priorities.get(usize::from(data.class)).copied().unwrap_or(0),
            next: if data.eqif == 0 { eqds::NextProtocol::Native } else { eqds::NextProtocol::Ip },
            seq: data.seq,
            pull_target: data.pull_target,
            path: packet.entropy as u16,
            sender: data.eqif.into(),
        };
        let payload = match usize::from(data.payload) {
            0 => 0,
            _ if data.trimmed => 0,
            message if data.eqif == 0 => message + 8,
            frame => frame - ETHERNET,
        };
        (self.tunnel(packet, packet.entropy, data.seq, eqds::Body::Data(header)), payload)
    }

    fn tunnel_control(&self, packet: &Packet, control: &eqds::Control) -> Content {
        let eqds::Control { flags, number, pull, busy, eqif } = *control;
        let header = eqds::ControlHeader { flags, sender: eqif.into(), number, pull, busy };
        self.tunnel(packet, !packet.entropy, number, eqds::Body::Control(header))
    }

    fn tunnel(&self, packet: &Packet, entropy: u32, number: u32, body: eqds::Body) -> Content {
        Content::Eqds(eqds::Datagram {
            envelope: self.envelope(packet, number),
            port: Udp::source_port(entropy),
            layout: self.layout,
            body,
        })
    }

    fn roce(&self, packet: &Packet, bth: Bth, extended: Extended) -> Content {
        Content::Roce(Roce {
            envelope: self.envelope(packet, bth.psn.get()),
            port: Udp::source_port(packet.entropy),
            bth: Bth { partition: PARTITION, destination: number(packet.qp), ..bth },
            extended,
        })
    }

    fn rdma(&self, packet: &Packet, headers: &verbs::Headers) -> Content {
        let envelope = self.envelope(packet, headers.bth.psn.get());
        Content::Rdma(verbs::Datagram { envelope, port: Udp::source_port(packet.entropy), headers: *headers })
    }

    fn envelope(&self, packet: &Packet, number: u32) -> Envelope {
        Envelope {
            source: address(packet.src),
            destination: address(packet.dst),
            dscp: self.priorities.get(usize::from(packet.class)).map_or(0, |priority| priority << 3),
            ecn: packet.ecn,
            identification: number as u16,
            ttl: TTL,
        }
    }

    fn data(&self, packet: &Packet, data: &Data) -> (Content, usize) {
        let flow = self.flows.get(&(packet.src, packet.qp));
        let (first, opcode) = (is_first(data), opcode_of(data));
        let reth = || Reth {
            address: 0,
            key: flow.map_or(0, |flow| flow.id as u32),
            length: flow.map_or(0, |flow| u32::try_from(flow.size.get()).unwrap_or(u32::MAX)),
        };
        let extended = if first { Extended::Reth(reth()) } else { Extended::None };
        let added = u64::from(packet.frame).saturating_sub(Header::ROCE.get());
        let payload = usize::from(data.payload).max(added as usize);
        let bth = Bth { opcode, ack_request: self.acknowledged, psn: data.psn, ..Bth::default() };
        (self.roce(packet, bth, extended), payload)
    }

    fn ack(&self, packet: &Packet, ack: &Ack) -> (Content, usize) {
        let flow = self.flows.get(&(packet.dst, packet.qp));
        // A flow is one message, complete when nothing of it is missing.
        let complete = flow.is_some_and(|flow| Psn::new(flow.packets as u32 % Psn::MODULUS) == ack.expected);
        let msn = ack.msn + u32::from(complete);
        let (bth, aeth) = Ack { msn, ..*ack }.headers();
        let extended = if self.selective && ack.kind == AckKind::Nack {
            let extension = Extension { sent_at: packet.sent_at, sack: ack.sack, ..Extension::default() };
            Extended::Selective(aeth, extension)
        } else {
            Extended::Aeth(aeth)
        };
        (self.roce(packet, bth, extended), 0)
    }

    /// Returns the content of a control packet of a transport of messages. No standard has one: it is shown as an
    /// acknowledgement of its second number, with its first one as MSN.
    fn control(&self, packet: &Packet, control: &Control) -> Content {
        let [number, expected, _] = control.words;
        let expected = Psn::new(expected % Psn::MODULUS);
        let ack = Ack { kind: AckKind::Ack, ecn_echo: false, expected, sack: expected, msn: number };
        let (bth, aeth) = ack.headers();
        self.roce(packet, bth, Extended::Aeth(aeth))
    }

    fn hole_nack(&self, packet: &Packet, nack: &HoleNack) -> Content {
        let (bth, aeth) = nack.without_holes().headers();
        let extension = Extension { sent_at: packet.sent_at, holes: true, sack: nack.sack(), ..Extension::default() };
        self.roce(packet, bth, Extended::Holes(aeth, extension, nack.holes))
    }

    fn netrt(&self, packet: &Packet, message: NetRt) -> Content {
        self.roce(packet, Bth { opcode: Opcode::NETRT, ..Bth::default() }, Extended::NetRt(message.message()))
    }

    fn cnp(&self, packet: &Packet) -> Content {
        let bth = Bth { opcode: Opcode::CONGESTION_NOTIFICATION, becn: true, ..Bth::default() };
        self.roce(packet, bth, Extended::Cnp)
    }
}

/// Size of the Ethernet header and FCS, in bytes.
const ETHERNET: usize = 14 + 4;

/// Returns a queue pair's number on the wire. The first two numbers and the last have special meanings (management,
/// multicast), so that queue pair 0 has number 2.
fn number(qp: QpNumber) -> QpNumber {
    QpNumber(2 + qp.0 % (0xff_ffff - 2))
}

/// Returns a host's IP address.
pub(crate) fn address(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits().wrapping_add(host.0))
}
