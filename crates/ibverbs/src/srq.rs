//! Shared receive queues.

use std::ffi::c_int;
use std::ptr;

use selvedge_dataplane::rnic::Adapter;
use selvedge_nic::verbs::{SrqAttributes, SrqId};

use crate::abi::{ibv_context, ibv_pd, ibv_srq, ibv_srq_attr, ibv_srq_init_attr, ibv_srq_init_attr_ex};
use crate::channel::Unacknowledged;
use crate::context::Context;
use crate::error;
use crate::limits::{self, Held, Kind};
use crate::memory::Pd;

/// A shared receive queue: C's structure, followed by this library's fields.
#[repr(C)]
pub(crate) struct Srq {
    abi: ibv_srq,
    pub(crate) id: SrqId,
    pub(crate) adapter: &'static Adapter,
    pub(crate) unacknowledged: Unacknowledged,
    _held: Held,
}

impl Srq {
    /// Returns the shared receive queue at C's pointer.
    ///
    /// # Safety
    /// `srq` is from this library.
    pub(crate) unsafe fn of<'a>(srq: *mut ibv_srq) -> &'a Self {
        // SAFETY: the caller's.
        unsafe { &*srq.cast::<Self>() }
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_create_srq(pd: *mut ibv_pd, wanted: *mut ibv_srq_init_attr) -> *mut ibv_srq {
    let (context, domain, wanted) = unsafe { ((*pd).context, Pd::of(pd), &mut *wanted) };
    let profile = &unsafe { Context::of(context) }.profile;
    let allowed = Held::take(Kind::SharedQueue, profile).and_then(|held| {
        limits::check(wanted.attr.max_wr, profile.max_srq_wr, "max_srq_wr")?;
        limits::check(wanted.attr.max_sge, profile.max_sge, "max_sge")?;
        Ok(held)
    });
    let held = match allowed {
        Ok(held) => held,
        Err(errno) => return error::null(errno),
    };
    // SAFETY: zeros are null pointers and numbers.
    let mut abi: ibv_srq = unsafe { std::mem::zeroed() };
    abi.context = context;
    abi.srq_context = wanted.srq_context;
    abi.pd = pd;
    abi.mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    abi.cond = libc::PTHREAD_COND_INITIALIZER;
    let adapter = domain.adapter;
    let mut srq = Box::new(Srq { abi, id: SrqId(0), adapter, unacknowledged: Unacknowledged::default(), _held: held });
    // The limit is not set at creation, but by modification.
    let attributes = SrqAttributes { requests: wanted.attr.max_wr, pieces: wanted.attr.max_sge, limit: 0 };
    let owner = unsafe { Context::of(context) }.owner(ptr::from_ref(&*srq), None);
    match adapter.create_srq(domain.id, attributes, owner) {
        Ok(id) => {
            srq.id = id;
            srq.abi.handle = id.0;
            Box::into_raw(srq).cast()
        }
        Err(refusal) => error::null(error::of(refusal)),
    }
}

/// Creates a shared receive queue of the basic kind only: no extended connections, no tag matching.
pub(crate) unsafe extern "C" fn create_srq_ex(_: *mut ibv_context, wanted: *mut ibv_srq_init_attr_ex) -> *mut ibv_srq {
    const KIND: u32 = 1;
    const DOMAIN: u32 = 1 << 1;
    const BASIC: c_int = 0;
    let all = unsafe { &mut *wanted };
    if all.comp_mask & !(KIND | DOMAIN) != 0 || (all.comp_mask & KIND != 0 && all.srq_type != BASIC) {
        return error::null(libc::EOPNOTSUPP);
    }
    if all.comp_mask & DOMAIN == 0 || all.pd.is_null() {
        return error::null(libc::EINVAL);
    }
    let mut plain = ibv_srq_init_attr { srq_context: all.srq_context, attr: all.attr };
    unsafe { ibv_create_srq(all.pd, &raw mut plain) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_modify_srq(srq: *mut ibv_srq, wanted: *mut ibv_srq_attr, mask: c_int) -> c_int {
    const REQUESTS: c_int = 1;
    const LIMIT: c_int = 1 << 1;
    if mask & !(REQUESTS | LIMIT) != 0 {
        return libc::EINVAL;
    }
    let (context, srq, wanted) = unsafe { (Context::of((*srq).context), Srq::of(srq), &*wanted) };
    let requests = (mask & REQUESTS != 0).then_some(wanted.max_wr);
    if let Err(errno) = limits::check(requests.unwrap_or(0), context.profile.max_srq_wr, "max_srq_wr") {
        return errno;
    }
    let limit = (mask & LIMIT != 0).then_some(wanted.srq_limit);
    error::code_of(srq.adapter.command(|rnic, _| rnic.modify_srq(srq.id, requests, limit)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_srq(srq: *mut ibv_srq, to: *mut ibv_srq_attr) -> c_int {
    let srq = unsafe { Srq::of(srq) };
    match srq.adapter.command(|rnic, _| rnic.query_srq(srq.id)) {
        Ok(Some(found)) => {
            let found = ibv_srq_attr { max_wr: found.requests, max_sge: found.pieces, srq_limit: found.limit };
            unsafe { *to = found };
            0
        }
        Ok(None) => libc::EINVAL,
        Err(refusal) => error::of(refusal),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_destroy_srq(srq: *mut ibv_srq) -> c_int {
    let inner = unsafe { Srq::of(srq) };
    let code = error::code(inner.adapter.destroy_srq(inner.id));
    if code == 0 {
        inner.unacknowledged.wait();
        drop(unsafe { Box::from_raw(srq.cast::<Srq>()) });
    }
    code
}
