//! The thread that handles events of the connection manager for all sockets, so that connections are established,
//! accepted and ended while programs do something else. It also sends keep-alive messages.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use selvedge_dataplane::Clock;
use selvedge_dataplane::rnic::Channel;
use selvedge_units as units;

use super::super::event::{EventChannel, ack_cm_event, kind, take as take_event};
use super::super::id::Id;
use super::link::{EventQueue, Identifier, manager};
use super::socket::Socket;
use super::wait::{self, Bell, Deadline, readable};
use super::{stream, table};
use crate::borrowed::{Borrowed, Given, load};
use crate::error;

/// Longest time that the end of the process waits for bytes that the peers have not acknowledged.
const LAST_FLUSH: Duration = Duration::from_secs(5);

struct Service {
    process: u32,
    queue: EventQueue,
    bell: Bell,
}

static SERVICE: Mutex<Option<Service>> = Mutex::new(None);

/// Whether any socket ever had keep-alive messages turned on: otherwise sockets are not searched for them.
static KEEPS_ALIVE: AtomicBool = AtomicBool::new(false);

fn service() -> MutexGuard<'static, Option<Service>> {
    SERVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the event channel of all sockets; creates it and its thread if this process has none yet.
///
/// # Errors
/// Returns `errno` if the system has no descriptors or threads left.
pub(super) fn start() -> Result<EventQueue, c_int> {
    let mut service = service();
    let process = std::process::id();
    if let Some(found) = service.as_ref().filter(|service| service.process == process) {
        return Ok(found.queue);
    }
    let channel = EventChannel::create().map_err(|problem| error::of_io(&problem))?;
    // SAFETY: the channel is never destroyed.
    let queue = EventQueue(unsafe { Borrowed::new(channel.as_ptr()) }.ok_or(libc::ENOMEM)?);
    let bell: Bell = Arc::new(Channel::new().map_err(|problem| error::of_io(&problem))?);
    let descriptor = queue.descriptor();
    // SAFETY: the descriptor is the channel's, and its flags are this module's to set.
    unsafe { libc::fcntl(descriptor, libc::F_SETFL, libc::O_NONBLOCK) };
    spawn(queue, Arc::clone(&bell))?;
    let is_first = service.is_none();
    // A parent's service is not dropped: the objects that the child would touch are the parent's.
    std::mem::forget(service.replace(Service { process, queue, bell }));
    if is_first {
        // SAFETY: the function takes nothing and returns.
        unsafe { libc::atexit(finish) };
    }
    Ok(queue)
}

/// Starts the thread with signals blocked: they are for the program's threads.
///
/// # Errors
/// Returns `errno` if the system has no thread left.
fn spawn(queue: EventQueue, bell: Bell) -> Result<(), c_int> {
    // SAFETY: sets of signals, filled before they are used.
    unsafe {
        let (mut blocked, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut blocked);
        for fault in [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL] {
            libc::sigdelset(&raw mut blocked, fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const blocked, &raw mut before);
        let builder = std::thread::Builder::new().name("selvedge-rsocket".to_owned());
        let spawned = builder.spawn(move || run(queue, &bell));
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        spawned.map(drop).map_err(|problem| error::of_io(&problem))
    }
}

/// Wakes the thread after a change of the sockets' keep-alive options.
pub(super) fn keep_alive() {
    KEEPS_ALIVE.store(true, Ordering::Relaxed);
    if let Some(service) = service().as_ref() {
        service.bell.push(());
    }
}

fn run(queue: EventQueue, bell: &Bell) {
    let mut alive = Alive { clock: Clock::start(), due: BTreeMap::new() };
    loop {
        let next = alive.send();
        let mut descriptors = [readable(queue.descriptor()), readable(bell.descriptor())];
        // The wait is not interrupted: signals are blocked in this thread.
        let _ = wait::sleep(&mut descriptors, &Deadline::after(next));
        wait::reset(bell);
        while let Some(event) = take(queue) {
            event.deliver();
        }
    }
}

/// Times of the next keep-alive messages, by names of sockets.
struct Alive {
    clock: Clock,
    due: BTreeMap<usize, units::Instant>,
}

impl Alive {
    /// Sends the keep-alive messages that are due; returns the time until the next one.
    fn send(&mut self) -> Option<Duration> {
        if !KEEPS_ALIVE.load(Ordering::Relaxed) {
            return None;
        }
        let now = self.clock.now();
        let before = std::mem::take(&mut self.due);
        for socket in table::all() {
            let interval = socket.lock().options.keepalive();
            let Some(interval) = interval.filter(|_| socket.is_connected()) else { continue };
            let again = now + units::Duration::from_ns(interval.as_nanos().try_into().unwrap_or(u64::MAX / 1_000_000));
            let mut due = before.get(&socket.name()).map_or(again, |&due| due.min(again));
            if due <= now {
                socket.keep_alive();
                due = again;
            }
            self.due.insert(socket.name(), due);
        }
        self.due.values().min().map(|&due| self.clock.until(due))
    }
}

/// Event of the connection manager for the socket of this name.
struct Event {
    name: usize,
    kind: c_int,
    status: c_int,
    /// The new identifier of a connection request.
    new: Option<Given<Id>>,
    private: Vec<u8>,
}

/// Takes the next event and acknowledges it: nothing of it is used afterwards, except an identifier that came with a
/// request.
fn take(queue: EventQueue) -> Option<Event> {
    let _manager = manager();
    // Identifiers are destroyed under the same lock, and withdraw their events: the event is about one that exists.
    let event = take_event(&queue.0).ok()?;
    let kind = event.kind();
    let has_private = matches!(kind, kind::CONNECT_REQUEST | kind::ESTABLISHED);
    let private = if has_private { event.private().to_vec() } else { Vec::new() };
    let id = event.id();
    // SAFETY: the identifier of a request is new, and came with this event alone.
    let new = if kind == kind::CONNECT_REQUEST { unsafe { Given::from_c(id.as_ptr()) } } else { None };
    let taken = Event { name: load!(id.abi, context).addr(), kind, status: event.status(), new, private };
    ack_cm_event(event);
    Some(taken)
}

impl Event {
    fn deliver(self) {
        let socket = table::named(self.name);
        if let Some(new) = self.new {
            return match socket {
                Some(listener) => listener.admit(new, &self.private),
                None => refuse(new),
            };
        }
        let Some(socket) = socket else { return };
        let is_unseen = match self.kind {
            kind::ESTABLISHED => {
                let Some(listener) = socket.established(&self.private) else { return };
                match table::named(listener) {
                    Some(listener) => !listener.offer(Arc::clone(&socket)),
                    None => true,
                }
            }
            kind::REJECTED => socket.refused(libc::ECONNREFUSED),
            kind::UNREACHABLE => socket.refused(libc::ETIMEDOUT),
            kind::CONNECT_ERROR => socket.refused(if self.status < 0 { -self.status } else { libc::ECONNABORTED }),
            kind::DISCONNECTED => socket.disconnected(),
            _ => false,
        };
        if is_unseen {
            abandon(&socket);
        }
    }
}

/// Refuses a request whose listener is gone.
fn refuse(id: Given<Id>) {
    let id = Identifier::of_request(id, 0);
    let _manager = manager();
    id.refuse();
    // The identifier is dropped under the lock.
    drop(id);
}

/// Ends a connection that the program has never seen.
fn abandon(socket: &Arc<Socket>) {
    let _ = table::remove(socket.number());
    socket.lock().options.linger_s = Some(0);
    socket.close();
}

/// Handles the end of the process: like in an operating system, bytes sent before still reach the peers.
extern "C" fn finish() {
    let process = std::process::id();
    // A thread that calls `exit` in a signal handler may hold the lock itself.
    let is_ours = SERVICE.try_lock().is_ok_and(|service| service.as_ref().is_some_and(|it| it.process == process));
    if !is_ours {
        return;
    }
    let sockets: Vec<_> = table::all().into_iter().filter(|socket| socket.is_free()).collect();
    for socket in &sockets {
        let _ = socket.shutdown(stream::How::Both);
    }
    let deadline = Deadline::after(Some(LAST_FLUSH));
    for socket in sockets.iter().filter(|socket| socket.is_free()) {
        socket.flush(deadline.left());
    }
    // The sockets are not dropped but end with the process: their NIC may be gone already.
    std::mem::forget(sockets);
}

impl EventQueue {
    fn descriptor(self) -> c_int {
        self.0.queue.descriptor()
    }
}
