//! Queue pairs in multicast groups.

use std::ffi::c_int;
use std::net::Ipv6Addr;

use selvedge_nic::verbs::is_group;

use crate::abi::ibv_gid;
use crate::borrowed::Borrowed;
use crate::error;
use crate::pair::Qp;

/// Returns the group of a GID: an IPv4 address as `::ffff:a.b.c.d`, or an IPv6 address; `None` if it is no multicast
/// address.
fn group(gid: Option<Borrowed<'_, ibv_gid>>) -> Option<Ipv6Addr> {
    gid.map(|gid| Ipv6Addr::from(gid.octets())).filter(is_group)
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_attach_mcast(qp: Borrowed<'_, Qp>, gid: Option<Borrowed<'_, ibv_gid>>, _lid: u16) -> c_int {
    let Some(group) = group(gid) else { return libc::EINVAL };
    let context = qp.context();
    let device = context.device();
    let Err(problem) = qp.adapter.attach(qp.number, group, device.index) else { return 0 };
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
pub extern "C" fn ibv_detach_mcast(qp: Borrowed<'_, Qp>, gid: Option<Borrowed<'_, ibv_gid>>, _lid: u16) -> c_int {
    let Some(group) = group(gid) else { return libc::EINVAL };
    error::code(qp.adapter.detach(qp.number, group))
}
