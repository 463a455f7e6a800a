//! The wire: packets out and in, through UDP sockets.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::mem;
use std::net::{Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrLike, sendmsg};
use selvedge_nic::verbs::{Fault, MULTICAST, Payload, Route, Transmit, is_group};
use selvedge_units::QpNumber;
use selvedge_wire::Icrc;
use selvedge_wire::verbs::{Headers, Ours};

use super::batch::{Batch, Flow};
use super::connections::{MANAGEMENT, label_port};
use super::datagrams::{Datagrams, take};
use super::device::Device;
use super::forward::{self, Addressee, Inbox};
use super::groups::Groups;
use super::invariant::Ends;
use super::memory;
use super::port::{self, Ports, Sockets};
use super::settings;

/// Hosts that are remembered to be foreign: more than anybody talks to.
const MOST_FOREIGN: usize = 1 << 14;

/// Longer than any UDP datagram, and than one that was passed on.
const LONGEST: usize = (1 << 16) + forward::HEADER;

/// What has gone wrong on the way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that left.
    pub sent: u64,
    /// Sound packets that arrived.
    pub received: u64,
    /// Packets whose ICRC was wrong, or that were no packets at all.
    pub damaged: u64,
    /// Times that packets for others of this host were passed on.
    pub passed_on: u64,
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
    /// The socket is full: it waits behind the batch, and no other may follow before there [is
    /// room](Network::has_room).
    Blocked,
    /// Its payload was in memory that is gone, or another waits already.
    Lost,
}

/// The sockets of a process and what is on its way through them.
pub(super) struct Network {
    ports: Ports,
    /// Sends in the place of our own port, where we pretend to be a stranger.
    outlet: Option<(Sockets, u16)>,
    /// What others pass on.
    inbox: Option<Inbox>,
    batch: Batch,
    /// The packet that did not fit any more, and that nobody else keeps: what it was made of may change.
    behind: Batch,
    buffer: Box<[u8]>,
    control: Vec<u8>,
    /// Hosts whose queue pairs' numbers say nothing about ports.
    foreign: BTreeSet<Ipv6Addr>,
    /// Interfaces of our addresses.
    scopes: BTreeMap<Ipv6Addr, u32>,
    groups: Groups,
    /// UDP ports of RDMA ports that somebody listens on.
    listeners: Vec<Listener>,
    /// Anything came over IPv6 so far.
    uses_v6: bool,
    /// Anything came on the port that we share, or was passed on.
    uses_shared: bool,
    /// All sockets, to wait for.
    pub(super) all: Arc<Epoll>,
    pub(super) counters: Counters,
}

/// Who is asked for connections to an RDMA port.
pub(super) struct Listener {
    port: u16,
    sockets: Sockets,
    inbox: Option<Inbox>,
}

impl Listener {
    fn each(&self) -> impl Iterator<Item = &OwnedFd> {
        self.sockets.each().chain(self.inbox.as_ref().map(|inbox| &inbox.socket))
    }
}

impl Network {
    pub(super) fn open(devices: &[Device]) -> io::Result<Self> {
        let of = |device: &Device| device.gids.iter().map(|gid| (*gid, device.index)).collect::<Vec<_>>();
        let scopes = devices.iter().flat_map(of).collect();
        let ports = Ports::open()?;
        // Without it nobody can pass packets on to us; our own peers reach us nevertheless.
        let inbox = Inbox::open(Addressee::Slot(ports.own.slot)).ok();
        let outlet = if settings::is_standard()? { Some(Sockets::at(0)?) } else { None };
        let all = Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?);
        watch(&all, Some(&ports.own), inbox.as_ref())?;
        watch(&all, ports.shared.as_ref(), None)?;
        Ok(Self {
            ports,
            outlet,
            inbox,
            listeners: Vec::new(),
            uses_v6: false,
            uses_shared: false,
            all,
            batch: Batch::new(true),
            behind: Batch::new(true),
            buffer: vec![0; LONGEST].into(),
            control: nix::cmsg_space!(nix::libc::in_pktinfo, nix::libc::in6_pktinfo, i32, i32, i32),
            foreign: BTreeSet::new(),
            scopes,
            groups: Groups::default(),
            counters: Counters::default(),
        })
    }
    /// This process's slot: the high bits of its queue pairs' numbers.
    pub(super) fn slot(&self) -> u8 {
        self.ports.own.slot
    }
    /// Whether something waits for room in a socket.
    pub(super) fn is_blocked(&self) -> bool {
        !self.batch.is_empty()
    }
    /// What to wait for.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let outlet = self.outlet.as_ref().map(|(sockets, _)| sockets);
        let sockets = std::iter::once(&self.ports.own).chain(&self.ports.shared).chain(outlet);
        let own = sockets.flat_map(Sockets::each).chain(self.inbox.as_ref().map(|inbox| &inbox.socket));
        own.chain(self.listeners.iter().flat_map(Listener::each)).map(AsFd::as_fd)
    }

    /// Listens for management datagrams on the UDP port of an RDMA port too, any port if it is 0; returns which.
    pub(super) fn listen(&mut self, port: u16) -> io::Result<u16> {
        let (sockets, port) = Sockets::at(port)?;
        let inbox = Inbox::open(Addressee::Listener(port)).ok();
        watch(&self.all, Some(&sockets), inbox.as_ref())?;
        self.listeners.push(Listener { port, sockets, inbox });
        Ok(port)
    }
    /// No more; returns what is to be closed.
    pub(super) fn unlisten(&mut self, port: u16) -> Vec<Listener> {
        let gone: Vec<_> = self.listeners.extract_if(.., |listener| listener.port == port).collect();
        for socket in gone.iter().flat_map(Listener::each) {
            // A child of a fork may have it still: closing it would not end the watch.
            let _ = self.all.delete(socket);
        }
        gone
    }
    /// Sends a packet, or puts it into the batch that leaves with [`Self::flush`].
    pub(super) fn send(&mut self, transmit: &Transmit, payload: &Payload) -> Sent {
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
    /// Whether packets can be sent, once those that wait have left if they can.
    pub(super) fn has_room(&mut self) -> bool {
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
        // Who answers from other ports than ours knows no slots.
        let is_foreign = destination != MANAGEMENT && self.foreign.contains(&remote);
        let (from_port, to_port) = match &self.outlet {
            Some((_, port)) => (*port, port::ROCE),
            None => (own, if is_foreign { port::ROCE } else { theirs }),
        };
        Flow { ends: Ends { from: local, to: remote, from_port, to_port }, traffic_class, hop_limit }
    }
    /// Joins a group for a queue pair.
    pub(super) fn join(&mut self, interface: u32, group: Ipv6Addr, qp: QpNumber) -> io::Result<()> {
        let Some(sockets) = self.ports.roce() else { return Err(io::Error::from_raw_os_error(libc::EADDRINUSE)) };
        self.groups.join(sockets, interface, group, qp)?;
        self.uses_shared = true;
        self.uses_v6 |= group.to_ipv4_mapped().is_none();
        Ok(())
    }
    /// Leaves one, or all of a queue pair.
    pub(super) fn leave(&mut self, group: Option<Ipv6Addr>, qp: QpNumber) {
        if let Some(sockets) = self.ports.roce() {
            self.groups.leave(sockets, group, qp);
        }
    }

    fn way_out(&self) -> &Sockets {
        self.outlet.as_ref().map_or(&self.ports.own, |(sockets, _)| sockets)
    }

    /// Sends what waits; false if it has to wait on.
    pub(super) fn flush(&mut self) -> bool {
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
        let (mut left, mut refused, mut why) = (false, 0, None);
        for packet in bytes.chunks(segment) {
            match self.send_now(&flow, segment, packet) {
                Ok(()) => left = true,
                Err(refusal) => (refused, why) = (refused + 1, Some(refusal as i32)),
            }
        }
        self.counters.refused += refused;
        self.counters.refusal = why.or(self.counters.refusal);
        // If none can leave alone either, cutting is not what is wrong.
        if left {
            self.batch.leave_one_by_one();
            self.behind.leave_one_by_one();
        }
    }

    fn send_now(&self, flow: &Flow, segment: usize, bytes: &[u8]) -> Result<(), Errno> {
        let Ends { from, to, to_port, .. } = flow.ends;
        let cut = segment as u16;
        let cut = if bytes.len() > segment { Some(ControlMessage::UdpGsoSegments(&cut)) } else { None };
        // What is for a group leaves by the interface of its sender's address, and goes as far as that says.
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
            let is_near = is_group || to.is_unicast_link_local();
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

    /// Takes what one call of the system gives: up to 64 packets that arrived one behind the other. Returns whether
    /// there was anything. Looks at sockets that have been of use so far, or at all of them.
    pub(super) fn receive(&mut self, all: bool, mut handle: impl FnMut(&Route, &Headers, &[u8], usize)) -> bool {
        let is_standard = self.outlet.is_some();
        let mut handle = |route: &Route, headers: &Headers, payload: &[u8], length: usize| {
            if is_standard {
                handle(route, &Headers { ours: Ours::No, ..*headers }, payload, length);
            } else {
                handle(route, headers, payload, length);
            }
        };
        if let Some(datagrams) = self.take_any(all) {
            let before = self.counters.received;
            self.sort(&datagrams, &mut handle);
            self.learn(&datagrams, before);
            return true;
        }
        if all || self.uses_shared { self.take_passed(&mut handle) } else { false }
    }

    /// What a socket has.
    fn take_any(&mut self, all: bool) -> Option<Datagrams> {
        let Self { ports, listeners, buffer, control, uses_v6, uses_shared, .. } = self;
        let own = port::ROCE + u16::from(ports.own.slot);
        let v6 = ports.own.v6.as_ref().filter(|_| all || *uses_v6);
        if let Some(datagrams) =
            std::iter::once(&ports.own.v4).chain(v6).find_map(|socket| take(socket, own, buffer, control))
        {
            return Some(datagrams);
        }
        let mut shared = ports.shared.iter().filter(|_| all || *uses_shared).flat_map(Sockets::each);
        if let Some(datagrams) = shared.find_map(|socket| take(socket, port::ROCE, buffer, control)) {
            *uses_shared = true;
            return Some(datagrams);
        }
        let mut listeners = listeners
            .iter()
            .filter(|_| all)
            .flat_map(|listener| listener.sockets.each().map(|socket| (socket, listener.port)));
        listeners.find_map(|(socket, port)| take(socket, port, buffer, control))
    }

    /// What others have passed on.
    fn take_passed(&mut self, handle: &mut impl FnMut(&Route, &Headers, &[u8], usize)) -> bool {
        let Self { inbox, listeners, buffer, .. } = self;
        let mut inboxes = inbox.iter_mut().chain(listeners.iter_mut().filter_map(|listener| listener.inbox.as_mut()));
        let Some(datagrams) = inboxes.find_map(|inbox| inbox.take(buffer)) else { return false };
        self.uses_shared = true;
        let before = self.counters.received;
        let packets = &self.buffer[forward::HEADER..][..datagrams.length];
        datagrams.unpack(packets, &mut self.counters, handle);
        self.learn(&datagrams, before);
        true
    }

    /// What datagrams tell of who sends them, if any of them was sound: noise tells nothing.
    fn learn(&mut self, datagrams: &Datagrams, before: u64) {
        let Ends { from, from_port, .. } = datagrams.ends;
        self.uses_v6 |= from.to_ipv4_mapped().is_none();
        if self.counters.received == before || port::is_ours(from_port) {
            return;
        }
        // Who is forgotten is learnt of again with its next packet.
        if self.foreign.len() >= MOST_FOREIGN {
            self.foreign.clear();
        }
        self.foreign.insert(from);
    }

    /// Handles packets that are ours and passes others on: those that came to the port that all share.
    fn sort(&mut self, datagrams: &Datagrams, handle: &mut impl FnMut(&Route, &Headers, &[u8], usize)) {
        let Self { ports, listeners, inbox, buffer, counters, .. } = self;
        let mut rest = &buffer[..datagrams.length];
        // What is for a group has come to each process that has joined it.
        if datagrams.ends.to_port != port::ROCE || is_group(&datagrams.ends.to) {
            return datagrams.unpack(rest, counters, handle);
        }
        let is_here = |whose: Addressee| match whose {
            Addressee::Slot(slot) => slot == ports.own.slot,
            Addressee::Listener(port) => listeners.iter().any(|listener| listener.port == port),
        };
        while !rest.is_empty() {
            let mut packets = rest.chunks(datagrams.segment).map(|packet| (Addressee::of(packet), packet.len()));
            let Some((whose, first)) = packets.next() else { return };
            let others = packets.take_while(|(other, _)| *other == whose).map(|(_, length)| length);
            let (now, later) = rest.split_at(first + others.sum::<usize>());
            rest = later;
            let passed = match inbox {
                Some(inbox) if !is_here(whose) => inbox.pass(whose, datagrams, now),
                _ => Err(Errno::ECONNREFUSED),
            };
            match passed {
                Ok(()) => counters.passed_on += 1,
                // Nobody else's: we say so, where there is something to be said.
                Err(Errno::ECONNREFUSED) => datagrams.unpack(now, counters, handle),
                // No room: it is lost, as in any network.
                Err(_) => {}
            }
        }
    }
}

/// Hands it to the system, with what else there is to say of it.
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

fn watch(all: &Epoll, sockets: Option<&Sockets>, inbox: Option<&Inbox>) -> io::Result<()> {
    for socket in sockets.into_iter().flat_map(Sockets::each).chain(inbox.map(|inbox| &inbox.socket)) {
        all.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    }
    Ok(())
}

/// Writes the payload, and zeros up to the end of the last word.
fn gather(payload: &Payload, mut into: &mut [u8]) -> Result<(), Fault> {
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

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use nix::sys::epoll::EpollTimeout;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, connect, socket};
    use selvedge_nic::verbs::Span;
    use selvedge_wire::Bth;

    use super::*;

    const HERE: Ipv6Addr = Ipv4Addr::LOCALHOST.to_ipv6_mapped();

    fn network() -> Network {
        Network::open(&[]).expect("there are sockets")
    }

    /// A packet to this UDP port of this host.
    fn transmit(port: u16, payload: u32) -> Transmit {
        let flow_label = super::super::connections::as_label(port);
        let route = Route { local: HERE, remote: HERE, traffic_class: 0, hop_limit: 64, flow_label };
        let bth = Bth { opcode: 0x04, destination: MANAGEMENT, ..Bth::default() };
        Transmit { route, headers: Headers { bth, ..Headers::default() }, payload }
    }

    fn receiver() -> (UdpSocket, u16) {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("any port");
        let port = socket.local_addr().expect("it has one").port();
        (socket, port)
    }

    /// A socket that sends nothing: its connection is not accepted, because no more may wait for that.
    fn blocked() -> (OwnedFd, TcpListener, Vec<TcpStream>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("any port");
        nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).expect("none")).expect("it listens");
        let address = listener.local_addr().expect("it has one");
        let waiting = vec![TcpStream::connect(address).expect("one may wait")];
        // It does once the kernel has seen the end of the handshake, perhaps after `connect`.
        let mut accepts = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        assert_eq!(poll(&mut accepts, PollTimeout::NONE), Ok(1));
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).expect("a socket");
        let SocketAddr::V4(address) = address else { panic!("{address}") };
        assert_eq!(connect(socket.as_raw_fd(), &SockaddrIn::from(address)), Err(Errno::EINPROGRESS));
        (socket, listener, waiting)
    }

    #[test]
    fn no_byte_of_another_packet_fills_up_the_last_word() {
        let mut packet = [0xff; 8];
        let payload = Payload { inline: b"hello".to_vec(), ..Payload::default() };
        assert_eq!(gather(&payload, &mut packet), Ok(()));
        assert_eq!(&packet, b"hello\0\0\0");
    }

    #[test]
    fn what_waits_for_room_is_what_it_was_when_it_was_sent() {
        memory::install();
        let mut network = network();
        let (receivers, ports): (Vec<_>, Vec<_>) = [receiver(), receiver(), receiver()].into_iter().unzip();
        let (socket, _listener, _waiting) = blocked();
        let open = mem::replace(&mut network.ports.own.v4, socket);
        let buffer = std::sync::atomic::AtomicU64::new(u64::from_ne_bytes(*b"original"));
        let span = Span { address: buffer.as_ptr() as u64, length: 8 };
        let payload = Payload { spans: vec![span], ..Payload::default() };
        let sent = [0, 1, 2].map(|at| network.send(&transmit(ports[at], 8), &payload));
        assert_eq!(sent, [Sent::Yes, Sent::Blocked, Sent::Lost]);
        assert!(!network.has_room() && network.is_blocked());
        // The application has heard that its datagram is gone.
        buffer.store(u64::from_ne_bytes(*b"reused!!"), std::sync::atomic::Ordering::SeqCst);
        network.ports.own.v4 = open;
        assert!(network.has_room() && !network.is_blocked());
        for receiver in &receivers[..2] {
            let mut bytes = [0; 100];
            let length = receiver.recv(&mut bytes).expect("it was sent");
            assert_eq!(&bytes[Bth::LENGTH..length - Icrc::LENGTH], b"original");
        }
    }

    #[test]
    fn a_refusal_of_packets_that_could_not_leave_alone_either_does_not_end_batches() {
        let mut network = network();
        let (_receiver, port) = receiver();
        // Older kernels say the same of packets that are too long for the interface.
        for port in [0, port] {
            for _ in 0..2 {
                assert_eq!(network.send(&transmit(port, 0), &Payload::default()), Sent::Yes);
            }
            let together = network.batch.contents().map(|(_, segment, bytes)| bytes.len() / segment);
            assert_eq!(together, Some(2), "to UDP port {port}");
            assert!(network.flush());
        }
        let Counters { refused, refusal, .. } = network.counters;
        assert_eq!((refused, refusal), (2, Some(libc::EINVAL)));
    }

    #[test]
    fn hosts_are_known_by_sound_packets_and_never_too_many_of_them() {
        let mut network = network();
        let (sender, from_port) = receiver();
        let to = (Ipv4Addr::LOCALHOST, port::ROCE + u16::from(network.slot()));
        let mut headers = [0; Headers::LONGEST];
        let length = transmit(to.1, 0).headers.emit(0, &mut headers);
        let ends = Ends { from: HERE, to: HERE, from_port, to_port: to.1 };
        let icrc = ends.invariant(length).icrc(0, &headers[..length]);
        for (icrc, is_known) in [(icrc.map(|byte| !byte), false), (icrc, true)] {
            sender.send_to(&[&headers[..length], &icrc].concat(), to).expect("it is sent");
            // A busy kernel delivers later.
            assert_eq!(network.all.wait(&mut [EpollEvent::empty()], EpollTimeout::NONE), Ok(1));
            assert!(network.receive(true, |_, _, _, _| ()));
            assert_eq!(network.foreign.contains(&HERE), is_known, "noise tells nothing");
        }
        for host in 0..2 * MOST_FOREIGN as u32 {
            let ends = Ends { from: Ipv4Addr::from(host).to_ipv6_mapped(), ..ends };
            network.learn(&Datagrams { ends, traffic_class: 0, length: 16, segment: 16 }, 0);
            assert!(network.foreign.contains(&ends.from) && network.foreign.len() <= MOST_FOREIGN);
        }
    }

    #[test]
    fn nobody_is_woken_for_a_port_that_was_given_back() {
        let mut network = network();
        let port = network.listen(0).expect("any port");
        let kept: Vec<_> =
            network.listeners[0].each().map(|socket| socket.try_clone().expect("a child has it")).collect();
        drop(network.unlisten(port));
        let (sender, _) = receiver();
        sender.send_to(&[0], (Ipv4Addr::LOCALHOST, port)).expect("it is sent");
        let mut events = [EpollEvent::empty()];
        assert_eq!(network.all.wait(&mut events, EpollTimeout::ZERO), Ok(0));
        drop(kept);
    }
}
