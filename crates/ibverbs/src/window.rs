//! Memory windows.

use std::ffi::{c_int, c_uint};

use selvedge_nic::verbs::{Bind, Data, Operation, SendRequest, WindowId, WindowKind};

use crate::abi::{ibv_mw, ibv_mw_bind, ibv_mw_bind_info};
use crate::borrowed::{Borrowed, Given, Link, Shared, load, store};
use crate::error;
use crate::limits::{Held, ObjectKind};
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
pub struct Window {
    abi: Shared<ibv_mw>,
    domain: Link<Pd>,
    _held: Held,
}

pub(crate) extern "C" fn alloc_mw(domain: Borrowed<'_, Pd>, wanted: c_int) -> Option<Given<Window>> {
    let kind = match wanted {
        kind::TYPE_1 => WindowKind::Type1,
        kind::TYPE_2 => WindowKind::Type2,
        _ => return error::none(libc::EINVAL),
    };
    let held = match Held::take(ObjectKind::Window, &domain.context().profile) {
        Ok(held) => held,
        Err(errno) => return error::none(errno),
    };
    match domain.adapter.alloc_mw(domain.id, kind) {
        Ok((id, rkey)) => {
            let (context, pd) = (domain.abi.context, domain.as_c());
            let abi = Shared::new(ibv_mw { context, pd, rkey, handle: id.0, type_: wanted });
            // SAFETY: programs deallocate a domain after its windows.
            let domain = unsafe { Link::to(domain) };
            Some(Given::new(Window { abi, domain, _held: held }))
        }
        Err(refusal) => error::none(error::of(refusal)),
    }
}

pub(crate) extern "C" fn dealloc_mw(mw: Given<Window>) -> c_int {
    let (adapter, window) = (mw.domain.get().adapter, WindowId(load!(mw.abi, handle)));
    let code = error::code_of(adapter.command(|rnic, _| rnic.dealloc_mw(window)));
    if code == 0 {
        mw.free();
    }
    code
}

/// Posts a request that binds a window of type 1. Such a request is not part of a list, and changes the window's key as
/// soon as it is posted.
pub(crate) extern "C" fn bind_mw(
    inner: Borrowed<'_, Qp>,
    mw: Borrowed<'_, Window>,
    wanted: Borrowed<'_, ibv_mw_bind>,
) -> c_int {
    let key = next_key(load!(mw.abi, rkey));
    let operation = match operation(Some(mw), kind::TYPE_1, key, &wanted.bind_info) {
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
        store!(mw.abi, rkey = key);
    }
    code
}

/// Returns the window's next key, like `ibv_inc_rkey`: the low 8 bits are incremented.
const fn next_key(key: u32) -> u32 {
    key & !0xff | key.wrapping_add(1) & 0xff
}

/// Returns the operation that binds a window of type 2.
pub(crate) fn bind_type_2(
    window: Option<Borrowed<'_, Window>>,
    key: u32,
    info: &ibv_mw_bind_info,
) -> Result<Operation, c_int> {
    operation(window, kind::TYPE_2, key, info)
}

fn operation(
    window: Option<Borrowed<'_, Window>>,
    kind: c_int,
    key: u32,
    info: &ibv_mw_bind_info,
) -> Result<Operation, c_int> {
    // SAFETY: a region of this library's, or null.
    let region = unsafe { Borrowed::new(info.mr) };
    let window = window.filter(|window| load!(window.abi, type_) == kind).ok_or(libc::EINVAL)?;
    if (region.is_none() && info.length != 0) || !memory::opens_windows(info.mw_access_flags) {
        return Err(libc::EINVAL);
    }
    if region.is_some_and(|region| region.domain().id != window.domain.get().id) {
        return Err(libc::EPERM);
    }
    let flags: c_uint = info.mw_access_flags;
    Ok(Operation::Bind(Bind {
        window: WindowId(load!(window.abi, handle)),
        key,
        region: region.map_or(0, |region| region.lkey),
        address: info.addr,
        length: info.length,
        access: memory::access(flags),
        zero_based: memory::is_zero_based(flags),
    }))
}
