//! Protection domains and memory regions.

use std::ffi::{c_int, c_uint, c_void};

use selvedge_dataplane::rnic::Adapter;
use selvedge_nic::verbs::{Access, PdId, Region, Sge};

use crate::abi::{ibv_context, ibv_mr, ibv_parent_domain_init_attr, ibv_pd, ibv_sge, ibv_td};
use crate::borrowed::{Borrowed, Exclusive, Given, Link, elements};
use crate::context::Context;
use crate::limits::{self, Held, ObjectKind, Profile};
use crate::{error, post};

/// A protection domain: C's structure, followed by this library's fields.
#[repr(C)]
pub struct Pd {
    /// C's structure, which nobody changes.
    pub(crate) abi: ibv_pd,
    context: Link<Context>,
    pub(crate) id: PdId,
    pub(crate) adapter: &'static Adapter,
    /// The domain's share of the NIC's limit; `None` for a parent domain, which is another domain with more attributes.
    held: Option<Held>,
}

impl Pd {
    pub(crate) fn create(
        context: Borrowed<'_, ibv_context>,
        id: PdId,
        adapter: &'static Adapter,
        held: Option<Held>,
    ) -> Given<Self> {
        let abi = ibv_pd { context: context.as_ptr(), handle: id.0 };
        // SAFETY: programs deallocate a domain before they close its device.
        let context = unsafe { Link::to(context.whole()) };
        Given::new(Self { abi, context, id, adapter, held })
    }
    /// Returns the device of the domain.
    pub(crate) fn context(&self) -> Borrowed<'_, Context> {
        self.context.get()
    }
    /// Returns the domain's address in C.
    pub(crate) fn as_c(&self) -> *mut ibv_pd {
        std::ptr::from_ref(self).cast_mut().cast()
    }
}

impl<'c> Borrowed<'c, ibv_mr> {
    /// Returns the region's protection domain.
    pub(crate) fn domain(self) -> Borrowed<'c, Pd> {
        // SAFETY: programs deallocate a domain after its regions, and do not change the pointer.
        unsafe { Borrowed::new(self.pd.cast()) }.expect("a region has a protection domain")
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_alloc_pd(context: Borrowed<'_, ibv_context>) -> Option<Given<Pd>> {
    let Context { adapter, profile, .. } = context.whole().get();
    let held = match Held::take(ObjectKind::Domain, profile) {
        Ok(held) => held,
        Err(errno) => return error::none(errno),
    };
    match adapter.command(|rnic, _| rnic.alloc_pd()) {
        Ok(id) => Some(Pd::create(context, id, adapter, Some(held))),
        Err(refusal) => error::none(error::of(refusal)),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_dealloc_pd(pd: Given<Pd>) -> c_int {
    if pd.held.is_some() {
        let code = error::code_of(pd.adapter.command(|rnic, _| rnic.dealloc_pd(pd.id)));
        if code != 0 {
            return code;
        }
    }
    pd.free();
    0
}

/// Allocates a thread domain. Such domains promise that only one thread uses their objects, which makes nothing faster
/// here.
pub(crate) extern "C" fn alloc_td(context: *mut ibv_context, comp_mask: Borrowed<'_, u32>) -> Option<Given<ibv_td>> {
    // Bits of `comp_mask`, the only attribute, would announce extensions, of which there are none.
    if *comp_mask != 0 {
        return error::none(libc::EINVAL);
    }
    Some(Given::new(ibv_td { context }))
}

pub(crate) extern "C" fn dealloc_td(td: Given<ibv_td>) -> c_int {
    td.free();
    0
}

pub(crate) extern "C" fn alloc_parent_domain(
    context: Borrowed<'_, ibv_context>,
    wanted: Borrowed<'_, ibv_parent_domain_init_attr>,
) -> Option<Given<Pd>> {
    /// Known bits of `comp_mask`: an allocator for memory that a driver shares with its hardware, and its argument.
    /// Both are ignored, because nothing is shared.
    const KNOWN: u32 = 3;
    // SAFETY: a domain of this library's, or null.
    let parent = unsafe { Borrowed::new(wanted.pd.cast::<Pd>()) };
    let Some(parent) = parent.filter(|_| wanted.comp_mask & !KNOWN == 0) else { return error::none(libc::EINVAL) };
    Some(Pd::create(context, parent.id, parent.adapter, None))
}

/// Flags of `enum ibv_access_flags`.
mod flag {
    pub(super) const LOCAL_WRITE: u32 = 1;
    pub(super) const REMOTE_WRITE: u32 = 1 << 1;
    pub(super) const REMOTE_READ: u32 = 1 << 2;
    pub(super) const REMOTE_ATOMIC: u32 = 1 << 3;
    /// Memory windows may be bound to the region.
    pub(super) const BIND: u32 = 1 << 4;
    pub(super) const ZERO_BASED: u32 = 1 << 5;
    /// The memory need not be mapped yet (on-demand paging).
    pub(super) const ON_DEMAND: u32 = 1 << 6;
    /// The memory has huge pages, which changes nothing.
    pub(super) const HUGE: u32 = 1 << 7;
    /// Peers may flush their writes to global visibility.
    pub(super) const FLUSH_GLOBAL: u32 = 1 << 8;
    /// Peers may flush their writes to persistence.
    pub(super) const FLUSH_PERSISTENT: u32 = 1 << 9;
    /// The flags that a NIC may ignore.
    pub(super) const OPTIONAL: u32 = 0x3ff0_0000;
    const REMOTE: u32 = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC | FLUSH_GLOBAL | FLUSH_PERSISTENT;
    pub(super) const KNOWN: u32 = LOCAL_WRITE | REMOTE | BIND | ZERO_BASED | ON_DEMAND | HUGE | OPTIONAL;
}

/// Translates `enum ibv_access_flags` to the engine's access rights.
pub(crate) fn access(flags: c_uint) -> Access {
    Access {
        local_write: flags & flag::LOCAL_WRITE != 0,
        remote_write: flags & flag::REMOTE_WRITE != 0,
        remote_read: flags & flag::REMOTE_READ != 0,
        remote_atomic: flags & flag::REMOTE_ATOMIC != 0,
        bind: flags & flag::BIND != 0,
        flush_global: flags & flag::FLUSH_GLOBAL != 0,
        flush_persistent: flags & flag::FLUSH_PERSISTENT != 0,
    }
}

/// Returns whether a memory window may be bound with these flags.
pub(crate) fn opens_windows(flags: c_uint) -> bool {
    const KNOWN: u32 = flag::KNOWN & !(flag::BIND | flag::ON_DEMAND | flag::HUGE);
    flags & !KNOWN == 0
}
pub(crate) fn is_zero_based(flags: c_uint) -> bool {
    flags & flag::ZERO_BASED != 0
}

/// Translates access rights to `enum ibv_access_flags`, the inverse of [`access`].
pub(crate) fn flags(access: Access) -> c_uint {
    [
        (access.local_write, flag::LOCAL_WRITE),
        (access.remote_write, flag::REMOTE_WRITE),
        (access.remote_read, flag::REMOTE_READ),
        (access.remote_atomic, flag::REMOTE_ATOMIC),
        (access.bind, flag::BIND),
        (access.flush_global, flag::FLUSH_GLOBAL),
        (access.flush_persistent, flag::FLUSH_PERSISTENT),
    ]
    .into_iter()
    .filter(|(has, _)| *has)
    .fold(0, |flags, (_, flag)| flags | flag)
}

/// A memory region: C's structure, and its share of the NIC's limit.
#[repr(C)]
pub struct Mr {
    /// C's structure. Only [`ibv_rereg_mr`] changes it, for the thread that owns the region.
    pub(crate) abi: ibv_mr,
    _held: Held,
}

/// Checks that the emulated NIC permits such a region.
fn allowed(profile: &Profile, flags: c_uint, length: usize) -> Result<(), c_int> {
    if profile.no_atomics && flags & flag::REMOTE_ATOMIC != 0 {
        return Err(limits::refuse(libc::EOPNOTSUPP, "IBV_ACCESS_REMOTE_ATOMIC: there are no Atomics"));
    }
    if profile.no_odp && flags & flag::ON_DEMAND != 0 {
        return Err(limits::refuse(libc::EOPNOTSUPP, "IBV_ACCESS_ON_DEMAND: there is none"));
    }
    match profile.max_mr_size {
        Some(limit) if length as u64 > limit => Err(limits::refuse(libc::EINVAL, &format!("max_mr_size is {limit}"))),
        _ => Ok(()),
    }
}

/// Registers memory.
///
/// # Safety
/// The memory is the program's to share with its peers, until it deregisters the region.
unsafe fn register(
    inner: Borrowed<'_, Pd>,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    flags: c_uint,
) -> Option<Given<Mr>> {
    let is_on_demand = flags & flag::ON_DEMAND != 0;
    let context = inner.context();
    let profile = &context.profile;
    let held = match allowed(profile, flags, length).and_then(|()| Held::take(ObjectKind::Region, profile)) {
        Ok(held) => held,
        Err(errno) => return error::none(errno),
    };
    if flags & !flag::KNOWN != 0 || (is_on_demand && !inner.adapter.has_on_demand()) {
        return error::none(libc::EOPNOTSUPP);
    }
    let address = if is_zero_based(flags) { 0 } else { iova };
    let start = addr.expose_provenance() as u64;
    let region = Region { pd: inner.id, address, start, length: length as u64, access: access(flags) };
    if !can_be_flushed(inner.adapter, &region) {
        return error::none(libc::EINVAL);
    }
    // SAFETY: as the caller promises.
    let outcome =
        unsafe { if is_on_demand { inner.adapter.reg_mr_on_demand(region) } else { inner.adapter.reg_mr(region) } };
    match outcome {
        Ok(key) => {
            let (context, pd) = (inner.abi.context, inner.as_c());
            let abi = ibv_mr { context, pd, addr, length, handle: key, lkey: key, rkey: key };
            Some(Given::new(Mr { abi, _held: held }))
        }
        Err(refusal) => error::none(error::of(refusal)),
    }
}

/// Returns whether the region's memory supports the flushes that its access rights permit. Soft RoCE refuses persistent
/// flushes of other memory, too.
fn can_be_flushed(adapter: &Adapter, region: &Region) -> bool {
    let is_well = !region.access.flush_persistent || adapter.can_persist(region.start, region.length);
    if !is_well {
        error::say("IBV_ACCESS_FLUSH_PERSISTENT is for memory that is a file, mapped with MAP_SHARED, on a disk");
    }
    is_well
}

/// Registers memory whose addresses for peers are its own.
///
/// # Safety
/// The memory is the program's to share with its peers, until it deregisters the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr(
    pd: Borrowed<'_, Pd>,
    addr: *mut c_void,
    length: usize,
    flags: c_int,
) -> Option<Given<Mr>> {
    // SAFETY: as the caller promises.
    unsafe { register(pd, addr, length, addr.addr() as u64, flags as c_uint) }
}

/// Registers memory whose addresses for peers begin at `iova`.
///
/// # Safety
/// The memory is the program's to share with its peers, until it deregisters the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova(
    pd: Borrowed<'_, Pd>,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    flags: c_int,
) -> Option<Given<Mr>> {
    // SAFETY: as the caller promises.
    unsafe { register(pd, addr, length, iova, flags as c_uint) }
}

/// Registers memory whose addresses for peers begin at `iova`, with flags that may be ignored.
///
/// # Safety
/// The memory is the program's to share with its peers, until it deregisters the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: Borrowed<'_, Pd>,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    flags: c_uint,
) -> Option<Given<Mr>> {
    // SAFETY: as the caller promises.
    unsafe { register(pd, addr, length, iova, flags) }
}

/// Fails: memory of other devices (DMA-BUF) is not accessible.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_reg_dmabuf_mr(_: *mut ibv_pd, _: u64, _: usize, _: u64, _: c_int, _: c_int) -> *mut ibv_mr {
    error::null(libc::EOPNOTSUPP)
}

/// Changes memory, protection domain or access rights of a region.
///
/// # Safety
/// New memory is the program's to share with its peers, until it deregisters the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_rereg_mr(
    mut region: Exclusive<'_, ibv_mr>,
    what: c_int,
    pd: Option<Borrowed<'_, Pd>>,
    addr: *mut c_void,
    length: usize,
    flags: c_int,
) -> c_int {
    const TRANSLATION: c_int = 1;
    const DOMAIN: c_int = 1 << 1;
    const ACCESS: c_int = 1 << 2;
    /// `IBV_REREG_MR_ERR_INPUT`: the request is invalid, and the region is unchanged.
    const REFUSED: c_int = -1;
    /// `IBV_REREG_MR_ERR_CMD`: the region is unchanged, but by the manual it should not be used.
    const FAILED: c_int = -4;
    if what & !(TRANSLATION | DOMAIN | ACCESS) != 0
        || what == 0
        || (what & DOMAIN != 0 && pd.is_none())
        || (what & TRANSLATION != 0 && (length == 0 || addr.is_null()))
        || (what & ACCESS != 0 && flags as c_uint & !flag::KNOWN != 0)
    {
        error::set(libc::EINVAL);
        return REFUSED;
    }
    let adapter = Borrowed::of(&*region).domain().adapter;
    let domain = pd.filter(|_| what & DOMAIN != 0);
    let Ok(Some(mut wanted)) = adapter.command(|rnic, _| rnic.region(region.lkey)) else {
        error::set(libc::EINVAL);
        return REFUSED;
    };
    if what & TRANSLATION != 0 {
        wanted.start = addr.expose_provenance() as u64;
        wanted.address = wanted.start;
        wanted.length = length as u64;
    }
    if let Some(domain) = domain {
        wanted.pd = domain.id;
    }
    if what & ACCESS != 0 {
        wanted.access = access(flags as c_uint);
    }
    if !can_be_flushed(adapter, &wanted) {
        error::set(libc::EINVAL);
        return REFUSED;
    }
    // SAFETY: as the caller promises.
    if let Err(refusal) = unsafe { adapter.rereg_mr(region.lkey, wanted) } {
        error::set(error::of(refusal));
        return FAILED;
    }
    if what & TRANSLATION != 0 {
        region.addr = addr;
        region.length = length;
    }
    if let Some(domain) = domain {
        region.pd = domain.as_c();
    }
    0
}

/// Prefetches memory: its pages are made present. Prefetching without page faults only checks the regions.
///
/// # Safety
/// The list has `count` elements, or is null.
pub(crate) unsafe extern "C" fn advise_mr(
    inner: Borrowed<'_, Pd>,
    advice: c_int,
    flags: u32,
    list: *mut ibv_sge,
    count: u32,
) -> c_int {
    const PREFETCH: c_int = 0;
    const PREFETCH_WRITE: c_int = 1;
    const PREFETCH_NO_FAULT: c_int = 2;
    /// `IBV_ADVISE_MR_FLAG_FLUSH`: returns only when the pages are present, which is always so here.
    const FLUSH: u32 = 1;
    let is_known = matches!(advice, PREFETCH | PREFETCH_WRITE | PREFETCH_NO_FAULT) && flags & !FLUSH == 0;
    if !is_known {
        return libc::EOPNOTSUPP;
    }
    // SAFETY: as the caller promises.
    let pieces = unsafe { elements(list, count as usize) }.filter(|pieces| !pieces.is_empty() && !list.is_null());
    let Some(pieces) = pieces else { return libc::EINVAL };
    let outcome = post::list(pieces).into_iter().try_for_each(|piece| match advice {
        PREFETCH_NO_FAULT => inner.adapter.prefetch(inner.id, Sge { length: 0, ..piece }, false),
        _ => inner.adapter.prefetch(inner.id, piece, advice == PREFETCH_WRITE),
    });
    error::code(outcome)
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_dereg_mr(mr: Given<Mr>) -> c_int {
    let adapter = Borrowed::of(&mr.abi).domain().adapter;
    let code = error::code_of(adapter.command(|rnic, _| rnic.dereg_mr(mr.abi.lkey)));
    if code == 0 {
        mr.free();
    }
    code
}

/// Does nothing before a fork: the child does not share its memory with any hardware.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_fork_init() -> c_int {
    0
}
/// Returns `IBV_FORK_UNNEEDED`.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_is_fork_initialized() -> c_int {
    2
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_dontfork_range(_: *mut c_void, _: usize) -> c_int {
    0
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_dofork_range(_: *mut c_void, _: usize) -> c_int {
    0
}

const _: () = assert!(size_of::<*mut c_void>() == 8, "addresses of 64 bits");
