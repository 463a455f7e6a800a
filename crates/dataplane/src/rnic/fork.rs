//! The adapter of this process, and what becomes of it when the process forks, or ends.
//!
//! A child has the parent's memory, but no thread of the parent's but one, and perhaps locks that nobody will ever give
//! back. So it closes the parent's sockets, marks the parent's adapter as foreign, and makes one of its own when it
//! opens a device.
#![allow(unsafe_code, reason = "what the C library is to call in a child, and the one global")]

use std::io;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::adapter::Adapter;

static CURRENT: AtomicPtr<Adapter> = AtomicPtr::new(ptr::null_mut());
static REGISTERED: Once = Once::new();

/// The adapter of this process, if it has been made.
pub(super) fn existing() -> Option<&'static Adapter> {
    // SAFETY: what was put there is never freed.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// The adapter of this process. It lives as long as the process.
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
            // Unless another thread of the parent's was about to change it: that one would never give it back.
            for &descriptor in adapter.descriptors.try_lock().iter().flat_map(|descriptors| descriptors.iter()) {
                libc::close(descriptor);
            }
        }
    }
}
