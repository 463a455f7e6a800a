//! The simulation kernel: the calendar, the partitions, and the windows in which they run.

mod barrier;
mod build;
pub(crate) mod busy_ports;
pub(crate) mod calendar;
mod deadlock;
pub(crate) mod fabric;
pub(crate) mod inbox;
mod log;
mod look;
pub(crate) mod order;
pub(crate) mod pages;
pub(crate) mod parcel;
pub(crate) mod partition;
pub(crate) mod prefetch_queue;
mod profile;
mod sample;
pub(crate) mod schedule;
mod session;
mod stall;
mod sync;
pub(crate) mod table;
pub(crate) mod tally;
pub(crate) mod visit_order;
mod window;
mod worker_pool;

pub use build::{port_infos, ports_of_links};
pub use pages::{Allocator, return_freed_memory};
pub use session::{Injection, Session};
pub use window::{Parallel, run, run_recorded};

/// Bytes of one kind of state up to which it is taken to stay in the cache, where saving memory accesses costs more
/// than it gains. Zero in debug builds, so that the smallest test also takes the code paths of large fabrics, to the
/// same fingerprints.
pub(crate) const CACHE: usize = if cfg!(debug_assertions) { 0 } else { 4 << 20 };

/// Bytes that the processor fetches together: a cache line.
const LINE: usize = 64;

/// Returns the bytes that a host takes in a run, without its port and its flows.
pub(crate) const fn bytes_per_host() -> usize {
    size_of::<crate::net::host::Host>() + INBOX
}

/// Returns the bytes that a switch takes in a run, without its ports.
pub(crate) const fn bytes_per_switch() -> usize {
    size_of::<crate::net::switch::Switch>() + INBOX
}

/// Returns the bytes that a port takes in a run: its two directions, its queues, its entries in samples and results.
pub(crate) const fn bytes_per_port() -> usize {
    use crate::net::port::{Egress, Ingress, PortExtra};
    size_of::<Egress>() + size_of::<Ingress>() + size_of::<PortExtra>() + PORT
}

/// Bytes of a node's inboxes.
const INBOX: usize = 2_048;
/// Bytes of a port in addition to its own state: queues, a row of a sample, a column of the report.
const PORT: usize = 1_024;

/// Prefetches `table[index]`, if there is such an entry.
#[inline]
pub(crate) fn prefetch<T>(table: &[T], index: u32) {
    // `wrapping_add` allows any address, inside the table or not.
    prefetch_at(table.as_ptr().wrapping_add(index as usize));
}

/// Prefetches the cache line at `place`, which may be any address.
#[inline(always)]
pub(crate) fn prefetch_at<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch only touches the cache and does nothing for an address that is not mapped.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Prefetches all of `things`.
#[inline(always)]
pub(crate) fn prefetch_all<T>(things: &[T]) {
    prefetch_bytes(things.as_ptr().cast(), size_of_val(things));
}

/// Prefetches `count` bytes from `bytes` on.
#[inline(always)]
pub(crate) fn prefetch_bytes(bytes: *const u8, count: usize) {
    // Fetching two lines at a time takes fewer instructions; it may fetch one more than asked for.
    let fetch_two = |at: usize| {
        prefetch_at(bytes.wrapping_add(at));
        prefetch_at(bytes.wrapping_add(at + LINE));
    };
    let mut at = 0;
    while at + 2 * LINE < count {
        fetch_two(at);
        fetch_two(at + 2 * LINE);
        at += 4 * LINE;
    }
    if at < count {
        fetch_two(at);
    }
}
