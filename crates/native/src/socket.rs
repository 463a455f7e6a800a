//! The program's side: a socket for native messages.

use std::env;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags,
    SocketType,
};

use crate::lock::Locked;
use crate::memory::Memory;
use crate::message::{
    ANSWER, BIND, CONNECT, Envelope, HELLO, LONGEST_MESSAGE, Notice, PREFIXES, Prefix, REACH, REQUEST, Reach, words,
};
use crate::ring::{Descriptor, Fault, Ring};

/// Time in which the daemon answers.
const ANSWERED: Duration = Duration::from_secs(5);

/// A socket for native messages, with a port of its own. Threads may share it; so may a child after a fork.
pub struct Socket {
    memory: Memory,
    connection: OwnedFd,
    doorbell: OwnedFd,
    arrivals: OwnedFd,
    notices: OwnedFd,
    room: OwnedFd,
    /// Number of the last request.
    requests: Mutex<u64>,
    port: u16,
    is_nonblocking: AtomicBool,
}

/// Addresses and wishes of a message that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sending {
    /// Address inside and port of the receiver.
    pub destination: SocketAddr,
    /// Address inside of this host; unspecified: the daemon chooses its first.
    pub source: IpAddr,
    /// Number that notices about the message have.
    pub tag: u32,
    /// Whether success is to be told, too. Failure is always told.
    pub wants_notice: bool,
}

impl Sending {
    /// Returns the wishes of a message without notice of success.
    pub fn to(destination: SocketAddr) -> Self {
        Self { destination, source: IpAddr::V4(Ipv4Addr::UNSPECIFIED), tag: 0, wants_notice: false }
    }
}

/// A message that was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Bytes of the message, also of those that the buffer had no room for.
    pub length: usize,
    /// Address inside and port of the sender.
    pub source: SocketAddr,
    /// Address inside of this host, and the socket's port.
    pub destination: SocketAddr,
}

/// Returns the path of the socket on which the daemon takes programs, from that of its control socket.
pub fn native_socket(control: &Path) -> PathBuf {
    let mut path = control.as_os_str().to_owned();
    path.push(".native");
    path.into()
}

/// Returns the path of the daemon's socket for programs: that of the control socket in the environment's
/// `SELVEDGE_EQDS`, by default `/run/selvedge/eqds.sock`, or for other users than root `selvedge/eqds.sock` in
/// `XDG_RUNTIME_DIR` if it is there.
pub fn default_path() -> PathBuf {
    if let Some(path) = env::var_os("SELVEDGE_EQDS").filter(|path| !path.is_empty()) {
        return native_socket(Path::new(&path));
    }
    let own = env::var_os("XDG_RUNTIME_DIR").filter(|_| !rustix::process::geteuid().is_root());
    let own = own.map(|folder| native_socket(&Path::new(&folder).join("selvedge/eqds.sock")));
    own.filter(|path| path.exists()).unwrap_or_else(|| native_socket(Path::new("/run/selvedge/eqds.sock")))
}

impl Socket {
    /// Opens a port, 0 for any free one, at the daemon of [`default_path`].
    ///
    /// # Errors
    /// If no daemon answers (`NotFound`, `ConnectionRefused`), or another program has the port (`AddrInUse`).
    pub fn bind(port: u16) -> io::Result<Self> {
        Self::bind_at(&default_path(), port, None)
    }

    /// Opens a port at the daemon whose socket for programs is at `path`. With `remote`, messages of that host and port
    /// alone are taken; another socket of the port may have the rest.
    ///
    /// # Errors
    /// See [`Socket::bind`].
    pub fn bind_at(path: &Path, port: u16, remote: Option<SocketAddr>) -> io::Result<Self> {
        let mut socket = Self::open(path)?;
        let [high, low] = remote.map_or([0; 2], |remote| words(remote.ip()));
        let remote_port = remote.map_or(0, |remote| u64::from(remote.port()));
        let answer = socket.ask(BIND, [u64::from(port), high, low, remote_port])?;
        socket.port = answer.first().map_or(port, |number| *number as u16);
        Ok(socket)
    }

    /// Connects to the daemon at `path`.
    fn open(path: &Path) -> io::Result<Self> {
        let connection = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        let unable = |error: Errno| {
            let error = io::Error::from(error);
            let text = format!(
                "no EQDS daemon takes programs on {}: {error}; `selvedge eqds up` starts one, SELVEDGE_EQDS names the \
                 control socket of another",
                path.display()
            );
            io::Error::new(error.kind(), text)
        };
        let address = SocketAddrUnix::new(path).map_err(unable)?;
        rustix::net::connect(&connection, &address).map_err(unable)?;
        request(&connection, [HELLO, 0, 0, 0, 0, 0, 0, 0])?;
        await_readable(&connection, now() + ANSWERED)?;
        let (mut bytes, mut space) = ([0; 16], [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))]);
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = rustix::net::recvmsg(&connection, &mut slices, &mut control, flags)?.bytes;
        let fds = control.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        });
        let fds: Vec<OwnedFd> = fds.flatten().collect();
        let other = || io::Error::new(io::ErrorKind::InvalidData, "the daemon is of another version of Selvedge");
        let [memory, doorbell, arrivals, notices, room] = fds.try_into().map_err(|_| other())?;
        if received != 16 || bytes[..8] != HELLO.to_le_bytes() {
            return Err(other());
        }
        let (memory, requests) = (Memory::open(memory)?, Mutex::new(0));
        let is_nonblocking = AtomicBool::new(false);
        Ok(Self { memory, connection, doorbell, arrivals, notices, room, requests, port: 0, is_nonblocking })
    }

    /// Returns the socket's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Chooses whether calls return [`io::ErrorKind::WouldBlock`] instead of waiting.
    pub fn set_nonblocking(&self, is_nonblocking: bool) {
        self.is_nonblocking.store(is_nonblocking, Ordering::Relaxed);
    }

    /// Takes messages of one host and port alone from now on, or of all again.
    ///
    /// # Errors
    /// If another socket of this port takes these.
    pub fn connect(&self, remote: Option<SocketAddr>) -> io::Result<()> {
        let [high, low] = remote.map_or([0; 2], |remote| words(remote.ip()));
        self.ask(CONNECT, [0, high, low, remote.map_or(0, |remote| u64::from(remote.port()))]).map(drop)
    }

    /// Returns information about the way to a host, by an address inside.
    ///
    /// # Errors
    /// If no peer serves the address (`HostUnreachable`), or the daemon is gone.
    pub fn reach(&self, destination: IpAddr) -> io::Result<Reach> {
        let [high, low] = words(destination);
        let answer = self.ask(REACH, [0, high, low, 0])?;
        let words = answer.first_chunk::<10>().ok_or(io::ErrorKind::InvalidData)?;
        Ok(Reach::of(*words))
    }

    /// Returns the prefixes inside, of this host and of its peers.
    ///
    /// # Errors
    /// If the daemon is gone.
    pub fn prefixes(&self) -> io::Result<Vec<Prefix>> {
        let mut all = Vec::new();
        loop {
            let words = self.ask(PREFIXES, [all.len() as u64, 0, 0, 0])?;
            let (each, _) = words.as_chunks::<3>();
            if each.is_empty() {
                return Ok(all);
            }
            all.extend(each.iter().map(|facts| Prefix::of(*facts)));
        }
    }

    /// Sends a message; waits while too much waits already, unless the socket does not block. What became of it is told
    /// by [`Socket::notice`], failures only.
    ///
    /// # Errors
    /// If the message is too long, the socket would block, or the daemon is gone (`ConnectionAborted`).
    pub fn send_to(&self, bytes: &[u8], destination: SocketAddr) -> io::Result<()> {
        self.send(bytes, &Sending::to(destination))
    }

    /// Sends a message with wishes, as [`Socket::send_to`] does.
    ///
    /// # Errors
    /// See [`Socket::send_to`].
    pub fn send(&self, bytes: &[u8], sending: &Sending) -> io::Result<()> {
        loop {
            match self.try_send([bytes, &[]], sending) {
                Err(error) if self.waits(&error) => self.wait_for_room(None)?,
                result => return result,
            };
        }
    }

    /// Sends a message in two pieces if there is room.
    ///
    /// # Errors
    /// `WouldBlock` without room; see [`Socket::send_to`].
    pub fn try_send(&self, pieces: [&[u8]; 2], sending: &Sending) -> io::Result<()> {
        if pieces[0].len() + pieces[1].len() > LONGEST_MESSAGE {
            return Err(Errno::MSGSIZE.into());
        }
        let Sending { destination: remote, source, tag, wants_notice } = *sending;
        let facts = Envelope { remote, local: SocketAddr::new(source, 0), tag, wants_notice }.facts();
        let ring = self.memory.out();
        let locked = Locked::lock(ring.lock());
        let mut cursor = ring.cursor();
        let mut pushed = ring.push(&mut cursor, facts, pieces);
        if pushed == Err(Fault::Full) {
            self.want_room();
            pushed = ring.push(&mut cursor, facts, pieces);
        }
        drop(locked);
        if ring.rings() {
            self.ring_doorbell();
        }
        match pushed {
            Ok(()) => Ok(()),
            Err(Fault::Full) if self.is_over() => Err(gone()),
            Err(Fault::Full) => Err(io::ErrorKind::WouldBlock.into()),
            Err(Fault::Broken) => Err(gone()),
        }
    }

    /// Receives a message; waits for one, unless the socket does not block. Bytes beyond the buffer are lost.
    ///
    /// # Errors
    /// If the socket would block, or the daemon is gone (`ConnectionAborted`).
    pub fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let received = self.recv(buffer, None)?;
        Ok((received.length.min(buffer.len()), received.source))
    }

    /// Receives a message, waiting for that long at most (`TimedOut`).
    ///
    /// # Errors
    /// See [`Socket::recv_from`].
    pub fn recv(&self, buffer: &mut [u8], within: Option<Duration>) -> io::Result<Received> {
        let until = within.map(|within| now() + within);
        loop {
            match self.try_recv(buffer, true) {
                Err(error) if self.waits(&error) => wait(&self.arrivals, until)?,
                result => return result,
            }
        }
    }

    /// Receives a message if there is one; without `takes`, the message stays.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; `ConnectionAborted` if there will be none.
    pub fn try_recv(&self, buffer: &mut [u8], takes: bool) -> io::Result<Received> {
        let mut rest = &mut *buffer;
        self.take(self.memory.incoming(), &self.arrivals, takes, |ring, descriptor| {
            ring.copy(descriptor, std::mem::take(&mut rest));
            let Envelope { remote, local, .. } = Envelope::of(descriptor.facts);
            Received { length: descriptor.length as usize, source: remote, destination: local }
        })
    }

    /// Returns the next notice if there is one.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; `ConnectionAborted` if there will be none.
    pub fn try_notice(&self) -> io::Result<Notice> {
        let unknown = || io::Error::from(io::ErrorKind::InvalidData);
        self.take(self.memory.notices(), &self.notices, true, |_, descriptor| Notice::of(descriptor.facts))?
            .ok_or_else(unknown)
    }

    /// Returns the next notice; waits for one, that long at most, unless the socket does not block.
    ///
    /// # Errors
    /// If the socket would block, no notice comes in time (`TimedOut`), or the daemon is gone (`ConnectionAborted`).
    pub fn notice(&self, within: Option<Duration>) -> io::Result<Notice> {
        let until = within.map(|within| now() + within);
        loop {
            match self.try_notice() {
                Err(error) if self.waits(&error) => wait(&self.notices, until)?,
                result => return result,
            }
        }
    }

    /// Takes the oldest descriptor of a ring. `wakes` is readable while there are some, from the time on at which the
    /// ring was found empty.
    fn take<T>(
        &self,
        ring: Ring<'_>,
        wakes: &OwnedFd,
        takes: bool,
        f: impl FnOnce(&Ring<'_>, &Descriptor) -> T,
    ) -> io::Result<T> {
        let locked = Locked::lock(ring.lock());
        let mut tail = ring.tail();
        let mut next = ring.peek(tail);
        let mut is_hushed = false;
        if next == Ok(None) {
            let mut bytes = [0; 64];
            let _ = rustix::net::recv(wakes, &mut bytes[..], RecvFlags::DONTWAIT);
            ring.hush();
            next = ring.peek(tail);
            is_hushed = true;
        }
        let descriptor = match next {
            Ok(Some(descriptor)) => descriptor,
            Ok(None) if self.is_over() => return Err(gone()),
            Ok(None) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(_) => return Err(gone()),
        };
        let result = f(&ring, &descriptor);
        if takes {
            ring.pop(&mut tail);
        }
        // What came between the two looks has not made the file readable, which only the daemon can do.
        let is_asleep = is_hushed && ring.peek(tail) != Ok(None);
        drop(locked);
        if is_asleep || (takes && ring.owes_room(tail)) {
            self.ring_doorbell();
        }
        Ok(result)
    }

    /// Returns whether a call waits after this error.
    fn waits(&self, error: &io::Error) -> bool {
        error.kind() == io::ErrorKind::WouldBlock && !self.is_nonblocking.load(Ordering::Relaxed)
    }

    /// Waits until a message can be sent, that long at most.
    ///
    /// # Errors
    /// `TimedOut`, or a signal.
    pub fn wait_for_room(&self, within: Option<Duration>) -> io::Result<()> {
        wait(&self.room, within.map(|within| now() + within))
    }

    /// Asks to be woken when there is room, by `room`, which stays readable until somebody finds none: all threads that
    /// wait are woken.
    fn want_room(&self) {
        let mut bytes = [0; 64];
        let _ = rustix::net::recv(&self.room, &mut bytes[..], RecvFlags::DONTWAIT);
        self.memory.out().want_room();
    }

    /// Returns whether there are notices.
    pub fn has_notices(&self) -> bool {
        let ring = self.memory.notices();
        ring.peek(ring.tail()) != Ok(None)
    }
    /// Returns what is readable while there are notices.
    pub fn notices(&self) -> BorrowedFd<'_> {
        self.notices.as_fd()
    }
    /// Returns whether a message of `length` bytes can be sent at once; if not, [`Socket::room`] becomes readable when
    /// it can.
    pub fn has_room(&self, length: usize) -> bool {
        let ring = self.memory.out();
        let has_room = || ring.has_room(&ring.cursor(), length);
        has_room() || {
            self.want_room();
            has_room()
        }
    }
    /// Returns what becomes readable when there is room for messages, after one found none.
    pub fn room(&self) -> BorrowedFd<'_> {
        self.room.as_fd()
    }

    fn ring_doorbell(&self) {
        let _ = rustix::io::write(&self.doorbell, &1_u64.to_ne_bytes());
    }

    /// Returns whether the daemon has ended this connection, or has ended itself.
    pub fn is_over(&self) -> bool {
        let mut fds = [PollFd::new(&self.connection, PollFlags::HUP)];
        poll(&mut fds, Some(&rustix::event::Timespec::default()))
            .is_ok_and(|_| fds[0].revents().contains(PollFlags::HUP))
    }

    /// Asks the daemon; returns the results.
    fn ask(&self, kind: u64, [first, high, low, port]: [u64; 4]) -> io::Result<Vec<u64>> {
        let mut last = self.requests.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *last += 1;
        // After a fork two processes ask by one connection: the number says whose answer it is.
        let number = *last | u64::from(rustix::process::getpid().as_raw_nonzero().get() as u32) << 32;
        let until = now() + ANSWERED;
        request(&self.connection, [kind, number, first, high, low, port, 0, 0])?;
        loop {
            await_readable(&self.connection, until)?;
            let mut bytes = [0; 8 * ANSWER];
            let (count, _) = match rustix::net::recv(&self.connection, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => return Err(gone()),
                Err(Errno::AGAIN | Errno::INTR) => continue,
                Err(_) => return Err(gone()),
                Ok(received) => received,
            };
            let (words, _) = bytes[..count].as_chunks::<8>();
            let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            match words[..] {
                [0, theirs, ref results @ ..] if theirs == number => return Ok(results.to_vec()),
                [errno, theirs, ..] if theirs == number => {
                    return Err(io::Error::from_raw_os_error(errno as i32));
                }
                _ => {}
            }
        }
    }
}

impl AsFd for Socket {
    /// Returns what is readable while there are messages, or when the daemon has gone. It can still be readable
    /// after the last message, if that was received before the daemon had woken its reader; programs that wait for it
    /// set the socket nonblocking, as they do with the kernel's. Nothing may be read from it but by this socket's
    /// functions.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }
}

#[expect(clippy::disallowed_methods, reason = "calls that wait for some time at most")]
fn now() -> Instant {
    Instant::now()
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the EQDS daemon has ended; open the socket again")
}

fn request(connection: &OwnedFd, words: [u64; REQUEST]) -> io::Result<()> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let flags = SendFlags::NOSIGNAL;
    rustix::net::sendmsg(connection, &[IoSlice::new(&bytes)], &mut Default::default(), flags).map_err(|_| gone())?;
    Ok(())
}

/// Waits for an answer.
fn await_readable(fd: &OwnedFd, until: Instant) -> io::Result<()> {
    loop {
        match wait(fd, Some(until)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(io::Error::new(error.kind(), "the EQDS daemon does not answer"));
            }
            result => return result,
        }
    }
}

fn wait(fd: &OwnedFd, until: Option<Instant>) -> io::Result<()> {
    let left = until.map(|until| until.saturating_duration_since(now()));
    let left = left.map(|left| rustix::event::Timespec {
        tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    match poll(&mut [PollFd::new(fd, PollFlags::IN)], left.as_ref())? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}
