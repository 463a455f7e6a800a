//! Prefetch of the state that a visit needs, a few cache lines at a time during other visits.
//!
//! Processors have about two dozen cache misses outstanding, and do not run far beyond an instruction that waits for
//! one. A switch of 32 ports needs a hundred lines: where all are prefetched at once, nothing else is done for most of
//! that time.

use super::{LINE, prefetch_bytes};

/// Memory to prefetch: its beginning, and the number of bytes left.
type PrefetchRange = (*const u8, usize);

/// Prefetch in progress.
pub(crate) struct PrefetchQueue {
    /// Present range; empty only if no others are left.
    current: PrefetchRange,
    /// Stretches after the present one, the last one first.
    others: [PrefetchRange; PrefetchQueue::MOST],
    count: usize,
}

// SAFETY: the memory is not accessed through these pointers, which may point anywhere.
unsafe impl Send for PrefetchQueue {}

impl PrefetchQueue {
    const MOST: usize = 4;

    pub(crate) const fn new() -> Self {
        let nothing = (std::ptr::null(), 0);
        Self { current: nothing, others: [nothing; Self::MOST], count: 0 }
    }

    /// Begins to prefetch these ranges, the last one first. No earlier ranges may be left.
    #[inline(always)]
    pub(crate) fn turn_to(&mut self, ranges: [PrefetchRange; Self::MOST]) {
        debug_assert!(self.current.1 == 0 && self.count == 0, "nothing is forgotten");
        (self.others, self.count) = (ranges, Self::MOST);
        self.take_next();
    }

    /// Prefetches at most as many lines as processors have outstanding.
    #[inline(always)]
    pub(crate) fn fetch_some(&mut self) {
        self.fetch(24 * LINE);
    }

    /// Prefetches a few lines, for callers that do so often.
    #[inline(always)]
    pub(crate) fn prefetch_some(&mut self) {
        self.fetch(4 * LINE);
    }

    #[inline(always)]
    fn fetch(&mut self, bytes: usize) {
        let (place, left) = self.current;
        if left > 0 {
            let some = bytes.min(left);
            prefetch_bytes(place, some);
            self.current = (place.wrapping_add(some), left - some);
            self.take_next();
        }
    }

    /// Prefetches all that is left.
    #[inline(always)]
    pub(crate) fn fetch_rest(&mut self) {
        while self.current.1 > 0 {
            self.fetch(usize::MAX);
        }
    }

    /// Turns to the next range that is not empty, if the present one is.
    #[inline(always)]
    fn take_next(&mut self) {
        while self.current.1 == 0 && self.count > 0 {
            self.count -= 1;
            self.current = self.others[self.count];
        }
    }
}

/// Returns the memory of these things.
#[inline(always)]
pub(crate) fn stretch_of<T>(things: &[T]) -> PrefetchRange {
    (things.as_ptr().cast(), size_of_val(things))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_fetched_once_and_in_order() {
        let (a, b, c) = ([0_u8; 300], [0_u8; 0], [0_u8; 64]);
        let mut prefetch_queue = PrefetchQueue::new();
        prefetch_queue.turn_to([&c[..], &b, &a, &b].map(stretch_of));
        let mut seen = Vec::new();
        while prefetch_queue.current.1 > 0 {
            seen.push(prefetch_queue.current.1);
            prefetch_queue.fetch(128);
        }
        assert_eq!(seen, [300, 172, 44, 64]);
        prefetch_queue.turn_to([&a[..], &a, &a, &a].map(stretch_of));
        prefetch_queue.fetch(128);
        prefetch_queue.fetch_rest();
        assert_eq!((prefetch_queue.current.1, prefetch_queue.count), (0, 0));
    }
}
