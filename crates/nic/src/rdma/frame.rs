//! Conversion between RDMA packets and the packets of the fabric.

use core::net::Ipv6Addr;
use selvedge_transport::endpoint::NicStats;

use selvedge_units::{HostId, Instant};
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::operation as op;
use selvedge_wire::{Ack, AckKind, Aeth, Bth, Data, Ecn, Header, Opcode, Packet, Repr, Syndrome};

use super::{WireFormat, since};
use crate::nic::NicParams;
use crate::slot::REQUESTS;
use crate::verbs::{Route, Stats, Transmit};

/// Returns the address of a host's RNIC.
pub(super) fn address(host: HostId) -> Ipv6Addr {
    Ipv6Addr::from_bits(u128::from(host.0) + 1)
}

fn host(address: Ipv6Addr) -> HostId {
    HostId((address.to_bits() - 1) as u32)
}

/// Returns the route of a packet that has arrived, as its receiver sees it.
pub(super) fn route_of(packet: &Packet) -> Route {
    Route {
        local: address(packet.dst),
        remote: address(packet.src),
        traffic_class: packet.class,
        hop_limit: HOPS,
        flow_label: packet.entropy,
    }
}

/// Returns the route to a host.
pub(super) fn route(from: HostId, to: HostId, class: u8, entropy: u32) -> Route {
    Route { local: address(from), remote: address(to), traffic_class: class, hop_limit: HOPS, flow_label: entropy }
}

/// Hop limit of packets; the fabric does not count hops.
const HOPS: u8 = 64;

/// Returns the packet that carries `transmit` from host `from` at `now`.
pub(super) fn packet(from: HostId, params: &NicParams, now: Instant, transmit: &Transmit) -> Packet {
    let Transmit { route, headers, payload } = transmit;
    let repr = repr(headers, *payload);
    let (frame, class) = match repr {
        Repr::Cnp => (params.frames.cnp_frame, params.frames.cnp_class),
        Repr::Ack(_) => {
            let around = usize::from(params.frames.ack_frame).saturating_sub(Bth::LENGTH + Aeth::LENGTH);
            (frame_of(params, around, headers, 0), params.frames.ack_class)
        }
        _ => {
            // `around` covers the frame around the RDMA headers, and the padding of the payload.
            let around = usize::from(params.frames.header).saturating_sub(Bth::LENGTH);
            (frame_of(params, around, headers, *payload), route.traffic_class)
        }
    };
    Packet {
        sent_at: now,
        src: from,
        dst: host(route.remote),
        qp: headers.bth.destination,
        slot: REQUESTS,
        entropy: route.flow_label,
        frame,
        class,
        ecn: if params.frames.ecn_capable && matches!(repr, Repr::Data(_)) { Ecn::Capable } else { Ecn::NotCapable },
        repr,
    }
}

fn frame_of(params: &NicParams, around: usize, headers: &Headers, payload: u32) -> u16 {
    let format = params.verbs.as_ref().map_or_else(WireFormat::default, |verbs| verbs.format);
    let length = around + format.length(headers) + (payload as usize).next_multiple_of(4);
    length.max(Header::MINIMUM_FRAME.get() as usize) as u16
}

/// Returns the packet's kind for switches, loss processes and counters.
fn repr(headers: &Headers, payload: u32) -> Repr {
    let psn = headers.bth.psn;
    if headers.bth.opcode == Opcode::CONGESTION_NOTIFICATION {
        return Repr::Cnp;
    }
    if !matches!(headers.bth.opcode, op::ACKNOWLEDGE | op::READ_ACKNOWLEDGE) {
        let retransmission = headers.extension.is_some_and(|extension| extension.retransmission);
        return Repr::Data(Data { psn, payload: payload as u16, last: false, retransmission, trimmed: false });
    }
    let (syndrome, msn) = headers.aeth.map_or((Syndrome::NO_CREDITS, 0), |aeth| (aeth.syndrome, aeth.msn));
    let is_positive = matches!(syndrome, Syndrome::Ack(_));
    Repr::Ack(Ack {
        kind: if is_positive { AckKind::Ack } else { AckKind::Nack },
        ecn_echo: headers.bth.becn,
        expected: if is_positive { psn.next() } else { psn },
        sack: headers.extension.map_or(psn, |extension| extension.sack),
        msn,
    })
}

/// Returns the headers as they arrive, with the marks of switches, and the payload length in bytes.
pub(super) fn arrived(packet: &Packet, headers: &Headers) -> (Headers, u32) {
    let mut headers = *headers;
    headers.bth.fecn |= packet.ecn == Ecn::Marked;
    let payload = if let Repr::Data(data) = packet.repr { u32::from(data.payload) } else { 0 };
    (headers, payload)
}

/// Counts a sent packet.
pub(super) fn count_sent(stats: &mut NicStats, packet: &Packet, before: &Stats, after: &Stats) {
    stats.count_answer(&packet.repr);
    let new = since(before, after);
    stats.data_sent += new.sent;
    stats.retransmissions += new.retransmissions;
}

/// Counts a packet that has arrived.
pub(super) fn count_arrival(stats: &mut NicStats, packet: &Packet, before: &Stats, after: &Stats) {
    let new = since(before, after);
    match packet.repr {
        Repr::Data(_) => stats.data_received += 1,
        Repr::Cnp => {}
        _ => stats.acks_received += 1,
    }
    stats.duplicates += new.duplicates;
    stats.goodput += new.goodput;
    stats.reordered += new.reordered;
}
