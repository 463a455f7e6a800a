//! Memory accesses without a guard, for processors without a guard implementation: a fault kills the process.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use selvedge_nic::verbs::Fault;

pub(in super::super) const IS_GUARDED: bool = false;

/// Does nothing: there are no handlers to install.
pub(in super::super) fn install() {}

pub(super) unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> Result<(), Fault> {
    // SAFETY: the caller's.
    unsafe { std::ptr::copy(from, to, length) };
    Ok(())
}

pub(super) unsafe fn touch(at: *mut u8) -> Result<(), Fault> {
    // SAFETY: the caller's.
    unsafe { AtomicU8::from_ptr(at) }.fetch_add(0, Ordering::Relaxed);
    Ok(())
}

pub(super) unsafe fn fetch_add(at: *mut u64, add: u64) -> Result<u64, Fault> {
    // SAFETY: the caller's.
    Ok(unsafe { AtomicU64::from_ptr(at) }.fetch_add(add, Ordering::SeqCst))
}

pub(super) unsafe fn compare_swap(at: *mut u64, compare: u64, swap: u64) -> Result<u64, Fault> {
    // SAFETY: the caller's.
    let word = unsafe { AtomicU64::from_ptr(at) };
    Ok(word.compare_exchange(compare, swap, Ordering::SeqCst, Ordering::SeqCst).unwrap_or_else(|found| found))
}
