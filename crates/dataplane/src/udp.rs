//! Datagrams over UDP.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use selvedge_wire::Icrc;

use crate::icrc;

/// A two-way, unreliable datagram network, as the drivers need it.
pub trait Datagrams {
    /// Sends one datagram.
    ///
    /// # Errors
    /// Returns an error if the network fails.
    fn send(&mut self, datagram: &[u8]) -> io::Result<()>;
    /// Waits at most `patience` for a datagram, and writes it into `buffer`, truncated to the buffer's length. Returns
    /// its length; `None` if none arrived, or if the arrived one is damaged.
    ///
    /// # Errors
    /// Returns an error if the network fails.
    fn recv(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>>;
}

/// A UDP socket over IPv4 with one peer. Appends an ICRC to each datagram, and accepts only datagrams whose ICRC is
/// correct.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    /// Addresses of both ends; `None` before [`Self::connect`].
    ends: Option<Ends>,
    /// Whether the socket is in blocking mode.
    waits: bool,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    here: SocketAddrV4,
    there: SocketAddrV4,
}

impl Udp {
    /// Returns a socket bound to `local`, with no peer yet.
    ///
    /// # Errors
    /// Returns an error if the system refuses the socket, or if `local` is not an IPv4 address.
    pub fn bind(local: impl ToSocketAddrs) -> io::Result<Self> {
        let socket = UdpSocket::bind(local)?;
        v4(socket.local_addr()?)?;
        name_no_datagram(&socket)?;
        Ok(Self { socket, ends: None, waits: true, buffer: Vec::new() })
    }
    /// Returns the socket's own address.
    ///
    /// # Errors
    /// Returns an error if the system cannot tell it.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    /// Sets the peer: from now on, the socket exchanges datagrams with `peer` only.
    ///
    /// # Errors
    /// Returns an error if `peer` has no IPv4 address, or if no route leads there.
    pub fn connect(&mut self, peer: impl ToSocketAddrs) -> io::Result<()> {
        let no_address = || io::Error::new(io::ErrorKind::InvalidInput, "the peer has no address");
        let there = v4(peer.to_socket_addrs()?.next().ok_or_else(no_address)?)?;
        let mut here = v4(self.socket.local_addr()?)?;
        if here.ip().is_unspecified() {
            // The socket is bound to all addresses of this host: the ICRC covers the address from which the route to
            // the peer leads.
            let probe = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            probe.connect(there)?;
            here.set_ip(*v4(probe.local_addr()?)?.ip());
        }
        self.ends = Some(Ends { here, there });
        Ok(())
    }
}

impl Datagrams for Udp {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        let Ends { here, there } = self.ends.ok_or(io::ErrorKind::NotConnected)?;
        let icrc = icrc::of(here, there, datagram).ok_or(io::ErrorKind::InvalidInput)?;
        self.buffer.clear();
        self.buffer.extend_from_slice(datagram);
        self.buffer.extend_from_slice(&icrc);
        match self.socket.send_to(&self.buffer, there) {
            // A peer that has closed its socket, or a full queue, counts as packet loss.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock) => {
                Ok(())
            }
            sent => sent.map(drop),
        }
    }
    fn recv(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>> {
        let Ends { here, there } = self.ends.ok_or(io::ErrorKind::NotConnected)?;
        let waits = !patience.is_zero();
        if self.waits != waits {
            self.socket.set_nonblocking(!waits)?;
            self.waits = waits;
        }
        if waits {
            self.socket.set_read_timeout(Some(patience))?;
        }
        match self.socket.recv_from(buffer) {
            Ok((length, from)) if from == SocketAddr::V4(there) => {
                let sound = buffer[..length].split_last_chunk::<{ Icrc::LENGTH }>();
                let sound = sound.filter(|(datagram, icrc)| icrc::of(there, here, datagram) == Some(**icrc));
                Ok(sound.map(|(datagram, _)| datagram.len()))
            }
            Ok(_) => Ok(None),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock
                | io::ErrorKind::TimedOut
                | io::ErrorKind::Interrupted
                | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }
}

/// Makes the kernel send datagrams with identification 0; see [`crate::icrc`].
#[cfg(target_os = "linux")]
fn name_no_datagram(socket: &UdpSocket) -> io::Result<()> {
    use rustix::net::sockopt::{Ipv4PathMtuDiscovery, set_ip_mtu_discover};
    Ok(set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?)
}

/// Does nothing: other systems choose identifications freely, which two ends of this crate do not mind.
#[cfg(not(target_os = "linux"))]
fn name_no_datagram(_: &UdpSocket) -> io::Result<()> {
    Ok(())
}

fn v4(address: SocketAddr) -> io::Result<SocketAddrV4> {
    match address {
        SocketAddr::V4(address) => Ok(address),
        SocketAddr::V6(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "only IPv4 is supported")),
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Instant, Psn, QpNumber};
    use selvedge_wire::{Body, Data, Datagram, Roce};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(2_000);

    fn datagram() -> Vec<u8> {
        let data = Data { psn: Psn::new(7), payload: 5, last: true, retransmission: false, trimmed: false };
        let datagram = Datagram { qp: QpNumber(0x11), sent_at: Instant::ZERO, body: Body::Data(data) };
        [datagram.emit(&mut [0; Datagram::LONGEST_HEADERS]), b"hello"].concat()
    }

    #[test]
    fn damaged_datagrams_and_those_of_strangers_are_dropped() {
        let bound = || Udp::bind("127.0.0.1:0").expect("a socket");
        let (mut here, mut there, stranger) = (bound(), bound(), bound());
        here.connect(there.address().expect("a bound socket")).expect("the peer is bound");
        there.connect(here.address().expect("a bound socket")).expect("the peer is bound");
        let to = there.address().expect("a bound socket");
        let sound = datagram();
        let mut recv = |datagram: &[u8], from: &UdpSocket| {
            from.send_to(datagram, to).expect("loopback works");
            let mut buffer = [0; 2_000];
            there.recv(&mut buffer, PATIENCE).expect("loopback works").map(|length| buffer[..length].to_vec())
        };
        let Ends { here: from, there: peer } = here.ends.expect("the socket is connected");
        let with_icrc = [&sound[..], &icrc::of(from, peer, &sound).expect("the datagram fits into a packet")].concat();
        assert_eq!(recv(&with_icrc, &here.socket).as_ref(), Some(&sound));
        assert_eq!(recv(&with_icrc, &stranger.socket), None, "another port");
        for at in 0..with_icrc.len() {
            let mut damaged = with_icrc.clone();
            damaged[at] ^= 0x20;
            // FECN, BECN and six reserved bits: routers may change them.
            let is_covered = at != 4;
            assert_eq!(recv(&damaged, &here.socket).is_none(), is_covered, "byte {at}");
        }
        for short in [&with_icrc[..3], &with_icrc[..15], &[]] {
            assert_eq!(recv(short, &here.socket), None);
        }
        here.send(&sound).expect("loopback works");
        let mut buffer = [0; 2_000];
        assert_eq!(there.recv(&mut buffer, PATIENCE).expect("loopback works"), Some(sound.len()));
    }

    #[test]
    fn the_icrc_is_that_of_a_roce_datagram() {
        // The bytes behind an IP header, as a capture would show them, checked by the reader that is itself checked
        // against Linux's soft RoCE.
        let (from, to) =
            ("10.0.0.1:49152".parse().expect("a valid address"), SocketAddrV4::new([10, 0, 0, 2].into(), 4791));
        let cnp = Datagram { qp: QpNumber(0x11), sent_at: Instant::ZERO, body: Body::Cnp };
        let bytes = cnp.emit(&mut [0; Datagram::LONGEST_HEADERS]).to_vec();
        let icrc = icrc::of(from, to, &bytes).expect("the datagram fits into a packet");
        let length = 8 + bytes.len() + icrc.len();
        let envelope = selvedge_wire::Envelope {
            source: *from.ip(),
            destination: *to.ip(),
            dscp: 0,
            ecn: selvedge_wire::Ecn::NotCapable,
            identification: 0,
            ttl: 64,
        };
        let ip = envelope.around(selvedge_wire::Ipv4::UDP, length).emit();
        let udp =
            selvedge_wire::Udp { source: from.port(), destination: to.port(), length: length as u16, checksum: 0 };
        let frame = [&ip[..], &udp.emit(), &bytes, &icrc].concat();
        assert!(Roce::parse(&frame).is_ok(), "{:?}", Roce::parse(&frame));
    }
}
