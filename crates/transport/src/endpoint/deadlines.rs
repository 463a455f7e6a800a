//! Deadlines of the entries of a NIC's endpoints.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use selvedge_units::Instant;

/// The deadlines of one NIC, by slot. A slot may have several; an owner whose deadline has moved ignores the earlier
/// ones when they come up ([`Alarm`](super::Alarm)). Of equal deadlines, that of the lower slot comes first.
#[derive(Debug)]
pub struct Deadlines {
    /// Earliest of all deadlines, so that polls need no further look-up.
    next: Instant,
    /// Deadline of the first entry in the heap.
    first: Instant,
    /// Deadline of the slot `pacer`. Each packet changes that time, so it has no entry in the heap.
    pace: Instant,
    pacer: u32,
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Deadlines {
    /// Creates an empty set of deadlines. `pacer` is the slot whose deadline [`Deadlines::set_pacer`] sets.
    pub const fn new(pacer: u32) -> Self {
        let never = Instant::NEVER;
        Self { next: never, first: never, pace: never, pacer, heap: BinaryHeap::new() }
    }

    /// Adds a deadline of `slot`.
    pub fn push(&mut self, at: Instant, slot: u32) {
        self.first = self.first.min(at);
        self.next = self.next.min(at);
        self.heap.push(Reverse((at, slot)));
    }

    /// Sets the only deadline of the pacer; [`Instant::NEVER`] removes it.
    #[inline]
    pub fn set_pacer(&mut self, at: Instant) {
        self.pace = at;
        self.next = self.first.min(at);
    }

    /// Returns the earliest deadline; [`Instant::NEVER`] without any.
    #[inline]
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Removes and returns the earliest deadline and its slot.
    #[inline]
    pub fn pop(&mut self) -> Option<(Instant, u32)> {
        let pace = (self.pace, self.pacer);
        if self.pace < self.first
            || (self.pace != Instant::NEVER && self.heap.peek().is_none_or(|Reverse(entry)| pace < *entry))
        {
            self.set_pacer(Instant::NEVER);
            return Some(pace);
        }
        let Reverse(entry) = self.heap.pop()?;
        self.first = self.heap.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at);
        self.next = self.first.min(self.pace);
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_come_in_their_order_those_of_the_pacer_among_them() {
        let at = Instant::from_ps;
        let (lower, pacer, higher) = (3, 5, 7);
        let mut deadlines = Deadlines::new(pacer);
        assert_eq!((deadlines.next(), deadlines.pop()), (Instant::NEVER, None));
        deadlines.push(at(30), higher);
        deadlines.push(at(20), lower);
        deadlines.set_pacer(at(20));
        assert_eq!(deadlines.pop(), Some((at(20), lower)), "of equal deadlines, the lower slot is the first");
        assert_eq!(deadlines.next(), at(20));
        assert_eq!(deadlines.pop(), Some((at(20), pacer)));
        assert_eq!(deadlines.next(), at(30));
        deadlines.set_pacer(at(30));
        assert_eq!(deadlines.pop(), Some((at(30), pacer)));
        assert_eq!(deadlines.pop(), Some((at(30), higher)));
        assert_eq!((deadlines.next(), deadlines.pop()), (Instant::NEVER, None));
    }
}
