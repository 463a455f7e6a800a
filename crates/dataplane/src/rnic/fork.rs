//! The adapter of this process, and its handling when the process forks or ends.
//!
//! A child has the parent's memory, but only one of the parent's threads, and perhaps locks that are never released. So
//! the child closes the parent's sockets, marks the parent's adapter as foreign, and creates one of its own when it
//! opens a device.
#![allow(unsafe_code, reason = "what the C library is to call in a child, and the one global")]

use std::io;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::adapter::Adapter;

static CURRENT: AtomicPtr<Adapter> = AtomicPtr::new(ptr::null_mut());
static REGISTERED: Once = Once::new();

/// Returns the adapter of this process, if it exists.
pub(super) fn existing() -> Option<&'static Adapter> {
    // SAFETY: what was put there is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Returns the adapter of this process, and creates it with `make` if necessary. It lives as long as the process.
pub(super) fn current(make: impl FnOnce() -> io::Result<Adapter>) -> io::Result<&'static Adapter> {
    if let Some(adapter) = existing() {
        return Ok(adapter);
    }
    // SAFETY: the first handler only stores to atomics and closes descriptors, as it may between fork and exec; the
    // second waits for nobody for long.
    REGISTERED.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
        libc::atexit(at_exit);
    });
    let new = Box::into_raw(Box::new(make()?));
    let old = CURRENT.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire);
    // SAFETY: `new` was made above; if another thread was faster, nobody else has seen it.
    unsafe {
        match old {
            Ok(_) => Ok(&*new),
            Err(first) => {
                drop(Box::from_raw(new));
                Ok(&*first)
            }
        }
    }
}

extern "C" fn at_exit() {
    if let Some(adapter) = existing() {
        adapter.finish();
    }
}

unsafe extern "C" fn in_child() {
    // SAFETY: what was put there is never freed; its descriptors are its own.
    unsafe {
        if let Some(adapter) = CURRENT.swap(ptr::null_mut(), Ordering::AcqRel).as_ref() {
            adapter.is_foreign.store(true, Ordering::Release);
            // Skipped if another thread of the parent held the lock at the fork: that thread does not exist in the
            // child, so the lock is never released.
            for &descriptor in adapter.descriptors.try_lock().iter().flat_map(|descriptors| descriptors.iter()) {
                libc::close(descriptor);
            }
        }
    }
}
