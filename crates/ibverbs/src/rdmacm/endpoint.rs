//! Endpoints, which create an identifier with its queue pair in one call; and resolution of host names.

use std::ffi::c_int;
use std::ptr;

use super::abi::rdma_addrinfo;
use super::address::CAddress;
use super::connect::{bind_addr, resolve_addr, resolve_route};
use super::event::{fail, take};
use super::id::{DATAGRAM, Id, RELIABLE, TCP, UDP, created, destroy_id, migrate_id};
use super::pair::{create_qp, destroy_qp, rdma_destroy_srq};
use crate::abi::ibv_qp_init_attr;
use crate::borrowed::{Borrowed, Exclusive, Given, Out, Text, allocated, store, zeroed};
use crate::error;
use crate::memory::Pd;

const PASSIVE: c_int = 1;
const NUMERIC: c_int = 2;
const FAMILY: c_int = 8;
/// Timeout of address and route resolution in milliseconds.
const PATIENCE: c_int = 2_000;

#[unsafe(export_name = "selvedge_rdma_create_ep")]
pub extern "C" fn create_ep(
    mut to: Out<'_, Given<Id>>,
    wanted: Borrowed<'_, rdma_addrinfo>,
    pd: Option<Borrowed<'_, Pd>>,
    mut attributes: Option<Exclusive<'_, ibv_qp_init_attr>>,
) -> c_int {
    if let Some(attributes) = &mut attributes {
        attributes.qp_type = wanted.ai_qp_type;
    }
    let id = match created(None, ptr::null_mut(), wanted.ai_port_space) {
        Ok(id) => id,
        Err(errno) => return fail(errno),
    };
    // SAFETY: a description has addresses that are as long as their families say, or null.
    let (from, there) = unsafe { (CAddress::new(wanted.ai_src_addr), CAddress::new(wanted.ai_dst_addr)) };
    let made = if wanted.ai_flags & PASSIVE != 0 {
        if let Some(attributes) = &attributes {
            let pd = pd.map_or(ptr::null_mut(), Borrowed::as_ptr);
            id.change(|state| state.endpoint = Some((pd, **attributes)));
        }
        bind_addr(id.borrow(), from) == 0
    } else {
        resolve_addr(id.borrow(), from, there, PATIENCE) == 0
            && resolve_route(id.borrow(), PATIENCE) == 0
            && attributes.is_none_or(|attributes| create_qp(id.borrow(), pd, attributes) == 0)
    };
    if !made {
        destroy_id(id);
        return -1;
    }
    to.write(id);
    0
}

#[unsafe(export_name = "selvedge_rdma_destroy_ep")]
pub extern "C" fn destroy_ep(id: Given<Id>) {
    destroy_qp(id.borrow());
    rdma_destroy_srq(id.borrow());
    destroy_id(id);
}

/// Returns the next connection request of a listening endpoint, with a queue pair like the endpoint's.
#[unsafe(export_name = "selvedge_rdma_get_request")]
pub extern "C" fn get_request(listener: Borrowed<'_, Id>, mut to: Out<'_, *mut Id>) -> c_int {
    if !listener.waits() {
        return fail(libc::EINVAL);
    }
    let event = match take(&listener.channel()) {
        Ok(event) => event,
        Err(problem) => return fail(error::of_io(&problem)),
    };
    let id = event.id();
    // The new identifier gets an event channel of its own.
    if migrate_id(id, None) != 0 {
        return -1;
    }
    store!(id.abi, event = event.as_ptr().cast());
    if let Some((pd, mut attributes)) = listener.state().endpoint {
        // SAFETY: null, or a domain that the program deallocates after the endpoint.
        let pd = unsafe { Borrowed::new(pd) };
        if create_qp(id, pd, Exclusive::of(&mut attributes)) != 0 {
            return -1;
        }
    }
    to.write(id.as_ptr());
    0
}

/// Resolves names; returns 0, -1 with `errno`, or the error code of the C library's `getaddrinfo`.
#[unsafe(export_name = "selvedge_rdma_getaddrinfo")]
pub extern "C" fn getaddrinfo(
    node: Text<'_>,
    service: Text<'_>,
    hints: Option<Borrowed<'_, rdma_addrinfo>>,
    mut to: Out<'_, Given<rdma_addrinfo>>,
) -> c_int {
    let hints = hints.map(Borrowed::get);
    let is_named = node.get().is_some() || service.get().is_some();
    if !is_named && hints.is_none() {
        return fail(libc::EINVAL);
    }
    let mut result = described(hints);
    if is_named {
        let code = look_up(node, service, hints, &mut result);
        if code != 0 {
            return code;
        }
    }
    if let Some(hints) = hints.filter(|hints| result.ai_src_addr.is_null() && !hints.ai_src_addr.is_null()) {
        // SAFETY: the hints have addresses that are as long as they say.
        result.ai_src_addr = unsafe { copy(hints.ai_src_addr, hints.ai_src_len) };
        result.ai_src_len = hints.ai_src_len;
    }
    to.write(Given::new(result));
    0
}

/// Returns an address structure with the values of the hints alone.
fn described(hints: Option<&rdma_addrinfo>) -> rdma_addrinfo {
    let mut result: rdma_addrinfo = zeroed();
    let space = hints.map_or(0, |hints| hints.ai_port_space);
    let kind = hints.map_or(0, |hints| hints.ai_qp_type);
    result.ai_flags = hints.map_or(0, |hints| hints.ai_flags);
    result.ai_family = hints.map_or(0, |hints| hints.ai_family);
    result.ai_port_space = if space == 0 { TCP } else { space };
    result.ai_qp_type = match (kind, space) {
        (0, UDP) => DATAGRAM,
        (0, _) => RELIABLE,
        (kind, _) => kind,
    };
    if let Some(hints) = hints.filter(|hints| !hints.ai_dst_addr.is_null()) {
        // SAFETY: the hints have addresses that are as long as they say.
        result.ai_dst_addr = unsafe { copy(hints.ai_dst_addr, hints.ai_dst_len) };
        result.ai_dst_len = hints.ai_dst_len;
    }
    result
}

/// Looks an address up; returns 0, or the error code of `getaddrinfo`. The destination in `result` is null, or from
/// [`copy`].
fn look_up(node: Text<'_>, service: Text<'_>, hints: Option<&rdma_addrinfo>, result: &mut rdma_addrinfo) -> c_int {
    let mut plain: libc::addrinfo = zeroed();
    let flags = result.ai_flags;
    plain.ai_socktype = libc::SOCK_STREAM;
    if flags & PASSIVE != 0 {
        plain.ai_flags |= libc::AI_PASSIVE;
    }
    if flags & NUMERIC != 0 {
        plain.ai_flags |= libc::AI_NUMERICHOST;
    }
    if let Some(hints) = hints.filter(|_| flags & FAMILY != 0) {
        plain.ai_family = hints.ai_family;
    }
    let mut found: *mut libc::addrinfo = ptr::null_mut();
    // SAFETY: the names are C strings, or null; the C library allocates the result; `copy` has allocated the address.
    unsafe {
        let code = libc::getaddrinfo(node.as_ptr(), service.as_ptr(), &raw const plain, &raw mut found);
        let Some(first) = found.as_ref() else { return code };
        result.ai_family = first.ai_family;
        let copy = copy(first.ai_addr, first.ai_addrlen);
        if flags & PASSIVE != 0 {
            (result.ai_src_addr, result.ai_src_len) = (copy, first.ai_addrlen);
        } else {
            libc::free(result.ai_dst_addr.cast());
            (result.ai_dst_addr, result.ai_dst_len) = (copy, first.ai_addrlen);
        }
        libc::freeaddrinfo(found);
    }
    0
}

/// Returns a copy of an address, for C to free, at most as long as the longest of any family; null if there is no
/// memory.
///
/// # Safety
/// `length` bytes are there.
unsafe fn copy(from: *const libc::sockaddr, length: libc::socklen_t) -> *mut libc::sockaddr {
    let to = allocated(&[zeroed::<libc::sockaddr_storage>()]);
    if !to.is_null() {
        let copied = (length as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: as the caller promises; the room is new, and no smaller.
        unsafe { ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), copied) };
    }
    to.cast()
}

#[unsafe(export_name = "selvedge_rdma_freeaddrinfo")]
pub extern "C" fn freeaddrinfo(info: Option<Given<rdma_addrinfo>>) {
    let Some(info) = info else { return };
    // SAFETY: both addresses are null, or from `copy`.
    unsafe {
        libc::free(info.ai_src_addr.cast());
        libc::free(info.ai_dst_addr.cast());
    }
    info.free();
}
