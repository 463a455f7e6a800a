//! Waiting for descriptors, UDP sockets among them.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use libc::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLPRI, POLLRDNORM, c_int, nfds_t, pollfd, sigset_t, timespec};
use selvedge_native::Socket;

use crate::next::next;
use crate::table::{Entry, find};
use crate::transfer::LONGEST;

/// Events that a message, or room for one, makes.
const READ: i16 = POLLIN | POLLRDNORM;
const WRITE: i16 = POLLOUT | libc::POLLWRNORM;

/// A native socket whose messages are awaited, and the place of its descriptor.
struct Native {
    at: usize,
    entry: &'static Entry,
    socket: Arc<Socket>,
}

/// Returns whether a descriptor has a native socket.
pub(crate) fn is_native(fd: c_int) -> bool {
    find(fd).is_some_and(Entry::is_native)
}

/// Does what `ppoll` does, for native sockets, too.
///
/// # Safety
/// `mask` must be null or a set of signals.
pub(crate) unsafe fn wait(fds: &mut [pollfd], timeout: Option<timespec>, mask: *const sigset_t) -> c_int {
    let entries: Vec<(usize, &'static Entry)> = (fds.iter().enumerate())
        .filter(|(_, place)| place.events & (READ | WRITE) != 0)
        .filter_map(|(at, place)| Some((at, find(place.fd).filter(|entry| entry.is_native())?)))
        .collect();
    let ppoll = next!(ppoll: fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int);
    let until = timeout.map(|timeout| now_ns() + timeout.tv_sec * 1_000_000_000 + timeout.tv_nsec);
    let mut all: Vec<pollfd> = Vec::with_capacity(fds.len() + 3 * entries.len());
    loop {
        let natives = entries.iter().filter_map(|(at, entry)| Some(Native { at: *at, entry, socket: entry.native()? }));
        let natives: Vec<Native> = natives.collect();
        all.clear();
        all.extend_from_slice(fds);
        for native in &natives {
            let place = &mut all[native.at];
            let reads = place.events & READ != 0;
            let is_full = place.events & WRITE != 0 && !native.socket.has_room(LONGEST);
            if is_full {
                place.events &= !WRITE;
            }
            // Negative numbers are no descriptors: nothing is awaited.
            for (fd, is_awaited) in
                [(native.socket.as_fd(), reads), (native.socket.notices(), reads), (native.socket.room(), is_full)]
            {
                let fd = if is_awaited { fd.as_raw_fd() } else { -1 };
                all.push(pollfd { fd, events: POLLIN, revents: 0 });
            }
        }
        // While a daemon is away, it is looked for now and then.
        let is_whole = natives.len() == entries.len();
        let slice = (!is_whole).then(|| now_ns() + 1_000_000_000);
        let left = until.into_iter().chain(slice).min().map(|until| {
            let left = (until - now_ns()).max(0);
            timespec { tv_sec: left / 1_000_000_000, tv_nsec: left % 1_000_000_000 }
        });
        let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: all places are there, and the caller gives the mask.
        if unsafe { ppoll(all.as_mut_ptr(), all.len() as nfds_t, left, mask) } < 0 {
            return -1;
        }
        let (own, added) = all.split_at(fds.len());
        fds.iter_mut().zip(own).for_each(|(place, own)| place.revents = own.revents);
        let mut is_woken = false;
        for (native, woken) in natives.iter().zip(added.chunks(3)) {
            if woken.iter().all(|place| place.revents == 0) {
                continue;
            }
            is_woken = true;
            if woken[2].revents != 0 && native.socket.wait_for_room(None).is_ok() {
                fds[native.at].revents |= fds[native.at].events & WRITE;
            }
            if woken[0].revents | woken[1].revents != 0 {
                fds[native.at].revents |= native.events() & (fds[native.at].events | POLLERR);
            }
        }
        let count = fds.iter().filter(|place| place.revents != 0).count();
        let is_over = until.is_some_and(|until| now_ns() >= until);
        if count > 0 || is_over || (is_whole && !is_woken) {
            return count as c_int;
        }
    }
}

impl Native {
    /// Returns what the socket is ready for, now that it has woken somebody.
    fn events(&self) -> i16 {
        let mut events = 0;
        if self.socket.has_notices() {
            let mut state = self.entry.state();
            state.hear(&self.socket);
            if state.error != 0 {
                events |= READ | POLLERR;
            }
        } else {
            // The file stays readable until somebody finds nothing.
            let _ = self.socket.try_notice();
        }
        match self.socket.try_recv(&mut [], false) {
            Ok(_) => events | READ,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => events,
            Err(_) => {
                self.entry.state().lose(&self.socket);
                events
            }
        }
    }
}

fn now_ns() -> i64 {
    let mut now = timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place is there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Does what `pselect` does, for native sockets, too. `None`: no descriptor has one.
///
/// # Safety
/// The sets must be null or sets of `count` descriptors, and `mask` null or a set of signals.
pub(crate) unsafe fn select(
    count: c_int,
    sets: [*mut libc::fd_set; 3],
    timeout: Option<timespec>,
    mask: *const sigset_t,
) -> Option<c_int> {
    const KINDS: [i16; 3] = [POLLIN, POLLOUT, POLLPRI];
    /// Events by which a descriptor is in each of the sets.
    const READY: [i16; 3] = [POLLIN | POLLHUP | POLLERR, POLLOUT | POLLERR, POLLPRI];
    let has = |set: *mut libc::fd_set, fd: c_int| {
        // SAFETY: the caller gives sets of that many descriptors.
        !set.is_null() && unsafe { libc::FD_ISSET(fd, set) }
    };
    let wanted = |fd: c_int| -> i16 {
        let kinds = sets.iter().zip(KINDS).filter(|(set, _)| has(**set, fd));
        kinds.fold(0, |events, (_, kind)| events | kind)
    };
    let count = count.min(libc::FD_SETSIZE as c_int);
    let mut fds: Vec<pollfd> =
        (0..count).map(|fd| pollfd { fd, events: wanted(fd), revents: 0 }).filter(|place| place.events != 0).collect();
    if !fds.iter().any(|place| is_native(place.fd)) {
        return None;
    }
    // SAFETY: the caller gives the mask.
    if unsafe { wait(&mut fds, timeout, mask) } < 0 {
        return Some(-1);
    }
    if fds.iter().any(|place| place.revents & libc::POLLNVAL != 0) {
        return Some(crate::next::fail(libc::EBADF));
    }
    let mut total = 0;
    for (set, ready) in sets.into_iter().zip(READY) {
        for place in fds.iter().filter(|place| has(set, place.fd)) {
            if place.revents & ready == 0 {
                // SAFETY: as above.
                unsafe { libc::FD_CLR(place.fd, set) };
            } else {
                total += 1;
            }
        }
    }
    Some(total)
}
