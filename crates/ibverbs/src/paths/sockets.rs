//! Socket calls that rdma-core's `librspreload.so` leaves out. That library gives programs sockets over RDMA in place
//! of TCP's.
//!
//! Programs know such a socket by the number of a placeholder descriptor, and `librspreload.so` replaces the calls that
//! take it. The library of rdma-core 44 has no `accept4`, and no version has `ioctl`: the kernel gets the placeholder
//! then. Python uses both, to accept and to set timeouts. So calls that fail for that reason are repeated as calls that
//! `librspreload.so` knows.

use std::ffi::{CStr, c_int, c_ulong, c_void};
use std::mem;

use libc::{sockaddr, socklen_t};

use super::real;
use crate::borrowed::Passed;
use crate::error;

type Accept = extern "C" fn(c_int, Passed<sockaddr>, Passed<socklen_t>) -> c_int;
type Accept4 = extern "C" fn(c_int, Passed<sockaddr>, Passed<socklen_t>, c_int) -> c_int;
type Control = unsafe extern "C" fn(c_int, c_int, ...) -> c_int;
type DeviceControl = extern "C" fn(c_int, c_ulong, Passed<c_void>) -> c_int;

/// Returns the function of this name that programs call, if it is not the C library's.
fn preloaded(name: &CStr, of_c: *mut c_void) -> Option<*mut c_void> {
    // SAFETY: the name is a C string; nothing is called.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null() && found != of_c).then_some(found)
}

/// Returns `fcntl` of a library that is loaded before the C library, if there is one.
fn preloaded_control() -> Option<Control> {
    let of_c = real!(c"fcntl", Control) as *mut c_void;
    // SAFETY: a library that replaces the function has its type.
    preloaded(c"fcntl", of_c).map(|found| unsafe { mem::transmute::<*mut c_void, Control>(found) })
}

#[unsafe(export_name = "selvedge_path_accept4")]
pub extern "C" fn accept4(socket: c_int, to: Passed<sockaddr>, length: Passed<socklen_t>, flags: c_int) -> c_int {
    let (real4, real_control) = (real!(c"accept4", Accept4), real!(c"fcntl", Control));
    let found = real4(socket, to, length, flags);
    if found >= 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ENOTSOCK) {
        return found;
    }
    let of_c = real!(c"accept", Accept) as *mut c_void;
    let (Some(accept), Some(control)) = (preloaded(c"accept", of_c), preloaded_control()) else {
        error::set(libc::ENOTSOCK);
        return -1;
    };
    // SAFETY: a library that replaces `accept` has its type; `fcntl` takes numbers only.
    unsafe {
        let found = mem::transmute::<*mut c_void, Accept>(accept)(socket, to, length);
        if found < 0 {
            return found;
        }
        if flags & libc::SOCK_NONBLOCK != 0 {
            control(found, libc::F_SETFL, control(found, libc::F_GETFL) | libc::O_NONBLOCK);
        }
        if flags & libc::SOCK_CLOEXEC != 0 {
            // Both the socket and its placeholder get the flag.
            control(found, libc::F_SETFD, libc::FD_CLOEXEC);
            real_control(found, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        found
    }
}

#[unsafe(export_name = "selvedge_path_ioctl")]
pub extern "C" fn ioctl(descriptor: c_int, request: c_ulong, argument: Passed<c_void>) -> c_int {
    let real = real!(c"ioctl", DeviceControl);
    let done = real(descriptor, request, argument);
    if request == libc::FIONBIO
        && done == 0
        && let Some(control) = preloaded_control()
    {
        // The kernel has set the placeholder's mode by now: the socket follows. For any other descriptor nothing
        // changes.
        // SAFETY: the kernel has read the number that the argument points to; `fcntl` takes numbers only.
        unsafe {
            let flags = control(descriptor, libc::F_GETFL);
            let waits = argument.as_ptr().cast::<c_int>().read_unaligned() == 0;
            let wanted = if waits { flags & !libc::O_NONBLOCK } else { flags | libc::O_NONBLOCK };
            if flags >= 0 && flags != wanted {
                control(descriptor, libc::F_SETFL, wanted);
            }
        }
    }
    done
}
