//! Multicast groups by socket address. There is no subnet administrator: the kernel joins the groups (IGMP, MLD).

use std::ffi::{c_int, c_void};
use std::net::{Ipv6Addr, SocketAddr};

use selvedge_nic::verbs::{MULTICAST, Route, is_group};

use super::abi::{rdma_cm_join_mc_attr_ex, rdma_ud_param};
use super::address::{self, CAddress};
use super::connect::QKEY;
use super::event::fail;
use super::id::Id;
use crate::borrowed::{Borrowed, zeroed};
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

fn join(inner: Borrowed<'_, Id>, to: CAddress<'_>, sends_only: bool, context: *mut c_void) -> c_int {
    let Some(address) = to.read() else { return fail(libc::EAFNOSUPPORT) };
    let is_bound = inner.verbs().is_some();
    if !is_bound || !is_group(&address::gid(&address)) {
        return fail(libc::EINVAL);
    }
    let joined = Joined { address, context: context.expose_provenance(), sends_only };
    inner.groups().push(joined);
    inner.tell_joined(joined);
    inner.complete()
}

/// Attaches the identifier's queue pair to the group, if there is one by now; returns the parameters for sending to the
/// group, and 0 or `errno`.
pub(super) fn attached(inner: &Id, joined: &Joined) -> (rdma_ud_param, c_int) {
    let group = joined.group();
    let errno = match inner.qp().filter(|_| !joined.sends_only) {
        None => 0,
        Some(qp) => ibv_attach_mcast(qp, Some(Borrowed::of(&gid_of(&group))), 0),
    };
    let state = inner.state();
    let local = state.source.map_or(Ipv6Addr::UNSPECIFIED, |source| address::gid(&source));
    let route = Route { local, remote: group, traffic_class: state.traffic_class, hop_limit: HOPS, flow_label: 0 };
    let attributes = inner.verbs().map(|verbs| crate::address::attributes(&verbs.whole(), &route));
    let parameters = rdma_ud_param {
        private_data: std::ptr::with_exposed_provenance(joined.context),
        private_data_len: 0,
        ah_attr: attributes.unwrap_or_else(zeroed),
        qp_num: MULTICAST.0,
        qkey: QKEY,
    };
    (parameters, errno)
}

fn detach(inner: &Id, joined: &Joined) {
    if let Some(qp) = inner.qp().filter(|_| !joined.sends_only) {
        ibv_detach_mcast(qp, Some(Borrowed::of(&gid_of(&joined.group()))), 0);
    }
}

/// Leaves all groups of an identifier that is about to be destroyed.
pub(super) fn leave_all(inner: &Id) {
    let all = std::mem::take(&mut *inner.groups());
    for joined in all {
        detach(inner, &joined);
    }
}

#[unsafe(export_name = "selvedge_rdma_join_multicast")]
pub extern "C" fn join_multicast(id: Borrowed<'_, Id>, to: CAddress<'_>, context: *mut c_void) -> c_int {
    join(id, to, false, context)
}

#[unsafe(export_name = "selvedge_rdma_join_multicast_ex")]
pub extern "C" fn join_multicast_ex(
    id: Borrowed<'_, Id>,
    wanted: Borrowed<'_, rdma_cm_join_mc_attr_ex>,
    context: *mut c_void,
) -> c_int {
    /// Mask of the address and the flags: both are required, and nothing else is known.
    const GIVEN: u32 = 0b11;
    const FULL_MEMBER: u32 = 0;
    const SENDS_ONLY: u32 = 1;
    if wanted.comp_mask & !GIVEN != 0 {
        return fail(libc::ENOTSUP);
    }
    if wanted.comp_mask != GIVEN || ![FULL_MEMBER, SENDS_ONLY].contains(&wanted.join_flags) {
        return fail(libc::EINVAL);
    }
    // SAFETY: the mask says that there is an address.
    let to = unsafe { CAddress::new(wanted.addr) };
    join(id, to, wanted.join_flags == SENDS_ONLY, context)
}

#[unsafe(export_name = "selvedge_rdma_leave_multicast")]
pub extern "C" fn leave_multicast(inner: Borrowed<'_, Id>, to: CAddress<'_>) -> c_int {
    let Some(address) = to.read() else { return fail(libc::EINVAL) };
    let mut groups = inner.groups();
    let Some(at) = groups.iter().position(|joined| joined.address == address) else {
        return fail(libc::EADDRNOTAVAIL);
    };
    let joined = groups.swap_remove(at);
    drop(groups);
    detach(&inner, &joined);
    0
}
