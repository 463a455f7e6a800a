//! The wire: packets out and in, through UDP sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, sendmsg,
};
use selvedge_nic::verbs::{Fault, Payload, Route, Transmit};
use selvedge_wire::Icrc;
use selvedge_wire::verbs::Headers;

use super::batch::{Batch, Flow};
use super::connections::{MANAGEMENT, as_label, label_port};
use super::device::Device;
use super::invariant::Ends;
use super::memory;
use super::port::{self, Sockets};

/// Longer than any UDP datagram.
const LONGEST: usize = 1 << 16;

/// What has gone wrong on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that left.
    pub sent: u64,
    /// Sound packets that arrived.
    pub received: u64,
    /// Packets whose ICRC was wrong, or that were no packets at all.
    pub damaged: u64,
    /// Packets that the system refused to send: no way to the address, or longer than the MTU.
    pub refused: u64,
    /// Why it refused the last of them: `errno`.
    pub refusal: Option<i32>,
}

/// What became of a packet that was to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// It waits in the batch, or has left.
    Yes,
    /// The socket is full: it waits in the batch, and no other may follow before that is flushed.
    Blocked,
    /// Its payload was in memory that is gone.
    Gone,
}

/// The sockets of a process and what is on its way through them.
pub(super) struct Network {
    sockets: Sockets,
    batch: Batch,
    buffer: Box<[u8]>,
    control: Vec<u8>,
    /// Hosts whose queue pairs' numbers say nothing about ports.
    foreign: BTreeSet<Ipv6Addr>,
    /// Interfaces of link-local addresses.
    scopes: BTreeMap<Ipv6Addr, u32>,
    /// UDP ports of RDMA ports that somebody listens on.
    listeners: Vec<Listener>,
    /// Anything came over IPv6 so far.
    uses_v6: bool,
    /// All sockets, to wait for.
    pub(super) all: Arc<Epoll>,
    pub(super) counters: Counters,
}

struct Listener {
    port: u16,
    sockets: Sockets,
}

impl Network {
    pub(super) fn open(devices: &[Device]) -> io::Result<Self> {
        let scopes = devices.iter().filter_map(|device| Some((*device.gids.first()?, device.index))).collect();
        let sockets = Sockets::open()?;
        let all = Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?);
        watch(&all, &sockets)?;
        Ok(Self {
            sockets,
            listeners: Vec::new(),
            uses_v6: false,
            all,
            batch: Batch::new(true),
            buffer: vec![0; LONGEST].into(),
            control: nix::cmsg_space!(nix::libc::in_pktinfo, nix::libc::in6_pktinfo, i32, i32, i32),
            foreign: BTreeSet::new(),
            scopes,
            counters: Counters::default(),
        })
    }
    /// This process's slot: the high bits of its queue pairs' numbers.
    pub(super) fn slot(&self) -> u8 {
        self.sockets.slot
    }
    /// Whether something waits for room in a socket.
    pub(super) fn is_blocked(&self) -> bool {
        !self.batch.is_empty()
    }
    /// What to wait for.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(&self.sockets.v4).chain(&self.sockets.v6).map(AsFd::as_fd)
    }

    /// Listens for management datagrams on the UDP port of an RDMA port too, any port if it is 0; returns which.
    pub(super) fn listen(&mut self, port: u16) -> io::Result<u16> {
        let (sockets, port) = Sockets::at(port)?;
        watch(&self.all, &sockets)?;
        self.listeners.push(Listener { port, sockets });
        Ok(port)
    }
    pub(super) fn unlisten(&mut self, port: u16) {
        self.listeners.retain(|listener| listener.port != port);
    }
    /// Sends a packet, or puts it into the batch that leaves with [`Self::flush`].
    pub(super) fn send(&mut self, transmit: &Transmit, payload: &Payload) -> Sent {
        let flow = self.flow(transmit);
        self.uses_v6 |= flow.ends.to.to_ipv4_mapped().is_none();
        let mut headers = [0; Headers::LONGEST];
        let headers = {
            let length = transmit.headers.emit(transmit.payload as usize, &mut headers);
            &headers[..length]
        };
        let length = headers.len() + (transmit.payload as usize).next_multiple_of(4) + Icrc::LENGTH;
        if !self.batch.takes(&flow, length) && !self.flush() {
            return Sent::Blocked;
        }
        let written = self.batch.add(&flow, length, |packet| {
            let (front, rest) = packet.split_at_mut(headers.len());
            front.copy_from_slice(headers);
            gather(payload, rest).is_ok()
        });
        self.counters.sent += u64::from(written);
        if written { Sent::Yes } else { Sent::Gone }
    }

    fn flow(&self, transmit: &Transmit) -> Flow {
        let Route { local, remote, traffic_class, hop_limit, .. } = transmit.route;
        let theirs = port::of(transmit.headers.bth.destination);
        if transmit.headers.bth.destination == MANAGEMENT
            && let Some(to_port) = label_port(transmit.route.flow_label)
        {
            let from_port = port::ROCE + u16::from(self.sockets.slot);
            return Flow { ends: Ends { from: local, to: remote, from_port, to_port }, traffic_class, hop_limit };
        }
        let is_foreign = theirs != port::ROCE && self.foreign.contains(&remote);
        let to_port = if is_foreign { port::ROCE } else { theirs };
        let from_port = port::ROCE + u16::from(self.sockets.slot);
        Flow { ends: Ends { from: local, to: remote, from_port, to_port }, traffic_class, hop_limit }
    }

    /// Sends what waits in the batch; false if it has to wait on.
    pub(super) fn flush(&mut self) -> bool {
        let Some((flow, segment, bytes)) = self.batch.contents() else { return true };
        match self.send_now(&flow, segment, bytes) {
            Ok(()) => {}
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => return false,
            // What cannot cut datagrams says so in one of these ways.
            Err(Errno::EIO | Errno::EINVAL | Errno::EOPNOTSUPP) if bytes.len() > segment => self.send_apart(),
            // A network that loses packets: retransmission and its limits deal with it.
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
        let refused = bytes.chunks(segment).filter(|packet| self.send_now(&flow, segment, packet).is_err()).count();
        self.counters.refused += refused as u64;
    }

    fn send_now(&self, flow: &Flow, segment: usize, bytes: &[u8]) -> Result<(), Errno> {
        let cut = segment as u16;
        let cut = ControlMessage::UdpGsoSegments(&cut);
        let optional = usize::from(bytes.len() > segment);
        let data = [IoSlice::new(bytes)];
        let Ends { from, to, to_port, .. } = flow.ends;
        if let (Some(from), Some(to)) = (from.to_ipv4_mapped(), to.to_ipv4_mapped()) {
            let info = nix::libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: nix::libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) },
                ipi_addr: nix::libc::in_addr { s_addr: 0 },
            };
            let control = [ControlMessage::Ipv4PacketInfo(&info), ControlMessage::Ipv4Tos(&flow.traffic_class), cut];
            let to = SockaddrIn::from(SocketAddrV4::new(to, to_port));
            let socket = self.sockets.v4.as_raw_fd();
            sendmsg(socket, &data, &control[..2 + optional], MsgFlags::MSG_DONTWAIT, Some(&to))?;
        } else {
            let socket = self.sockets.v6.as_ref().ok_or(Errno::ENETUNREACH)?.as_raw_fd();
            let scope = if to.is_unicast_link_local() { self.scopes.get(&flow.local()).copied() } else { None };
            let info = nix::libc::in6_pktinfo {
                ipi6_addr: nix::libc::in6_addr { s6_addr: from.octets() },
                ipi6_ifindex: scope.unwrap_or(0),
            };
            let class = i32::from(flow.traffic_class);
            let control = [ControlMessage::Ipv6PacketInfo(&info), ControlMessage::Ipv6TClass(&class), cut];
            let to = SockaddrIn6::from(SocketAddrV6::new(to, to_port, 0, scope.unwrap_or(0)));
            sendmsg(socket, &data, &control[..2 + optional], MsgFlags::MSG_DONTWAIT, Some(&to))?;
        }
        Ok(())
    }

    /// Takes what one call of the system gives: up to 64 packets that arrived one behind the other. Returns whether
    /// there was anything. Looks at sockets that have been of use so far, or at all of them.
    pub(super) fn receive(&mut self, all: bool, mut handle: impl FnMut(&Route, &Headers, &[u8], usize)) -> bool {
        let Self { sockets, buffer, control, foreign, counters, listeners, uses_v6, .. } = self;
        let own = port::ROCE + u16::from(sockets.slot);
        let v6 = sockets.v6.as_ref().filter(|_| all || *uses_v6).map(|socket| (socket, own));
        let listeners = listeners.iter().filter(|_| all).flat_map(|listener| {
            let sockets = &listener.sockets;
            std::iter::once(&sockets.v4).chain(&sockets.v6).map(|socket| (socket, listener.port))
        });
        std::iter::once((&sockets.v4, own)).chain(v6).chain(listeners).any(|(socket, to_port)| {
            let Some(datagrams) = take(socket, to_port, buffer, control) else { return false };
            *uses_v6 |= datagrams.ends.from.to_ipv4_mapped().is_none();
            if !port::is_ours(datagrams.ends.from_port) {
                foreign.insert(datagrams.ends.from);
            }
            datagrams.unpack(&buffer[..datagrams.length], counters, &mut handle);
            true
        })
    }
}

fn watch(all: &Epoll, sockets: &Sockets) -> io::Result<()> {
    for socket in std::iter::once(&sockets.v4).chain(&sockets.v6) {
        all.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    }
    Ok(())
}

fn gather(payload: &Payload, mut into: &mut [u8]) -> Result<(), Fault> {
    if !payload.inline.is_empty() {
        into[..payload.inline.len()].copy_from_slice(&payload.inline);
        return Ok(());
    }
    for span in &payload.spans {
        let (now, rest) = into.split_at_mut(span.length as usize);
        memory::read(span.address, now)?;
        into = rest;
    }
    Ok(())
}

/// What one call gave.
struct Datagrams {
    ends: Ends,
    traffic_class: u8,
    length: usize,
    /// Bytes of each but the last.
    segment: usize,
}

fn take(socket: &OwnedFd, to_port: u16, buffer: &mut [u8], control: &mut [u8]) -> Option<Datagrams> {
    let mut data = [IoSliceMut::new(buffer)];
    let message =
        recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut data, Some(control), MsgFlags::MSG_DONTWAIT).ok()?;
    let from = message.address.as_ref()?;
    let (from, from_port) = match (from.as_sockaddr_in(), from.as_sockaddr_in6()) {
        (Some(v4), _) => (v4.ip().to_ipv6_mapped(), v4.port()),
        (_, Some(v6)) => (v6.ip(), v6.port()),
        _ => return None,
    };
    let (mut to, mut traffic_class, mut segment) = (None, 0, message.bytes);
    for control in message.cmsgs().ok()? {
        match control {
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                to = Some(std::net::Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).to_ipv6_mapped());
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => to = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr)),
            ControlMessageOwned::Ipv4Tos(class) => traffic_class = class,
            ControlMessageOwned::Ipv6TClass(class) => traffic_class = class as u8,
            ControlMessageOwned::UdpGroSegments(bytes) => segment = usize::try_from(bytes).unwrap_or(segment).max(1),
            _ => {}
        }
    }
    let ends = Ends { from, to: to?, from_port, to_port };
    Some(Datagrams { ends, traffic_class, length: message.bytes, segment })
}

impl Datagrams {
    fn unpack(&self, bytes: &[u8], counters: &mut Counters, handle: &mut impl FnMut(&Route, &Headers, &[u8], usize)) {
        let route = Route {
            local: self.ends.to,
            remote: self.ends.from,
            traffic_class: self.traffic_class,
            hop_limit: 64,
            // An answer of the connection manager goes where the question came from.
            flow_label: as_label(self.ends.from_port),
        };
        let mut identification = 0;
        for datagram in bytes.chunks(self.segment.max(1)) {
            let sound = datagram.split_last_chunk::<{ Icrc::LENGTH }>().and_then(|(packet, icrc)| {
                identification = self.ends.identify(identification, packet, *icrc)?;
                Headers::parse(packet).ok()
            });
            let Some((headers, payload)) = sound else {
                counters.damaged += 1;
                continue;
            };
            // Segments of one call are numbered.
            identification = identification.wrapping_add(1);
            counters.received += 1;
            handle(&route, &headers, payload, datagram.len());
        }
    }
}
