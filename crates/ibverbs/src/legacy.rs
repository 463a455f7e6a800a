//! Functions that must be there and have nothing to do here: enhanced connections, structures of the
//! kernel's, and what drivers for real hardware import.

use std::ffi::{c_int, c_void};
use std::ptr;

use crate::abi::{ibv_ah_attr, ibv_context, ibv_ece, ibv_qp};

#[unsafe(no_mangle)]
pub extern "C" fn ibv_set_ece(_: *mut ibv_qp, _: *mut ibv_ece) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_query_ece(_: *mut ibv_qp, ece: *mut ibv_ece) -> c_int {
    unsafe { *ece = ibv_ece { vendor_id: 0, options: 0, comp_mask: 0 } };
    libc::EOPNOTSUPP
}
/// The kernel knows the neighbours' hardware addresses, and uses them itself.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_resolve_eth_l2_from_gid(
    _: *mut ibv_context,
    _: *mut ibv_ah_attr,
    _: *mut u8,
    _: *mut u16,
) -> c_int {
    libc::EOPNOTSUPP
}

/// There is no kernel whose structures could need translation.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_ah_attr_from_kern(_: *mut c_void, _: *mut c_void) {}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_qp_attr_from_kern(_: *mut c_void, _: *mut c_void) {}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_path_rec_from_kern(_: *mut c_void, _: *mut c_void) {}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_copy_path_rec_to_kern(_: *mut c_void, _: *mut c_void) {}

/// What drivers import and nobody calls, because no driver is ever asked for a device.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_unsupported() -> c_int {
    crate::error::set(libc::ENOSYS);
    libc::ENOSYS
}
/// As above, of those that return a pointer.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_unsupported_pointer() -> *mut c_void {
    crate::error::set(libc::ENOSYS);
    ptr::null_mut()
}
/// A driver is announced, by itself, when it is loaded: nobody is interested.
#[unsafe(no_mangle)]
pub extern "C" fn selvedge_ignored() {}

/// A variable that drivers import.
#[unsafe(no_mangle)]
pub static selvedge_flag: u8 = 0;
