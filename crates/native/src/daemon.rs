//! The daemon's side: one program's rings, none of which it believes, and the questions that the program asks.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recvmsg, sendmsg, socketpair,
};

use crate::memory::Memory;
use crate::message::{
    ANSWER, BIND, CONNECT, Envelope, HELLO, LONGEST_MESSAGE, Notice, PREFIXES, Prefix, REACH, REQUEST, Reach, address,
};
use crate::ring::{Cursor, Fault};

/// A program's connection. Whatever goes wrong with it ends the connection, and nothing else.
pub struct Client {
    connection: OwnedFd,
    /// `None` before the program has said that it speaks this version.
    rings: Option<Rings>,
}

struct Rings {
    memory: Memory,
    /// Wakes the daemon.
    doorbell: OwnedFd,
    /// Wake the program: there are messages or notices; there is room. Sockets, not event files: a program could let
    /// those block whoever writes, and here it sees the end of the daemon, too.
    arrivals: OwnedFd,
    notices: OwnedFd,
    room: OwnedFd,
    taken: u64,
    given: Cursor,
    told: Cursor,
}

/// A message of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Address inside of this host; unspecified: any.
    pub source: IpAddr,
    /// Address inside and port of the receiver.
    pub destination: SocketAddr,
    /// Number that notices have.
    pub tag: u32,
    /// Whether success is to be told, too.
    pub wants_notice: bool,
}

/// A question of a program; each is answered by [`Client::answer`] or [`Client::refuse`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Number of the request, which the answer repeats.
    pub number: u64,
    /// The question.
    pub question: Question,
}

/// Questions of programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// Open a port, 0 for any, for messages of all or of one host and port. Answer: its number.
    Bind(u16, Option<SocketAddr>),
    /// Take messages of one host and port alone, or of all again.
    Connect(Option<SocketAddr>),
    /// Tell about the way to an address: [`reach_words`].
    Reach(IpAddr),
    /// Tell the prefixes inside from this one on: [`prefix_words`].
    Prefixes(u64),
}

/// The connection is to be ended: the program has ended, or broken the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Over;

/// Result of giving something to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Given {
    /// The program has it.
    Yes,
    /// The program's ring is full; the doorbell rings when there is room.
    Later,
}

impl From<Fault> for Over {
    fn from(_: Fault) -> Self {
        Self
    }
}

impl Client {
    /// Takes a connection, of a socket that does not block.
    pub fn new(connection: OwnedFd) -> Self {
        Self { connection, rings: None }
    }

    /// Returns the connection, readable when there is a request or the program has ended.
    pub fn connection(&self) -> BorrowedFd<'_> {
        self.connection.as_fd()
    }

    /// Returns what becomes readable when the program has sent messages or read some; `None` before its first
    /// request.
    pub fn doorbell(&self) -> Option<BorrowedFd<'_>> {
        self.rings.as_ref().map(|rings| rings.doorbell.as_fd())
    }

    /// Returns the next request; `None` if there is none at present. The first one is answered here.
    ///
    /// # Errors
    /// If the program has ended, or asks what no program of this version asks.
    pub fn request(&mut self) -> Result<Option<Request>, Over> {
        let mut bytes = [0; 8 * REQUEST + 1];
        // No room for descriptors: the kernel closes what a program sends along.
        let received = loop {
            let (mut slices, mut nothing) = ([IoSliceMut::new(&mut bytes)], RecvAncillaryBuffer::new(&mut []));
            match recvmsg(&self.connection, &mut slices, &mut nothing, RecvFlags::DONTWAIT) {
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(None),
                Ok(message) if message.bytes == 8 * REQUEST => break message.bytes,
                _ => return Err(Over),
            }
        };
        let (words, _) = bytes[..received].as_chunks::<8>();
        let words: [u64; REQUEST] = std::array::from_fn(|at| u64::from_le_bytes(words[at]));
        let [kind, number, first, high, low, port, ..] = words;
        if self.rings.is_none() {
            if kind != HELLO {
                return Err(Over);
            }
            let (rings, theirs) = Rings::create().map_err(|_| Over)?;
            let [arrivals, notices, room] = theirs.each_ref().map(AsFd::as_fd);
            let fds = [rings.memory.as_fd(), rings.doorbell.as_fd(), arrivals, notices, room];
            send(&self.connection, &[HELLO, number], &fds).map_err(|_| Over)?;
            self.rings = Some(rings);
            return Ok(None);
        }
        let remote = || (port > 0).then(|| SocketAddr::new(address([high, low]), port as u16));
        let question = match kind {
            BIND => Question::Bind(first as u16, remote()),
            CONNECT => Question::Connect(remote()),
            REACH => Question::Reach(address([high, low])),
            PREFIXES => Question::Prefixes(first),
            _ => return Err(Over),
        };
        Ok(Some(Request { number, question }))
    }

    /// Answers a request.
    ///
    /// # Errors
    /// If the program does not take it.
    pub fn answer(&self, request: &Request, results: &[u64]) -> Result<(), Over> {
        let mut words = vec![0, request.number];
        words.extend(&results[..results.len().min(ANSWER - 2)]);
        send(&self.connection, &words, &[]).map_err(|_| Over)
    }

    /// Refuses a request, with a number of `errno`.
    ///
    /// # Errors
    /// If the program does not take it.
    pub fn refuse(&self, request: &Request, errno: rustix::io::Errno) -> Result<(), Over> {
        send(&self.connection, &[errno.raw_os_error() as u64, request.number], &[]).map_err(|_| Over)
    }

    /// Copies the oldest message that the program wants to be sent into `content`; returns its addresses. The message
    /// stays until [`Client::taken`].
    ///
    /// # Errors
    /// If the ring has nonsense.
    pub fn wanted(&mut self, content: &mut Vec<u8>) -> Result<Option<Wanted>, Over> {
        let Some(rings) = &mut self.rings else { return Ok(None) };
        let ring = rings.memory.out();
        let mut next = ring.peek(rings.taken)?;
        if next.is_none() {
            ring.hush();
            next = ring.peek(rings.taken)?;
        }
        let Some(descriptor) = next else { return Ok(None) };
        if descriptor.length as usize > LONGEST_MESSAGE {
            return Err(Over);
        }
        content.resize(descriptor.length as usize, 0);
        ring.copy(&descriptor, content);
        let Envelope { remote, local, tag, wants_notice } = Envelope::of(descriptor.facts);
        Ok(Some(Wanted { source: local.ip(), destination: remote, tag, wants_notice }))
    }

    /// Notes that the oldest message was taken.
    pub fn taken(&mut self) {
        let Some(rings) = &mut self.rings else { return };
        let ring = rings.memory.out();
        ring.pop(&mut rings.taken);
        if ring.owes_room(rings.taken) {
            wake(&rings.room);
        }
    }

    /// Wakes the program for what it has unread, if it has rung the doorbell because of that.
    pub fn nudge(&self) {
        let Some(rings) = &self.rings else { return };
        for (ring, head, socket) in [
            (rings.memory.incoming(), &rings.given, &rings.arrivals),
            (rings.memory.notices(), &rings.told, &rings.notices),
        ] {
            if ring.has_unread(head) && ring.rings() {
                wake(socket);
            }
        }
    }

    /// Gives the program a message.
    ///
    /// # Errors
    /// If the ring has nonsense.
    pub fn give(&mut self, source: SocketAddr, destination: SocketAddr, content: &[u8]) -> Result<Given, Over> {
        let Some(Rings { memory, given, arrivals, .. }) = &mut self.rings else { return Err(Over) };
        let facts = Envelope { remote: source, local: destination, tag: 0, wants_notice: false }.facts();
        let ring = memory.incoming();
        let mut pushed = ring.push(given, facts, [content, &[]]);
        if pushed == Err(Fault::Full) {
            ring.want_room();
            pushed = ring.push(given, facts, [content, &[]]);
        }
        woken(pushed, ring.rings(), arrivals)
    }

    /// Gives the program a notice.
    ///
    /// # Errors
    /// If the ring has nonsense.
    pub fn tell(&mut self, notice: &Notice) -> Result<Given, Over> {
        let Some(Rings { memory, told, notices, .. }) = &mut self.rings else { return Err(Over) };
        let ring = memory.notices();
        let mut pushed = ring.push(told, notice.facts(), [&[], &[]]);
        if pushed == Err(Fault::Full) {
            ring.want_room();
            pushed = ring.push(told, notice.facts(), [&[], &[]]);
        }
        woken(pushed, ring.rings(), notices)
    }
}

/// Wakes the program if that must be.
fn woken(pushed: Result<(), Fault>, rings: bool, socket: &OwnedFd) -> Result<Given, Over> {
    if rings {
        wake(socket);
    }
    match pushed {
        Ok(()) => Ok(Given::Yes),
        Err(Fault::Full) => Ok(Given::Later),
        Err(Fault::Broken) => Err(Over),
    }
}

impl Rings {
    /// Makes rings; also returns the program's ends of the sockets that wake it.
    fn create() -> io::Result<(Self, [OwnedFd; 3])> {
        let pair = || socketpair(AddressFamily::UNIX, SocketType::STREAM, SOCKET, None);
        let ((arrivals, a), (notices, n), (room, r)) = (pair()?, pair()?, pair()?);
        let doorbell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (taken, given, told) = (0, Cursor::default(), Cursor::default());
        let rings = Self { memory: Memory::create()?, doorbell, arrivals, notices, room, taken, given, told };
        Ok((rings, [a, n, r]))
    }
}

const SOCKET: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// Wakes a program. If the socket is full, it is readable already.
fn wake(socket: &OwnedFd) {
    let _ = rustix::net::send(socket, &[1], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

/// Returns the answer to [`Question::Reach`].
pub fn reach_words(reach: &Reach) -> [u64; 10] {
    reach.words()
}

/// Returns the answer to [`Question::Prefixes`]: as many as an answer takes.
pub fn prefix_words(prefixes: impl Iterator<Item = Prefix>) -> Vec<u64> {
    prefixes.take((ANSWER - 2) / 3).flat_map(|prefix| prefix.facts()).collect()
}

fn send(connection: &OwnedFd, words: &[u64], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    sendmsg(connection, &[IoSlice::new(&bytes)], &mut control, SendFlags::DONTWAIT | SendFlags::NOSIGNAL)?;
    Ok(())
}
