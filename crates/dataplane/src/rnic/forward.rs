//! Forwarding of packets on port 4791 to other processes of this host.
//!
//! Each process has a Unix socket whose name contains its slot, and one more for each RDMA port that it listens on. The
//! names are abstract: they belong to the network namespace like UDP's ports, and vanish with their process. A
//! forwarded message contains what the kernel delivered: addresses and ports, and packets one behind the other.
//! Messages of other users are ignored, root's excepted: they could forge any sender.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::Ipv6Addr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, bind, recvmsg, sendmsg, setsockopt,
    socket, sockopt,
};
use selvedge_nic::cm::ConnectionManager;
use selvedge_units::QpNumber;
use selvedge_wire::cm::{Mad, Message};
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Bth, Icrc};

use super::connections::MANAGEMENT;
use super::datagrams::Datagrams;
use super::invariant::Ends;
use super::port;

/// The process that a packet is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Addressee {
    /// The process with this slot.
    Slot(u8),
    /// The process that listens on this RDMA port.
    Listener(u16),
}

impl Addressee {
    /// Returns the addressee of a packet, ICRC included; slot 0 if there is none.
    pub(super) fn of(datagram: &[u8]) -> Self {
        let Some(&[_, _, _, _, _, high, middle, low, ..]) = datagram.first_chunk::<{ Bth::LENGTH }>() else {
            return Self::Slot(0);
        };
        let qp = QpNumber(u32::from_be_bytes([0, high, middle, low]));
        if qp == MANAGEMENT { of_management(datagram).unwrap_or(Self::Slot(0)) } else { Self::Slot(port::slot_of(qp)) }
    }

    fn address(self) -> nix::Result<UnixAddr> {
        let name = match self {
            Self::Slot(slot) => format!("selvedge-rnic/slot/{slot}"),
            Self::Listener(port) => format!("selvedge-rnic/port/{port}"),
        };
        UnixAddr::new_abstract(name.as_bytes())
    }
}

/// Returns the addressee of a management datagram: requests are for the listener, all others for the owner of the
/// connection.
fn of_management(datagram: &[u8]) -> Option<Addressee> {
    let (packet, _) = datagram.split_last_chunk::<{ Icrc::LENGTH }>()?;
    let (_, payload) = Headers::parse(packet).ok()?;
    let id = match Mad::parse(payload).ok()?.message {
        Message::Request(request) => return Some(Addressee::Listener(request.service as u16)),
        Message::Resolve(request) => return Some(Addressee::Listener(request.service as u16)),
        Message::Resolved(reply) => reply.id,
        Message::Wait(wait) => wait.ids.remote,
        Message::Reject(reject) => reject.ids.remote,
        Message::Reply(reply) => reply.ids.remote,
        Message::Ready(ids, _)
        | Message::Disconnect(ids, ..)
        | Message::Disconnected(ids, _)
        | Message::Life(ids, _) => ids.remote,
    };
    Some(Addressee::Slot((id >> ConnectionManager::ID_BITS) as u8))
}

/// Bytes of a message before its packets.
pub(super) const HEADER: usize = 39;

fn header(datagrams: &Datagrams) -> [u8; HEADER] {
    let Ends { from, to, from_port, to_port } = datagrams.ends;
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(&from.octets());
    header[16..32].copy_from_slice(&to.octets());
    header[32..34].copy_from_slice(&from_port.to_be_bytes());
    header[34..36].copy_from_slice(&to_port.to_be_bytes());
    header[36] = datagrams.traffic_class;
    header[37..].copy_from_slice(&(datagrams.segment as u16).to_be_bytes());
    header
}

fn parsed(message: &[u8]) -> Option<Datagrams> {
    let (header, packets) = message.split_first_chunk::<HEADER>()?;
    let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?));
    let short = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let ends = Ends { from: address(0)?, to: address(16)?, from_port: short(32), to_port: short(34) };
    let segment = usize::from(short(37)).max(1);
    Some(Datagrams { ends, traffic_class: header[36], length: packets.len(), segment, waited: None })
}

/// The socket in which other processes of this host put packets for this process.
#[derive(Debug)]
pub(super) struct Inbox {
    pub(super) socket: OwnedFd,
    control: Vec<u8>,
}

impl Inbox {
    /// Binds the socket to the addressee's name; fails if another process has it.
    pub(super) fn open(addressee: Addressee) -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::Datagram, flags, None)?;
        setsockopt(&socket, sockopt::PassCred, &true)?;
        bind(socket.as_raw_fd(), &addressee.address()?)?;
        Ok(Self { socket, control: nix::cmsg_space!(libc::ucred) })
    }

    /// Passes packets on to another process.
    ///
    /// # Errors
    /// Returns `ECONNREFUSED` if no process has the name, and the system's error if the other socket is full.
    pub(super) fn pass(&self, to: Addressee, datagrams: &Datagrams, packets: &[u8]) -> Result<(), Errno> {
        let header = header(datagrams);
        let message = [IoSlice::new(&header), IoSlice::new(packets)];
        sendmsg(self.socket.as_raw_fd(), &message, &[], MsgFlags::MSG_DONTWAIT, Some(&to.address()?)).map(drop)
    }

    /// Takes a message; its packets begin at [`HEADER`]. Messages of other users are discarded.
    pub(super) fn take(&mut self, buffer: &mut [u8]) -> Option<Datagrams> {
        loop {
            let mut data = [IoSliceMut::new(buffer)];
            let control = Some(self.control.as_mut_slice());
            let message =
                recvmsg::<UnixAddr>(self.socket.as_raw_fd(), &mut data, control, MsgFlags::MSG_DONTWAIT).ok()?;
            let is_trusted = message.cmsgs().ok()?.any(|control| match control {
                ControlMessageOwned::ScmCredentials(who) => [0, nix::unistd::getuid().as_raw()].contains(&who.uid()),
                _ => false,
            });
            let length = message.bytes;
            if let Some(datagrams) = parsed(&buffer[..length]).filter(|_| is_trusted) {
                return Some(datagrams);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_wire::cm::Ids;

    use super::*;

    fn datagrams() -> Datagrams {
        let ends = Ends {
            from: "fd00::1".parse().expect("a valid address"),
            to: "::ffff:10.0.0.2".parse().expect("a valid address"),
            from_port: 50_000,
            to_port: 4_791,
        };
        Datagrams { ends, traffic_class: 7, length: 3, segment: 1_100, waited: None }
    }

    #[test]
    fn a_message_says_what_the_kernel_said() {
        let mut message = header(&datagrams()).to_vec();
        message.extend([1, 2, 3]);
        assert_eq!(parsed(&message), Some(datagrams()));
        assert_eq!(parsed(&message[..HEADER - 1]), None);
    }

    #[test]
    fn packets_are_for_the_slot_of_their_queue_pair() {
        let mut packet = [0; 16];
        packet[5] = 17 << 2 | 3;
        assert_eq!(Addressee::of(&packet), Addressee::Slot(17));
        assert_eq!(Addressee::of(&packet[..7]), Addressee::Slot(0));
    }

    #[test]
    fn management_is_for_listeners_or_by_our_name_for_the_connection() {
        let packet = |message: Message| {
            let bth = Bth { opcode: 0x64, destination: MANAGEMENT, ..Bth::default() };
            let deth = Some(selvedge_wire::verbs::Deth { qkey: selvedge_wire::cm::QKEY, source: MANAGEMENT });
            let mut bytes = vec![0; Headers::LONGEST];
            let length = Headers { bth, deth, ..Headers::default() }.emit(selvedge_wire::cm::LENGTH, &mut bytes);
            bytes.truncate(length);
            bytes.extend(Mad { transaction: 1, message }.emit());
            bytes.extend([0; Icrc::LENGTH]);
            bytes
        };
        let ready = Message::Ready(Ids { local: 9, remote: 5 << ConnectionManager::ID_BITS | 77 }, [0; 224]);
        assert_eq!(Addressee::of(&packet(ready)), Addressee::Slot(5));
        let mut damaged = packet(ready);
        damaged[21] ^= 0xff;
        assert_eq!(Addressee::of(&damaged), Addressee::Slot(0));
    }

    #[test]
    fn one_process_passes_packets_to_another() {
        // The names are shared by the whole host: this test may run twice at a time.
        let mut free =
            (60_001..=u16::MAX).map(Addressee::Listener).filter_map(|name| Some((name, Inbox::open(name).ok()?)));
        let [(taken, first), (name, mut second)] = [(); 2].map(|()| free.next().expect("a free name"));
        first.pass(name, &datagrams(), &[1, 2, 3]).expect("the socket is not full");
        let mut buffer = [0; 100];
        assert_eq!(second.take(&mut buffer), Some(datagrams()));
        assert_eq!(buffer[HEADER..][..3], [1, 2, 3]);
        assert_eq!(second.take(&mut buffer), None);
        assert!(Inbox::open(taken).is_err());
        // Nobody listens on port 0.
        assert_eq!(first.pass(Addressee::Listener(0), &datagrams(), &[]), Err(Errno::ECONNREFUSED));
    }
}
