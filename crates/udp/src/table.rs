//! The program's UDP sockets, by descriptor.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use selvedge_native::{Socket, default_path};

use crate::address;
use crate::network;
use crate::next::next;

/// Descriptors that are looked after; greater ones are the kernel's alone.
const MOST: usize = 1 << 16;

static TABLE: [AtomicPtr<Entry>; MOST] = [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST];
/// Entries of sockets that were closed. None is ever freed: a thread may still look at it.
static FREE: Mutex<Vec<&'static Entry>> = Mutex::new(Vec::new());

/// A UDP socket of the program; several descriptors may name it.
pub(crate) struct Entry {
    descriptors: AtomicUsize,
    state: Mutex<State>,
}

/// State of a UDP socket.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) is_v6: bool,
    /// The native socket of the same port.
    pub(crate) native: Option<Arc<Socket>>,
    /// Port of the native socket, to be opened again after a restart of the daemon; and the time of the last attempt.
    port: Option<u16>,
    tried_at: i64,
    /// Address inside from which the program sends, if it has chosen one.
    pub(crate) source: Option<IpAddr>,
    /// Host to which the socket is connected, if that is a peer's.
    pub(crate) remote: Option<SocketAddr>,
    /// Error that the next call returns.
    pub(crate) error: i32,
    /// Epoll instances that wait for the socket, with its events.
    pub(crate) watches: Vec<Watch>,
}

/// An epoll instance that waits for a socket.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    pub(crate) epoll: i32,
    pub(crate) event: libc::epoll_event,
    /// Process that waits: a child that closes its copy of the socket must not end the watch of its parent.
    pub(crate) process: i32,
}

impl Entry {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Returns whether the socket has a native one, or had one until the daemon ended.
    pub(crate) fn is_native(&self) -> bool {
        self.state().port.is_some()
    }

    /// Returns the native socket, if there is one.
    pub(crate) fn native(&self) -> Option<Arc<Socket>> {
        self.state().revived().cloned()
    }
}

impl State {
    /// Opens the native socket of a port.
    pub(crate) fn open(&mut self, port: u16) {
        self.port = Some(port);
        self.tried_at = network::seconds();
        self.native = Socket::bind_at(&default_path(), port, self.remote).ok().map(Arc::new);
        for watch in self.watches.clone() {
            self.watch(watch);
        }
    }

    /// Leaves everything to the kernel.
    pub(crate) fn close(&mut self) {
        self.unwatch();
        self.native = None;
        self.port = None;
    }

    /// Returns the native socket; one whose daemon has ended is opened again now and then.
    pub(crate) fn revived(&mut self) -> Option<&Arc<Socket>> {
        if self.native.is_none()
            && let Some(port) = self.port
            && network::seconds() > self.tried_at
        {
            self.open(port);
        }
        self.native.as_ref()
    }

    /// Notes that the daemon of a native socket has ended.
    pub(crate) fn lose(&mut self, lost: &Arc<Socket>) {
        if self.native.as_ref().is_some_and(|native| Arc::ptr_eq(native, lost)) {
            self.unwatch();
            self.native = None;
            self.tried_at = 0;
        }
    }

    /// Lets an epoll instance wait for messages, too.
    pub(crate) fn watch(&self, Watch { epoll, mut event, .. }: Watch) {
        let Some(native) = &self.native else { return };
        let fd = native.as_fd().as_raw_fd();
        // The file may be readable still from messages that the program has.
        let _ = native.try_recv(&mut [], false);
        let kinds = (libc::EPOLLIN | libc::EPOLLET | libc::EPOLLONESHOT | libc::EPOLLRDNORM) as u32;
        event.events &= kinds;
        // SAFETY: the event is a copy.
        unsafe {
            if event.events & (libc::EPOLLIN | libc::EPOLLRDNORM) as u32 == 0 {
                libc::syscall(libc::SYS_epoll_ctl, epoll, libc::EPOLL_CTL_DEL, fd, &raw mut event);
            } else if libc::syscall(libc::SYS_epoll_ctl, epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) < 0 {
                libc::syscall(libc::SYS_epoll_ctl, epoll, libc::EPOLL_CTL_MOD, fd, &raw mut event);
            }
        }
    }

    fn unwatch(&self) {
        // SAFETY: the call has no requirement.
        let own = unsafe { libc::getpid() };
        for watch in self.watches.iter().filter(|watch| watch.process == own) {
            self.unwatch_at(watch.epoll);
        }
    }

    /// Lets an epoll instance wait for messages no longer.
    pub(crate) fn unwatch_at(&self, epoll: i32) {
        let Some(native) = &self.native else { return };
        let fd = native.as_fd().as_raw_fd();
        // SAFETY: this operation needs no event.
        unsafe {
            libc::syscall(libc::SYS_epoll_ctl, epoll, libc::EPOLL_CTL_DEL, fd, std::ptr::null::<libc::epoll_event>())
        };
    }

    /// Opens the native socket of a kernel's socket that is about to send, which gets a port if it has none.
    pub(crate) fn ready(&mut self, fd: i32) {
        if self.port.is_some() {
            return;
        }
        if address::own(fd).is_none_or(|own| own.port() == 0) {
            let any = if self.is_v6 {
                SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 0)
            } else {
                SocketAddr::new(std::net::Ipv4Addr::UNSPECIFIED.into(), 0)
            };
            let mut storage = std::mem::MaybeUninit::<libc::sockaddr_storage>::zeroed();
            let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            // SAFETY: the storage has that length.
            unsafe {
                address::write(any, self.is_v6, storage.as_mut_ptr().cast(), &raw mut length);
                let bind = next!(bind: fn(i32, *const libc::sockaddr, libc::socklen_t) -> i32);
                bind(fd, storage.as_ptr().cast(), length);
            }
        }
        self.adopt(fd);
    }

    /// Opens the native socket of a kernel's socket that has a port.
    pub(crate) fn adopt(&mut self, fd: i32) {
        let Some(own) = address::own(fd).filter(|own| own.port() > 0 && network::is_own(own.ip())) else { return };
        self.source = Some(own.ip()).filter(|ip| !ip.is_unspecified());
        if self.port.is_none() {
            self.open(own.port());
        }
    }
}

/// Returns the UDP socket of a descriptor.
pub(crate) fn find(fd: i32) -> Option<&'static Entry> {
    let at = TABLE.get(usize::try_from(fd).ok()?)?.load(Ordering::Acquire);
    // SAFETY: pointers in the table are null or of entries, which live for ever.
    unsafe { at.as_ref() }
}

/// Notes that a descriptor is a new UDP socket.
pub(crate) fn add(fd: i32, is_v6: bool) {
    let free = FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
    let entry = free.unwrap_or_else(|| {
        Box::leak(Box::new(Entry { descriptors: AtomicUsize::new(0), state: Mutex::new(State::default()) }))
    });
    *entry.state() = State { is_v6, ..State::default() };
    name(fd, Some(entry));
}

/// Notes that a descriptor names what another one names.
pub(crate) fn copy(from: i32, to: i32) {
    name(to, find(from));
}

/// Forgets a descriptor that is closed.
pub(crate) fn forget(fd: i32) {
    if find(fd).is_some() {
        name(fd, None);
    }
}

fn name(fd: i32, entry: Option<&'static Entry>) {
    let Some(place) = usize::try_from(fd).ok().and_then(|at| TABLE.get(at)) else { return };
    if let Some(entry) = entry {
        entry.descriptors.fetch_add(1, Ordering::Relaxed);
    }
    let new = entry.map_or(std::ptr::null_mut(), |entry| std::ptr::from_ref(entry).cast_mut());
    let old = place.swap(new, Ordering::AcqRel);
    // SAFETY: pointers in the table are null or of entries, which live for ever.
    let Some(old) = (unsafe { old.as_ref() }) else { return };
    if old.descriptors.fetch_sub(1, Ordering::AcqRel) == 1 {
        old.state().close();
        *old.state() = State::default();
        FREE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(old);
    }
}
