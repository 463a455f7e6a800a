//! Queries of a device's attributes and capabilities.

use std::ffi::c_int;
use std::net::Ipv6Addr;
use std::ptr;

use selvedge_dataplane::rnic::Device;
use selvedge_nic::verbs::Limits;

use crate::abi::{ibv_context, ibv_device_attr, ibv_device_attr_ex, ibv_gid, ibv_gid_entry, ibv_port_attr};
use crate::borrowed::{Borrowed, Out, zeroed};
use crate::context::Context;
use crate::device::text;
use crate::error;
use crate::limits::{Profile, least};

/// `IBV_GID_TYPE_ROCE_V2`, in entries of the GID table.
const ROCE_V2: u32 = 2;
/// The type of RoCE v2 GIDs that `ibv_query_gid_type` returns: it counts like sysfs, not like `enum ibv_gid_type`.
const SYSFS_ROCE_V2: c_int = 1;
/// The only partition key: the default partition, full membership.
const EVERYBODY: u16 = 0xffff;

/// Size of the GID table. Most entries are empty, as in other NICs.
const GID_TABLE: usize = 256;

/// Vendor number that no vendor has; Linux's soft RoCE reports it, too.
const NO_VENDOR: u32 = 0xff_ffff;

/// Returns whether this NIC has that port.
pub(crate) fn is_port(port: u32) -> bool {
    port == 1
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_device(
    context: Borrowed<'_, ibv_context>,
    mut attributes: Out<'_, ibv_device_attr>,
) -> c_int {
    attributes.write(device_attributes(&context.whole()));
    0
}

/// Queries a device. The only input is `comp_mask`.
///
/// # Safety
/// `attributes` has room for `size` bytes.
pub(crate) unsafe extern "C" fn query_device_ex(
    context: Borrowed<'_, ibv_context>,
    comp_mask: Option<Borrowed<'_, u32>>,
    attributes: *mut ibv_device_attr_ex,
    size: usize,
) -> c_int {
    // Bits of `comp_mask` would announce extensions of the query, of which there are none.
    if comp_mask.is_some_and(|bits| *bits != 0) {
        return libc::EINVAL;
    }
    if size < size_of::<ibv_device_attr>() {
        return libc::EINVAL;
    }
    let inner = context.whole();
    let mut all: ibv_device_attr_ex = zeroed();
    all.orig_attr = device_attributes(&inner);
    if inner.adapter.has_on_demand() && !inner.profile.no_odp {
        all.odp_caps = on_demand();
    }
    all.device_cap_flags_ex = u64::from(capabilities(&inner.profile)) | more_capabilities();
    all.phys_port_cnt_ex = 1;
    // SAFETY: as the caller promises.
    unsafe { give(&all, attributes.cast(), size) };
    0
}

/// Returns the fields of `struct ibv_odp_caps`: general capabilities, those of connections (reliable, unreliable), and
/// those of datagrams. No memory is pinned here, so all memory is paged on demand.
fn on_demand() -> [u64; 3] {
    const SUPPORTED: u64 = 1;
    const WHOLE_ADDRESS_SPACE: u64 = 1 << 1;
    const SEND: u64 = 1;
    const RECEIVE: u64 = 1 << 1;
    const WRITE_READ_ATOMIC: u64 = 0b111 << 2;
    const SHARED_RECEIVE: u64 = 1 << 5;
    const FLUSH_ATOMIC_WRITE: u64 = 0b11 << 6;
    let messages = SEND | RECEIVE | SHARED_RECEIVE;
    [SUPPORTED | WHOLE_ADDRESS_SPACE, messages | WRITE_READ_ATOMIC | FLUSH_ATOMIC_WRITE, messages]
}

/// Copies as much of `all` as the caller's structure holds, and zeros the rest.
///
/// # Safety
/// `to` has room for `size` bytes.
unsafe fn give<T>(all: &T, to: *mut u8, size: usize) {
    // SAFETY: as the caller promises; padding is copied as it is.
    unsafe {
        ptr::write_bytes(to, 0, size);
        ptr::copy_nonoverlapping(ptr::from_ref(all).cast::<u8>(), to, size.min(size_of::<T>()));
    }
}

fn device_attributes(context: &Context) -> ibv_device_attr {
    let (limits, profile) = (Limits::HERE, &context.profile);
    let of = |ours: u32, limit: Option<u32>| least(ours, limit) as c_int;
    let guid = u64::from_ne_bytes(context.device().guid());
    let mut attributes: ibv_device_attr = zeroed();
    attributes.fw_ver = text(env!("CARGO_PKG_VERSION"));
    attributes.node_guid = guid;
    attributes.sys_image_guid = guid;
    attributes.max_mr_size = profile.max_mr_size.unwrap_or(u64::MAX);
    attributes.page_size_cap = 0xffff_f000;
    // Software has no part number.
    attributes.vendor_id = NO_VENDOR;
    attributes.max_qp = of(limits.queue_pairs, profile.max_qp);
    attributes.max_qp_wr = of(limits.requests, profile.max_qp_wr);
    attributes.device_cap_flags = capabilities(profile);
    attributes.max_sge = of(limits.pieces, profile.max_sge);
    attributes.max_sge_rd = of(limits.pieces, profile.max_sge);
    attributes.max_cq = of(1 << 20, profile.max_cq);
    attributes.max_cqe = of(limits.completions, profile.max_cqe);
    attributes.max_mr = of(1 << 20, profile.max_mr);
    attributes.max_mw = of(limits.windows, profile.max_mw);
    attributes.max_pd = of(1 << 20, profile.max_pd);
    attributes.max_qp_rd_atom = of(limits.reads.into(), profile.max_rd_atom);
    attributes.max_res_rd_atom = attributes.max_qp_rd_atom * attributes.max_qp;
    attributes.max_qp_init_rd_atom = attributes.max_qp_rd_atom;
    // Atomics are the processor's own: atomic towards all accesses in this host's memory.
    attributes.atomic_cap = if profile.no_atomics { 0 } else { 2 };
    attributes.max_mcast_grp = limits.attachments as c_int;
    attributes.max_mcast_qp_attach = limits.queue_pairs as c_int;
    attributes.max_total_mcast_qp_attach = limits.attachments as c_int;
    attributes.max_ah = 1 << 20;
    attributes.max_srq = of(1 << 16, profile.max_srq);
    let srq_limit = if profile.max_srq == Some(0) { Some(0) } else { None };
    attributes.max_srq_wr = of(limits.requests, srq_limit.or(profile.max_srq_wr));
    attributes.max_srq_sge = of(limits.pieces, srq_limit.or(profile.max_sge));
    attributes.max_pkeys = 1;
    attributes.local_ca_ack_delay = 15;
    attributes.phys_port_cnt = 1;
    attributes
}

fn capabilities(profile: &Profile) -> u32 {
    const BAD_QKEY_COUNTER: u32 = 1 << 2;
    const CURRENT_STATE: u32 = 1 << 7;
    const PORT_ACTIVE_EVENT: u32 = 1 << 10;
    const SYSTEM_GUID: u32 = 1 << 11;
    const NOT_READY_NAK: u32 = 1 << 12;
    const SRQ_RESIZE: u32 = 1 << 13;
    const WINDOWS: u32 = 1 << 17;
    const WINDOWS_TYPE_2B: u32 = 1 << 24;
    let has = |limit: Option<u32>, flags: u32| if limit == Some(0) { 0 } else { flags };
    let queues = CURRENT_STATE | NOT_READY_NAK | has(profile.max_srq, SRQ_RESIZE);
    let windows = has(profile.max_mw, WINDOWS | WINDOWS_TYPE_2B);
    BAD_QKEY_COUNTER | PORT_ACTIVE_EVENT | SYSTEM_GUID | queues | windows
}

/// Returns the capabilities that need more than 32 bits, of `enum ib_uverbs_device_cap_flags`.
fn more_capabilities() -> u64 {
    const FLUSH_GLOBAL: u64 = 1 << 38;
    const FLUSH_PERSISTENT: u64 = 1 << 39;
    const ATOMIC_WRITE: u64 = 1 << 40;
    FLUSH_GLOBAL | FLUSH_PERSISTENT | ATOMIC_WRITE
}

/// Returns the code in `enum ibv_mtu` for bytes of payload.
pub(crate) fn mtu_code(bytes: u16) -> c_int {
    (bytes.max(256).ilog2() - 7) as c_int
}

/// Queries a port.
///
/// # Safety
/// `attributes` has room for `size` bytes.
pub(crate) unsafe extern "C" fn query_port(
    context: Borrowed<'_, ibv_context>,
    port: u8,
    attributes: *mut ibv_port_attr,
    size: usize,
) -> c_int {
    if !is_port(port.into()) {
        return libc::EINVAL;
    }
    let all = port_attributes(&context.whole());
    // SAFETY: as the caller promises.
    unsafe { give(&all, attributes.cast(), size) };
    0
}

/// Queries a port for programs built before `flags` existed: their structure ends there.
///
/// # Safety
/// `attributes` has room for the structure up to `flags`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_port(
    context: Borrowed<'_, ibv_context>,
    port: u8,
    attributes: *mut ibv_port_attr,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { query_port(context, port, attributes, std::mem::offset_of!(ibv_port_attr, flags)) }
}

fn port_attributes(context: &Context) -> ibv_port_attr {
    const ACTIVE: c_int = 4;
    const DOWN: c_int = 1;
    const ETHERNET: u8 = 2;
    const ROUTE_HEADER_REQUIRED: u8 = 1;
    let device = context.device();
    let (active_width, active_speed) = lanes(device.speed);
    ibv_port_attr {
        state: if device.is_up { ACTIVE } else { DOWN },
        max_mtu: mtu_code(4_096),
        active_mtu: mtu_code(device.payload()),
        gid_tbl_len: gid_table(device) as c_int,
        port_cap_flags: PORT_CAPABILITIES,
        max_msg_sz: Limits::HERE.message,
        bad_pkey_cntr: 0,
        qkey_viol_cntr: 0,
        pkey_tbl_len: 1,
        lid: 0,
        sm_lid: 0,
        lmc: 0,
        max_vl_num: 1,
        sm_sl: 0,
        subnet_timeout: 0,
        init_type_reply: 0,
        active_width,
        active_speed,
        phys_state: if device.is_up { 5 } else { 3 },
        link_layer: ETHERNET,
        flags: ROUTE_HEADER_REQUIRED,
        port_cap_flags2: 0,
    }
}

/// Flags of `enum ibv_port_cap_flags`: there is a connection manager, and GIDs are IP addresses.
pub(crate) const PORT_CAPABILITIES: u32 = 1 << 16 | 1 << 26;

/// InfiniBand's code of a link of four lanes.
pub(crate) const FOUR_LANES: u8 = 2;
/// InfiniBand's code of 10 Gb/s for each lane.
pub(crate) const QDR: u8 = 4;

/// Returns a link's width and speed in InfiniBand's codes, from megabits per second; 10 Gb/s where the interface does
/// not tell.
pub(crate) fn lanes(speed: Option<u32>) -> (u8, u8) {
    const ONE: u8 = 1;
    const EDR: u8 = 32;
    match speed.unwrap_or(10_000) {
        0..=10_000 => (ONE, QDR),
        10_001..=25_000 => (ONE, EDR),
        25_001..=40_000 => (FOUR_LANES, QDR),
        _ => (FOUR_LANES, EDR),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_gid(
    context: Borrowed<'_, ibv_context>,
    port: u8,
    index: c_int,
    mut gid: Out<'_, ibv_gid>,
) -> c_int {
    let Some(found) = gid_at(context.whole().device(), port.into(), index) else {
        error::set(libc::EINVAL);
        return -1;
    };
    gid.write(found);
    0
}

/// Returns the GID at an index of the table, zeros at an empty index; `None` if the index or the port does not exist.
fn gid_at(device: &Device, port: u32, index: c_int) -> Option<ibv_gid> {
    let at = usize::try_from(index).ok().filter(|&at| is_port(port) && at < gid_table(device))?;
    Some(device.gids.get(at).map_or(ibv_gid { raw: [0; 16] }, gid_of))
}

pub(crate) fn gid_table(device: &Device) -> usize {
    device.gids.len().max(GID_TABLE)
}

pub(crate) fn gid_of(address: &Ipv6Addr) -> ibv_gid {
    ibv_gid { raw: address.octets() }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_gid_type(
    context: Borrowed<'_, ibv_context>,
    port: u8,
    index: u32,
    mut kind: Out<'_, c_int>,
) -> c_int {
    /// The GID type that is reported for empty entries.
    const SYSFS_ROCE_V1: c_int = 0;
    let device = context.whole().get().device();
    if gid_at(device, port.into(), index as c_int).is_none() {
        error::set(libc::EINVAL);
        return -1;
    }
    let is_there = device.gids.len() > index as usize;
    kind.write(if is_there { SYSFS_ROCE_V2 } else { SYSFS_ROCE_V1 });
    0
}

fn entry(context: &Context, index: u32) -> Option<ibv_gid_entry> {
    let gid = gid_of(context.device().gids.get(index as usize)?);
    Some(ibv_gid_entry { gid, gid_index: index, port_num: 1, gid_type: ROCE_V2, ndev_ifindex: context.device().index })
}

/// Queries an entry of the GID table.
///
/// # Safety
/// `to` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_ex(
    context: Borrowed<'_, ibv_context>,
    port: u32,
    index: u32,
    to: *mut ibv_gid_entry,
    flags: u32,
    size: usize,
) -> c_int {
    if flags != 0 || size < size_of::<ibv_gid_entry>() {
        return if flags != 0 { libc::EOPNOTSUPP } else { libc::EINVAL };
    }
    if !is_port(port) {
        return libc::EINVAL;
    }
    let context = context.whole();
    let Some(found) = entry(&context, index) else {
        let is_empty = (index as usize) < gid_table(context.device());
        return if is_empty { libc::ENODATA } else { libc::EINVAL };
    };
    // SAFETY: as the caller promises.
    unsafe { give(&found, to.cast(), size) };
    0
}

/// Queries all entries of the GID table; returns their number, or minus `errno`.
///
/// # Safety
/// `to` has room for `most` entries of `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _ibv_query_gid_table(
    context: Borrowed<'_, ibv_context>,
    to: *mut ibv_gid_entry,
    most: usize,
    flags: u32,
    size: usize,
) -> isize {
    if flags != 0 {
        return -libc::EOPNOTSUPP as isize;
    }
    let context = context.whole();
    let count = context.device().gids.len();
    if size < size_of::<ibv_gid_entry>() || most < count {
        return -libc::EINVAL as isize;
    }
    for (at, found) in (0..count as u32).filter_map(|index| entry(&context, index)).enumerate() {
        // SAFETY: as the caller promises: `at` is below `most`.
        unsafe { give(&found, to.cast::<u8>().add(at * size), size) };
    }
    count as isize
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_pkey(_: *mut ibv_context, port: u8, index: c_int, mut key: Out<'_, u16>) -> c_int {
    if !is_port(port.into()) || index != 0 {
        error::set(libc::EINVAL);
        return -1;
    }
    key.write(EVERYBODY.to_be());
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_get_pkey_index(_: *mut ibv_context, port: u8, key: u16) -> c_int {
    if is_port(port.into()) && u16::from_be(key) & 0x7fff == EVERYBODY & 0x7fff {
        return 0;
    }
    error::set(libc::EINVAL);
    -1
}
