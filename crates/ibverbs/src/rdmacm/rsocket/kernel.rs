//! The kernel's `epoll`, for this library alone. Later versions of rdma-core's `librspreload.so` replace the C
//! library's functions by sets of [`super::repoll`], which in turn use the kernel's: without this module, the calls
//! would recurse without end.
//!
//! The library exports none of these names, so that its own calls reach the functions here.

use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn epoll_create1(flags: c_int) -> c_int {
    // SAFETY: the kernel refuses flags that it does not know.
    unsafe { libc::syscall(libc::SYS_epoll_create1, flags) as c_int }
}

/// Calls the kernel's `epoll_ctl`.
///
/// # Safety
/// `event` is null, or an event.
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_ctl(set: c_int, operation: c_int, fd: c_int, event: *mut libc::epoll_event) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { libc::syscall(libc::SYS_epoll_ctl, set, operation, fd, event) as c_int }
}

/// Calls the kernel's `epoll_wait`.
///
/// # Safety
/// `to` has room for `most` events.
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(set: c_int, to: *mut libc::epoll_event, most: c_int, timeout_ms: c_int) -> c_int {
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: as the caller promises; of these two calls every architecture has the second.
    unsafe { libc::syscall(libc::SYS_epoll_pwait, set, to, most, timeout_ms, no_mask, 8_usize) as c_int }
}
