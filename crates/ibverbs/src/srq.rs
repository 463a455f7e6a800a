//! Shared receive queues.

use std::ffi::c_int;
use std::ptr;

use selvedge_dataplane::rnic::Adapter;
use selvedge_nic::verbs::{SrqAttributes, SrqId};

use crate::abi::{ibv_context, ibv_srq, ibv_srq_attr, ibv_srq_init_attr, ibv_srq_init_attr_ex};
use crate::borrowed::{Borrowed, Given, Link, Out, Shared, zeroed};
use crate::channel::Unacknowledged;
use crate::error;
use crate::limits::{self, Held, ObjectKind};
use crate::memory::Pd;

/// A shared receive queue: C's structure, followed by this library's fields.
#[repr(C)]
pub struct Srq {
    abi: Shared<ibv_srq>,
    domain: Link<Pd>,
    pub(crate) id: SrqId,
    pub(crate) adapter: &'static Adapter,
    pub(crate) unacknowledged: Unacknowledged,
    _held: Held,
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_srq(
    domain: Borrowed<'_, Pd>,
    wanted: Borrowed<'_, ibv_srq_init_attr>,
) -> Option<Given<Srq>> {
    let context = domain.context();
    let profile = &context.profile;
    let allowed = Held::take(ObjectKind::SharedQueue, profile).and_then(|held| {
        limits::check(wanted.attr.max_wr, profile.max_srq_wr, "max_srq_wr")?;
        limits::check(wanted.attr.max_sge, profile.max_sge, "max_sge")?;
        Ok(held)
    });
    let held = match allowed {
        Ok(held) => held,
        Err(errno) => return error::none(errno),
    };
    let mut abi: ibv_srq = zeroed();
    abi.context = domain.abi.context;
    abi.srq_context = wanted.srq_context;
    abi.pd = domain.as_c();
    abi.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    abi.cond = libc::PTHREAD_COND_INITIALIZER;
    let adapter = domain.adapter;
    let mut srq = Box::new(Srq {
        abi: Shared::new(abi),
        // SAFETY: programs deallocate a domain after its queues.
        domain: unsafe { Link::to(domain) },
        id: SrqId(0),
        adapter,
        unacknowledged: Unacknowledged::default(),
        _held: held,
    });
    // The limit is not set at creation, but by modification.
    let attributes = SrqAttributes { requests: wanted.attr.max_wr, pieces: wanted.attr.max_sge, limit: 0 };
    let owner = context.owner(ptr::from_ref(&*srq), None);
    match adapter.create_srq(domain.id, attributes, owner) {
        Ok(id) => {
            srq.id = id;
            srq.abi.get_mut().handle = id.0;
            Some(srq.into())
        }
        Err(refusal) => error::none(error::of(refusal)),
    }
}

/// Creates a shared receive queue of the basic kind only: no extended connections, no tag matching.
pub(crate) extern "C" fn create_srq_ex(
    _: *mut ibv_context,
    all: Borrowed<'_, ibv_srq_init_attr_ex>,
) -> Option<Given<Srq>> {
    const KIND: u32 = 1;
    const DOMAIN: u32 = 1 << 1;
    const BASIC: c_int = 0;
    if all.comp_mask & !(KIND | DOMAIN) != 0 || (all.comp_mask & KIND != 0 && all.srq_type != BASIC) {
        return error::none(libc::EOPNOTSUPP);
    }
    let pd = if all.comp_mask & DOMAIN != 0 { all.pd } else { ptr::null_mut() };
    // SAFETY: a domain of this library's, or null.
    let Some(domain) = (unsafe { Borrowed::new(pd.cast::<Pd>()) }) else { return error::none(libc::EINVAL) };
    ibv_create_srq(domain, Borrowed::of(&ibv_srq_init_attr { srq_context: all.srq_context, attr: all.attr }))
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_modify_srq(srq: Borrowed<'_, Srq>, wanted: Borrowed<'_, ibv_srq_attr>, mask: c_int) -> c_int {
    const REQUESTS: c_int = 1;
    const LIMIT: c_int = 1 << 1;
    if mask & !(REQUESTS | LIMIT) != 0 {
        return libc::EINVAL;
    }
    let domain = srq.domain.get();
    let requests = (mask & REQUESTS != 0).then_some(wanted.max_wr);
    if let Err(errno) = limits::check(requests.unwrap_or(0), domain.context().profile.max_srq_wr, "max_srq_wr") {
        return errno;
    }
    let limit = (mask & LIMIT != 0).then_some(wanted.srq_limit);
    error::code_of(srq.adapter.command(|rnic, _| rnic.modify_srq(srq.id, requests, limit)))
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_srq(srq: Borrowed<'_, Srq>, mut to: Out<'_, ibv_srq_attr>) -> c_int {
    match srq.adapter.command(|rnic, _| rnic.query_srq(srq.id)) {
        Ok(Some(found)) => {
            to.write(ibv_srq_attr { max_wr: found.requests, max_sge: found.pieces, srq_limit: found.limit });
            0
        }
        Ok(None) => libc::EINVAL,
        Err(refusal) => error::of(refusal),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_destroy_srq(srq: Given<Srq>) -> c_int {
    let code = error::code(srq.adapter.destroy_srq(srq.id));
    if code == 0 {
        srq.unacknowledged.wait();
        srq.free();
    }
    code
}
