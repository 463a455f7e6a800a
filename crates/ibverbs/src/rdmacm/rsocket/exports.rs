//! The C functions of sockets over RDMA, which behave as the manual page rsocket(7) says.

use std::ffi::{c_int, c_long, c_void};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::{ptr, slice};

use libc::{iovec, msghdr, sockaddr, socklen_t};
use selvedge_dataplane::rnic::Adapter;

use super::super::address::{self, CAddress};
use super::options::{Options, Value};
use super::socket::Socket;
use super::stream::How;
use super::{poll, repoll, table};
use crate::borrowed::{Borrowed, Exclusive, zeroed};
use crate::error;

/// Returns the number of a success, or sets `errno` and returns -1.
fn told(outcome: Result<c_int, c_int>) -> c_int {
    outcome.unwrap_or_else(|errno| {
        error::set(errno);
        -1
    })
}
fn told_bytes(outcome: Result<usize, c_int>) -> isize {
    match outcome {
        Ok(bytes) => isize::try_from(bytes).unwrap_or(isize::MAX),
        Err(errno) => {
            error::set(errno);
            -1
        }
    }
}

#[unsafe(export_name = "selvedge_rsocket")]
pub extern "C" fn rsocket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    told(create(domain, kind, protocol))
}

fn create(domain: c_int, kind: c_int, protocol: c_int) -> Result<c_int, c_int> {
    let flags = kind & (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
    let is_stream = kind & !flags == libc::SOCK_STREAM && [0, libc::IPPROTO_TCP].contains(&protocol);
    // Datagram sockets remain the kernel's: when the library is preloaded, the NIC's own UDP sockets come here, too.
    if ![libc::AF_INET, libc::AF_INET6].contains(&domain) || !is_stream {
        return Err(libc::EOPNOTSUPP);
    }
    Adapter::get().map_err(|problem| error::of_io(&problem))?;
    let mut options = Options::new(domain);
    if flags & libc::SOCK_NONBLOCK != 0 {
        options.status_flags |= libc::O_NONBLOCK;
    }
    if flags & libc::SOCK_CLOEXEC != 0 {
        options.descriptor_flags = libc::FD_CLOEXEC;
    }
    let socket = Socket::new(options)?;
    table::insert(&socket, Some(socket.number()));
    Ok(socket.number())
}

/// Binds a socket to an address.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `bind`.
#[unsafe(export_name = "selvedge_rbind")]
pub unsafe extern "C" fn rbind(socket: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as the caller promises.
    let bind = || table::find(socket)?.bind(unsafe { given(to, length) }?);
    told(bind().map(|()| 0))
}

#[unsafe(export_name = "selvedge_rlisten")]
pub extern "C" fn rlisten(socket: c_int, _backlog: c_int) -> c_int {
    told(table::find(socket).and_then(|socket| socket.listen()).map(|()| 0))
}

/// Accepts a connection.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `accept`.
#[unsafe(export_name = "selvedge_raccept")]
pub unsafe extern "C" fn raccept(socket: c_int, to: *mut sockaddr, length: Option<Exclusive<'_, socklen_t>>) -> c_int {
    let accept = || {
        let new = table::find(socket)?.accept()?;
        if let Some(length) = length.filter(|_| !to.is_null()) {
            // SAFETY: as the caller promises.
            unsafe { write_address(&new, new.peer(), to, length) };
        }
        Ok(new.number())
    };
    told(accept())
}

/// Connects a socket.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `connect`.
#[unsafe(export_name = "selvedge_rconnect")]
pub unsafe extern "C" fn rconnect(socket: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: as the caller promises.
    let connect = || table::find(socket)?.connect(unsafe { given(to, length) }?);
    told(connect().map(|()| 0))
}

#[unsafe(export_name = "selvedge_rshutdown")]
pub extern "C" fn rshutdown(socket: c_int, how: c_int) -> c_int {
    let how = match how {
        libc::SHUT_RD => Ok(How::Read),
        libc::SHUT_WR => Ok(How::Write),
        libc::SHUT_RDWR => Ok(How::Both),
        _ => Err(libc::EINVAL),
    };
    told(table::find(socket).and_then(|socket| socket.shutdown(how?)).map(|()| 0))
}

#[unsafe(export_name = "selvedge_rclose")]
pub extern "C" fn rclose(socket: c_int) -> c_int {
    if repoll::close(socket) {
        return 0;
    }
    told(table::remove(socket).map(|socket| socket.close()).map(|()| 0))
}

/// Receives bytes.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `recv`.
#[unsafe(export_name = "selvedge_rrecv")]
pub unsafe extern "C" fn rrecv(socket: c_int, to: *mut c_void, length: usize, flags: c_int) -> isize {
    // SAFETY: as the caller promises.
    let recv = || table::find(socket)?.recv(&mut [unsafe { bytes_mut(to, length) }?], flags);
    told_bytes(recv())
}

/// Receives bytes and tells the peer.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `recvfrom`.
#[unsafe(export_name = "selvedge_rrecvfrom")]
pub unsafe extern "C" fn rrecvfrom(
    socket: c_int,
    to: *mut c_void,
    length: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_length: Option<Exclusive<'_, socklen_t>>,
) -> isize {
    let recv = || {
        let socket = table::find(socket)?;
        // SAFETY: as the caller promises.
        let got = socket.recv(&mut [unsafe { bytes_mut(to, length) }?], flags)?;
        if let Some(length) = from_length.filter(|_| !from.is_null()) {
            // SAFETY: as the caller promises.
            unsafe { write_address(&socket, socket.peer(), from, length) };
        }
        Ok(got)
    };
    told_bytes(recv())
}

/// Receives bytes into the buffers of a message.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `recvmsg`.
#[unsafe(export_name = "selvedge_rrecvmsg")]
pub unsafe extern "C" fn rrecvmsg(socket: c_int, message: Option<Exclusive<'_, msghdr>>, flags: c_int) -> isize {
    let recv = || {
        let mut message = message.ok_or(libc::EFAULT)?;
        // SAFETY: as the caller promises.
        let mut pieces = unsafe { pieces_mut(message.msg_iov, message.msg_iovlen) }?;
        let got = table::find(socket)?.recv(&mut pieces, flags)?;
        // Stream data comes without control messages and addresses.
        (message.msg_flags, message.msg_namelen, message.msg_controllen) = (0, 0, 0);
        Ok(got)
    };
    told_bytes(recv())
}

/// Receives bytes, like `read`.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `read`.
#[unsafe(export_name = "selvedge_rread")]
pub unsafe extern "C" fn rread(socket: c_int, to: *mut c_void, length: usize) -> isize {
    // SAFETY: as the caller promises.
    unsafe { rrecv(socket, to, length, 0) }
}

/// Receives bytes into several buffers.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `readv`.
#[unsafe(export_name = "selvedge_rreadv")]
pub unsafe extern "C" fn rreadv(socket: c_int, pieces: *const iovec, count: c_int) -> isize {
    let recv = || {
        let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
        // SAFETY: as the caller promises.
        table::find(socket)?.recv(&mut unsafe { pieces_mut(pieces, count) }?, 0)
    };
    told_bytes(recv())
}

/// Sends bytes.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `send`.
#[unsafe(export_name = "selvedge_rsend")]
pub unsafe extern "C" fn rsend(socket: c_int, from: *const c_void, length: usize, flags: c_int) -> isize {
    // SAFETY: as the caller promises.
    let send = || table::find(socket)?.send(&[unsafe { bytes(from, length) }?], flags);
    told_bytes(send())
}

/// Sends bytes on a connection, without a destination.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `sendto`.
#[unsafe(export_name = "selvedge_rsendto")]
pub unsafe extern "C" fn rsendto(
    socket: c_int,
    from: *const c_void,
    length: usize,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> isize {
    if !to.is_null() || to_length != 0 {
        return told_bytes(table::find(socket).and(Err(libc::EISCONN)));
    }
    // SAFETY: as the caller promises.
    unsafe { rsend(socket, from, length, flags) }
}

/// Sends the buffers of a message.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `sendmsg`.
#[unsafe(export_name = "selvedge_rsendmsg")]
pub unsafe extern "C" fn rsendmsg(socket: c_int, message: Option<Borrowed<'_, msghdr>>, flags: c_int) -> isize {
    let send = || {
        let message = message.ok_or(libc::EFAULT)?;
        if !message.msg_control.is_null() && message.msg_controllen != 0 {
            return Err(libc::EOPNOTSUPP);
        }
        // SAFETY: as the caller promises.
        let pieces = unsafe { pieces(message.msg_iov, message.msg_iovlen) }?;
        table::find(socket)?.send(&pieces, flags)
    };
    told_bytes(send())
}

/// Sends bytes, like `write`.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `write`.
#[unsafe(export_name = "selvedge_rwrite")]
pub unsafe extern "C" fn rwrite(socket: c_int, from: *const c_void, length: usize) -> isize {
    // SAFETY: as the caller promises.
    unsafe { rsend(socket, from, length, 0) }
}

/// Sends several buffers.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `writev`.
#[unsafe(export_name = "selvedge_rwritev")]
pub unsafe extern "C" fn rwritev(socket: c_int, from: *const iovec, count: c_int) -> isize {
    let send = || {
        let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
        // SAFETY: as the caller promises.
        table::find(socket)?.send(&unsafe { pieces(from, count) }?, 0)
    };
    told_bytes(send())
}

/// Waits for events of sockets and other descriptors.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `poll`.
#[unsafe(export_name = "selvedge_rpoll")]
pub unsafe extern "C" fn rpoll(descriptors: *mut libc::pollfd, count: libc::nfds_t, timeout_ms: c_int) -> c_int {
    if descriptors.is_null() && count > 0 {
        return told(Err(libc::EFAULT));
    }
    // SAFETY: as the caller promises; an empty list has no place.
    let all = if count == 0 { &mut [][..] } else { unsafe { slice::from_raw_parts_mut(descriptors, count as usize) } };
    told(poll::poll(all, timeout_ms))
}

/// Waits for sockets and other descriptors.
#[unsafe(export_name = "selvedge_rselect")]
pub extern "C" fn rselect(
    count: c_int,
    mut reads: Option<Exclusive<'_, libc::fd_set>>,
    mut writes: Option<Exclusive<'_, libc::fd_set>>,
    mut exceptions: Option<Exclusive<'_, libc::fd_set>>,
    timeout: Option<Borrowed<'_, libc::timeval>>,
) -> c_int {
    let timeout_ms = timeout.map_or(-1, |timeout| {
        let ms = i128::from(timeout.tv_sec) * 1_000 + i128::from(timeout.tv_usec + 999) / 1_000;
        ms.clamp(0, c_int::MAX.into()) as c_int
    });
    let sets = [reads.as_deref_mut(), writes.as_deref_mut(), exceptions.as_deref_mut()];
    told(poll::select(count, sets, timeout_ms))
}

/// Tells the peer's address.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `getpeername`.
#[unsafe(export_name = "selvedge_rgetpeername")]
pub unsafe extern "C" fn rgetpeername(
    socket: c_int,
    to: *mut sockaddr,
    length: Option<Exclusive<'_, socklen_t>>,
) -> c_int {
    let name = || {
        let socket = table::find(socket)?;
        let peer = socket.peer().filter(|_| !socket.is_listening()).ok_or(libc::ENOTCONN)?;
        // SAFETY: as the caller promises.
        unsafe { tell_address(&socket, Some(peer), to, length) }
    };
    told(name())
}

/// Tells the socket's own address.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `getsockname`.
#[unsafe(export_name = "selvedge_rgetsockname")]
pub unsafe extern "C" fn rgetsockname(
    socket: c_int,
    to: *mut sockaddr,
    length: Option<Exclusive<'_, socklen_t>>,
) -> c_int {
    let name = || {
        let socket = table::find(socket)?;
        // SAFETY: as the caller promises.
        unsafe { tell_address(&socket, socket.local(), to, length) }
    };
    told(name())
}

/// Sets an option.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `setsockopt`.
#[unsafe(export_name = "selvedge_rsetsockopt")]
pub unsafe extern "C" fn rsetsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    let set = || table::find(socket)?.set_option(level, name, unsafe { bytes(value, length as usize) }?);
    told(set().map(|()| 0))
}

/// Tells an option.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `getsockopt`.
#[unsafe(export_name = "selvedge_rgetsockopt")]
pub unsafe extern "C" fn rgetsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    length: Option<Exclusive<'_, socklen_t>>,
) -> c_int {
    let get = || {
        let value = option(&*table::find(socket)?, level, name)?;
        let mut room = length.filter(|_| !to.is_null()).ok_or(libc::EFAULT)?;
        let copied = value.len().min(*room as usize);
        // SAFETY: as the caller promises: so much room.
        unsafe { ptr::copy_nonoverlapping(value.as_ptr(), to.cast::<u8>(), copied) };
        *room = copied as socklen_t;
        Ok(0)
    };
    told(get())
}

/// Returns the value of an option in C's layout.
fn option(socket: &Socket, level: c_int, name: c_int) -> Result<Vec<u8>, c_int> {
    let number = |number: c_int| number.to_ne_bytes().to_vec();
    let known = socket.lock().options.get(level, name);
    Ok(match (known, level, name) {
        (Value::Number(value), ..) => number(value),
        (Value::Linger(is_on, seconds), ..) => [number(is_on.into()), number(seconds)].concat(),
        (Value::Time(time), ..) => {
            let time = time.unwrap_or_default();
            let (seconds, us) = (time.as_secs().cast_signed(), i64::from(time.subsec_micros()));
            [seconds.to_ne_bytes(), us.to_ne_bytes()].concat()
        }
        (_, libc::SOL_SOCKET, libc::SO_ERROR) => number(socket.take_error()),
        (_, libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => number(socket.is_listening().into()),
        (_, libc::IPPROTO_TCP, libc::TCP_MAXSEG) => number(socket.segment()),
        (_, libc::IPPROTO_TCP, libc::TCP_INFO) => tcp_info(socket),
        (_, libc::IPPROTO_TCP, libc::TCP_CONGESTION) => b"rdma\0".to_vec(),
        _ => return Err(libc::EOPNOTSUPP),
    })
}

/// Returns C's `struct tcp_info` with the state of the connection; all other fields are zero.
fn tcp_info(socket: &Socket) -> Vec<u8> {
    const LENGTH: usize = 104;
    const ESTABLISHED: u8 = 1;
    const CLOSE: u8 = 7;
    let mut info = vec![0; LENGTH];
    info[0] = if socket.is_connected() { ESTABLISHED } else { CLOSE };
    info
}

#[unsafe(export_name = "selvedge_rfcntl")]
pub extern "C" fn rfcntl(socket: c_int, command: c_int, argument: c_long) -> c_int {
    let control = || {
        let socket = table::find(socket)?;
        let options = &mut socket.lock().options;
        match command {
            libc::F_GETFL => return Ok(options.status_flags),
            libc::F_SETFL => options.status_flags = argument as c_int | libc::O_RDWR,
            libc::F_GETFD => return Ok(options.descriptor_flags),
            libc::F_SETFD => options.descriptor_flags = argument as c_int,
            _ => return Err(libc::EOPNOTSUPP),
        }
        Ok(0)
    };
    told(control())
}

/// Fails: buffers that a peer may write directly are not offered, and peers' are not used.
#[unsafe(export_name = "selvedge_riomap")]
pub extern "C" fn riomap(_: c_int, _: *mut c_void, _: usize, _: c_int, _: c_int, _: libc::off_t) -> libc::off_t {
    error::set(libc::EOPNOTSUPP);
    -1
}
#[unsafe(export_name = "selvedge_riounmap")]
pub extern "C" fn riounmap(_: c_int, _: *mut c_void, _: usize) -> c_int {
    told(Err(libc::EOPNOTSUPP))
}
#[unsafe(export_name = "selvedge_riowrite")]
pub extern "C" fn riowrite(_: c_int, _: *const c_void, _: usize, _: libc::off_t, _: c_int) -> usize {
    error::set(libc::EOPNOTSUPP);
    usize::MAX
}

#[unsafe(export_name = "selvedge_repoll_create")]
pub extern "C" fn repoll_create(flags: c_int) -> c_int {
    told(repoll::create(flags))
}

/// Changes a set of descriptors.
#[unsafe(export_name = "selvedge_repoll_ctl")]
pub extern "C" fn repoll_ctl(
    set: c_int,
    operation: c_int,
    fd: c_int,
    event: Option<Borrowed<'_, libc::epoll_event>>,
) -> c_int {
    let wanted = event.map(|event| *event);
    told(repoll::control(set, operation, fd, wanted).map(|()| 0))
}

/// Waits for the descriptors of a set.
///
/// # Safety
/// Pointers fulfil the contract of the kernel's `epoll_wait`.
#[unsafe(export_name = "selvedge_repoll_wait")]
pub unsafe extern "C" fn repoll_wait(set: c_int, to: *mut libc::epoll_event, most: c_int, timeout_ms: c_int) -> c_int {
    let wait = || {
        let found = repoll::wait(set, usize::try_from(most).unwrap_or(0), timeout_ms)?;
        for (at, event) in found.iter().enumerate() {
            // SAFETY: as the caller promises: room for as many.
            unsafe { to.add(at).write_unaligned(*event) };
        }
        Ok(found.len() as c_int)
    };
    told(wait())
}

/// Reads an address of the caller.
///
/// # Safety
/// `address` is null or as long as it says.
unsafe fn given(address: *const sockaddr, length: socklen_t) -> Result<SocketAddr, c_int> {
    /// Length of an IPv6 address structure without the scope, which old programs use.
    const SHORT_V6: usize = 24;
    let length = length as usize;
    if address.is_null() || length < size_of::<libc::sa_family_t>() {
        return Err(libc::EINVAL);
    }
    let mut whole: libc::sockaddr_storage = zeroed();
    let copied = length.min(size_of_val(&whole));
    // SAFETY: as the caller promises. The address is copied, because it may be shorter than what is read of it.
    unsafe { ptr::copy_nonoverlapping(address.cast::<u8>(), (&raw mut whole).cast(), copied) };
    let least = match c_int::from(whole.ss_family) {
        libc::AF_INET => size_of::<libc::sockaddr_in>(),
        libc::AF_INET6 => SHORT_V6,
        _ => return Err(libc::EAFNOSUPPORT),
    };
    if length < least {
        return Err(libc::EINVAL);
    }
    CAddress::of(&whole).read().ok_or(libc::EAFNOSUPPORT)
}

/// Tells an address; returns 0.
///
/// # Errors
/// Returns `EFAULT` without room.
///
/// # Safety
/// `length` is null, or `to` has as much space as it says.
unsafe fn tell_address(
    socket: &Socket,
    address: Option<SocketAddr>,
    to: *mut sockaddr,
    length: Option<Exclusive<'_, socklen_t>>,
) -> Result<c_int, c_int> {
    let length = length.filter(|length| !to.is_null() || **length == 0).ok_or(libc::EFAULT)?;
    // SAFETY: as the caller promises.
    unsafe { write_address(socket, address, to, length) };
    Ok(0)
}

/// Writes as much of an address as fits, and its full length.
///
/// # Safety
/// `to` has as much space as `length` says, or that is 0.
unsafe fn write_address(
    socket: &Socket,
    address: Option<SocketAddr>,
    to: *mut sockaddr,
    mut length: Exclusive<'_, socklen_t>,
) {
    let family = socket.lock().options.family;
    let address = match (address, family) {
        (None, libc::AF_INET6) => SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0),
        (None, _) => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        // IPv6 sockets see IPv4 peers as mapped addresses.
        (Some(SocketAddr::V4(v4)), libc::AF_INET6) => SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()),
        (Some(address), _) => address,
    };
    let whole = address::written(address);
    let own = if address.is_ipv4() { size_of::<libc::sockaddr_in>() } else { size_of::<libc::sockaddr_in6>() };
    // SAFETY: as the caller promises.
    unsafe { ptr::copy_nonoverlapping((&raw const whole).cast::<u8>(), to.cast(), own.min(*length as usize)) };
    *length = own as socklen_t;
}

/// Returns the caller's bytes as a slice.
///
/// # Safety
/// `length` bytes are there, and nobody writes them meanwhile.
unsafe fn bytes<'a>(from: *const c_void, length: usize) -> Result<&'a [u8], c_int> {
    if length == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { slice::from_raw_parts(from.cast(), length.min(isize::MAX as usize)) })
}

/// Returns the caller's buffer as a slice.
///
/// # Safety
/// `length` bytes are there, and nobody else uses them meanwhile.
unsafe fn bytes_mut<'a>(to: *mut c_void, length: usize) -> Result<&'a mut [u8], c_int> {
    if length == 0 {
        return Ok(&mut []);
    }
    if to.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { slice::from_raw_parts_mut(to.cast(), length.min(isize::MAX as usize)) })
}

/// Returns the caller's list as a slice.
///
/// # Safety
/// The list is as long as `count` says.
unsafe fn vectors<'a>(list: *const iovec, count: usize) -> Result<&'a [iovec], c_int> {
    const MOST: usize = libc::UIO_MAXIOV as usize;
    match count {
        0 => Ok(&[]),
        _ if count > MOST => Err(libc::EINVAL),
        _ if list.is_null() => Err(libc::EFAULT),
        // SAFETY: as the caller promises.
        _ => Ok(unsafe { slice::from_raw_parts(list, count) }),
    }
}

/// Returns the caller's pieces as slices.
///
/// # Safety
/// The conditions of [`bytes`] apply to each piece.
unsafe fn pieces<'a>(list: *const iovec, count: usize) -> Result<Vec<&'a [u8]>, c_int> {
    // SAFETY: as the caller promises.
    let all = unsafe { vectors(list, count) }?.iter();
    // SAFETY: as the caller promises.
    all.map(|vector| unsafe { bytes(vector.iov_base, vector.iov_len) }).collect()
}

/// Returns the caller's buffers as slices.
///
/// # Safety
/// The conditions of [`bytes_mut`] apply to each buffer.
unsafe fn pieces_mut<'a>(list: *const iovec, count: usize) -> Result<Vec<&'a mut [u8]>, c_int> {
    // SAFETY: as the caller promises.
    let all = unsafe { vectors(list, count) }?.iter();
    // SAFETY: as the caller promises.
    all.map(|vector| unsafe { bytes_mut(vector.iov_base, vector.iov_len) }).collect()
}
