//! Socket addresses of C.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use libc::{AF_INET, AF_INET6, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// Reads an address of IPv4 or IPv6; an IPv4 address within IPv6 becomes one of IPv4.
///
/// # Safety
/// `at` must be null or point to `length` readable bytes.
pub(crate) unsafe fn read(at: *const sockaddr, length: socklen_t) -> Option<SocketAddr> {
    if at.is_null() || (length as usize) < size_of::<sa_family_t>() {
        return None;
    }
    // SAFETY: the caller gives that many bytes.
    match i32::from(unsafe { at.cast::<sa_family_t>().read_unaligned() }) {
        AF_INET if length as usize >= size_of::<sockaddr_in>() => {
            // SAFETY: the bytes are there, and any are an address.
            let address = unsafe { at.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr));
            Some(SocketAddr::new(ip.into(), u16::from_be(address.sin_port)))
        }
        AF_INET6 if length as usize >= size_of::<sockaddr_in6>() => {
            // SAFETY: as above.
            let address = unsafe { at.cast::<sockaddr_in6>().read_unaligned() };
            let ip = IpAddr::V6(Ipv6Addr::from(address.sin6_addr.s6_addr)).to_canonical();
            Some(SocketAddr::new(ip, u16::from_be(address.sin6_port)))
        }
        _ => None,
    }
}

/// Writes an address for a socket of this version of IP, as the kernel does: as much as there is room for, and the
/// whole length.
///
/// # Safety
/// `to` must be null or have `*length` writable bytes; then `length` points to a length.
pub(crate) unsafe fn write(address: SocketAddr, is_v6: bool, to: *mut sockaddr, length: *mut socklen_t) {
    if to.is_null() || length.is_null() {
        return;
    }
    let copy = |from: *const u8, whole: usize| {
        // SAFETY: the caller gives the room, of which no more is used.
        unsafe {
            let room = (length.read_unaligned() as usize).min(whole);
            std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), room);
            length.write_unaligned(whole as socklen_t);
        }
    };
    match address.ip() {
        IpAddr::V4(ip) if !is_v6 => {
            let value = sockaddr_in {
                sin_family: AF_INET as sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(ip).to_be() },
                sin_zero: [0; 8],
            };
            copy((&raw const value).cast(), size_of_val(&value));
        }
        ip => {
            let ip = match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let value = sockaddr_in6 {
                sin6_family: AF_INET6 as sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                sin6_scope_id: 0,
            };
            copy((&raw const value).cast(), size_of_val(&value));
        }
    }
}

/// Returns the address of a kernel's socket on this host.
pub(crate) fn own(fd: i32) -> Option<SocketAddr> {
    let mut storage = std::mem::MaybeUninit::<libc::sockaddr_storage>::zeroed();
    let mut length = size_of::<libc::sockaddr_storage>() as socklen_t;
    let at = storage.as_mut_ptr().cast();
    // SAFETY: the storage has that length.
    let told = unsafe { libc::getsockname(fd, at, &raw mut length) };
    // SAFETY: the storage was zeros before the kernel wrote to it.
    if told == 0 { unsafe { read(at, length) } } else { None }
}
