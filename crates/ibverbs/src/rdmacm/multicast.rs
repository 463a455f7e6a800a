//! Multicast groups by socket address. There is no subnet administrator: the kernel joins the groups (IGMP, MLD).

use std::ffi::{c_int, c_void};
use std::net::{Ipv6Addr, SocketAddr};

use selvedge_nic::verbs::{MULTICAST, Route, is_group};

use super::abi::{rdma_cm_id, rdma_cm_join_mc_attr_ex, rdma_ud_param};
use super::address;
use super::connect::QKEY;
use super::event::fail;
use super::id::Id;
use crate::context::Context;
use crate::multicast::{ibv_attach_mcast, ibv_detach_mcast};
use crate::query::gid_of;

/// Hop limit of datagrams for groups, like the kernel's.
const HOPS: u8 = 64;

/// A group that an identifier has joined.
#[derive(Clone, Copy)]
pub(super) struct Joined {
    address: SocketAddr,
    /// The application's context pointer for the group.
    context: usize,
    /// Whether the identifier only sends to the group and receives nothing.
    sends_only: bool,
}

impl Joined {
    fn group(&self) -> Ipv6Addr {
        address::gid(&self.address)
    }
}

unsafe fn join(id: *mut rdma_cm_id, to: *const libc::sockaddr, sends_only: bool, context: *mut c_void) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(address) = (unsafe { address::read(to) }) else { return fail(libc::EAFNOSUPPORT) };
    let is_bound = !inner.abi.verbs.is_null();
    if !is_bound || !is_group(&address::gid(&address)) {
        return fail(libc::EINVAL);
    }
    let joined = Joined { address, context: context.expose_provenance(), sends_only };
    inner.groups.push(joined);
    inner.tell_joined(joined);
    unsafe { inner.complete() }
}

/// Attaches the identifier's queue pair to the group, if there is one by now; returns the parameters for sending to the
/// group, and 0 or `errno`.
pub(super) unsafe fn attached(inner: &Id, joined: &Joined) -> (rdma_ud_param, c_int) {
    let group = joined.group();
    let errno = if inner.abi.qp.is_null() || joined.sends_only {
        0
    } else {
        unsafe { ibv_attach_mcast(inner.abi.qp, &gid_of(&group), 0) }
    };
    let local = inner.source.map_or(Ipv6Addr::UNSPECIFIED, |source| address::gid(&source));
    let route = Route { local, remote: group, traffic_class: inner.traffic_class, hop_limit: HOPS, flow_label: 0 };
    // SAFETY: the device was opened when the address was bound.
    let context = unsafe { Context::of(inner.abi.verbs) };
    let parameters = rdma_ud_param {
        private_data: std::ptr::with_exposed_provenance(joined.context),
        private_data_len: 0,
        ah_attr: crate::address::attributes(context, &route),
        qp_num: MULTICAST.0,
        qkey: QKEY,
    };
    (parameters, errno)
}

unsafe fn detach(inner: &Id, joined: &Joined) {
    if !inner.abi.qp.is_null() && !joined.sends_only {
        unsafe { ibv_detach_mcast(inner.abi.qp, &gid_of(&joined.group()), 0) };
    }
}

/// Leaves all groups of an identifier that is about to be destroyed.
pub(super) unsafe fn leave_all(inner: &mut Id) {
    for joined in std::mem::take(&mut inner.groups) {
        unsafe { detach(inner, &joined) };
    }
}

#[unsafe(export_name = "selvedge_rdma_join_multicast")]
pub unsafe extern "C" fn join_multicast(id: *mut rdma_cm_id, to: *mut libc::sockaddr, context: *mut c_void) -> c_int {
    unsafe { join(id, to, false, context) }
}

#[unsafe(export_name = "selvedge_rdma_join_multicast_ex")]
pub unsafe extern "C" fn join_multicast_ex(
    id: *mut rdma_cm_id,
    attributes: *mut rdma_cm_join_mc_attr_ex,
    context: *mut c_void,
) -> c_int {
    /// Mask of the address and the flags: both are required, and nothing else is known.
    const GIVEN: u32 = 0b11;
    const FULL_MEMBER: u32 = 0;
    const SENDS_ONLY: u32 = 1;
    let wanted = unsafe { &*attributes };
    if wanted.comp_mask & !GIVEN != 0 {
        return fail(libc::ENOTSUP);
    }
    if wanted.comp_mask != GIVEN || ![FULL_MEMBER, SENDS_ONLY].contains(&wanted.join_flags) {
        return fail(libc::EINVAL);
    }
    unsafe { join(id, wanted.addr, wanted.join_flags == SENDS_ONLY, context) }
}

#[unsafe(export_name = "selvedge_rdma_leave_multicast")]
pub unsafe extern "C" fn leave_multicast(id: *mut rdma_cm_id, to: *mut libc::sockaddr) -> c_int {
    let inner = unsafe { Id::of(id) };
    let Some(address) = (unsafe { address::read(to) }) else { return fail(libc::EINVAL) };
    let Some(at) = inner.groups.iter().position(|joined| joined.address == address) else {
        return fail(libc::EADDRNOTAVAIL);
    };
    let joined = inner.groups.swap_remove(at);
    unsafe { detach(inner, &joined) };
    0
}
