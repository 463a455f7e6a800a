//! Queue pairs in multicast groups.

use std::ffi::c_int;
use std::net::Ipv6Addr;

use selvedge_nic::verbs::is_group;

use crate::abi::{ibv_gid, ibv_qp};
use crate::context::Context;
use crate::error;
use crate::pair::Qp;

/// Returns the group of a GID: an IPv4 address as `::ffff:a.b.c.d`, or an IPv6 address; `None` if it is no multicast
/// address.
unsafe fn group(gid: *const ibv_gid) -> Option<Ipv6Addr> {
    // SAFETY: the caller's.
    unsafe { gid.as_ref() }.map(|gid| Ipv6Addr::from(gid.octets())).filter(is_group)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_attach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, _lid: u16) -> c_int {
    let Some(group) = (unsafe { group(gid) }) else { return libc::EINVAL };
    let (inner, device) = unsafe { (Qp::of(qp), Context::of((*qp).context).device()) };
    let Err(problem) = inner.adapter.attach(inner.number, group, device.index) else { return 0 };
    let name = &device.name;
    match problem.raw_os_error() {
        Some(libc::EADDRINUSE) => error::say(&format!(
            "{name}: multicast needs UDP port 4791, which another user's process or a driver has for itself"
        )),
        Some(libc::ENOBUFS) => error::say(&format!(
            "{name}: the system allows no more IPv4 groups: `sysctl net.ipv4.igmp_max_memberships` says how many"
        )),
        _ => {}
    }
    error::of_io(&problem)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_detach_mcast(qp: *mut ibv_qp, gid: *const ibv_gid, _lid: u16) -> c_int {
    let Some(group) = (unsafe { group(gid) }) else { return libc::EINVAL };
    let inner = unsafe { Qp::of(qp) };
    error::code(inner.adapter.detach(inner.number, group))
}
