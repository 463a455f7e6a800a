//! The functions of `selvedge-eqds.h`: native messages of EQDS tunnels for programs in C.
#![cfg(all(target_os = "linux", not(loom)))]
#![allow(unsafe_code, unreachable_pub, reason = "C's pointers; C reaches what is exported")]

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use selvedge_native::{Sending, Socket, default_path, native_socket};

const DONTWAIT: c_uint = 1;
const NOTICE: c_uint = 2;

/// `struct selvedge_eqds_notice`.
#[repr(C)]
#[derive(Debug)]
pub struct CNotice {
    tag: u32,
    outcome: u32,
    round_trip_ns: u64,
}

/// Returns what C gets for a result: a number, or -1 with `errno` set.
fn told<T: TryFrom<i64> + From<i8>>(result: io::Result<i64>) -> T {
    match result {
        Ok(value) => T::try_from(value).unwrap_or(T::from(-1)),
        Err(error) => {
            set_errno(&error);
            T::from(-1)
        }
    }
}

fn set_errno(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, NotFound, TimedOut, WouldBlock};
    let errno = error.raw_os_error().unwrap_or(match error.kind() {
        WouldBlock => libc::EAGAIN,
        ConnectionAborted => libc::ECONNABORTED,
        ConnectionRefused => libc::ECONNREFUSED,
        NotFound => libc::ENOENT,
        TimedOut => libc::ETIMEDOUT,
        io::ErrorKind::PermissionDenied => libc::EACCES,
        _ => libc::EINVAL,
    });
    // SAFETY: the C library returns the place of this thread's errno.
    unsafe { *libc::__errno_location() = errno };
}

/// Reads a socket address of IPv4 or IPv6.
///
/// # Safety
/// `to` must point to `length` readable bytes, at any alignment.
pub(crate) unsafe fn address(to: *const libc::sockaddr, length: libc::socklen_t) -> Option<SocketAddr> {
    let length = length as usize;
    if to.is_null() || length < size_of::<libc::sa_family_t>() {
        return None;
    }
    // SAFETY: the caller gives that many bytes.
    let family = unsafe { to.cast::<libc::sa_family_t>().read_unaligned() };
    match c_int::from(family) {
        libc::AF_INET if length >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: the bytes are there, and any are an address.
            let address = unsafe { to.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Some(SocketAddr::new(IpAddr::V4(ip), u16::from_be(address.sin_port)))
        }
        libc::AF_INET6 if length >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: the bytes are there, and any are an address.
            let address = unsafe { to.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)).to_canonical();
            Some(SocketAddr::new(ip, u16::from_be(address.sin6_port)))
        }
        _ => None,
    }
}

fn storage(address: SocketAddr) -> libc::sockaddr_storage {
    // SAFETY: zeros are an address of no family.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = &raw mut storage;
    match address {
        SocketAddr::V4(address) => {
            let sin_addr = libc::in_addr { s_addr: u32::from(*address.ip()).to_be() };
            let sin_family = libc::AF_INET as libc::sa_family_t;
            let value = libc::sockaddr_in { sin_family, sin_port: address.port().to_be(), sin_addr, sin_zero: [0; 8] };
            // SAFETY: the storage is large enough and aligned for every kind of address.
            unsafe { place.cast::<libc::sockaddr_in>().write(value) };
        }
        SocketAddr::V6(address) => {
            let value = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: 0,
            };
            // SAFETY: as above.
            unsafe { place.cast::<libc::sockaddr_in6>().write(value) };
        }
    }
    storage
}

/// Opens a socket.
///
/// # Safety
/// `control` must be null or a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_open(control: *const c_char, port: u16) -> *mut Socket {
    let path = if control.is_null() {
        default_path()
    } else {
        // SAFETY: the caller says so.
        let text = unsafe { CStr::from_ptr(control) };
        native_socket(Path::new(OsStr::from_bytes(text.to_bytes())))
    };
    match Socket::bind_at(&path, port, None) {
        Ok(socket) => Box::into_raw(Box::new(socket)),
        Err(error) => {
            set_errno(&error);
            std::ptr::null_mut()
        }
    }
}

/// Closes a socket.
///
/// # Safety
/// `socket` must be null or come from [`selvedge_eqds_open`], and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_close(socket: *mut Socket) {
    if !socket.is_null() {
        // SAFETY: it was made by `Box::into_raw`, and the caller gives it back.
        drop(unsafe { Box::from_raw(socket) });
    }
}

/// Returns the port.
///
/// # Safety
/// `socket` must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_port(socket: &Socket) -> u16 {
    socket.port()
}

/// Returns the descriptor that is readable while there are messages, and at times once more after the last: set the
/// socket nonblocking before waiting for it.
///
/// # Safety
/// `socket` must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_fd(socket: &Socket) -> c_int {
    socket.as_fd().as_raw_fd()
}

/// Returns the descriptor that is readable while there are notices.
///
/// # Safety
/// `socket` must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_notice_fd(socket: &Socket) -> c_int {
    socket.notices().as_raw_fd()
}

/// Returns the descriptor that becomes readable when there is room.
///
/// # Safety
/// `socket` must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_room_fd(socket: &Socket) -> c_int {
    socket.room().as_raw_fd()
}

/// Sends a message.
///
/// # Safety
/// `socket` must be open, `bytes` have `length` bytes and `to` `to_length`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_send(
    socket: &Socket,
    bytes: *const u8,
    length: usize,
    to: *const libc::sockaddr,
    to_length: libc::socklen_t,
    tag: u32,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller says so.
    let (destination, bytes) = unsafe { (address(to, to_length), slice(bytes, length)) };
    let Some(destination) = destination else { return told(Err(io::Error::from_raw_os_error(libc::EINVAL))) };
    let sending = Sending { tag, wants_notice: flags & NOTICE != 0, ..Sending::to(destination) };
    let sent =
        if flags & DONTWAIT == 0 { socket.send(bytes, &sending) } else { socket.try_send([bytes, &[]], &sending) };
    told(sent.map(|()| 0))
}

/// Returns bytes of C; none may be at a null pointer.
///
/// # Safety
/// `bytes` must have `length` bytes.
unsafe fn slice<'a>(bytes: *const u8, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(bytes, length) }
}

/// Receives a message.
///
/// # Safety
/// `socket` must be open, `buffer` have `room` bytes; `from` is null or has room for an address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_recv(
    socket: &Socket,
    buffer: *mut u8,
    room: usize,
    from: *mut libc::sockaddr_storage,
    flags: c_uint,
) -> isize {
    let buffer: &mut [u8] = if room == 0 {
        &mut []
    } else {
        // SAFETY: the caller says so.
        unsafe { std::slice::from_raw_parts_mut(buffer, room) }
    };
    let received = if flags & DONTWAIT == 0 { socket.recv(buffer, None) } else { socket.try_recv(buffer, true) };
    told(received.map(|received| {
        if !from.is_null() {
            // SAFETY: the caller gives the room.
            unsafe { from.write_unaligned(storage(received.source)) };
        }
        received.length as i64
    }))
}

/// Receives a notice.
///
/// # Safety
/// `socket` must be open, and `to` have room for a notice.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_recv_notice(socket: &Socket, to: *mut CNotice, flags: c_uint) -> c_int {
    let notice = if flags & DONTWAIT == 0 { socket.notice(None) } else { socket.try_notice() };
    told(notice.map(|notice| {
        let (tag, outcome, round_trip_ns) = (notice.tag, notice.outcome as u32, notice.round_trip_ns.unwrap_or(0));
        // SAFETY: the caller gives the room.
        unsafe { to.write(CNotice { tag, outcome, round_trip_ns }) };
        0
    }))
}

/// Tells about the way to an address.
///
/// # Safety
/// `socket` must be open, `to` have `to_length` bytes, and `reach` room for ten numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn selvedge_eqds_get_reach(
    socket: &Socket,
    to: *const libc::sockaddr,
    to_length: libc::socklen_t,
    reach: *mut [u64; 10],
) -> c_int {
    // SAFETY: the caller says so.
    let Some(destination) = (unsafe { address(to, to_length) }) else {
        return told(Err(io::Error::from_raw_os_error(libc::EINVAL)));
    };
    told(socket.reach(destination.ip()).map(|found| {
        // SAFETY: the caller gives the room.
        unsafe { reach.write(found.words()) };
        0
    }))
}
