//! UDP ports of the processes.
//!
//! The first process of a host (or network namespace) has RoCEv2's port 4791 and slot 0; the next have 4792, 4793, ...
//! and slots 1, 2, ... The numbers of a process's queue pairs tell its port: their six highest bits are its slot, so a
//! peer that knows a queue pair knows the port, and Selvedge peers send there. Binding is the lock on a slot, and the
//! kernel releases it for processes that die.
//!
//! NICs of other makers send to 4791 alone. So every process has a socket there, too, in one `SO_REUSEPORT` group, and
//! a filter in the kernel gives each packet to the socket whose position in the group is the slot that the packet's
//! queue pair names. Positions are in the order of joining, and the last socket moves to the position of one that
//! leaves; so a packet may come to the wrong process, which passes it on ([`super::forward`]). Slot 0 is for the
//! process that begins a group: packets that Selvedge peers send to 4791 are never passed on.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::OnceLock;

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, getsockname, getsockopt, setsockopt, socket,
    sockopt,
};
use rustix::net::sockopt::{Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover};
use selvedge_nic::verbs::Rnic;
use selvedge_units::QpNumber;

/// UDP port of RoCEv2.
pub const ROCE: u16 = 4_791;
/// Most processes per host.
pub(super) const SLOTS: u8 = 64;
/// Attempts, a millisecond apart, to join the group on port 4791: a process that is about to share the port may have
/// lost its processor, and without the group NICs of other makers never reach this process.
const TRIES: u32 = 100;
/// Wanted size of a socket's receive buffer in bytes, if the system permits it.
const WAITING: usize = 16 << 20;
/// Size of a socket's send buffer in bytes, which the kernel doubles: four full batches. A full queue of this host, for
/// example of a shaper, then blocks the sender before it overflows, and datagrams are not lost in this host.
const LEAVING: usize = 128 << 10;

/// The sockets on one UDP port.
pub(super) struct Sockets {
    pub(super) v4: OwnedFd,
    /// The IPv6 socket; `None` where IPv6 is switched off.
    pub(super) v6: Option<OwnedFd>,
    pub(super) slot: u8,
}

/// All sockets of a process except those of listeners.
pub(super) struct Ports {
    /// The sockets on the process's own port.
    pub(super) own: Sockets,
    /// The sockets on port 4791, if that is not the process's own. `None` if another user, or a driver, has the port
    /// and does not share it.
    pub(super) shared: Option<Sockets>,
}

impl Ports {
    /// Joins the group on port 4791, and takes the first free slot.
    pub(super) fn open() -> io::Result<Self> {
        match Sockets::bind(ROCE, 0, Sharing::Begins) {
            Err(Errno::EADDRINUSE) => {}
            taken => return Ok(Self { own: taken?, shared: None }),
        }
        let shared = Self::join();
        for slot in 1..SLOTS {
            match Sockets::bind(ROCE + u16::from(slot), slot, Sharing::No) {
                Err(Errno::EADDRINUSE) => {}
                taken => return Ok(Self { own: taken?, shared }),
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "UDP ports 4791 to 4854 are all taken on this host"))
    }

    #[expect(clippy::disallowed_methods, reason = "whoever has bound the port shares it a moment later")]
    fn join() -> Option<Sockets> {
        for _ in 0..TRIES {
            if let Ok(sockets) = Sockets::bind(ROCE, 0, Sharing::Joins) {
                return Some(sockets);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        None
    }
    /// Returns whether NICs of other makers reach this process.
    pub(super) fn has_roce(&self) -> bool {
        self.roce().is_some()
    }
    /// Returns the sockets on port 4791.
    pub(super) fn roce(&self) -> Option<&Sockets> {
        if self.own.slot == 0 { Some(&self.own) } else { self.shared.as_ref() }
    }
}

/// Modes of binding a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sharing {
    /// Exclusive.
    No,
    /// Shared, but only if nobody has the port yet.
    Begins,
    /// Shared with all other processes of the user.
    Joins,
}

/// Kernel filter that returns the position in the group: the six highest bits of the destination's number, behind the
/// first five bytes of a BTH.
const BY_SLOT: [libc::sock_filter; 3] = [
    libc::sock_filter { code: (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: 5 },
    libc::sock_filter { code: (libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K) as u16, jt: 0, jf: 0, k: 2 },
    libc::sock_filter { code: (libc::BPF_RET | libc::BPF_A) as u16, jt: 0, jf: 0, k: 0 },
];

impl Sharing {
    fn before_bind(self, socket: &OwnedFd) -> Result<(), Errno> {
        if self == Self::Joins { setsockopt(socket, sockopt::ReusePort, &true) } else { Ok(()) }
    }
    fn after_bind(self, socket: &OwnedFd) -> Result<(), Errno> {
        match self {
            Self::No => Ok(()),
            Self::Begins => setsockopt(socket, sockopt::ReusePort, &true),
            Self::Joins => {
                let mut program = BY_SLOT;
                let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
                // The filter belongs to the group; each member installs an equal one. Without it the kernel chooses by
                // a hash.
                let _ = setsockopt(socket, sockopt::AttachReusePortCbpf, &program);
                Ok(())
            }
        }
    }
}

impl Sockets {
    /// Opens sockets on `port`, or on any port if it is 0; returns the port, too.
    pub(super) fn at(port: u16) -> io::Result<(Self, u16)> {
        let sockets = Self::bind(port, 0, Sharing::No)?;
        let name = getsockname::<SockaddrIn>(sockets.v4.as_raw_fd())?;
        Ok((sockets, name.port()))
    }

    fn bind(port: u16, slot: u8, sharing: Sharing) -> Result<Self, Errno> {
        let v4 = open(AddressFamily::Inet)?;
        sharing.before_bind(&v4)?;
        bind(v4.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)))?;
        sharing.after_bind(&v4)?;
        setsockopt(&v4, sockopt::Ipv4PacketInfo, &true)?;
        setsockopt(&v4, sockopt::IpRecvTos, &true)?;
        // Datagrams leave without fragments, hence with identification 0: see `invariant`.
        set_ip_mtu_discover(v4.as_fd(), Ipv4PathMtuDiscovery::DO).map_err(errno)?;
        let port = getsockname::<SockaddrIn>(v4.as_raw_fd())?.port();
        let v6 = match Self::bind_v6(port, sharing) {
            Err(Errno::EADDRINUSE) => return Err(Errno::EADDRINUSE),
            taken => taken.ok(),
        };
        Ok(Self { v4, v6, slot })
    }

    fn bind_v6(port: u16, sharing: Sharing) -> Result<OwnedFd, Errno> {
        let v6 = open(AddressFamily::Inet6)?;
        setsockopt(&v6, sockopt::Ipv6V6Only, &true)?;
        sharing.before_bind(&v6)?;
        bind(v6.as_raw_fd(), &SockaddrIn6::from(std::net::SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, port, 0, 0)))?;
        sharing.after_bind(&v6)?;
        setsockopt(&v6, sockopt::Ipv6RecvPacketInfo, &true)?;
        setsockopt(&v6, sockopt::Ipv6RecvTClass, &true)?;
        set_ipv6_mtu_discover(v6.as_fd(), Ipv6PathMtuDiscovery::DO).map_err(errno)?;
        Ok(v6)
    }
    /// Returns both sockets, or one without IPv6.
    pub(super) fn each(&self) -> impl Iterator<Item = &OwnedFd> {
        std::iter::once(&self.v4).chain(&self.v6)
    }
}

/// Returns the size of a receive buffer on this host in bytes, as the kernel counts them.
pub(super) fn room() -> usize {
    static ROOM: OnceLock<usize> = OnceLock::new();
    *ROOM.get_or_init(|| open(AddressFamily::Inet).and_then(|socket| getsockopt(&socket, sockopt::RcvBuf)).unwrap_or(0))
}

fn open(family: AddressFamily) -> Result<OwnedFd, Errno> {
    let socket = socket(family, SockType::Datagram, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)?;
    // Some systems cannot join datagrams; then packets come one by one.
    let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
    // Time stamps of arrival: the time that packets wait for the process's threads is not the network's.
    let _ = setsockopt(&socket, sockopt::ReceiveTimestampns, &true);
    // The first option is for root, the second goes as far as net.core.rmem_max.
    let _ =
        setsockopt(&socket, sockopt::RcvBufForce, &WAITING).or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &WAITING));
    let _ = setsockopt(&socket, sockopt::SndBuf, &LEAVING);
    Ok(socket)
}

fn errno(error: rustix::io::Errno) -> Errno {
    Errno::from_raw(error.raw_os_error())
}

/// Returns the slot of a Selvedge queue pair.
pub(super) fn slot_of(qp: QpNumber) -> u8 {
    (qp.0 >> Rnic::QP_BITS) as u8 & (SLOTS - 1)
}

/// Returns the port of a Selvedge queue pair.
pub(super) fn of(qp: QpNumber) -> u16 {
    ROCE + u16::from(slot_of(qp))
}

/// Returns whether a packet from this port is from a Selvedge NIC: others choose ports from 49152 up.
pub(crate) fn is_ours(port: u16) -> bool {
    (ROCE..ROCE + u16::from(SLOTS)).contains(&port)
}
