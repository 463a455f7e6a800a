//! Functions of rdma-core 59 and later, in the symbol versions 1.15 to 1.18: memory regions by many attributes,
//! buffers, the speed of ports; and what this NIC does not support: handles for a processor's caches, counters instead
//! of completions.

#![allow(non_camel_case_types, missing_docs, reason = "the names are C's, and what they mean is in verbs.h")]

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use crate::abi::ibv_context;
use crate::borrowed::{Borrowed, Given, Out, Zeroable, zeroed};
use crate::error;
use crate::memory::{Mr, Pd, ibv_reg_mr_iova2};

/// C's structure `struct ibv_mr_init_attr`.
#[repr(C)]
pub struct ibv_mr_init_attr {
    length: usize,
    access: c_int,
    comp_mask: u64,
    iova: u64,
    addr: *mut c_void,
    fd: c_int,
    fd_offset: u64,
    dmah: *mut c_void,
    buf: *const ibv_buf,
}

// SAFETY: numbers and null pointers.
unsafe impl Zeroable for ibv_mr_init_attr {}

/// Bits of `comp_mask` in `struct ibv_mr_init_attr`.
mod given {
    pub(super) const IOVA: u64 = 1 << 0;
    pub(super) const ADDR: u64 = 1 << 1;
    pub(super) const BUF: u64 = 1 << 5;
}

/// Registers memory by attributes.
///
/// # Safety
/// The memory is the program's to share with its peers, until it deregisters the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_mr_ex(
    pd: Borrowed<'_, Pd>,
    wanted: Borrowed<'_, ibv_mr_init_attr>,
) -> Option<Given<Mr>> {
    let has = |what: u64| wanted.comp_mask & what != 0;
    if wanted.comp_mask & !(given::IOVA | given::ADDR | given::BUF) != 0 {
        return error::none(libc::EOPNOTSUPP);
    }
    // SAFETY: a buffer from `ibv_alloc_buf`, or null.
    let fits = || unsafe { wanted.buf.as_ref() }.is_some_and(|buffer| buffer.has(pd, wanted.addr, wanted.length));
    if !has(given::ADDR) || (has(given::BUF) && !fits()) {
        return error::none(libc::EINVAL);
    }
    let iova = if has(given::IOVA) { wanted.iova } else { wanted.addr as u64 };
    // SAFETY: as the caller promises.
    unsafe { ibv_reg_mr_iova2(pd, wanted.addr, wanted.length, iova, wanted.access as c_uint) }
}

/// A buffer, behind C's opaque handle.
pub struct ibv_buf {
    address: *mut c_void,
    size: usize,
    /// The buffer's protection domain: no other may register it.
    pd: *mut Pd,
}

impl ibv_buf {
    fn has(&self, pd: Borrowed<'_, Pd>, addr: *mut c_void, length: usize) -> bool {
        let offset = addr.addr().checked_sub(self.address.addr());
        let end = offset.and_then(|offset| offset.checked_add(length));
        self.pd == pd.as_ptr() && end.is_some_and(|end| end <= self.size)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_alloc_buf(pd: *mut Pd, size: usize, mut handle: Out<'_, Given<ibv_buf>>) -> *mut c_void {
    const PAGE: usize = 4_096;
    let mut address = ptr::null_mut();
    // SAFETY: there is room for the address, and the alignment is a power of two.
    match unsafe { libc::posix_memalign(&raw mut address, PAGE, size.max(1)) } {
        0 => {
            handle.write(Given::new(ibv_buf { address, size, pd }));
            address
        }
        errno => error::null(errno),
    }
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_free_buf(handle: Given<ibv_buf>) {
    // SAFETY: the memory is from `posix_memalign`, and by the contract of `Given` nobody uses it.
    unsafe { libc::free(handle.address) };
    handle.free();
}
/// Registers a part of a buffer.
///
/// # Safety
/// The memory is the program's to share with its peers, until it deregisters the region.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ibv_reg_buf_mr(
    pd: Borrowed<'_, Pd>,
    buf: *mut ibv_buf,
    addr: *mut c_void,
    length: usize,
    access: c_int,
) -> Option<Given<Mr>> {
    let mut wanted: ibv_mr_init_attr = zeroed();
    wanted.comp_mask = given::ADDR | given::BUF;
    (wanted.length, wanted.access, wanted.addr, wanted.buf) = (length, access, addr, buf);
    // SAFETY: as the caller promises.
    unsafe { ibv_reg_mr_ex(pd, Borrowed::of(&wanted)) }
}
/// Fails: ordinary memory cannot be shared by a DMA-BUF descriptor.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_export_buf_dmabuf_fd(_: *mut ibv_buf) -> c_int {
    error::set(libc::ENODATA);
    -1
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_dm_export_dmabuf_fd(_: *mut c_void) -> c_int {
    error::set(libc::EOPNOTSUPP);
    -1
}

/// Stores the port's speed in units of 100 Mb/s.
#[unsafe(no_mangle)]
pub extern "C" fn ibv_query_port_speed(
    context: Borrowed<'_, ibv_context>,
    port: u32,
    mut speed: Out<'_, u64>,
) -> c_int {
    if port != 1 {
        return libc::EINVAL;
    }
    match context.whole().device().speed {
        Some(mbps) => {
            speed.write(u64::from(mbps) / 100);
            0
        }
        None => libc::EOPNOTSUPP,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn ibv_alloc_dmah(_: *mut ibv_context, _: *mut c_void) -> *mut c_void {
    error::null(libc::EOPNOTSUPP)
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_dealloc_dmah(_: *mut c_void) -> c_int {
    libc::EOPNOTSUPP
}

#[unsafe(no_mangle)]
pub extern "C" fn _ibv_query_comp_cntr_caps(_: *mut ibv_context, _: *mut c_void, _: usize) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_create_comp_cntr(_: *mut ibv_context, _: *mut c_void) -> *mut c_void {
    error::null(libc::EOPNOTSUPP)
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_destroy_comp_cntr(_: *mut c_void) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_set_comp_cntr(_: *mut c_void, _: u64) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_set_err_comp_cntr(_: *mut c_void, _: u64) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_inc_comp_cntr(_: *mut c_void, _: u64) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_inc_err_comp_cntr(_: *mut c_void, _: u64) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_read_comp_cntr(_: *mut c_void, _: *mut u64) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_read_err_comp_cntr(_: *mut c_void, _: *mut u64) -> c_int {
    libc::EOPNOTSUPP
}
#[unsafe(no_mangle)]
pub extern "C" fn ibv_qp_attach_comp_cntr(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    libc::EOPNOTSUPP
}
