//! What must be there and is not supported: enhanced connections, sockets over RDMA. `rpoll` waits for any
//! descriptors, so it does.

use std::ffi::{c_int, c_void};

use super::abi::rdma_cm_id;
use super::event::fail;

#[unsafe(export_name = "selvedge_rdma_set_local_ece")]
pub extern "C" fn set_local_ece(_: *mut rdma_cm_id, _: *mut c_void) -> c_int {
    fail(libc::EOPNOTSUPP)
}
#[unsafe(export_name = "selvedge_rdma_get_remote_ece")]
pub extern "C" fn get_remote_ece(_: *mut rdma_cm_id, _: *mut c_void) -> c_int {
    fail(libc::EOPNOTSUPP)
}

/// Sockets over RDMA: none can be made, so no other function of theirs is ever called in earnest.
#[unsafe(export_name = "selvedge_rsocket_unsupported")]
pub extern "C" fn unsupported() -> isize {
    fail(libc::EOPNOTSUPP) as isize
}

#[unsafe(export_name = "selvedge_rpoll")]
pub unsafe extern "C" fn rpoll(descriptors: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int {
    unsafe { libc::poll(descriptors, count, timeout) }
}
