//! The functions of the C library that this one stands before. All do what the C library's do, and what is said in
//! [`crate`] for UDP sockets whose other end is a peer's.
#![allow(clippy::missing_safety_doc, reason = "what each function requires, its manual page says")]

use std::net::SocketAddr;

use libc::{
    AF_INET, AF_INET6, IPPROTO_UDP, SOCK_DGRAM, c_int, c_long, c_uint, c_void, fd_set, iovec, mmsghdr, msghdr, nfds_t,
    pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec, timeval,
};

use crate::address;
use crate::network;
use crate::next::{fail, next};
use crate::table::{self, Watch, find};
use crate::transfer::{self, Attempt, Received, receive, send, told};
use crate::wait;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let socket = next!(socket: fn(c_int, c_int, c_int) -> c_int);
    // SAFETY: the program's arguments.
    let fd = unsafe { socket(domain, kind, protocol) };
    if fd >= 0 {
        table::forget(fd);
        let is_udp = kind & 0xf == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP);
        if is_udp && (domain == AF_INET || domain == AF_INET6) {
            table::add(fd, domain == AF_INET6);
        }
    }
    fd
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(fd: c_int, at: *const sockaddr, length: socklen_t) -> c_int {
    let bind = next!(bind: fn(c_int, *const sockaddr, socklen_t) -> c_int);
    // SAFETY: the program's arguments.
    let bound = unsafe { bind(fd, at, length) };
    if bound == 0
        && let Some(entry) = find(fd)
    {
        entry.state().adopt(fd);
    }
    bound
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    let connect = next!(connect: fn(c_int, *const sockaddr, socklen_t) -> c_int);
    // SAFETY: the program's arguments.
    let connected = unsafe { connect(fd, to, length) };
    let Some(entry) = find(fd).filter(|_| connected == 0) else { return connected };
    // SAFETY: the kernel has read the same bytes.
    let remote = unsafe { address::read(to, length) };
    let mut state = entry.state();
    match remote {
        Some(remote) if !network::is_peers(remote.ip()) && !remote.ip().is_unspecified() => {
            state.remote = None;
            state.close();
        }
        remote => {
            state.remote = remote.filter(|remote| !remote.ip().is_unspecified());
            let remote = state.remote;
            if let Some(native) = state.native.clone() {
                // Of two sockets connected to one, the second gets nothing.
                let _ = native.connect(remote);
            }
            state.adopt(fd);
        }
    }
    connected
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close(fd: c_int) -> c_int {
    table::forget(fd);
    let close = next!(close: fn(c_int) -> c_int);
    // SAFETY: the program's argument.
    unsafe { close(fd) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    // Flags: descriptors are closed at exec.
    if flags & 4 == 0 {
        (first..=last.min(65_535)).for_each(|fd| table::forget(fd as c_int));
    }
    let close_range = next!(close_range: fn(c_uint, c_uint, c_int) -> c_int);
    // SAFETY: the program's arguments.
    unsafe { close_range(first, last, flags) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup(fd: c_int) -> c_int {
    let dup = next!(dup: fn(c_int) -> c_int);
    // SAFETY: the program's argument.
    copied(fd, unsafe { dup(fd) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup2(fd: c_int, to: c_int) -> c_int {
    let dup2 = next!(dup2: fn(c_int, c_int) -> c_int);
    // SAFETY: the program's arguments.
    copied(fd, unsafe { dup2(fd, to) })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn dup3(fd: c_int, to: c_int, flags: c_int) -> c_int {
    let dup3 = next!(dup3: fn(c_int, c_int, c_int) -> c_int);
    // SAFETY: the program's arguments.
    copied(fd, unsafe { dup3(fd, to, flags) })
}

/// Notes that `to`, unless it is an error, names what `from` names.
fn copied(from: c_int, to: c_int) -> c_int {
    if to >= 0 && to != from {
        table::copy(from, to);
    }
    to
}

/// C's type is that of a function with any number of arguments; those of every command fit one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl(fd: c_int, command: c_int, argument: c_long) -> c_int {
    let fcntl = next!(fcntl: fn(c_int, c_int, c_long) -> c_int);
    // SAFETY: the program's arguments.
    let result = unsafe { fcntl(fd, command, argument) };
    if command == libc::F_DUPFD || command == libc::F_DUPFD_CLOEXEC { copied(fd, result) } else { result }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn fcntl64(fd: c_int, command: c_int, argument: c_long) -> c_int {
    // SAFETY: the same function on systems of 64 bits.
    unsafe { fcntl(fd, command, argument) }
}

fn piece(bytes: *const c_void, length: size_t) -> iovec {
    iovec { iov_base: bytes.cast_mut(), iov_len: length }
}

/// Sends pieces if the socket has a native one.
unsafe fn sent(fd: c_int, pieces: &[iovec], to: Option<SocketAddr>, flags: c_int) -> Attempt<usize> {
    match find(fd) {
        // SAFETY: the program's buffers.
        Some(entry) => unsafe { send(entry, fd, pieces, to, flags) },
        None => Attempt::Kernel,
    }
}

/// Receives into pieces if the socket has a native one.
unsafe fn received(fd: c_int, pieces: &[iovec], flags: c_int) -> Attempt<Received> {
    match find(fd).filter(|_| flags & libc::MSG_ERRQUEUE == 0) {
        // SAFETY: the program's buffers.
        Some(entry) => unsafe { receive(entry, fd, pieces, flags) },
        None => Attempt::Kernel,
    }
}

/// Returns the number that a receiving function returns.
fn length(received: &Received, flags: c_int) -> usize {
    if flags & libc::MSG_TRUNC != 0 { received.whole } else { received.copied }
}

#[unsafe(export_name = "send")]
pub unsafe extern "C" fn send_(fd: c_int, bytes: *const c_void, count: size_t, flags: c_int) -> ssize_t {
    let send = next!(send: fn(c_int, *const c_void, size_t, c_int) -> ssize_t);
    // SAFETY: the program's arguments.
    unsafe { told(sent(fd, &[piece(bytes, count)], None, flags), || send(fd, bytes, count, flags)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    bytes: *const c_void,
    count: size_t,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    let sendto = next!(sendto: fn(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t);
    // SAFETY: the program's arguments.
    unsafe {
        let destination = address::read(to, to_length);
        told(sent(fd, &[piece(bytes, count)], destination, flags), || sendto(fd, bytes, count, flags, to, to_length))
    }
}

/// Sends a message if the socket has a native one.
unsafe fn sent_message(fd: c_int, message: *const msghdr, flags: c_int) -> Attempt<usize> {
    if find(fd).is_none() || message.is_null() {
        return Attempt::Kernel;
    }
    // SAFETY: the program's message.
    unsafe {
        let message = &*message;
        let to = address::read(message.msg_name.cast(), message.msg_namelen);
        sent(fd, transfer::pieces(message), to, flags)
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let sendmsg = next!(sendmsg: fn(c_int, *const msghdr, c_int) -> ssize_t);
    // SAFETY: the program's arguments.
    unsafe { told(sent_message(fd, message, flags), || sendmsg(fd, message, flags)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int {
    if find(fd).is_none() {
        let sendmmsg = next!(sendmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int) -> c_int);
        // SAFETY: the program's arguments.
        return unsafe { sendmmsg(fd, messages, count, flags) };
    }
    for at in 0..count.min(1_024) {
        // SAFETY: the program gives that many messages.
        let length = unsafe {
            let place = messages.add(at as usize);
            let length = sendmsg(fd, &raw const (*place).msg_hdr, flags);
            (*place).msg_len = length.max(0) as c_uint;
            length
        };
        if length < 0 {
            return if at > 0 { at as c_int } else { -1 };
        }
    }
    count.min(1_024) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn write(fd: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    let write = next!(write: fn(c_int, *const c_void, size_t) -> ssize_t);
    // SAFETY: the program's arguments.
    unsafe { told(sent(fd, &[piece(bytes, count)], None, 0), || write(fd, bytes, count)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    let writev = next!(writev: fn(c_int, *const iovec, c_int) -> ssize_t);
    if find(fd).is_none() || count <= 0 {
        // SAFETY: the program's arguments.
        return unsafe { writev(fd, pieces, count) };
    }
    // SAFETY: the program's arguments.
    unsafe {
        let all = std::slice::from_raw_parts(pieces, count as usize);
        told(sent(fd, all, None, 0), || writev(fd, pieces, count))
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(fd: c_int, bytes: *mut c_void, count: size_t, flags: c_int) -> ssize_t {
    let recv = next!(recv: fn(c_int, *mut c_void, size_t, c_int) -> ssize_t);
    // SAFETY: the program's arguments.
    unsafe { told(plain(fd, bytes, count, flags), || recv(fd, bytes, count, flags)) }
}

/// Receives without address.
unsafe fn plain(fd: c_int, bytes: *mut c_void, count: size_t, flags: c_int) -> Attempt<usize> {
    // SAFETY: the program's buffer.
    match unsafe { received(fd, &[piece(bytes, count)], flags) } {
        Attempt::Done(received) => Attempt::Done(length(&received, flags)),
        Attempt::Failed(errno) => Attempt::Failed(errno),
        Attempt::Kernel => Attempt::Kernel,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    bytes: *mut c_void,
    count: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    let recvfrom = next!(recvfrom: fn(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t);
    // SAFETY: the program's arguments.
    unsafe {
        match received(fd, &[piece(bytes, count)], flags) {
            Attempt::Done(received) => {
                let is_v6 = find(fd).is_some_and(|entry| entry.state().is_v6);
                address::write(received.source, is_v6, from, from_length);
                length(&received, flags) as ssize_t
            }
            Attempt::Failed(errno) => fail::<i64>(errno) as ssize_t,
            Attempt::Kernel => recvfrom(fd, bytes, count, flags, from, from_length),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let recvmsg = next!(recvmsg: fn(c_int, *mut msghdr, c_int) -> ssize_t);
    if find(fd).is_none() || message.is_null() {
        // SAFETY: the program's arguments.
        return unsafe { recvmsg(fd, message, flags) };
    }
    // SAFETY: the program's message.
    unsafe {
        match received(fd, transfer::pieces(&*message), flags) {
            Attempt::Done(received) => {
                let is_v6 = find(fd).is_some_and(|entry| entry.state().is_v6);
                let message = &mut *message;
                address::write(received.source, is_v6, message.msg_name.cast(), &raw mut message.msg_namelen);
                message.msg_controllen = 0;
                message.msg_flags = if received.copied < received.whole { libc::MSG_TRUNC } else { 0 };
                length(&received, flags) as ssize_t
            }
            Attempt::Failed(errno) => fail::<i64>(errno) as ssize_t,
            Attempt::Kernel => recvmsg(fd, message, flags),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    if find(fd).is_none_or(|entry| entry.native().is_none()) {
        let recvmmsg = next!(recvmmsg: fn(c_int, *mut mmsghdr, c_uint, c_int, *mut timespec) -> c_int);
        // SAFETY: the program's arguments.
        return unsafe { recvmmsg(fd, messages, count, flags, timeout) };
    }
    // SAFETY: the program's argument.
    let timeout = unsafe { timeout.as_ref() }.map(|time| time.tv_sec * 1_000 + time.tv_nsec / 1_000_000);
    let until = timeout.map(|timeout| network::milliseconds() + timeout);
    let mut own = flags & !libc::MSG_WAITFORONE;
    for at in 0..count.min(1_024) {
        // SAFETY: the program gives that many messages.
        let length = unsafe {
            let place = messages.add(at as usize);
            let length = recvmsg(fd, &raw mut (*place).msg_hdr, own);
            (*place).msg_len = length.max(0) as c_uint;
            length
        };
        if length < 0 {
            return if at > 0 { at as c_int } else { -1 };
        }
        // As in the kernel, time is looked at after each datagram.
        if until.is_some_and(|until| network::milliseconds() >= until) {
            return at as c_int + 1;
        }
        if flags & libc::MSG_WAITFORONE != 0 {
            own |= libc::MSG_DONTWAIT;
        }
    }
    count.min(1_024) as c_int
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn read(fd: c_int, bytes: *mut c_void, count: size_t) -> ssize_t {
    let read = next!(read: fn(c_int, *mut c_void, size_t) -> ssize_t);
    // SAFETY: the program's arguments.
    unsafe { told(plain(fd, bytes, count, 0), || read(fd, bytes, count)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, pieces: *const iovec, count: c_int) -> ssize_t {
    let readv = next!(readv: fn(c_int, *const iovec, c_int) -> ssize_t);
    if find(fd).is_none() || count <= 0 {
        // SAFETY: the program's arguments.
        return unsafe { readv(fd, pieces, count) };
    }
    // SAFETY: the program's arguments.
    unsafe {
        match received(fd, std::slice::from_raw_parts(pieces, count as usize), 0) {
            Attempt::Done(received) => received.copied as ssize_t,
            Attempt::Failed(errno) => fail::<i64>(errno) as ssize_t,
            Attempt::Kernel => readv(fd, pieces, count),
        }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout_ms: c_int) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        if !any_native(fds, count) {
            let poll = next!(poll: fn(*mut pollfd, nfds_t, c_int) -> c_int);
            return poll(fds, count, timeout_ms);
        }
        let timeout = (timeout_ms >= 0).then(|| timespec {
            tv_sec: (timeout_ms / 1_000).into(),
            tv_nsec: i64::from(timeout_ms % 1_000) * 1_000_000,
        });
        wait::wait(std::slice::from_raw_parts_mut(fds, count as usize), timeout, std::ptr::null())
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        if !any_native(fds, count) {
            let ppoll = next!(ppoll: fn(*mut pollfd, nfds_t, *const timespec, *const sigset_t) -> c_int);
            return ppoll(fds, count, timeout, mask);
        }
        wait::wait(std::slice::from_raw_parts_mut(fds, count as usize), timeout.as_ref().copied(), mask)
    }
}

unsafe fn any_native(fds: *const pollfd, count: nfds_t) -> bool {
    // SAFETY: the program gives that many places.
    !fds.is_null() && (0..count as usize).any(|at| wait::is_native(unsafe { (*fds.add(at)).fd }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    timeout: *mut timeval,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let time = timeout.as_ref().map(|time| timespec { tv_sec: time.tv_sec, tv_nsec: time.tv_usec * 1_000 });
        wait::select(count, [reads, writes, others], time, std::ptr::null()).unwrap_or_else(|| {
            let select = next!(select: fn(c_int, *mut fd_set, *mut fd_set, *mut fd_set, *mut timeval) -> c_int);
            select(count, reads, writes, others, timeout)
        })
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    timeout: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the program's arguments.
    unsafe {
        let time = timeout.as_ref().copied();
        wait::select(count, [reads, writes, others], time, mask).unwrap_or_else(|| {
            let pselect = next!(
                pselect: fn(
                    c_int, *mut fd_set, *mut fd_set, *mut fd_set, *const timespec, *const sigset_t
                ) -> c_int
            );
            pselect(count, reads, writes, others, timeout, mask)
        })
    }
}

/// `epoll_wait` and its relatives need no change: the epoll instance waits for the native socket, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(epoll: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    let epoll_ctl = next!(epoll_ctl: fn(c_int, c_int, c_int, *mut libc::epoll_event) -> c_int);
    // SAFETY: the program's arguments.
    let result = unsafe { epoll_ctl(epoll, operation, fd, event) };
    let Some(entry) = find(fd).filter(|_| result == 0) else { return result };
    let mut state = entry.state();
    state.watches.retain(|watch| watch.epoll != epoll);
    if operation == libc::EPOLL_CTL_DEL {
        state.unwatch_at(epoll);
    // SAFETY: the program's argument.
    } else if let Some(event) = unsafe { event.as_ref() } {
        // SAFETY: the call has no requirement.
        let watch = Watch { epoll, event: *event, process: unsafe { libc::getpid() } };
        state.watches.push(watch);
        state.watch(watch);
    }
    result
}

// Functions by which programs that are compiled with _FORTIFY_SOURCE call those above.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(fd: c_int, bytes: *mut c_void, count: size_t, room: size_t) -> ssize_t {
    check(count <= room);
    // SAFETY: the program's arguments.
    unsafe { read(fd, bytes, count) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    bytes: *mut c_void,
    count: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check(count <= room);
    // SAFETY: the program's arguments.
    unsafe { recv(fd, bytes, count, flags) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    bytes: *mut c_void,
    count: size_t,
    room: size_t,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    check(count <= room);
    // SAFETY: the program's arguments.
    unsafe { recvfrom(fd, bytes, count, flags, from, from_length) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int {
    check(count as usize <= room / size_of::<pollfd>());
    // SAFETY: the program's arguments.
    unsafe { poll(fds, count, timeout) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    check(count as usize <= room / size_of::<pollfd>());
    // SAFETY: the program's arguments.
    unsafe { ppoll(fds, count, timeout, mask) }
}

/// Ends a program that gives a buffer shorter than it says.
fn check(is_right: bool) {
    if !is_right {
        std::process::abort();
    }
}
