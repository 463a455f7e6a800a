//! Received datagrams: the packets that one system call returns, one behind the other.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use selvedge_nic::verbs::Route;
use selvedge_units::Duration;
use selvedge_wire::Icrc;
use selvedge_wire::verbs::Headers;

use super::connections::as_label;
use super::invariant::Ends;
use super::network::Counters;

/// Mask of the ECN bits in a traffic class; the value [`CONGESTED`] is a congestion mark.
const ECN: u8 = 3;
const CONGESTED: u8 = 3;

/// Received packets with equal addresses and ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Datagrams {
    pub(super) ends: Ends,
    pub(super) traffic_class: u8,
    /// Bytes of all packets together.
    pub(super) length: usize,
    /// Bytes of each packet but the last.
    pub(super) segment: usize,
    /// Time since the network delivered them to this host, if the kernel tells it.
    pub(super) waited: Option<Duration>,
}

/// Size of a received packet, and the time that it waited in this host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Bytes of the UDP datagram.
    pub(super) length: usize,
    /// Time that the packet has waited in this host, if known.
    pub(super) waited: Option<Duration>,
}

/// Receives the packets that one system call on `socket` returns; `None` if there are none.
pub(super) fn take(socket: &OwnedFd, to_port: u16, buffer: &mut [u8], control: &mut [u8]) -> Option<Datagrams> {
    let mut data = [IoSliceMut::new(buffer)];
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut data, Some(control), MsgFlags::MSG_DONTWAIT).ok()?;
    let from = message.address.as_ref()?;
    let (from, from_port) = match (from.as_sockaddr_in(), from.as_sockaddr_in6()) {
        (Some(v4), _) => (v4.ip().to_ipv6_mapped(), v4.port()),
        (_, Some(v6)) => (v6.ip(), v6.port()),
        _ => return None,
    };
    let (mut to, mut traffic_class, mut segment, mut waited) = (None, 0, message.bytes, None);
    for control in message.cmsgs().ok()? {
        match control {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                to = Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).to_ipv6_mapped());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr)),
            ControlMessageOwned::Ipv4Tos(class) => traffic_class = class,
            ControlMessageOwned::Ipv6TClass(class) => traffic_class = class as u8,
            ControlMessageOwned::ScmTimestampns(arrived) => waited = since(arrived),
            ControlMessageOwned::UdpGroSegments(bytes) => segment = usize::try_from(bytes).unwrap_or(segment).max(1),
            _ => {}
        }
    }
    let ends = Ends { from, to: to?, from_port, to_port };
    Some(Datagrams { ends, traffic_class, length: message.bytes, segment, waited })
}

/// Returns the time since the kernel took packets from the network, by the kernel's clock.
fn since(arrived: TimeSpec) -> Option<Duration> {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).ok()?;
    let ns = time::Duration::from(now).checked_sub(arrived.into()).unwrap_or_default().as_nanos();
    Some(Duration::from_ns(u64::try_from(ns).unwrap_or(u64::MAX / 1_000)))
}

impl Datagrams {
    /// Calls `handle` for each sound packet among `bytes`, with its route, headers, payload, and size.
    pub(super) fn unpack(
        &self,
        bytes: &[u8],
        counters: &mut Counters,
        handle: &mut impl FnMut(&Route, &Headers, &[u8], Seen),
    ) {
        let route = Route {
            local: self.ends.to,
            remote: self.ends.from,
            traffic_class: self.traffic_class,
            hop_limit: 64,
            // An answer of the connection manager goes to the port that the request came from.
            flow_label: as_label(self.ends.from_port),
        };
        let mut invariant = self.ends.invariant(self.segment.saturating_sub(Icrc::LENGTH));
        let is_marked = self.traffic_class & ECN == CONGESTED;
        let (mut headers, mut likely) = (Headers::default(), 0);
        for datagram in bytes.chunks(self.segment.max(1)) {
            let mut open = || {
                let (packet, icrc) = datagram.split_last_chunk::<{ Icrc::LENGTH }>()?;
                if datagram.len() != self.segment {
                    invariant = self.ends.invariant(packet.len());
                }
                // The kernel counts the segments of one datagram in their identifications.
                likely = invariant.identify(likely, packet, *icrc)?.wrapping_add(1);
                headers.read(packet).ok()
            };
            let Some(payload) = open() else {
                counters.damaged += 1;
                continue;
            };
            counters.received += 1;
            headers.bth.fecn |= is_marked;
            handle(&route, &headers, payload, Seen { length: datagram.len(), waited: self.waited });
        }
    }
}
