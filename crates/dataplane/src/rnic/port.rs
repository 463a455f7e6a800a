//! Which UDP port is whose.
//!
//! RoCEv2's port 4791 belongs to the first process of a host (or network namespace); the next take 4792, 4793, ... The
//! numbers of a process's queue pairs tell its port: their six highest bits are its slot, 0 to 63, so whoever
//! knows a queue pair knows its port. Binding is the lock, and the kernel gives it up for those that die.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, getsockname, setsockopt, socket, sockopt,
};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover};
use selvedge_nic::verbs::Rnic;
use selvedge_units::QpNumber;

/// RoCEv2's port.
pub const ROCE: u16 = 4_791;
/// Processes per host.
pub(super) const SLOTS: u8 = 64;
/// Bytes that may wait in a socket, if the system lets us choose.
const WAITING: usize = 16 << 20;

/// The sockets of a process.
pub(super) struct Sockets {
    pub(super) v4: OwnedFd,
    /// None where IPv6 is switched off.
    pub(super) v6: Option<OwnedFd>,
    pub(super) slot: u8,
}

impl Sockets {
    /// Takes the first slot that is free.
    pub(super) fn open() -> io::Result<Self> {
        for slot in 0..SLOTS {
            match Self::take(slot) {
                Err(Errno::EADDRINUSE) => {}
                taken => return Ok(taken?),
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "UDP ports 4791 to 4854 are all taken on this host"))
    }

    /// At some port, or any if it is 0; returns which.
    pub(super) fn at(port: u16) -> io::Result<(Self, u16)> {
        let sockets = Self::bind(port, 0)?;
        let name = getsockname::<SockaddrIn>(sockets.v4.as_raw_fd())?;
        Ok((sockets, name.port()))
    }

    fn take(slot: u8) -> Result<Self, Errno> {
        Self::bind(ROCE + u16::from(slot), slot)
    }

    fn bind(port: u16, slot: u8) -> Result<Self, Errno> {
        let v4 = open(AddressFamily::Inet)?;
        bind(v4.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)))?;
        setsockopt(&v4, sockopt::Ipv4PacketInfo, &true)?;
        setsockopt(&v4, sockopt::IpRecvTos, &true)?;
        // Without fragments, hence with identification 0: see `invariant`.
        set_ip_mtu_discover(v4.as_fd(), Ipv4PathMtuDiscovery::DO).map_err(errno)?;
        let port = getsockname::<SockaddrIn>(v4.as_raw_fd())?.port();
        let v6 = match Self::take_v6(port) {
            Err(Errno::EADDRINUSE) => return Err(Errno::EADDRINUSE),
            taken => taken.ok(),
        };
        Ok(Self { v4, v6, slot })
    }

    fn take_v6(port: u16) -> Result<OwnedFd, Errno> {
        let v6 = open(AddressFamily::Inet6)?;
        setsockopt(&v6, sockopt::Ipv6V6Only, &true)?;
        bind(v6.as_raw_fd(), &SockaddrIn6::from(std::net::SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0)))?;
        setsockopt(&v6, sockopt::Ipv6RecvPacketInfo, &true)?;
        setsockopt(&v6, sockopt::Ipv6RecvTClass, &true)?;
        set_ipv6_mtu_discover(v6.as_fd(), Ipv6PathMtuDiscovery::DO).map_err(errno)?;
        Ok(v6)
    }
}

fn open(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
    // Some systems cannot; then packets come one by one.
    let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
    // The first is for root, the second as far as net.core.rmem_max goes.
    let _ =
        setsockopt(&socket, sockopt::RcvBufForce, &WAITING).or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &WAITING));
    let _ =
        setsockopt(&socket, sockopt::SndBufForce, &WAITING).or_else(|_| setsockopt(&socket, sockopt::SndBuf, &WAITING));
    Ok(socket)
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// The port of one of our own queue pairs.
pub(super) fn of(qp: QpNumber) -> u16 {
    ROCE + (qp.0 >> Rnic::QP_BITS & u32::from(SLOTS - 1)) as u16
}

/// Whether a packet that came from this port is from one of our own: others choose ports from 49152 up.
pub(crate) fn is_ours(port: u16) -> bool {
    (ROCE..ROCE + u16::from(SLOTS)).contains(&port)
}
