//! What a visit will need, fetched little by little while others run.
//!
//! Processors wait for two dozen lines at a time, and do not go far beyond what has to wait for one of these. A switch
//! of 32 ports needs a hundred: where all are asked for at once, nothing else is done for most of that time.

use super::{LINE, prefetch_bytes};

/// Some memory to fetch: where it begins, and how many bytes are left.
type Stretch = (*const u8, usize);

/// What is left to fetch.
pub(crate) struct Trickle {
    /// The stretch under way; nothing is left of it only if there are no others.
    current: Stretch,
    /// Those that come after it, the last one first.
    others: [Stretch; Trickle::MOST],
    count: usize,
}

// SAFETY: it does not read what it points at, and may point anywhere.
unsafe impl Send for Trickle {}

impl Trickle {
    const MOST: usize = 4;

    pub(crate) const fn new() -> Self {
        let nothing = (std::ptr::null(), 0);
        Self { current: nothing, others: [nothing; Self::MOST], count: 0 }
    }

    /// Turns to these stretches, the last of which comes first. Nothing may be left of others.
    #[inline(always)]
    pub(crate) fn turn_to(&mut self, stretches: [Stretch; Self::MOST]) {
        debug_assert!(self.current.1 == 0 && self.count == 0, "nothing is forgotten");
        (self.others, self.count) = (stretches, Self::MOST);
        self.take_next();
    }

    /// Fetches as much as processors wait for at once, at most.
    #[inline(always)]
    pub(crate) fn fetch_some(&mut self) {
        self.fetch(24 * LINE);
    }

    /// Fetches a little, where that is often done.
    #[inline(always)]
    pub(crate) fn fetch_a_little(&mut self) {
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

    /// Fetches all that is left.
    #[inline(always)]
    pub(crate) fn fetch_rest(&mut self) {
        while self.current.1 > 0 {
            self.fetch(usize::MAX);
        }
    }

    /// Turns to the next stretch of which something is left, if nothing is of this one.
    #[inline(always)]
    fn take_next(&mut self) {
        while self.current.1 == 0 && self.count > 0 {
            self.count -= 1;
            self.current = self.others[self.count];
        }
    }
}

/// Where these lie.
#[inline(always)]
pub(crate) fn stretch_of<T>(things: &[T]) -> Stretch {
    (things.as_ptr().cast(), size_of_val(things))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_fetched_once_and_in_order() {
        let (a, b, c) = ([0_u8; 300], [0_u8; 0], [0_u8; 64]);
        let mut trickle = Trickle::new();
        trickle.turn_to([&c[..], &b, &a, &b].map(stretch_of));
        let mut seen = Vec::new();
        while trickle.current.1 > 0 {
            seen.push(trickle.current.1);
            trickle.fetch(128);
        }
        assert_eq!(seen, [300, 172, 44, 64]);
        trickle.turn_to([&a[..], &a, &a, &a].map(stretch_of));
        trickle.fetch(128);
        trickle.fetch_rest();
        assert_eq!((trickle.current.1, trickle.count), (0, 0));
    }
}
