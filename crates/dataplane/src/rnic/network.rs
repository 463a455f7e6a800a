//! The network of the adapter: packets sent and received through UDP sockets.

mod incoming;
mod outgoing;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use selvedge_units::QpNumber;

use super::batch::Batch;
use super::device::Device;
use super::forward::{self, Addressee, Inbox};
use super::groups::Groups;
use super::port::{Ports, Sockets};
use super::settings;

pub(super) use self::outgoing::Sent;

/// Counters of packets, damage and refusals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets sent.
    pub sent: u64,
    /// Sound packets received.
    pub received: u64,
    /// Received packets whose ICRC was wrong, or that do not parse.
    pub damaged: u64,
    /// Times that packets for other processes of this host were passed on.
    pub passed_on: u64,
    /// Packets that the system refused to send: no route to the address, or longer than the MTU.
    pub refused: u64,
    /// The system's error (`errno`) for the last refused packet.
    pub refusal: Option<i32>,
}

/// The sockets of a process and the packets on their way through them.
pub(super) struct Network {
    ports: Ports,
    /// Sockets that send instead of the process's own port in standard mode, and their port.
    outlet: Option<(Sockets, u16)>,
    /// The socket for packets that other processes pass on.
    inbox: Option<Inbox>,
    batch: Batch,
    /// The packet that did not fit into the full batch. It is copied here because its payload may change.
    behind: Batch,
    buffer: Box<[u8]>,
    control: Vec<u8>,
    /// Hosts whose queue pairs' numbers do not tell ports: NICs of other makers.
    foreign: BTreeSet<Ipv6Addr>,
    /// Interfaces of this host's addresses.
    scopes: BTreeMap<Ipv6Addr, u32>,
    groups: Groups,
    /// Sockets on the UDP ports of RDMA ports that this process listens on.
    listeners: Vec<Listener>,
    /// Whether anything came over IPv6 so far.
    uses_v6: bool,
    /// Whether anything came on the shared port, or was passed on.
    uses_shared: bool,
    /// All sockets, to wait for.
    pub(super) all: Arc<Epoll>,
    pub(super) counters: Counters,
    /// Whether congestion marks are answered.
    pub(super) hears_marks: bool,
}

/// The sockets that receive requests for connections to an RDMA port.
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
        // Without this socket no process can pass packets on to this one; Selvedge peers reach it nevertheless.
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
            control: nix::cmsg_space!(
                nix::libc::in_pktinfo,
                nix::libc::in6_pktinfo,
                i32,
                i32,
                i32,
                nix::libc::timespec
            ),
            foreign: BTreeSet::new(),
            scopes,
            groups: Groups::default(),
            counters: Counters::default(),
            hears_marks: false,
        })
    }

    /// Returns whether the adapter behaves like a NIC of another maker.
    pub(super) fn is_standard(&self) -> bool {
        self.outlet.is_some()
    }
    /// Returns this process's slot: the high bits of its queue pairs' numbers.
    pub(super) fn slot(&self) -> u8 {
        self.ports.own.slot
    }

    /// Returns whether packets wait because a socket is full.
    pub(super) fn is_blocked(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Returns all descriptors of sockets, to wait for them.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let outlet = self.outlet.as_ref().map(|(sockets, _)| sockets);
        let sockets = std::iter::once(&self.ports.own).chain(&self.ports.shared).chain(outlet);
        let own = sockets.flat_map(Sockets::each).chain(self.inbox.as_ref().map(|inbox| &inbox.socket));
        own.chain(self.listeners.iter().flat_map(Listener::each)).map(AsFd::as_fd)
    }

    /// Listens for management datagrams also on the UDP port of an RDMA port, or on any port if it is 0; returns the
    /// port.
    pub(super) fn listen(&mut self, port: u16) -> io::Result<u16> {
        let (sockets, port) = Sockets::at(port)?;
        let inbox = Inbox::open(Addressee::Listener(port)).ok();
        watch(&self.all, Some(&sockets), inbox.as_ref())?;
        self.listeners.push(Listener { port, sockets, inbox });
        Ok(port)
    }

    /// Stops listening on `port`; returns the sockets to be closed.
    pub(super) fn unlisten(&mut self, port: u16) -> Vec<Listener> {
        let gone: Vec<_> = self.listeners.extract_if(.., |listener| listener.port == port).collect();
        for socket in gone.iter().flat_map(Listener::each) {
            // A forked child may still have the descriptor: closing it would not end the watch.
            let _ = self.all.delete(socket);
        }
        gone
    }

    /// Joins a group for a queue pair.
    pub(super) fn join(&mut self, interface: u32, group: Ipv6Addr, qp: QpNumber) -> io::Result<()> {
        let Some(sockets) = self.ports.roce() else { return Err(io::Error::from_raw_os_error(libc::EADDRINUSE)) };
        self.groups.join(sockets, interface, group, qp)?;
        self.uses_shared = true;
        self.uses_v6 |= group.to_ipv4_mapped().is_none();
        Ok(())
    }

    /// Leaves a group, or all groups of a queue pair if `None`.
    pub(super) fn leave(&mut self, group: Option<Ipv6Addr>, qp: QpNumber) {
        if let Some(sockets) = self.ports.roce() {
            self.groups.leave(sockets, group, qp);
        }
    }
}

fn watch(all: &Epoll, sockets: Option<&Sockets>, inbox: Option<&Inbox>) -> io::Result<()> {
    for socket in sockets.into_iter().flat_map(Sockets::each).chain(inbox.map(|inbox| &inbox.socket)) {
        all.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
    }
    Ok(())
}

/// Size of the receive buffer in bytes: larger than any UDP datagram, and than a forwarded message.
const LONGEST: usize = (1 << 16) + forward::HEADER;

#[cfg(test)]
mod tests;
