//! Socket addresses, and the devices that have them.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::io;
use std::marker::PhantomData;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use selvedge_dataplane::rnic::Device;

use crate::abi::ibv_context;
use crate::borrowed::{Borrowed, zeroed};
use crate::context::Context;
use crate::device::devices;
use crate::memory::{Pd, ibv_alloc_pd};

/// A socket address of C's as a parameter.
///
/// Contract: the pointer is null, or an address is there that is as long as its family says, aligned or not, until the
/// function returns.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct CAddress<'c>(*const libc::sockaddr, PhantomData<&'c libc::sockaddr>);

impl<'c> CAddress<'c> {
    /// Returns the pointer as a parameter would be.
    ///
    /// # Safety
    /// The pointer fulfils the contract of [`CAddress`] for the lifetime `'c`.
    pub(super) unsafe fn new(pointer: *const libc::sockaddr) -> Self {
        Self(pointer, PhantomData)
    }
    /// Returns a pointer to an address in a structure that has room for any.
    pub(super) fn of(storage: &'c libc::sockaddr_storage) -> Self {
        Self(ptr::from_ref(storage).cast(), PhantomData)
    }
    /// Reads the address; `None` if it is null or of another family than IPv4 and IPv6.
    pub(super) fn read(self) -> Option<SocketAddr> {
        let from = self.0;
        if from.is_null() {
            return None;
        }
        // SAFETY: by the contract, the family is there, and behind it an address of that family.
        unsafe {
            match c_int::from((&raw const (*from).sa_family).read_unaligned()) {
                libc::AF_INET => {
                    let v4 = ptr::read_unaligned(from.cast::<libc::sockaddr_in>());
                    Some(SocketAddrV4::new(v4.sin_addr.s_addr.to_ne_bytes().into(), u16::from_be(v4.sin_port)).into())
                }
                libc::AF_INET6 => {
                    let v6 = ptr::read_unaligned(from.cast::<libc::sockaddr_in6>());
                    let (port, scope) = (u16::from_be(v6.sin6_port), v6.sin6_scope_id);
                    Some(SocketAddrV6::new(v6.sin6_addr.s6_addr.into(), port, 0, scope).into())
                }
                _ => None,
            }
        }
    }
}

/// Returns an address in C's structure.
pub(super) fn written(address: SocketAddr) -> libc::sockaddr_storage {
    let mut to: libc::sockaddr_storage = zeroed();
    match address {
        SocketAddr::V4(v4) => {
            let mut inner: libc::sockaddr_in = zeroed();
            inner.sin_family = libc::AF_INET as u16;
            inner.sin_port = v4.port().to_be();
            inner.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
            // SAFETY: the storage has room for an address of any family, and the alignment.
            unsafe { ptr::write((&raw mut to).cast(), inner) };
        }
        SocketAddr::V6(v6) => {
            let mut inner: libc::sockaddr_in6 = zeroed();
            inner.sin6_family = libc::AF_INET6 as u16;
            inner.sin6_port = v6.port().to_be();
            inner.sin6_addr.s6_addr = v6.ip().octets();
            inner.sin6_scope_id = v6.scope_id();
            // SAFETY: the storage has room for an address of any family, and the alignment.
            unsafe { ptr::write((&raw mut to).cast(), inner) };
        }
    }
    to
}

/// Returns the GID of an address.
pub(super) fn gid(address: &SocketAddr) -> Ipv6Addr {
    match address {
        SocketAddr::V4(v4) => v4.ip().to_ipv6_mapped(),
        SocketAddr::V6(v6) => *v6.ip(),
    }
}

/// Returns the socket address of a GID, the inverse of [`gid`].
pub(super) fn socket_address(gid: Ipv6Addr, port: u16) -> SocketAddr {
    match gid.to_ipv4_mapped() {
        Some(v4) => SocketAddrV4::new(v4, port).into(),
        None => SocketAddrV6::new(gid, port, 0, 0).into(),
    }
}

/// Returns whether an address names no device, by the rules of Linux's connection manager: the unspecified address, and
/// that of loopback unless loopback is a device.
///
/// # Errors
/// Returns an error when the system does not tell its interfaces.
pub(super) fn is_any(address: SocketAddr) -> io::Result<bool> {
    let is_device = || Ok::<_, io::Error>(devices()?.iter().any(|listed| listed.device.gids.contains(&gid(&address))));
    Ok(address.ip().is_unspecified() || (address.ip().is_loopback() && !is_device()?))
}

/// Returns the address that replaces a destination on loopback. Like with Linux's connection manager that is an address
/// of the first device that is up, unless loopback is a device itself. Other addresses are returned unchanged.
///
/// # Errors
/// Returns an error when the system does not tell its interfaces, or no device is up.
pub(super) fn beyond_loopback(there: SocketAddr) -> io::Result<SocketAddr> {
    if !there.ip().is_loopback() {
        return Ok(there);
    }
    let devices = devices()?;
    if devices.iter().any(|listed| listed.device.gids.contains(&gid(&there))) {
        return Ok(there);
    }
    let up = devices.iter().filter(|listed| listed.device.is_up);
    // The first GID is skipped: the link-local address needs a scope.
    let addresses = up.flat_map(|listed| listed.device.gids.iter().skip(1));
    let found =
        addresses.map(|&gid| socket_address(gid, there.port())).find(|found| found.is_ipv4() == there.is_ipv4());
    found.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))
}

/// Returns the source address of the route that leads to `there`.
///
/// # Errors
/// Returns the system's error, for example if there is no route.
pub(super) fn source_towards(there: SocketAddr) -> io::Result<SocketAddr> {
    let any: SocketAddr = if there.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let probe = UdpSocket::bind(any)?;
    probe.connect(there)?;
    probe.local_addr()
}

/// Devices opened for connections, by process and name, for as long as the process lives: a forked child needs its own.
/// Each has a protection domain for identifiers that bring none.
static OPEN: Mutex<BTreeMap<(u32, String), [usize; 2]>> = Mutex::new(BTreeMap::new());

/// Returns the open device that has an address, and its protection domain.
///
/// # Errors
/// Returns an error when no device has the address, or it cannot be opened.
pub(super) fn device_with(gid: Ipv6Addr) -> io::Result<(Borrowed<'static, ibv_context>, Borrowed<'static, Pd>)> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let has = |device: &Device| device.gids.contains(&gid);
    let listed = match devices() {
        Ok(devices) => devices.into_iter().find(|listed| has(&listed.device)),
        // Listing devices takes a descriptor, which a busy server may not have; a device that is already open is used
        // then.
        Err(problem) => {
            let process = std::process::id();
            let here = open.iter().filter(|((of, _), _)| *of == process).map(|(_, &[context, _])| context);
            let listed = |context| kept::<ibv_context>(context).whole().listed;
            Some(here.map(listed).find(|listed| has(&listed.device)).ok_or(problem)?)
        }
    };
    let listed = listed.ok_or_else(|| io::Error::from_raw_os_error(libc::ENODEV))?;
    let key = (std::process::id(), listed.device.name.clone());
    if let Some(&[context, domain]) = open.get(&key) {
        return Ok((kept(context), kept(domain)));
    }
    let context = kept::<ibv_context>(Context::open(listed)?.expose_provenance());
    let domain = ibv_alloc_pd(context).ok_or_else(io::Error::last_os_error)?;
    let domain = domain.as_ptr().expose_provenance();
    open.insert(key, [context.as_ptr().expose_provenance(), domain]);
    Ok((context, kept(domain)))
}

/// Returns a device or a protection domain of [`OPEN`].
fn kept<T>(address: usize) -> Borrowed<'static, T> {
    // SAFETY: the object was made for `OPEN`, with this type, and is never destroyed.
    unsafe { Borrowed::new(ptr::with_exposed_provenance_mut(address)) }.expect("an open device has an address")
}

/// Returns all devices, open.
///
/// # Errors
/// Returns an error when the devices cannot be listed, or one cannot be opened.
pub(super) fn all_devices() -> io::Result<Vec<*mut ibv_context>> {
    let gids = devices()?.into_iter().filter_map(|listed| listed.device.gids.first().copied());
    gids.map(|gid| device_with(gid).map(|(context, _)| context.as_ptr())).collect()
}
