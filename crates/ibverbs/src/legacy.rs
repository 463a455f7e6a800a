//! Exported functions without effect: enhanced connections, conversions of kernel structures, and functions that
//! drivers for real hardware import.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::abi::{ibv_ah_attr, ibv_context, ibv_ece, ibv_qp};
use crate::borrowed::Out;

#[unsafe(no_mangle)]
pub extern "C" fn ibv_set_ece(_: *mut ibv_qp, _: *mut ibv_ece) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_ece(_: *mut ibv_qp, mut ece: Out<'_, ibv_ece>) -> c_int {
    ece.write(ibv_ece { vendor_id: 0, options: 0, comp_mask: 0 });
    libc::EOPNOTSUPP
}
/// Does nothing: the kernel knows the neighbours' hardware addresses, and uses them itself.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_resolve_eth_l2_from_gid(
    _: *mut ibv_context,
    _: *mut ibv_ah_attr,
    _: *mut u8,
    _: *mut u16,
) -> c_int {
    libc::EOPNOTSUPP
}

/// Does nothing: there are no kernel structures to translate.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_ah_attr_from_kern(_: *mut c_void, _: *mut c_void) {}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_qp_attr_from_kern(_: *mut c_void, _: *mut c_void) {}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_path_rec_from_kern(_: *mut c_void, _: *mut c_void) {}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_path_rec_to_kern(_: *mut c_void, _: *mut c_void) {}

/// Fails with `ENOSYS`: the target of functions that drivers import, but never call, because no driver is asked for a
/// device.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_unsupported() -> c_int {
    crate::error::set(libc::ENOSYS);
    libc::ENOSYS
}
/// Fails with `ENOSYS` and returns null: the target of imports that return a pointer.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_unsupported_pointer() -> *mut c_void {
    crate::error::set(libc::ENOSYS);
    ptr::null_mut()
}
/// Ignores a driver, which registers itself when it is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_ignored() {}

/// Variable that drivers import.
#[unsafe(no_mangle)]
pub static selvedge_flag: u8 = 0;
