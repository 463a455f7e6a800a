//! What happens next, and where: the schedule, the partitions, the windows in which they run.

mod build;
mod deadlock;
pub(crate) mod partition;
mod sample;
pub(crate) mod schedule;
mod window;

pub use build::port_infos;
pub use window::{Parallel, run};

/// Tells the processor that `value` will be needed soon.
#[inline]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect but on the cache, and the pointer comes from a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
