//! Address handles, and the routes that they name.

use std::ffi::c_int;
use std::net::Ipv6Addr;

use selvedge_dataplane::rnic::{Device, written};
use selvedge_nic::verbs::{Route, is_group};

use crate::abi::{ibv_ah, ibv_ah_attr, ibv_context, ibv_global_route, ibv_wc};
use crate::borrowed::{Borrowed, Given, Out};
use crate::context::Context;
use crate::error;
use crate::memory::Pd;
use crate::query::{gid_of, is_port};

/// An address handle: C's structure, and the route behind it.
#[repr(C)]
pub struct Ah {
    abi: ibv_ah,
    pub(crate) route: Route,
}

/// Returns the route to an address.
///
/// # Errors
/// Returns `errno`; prints what is wrong with an address that leads nowhere.
pub(crate) fn route(context: &Context, attributes: &ibv_ah_attr) -> Result<Route, c_int> {
    let device = context.device();
    let name = &device.name;
    if !is_port(attributes.port_num.into()) {
        return Err(libc::EINVAL);
    }
    if attributes.is_global == 0 {
        error::say(&format!(
            "{name}: an address without a GID: this is Ethernet (RoCE), where LIDs mean nothing. Most programs take an \
             option for the index of the GID to use, such as `ibv_rc_pingpong -g 1`"
        ));
        return Err(libc::EINVAL);
    }
    let grh = &attributes.grh;
    let Some(&local) = device.gids.get(usize::from(grh.sgid_index)) else {
        error::say(&format!("{name}: no GID {}; there are {}", grh.sgid_index, device.gids.len()));
        return Err(libc::EINVAL);
    };
    let remote = Ipv6Addr::from(grh.dgid.octets());
    let is_v4 = |address: Ipv6Addr| address.to_ipv4_mapped().is_some();
    if remote.is_unspecified() || is_v4(local) != is_v4(remote) {
        let index = grh.sgid_index;
        let why = if remote.is_unspecified() {
            "the other side's GID is zero: it has none at the index that it uses".to_owned()
        } else {
            let kind = |address| if is_v4(address) { "IPv4" } else { "IPv6" };
            let (ours, theirs) = (kind(local), kind(remote));
            let index = device.gids.iter().position(|gid| is_v4(*gid) == is_v4(remote) && !gid.is_unicast_link_local());
            let remedy = index.map(|index| format!(" (here GID {index})")).unwrap_or_default();
            format!("one is {ours}, the other {theirs}: both ends need GIDs of one kind{remedy}")
        };
        error::say(&format!("{name}: no way from GID {index} ({}) to {}: {why}", written(&local), written(&remote)));
        return Err(libc::EINVAL);
    }
    let hop_limit = if grh.hop_limit == 0 { 64 } else { grh.hop_limit };
    let (local, remote) = if grh.sgid_index == 0 { link_local(device, local, remote)? } else { (local, remote) };
    Ok(Route { local, remote, traffic_class: grh.traffic_class, hop_limit, flow_label: grh.flow_label })
}

/// Returns the addresses of a route from GID 0. Where the interface has no link-local address, GID 0 is made of the
/// hardware address and leads only to the device itself.
fn link_local(device: &Device, local: Ipv6Addr, remote: Ipv6Addr) -> Result<(Ipv6Addr, Ipv6Addr), c_int> {
    if device.has_link_local {
        return Ok((local, remote));
    }
    match device.gids.get(1) {
        Some(&address) if remote == local => Ok((address, address)),
        other => {
            let instead = other.map(|gid| format!(": use GID 1 ({})", written(gid))).unwrap_or_default();
            let Device { name, interface, .. } = device;
            error::say(&format!("{name}: GID 0 leads nowhere, because {interface} has no link-local address{instead}"));
            Err(libc::EINVAL)
        }
    }
}

/// Returns the attributes of an address handle for this route, the inverse of [`route`].
pub(crate) fn attributes(context: &Context, route: &Route) -> ibv_ah_attr {
    let gids = &context.device().gids;
    // Datagrams that came to a group are answered from another address of the same family.
    let is_alike = |gid: &Ipv6Addr| gid.to_ipv4_mapped().is_some() == route.local.to_ipv4_mapped().is_some();
    let index = match is_group(&route.local) {
        true => gids.iter().skip(1).position(is_alike).map(|at| at + 1),
        false => gids.iter().position(|gid| *gid == route.local),
    };
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: gid_of(&route.remote),
            flow_label: route.flow_label,
            sgid_index: index.unwrap_or(0) as u8,
            hop_limit: route.hop_limit,
            traffic_class: route.traffic_class,
        },
        dlid: 0,
        sl: 0,
        src_path_bits: 0,
        static_rate: 0,
        is_global: 1,
        port_num: 1,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_ah(pd: Borrowed<'_, Pd>, attributes: Borrowed<'_, ibv_ah_attr>) -> Option<Given<Ah>> {
    match route(&pd.context(), &attributes) {
        Ok(route) => {
            let abi = ibv_ah { context: pd.abi.context, pd: pd.as_c(), handle: pd.id.0 };
            Some(Given::new(Ah { abi, route }))
        }
        Err(errno) => error::none(errno),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_destroy_ah(ah: Given<Ah>) -> c_int {
    ah.free();
    0
}

/// Initializes the attributes of the route back to the sender of a datagram.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_init_ah_from_wc(
    context: Borrowed<'_, ibv_context>,
    port: u8,
    wc: Borrowed<'_, ibv_wc>,
    header: Borrowed<'_, Header>,
    mut to: Out<'_, ibv_ah_attr>,
) -> c_int {
    let Some(found) = attributes_back(&context.whole(), port, wc, header) else {
        error::set(libc::EINVAL);
        return -1;
    };
    to.write(found);
    0
}

/// The bytes before a datagram in its buffer, `struct ibv_grh`.
type Header = [u8; 40];

/// Returns the attributes of the route back to the sender of a datagram; `None` if it has no header, or the port does
/// not exist.
fn attributes_back(
    context: &Context,
    port: u8,
    wc: Borrowed<'_, ibv_wc>,
    header: Borrowed<'_, Header>,
) -> Option<ibv_ah_attr> {
    const HAS_HEADER: u32 = 1;
    if wc.wc_flags & HAS_HEADER == 0 || !is_port(port.into()) {
        return None;
    }
    let (remote, local, traffic_class) = ends(header.get());
    Some(attributes(context, &Route { local, remote, traffic_class, hop_limit: 64, flow_label: 0 }))
}

/// Returns sender, receiver and traffic class from the 40 bytes before a datagram: an IPv6 header, or an IPv4 header at
/// their end.
fn ends(header: &[u8]) -> (Ipv6Addr, Ipv6Addr, u8) {
    let v6 = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&header[at..at + 16]).unwrap_or_default());
    let v4 = |at: usize| {
        std::net::Ipv4Addr::from(<[u8; 4]>::try_from(&header[at..at + 4]).unwrap_or_default()).to_ipv6_mapped()
    };
    if header[0] >> 4 == 6 { (v6(8), v6(24), header[0] << 4 | header[1] >> 4) } else { (v4(32), v4(36), header[21]) }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_ah_from_wc(
    pd: Borrowed<'_, Pd>,
    wc: Borrowed<'_, ibv_wc>,
    header: Borrowed<'_, Header>,
    port: u8,
) -> Option<Given<Ah>> {
    match attributes_back(&pd.context(), port, wc, header) {
        Some(attributes) => ibv_create_ah(pd, Borrowed::of(&attributes)),
        None => error::none(libc::EINVAL),
    }
}
