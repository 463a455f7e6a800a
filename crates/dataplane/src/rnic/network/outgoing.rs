//! Sent packets: gathered into a batch that one system call sends, or kept behind it while the socket is full.

use std::io::IoSlice;
use std::mem;
use std::net::{SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrLike, sendmsg};
use selvedge_nic::verbs::{Fault, MULTICAST, Payload, Route, Transmit, is_group};
use selvedge_wire::Icrc;
use selvedge_wire::verbs::opcode::SERVICE;
use selvedge_wire::verbs::{Headers, Ours};

use super::Network;
use crate::rnic::batch::Flow;
use crate::rnic::connections::{MANAGEMENT, label_port};
use crate::rnic::invariant::Ends;
use crate::rnic::memory;
use crate::rnic::port::{self, Sockets};

/// Mask of the ECN bits in a traffic class; the value [`CAPABLE`] permits marks (ECT(0), RFC 3168).
const ECN: u8 = 3;
const CAPABLE: u8 = 2;

/// Outcomes of sending a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::rnic) enum Sent {
    /// The packet waits in the batch, or is sent.
    Yes,
    /// The socket is full: the packet waits behind the batch, and no other may follow before there [is
    /// room](Network::has_room).
    Blocked,
    /// The packet's payload was in memory that is gone, or another packet waits already.
    Lost,
}

impl Network {
    /// Sends a packet, or puts it into the batch that leaves with [`Self::flush`].
    pub(in crate::rnic) fn send(&mut self, transmit: &Transmit, payload: &Payload) -> Sent {
        let flow = self.flow(transmit);
        self.uses_v6 |= flow.ends.to.to_ipv4_mapped().is_none();
        let mut headers = [0; Headers::LONGEST];
        let headers = {
            let payload = transmit.payload as usize;
            let length = if self.outlet.is_some() {
                Headers { ours: Ours::No, ..transmit.headers }.emit(payload, &mut headers)
            } else {
                transmit.headers.emit(payload, &mut headers)
            };
            &headers[..length]
        };
        let length = headers.len() + (transmit.payload as usize).next_multiple_of(4) + Icrc::LENGTH;
        let (batch, outcome) = match self.batch.takes(&flow, length) || self.flush() {
            true => (&mut self.batch, Sent::Yes),
            false if self.behind.is_empty() => (&mut self.behind, Sent::Blocked),
            false => return Sent::Lost,
        };
        let written = batch.add(&flow, length, |packet| {
            let (front, rest) = packet.split_at_mut(headers.len());
            front.copy_from_slice(headers);
            gather(payload, rest).is_ok()
        });
        self.counters.sent += u64::from(written);
        if written { outcome } else { Sent::Lost }
    }

    /// Returns whether packets can be sent, after trying to send those that wait.
    pub(in crate::rnic) fn has_room(&mut self) -> bool {
        self.behind.is_empty() || self.flush()
    }

    fn flow(&self, transmit: &Transmit) -> Flow {
        let Route { local, remote, traffic_class, hop_limit, .. } = transmit.route;
        let destination = transmit.headers.bth.destination;
        let theirs = match label_port(transmit.route.flow_label) {
            Some(port) if destination == MANAGEMENT => port,
            _ if destination == MULTICAST => port::ROCE,
            _ => port::of(destination),
        };
        let own = port::ROCE + u16::from(self.slot());
        // Hosts that answer from ports outside the slots' range do not know slots.
        let is_foreign = destination != MANAGEMENT && self.foreign.contains(&remote);
        let (from_port, to_port) = match &self.outlet {
            Some((_, port)) => (*port, port::ROCE),
            None => (own, if is_foreign { port::ROCE } else { theirs }),
        };
        // Packets of a sender that answers congestion marks can be marked.
        let is_reliable = transmit.headers.bth.opcode & SERVICE == 0;
        let capable = if is_reliable && self.hears_marks && traffic_class & ECN == 0 { CAPABLE } else { 0 };
        let traffic_class = traffic_class | capable;
        Flow { ends: Ends { from: local, to: remote, from_port, to_port }, traffic_class, hop_limit }
    }

    fn way_out(&self) -> &Sockets {
        self.outlet.as_ref().map_or(&self.ports.own, |(sockets, _)| sockets)
    }

    /// Sends the packets that wait; returns false if the socket is full.
    pub(in crate::rnic) fn flush(&mut self) -> bool {
        while self.flush_batch() {
            if self.behind.is_empty() {
                return true;
            }
            mem::swap(&mut self.batch, &mut self.behind);
        }
        false
    }

    fn flush_batch(&mut self) -> bool {
        let Some((flow, segment, bytes)) = self.batch.contents() else { return true };
        match self.send_now(&flow, segment, bytes) {
            Ok(()) => {}
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => return false,
            // A system or interface that cannot cut datagrams returns one of these errors.
            Err(Errno::EIO | Errno::EINVAL | Errno::EOPNOTSUPP) if bytes.len() > segment => self.send_apart(),
            // A refused packet counts as lost: retransmission and its limits handle it.
            Err(refusal) => {
                self.counters.refused += 1;
                self.counters.refusal = Some(refusal as i32);
            }
        }
        self.batch.clear();
        true
    }

    fn send_apart(&mut self) {
        self.batch.separate();
        let Some((flow, segment, bytes)) = self.batch.contents() else { return };
        let (mut left, mut refused, mut why) = (false, 0, None);
        for packet in bytes.chunks(segment) {
            match self.send_now(&flow, segment, packet) {
                Ok(()) => left = true,
                Err(refusal) => (refused, why) = (refused + 1, Some(refusal as i32)),
            }
        }
        self.counters.refused += refused;
        self.counters.refusal = why.or(self.counters.refusal);
        // If no packet can be sent alone either, cutting is not the cause.
        if left {
            self.batch.leave_one_by_one();
            self.behind.leave_one_by_one();
        }
    }

    fn send_now(&self, flow: &Flow, segment: usize, bytes: &[u8]) -> Result<(), Errno> {
        let Ends { from, to, to_port, .. } = flow.ends;
        let cut = segment as u16;
        let cut = if bytes.len() > segment { Some(ControlMessage::UdpGsoSegments(&cut)) } else { None };
        // A packet for a group leaves by the interface of its sender's address, with the route's hop limit.
        let is_group = is_group(&to);
        let hops = i32::from(flow.hop_limit);
        let data = [IoSlice::new(bytes)];
        if let (Some(from), Some(to)) = (from.to_ipv4_mapped(), to.to_ipv4_mapped()) {
            let interface = if is_group { self.scopes.get(&flow.local()).copied() } else { None };
            let info = nix::libc::in_pktinfo {
                ipi_ifindex: interface.unwrap_or(0) as i32,
                ipi_spec_dst: nix::libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) },
                ipi_addr: nix::libc::in_addr { s_addr: 0 },
            };
            let control = [ControlMessage::Ipv4PacketInfo(&info), ControlMessage::Ipv4Tos(&flow.traffic_class)];
            let to = SockaddrIn::from(SocketAddrV4::new(to, to_port));
            let hops = is_group.then_some(ControlMessage::Ipv4Ttl(&hops));
            send(&self.way_out().v4, &data, control, [cut, hops], &to)
        } else {
            let socket = self.way_out().v6.as_ref().ok_or(Errno::ENETUNREACH)?;
            // Either end may be known on one interface alone.
            let is_near = is_group || to.is_unicast_link_local() || from.is_unicast_link_local();
            let scope = if is_near { self.scopes.get(&flow.local()).copied() } else { None };
            let info = nix::libc::in6_pktinfo {
                ipi6_addr: nix::libc::in6_addr { s6_addr: from.octets() },
                ipi6_ifindex: scope.unwrap_or(0),
            };
            let class = i32::from(flow.traffic_class);
            let control = [ControlMessage::Ipv6PacketInfo(&info), ControlMessage::Ipv6TClass(&class)];
            let to = SockaddrIn6::from(SocketAddrV6::new(to, to_port, 0, scope.unwrap_or(0)));
            let hops = is_group.then_some(ControlMessage::Ipv6HopLimit(&hops));
            send(socket, &data, control, [cut, hops], &to)
        }
    }
}

/// Sends a message by the system, with all of its control messages.
fn send(
    socket: &OwnedFd,
    data: &[IoSlice<'_>],
    [info, class]: [ControlMessage<'_>; 2],
    more: [Option<ControlMessage<'_>>; 2],
    to: &impl SockaddrLike,
) -> Result<(), Errno> {
    let control = match more {
        [None, None] => &[info, class][..],
        [Some(first), None] | [None, Some(first)] => &[info, class, first],
        [Some(first), Some(second)] => &[info, class, first, second],
    };
    sendmsg(socket.as_raw_fd(), data, control, MsgFlags::MSG_DONTWAIT, Some(to)).map(drop)
}

/// Writes the payload, and zeros up to the end of the last 4-byte word.
pub(super) fn gather(payload: &Payload, mut into: &mut [u8]) -> Result<(), Fault> {
    if !payload.inline.is_empty() {
        let (now, rest) = into.split_at_mut(payload.inline.len());
        now.copy_from_slice(&payload.inline);
        into = rest;
    } else {
        for span in &payload.spans {
            let (now, rest) = into.split_at_mut(span.length as usize);
            memory::read(span.address, now)?;
            into = rest;
        }
    }
    into.fill(0);
    Ok(())
}
