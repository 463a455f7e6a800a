//! Memory windows.

use std::ffi::{c_int, c_uint};

use selvedge_nic::verbs::{Bind, Data, Operation, SendRequest, WindowId, WindowKind};

use crate::abi::{ibv_mw, ibv_mw_bind, ibv_mw_bind_info, ibv_pd, ibv_qp};
use crate::context::Context;
use crate::error;
use crate::limits::{Held, Kind};
use crate::memory::{self, Pd};
use crate::pair::Qp;
use crate::post::flag;

/// Types of `enum ibv_mw_type`.
mod kind {
    pub(super) const TYPE_1: i32 = 1;
    pub(super) const TYPE_2: i32 = 2;
}

/// A memory window: C's structure, and its share of the NIC's limit.
#[repr(C)]
struct Window {
    abi: ibv_mw,
    _held: Held,
}

pub(crate) unsafe extern "C" fn alloc_mw(pd: *mut ibv_pd, wanted: c_int) -> *mut ibv_mw {
    let kind = match wanted {
        kind::TYPE_1 => WindowKind::Type1,
        kind::TYPE_2 => WindowKind::Type2,
        _ => return error::null(libc::EINVAL),
    };
    let (context, domain) = unsafe { ((*pd).context, Pd::of(pd)) };
    let held = match Held::take(Kind::Window, &unsafe { Context::of(context) }.profile) {
        Ok(held) => held,
        Err(errno) => return error::null(errno),
    };
    match domain.adapter.alloc_mw(domain.id, kind) {
        Ok((id, rkey)) => {
            let abi = ibv_mw { context, pd, rkey, handle: id.0, type_: wanted };
            Box::into_raw(Box::new(Window { abi, _held: held })).cast()
        }
        Err(refusal) => error::null(error::of(refusal)),
    }
}

pub(crate) unsafe extern "C" fn dealloc_mw(mw: *mut ibv_mw) -> c_int {
    let (pd, window) = unsafe { ((*mw).pd, WindowId((*mw).handle)) };
    let adapter = unsafe { Pd::of(pd) }.adapter;
    let code = error::code_of(adapter.command(|rnic, _| rnic.dealloc_mw(window)));
    if code == 0 {
        drop(unsafe { Box::from_raw(mw.cast::<Window>()) });
    }
    code
}

/// Posts a request that binds a window of type 1. Such a request is not part of a list, and changes the window's key as
/// soon as it is posted.
pub(crate) unsafe extern "C" fn bind_mw(qp: *mut ibv_qp, mw: *mut ibv_mw, bind: *mut ibv_mw_bind) -> c_int {
    let (wanted, inner) = unsafe { (&*bind, Qp::of(qp)) };
    let key = next_key(unsafe { (*mw).rkey });
    let operation = match unsafe { operation(mw, kind::TYPE_1, key, &wanted.bind_info) } {
        Ok(operation) => operation,
        Err(errno) => return errno,
    };
    let request = SendRequest {
        id: wanted.wr_id,
        operation,
        data: Data::Gather(Vec::new()),
        signaled: wanted.send_flags & flag::SIGNALED != 0,
        solicited: false,
        fence: wanted.send_flags & flag::FENCE != 0,
        destination: None,
    };
    let code =
        error::code_of(inner.adapter.post_send(inner.number, |rnic, cx| rnic.post_send(cx, inner.number, request)));
    if code == 0 {
        unsafe { (*mw).rkey = key };
    }
    code
}

/// Returns the window's next key, like `ibv_inc_rkey`: the low 8 bits are incremented.
const fn next_key(key: u32) -> u32 {
    key & !0xff | key.wrapping_add(1) & 0xff
}

/// Returns the operation that binds a window of type 2.
pub(crate) unsafe fn bind_type_2(mw: *mut ibv_mw, key: u32, info: &ibv_mw_bind_info) -> Result<Operation, c_int> {
    unsafe { operation(mw, kind::TYPE_2, key, info) }
}

unsafe fn operation(mw: *mut ibv_mw, kind: c_int, key: u32, info: &ibv_mw_bind_info) -> Result<Operation, c_int> {
    // SAFETY: from us, or null.
    let (window, region) = unsafe { (mw.as_ref(), info.mr.as_ref()) };
    let window = window.filter(|window| window.type_ == kind).ok_or(libc::EINVAL)?;
    if (region.is_none() && info.length != 0) || !memory::opens_windows(info.mw_access_flags) {
        return Err(libc::EINVAL);
    }
    if region.is_some_and(|region| unsafe { Pd::of(region.pd).id != Pd::of(window.pd).id }) {
        return Err(libc::EPERM);
    }
    let flags: c_uint = info.mw_access_flags;
    Ok(Operation::Bind(Bind {
        window: WindowId(window.handle),
        key,
        region: region.map_or(0, |region| region.lkey),
        address: info.addr,
        length: info.length,
        access: memory::access(flags),
        zero_based: memory::is_zero_based(flags),
    }))
}
