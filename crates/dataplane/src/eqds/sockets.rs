//! Sockets outside: one that receives and one per path that sends, for each address of this host.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{EcnCodepoint, RecvMeta, UdpSockRef, UdpSocketState};
use selvedge_tunnel::config::Config;
use selvedge_tunnel::endpoint::Transmit;

use super::error::EqdsError;

/// Wanted size of a receive buffer in bytes: 13 ms at 10 Gb/s.
const WAITING: usize = 16 << 20;
/// Wanted size of a path's send buffer in bytes, as the kernel counts them: a few long batches.
const LEAVING: usize = 1 << 20;
/// Most datagrams, or joined ones, that one system call receives.
const BATCH: usize = 4;
/// Bytes of the longest datagram, or of joined ones.
const LONGEST: usize = 1 << 16;
/// Most bytes that one system call sends, which are one IP packet until the kernel cuts it.
const MOST_BYTES: usize = 65_000;

/// All sockets outside.
pub(super) struct Sockets {
    /// Sockets on the daemon's port, one per address.
    receivers: Vec<Socket>,
    /// Sockets that send, one per path: first those of IPv4, then those of IPv6; empty without an address of the
    /// version.
    paths: [Vec<Socket>; 2],
    /// Room for what one system call receives.
    bytes: Box<[u8]>,
    counters: Counters,
}

/// A socket, and knowledge of what the kernel can do with it.
struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Most datagrams that one system call sends: 1 after the kernel refused to cut.
    segments: usize,
}

/// Datagrams and system calls since the start.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counters {
    pub(super) received: u64,
    pub(super) receive_calls: u64,
    pub(super) sent: u64,
    pub(super) send_calls: u64,
    /// Datagrams that the kernel refused.
    pub(super) refused: u64,
    /// Sends that had to wait for room in the socket.
    pub(super) blocked: u64,
    /// Error of the last refused datagram.
    pub(super) last_refusal: Option<Errno>,
}

/// Purpose of a socket, which decides the remedy if its port is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Receive,
    Send,
}

impl Sockets {
    /// Opens the sockets that the settings describe.
    pub(super) fn open(config: &Config) -> Result<Self, EqdsError> {
        let (mut receivers, mut paths) = (Vec::new(), [Vec::new(), Vec::new()]);
        for address in &config.addresses {
            receivers.push(Socket::bind(*address, config.port, Purpose::Receive)?);
            for port in config.path_ports.clone() {
                paths[usize::from(address.is_ipv6())].push(Socket::bind(*address, port, Purpose::Send)?);
            }
        }
        Ok(Self { receivers, paths, bytes: vec![0; BATCH * LONGEST].into(), counters: Counters::default() })
    }

    /// Returns the sockets that receive, to wait for datagrams.
    pub(super) fn receivers(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.receivers.iter().map(|socket| socket.socket.as_fd())
    }
    /// Returns the socket over which `transmit` leaves, to wait for room.
    pub(super) fn sender(&self, transmit: &Transmit) -> Option<BorrowedFd<'_>> {
        self.path(transmit).map(|socket| socket.socket.as_fd())
    }
    pub(super) fn counters(&self) -> Counters {
        self.counters
    }
    /// Returns the most datagrams that one system call sends at present: 1 if the kernel does not cut them.
    pub(super) fn segments(&self) -> usize {
        self.paths.iter().flatten().map(|socket| socket.segments).min().unwrap_or(1)
    }

    /// Receives by one system call from receiver `index`, and calls `handle` with source, ECN field and payload of each
    /// datagram. Returns whether there may be more.
    pub(super) fn receive(&mut self, index: usize, mut handle: impl FnMut(SocketAddr, u8, &mut [u8])) -> bool {
        let Some(Socket { socket, state, .. }) = self.receivers.get(index) else { return false };
        let mut metas = [RecvMeta::default(); BATCH];
        let mut rest = &mut *self.bytes;
        let mut slices = std::array::from_fn::<_, BATCH, _>(|_| {
            let (slice, behind) = std::mem::take(&mut rest).split_at_mut(LONGEST);
            rest = behind;
            IoSliceMut::new(slice)
        });
        self.counters.receive_calls += 1;
        // Errors are those of earlier sends, or say that there is nothing; neither ends the daemon.
        let Ok(count) = state.recv(UdpSockRef::from(socket), &mut slices, &mut metas) else { return false };
        for (bytes, meta) in self.bytes.chunks_exact_mut(LONGEST).zip(&metas[..count.min(BATCH)]) {
            let ecn = meta.ecn.map_or(0, |ecn| ecn as u8);
            for datagram in bytes[..meta.len.min(LONGEST)].chunks_mut(meta.stride.max(1)) {
                self.counters.received += 1;
                handle(meta.addr, ecn, datagram);
            }
        }
        count == BATCH
    }

    /// Sends the datagrams behind the first `from` of `bytes`; returns the number of bytes that have left or were
    /// refused. Fewer than all: the socket is full, and the rest is to be sent when it has room.
    pub(super) fn send(&mut self, transmit: &Transmit, bytes: &[u8], from: usize) -> usize {
        let segment = transmit.segment.max(1);
        let family = usize::from(transmit.destination.is_ipv6());
        let Some(Socket { socket, state, segments }) = self.paths[family].get_mut(transmit.path) else {
            return bytes.len();
        };
        let counters = &mut self.counters;
        let mut at = from;
        while at < bytes.len() {
            let most = (*segments).min(MOST_BYTES / segment).max(1) * segment;
            let contents = &bytes[at..bytes.len().min(at + most)];
            let count = contents.len().div_ceil(segment) as u64;
            let message = quinn_udp::Transmit {
                destination: transmit.destination,
                ecn: EcnCodepoint::from_bits(transmit.ecn),
                contents,
                segment_size: (count > 1).then_some(segment),
                src_ip: None,
            };
            counters.send_calls += 1;
            let Err(error) = state.try_send(UdpSockRef::from(&*socket), &message) else {
                counters.sent += count;
                at += contents.len();
                continue;
            };
            let refusal = error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw);
            if refusal == Errno::EAGAIN {
                counters.blocked += 1;
                return at;
            }
            if matches!(refusal, Errno::EIO | Errno::EINVAL) {
                // The state takes these errors for those of kernels without ECN in control messages, and sends none
                // from then on; a new one does.
                if let Ok(fresh) = with_options(socket) {
                    *state = fresh;
                }
                if count > 1 {
                    // A system or interface that cannot cut datagrams: from here on they leave one by one.
                    *segments = 1;
                    continue;
                }
            }
            // Too long for the interface, no route, a firewall, a full queue: losses, of which the engine hears by
            // missing acknowledgements.
            counters.refused += count;
            counters.last_refusal = Some(refusal);
            at += contents.len();
        }
        at
    }

    fn path(&self, transmit: &Transmit) -> Option<&Socket> {
        self.paths[usize::from(transmit.destination.is_ipv6())].get(transmit.path)
    }
}

impl Socket {
    fn bind(address: IpAddr, port: u16, purpose: Purpose) -> Result<Self, EqdsError> {
        let socket = UdpSocket::bind((address, port)).map_err(|error| refused(address, port, purpose, &error))?;
        let unable = |error: io::Error| {
            EqdsError::failed(format!("cannot set the options of the socket on {address} port {port}: {error}"))
        };
        let state = with_options(&socket).map_err(unable)?;
        // The first option is for root, the second goes as far as net.core.rmem_max.
        match purpose {
            Purpose::Receive => {
                let _ = setsockopt(&socket, sockopt::RcvBufForce, &WAITING)
                    .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &WAITING));
            }
            Purpose::Send => {
                let _ = setsockopt(&socket, sockopt::SndBufForce, &LEAVING)
                    .or_else(|_| setsockopt(&socket, sockopt::SndBuf, &LEAVING));
                // Nobody reads datagrams for the source ports of paths, and errors do not come here: the least room for
                // them, which the kernel makes of 0, is never emptied.
                let _ = setsockopt(&socket, sockopt::RcvBuf, &0);
            }
        }
        let segments = state.max_gso_segments();
        Ok(Self { socket, state, segments })
    }
}

/// Sets the options that receiving and sending need: not blocking, no fragments whatever path MTU the kernel believes
/// in, joined datagrams, ECN.
fn with_options(socket: &UdpSocket) -> io::Result<UdpSocketState> {
    let state = UdpSocketState::new(UdpSockRef::from(socket))?;
    // quinn-udp 0.6.3 has room for 96 bytes of control messages: with time stamps, packet information and the length of
    // joined datagrams there is none left for the ECN field. The socket's address is known, and the time is not needed.
    setsockopt(socket, sockopt::ReceiveTimestampns, &false)?;
    match socket.local_addr()? {
        SocketAddr::V4(_) => setsockopt(socket, sockopt::Ipv4PacketInfo, &false)?,
        SocketAddr::V6(_) => setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &false)?,
    }
    Ok(state)
}

/// Returns the error of a socket that cannot be bound, with a remedy.
fn refused(address: IpAddr, port: u16, purpose: Purpose, error: &io::Error) -> EqdsError {
    EqdsError::input(match (error.kind(), purpose) {
        (io::ErrorKind::AddrInUse, Purpose::Receive) => format!(
            "another daemon of this host has UDP port {port} of {address}; `selvedge eqds status` shows it, `ss -ulpn` \
             shows any program; or choose another by `port`"
        ),
        (io::ErrorKind::AddrInUse, Purpose::Send) => format!(
            "another program has UDP port {port} of {address} (`ss -uapn` shows it), which is one of the paths' source \
             ports; choose others by `first-path-port`"
        ),
        (io::ErrorKind::AddrNotAvailable, _) => format!(
            "{address} is not an address of this host (`ip address` shows them; an IPv6 address is usable a second after \
             it was added); correct `addresses`"
        ),
        (io::ErrorKind::PermissionDenied, _) => {
            format!("UDP port {port} is for root: run it as root, or choose a port from 1024 on")
        }
        _ => format!("cannot open UDP port {port} of {address}: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "dwdtCnMYpX08FsFyUbJmRd9ML4frwJkqsXf7pR25LCo=";

    fn has_v6() -> bool {
        UdpSocket::bind("[::1]:0").is_ok()
    }

    fn config(port: u16, first_path_port: u16) -> Config {
        let addresses = if has_v6() { "\"127.0.0.1\", \"::1\"" } else { "\"127.0.0.1\"" };
        let text = format!(
            "name = \"a\"\naddresses = [{addresses}]\nlink-rate = \"1Gbps\"\nprefixes = [\"10.1.0.0/24\"]\nport = {port}\n\
             paths = 2\nfirst-path-port = {first_path_port}\nprivate-key = \"{KEY}\"\n"
        );
        Config::parse(std::path::Path::new("eqds.toml"), &text).unwrap()
    }

    #[test]
    fn batches_arrive_datagram_by_datagram_with_their_marks() {
        let mut here = Sockets::open(&config(47_100, 47_110)).unwrap();
        let mut there = Sockets::open(&config(47_101, 47_120)).unwrap();
        let bytes: Vec<u8> = (0..100_000).map(|at| (at / 1_200) as u8).collect();
        let destinations = ["127.0.0.1:47101", "[::1]:47101"].into_iter().take(1 + usize::from(has_v6()));
        for (receiver, destination) in destinations.clone().enumerate() {
            for (path, ecn) in [(0, 2), (1, 3)] {
                let transmit = Transmit { destination: destination.parse().unwrap(), path, ecn, segment: 1_200 };
                assert_eq!(here.send(&transmit, &bytes, 0), bytes.len());
            }
            let mut seen = [Vec::new(), Vec::new()];
            for _ in 0..100 {
                there.receive(receiver, |source, ecn, datagram| {
                    assert!(datagram.len() == 1_200 || datagram.len() == 100_000 % 1_200, "{}", datagram.len());
                    let path = usize::from(source.port() - 47_110);
                    assert_eq!(usize::from(ecn), 2 + path);
                    seen[path].extend_from_slice(datagram);
                });
            }
            assert!(seen == [bytes.clone(), bytes.clone()], "all bytes, in order");
        }
        let counters = here.counters();
        let all = destinations.count() as u64 * 2 * 84;
        assert_eq!((counters.sent, counters.refused), (all, 0));
        assert!(counters.send_calls <= all);
        assert_eq!(there.counters().received, all);
        let destination = "127.0.0.1:47101".parse().unwrap();
        let unknown = Transmit { destination, path: 9, ecn: 0, segment: 100 };
        assert_eq!(here.send(&unknown, &[0; 300], 0), 300, "an unknown path takes anything");
    }

    #[test]
    fn taken_ports_and_foreign_addresses_are_named_with_a_remedy() {
        let message = |config: &Config| Sockets::open(config).map(drop).unwrap_err().to_string();
        let first = Sockets::open(&config(47_130, 47_140)).unwrap();
        assert!(message(&config(47_130, 47_150)).contains("another daemon of this host has UDP port 47130"));
        assert!(message(&config(47_131, 47_140)).contains("choose others by `first-path-port`"));
        let mut foreign = config(47_132, 47_150);
        foreign.addresses = vec!["192.0.2.1".parse().unwrap()];
        assert!(message(&foreign).contains("is not an address of this host"));
        drop(first);
    }
}
