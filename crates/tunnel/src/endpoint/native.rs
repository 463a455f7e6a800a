//! Native messages (EQDS, section 6): programs that know the tunnel send messages to ports of other hosts, hear when
//! they have arrived, and see the queues and round trips that the tunnel sees.
//!
//! A port with a program is a [`PortId`]. Reliable messages are never lost in silence: the sender waits while the queue
//! is full, and a message that a receiver does not take is refused, of which the sender is told. Refusal instead of
//! withheld credit, because all ports of two hosts share a tunnel: one program that does not read must not stop others.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::collections::{BTreeMap, VecDeque};

use selvedge_transport::eqds::NativeInfo;
use selvedge_units::{Duration, Instant, mix64};
use selvedge_wire::eqds::v1::{Head, Next, Refusal, Words};

use super::inside::{Eqif, NOT_CAPABLE};
use super::outward::Outgoing;
use super::{Endpoint, Link, name};

/// A port that a program has opened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(u64);

/// A message to be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// Address inside of the sender; unspecified: this host's first of the destination's version of IP.
    pub source: IpAddr,
    /// Address inside and port of the receiver.
    pub destination: SocketAddr,
    /// Number that notices about the message have.
    pub tag: u32,
    /// Whether the sender wants to be told of success, too. Failure is always told.
    pub wants_notice: bool,
}

/// Reason why a message is not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// No peer serves the destination.
    NoRoute,
    /// The source is no address of this host, or of another version of IP than the destination.
    WrongSource,
    /// The message has more than [`Endpoint::LONGEST_MESSAGE`] bytes.
    TooLong,
    /// Too much waits for the peer. To be tried again.
    Full,
    /// The sender has too many messages under way whose notices it has not read. To be tried again.
    Unread,
    /// The port is closed.
    Closed,
}

/// A message that has arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Incoming {
    /// Address inside and port of the sender.
    pub source: SocketAddr,
    /// Address inside and port of the receiver.
    pub destination: SocketAddr,
    bytes: Vec<u8>,
    start: usize,
}

impl Incoming {
    /// Returns the content.
    pub fn content(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// Notice about a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Notice {
    /// Number that the sender chose.
    pub tag: u32,
    /// Fate of the message.
    pub outcome: Outcome,
    /// Round-trip time of the message's last packet; `None` if it was sent twice, or never arrived.
    pub round_trip: Option<Duration>,
}

/// Fate of a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All of it is at the destination's host. A refusal may follow.
    Arrived,
    /// The message was sent by an unreliable tunnel, which does not tell more.
    Sent,
    /// The destination's host has no program with that port.
    NoListener,
    /// The destination's program has too much unread.
    Full,
    /// The destination's host does not answer.
    Unreachable,
    /// The message may not have arrived: one of the hosts has changed its settings or started anew, or the path takes
    /// only shorter packets than before.
    Lost,
    /// The destination's host knows no native messages.
    Unsupported,
}

/// Information about the tunnel to a peer, for congestion controls of programs (section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// State of the tunnel of native messages.
    pub tunnel: NativeInfo,
    /// Bytes of a quantum of credit.
    pub quantum: u32,
    /// Bytes of messages of which no part was sent.
    pub queued: u64,
}

/// The port is another program's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortTaken;

/// Sender of a message on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Origin {
    /// The port; `None` of refusals, and of packets that are no messages.
    port: Option<u64>,
    tag: u32,
    wants_notice: bool,
}

/// Ports of this host's programs.
#[derive(Debug, Default)]
pub(super) struct Ports {
    all: BTreeMap<u64, Port>,
    /// Ports by their number and, of connected ones, the only sender.
    by_number: BTreeMap<(u16, Option<SocketAddr>), u64>,
    last: u64,
    /// Ports with messages or notices that came since [`Endpoint::poll_port`] returned them.
    ready: VecDeque<u64>,
    /// Notices for which there was no room.
    pub(super) unheard: u64,
}

#[derive(Debug)]
struct Port {
    number: u16,
    /// The only host and port whose messages are taken; `None`: all are.
    remote: Option<SocketAddr>,
    unread: VecDeque<Incoming>,
    /// Bytes of `unread`, and for each message [`EACH`].
    held: usize,
    notices: VecDeque<Notice>,
    /// Messages under way that will give a notice.
    awaited: usize,
    is_ready: bool,
}

/// Bytes that a program may leave unread.
const MOST_UNREAD: usize = 4 << 20;
/// Bytes that a message counts beside its content.
const EACH: usize = 256;
/// Notices that a program may leave unread or await.
const MOST_NOTICES: usize = 4_096;
/// First port that is given to programs which ask for any.
const FIRST_FREE: u16 = 32_768;

impl Ports {
    fn find(&self, number: u16, from: SocketAddr) -> Option<u64> {
        self.by_number.get(&(number, Some(from))).or_else(|| self.by_number.get(&(number, None))).copied()
    }

    /// Tells a sender what has become of its message.
    pub(super) fn tell(&mut self, about: &Outgoing, outcome: Outcome, round_trip: Option<Duration>) {
        if about.next != Next::Native {
            return;
        }
        let Origin { port: Some(id), tag, wants_notice } = about.origin else { return };
        let Some(port) = self.all.get_mut(&id) else { return };
        port.awaited -= usize::from(wants_notice);
        let is_success = matches!(outcome, Outcome::Arrived | Outcome::Sent);
        let (outcome, round_trip) =
            if is_success && about.is_torn { (Outcome::Lost, None) } else { (outcome, round_trip) };
        if wants_notice || !matches!(outcome, Outcome::Arrived | Outcome::Sent) {
            self.note(id, Notice { tag, outcome, round_trip });
        }
    }

    fn note(&mut self, id: u64, notice: Notice) {
        let Some(port) = self.all.get_mut(&id) else { return };
        // Each message may give two: of its arrival and of its refusal.
        if port.notices.len() >= 2 * MOST_NOTICES {
            self.unheard += 1;
            return;
        }
        port.notices.push_back(notice);
        self.wake(id);
    }

    fn wake(&mut self, id: u64) {
        if let Some(port) = self.all.get_mut(&id)
            && !std::mem::replace(&mut port.is_ready, true)
        {
            self.ready.push_back(id);
        }
    }
}

impl Endpoint {
    /// Most bytes of a native message.
    pub const LONGEST_MESSAGE: usize = 1 << 20;

    /// Opens a port for native messages; 0 is any free one. With `remote`, the port takes messages of that host and
    /// port alone, before one without takes the rest.
    ///
    /// # Errors
    /// If the port is open already, or none is free.
    pub fn open_port(&mut self, number: u16, remote: Option<SocketAddr>) -> Result<PortId, PortTaken> {
        let number = if number == 0 { self.free_port(remote).ok_or(PortTaken)? } else { number };
        if self.ports.by_number.contains_key(&(number, remote)) {
            return Err(PortTaken);
        }
        self.ports.last += 1;
        let id = self.ports.last;
        self.ports.by_number.insert((number, remote), id);
        let (unread, notices) = (VecDeque::new(), VecDeque::new());
        let port = Port { number, remote, unread, held: 0, notices, awaited: 0, is_ready: false };
        self.ports.all.insert(id, port);
        Ok(PortId(id))
    }

    fn free_port(&self, remote: Option<SocketAddr>) -> Option<u16> {
        let count = u32::from(u16::MAX - FIRST_FREE) + 1;
        let start = (mix64(self.random ^ self.ports.last) % u64::from(count)) as u32;
        let all = (0..count).map(|step| FIRST_FREE + ((start + step) % count) as u16);
        let is_free = |number: &u16| {
            !self.ports.by_number.contains_key(&(*number, remote))
                && !self.ports.by_number.contains_key(&(*number, None))
        };
        all.into_iter().find(is_free)
    }

    /// Returns the number of a port.
    pub fn port_number(&self, id: PortId) -> Option<u16> {
        self.ports.all.get(&id.0).map(|port| port.number)
    }

    /// Changes whose messages a port takes.
    ///
    /// # Errors
    /// If another port of that number takes these.
    pub fn connect_port(&mut self, id: PortId, remote: Option<SocketAddr>) -> Result<(), PortTaken> {
        let Some(port) = self.ports.all.get_mut(&id.0) else { return Err(PortTaken) };
        let key = (port.number, remote);
        if self.ports.by_number.get(&key).is_some_and(|other| *other != id.0) {
            return Err(PortTaken);
        }
        self.ports.by_number.remove(&(port.number, port.remote));
        port.remote = remote;
        self.ports.by_number.insert(key, id.0);
        Ok(())
    }

    /// Closes a port; what is unread is dropped.
    pub fn close_port(&mut self, id: PortId) {
        if let Some(port) = self.ports.all.remove(&id.0) {
            self.ports.by_number.remove(&(port.number, port.remote));
        }
    }

    /// Sends a message, of two pieces, from a port.
    ///
    /// # Errors
    /// With [`SendError::Full`] and [`SendError::Unread`] the message can be sent later.
    pub fn send_message(
        &mut self,
        now: Instant,
        id: PortId,
        sending: &Sending,
        content: [&[u8]; 2],
    ) -> Result<(), SendError> {
        let Some(port) = self.ports.all.get(&id.0) else { return Err(SendError::Closed) };
        let (number, is_full) = (port.number, port.notices.len() + port.awaited >= MOST_NOTICES);
        let destination = sending.destination;
        let peer = self.peer_of(destination.ip()).ok_or(SendError::NoRoute)?;
        let source = match sending.source {
            given if given.is_unspecified() => self.own_address(destination.ip()).ok_or(SendError::WrongSource)?,
            given => given,
        };
        if !self.serves(source) {
            return Err(SendError::WrongSource);
        }
        if content[0].len() + content[1].len() > Self::LONGEST_MESSAGE {
            return Err(SendError::TooLong);
        }
        if sending.wants_notice && is_full {
            return Err(SendError::Unread);
        }
        let head = Head { refusal: None, source: SocketAddr::new(source, number), destination, tag: sending.tag };
        let origin = Origin { port: Some(id.0), tag: sending.tag, wants_notice: sending.wants_notice };
        self.enqueue_message(now, peer, &head, origin, content)?;
        if let Some(port) = self.ports.all.get_mut(&id.0) {
            port.awaited += usize::from(sending.wants_notice);
        }
        Ok(())
    }

    fn enqueue_message(
        &mut self,
        now: Instant,
        peer: usize,
        head: &Head,
        origin: Origin,
        content: [&[u8]; 2],
    ) -> Result<(), SendError> {
        let mut buffer = [0; Head::LONGEST];
        let head = head.emit(&mut buffer).ok_or(SendError::WrongSource)?;
        let is_full = self.is_full();
        let Some(link) = &mut self.links[peer] else { return Err(SendError::NoRoute) };
        let Link { sizes, tunnels, path_mtu, .. } = link;
        let outward = &mut tunnels[Eqif::Native as usize].outward;
        let length = (content[0].len() + content[1].len() + head.len()) as u64;
        let waiting = outward.queue.waiting;
        // One message always has room, however long.
        if is_full || (waiting > 0 && waiting + length > outward.limits.queue) {
            return Err(SendError::Full);
        }
        let tunnel = name(peer, Eqif::Native);
        let part = usize::from(path_mtu.size()) - sizes.header - sizes.tag - Words::LENGTH;
        let about =
            Outgoing { tunnel, next: Next::Native, ecn: NOT_CAPABLE, part: part as u32, origin, ..Outgoing::default() };
        outward.counts.packets += 1;
        outward.counts.bytes += length;
        let credit = outward.queue.push(&mut self.packets, [head, content[0], content[1]], about, sizes);
        self.supply(now, tunnel, credit);
        Ok(())
    }

    /// Returns the next port that has messages or notices. It is returned again when new ones come.
    pub fn poll_port(&mut self) -> Option<PortId> {
        loop {
            let id = self.ports.ready.pop_front()?;
            if let Some(port) = self.ports.all.get_mut(&id) {
                port.is_ready = false;
                return Some(PortId(id));
            }
        }
    }

    /// Returns the oldest unread message of a port, which stays until [`Endpoint::drop_message`].
    pub fn poll_message(&self, id: PortId) -> Option<&Incoming> {
        self.ports.all.get(&id.0)?.unread.front()
    }
    /// Drops the oldest unread message of a port: the program has it.
    pub fn drop_message(&mut self, id: PortId) {
        let Some(port) = self.ports.all.get_mut(&id.0) else { return };
        if let Some(message) = port.unread.pop_front() {
            port.held -= message.bytes.len() + EACH;
            self.recycle(message.bytes);
        }
    }

    /// Returns the oldest unread notice of a port, which stays until [`Endpoint::drop_notice`].
    pub fn poll_notice(&self, id: PortId) -> Option<&Notice> {
        self.ports.all.get(&id.0)?.notices.front()
    }
    /// Drops the oldest unread notice of a port.
    pub fn drop_notice(&mut self, id: PortId) {
        if let Some(port) = self.ports.all.get_mut(&id.0) {
            port.notices.pop_front();
        }
    }

    /// Returns information about the way to an address inside; `None` if no peer serves it.
    pub fn reach(&self, now: Instant, destination: IpAddr) -> Option<Reach> {
        let link = self.links[self.peer_of(destination)?].as_ref()?;
        let outward = &link.tunnels[Eqif::Native as usize].outward;
        let tunnel = outward.sender.native_info(&outward.params, now);
        Some(Reach { tunnel, quantum: outward.params.quantum, queued: outward.queue.waiting })
    }

    /// Returns whether an address inside is served by this host.
    fn serves(&self, address: IpAddr) -> bool {
        self.config.prefixes.iter().any(|prefix| prefix.contains(address))
    }

    /// Returns this host's first address inside of the version of IP of `like`.
    fn own_address(&self, like: IpAddr) -> Option<IpAddr> {
        let own = self.config.inner_addresses.iter().map(|inner| inner.address);
        let prefixes = self.config.prefixes.iter().map(|prefix| prefix.address);
        own.chain(prefixes).find(|address| address.is_ipv4() == like.is_ipv4())
    }

    /// Handles a whole message of a peer.
    pub(super) fn on_message(&mut self, now: Instant, peer: usize, bytes: Vec<u8>) {
        let Ok((head, content)) = Head::parse(&bytes) else {
            self.drops.broken += 1;
            return self.recycle(bytes);
        };
        let start = bytes.len() - content.len();
        let is_of_peer = self.links[peer].as_ref().is_some_and(|link| link.peer.serves(head.source.ip()));
        if !is_of_peer || !self.serves(head.destination.ip()) {
            self.drops.foreign += 1;
            return self.recycle(bytes);
        }
        let listener = self.ports.find(head.destination.port(), head.source);
        if let Some(refusal) = head.refusal {
            if let Some(id) = listener {
                let outcome = match refusal {
                    Refusal::NoListener => Outcome::NoListener,
                    Refusal::Full => Outcome::Full,
                    Refusal::Other(_) => Outcome::Lost,
                };
                self.ports.note(id, Notice { tag: head.tag, outcome, round_trip: None });
            }
            return self.recycle(bytes);
        }
        let listener = listener.and_then(|id| Some((id, self.ports.all.get_mut(&id)?)));
        let refusal = match listener {
            Some((_, port)) if port.held + bytes.len() + EACH > MOST_UNREAD => {
                self.drops.port_full += 1;
                Refusal::Full
            }
            Some((id, port)) => {
                port.held += bytes.len() + EACH;
                port.unread.push_back(Incoming { source: head.source, destination: head.destination, bytes, start });
                return self.ports.wake(id);
            }
            None => {
                self.drops.no_listener += 1;
                Refusal::NoListener
            }
        };
        self.recycle(bytes);
        let Head { source: destination, destination: source, tag, .. } = head;
        let refusal = Head { refusal: Some(refusal), source, destination, tag };
        // What a peer asks for beyond its queue here it does not hear of.
        if self.enqueue_message(now, peer, &refusal, Origin::default(), [&[], &[]]).is_err() {
            self.drops.unheard += 1;
        }
    }
}

/// The source address by which a sender leaves the choice to the host.
pub const ANY_SOURCE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
