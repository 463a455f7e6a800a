//! Endpoints, which create an identifier with its queue pair in one call; and resolution of host names.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use super::abi::{rdma_addrinfo, rdma_cm_id, rdma_event_channel};
use super::connect::{bind_addr, resolve_addr, resolve_route};
use super::event::{fail, get_cm_event};
use super::id::{DATAGRAM, Id, RELIABLE, TCP, UDP, create_id, destroy_id};
use super::pair::{create_qp, destroy_qp, rdma_destroy_srq};
use crate::abi::{ibv_pd, ibv_qp_init_attr};

const PASSIVE: c_int = 1;
const NUMERIC: c_int = 2;
const FAMILY: c_int = 8;
/// Timeout of address and route resolution in milliseconds.
const PATIENCE: c_int = 2_000;

#[unsafe(export_name = "selvedge_rdma_create_ep")]
pub unsafe extern "C" fn create_ep(
    to: *mut *mut rdma_cm_id,
    wanted: *mut rdma_addrinfo,
    pd: *mut ibv_pd,
    attributes: *mut ibv_qp_init_attr,
) -> c_int {
    let wanted = unsafe { &*wanted };
    let mut id: *mut rdma_cm_id = ptr::null_mut();
    unsafe {
        if let Some(attributes) = attributes.as_mut() {
            attributes.qp_type = wanted.ai_qp_type;
        }
        if create_id(ptr::null_mut(), &raw mut id, ptr::null_mut(), wanted.ai_port_space) != 0 {
            return -1;
        }
        let made = if wanted.ai_flags & PASSIVE != 0 {
            if let Some(attributes) = attributes.as_ref() {
                Id::of(id).endpoint = Some((pd.expose_provenance(), *attributes));
            }
            bind_addr(id, wanted.ai_src_addr) == 0
        } else {
            resolve_addr(id, wanted.ai_src_addr, wanted.ai_dst_addr, PATIENCE) == 0
                && resolve_route(id, PATIENCE) == 0
                && (attributes.is_null() || create_qp(id, pd, attributes) == 0)
        };
        if !made {
            destroy_id(id);
            return -1;
        }
        *to = id;
    }
    0
}

#[unsafe(export_name = "selvedge_rdma_destroy_ep")]
pub unsafe extern "C" fn destroy_ep(id: *mut rdma_cm_id) {
    unsafe {
        destroy_qp(id);
        rdma_destroy_srq(id);
        destroy_id(id);
    }
}

/// Returns the next connection request of a listening endpoint, with a queue pair like the endpoint's.
#[unsafe(export_name = "selvedge_rdma_get_request")]
pub unsafe extern "C" fn get_request(listener: *mut rdma_cm_id, to: *mut *mut rdma_cm_id) -> c_int {
    unsafe {
        let inner = Id::of(listener);
        if !inner.waits {
            return fail(libc::EINVAL);
        }
        let mut event = ptr::null_mut();
        if get_cm_event(inner.abi.channel, &raw mut event) != 0 {
            return -1;
        }
        let id = (*event).id;
        // The new identifier gets an event channel of its own.
        if super::id::migrate_id(id, ptr::null_mut::<rdma_event_channel>()) != 0 {
            return -1;
        }
        let new = Id::of(id);
        new.abi.event = event;
        if let Some((pd, mut attributes)) = inner.endpoint {
            let pd = ptr::with_exposed_provenance_mut::<c_void>(pd).cast();
            if create_qp(id, pd, &raw mut attributes) != 0 {
                return -1;
            }
        }
        *to = id;
    }
    0
}

#[unsafe(export_name = "selvedge_rdma_getaddrinfo")]
pub unsafe extern "C" fn getaddrinfo(
    node: *const c_char,
    service: *const c_char,
    hints: *const rdma_addrinfo,
    to: *mut *mut rdma_addrinfo,
) -> c_int {
    let hints = unsafe { hints.as_ref() };
    if node.is_null() && service.is_null() && hints.is_none() {
        return fail(libc::EINVAL);
    }
    let mut result = Box::new(unsafe { described(hints) });
    if !node.is_null() || !service.is_null() {
        // SAFETY: the caller's.
        let code = unsafe { look_up(node, service, hints, &mut result) };
        if code != 0 {
            return code;
        }
    }
    if let Some(hints) = hints.filter(|hints| result.ai_src_addr.is_null() && !hints.ai_src_addr.is_null()) {
        result.ai_src_addr = unsafe { copy(hints.ai_src_addr, hints.ai_src_len) };
        result.ai_src_len = hints.ai_src_len;
    }
    unsafe { *to = Box::into_raw(result) };
    0
}

/// Returns an address structure with the values of the hints alone.
unsafe fn described(hints: Option<&rdma_addrinfo>) -> rdma_addrinfo {
    // SAFETY: zeros are null pointers and numbers.
    let mut result: rdma_addrinfo = unsafe { std::mem::zeroed() };
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
        result.ai_dst_addr = unsafe { copy(hints.ai_dst_addr, hints.ai_dst_len) };
        result.ai_dst_len = hints.ai_dst_len;
    }
    result
}

/// Looks an address up; returns 0, or the error code of `getaddrinfo`.
unsafe fn look_up(
    node: *const c_char,
    service: *const c_char,
    hints: Option<&rdma_addrinfo>,
    result: &mut rdma_addrinfo,
) -> c_int {
    // SAFETY: zeros are null pointers and numbers.
    let mut plain: libc::addrinfo = unsafe { std::mem::zeroed() };
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
    let code = unsafe { libc::getaddrinfo(node, service, &raw const plain, &raw mut found) };
    let Some(first) = (unsafe { found.as_ref() }) else { return code };
    result.ai_family = first.ai_family;
    let copy = unsafe { copy(first.ai_addr, first.ai_addrlen) };
    if flags & PASSIVE != 0 {
        (result.ai_src_addr, result.ai_src_len) = (copy, first.ai_addrlen);
    } else {
        unsafe { libc::free(result.ai_dst_addr.cast()) };
        (result.ai_dst_addr, result.ai_dst_len) = (copy, first.ai_addrlen);
    }
    unsafe { libc::freeaddrinfo(found) };
    0
}

unsafe fn copy(from: *const libc::sockaddr, length: libc::socklen_t) -> *mut libc::sockaddr {
    unsafe {
        let to = libc::calloc(1, size_of::<libc::sockaddr_storage>());
        if !to.is_null() {
            ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), length as usize);
        }
        to.cast()
    }
}

#[unsafe(export_name = "selvedge_rdma_freeaddrinfo")]
pub unsafe extern "C" fn freeaddrinfo(info: *mut rdma_addrinfo) {
    if info.is_null() {
        return;
    }
    let info = unsafe { Box::from_raw(info) };
    unsafe {
        libc::free(info.ai_src_addr.cast());
        libc::free(info.ai_dst_addr.cast());
    }
}
