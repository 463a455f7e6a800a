use std::mem;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::EpollTimeout;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
use selvedge_nic::verbs::{Payload, Route, Span, Transmit};
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Bth, Icrc};

use super::incoming::MOST_FOREIGN;
use super::outgoing::gather;
use super::*;
use crate::rnic::connections::{MANAGEMENT, as_label};
use crate::rnic::datagrams::Datagrams;
use crate::rnic::invariant::Ends;
use crate::rnic::memory;
use crate::rnic::port;

const HERE: Ipv6Addr = Ipv4Addr::LOCALHOST.to_ipv6_mapped();

fn network() -> Network {
    Network::open(&[]).expect("the system has sockets")
}

/// Returns a packet to this UDP port of this host.
fn transmit(port: u16, payload: u32) -> Transmit {
    let flow_label = as_label(port);
    let route = Route { local: HERE, remote: HERE, traffic_class: 0, hop_limit: 64, flow_label };
    let bth = Bth { opcode: 0x04, destination: MANAGEMENT, ..Bth::default() };
    Transmit { route, headers: Headers { bth, ..Headers::default() }, payload }
}

fn receiver() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = socket.local_addr().expect("a bound socket has an address").port();
    (socket, port)
}

/// Returns a socket that sends nothing: its connection is not accepted, because the listener's queue is full.
fn blocked() -> (OwnedFd, TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    nix::sys::socket::listen(&listener, nix::sys::socket::Backlog::new(0).expect("a valid backlog"))
        .expect("the socket listens");
    let address = listener.local_addr().expect("a bound socket has an address");
    let waiting = vec![TcpStream::connect(address).expect("the queue holds one connection")];
    // The listener is readable once the kernel has seen the end of the handshake, perhaps after `connect`.
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
    // The application may reuse the buffer: it has been told that its datagram is gone.
    buffer.store(u64::from_ne_bytes(*b"reused!!"), std::sync::atomic::Ordering::SeqCst);
    network.ports.own.v4 = open;
    assert!(network.has_room() && !network.is_blocked());
    for receiver in &receivers[..2] {
        let mut bytes = [0; 100];
        let length = receiver.recv(&mut bytes).expect("a datagram arrives");
        assert_eq!(&bytes[Bth::LENGTH..length - Icrc::LENGTH], b"original");
    }
}

#[test]
fn a_refusal_of_packets_that_could_not_leave_alone_either_does_not_end_batches() {
    let mut network = network();
    let (_receiver, port) = receiver();
    // Older kernels return these errors for packets that are too long for the interface, too.
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
        sender.send_to(&[&headers[..length], &icrc].concat(), to).expect("loopback accepts the datagram");
        // A busy kernel delivers later.
        assert_eq!(network.all.wait(&mut [EpollEvent::empty()], EpollTimeout::NONE), Ok(1));
        assert!(network.receive(true, |_, _, _, _| ()));
        assert_eq!(network.foreign.contains(&HERE), is_known, "noise tells nothing");
    }
    for host in 0..2 * MOST_FOREIGN as u32 {
        let ends = Ends { from: Ipv4Addr::from(host).to_ipv6_mapped(), ..ends };
        network.learn(&Datagrams { ends, traffic_class: 0, length: 16, segment: 16, waited: None }, 0);
        assert!(network.foreign.contains(&ends.from) && network.foreign.len() <= MOST_FOREIGN);
    }
}

#[test]
fn nobody_is_woken_for_a_port_that_was_given_back() {
    let mut network = network();
    let port = network.listen(0).expect("a free port");
    let kept: Vec<_> =
        network.listeners[0].each().map(|socket| socket.try_clone().expect("a free descriptor")).collect();
    drop(network.unlisten(port));
    let (sender, _) = receiver();
    sender.send_to(&[0], (Ipv4Addr::LOCALHOST, port)).expect("loopback accepts the datagram");
    let mut events = [EpollEvent::empty()];
    assert_eq!(network.all.wait(&mut events, EpollTimeout::ZERO), Ok(0));
    drop(kept);
}
