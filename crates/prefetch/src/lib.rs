//! Prefetch: single places, and whole ranges a few cache lines at a time.
//!
//! Processors have about two dozen cache misses outstanding, and do not run far beyond an instruction that waits for
//! one. A switch of 32 ports needs a hundred lines: where all are prefetched at once, nothing else is done for most of
//! that time.
//!
//! State that drivers prefetch is described by a [`PrefetchRange`]: protocol engines return such ranges, whose memory
//! nobody can read through them.

#![no_std]

/// Bytes that the processor fetches together: a cache line.
pub const LINE: usize = 64;

/// Memory to prefetch. It is never accessed, so that it need not outlive the range.
#[derive(Clone, Copy, Debug)]
pub struct PrefetchRange {
    place: *const u8,
    /// Bytes that are left.
    left: usize,
}

impl PrefetchRange {
    /// No memory.
    pub const EMPTY: Self = Self { place: core::ptr::null(), left: 0 };

    /// Returns the memory of `things`.
    #[inline(always)]
    pub const fn of<T>(things: &[T]) -> Self {
        Self { place: things.as_ptr().cast(), left: size_of_val(things) }
    }

    /// Returns the first `bytes` bytes of `thing`.
    #[inline(always)]
    pub const fn beginning_of<T>(thing: &T, bytes: usize) -> Self {
        Self { place: core::ptr::from_ref(thing).cast(), left: bytes }
    }

    /// Returns the first `bytes` bytes of the entry of `table` at `index`, which need not exist.
    #[inline(always)]
    pub const fn of_entry<T>(table: &[T], index: usize, bytes: usize) -> Self {
        Self { place: table.as_ptr().wrapping_add(index).cast(), left: bytes }
    }

    /// Returns the range without its last `bytes` bytes.
    #[inline(always)]
    #[must_use]
    pub const fn without_last(self, bytes: usize) -> Self {
        Self { left: self.left.saturating_sub(bytes), ..self }
    }

    /// Returns the length in bytes.
    #[inline(always)]
    pub const fn bytes(&self) -> usize {
        self.left
    }

    /// Prefetches all of the range.
    #[inline(always)]
    pub fn prefetch(self) {
        prefetch_bytes(self.place, self.left);
    }
}

/// Prefetch in progress.
pub struct PrefetchQueue {
    /// Present range; empty only if no others are left.
    current: PrefetchRange,
    /// Stretches after the present one, the last one first.
    others: [PrefetchRange; PrefetchQueue::MOST],
    count: usize,
}

// SAFETY: the memory is not accessed through these pointers, which may point anywhere.
unsafe impl Send for PrefetchQueue {}

impl Default for PrefetchQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl PrefetchQueue {
    const MOST: usize = 4;

    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self { current: PrefetchRange::EMPTY, others: [PrefetchRange::EMPTY; Self::MOST], count: 0 }
    }

    /// Begins to prefetch these ranges, the last one first. No earlier ranges may be left.
    #[inline(always)]
    pub fn turn_to(&mut self, ranges: [PrefetchRange; Self::MOST]) {
        debug_assert!(self.current.left == 0 && self.count == 0, "nothing is forgotten");
        (self.others, self.count) = (ranges, Self::MOST);
        self.take_next();
    }

    /// Prefetches at most as many lines as processors have outstanding.
    #[inline(always)]
    pub fn fetch_some(&mut self) {
        self.fetch(24 * LINE);
    }

    /// Prefetches a few lines, for callers that do so often.
    #[inline(always)]
    pub fn prefetch_some(&mut self) {
        self.fetch(4 * LINE);
    }

    #[inline(always)]
    fn fetch(&mut self, bytes: usize) {
        let PrefetchRange { place, left } = self.current;
        if left > 0 {
            let some = bytes.min(left);
            prefetch_bytes(place, some);
            self.current = PrefetchRange { place: place.wrapping_add(some), left: left - some };
            self.take_next();
        }
    }

    /// Prefetches all that is left.
    #[inline(always)]
    pub fn fetch_rest(&mut self) {
        while self.current.left > 0 {
            self.fetch(usize::MAX);
        }
    }

    /// Turns to the next range that is not empty, if the present one is.
    #[inline(always)]
    fn take_next(&mut self) {
        while self.current.left == 0 && self.count > 0 {
            self.count -= 1;
            self.current = self.others[self.count];
        }
    }
}

/// Prefetches `table[index]`, if there is such an entry.
#[inline]
pub fn prefetch<T>(table: &[T], index: u32) {
    // `wrapping_add` allows any address, inside the table or not.
    prefetch_at(table.as_ptr().wrapping_add(index as usize));
}

/// Prefetches the cache line at `place`, which may be any address.
#[inline(always)]
pub fn prefetch_at<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch only touches the cache and does nothing for an address that is not mapped.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Prefetches all of `things`.
#[inline(always)]
pub fn prefetch_all<T>(things: &[T]) {
    prefetch_bytes(things.as_ptr().cast(), size_of_val(things));
}

/// Prefetches `count` bytes from `bytes` on.
#[inline(always)]
fn prefetch_bytes(bytes: *const u8, count: usize) {
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

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn everything_is_fetched_once_and_in_order() {
        let (a, b, c) = ([0_u8; 300], [0_u8; 0], [0_u8; 64]);
        let mut prefetch_queue = PrefetchQueue::new();
        prefetch_queue.turn_to([&c[..], &b, &a, &b].map(PrefetchRange::of));
        let mut seen = Vec::new();
        while prefetch_queue.current.left > 0 {
            seen.push(prefetch_queue.current.left);
            prefetch_queue.fetch(128);
        }
        assert_eq!(seen, [300, 172, 44, 64]);
        prefetch_queue.turn_to([&a[..], &a, &a, &a].map(PrefetchRange::of));
        prefetch_queue.fetch(128);
        prefetch_queue.fetch_rest();
        assert_eq!((prefetch_queue.current.left, prefetch_queue.count), (0, 0));
    }
}
