//! What happens next, and where: the calendar, the partitions, the windows in which they run.

mod build;
pub(crate) mod calendar;
mod deadlock;
mod log;
mod order;
pub(crate) mod partition;
pub(crate) mod pending;
mod sample;
pub(crate) mod table;
mod window;

pub use build::port_infos;
pub use window::{Parallel, run, run_recorded};

/// Tells the processor that `table[index]` will be needed soon, if there is such a place.
#[inline]
pub(crate) fn prefetch<T>(table: &[T], index: u32) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch only touches the cache and does nothing for an address that is not
        // mapped; `wrapping_add` makes no promise about where the pointer points.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(table.as_ptr().wrapping_add(index as usize).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (table, index);
}

/// Tells the processor that all of `things` will be needed soon. Asks for every other cache line: the
/// processor fetches them in pairs.
#[inline(always)]
pub(crate) fn prefetch_all<T>(things: &[T]) {
    const PAIR: usize = 128;
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let bytes = things.as_ptr().cast::<i8>();
        let mut at = 0;
        while at < size_of_val(things) {
            // SAFETY: as above.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.wrapping_add(at)) };
            at += PAIR;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = things;
}
