//! Streams: packets of one flow in one direction, and the streams of both directions that belong together.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use selvedge_traces::{FrameProtocol, FrameSummary};
use selvedge_units::{HostId, PortId, Psn};
use selvedge_wire::Opcode;
use selvedge_wire::verbs::opcode::{SERVICE, operation};

/// Identity of a stream, common to its packets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Tcp([SocketAddr; 2]),
    Udp([SocketAddr; 2]),
    /// Tunnel: its packets have ports of many paths.
    Eqds([IpAddr; 2]),
    /// UDP port and queue pair of the receiver; those of the other direction follow from acknowledgements.
    Roce([IpAddr; 2], u16, u32),
    Ip([IpAddr; 2], u8),
    Ethernet(PortId, HostId, u16),
}

/// Packets of one flow in one direction.
#[derive(Debug)]
pub(super) struct Stream {
    key: Key,
    /// Port of the sender, and the receiver of the first packet.
    pub(super) port: PortId,
    pub(super) to: HostId,
    /// Packets that the host sent, in order.
    pub(super) paths: Vec<u32>,
    /// Copies of them that switches made.
    pub(super) copies: Vec<u32>,
    /// Stream of the other direction.
    pub(super) partner: Option<usize>,
    /// Number after the highest one sent: of TCP's octets, or of RoCE's requests.
    next: Option<u32>,
    /// Number after the highest one of RoCE's answers to Reads.
    next_answer: Option<u32>,
}

/// All streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    pub(super) all: Vec<Stream>,
    by_key: BTreeMap<Key, usize>,
    /// Stream that sent each PSN last, by its addresses.
    requests: BTreeMap<([IpAddr; 2], u32), usize>,
}

/// Facts of a packet that follow from its stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) stream: u32,
    pub(super) again: bool,
    pub(super) is_data: bool,
}

impl Streams {
    /// Adds a packet that enters through a host's port.
    pub(super) fn add(&mut self, path: u32, port: PortId, to: HostId, frame: &FrameSummary) -> Place {
        let key = Key::of(frame, port, to);
        let at = match self.by_key.get(&key) {
            Some(&at) => at,
            None => self.begin(key, port, to),
        };
        let stream = &mut self.all[at];
        stream.paths.push(path);
        let mut again = false;
        let mut is_data = frame.payload > 0;
        match frame.protocol {
            FrameProtocol::Tcp { seq, length, .. } if length > 0 => {
                again = stream.next.is_some_and(|next| (seq.wrapping_sub(next) as i32) < 0);
                if !again {
                    stream.next = Some(seq.wrapping_add(length));
                }
            }
            FrameProtocol::Roce { opcode, psn, .. } => match role_of(opcode) {
                Role::Request => {
                    is_data = true;
                    again = advance(&mut stream.next, psn);
                    if let Some(addresses) = frame.addresses {
                        self.requests.insert((addresses, psn), at);
                    }
                }
                Role::Answer { has_payload } => {
                    if has_payload {
                        again = advance(&mut stream.next_answer, psn);
                    }
                    self.pair(at, frame, psn);
                }
                Role::Other => {}
            },
            _ => {}
        }
        Place { stream: at as u32, again, is_data }
    }

    fn begin(&mut self, key: Key, port: PortId, to: HostId) -> usize {
        let at = self.all.len();
        let partner = key.reverse().and_then(|other| self.by_key.get(&other).copied());
        if let Some(other) = partner {
            self.all[other].partner = Some(at);
        }
        self.by_key.insert(key.clone(), at);
        let (paths, copies) = (Vec::new(), Vec::new());
        self.all.push(Stream { key, port, to, paths, copies, partner, next: None, next_answer: None });
        at
    }

    /// Pairs a RoCE stream with the one whose request an answer names.
    fn pair(&mut self, at: usize, frame: &FrameSummary, psn: u32) {
        if self.all[at].partner.is_some() {
            return;
        }
        let asked = frame.addresses.and_then(|[from, to]| self.requests.get(&([to, from], psn)).copied());
        if let Some(other) = asked.filter(|&other| other != at && self.all[other].partner.is_none()) {
            self.all[at].partner = Some(other);
            self.all[other].partner = Some(at);
        }
    }
}

impl Stream {
    /// Returns the name of the flow, seen from this stream's sender.
    pub(super) fn name(&self, partner: Option<&Self>) -> String {
        match &self.key {
            Key::Tcp([from, to]) => format!("TCP {from} > {to}"),
            Key::Udp([from, to]) => format!("UDP {from} > {to}"),
            Key::Eqds([from, to]) => format!("EQDS {from} > {to}"),
            Key::Roce([from, to], _, qp) => {
                let own =
                    partner.and_then(|partner| if let Key::Roce(_, _, own) = partner.key { Some(own) } else { None });
                match own {
                    Some(own) => format!("RoCE {from} QP {own:#x} > {to} QP {qp:#x}"),
                    None => format!("RoCE {from} > {to} QP {qp:#x}"),
                }
            }
            Key::Ip([from, to], 0) => format!("IPv6 options {from} > {to}"),
            Key::Ip([from, to], 1 | 58) => format!("ICMP {from} > {to}"),
            Key::Ip([from, to], protocol) => format!("IP protocol {protocol} {from} > {to}"),
            Key::Ethernet(_, _, kind) => format!("EtherType {kind:#06x}"),
        }
    }
}

impl Key {
    fn of(frame: &FrameSummary, port: PortId, to: HostId) -> Self {
        let Some([from, dst]) = frame.addresses else {
            let kind = if let FrameProtocol::Ethernet(kind) = frame.protocol { kind } else { 0 };
            return Self::Ethernet(port, to, kind);
        };
        let ends = |[a, b]: [u16; 2]| [SocketAddr::new(from, a), SocketAddr::new(dst, b)];
        match frame.protocol {
            FrameProtocol::Tcp { ports, .. } => Self::Tcp(ends(ports)),
            FrameProtocol::Udp { ports } => Self::Udp(ends(ports)),
            FrameProtocol::Eqds => Self::Eqds([from, dst]),
            FrameProtocol::Roce { port, qp, .. } => Self::Roce([from, dst], port, qp),
            FrameProtocol::Ip(protocol) => Self::Ip([from, dst], protocol),
            FrameProtocol::Ethernet(kind) => Self::Ethernet(port, to, kind),
        }
    }

    /// Returns the key of the other direction, if it follows.
    fn reverse(&self) -> Option<Self> {
        match *self {
            Self::Tcp([a, b]) => Some(Self::Tcp([b, a])),
            Self::Udp([a, b]) => Some(Self::Udp([b, a])),
            Self::Eqds([a, b]) => Some(Self::Eqds([b, a])),
            Self::Ip([a, b], protocol) => Some(Self::Ip([b, a], protocol)),
            Self::Roce(..) | Self::Ethernet(..) => None,
        }
    }
}

/// Part of a RoCE packet in its connection.
enum Role {
    Request,
    Answer { has_payload: bool },
    Other,
}

fn role_of(opcode: u8) -> Role {
    use operation::*;
    match opcode {
        Opcode::CONGESTION_NOTIFICATION | Opcode::NETRT => return Role::Other,
        _ => {}
    }
    match opcode & !SERVICE {
        READ_RESPONSE_FIRST..=READ_RESPONSE_ONLY => Role::Answer { has_payload: true },
        ACKNOWLEDGE | ATOMIC_ACKNOWLEDGE => Role::Answer { has_payload: false },
        READ_ACKNOWLEDGE => Role::Other,
        _ => Role::Request,
    }
}

/// Moves `next` behind `psn`; returns whether the PSN was sent before.
fn advance(next: &mut Option<u32>, psn: u32) -> bool {
    let (psn, before) = (Psn::new(psn), next.map(Psn::new));
    if before.is_some_and(|next| psn.ahead_of(next) < 0) {
        return true;
    }
    *next = Some(psn.next().get());
    false
}
