//! Errors as C's `errno`, and messages on standard error.

use std::collections::BTreeSet;
use std::ffi::c_int;
use std::io;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use selvedge_dataplane::rnic::Refusal;
use selvedge_nic::verbs::VerbsError;

use crate::borrowed::Given;

/// Sets `errno`.
pub(crate) fn set(errno: c_int) {
    // SAFETY: the C library's own, of this thread.
    unsafe { *libc::__errno_location() = errno }
}

/// Sets `errno` and returns a null pointer.
pub(crate) fn null<T>(errno: c_int) -> *mut T {
    set(errno);
    ptr::null_mut()
}

/// Sets `errno` and returns `None`, which is a null pointer in C.
pub(crate) fn none<T>(errno: c_int) -> Option<T> {
    set(errno);
    None
}

/// Returns the object, or `None` with `errno` set.
pub(crate) fn given<T>(made: Result<Given<T>, c_int>) -> Option<Given<T>> {
    made.map_or_else(none, Some)
}

/// Returns the `errno` for a refusal.
pub(crate) fn of(refusal: Refusal) -> c_int {
    match refusal {
        Refusal::Verbs(error) => of_verbs(error),
        Refusal::Fault => libc::EFAULT,
        Refusal::Entropy => libc::EAGAIN,
        Refusal::Forked => libc::EIO,
    }
}

pub(crate) fn of_verbs(error: VerbsError) -> c_int {
    match error {
        VerbsError::NoSuch(_) | VerbsError::Invalid(_) => libc::EINVAL,
        VerbsError::InUse(_) => libc::EBUSY,
        VerbsError::Exhausted(_) => libc::ENOMEM,
        VerbsError::Unsupported(_) => libc::EOPNOTSUPP,
    }
}

pub(crate) fn of_io(error: &io::Error) -> c_int {
    let of_kind = if error.kind() == io::ErrorKind::InvalidInput { libc::EINVAL } else { libc::EIO };
    error.raw_os_error().unwrap_or(of_kind)
}

/// Returns 0 for success, or the `errno` for a refusal.
pub(crate) fn code(outcome: Result<(), Refusal>) -> c_int {
    outcome.err().map_or(0, of)
}

/// Returns the code of an outcome of the engine under the lock: 0, or the `errno` for a refusal.
pub(crate) fn code_of(outcome: Result<Result<(), VerbsError>, Refusal>) -> c_int {
    code(outcome.and_then(|inner| Ok(inner?)))
}

/// Prints a message that `errno` cannot express on standard error, each message once.
pub(crate) fn say(message: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(message.to_owned()) {
        eprintln!("selvedge: {message}");
    }
}
