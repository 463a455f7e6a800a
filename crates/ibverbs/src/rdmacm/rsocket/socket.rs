//! One socket: its phase, its connection, and the calls that wait for either.
//!
//! 1. A socket's lock is held while a call checks state and copies, never while it sleeps: one thread may read while
//!    another writes.
//! 2. [`Inner::progress`] takes completions and grants credits. Every call makes progress before it checks the state.
//! 3. Events of the connection manager are handled by the thread of [`super::service`] alone.
//! 4. Order of locks: socket, then [`manager`], then the NIC's.

use std::collections::VecDeque;
use std::ffi::{c_int, c_short};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use selvedge_nic::verbs::Status;

use super::super::id::Id;
use super::link::{Arrival, Descriptor, Endpoint, Identifier, manager};
use super::options::{Effect, Options};
use super::stream::{ENTRY, FIRST_TRANSFER, How, Stream};
use super::wait::{self, Bell, Deadline, readable};
use super::wire::{Hello, Message};
use super::{service, table};
use crate::borrowed::Given;

/// Checks in a row before a call requests an event and sleeps: the answer often comes within them.
const LOOKS: u32 = 20;
/// Rounds of completions that one call takes at most: a peer may send without end.
const ROUNDS: u32 = 32;
/// Connections of a listener that are not established yet, or that wait for `raccept`, at most; more are refused.
const BACKLOG: usize = 1_024;

/// Phases of a socket.
enum Phase {
    /// No connection yet, but perhaps an address.
    Fresh,
    /// Listening, with established connections that were not accepted yet.
    Listening(VecDeque<Arc<Socket>>),
    Connecting,
    /// A request to the listener of this name was granted; the other side has not confirmed the connection yet.
    Accepting(usize),
    /// The connection is or was established.
    Connected,
    /// The connection could not be established: `errno`.
    Failed(c_int),
    /// Closed by the program.
    Closed,
}

/// The data streams of a connection.
struct Pipe {
    endpoint: Endpoint,
    stream: Stream,
    /// Size of the send ring in bytes.
    ring: u32,
    arrivals: Vec<Arrival>,
}

/// A socket.
pub(super) struct Socket {
    inner: Mutex<Inner>,
    name: usize,
    /// Descriptor by which the program knows a connection that it accepted.
    alias: OnceLock<OwnedFd>,
    // Dropped last: a completion queue announces its events there.
    descriptor: Descriptor,
}

/// State of a socket, behind its lock.
pub(super) struct Inner {
    phase: Phase,
    pub(super) options: Options,
    // Dropped before the identifier.
    pipe: Option<Pipe>,
    id: Option<Identifier>,
    local: Option<SocketAddr>,
    peer: Option<SocketAddr>,
    /// `errno` that `SO_ERROR` reports once; 0: none.
    error: c_int,
    bells: Vec<Bell>,
    /// Whether an event was requested, so that the descriptor may be readable.
    is_armed: bool,
    /// Whether anything happened since the bells were rung.
    has_changed: bool,
}

/// Whether a call waits, and for how long.
#[derive(Clone, Copy, Debug)]
struct Patience {
    waits: bool,
    limit: Option<Duration>,
}

impl Socket {
    /// Creates a socket.
    ///
    /// # Errors
    /// Returns `errno` if the process may not have more descriptors.
    pub(super) fn new(options: Options) -> Result<Arc<Self>, c_int> {
        let descriptor = Descriptor::new()?;
        let inner = Inner {
            phase: Phase::Fresh,
            options,
            pipe: None,
            id: None,
            local: None,
            peer: None,
            error: 0,
            bells: Vec::new(),
            is_armed: false,
            has_changed: false,
        };
        Ok(Arc::new(Self { inner: Mutex::new(inner), name: table::fresh_name(), alias: OnceLock::new(), descriptor }))
    }
    pub(super) fn name(&self) -> usize {
        self.name
    }
    /// Returns the number of the descriptor by which programs know the socket.
    pub(super) fn number(&self) -> c_int {
        self.alias.get().map_or_else(|| self.descriptor.number(), AsRawFd::as_raw_fd)
    }
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes progress, then calls `look`; rings the waiting threads' bells if anything happened.
    fn look<T>(&self, will_sleep: bool, look: &mut impl FnMut(&mut Inner) -> Option<T>) -> Option<T> {
        let mut inner = self.lock();
        if will_sleep {
            inner.arm();
        }
        inner.progress(&self.descriptor);
        let found = look(&mut inner);
        inner.ring();
        found
    }

    /// Calls `look` until it returns a value, and sleeps between the calls.
    ///
    /// # Errors
    /// Returns `EAGAIN` if the call may not wait, or not longer; `EINTR` after a signal.
    fn wait<T>(&self, patience: Patience, mut look: impl FnMut(&mut Inner) -> Option<T>) -> Result<T, c_int> {
        if let Some(found) = self.look(false, &mut look) {
            return Ok(found);
        }
        if !patience.waits {
            return Err(libc::EAGAIN);
        }
        for _ in 0..LOOKS {
            if let Some(found) = self.look(false, &mut look) {
                return Ok(found);
            }
        }
        let deadline = Deadline::after(patience.limit);
        let bell = wait::bell()?;
        self.lock().bells.push(Arc::clone(&bell));
        let found = loop {
            wait::reset(&bell);
            if let Some(found) = self.look(true, &mut look) {
                break Ok(found);
            }
            let mut descriptors = [readable(bell.descriptor()), readable(self.number())];
            match wait::sleep(&mut descriptors, &deadline) {
                Ok(0) => break Err(libc::EAGAIN),
                Ok(_) => {}
                Err(errno) => break Err(errno),
            }
        };
        self.unhang(&bell);
        found
    }

    /// Adds a bell that rings when something happens to the socket, and requests an event; returns the events that are
    /// ready now.
    pub(super) fn hang(&self, bell: &Bell, is_first: bool, events: c_short) -> c_short {
        let mut inner = self.lock();
        if is_first {
            inner.bells.push(Arc::clone(bell));
        }
        inner.arm();
        inner.progress(&self.descriptor);
        let ready = inner.ready(events);
        inner.ring();
        ready
    }
    /// Removes a bell from the socket.
    pub(super) fn unhang(&self, bell: &Bell) {
        self.lock().bells.retain(|other| !Arc::ptr_eq(other, bell));
    }
    /// Returns which of these `events` of `poll` are ready now.
    pub(super) fn ready(&self, events: c_short) -> c_short {
        self.look(false, &mut |inner| Some(inner.ready(events))).unwrap_or(0)
    }

    /// Binds the socket to an address.
    ///
    /// # Errors
    /// Returns `errno`, for example if the port is taken.
    pub(super) fn bind(&self, to: SocketAddr) -> Result<(), c_int> {
        let mut inner = self.lock();
        if !matches!(inner.phase, Phase::Fresh) || inner.local.is_some() {
            return Err(libc::EINVAL);
        }
        let _manager = inner.identify(self.name)?;
        let Some(id) = &inner.id else { return Err(libc::EINVAL) };
        id.bind(to)?;
        inner.local = id.local();
        Ok(())
    }

    /// Listens for connections.
    ///
    /// # Errors
    /// Returns `errno`, for example if the port is taken.
    pub(super) fn listen(&self) -> Result<(), c_int> {
        let mut inner = self.lock();
        match inner.phase {
            Phase::Listening(_) => return Ok(()),
            Phase::Fresh => {}
            _ => return Err(libc::EINVAL),
        }
        let _manager = inner.identify(self.name)?;
        let Some(id) = &inner.id else { return Err(libc::EINVAL) };
        id.listen()?;
        inner.local = id.local();
        inner.phase = Phase::Listening(VecDeque::new());
        Ok(())
    }

    /// Connects, and waits for the answer if the socket blocks.
    ///
    /// # Errors
    /// Returns `EINPROGRESS` if the socket does not block, or `errno`.
    pub(super) fn connect(&self, to: SocketAddr) -> Result<(), c_int> {
        let patience = {
            let mut inner = self.lock();
            match inner.phase {
                Phase::Fresh => {}
                // Like in Linux, a program may try again.
                Phase::Failed(_) => inner.begin_again(),
                Phase::Connecting => return Err(libc::EALREADY),
                Phase::Closed => return Err(libc::EBADF),
                _ => return Err(libc::EISCONN),
            }
            if let Err(errno) = inner.begin(self, to) {
                inner.phase = Phase::Failed(errno);
                return Err(errno);
            }
            if inner.options.is_nonblocking() {
                return Err(libc::EINPROGRESS);
            }
            Patience { waits: true, limit: inner.options.send_timeout }
        };
        let done = self.wait(patience, |inner| match inner.phase {
            Phase::Connecting => None,
            Phase::Failed(errno) => {
                inner.error = 0;
                Some(Err(errno))
            }
            Phase::Closed => Some(Err(libc::EBADF)),
            _ => Some(Ok(())),
        });
        // Like in Linux: the connection continues to be established.
        done.map_err(|errno| if errno == libc::EAGAIN { libc::EINPROGRESS } else { errno })?
    }

    /// Returns the next established connection of a listener, and waits for one if the socket blocks.
    ///
    /// # Errors
    /// Returns `errno`, for example `EAGAIN` if the socket does not block.
    pub(super) fn accept(&self) -> Result<Arc<Self>, c_int> {
        let patience = self.lock().patience(0, |options| options.receive_timeout);
        let socket = self.wait(patience, |inner| match &mut inner.phase {
            Phase::Listening(waiting) => waiting.pop_front().map(Ok),
            Phase::Closed => Some(Err(libc::EBADF)),
            _ => Some(Err(libc::EINVAL)),
        })??;
        let _ = table::remove(socket.number());
        match socket.descriptor.duplicate() {
            // The descriptor is above all that the program has opened before: `select` of rdma-core 44's
            // librspreload.so takes a number that is below that of its own placeholder for another descriptor.
            Ok(alias) => _ = socket.alias.set(alias),
            Err(errno) => {
                socket.close();
                return Err(errno);
            }
        }
        table::insert(&socket, Some(socket.number()));
        Ok(socket)
    }

    /// Sends bytes, one piece after the other; returns the number of bytes sent.
    ///
    /// # Errors
    /// Returns `errno` if no byte was sent.
    pub(super) fn send(&self, pieces: &[&[u8]], flags: c_int) -> Result<usize, c_int> {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        let patience = {
            let inner = self.lock();
            if flags & libc::MSG_OOB != 0 {
                return Err(libc::EOPNOTSUPP);
            }
            inner.patience(flags, |options| options.send_timeout)
        };
        let (mut sent, mut step) = (0, FIRST_TRANSFER);
        let outcome = self.wait(patience, |inner| {
            let pipe = match inner.pipe() {
                Ok(pipe) => pipe?,
                Err(errno) => return Some(Err(errno)),
            };
            if !pipe.stream.is_writable() {
                let closed = if pipe.stream.was_shut_here() { libc::EPIPE } else { libc::ECONNRESET };
                return Some(Err(pipe.stream.failure().unwrap_or(closed)));
            }
            while let Some(transfer) = pipe.stream.poll_transfer(total - sent, &mut step) {
                pipe.fill(transfer.at, pieces, sent, transfer.length as usize);
                if let Err(errno) = pipe.endpoint.send(&transfer, pipe.ring) {
                    pipe.stream.fail(errno);
                    return Some(Err(errno));
                }
                sent += transfer.length as usize;
            }
            (sent == total).then_some(Ok(()))
        });
        match outcome.and_then(|done| done) {
            Err(errno) if sent == 0 => Err(errno),
            _ => Ok(sent),
        }
    }

    /// Receives bytes into one piece after the other; returns their number, 0 at the end of the stream.
    ///
    /// # Errors
    /// Returns `errno`, for example `EAGAIN` if the socket does not block.
    pub(super) fn recv(&self, pieces: &mut [&mut [u8]], flags: c_int) -> Result<usize, c_int> {
        let total: usize = pieces.iter().map(|piece| piece.len()).sum();
        if flags & libc::MSG_OOB != 0 {
            return Err(libc::EINVAL);
        }
        let patience = self.lock().patience(flags, |options| options.receive_timeout);
        let (peeks, wants_all) = (flags & libc::MSG_PEEK != 0, flags & libc::MSG_WAITALL != 0);
        let mut got = 0;
        let outcome = self.wait(patience, |inner| {
            let pipe = match inner.pipe() {
                Ok(pipe) => pipe?,
                Err(errno) => return Some(Err(errno)),
            };
            let found = pipe.empty(pieces, got, peeks);
            if peeks {
                // Peeked bytes stay in the buffer, so each attempt starts at the beginning.
                let is_enough = found == total || (found > 0 && !wants_all) || !pipe.stream.is_readable();
                if found > 0 && is_enough {
                    got = found;
                    return Some(Ok(()));
                }
            } else {
                got += found;
                pipe.post_control();
                if got == total || (got > 0 && !wants_all) {
                    return Some(Ok(()));
                }
            }
            match pipe.stream.failure() {
                Some(errno) => Some(Err(errno)),
                None if !pipe.stream.is_readable() => Some(Ok(())),
                None => None,
            }
        });
        match outcome.and_then(|done| done) {
            Err(errno) if got == 0 => Err(errno),
            _ => Ok(got),
        }
    }

    /// Shuts one direction down, or both.
    ///
    /// # Errors
    /// Returns `ENOTCONN` without a connection.
    pub(super) fn shutdown(&self, how: How) -> Result<(), c_int> {
        let mut shut = |inner: &mut Inner| match inner.pipe() {
            Ok(Some(pipe)) => {
                pipe.stream.shutdown(how);
                pipe.post_control();
                // Threads that wait to read or write here find that they cannot.
                inner.has_changed = true;
                Some(Ok(()))
            }
            Ok(None) => Some(Err(libc::ENOTCONN)),
            Err(errno) => Some(Err(errno)),
        };
        self.look(false, &mut shut).unwrap_or(Ok(()))
    }

    /// Closes the socket: bytes sent before reach the peer first, unless the program has set `SO_LINGER` to 0 seconds.
    pub(super) fn close(&self) {
        let (waits, limit) = {
            let inner = self.lock();
            let linger = inner.options.linger_s;
            (linger != Some(0), linger.map(|seconds| Duration::from_secs(seconds.unsigned_abs().into())))
        };
        if waits {
            self.flush(limit);
        }
        let waiting = {
            let mut inner = self.lock();
            let phase = std::mem::replace(&mut inner.phase, Phase::Closed);
            {
                let _manager = manager();
                if let (Some(id), true) = (&inner.id, inner.pipe.is_some()) {
                    id.end();
                }
                inner.pipe = None;
                inner.id = None;
            }
            inner.has_changed = true;
            inner.ring();
            if let Phase::Listening(waiting) = phase { waiting } else { VecDeque::new() }
        };
        // Connections that the program has not accepted are closed, too.
        for socket in waiting {
            let _ = table::remove(socket.number());
            socket.close();
        }
    }

    /// Shuts both directions down, and waits until the peer has acknowledged all bytes, for `limit` at most.
    pub(super) fn flush(&self, limit: Option<Duration>) {
        let stands = |inner: &Inner| matches!(inner.phase, Phase::Connected) && inner.pipe.is_some();
        if !stands(&self.lock()) || self.shutdown(How::Both).is_err() {
            return;
        }
        let deadline = Deadline::after(limit);
        // A signal does not end the wait: the program believes that the bytes are sent.
        while self.wait(Patience { waits: true, limit: deadline.left() }, Inner::is_settled) == Err(libc::EINTR) {}
    }

    /// Sets an option.
    ///
    /// # Errors
    /// Returns `errno` if the option is unknown or its value invalid.
    pub(super) fn set_option(&self, level: c_int, name: c_int, value: &[u8]) -> Result<(), c_int> {
        let mut inner = self.lock();
        let is_connected = inner.pipe.is_some();
        let effect = inner.options.set(level, name, value, is_connected)?;
        match effect {
            Effect::Nothing => {}
            Effect::Reuse(_) | Effect::Service(_) => {
                if let Some(id) = &inner.id {
                    let _manager = manager();
                    apply(id, effect)?;
                }
            }
            Effect::KeepAlive => service::keep_alive(),
        }
        Ok(())
    }

    /// Returns and clears the `errno` that `SO_ERROR` reports once; 0 for none.
    pub(super) fn take_error(&self) -> c_int {
        self.look(false, &mut |inner| Some(std::mem::take(&mut inner.error))).unwrap_or(0)
    }
    /// Returns the largest payload of a packet on the socket's path in bytes, or 2,048 before there is one.
    pub(super) fn segment(&self) -> c_int {
        self.lock().id.as_ref().map_or(2_048, Identifier::payload)
    }
    /// Returns whether the socket belongs to a request to the listener of this name, and is not established yet.
    fn is_accepting_for(&self, listener: usize) -> bool {
        matches!(self.lock().phase, Phase::Accepting(name) if name == listener)
    }
    /// Returns whether no thread holds the socket's lock.
    pub(super) fn is_free(&self) -> bool {
        self.inner.try_lock().is_ok()
    }
    /// Returns whether the socket listens.
    pub(super) fn is_listening(&self) -> bool {
        matches!(self.lock().phase, Phase::Listening(_))
    }
    /// Returns whether the socket's connection is established.
    pub(super) fn is_connected(&self) -> bool {
        self.look(false, &mut |inner| Some(inner.stands())).unwrap_or(false)
    }
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.lock().local
    }
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.lock().peer
    }
}

/// Handlers of connection events, called by the thread of [`super::service`].
impl Socket {
    /// Handles a request for a connection to this listener, with this private data.
    pub(super) fn admit(&self, id: Given<Id>, private: &[u8]) {
        let begun = table::all().iter().filter(|socket| socket.is_accepting_for(self.name)).count();
        let options = {
            let inner = self.lock();
            match &inner.phase {
                Phase::Listening(waiting) if waiting.len().max(begun) < BACKLOG => Ok(inner.options.inherited()),
                _ => Err(libc::ECONNREFUSED),
            }
        };
        let made = options.and_then(Self::new);
        let name = made.as_ref().map_or(0, |socket| socket.name);
        let id = Identifier::of_request(id, name);
        let granted = made.and_then(|socket| {
            let hello = Hello::decode(private).ok_or(libc::EPROTO)?;
            table::insert(&socket, None);
            Ok((socket, hello))
        });
        match granted {
            Ok((socket, hello)) => {
                if socket.lock().grant(&socket, id, &hello, self.name).is_ok() {
                    table::insert(&socket, Some(socket.number()));
                }
            }
            Err(_) => {
                let _manager = manager();
                id.refuse();
                drop(id);
            }
        }
    }

    /// Handles the establishment of the connection, with the private data of the answer if this side requested it.
    /// Returns the name of the listener if the other side did.
    pub(super) fn established(&self, private: &[u8]) -> Option<usize> {
        let mut inner = self.lock();
        let listener = match inner.phase {
            Phase::Connecting => {
                inner.on_answer(Hello::decode(private));
                None
            }
            Phase::Accepting(listener) => {
                inner.phase = Phase::Connected;
                Some(listener)
            }
            _ => None,
        };
        inner.progress(&self.descriptor);
        inner.has_changed = true;
        inner.ring();
        listener
    }
    /// Queues an established connection at this listener; returns whether it still listens.
    pub(super) fn offer(&self, socket: Arc<Self>) -> bool {
        let mut inner = self.lock();
        let Phase::Listening(waiting) = &mut inner.phase else { return false };
        waiting.push_back(socket);
        inner.has_changed = true;
        inner.ring();
        true
    }
    /// Handles a failure to connect; returns whether the program has never seen the socket.
    pub(super) fn refused(&self, errno: c_int) -> bool {
        let mut inner = self.lock();
        let is_unseen = matches!(inner.phase, Phase::Accepting(_));
        if matches!(inner.phase, Phase::Connecting) {
            inner.phase = Phase::Failed(errno);
            inner.error = errno;
            inner.has_changed = true;
            inner.ring();
        }
        is_unseen
    }
    /// Handles the end of the connection; returns whether the program has never seen the socket.
    pub(super) fn disconnected(&self) -> bool {
        let mut inner = self.lock();
        // Messages that arrived before the end are handled first.
        inner.progress(&self.descriptor);
        inner.lose(libc::ECONNRESET);
        if let Some(id) = &inner.id {
            let _manager = manager();
            id.stop();
        }
        inner.has_changed = true;
        inner.ring();
        matches!(inner.phase, Phase::Accepting(_))
    }
    /// Sends the peer a keep-alive message.
    pub(super) fn keep_alive(&self) {
        let mut send = |inner: &mut Inner| {
            if let Ok(Some(pipe)) = inner.pipe() {
                pipe.stream.keep_alive();
                pipe.post_control();
            }
            Some(())
        };
        self.look(false, &mut send);
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        table::forget(self.name);
        let inner = self.inner.get_mut().unwrap_or_else(PoisonError::into_inner);
        if inner.id.is_some() {
            let _manager = manager();
            inner.pipe = None;
            inner.id = None;
        }
    }
}

impl Inner {
    fn patience(&self, flags: c_int, limit: impl FnOnce(&Options) -> Option<Duration>) -> Patience {
        let waits = !self.options.is_nonblocking() && flags & libc::MSG_DONTWAIT == 0;
        Patience { waits, limit: limit(&self.options) }
    }

    /// Creates the identifier if there is none; returns the held lock of identifiers.
    fn identify(&mut self, name: usize) -> Result<MutexGuard<'static, ()>, c_int> {
        let queue = service::start()?;
        let guard = manager();
        if self.id.is_none() {
            let id = Identifier::new(queue, name)?;
            for effect in self.options.effects() {
                apply(&id, effect)?;
            }
            self.id = Some(id);
        }
        Ok(guard)
    }

    /// Resolves the address, creates the endpoint, and requests a connection.
    fn begin(&mut self, socket: &Socket, to: SocketAddr) -> Result<(), c_int> {
        let _manager = self.identify(socket.name)?;
        let Some(id) = &self.id else { return Err(libc::EINVAL) };
        id.resolve(to)?;
        let pipe = Pipe::new(id, &socket.descriptor, &self.options)?;
        let hello = pipe.hello();
        self.pipe = Some(pipe);
        (self.local, self.peer) = (id.local(), id.peer());
        id.greet(&hello.encode(), false)?;
        self.phase = Phase::Connecting;
        Ok(())
    }
    fn begin_again(&mut self) {
        let _manager = manager();
        self.pipe = None;
        self.id = None;
        self.error = 0;
        self.phase = Phase::Fresh;
    }

    /// Accepts a request for a connection.
    fn grant(&mut self, socket: &Socket, id: Identifier, hello: &Hello, listener: usize) -> Result<(), c_int> {
        // The identifier goes before the lock.
        let (_manager, id) = (manager(), id);
        let made = Pipe::new(&id, &socket.descriptor, &self.options).and_then(|mut pipe| {
            pipe.stream.handle_hello(hello).map_err(|_| libc::EPROTO)?;
            Ok(pipe)
        });
        let made = made.and_then(|pipe| {
            id.greet(&pipe.hello().encode(), true)?;
            Ok(pipe)
        });
        (self.local, self.peer) = (id.local(), id.peer());
        match made {
            Ok(pipe) => {
                self.pipe = Some(pipe);
                self.id = Some(id);
                self.phase = Phase::Accepting(listener);
                Ok(())
            }
            Err(errno) => {
                id.refuse();
                Err(errno)
            }
        }
    }

    /// Handles the other side's acceptance of the connection, which tells the addresses of its buffers.
    fn on_answer(&mut self, hello: Option<Hello>) {
        let understood = match (&mut self.pipe, hello) {
            (Some(pipe), Some(hello)) => pipe.stream.handle_hello(&hello).is_ok(),
            _ => false,
        };
        if understood {
            self.phase = Phase::Connected;
            return;
        }
        if let Some(id) = &self.id {
            let _manager = manager();
            id.end();
        }
        // The other side uses an unknown protocol.
        self.phase = Phase::Failed(libc::EPROTO);
        self.error = libc::EPROTO;
    }

    /// Returns the connection's data streams; `None` while the connection is being established.
    ///
    /// # Errors
    /// Returns `ENOTCONN` without a connection, `EBADF` after closing.
    fn pipe(&mut self) -> Result<Option<&mut Pipe>, c_int> {
        match self.phase {
            Phase::Connected => Ok(self.pipe.as_mut()),
            Phase::Connecting | Phase::Accepting(_) => Ok(None),
            Phase::Closed => Err(libc::EBADF),
            Phase::Fresh | Phase::Listening(_) | Phase::Failed(_) => Err(libc::ENOTCONN),
        }
    }

    fn stands(&self) -> bool {
        matches!(self.phase, Phase::Connected) && self.pipe.as_ref().is_some_and(|pipe| pipe.stream.is_open())
    }
    fn is_settled(&mut self) -> Option<()> {
        self.pipe.as_ref().is_none_or(|pipe| pipe.stream.is_settled()).then_some(())
    }

    fn lose(&mut self, errno: c_int) {
        if let Some(pipe) = &mut self.pipe {
            if pipe.stream.is_open() {
                self.error = errno;
            }
            pipe.stream.fail(errno);
        }
    }

    /// Requests an event at the next completion.
    fn arm(&mut self) {
        if let Some(pipe) = &self.pipe {
            pipe.endpoint.arm();
            self.is_armed = true;
        }
    }

    /// Takes completions, and posts the control messages that are due.
    fn progress(&mut self, descriptor: &Descriptor) {
        if !matches!(self.phase, Phase::Connected) {
            return;
        }
        let Some(pipe) = &mut self.pipe else { return };
        if std::mem::take(&mut self.is_armed) {
            descriptor.channel.withdraw(|_| true);
        }
        let was_open = pipe.stream.is_open();
        let mut is_fault = false;
        for _ in 0..ROUNDS {
            pipe.arrivals.clear();
            if pipe.endpoint.poll(&mut pipe.arrivals) == 0 {
                break;
            }
            self.has_changed = true;
            is_fault |= pipe.handle_arrivals();
        }
        pipe.post_control();
        if was_open && let Some(errno) = pipe.stream.failure() {
            self.error = errno;
        }
        if is_fault && let Some(id) = &self.id {
            let _manager = manager();
            id.end();
        }
    }

    /// Rings the bells of all waiting threads if anything happened. The calling thread's own bell rings, too: the event
    /// that it requested may be among those just taken, and nothing else would wake it.
    fn ring(&mut self) {
        if std::mem::take(&mut self.has_changed) {
            self.bells.iter().for_each(|bell| bell.push(()));
        }
    }

    /// Returns which of these events of `poll` are ready, by the rules of a TCP socket.
    fn ready(&mut self, events: c_short) -> c_short {
        const IN: c_short = libc::POLLIN | libc::POLLRDNORM;
        const OUT: c_short = libc::POLLOUT | libc::POLLWRNORM;
        const ALWAYS: c_short = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
        let found = match &mut self.phase {
            Phase::Fresh => OUT | libc::POLLHUP,
            Phase::Listening(waiting) => {
                if waiting.is_empty() {
                    0
                } else {
                    IN
                }
            }
            Phase::Connecting | Phase::Accepting(_) => 0,
            Phase::Failed(_) => IN | OUT | libc::POLLERR | libc::POLLHUP,
            Phase::Closed => libc::POLLNVAL,
            Phase::Connected => match &mut self.pipe {
                Some(pipe) => pipe.ready(IN, OUT, events & IN != 0),
                None => libc::POLLNVAL,
            },
        };
        found & (events | ALWAYS)
    }
}

impl Pipe {
    fn new(id: &Identifier, descriptor: &Descriptor, options: &Options) -> Result<Self, c_int> {
        let sizes = Endpoint::fit(id, options.sizes)?;
        let endpoint = Endpoint::new(id, descriptor, sizes)?;
        Ok(Self { endpoint, stream: Stream::new(sizes), ring: sizes.send_buffer, arrivals: Vec::new() })
    }
    /// Returns the private data for the peer.
    fn hello(&self) -> Hello {
        let [list, buffer] = self.endpoint.places();
        self.stream.hello(list, buffer)
    }

    /// Handles arrived messages; returns whether the peer violated the protocol.
    fn handle_arrivals(&mut self) -> bool {
        let Self { endpoint, stream, arrivals, .. } = self;
        let mut is_fault = false;
        for arrival in arrivals.iter() {
            match *arrival {
                Arrival::Sent(message) => stream.handle_sent(message),
                Arrival::Lost(status) => stream.fail(errno_of(status)),
                Arrival::Message(message, length) => {
                    let is_entry = matches!(message, Message::Credits(_)) && length == ENTRY;
                    let entry = is_entry.then(|| endpoint.entry(stream.expected_entry()));
                    is_fault |= stream.handle_message(message, length, entry).is_err();
                }
                Arrival::Unknown => is_fault = true,
            }
        }
        if is_fault {
            stream.fail(libc::EPROTO);
        }
        is_fault
    }

    fn post_control(&mut self) {
        while let Some(control) = self.stream.poll_control() {
            if let Err(errno) = self.endpoint.control(&control) {
                return self.stream.fail(errno);
            }
        }
    }

    /// Copies `length` bytes of `pieces`, from the `skipped`th byte on, to offset `at` of the ring, which may wrap.
    fn fill(&mut self, at: u32, pieces: &[&[u8]], mut skipped: usize, mut length: usize) {
        let mut at = at as usize;
        for piece in pieces {
            let Some(piece) = piece.get(skipped..) else {
                skipped -= piece.len();
                continue;
            };
            skipped = 0;
            let mut rest = &piece[..piece.len().min(length)];
            length -= rest.len();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(self.ring as usize - at));
                self.endpoint.copy_in(at as u32, now);
                at = (at + now.len()) % self.ring as usize;
                rest = later;
            }
        }
    }

    /// Copies arrived bytes to `pieces`, from the `skipped`th byte on; returns their number. They stay in the buffer if
    /// `peeks`.
    fn empty(&mut self, pieces: &mut [&mut [u8]], mut skipped: usize, peeks: bool) -> usize {
        let mut found = 0;
        for piece in pieces {
            let Some(mut piece) = piece.get_mut(skipped..) else {
                skipped -= piece.len();
                continue;
            };
            skipped = 0;
            while !piece.is_empty() {
                let (at, length) = self.stream.piece(if peeks { found } else { 0 }, piece.len());
                if length == 0 {
                    return found as usize;
                }
                let (now, later) = piece.split_at_mut(length as usize);
                self.endpoint.copy_out(at, now);
                if !peeks {
                    self.stream.consume(length);
                }
                found += length;
                piece = later;
            }
        }
        found as usize
    }

    /// Returns the events of `poll` that are ready. A caller that waits to read (`reads`) is told of the end only after
    /// the last byte is read: programs like `rstream` take the end for an error, and leave bytes unread.
    fn ready(&mut self, incoming: c_short, outgoing: c_short, reads: bool) -> c_short {
        let stream = &mut self.stream;
        let mut found = 0;
        if stream.arrived() > 0 || !stream.is_readable() {
            found |= incoming;
        }
        if stream.can_send() || !stream.is_writable() {
            found |= outgoing;
        }
        if !stream.is_readable() {
            found |= libc::POLLRDHUP;
        }
        if reads && stream.arrived() > 0 {
            return found;
        }
        if !stream.is_open() {
            found |= libc::POLLHUP;
        }
        if stream.failure().is_some() {
            found |= libc::POLLERR;
        }
        found
    }
}

/// Returns the `errno` that TCP would report for the loss of a connection.
fn errno_of(status: Status) -> c_int {
    match status {
        Status::RetriesExceeded | Status::NotReadyRetriesExceeded => libc::ETIMEDOUT,
        _ => libc::ECONNRESET,
    }
}

fn apply(id: &Identifier, effect: Effect) -> Result<(), c_int> {
    const TYPE_OF_SERVICE: c_int = 0;
    const SHARES_PORT: c_int = 1;
    match effect {
        Effect::Reuse(shares) => id.set(SHARES_PORT, &c_int::from(shares).to_ne_bytes()),
        Effect::Service(class) => id.set(TYPE_OF_SERVICE, &[class]),
        Effect::Nothing | Effect::KeepAlive => Ok(()),
    }
}
