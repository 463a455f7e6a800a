//! Datagrams over UDP.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

/// Two-way, unreliable, message by message: what a driver needs of a network.
pub trait Datagrams {
    /// Sends one datagram.
    fn send(&mut self, datagram: &[u8]) -> io::Result<()>;
    /// Waits for a datagram, for at most `patience`, and writes it into `buffer`, cut off where
    /// that ends. Returns its length; `None` if none came.
    fn recv(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>>;
}

/// A UDP socket with one peer.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    /// Whether the socket is in blocking mode.
    waits: bool,
}

impl Udp {
    /// A socket bound to `local`, with no peer yet.
    pub fn bind(local: impl ToSocketAddrs) -> io::Result<Self> {
        Ok(Self { socket: UdpSocket::bind(local)?, waits: true })
    }
    /// Its own address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
    /// From now on exchanges datagrams with `peer`, and with nobody else.
    pub fn connect(&self, peer: impl ToSocketAddrs) -> io::Result<()> {
        self.socket.connect(peer)
    }
}

impl Datagrams for Udp {
    fn send(&mut self, datagram: &[u8]) -> io::Result<()> {
        match self.socket.send(datagram) {
            // A peer that has closed its socket, or a full queue, is a network that loses packets.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock) => {
                Ok(())
            }
            sent => sent.map(drop),
        }
    }
    fn recv(&mut self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>> {
        let waits = !patience.is_zero();
        if self.waits != waits {
            self.socket.set_nonblocking(!waits)?;
            self.waits = waits;
        }
        if waits {
            self.socket.set_read_timeout(Some(patience))?;
        }
        match self.socket.recv(buffer) {
            Ok(length) => Ok(Some(length)),
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
