//! Functions of enhanced connection establishment, which programs link with and which is not supported.

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
