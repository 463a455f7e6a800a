//! Sending and receiving: by the native socket or the kernel's.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::Duration;

use libc::{c_int, iovec, msghdr, ssize_t};
use selvedge_native::{Outcome, Sending, Socket};

use crate::network::{self, milliseconds};
use crate::next::{errno, fail, next};
use crate::table::Entry;

/// Most bytes of a UDP datagram.
pub(crate) const LONGEST: usize = 65_507;
/// Longest wait, in milliseconds, before a daemon that had ended is looked for.
const SLICE: i64 = 1_000;

/// A datagram that was received by the native socket.
pub(crate) struct Received {
    /// Bytes of the datagram, and of those copied.
    pub(crate) whole: usize,
    pub(crate) copied: usize,
    pub(crate) source: SocketAddr,
}

/// Result of an attempt by the native socket.
pub(crate) enum Attempt<T> {
    Done(T),
    /// Set `errno` and return -1.
    Failed(i32),
    /// The kernel does it.
    Kernel,
}

/// Sends a datagram if its destination is a peer's.
///
/// # Safety
/// The pieces must be readable.
pub(crate) unsafe fn send(
    entry: &Entry,
    fd: c_int,
    pieces: &[iovec],
    to: Option<SocketAddr>,
    flags: c_int,
) -> Attempt<usize> {
    let (native, sending) = {
        let mut state = entry.state();
        let Some(destination) = to.or(state.remote) else { return Attempt::Kernel };
        if state.remote != Some(destination) && !network::is_peers(destination.ip()) {
            return Attempt::Kernel;
        }
        state.ready(fd);
        let Some(native) = state.revived().cloned() else { return Attempt::Kernel };
        let source = state.source.unwrap_or(Sending::to(destination).source);
        if native.has_notices() {
            state.hear(&native);
        }
        match std::mem::take(&mut state.error) {
            0 => {}
            error => return Attempt::Failed(error),
        }
        (native, Sending { source, ..Sending::to(destination) })
    };
    let length: usize = pieces.iter().map(|piece| piece.iov_len).sum();
    if length > LONGEST {
        return Attempt::Failed(libc::EMSGSIZE);
    }
    let joined: Vec<u8>;
    // SAFETY: the caller says so.
    let slice = |piece: &iovec| unsafe { bytes(piece) };
    let pieces = match pieces {
        [] => [&[][..], &[]],
        [one] => [slice(one), &[]],
        [one, two] => [slice(one), slice(two)],
        many => {
            joined = many.iter().flat_map(slice).copied().collect();
            [&joined[..], &[]]
        }
    };
    loop {
        match native.try_send(pieces, &sending) {
            Ok(()) => return Attempt::Done(length),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if does_not_wait(fd, flags) {
                    return Attempt::Failed(libc::EAGAIN);
                }
                match native.wait_for_room(timeout(fd, libc::SO_SNDTIMEO)) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => return Attempt::Failed(libc::EAGAIN),
                    Err(error) => return Attempt::Failed(error.raw_os_error().unwrap_or(libc::EINTR)),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {
                entry.state().lose(&native);
                return Attempt::Kernel;
            }
            Err(error) => return Attempt::Failed(error.raw_os_error().unwrap_or(libc::EINVAL)),
        }
    }
}

/// Receives a datagram; [`Attempt::Kernel`] if one may be in the kernel's socket, or must be awaited there alone.
///
/// # Safety
/// The pieces must be writable.
pub(crate) unsafe fn receive(entry: &Entry, fd: c_int, pieces: &[iovec], flags: c_int) -> Attempt<Received> {
    let within = timeout(fd, libc::SO_RCVTIMEO);
    let until = within.map(|within| milliseconds() + within.as_millis() as i64);
    let is_watched = !entry.state().watches.is_empty();
    loop {
        let Some(native) = entry.native() else {
            if !entry.is_native() || has_datagram(fd) || does_not_wait(fd, flags) {
                return Attempt::Kernel;
            }
            // The daemon has ended; another may come.
            match pause(&[fd], until) {
                Ok(()) => continue,
                Err(errno) => return Attempt::Failed(errno),
            }
        };
        {
            let mut state = entry.state();
            if native.has_notices() {
                state.hear(&native);
            }
            match std::mem::take(&mut state.error) {
                0 => {}
                error => return Attempt::Failed(error),
            }
        }
        // SAFETY: the caller says so.
        match unsafe { take(&native, pieces, flags) } {
            Ok(received) => {
                if is_watched {
                    // With the last message, epoll must see no more.
                    let _ = native.try_recv(&mut [], false);
                }
                return Attempt::Done(received);
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => entry.state().lose(&native),
            Err(_) => {}
        }
        if has_datagram(fd) || does_not_wait(fd, flags) {
            return Attempt::Kernel;
        }
        let fds = [fd, native.as_fd().as_raw_fd(), native.notices().as_raw_fd()];
        if let Err(errno) = pause(&fds, until) {
            return Attempt::Failed(errno);
        }
    }
}

/// Waits until something can be read or a slice has passed, and no longer than `until`.
fn pause(fds: &[c_int], until: Option<i64>) -> Result<(), c_int> {
    let left = until.map_or(SLICE, |until| (until - milliseconds()).min(SLICE));
    if left <= 0 {
        return Err(libc::EAGAIN);
    }
    let mut fds: Vec<_> = fds.iter().map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 }).collect();
    let poll = next!(poll: fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int);
    // SAFETY: the descriptors are there.
    let count = unsafe { poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, left as c_int) };
    if count < 0 { Err(errno()) } else { Ok(()) }
}

/// Returns whether the kernel's socket has a datagram or an error.
fn has_datagram(fd: c_int) -> bool {
    let mut fds = [libc::pollfd { fd, events: libc::POLLIN, revents: 0 }];
    let poll = next!(poll: fn(*mut libc::pollfd, libc::nfds_t, c_int) -> c_int);
    // SAFETY: the descriptor is there.
    unsafe { poll(fds.as_mut_ptr(), 1, 0) > 0 }
}

/// Takes a message into the program's buffers.
unsafe fn take(native: &Socket, pieces: &[iovec], flags: c_int) -> io::Result<Received> {
    let takes = flags & libc::MSG_PEEK == 0;
    let room: usize = pieces.iter().map(|piece| piece.iov_len).sum();
    let received = if let [one] = pieces {
        // SAFETY: the caller says so.
        native.try_recv(unsafe { bytes_mut(one) }, takes)?
    } else {
        let mut joined = vec![0; room.min(LONGEST)];
        let received = native.try_recv(&mut joined, takes)?;
        let mut rest = &joined[..received.length.min(joined.len())];
        for piece in pieces {
            // SAFETY: the caller says so.
            let place = unsafe { bytes_mut(piece) };
            let (now, later) = rest.split_at(place.len().min(rest.len()));
            place[..now.len()].copy_from_slice(now);
            rest = later;
        }
        received
    };
    Ok(Received { whole: received.length, copied: received.length.min(room), source: received.source })
}

impl crate::table::State {
    /// Reads notices: a connected socket hears that nobody listens, as by ICMP.
    pub(crate) fn hear(&mut self, native: &Arc<Socket>) {
        while let Ok(notice) = native.try_notice() {
            if self.remote.is_some() {
                match notice.outcome {
                    Outcome::NoListener => self.error = libc::ECONNREFUSED,
                    Outcome::Unreachable => self.error = libc::EHOSTUNREACH,
                    _ => {}
                }
            }
        }
    }
}

/// Returns whether a call must not wait.
fn does_not_wait(fd: c_int, flags: c_int) -> bool {
    let fcntl = next!(fcntl: fn(c_int, c_int, libc::c_long) -> c_int);
    // SAFETY: the command has no argument.
    flags & libc::MSG_DONTWAIT != 0 || unsafe { fcntl(fd, libc::F_GETFL, 0) } & libc::O_NONBLOCK != 0
}

/// Returns the time for which a socket waits to receive or to send; `None`: for ever.
fn timeout(fd: c_int, option: c_int) -> Option<Duration> {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut length = size_of_val(&time) as libc::socklen_t;
    // SAFETY: the option has this length.
    let told = unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, option, (&raw mut time).cast(), &raw mut length) };
    let time = Duration::from_secs(time.tv_sec.max(0) as u64) + Duration::from_micros(time.tv_usec.max(0) as u64);
    (told == 0 && !time.is_zero()).then_some(time)
}

unsafe fn bytes<'a>(piece: &iovec) -> &'a [u8] {
    if piece.iov_len == 0 {
        return &[];
    }
    // SAFETY: the caller says that the piece is readable.
    unsafe { std::slice::from_raw_parts(piece.iov_base.cast(), piece.iov_len) }
}

unsafe fn bytes_mut<'a>(piece: &iovec) -> &'a mut [u8] {
    if piece.iov_len == 0 {
        return &mut [];
    }
    // SAFETY: the caller says that the piece is writable, and nobody else uses it meanwhile.
    unsafe { std::slice::from_raw_parts_mut(piece.iov_base.cast(), piece.iov_len) }
}

/// Returns the pieces of a message.
///
/// # Safety
/// The message must be one that `sendmsg` or `recvmsg` takes.
pub(crate) unsafe fn pieces<'a>(message: &msghdr) -> &'a [iovec] {
    if message.msg_iovlen == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(message.msg_iov, message.msg_iovlen) }
}

/// Returns what a function that receives returns.
pub(crate) fn told(attempt: Attempt<usize>, kernel: impl FnOnce() -> ssize_t) -> ssize_t {
    match attempt {
        Attempt::Done(length) => length as ssize_t,
        Attempt::Failed(errno) => fail::<i64>(errno) as ssize_t,
        Attempt::Kernel => kernel(),
    }
}
