//! What happens next: a bucketed timing wheel.
//!
//! Design notes.
//! 1. *Order.* Events are ordered by `(time, kind, entity)`. Nothing depends on when an event was
//!    scheduled, so the order is the same for any number of partitions and threads. Two events with
//!    the same three are the same event: handlers treat the second as a repetition.
//! 2. *Buckets.* The near future is cut into buckets of 2^shift picoseconds. An event within the
//!    horizon is linked into its bucket unsorted (one store into a hot array, one into a recycled
//!    node). A bucket is sorted when it is opened; with a handful of events each that costs less
//!    than any heap. A two-level bitmap finds the next bucket that holds something.
//! 3. *Far events* (retransmission timeouts, pause refreshes) wait in a heap until their bucket
//!    comes into the horizon.
//! 4. *Opening is the moment to prefetch*: the caller learns which entities the bucket will touch.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use selvedge_units::Instant;

/// One thing to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// When.
    pub time: u64,
    /// What and to whom: `kind << 28 | entity`.
    pub key: u32,
    /// A handle for the handler; not part of the order.
    pub payload: u32,
}

impl Event {
    /// The largest entity number.
    pub const MAX_ENTITY: u32 = (1 << 28) - 1;

    #[inline]
    pub(crate) fn new(at: Instant, kind: u32, entity: u32, payload: u32) -> Self {
        debug_assert!(entity <= Self::MAX_ENTITY);
        Self { time: at.as_ps(), key: kind << 28 | entity, payload }
    }
    #[inline]
    pub(crate) fn kind(self) -> u32 {
        self.key >> 28
    }
    #[inline]
    pub(crate) fn entity(self) -> u32 {
        self.key & Self::MAX_ENTITY
    }
    #[inline]
    fn order(self) -> (u64, u32) {
        (self.time, self.key)
    }
}

#[derive(Clone, Copy)]
struct Node {
    event: Event,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// The pending events of one partition.
pub struct Schedule {
    /// Events of the open bucket, latest first.
    open: Vec<Event>,
    /// The bucket that is open, counted from the beginning of time.
    open_bucket: u64,
    /// First node of each bucket, by bucket number modulo their count.
    heads: Box<[u32]>,
    /// Bit per bucket: holds something.
    filled: Box<[u64]>,
    /// Bit per word of `filled`.
    filled_words: Box<[u64]>,
    nodes: Vec<Node>,
    free: u32,
    far: BinaryHeap<Reverse<(u64, u32, u32)>>,
    shift: u32,
    len: usize,
}

impl Schedule {
    /// A schedule whose buckets are `2^shift` picoseconds wide, `count` (a power of two, at least
    /// 4096) of them.
    pub fn new(shift: u32, count: usize) -> Self {
        assert!(count.is_power_of_two() && count >= 4096, "the bitmaps have two full levels");
        Self {
            open: Vec::new(),
            open_bucket: 0,
            heads: vec![NONE; count].into(),
            filled: vec![0; count / 64].into(),
            filled_words: vec![0; count / 4096].into(),
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            shift,
            len: 0,
        }
    }

    /// A schedule for a fabric in which about `events_per_us` events happen per microsecond and most
    /// are scheduled less than `reach_ps` ahead.
    pub fn tuned(reach_ps: u64, events_per_us: u64) -> Self {
        // About eight events in a bucket, between 16 ps and 1 us.
        let width = (8_000_000 / events_per_us.max(1)).clamp(16, 1 << 20);
        let shift = width.ilog2();
        let count = (reach_ps >> shift).next_power_of_two().clamp(4096, 1 << 16);
        // A long reach must fit: rather wider buckets than arrivals in the heap.
        let shift = shift.max(reach_ps.div_ceil(count as u64).next_power_of_two().ilog2());
        Self::new(shift, count)
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether nothing will ever happen.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event, not earlier than the last one popped.
    #[inline]
    pub fn push(&mut self, event: Event) {
        self.len += 1;
        let bucket = event.time >> self.shift;
        let ahead = bucket.wrapping_sub(self.open_bucket);
        if ahead.wrapping_sub(1) < self.heads.len() as u64 - 1 {
            self.link(bucket, event);
        } else if bucket <= self.open_bucket {
            // The open bucket, sorted already. Behind it only by a caller's mistake.
            let at = self.open.partition_point(|other| other.order() > event.order());
            self.open.insert(at, event);
        } else {
            self.far.push(Reverse((event.time, event.key, event.payload)));
        }
    }

    #[inline]
    fn link(&mut self, bucket: u64, event: Event) {
        let at = bucket as usize & (self.heads.len() - 1);
        let next = self.heads[at];
        let node = Node { event, next };
        let index = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            index
        };
        self.heads[at] = index;
        if next == NONE {
            self.filled[at / 64] |= 1 << (at % 64);
            self.filled_words[at / 4096] |= 1 << (at / 64 % 64);
        }
    }

    /// The time of the next event; `None` if there is none. Opens nothing: a bucket that is opened
    /// too early would have to be kept sorted while earlier events are still being added.
    pub fn next_time(&self) -> Option<u64> {
        if let Some(event) = self.open.last() {
            return Some(event.time);
        }
        let near = self.next_filled().and_then(|bucket| {
            let head = self.heads[bucket as usize & (self.heads.len() - 1)];
            let nodes = std::iter::successors(self.nodes.get(head as usize), |node| self.nodes.get(node.next as usize));
            nodes.map(|node| node.event.time).min()
        });
        let far = self.far.peek().map(|Reverse((time, ..))| *time);
        near.into_iter().chain(far).min()
    }

    /// Takes the next event, if it is earlier than `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: u64, on_open: impl FnMut(&Event)) -> Option<Event> {
        if self.open.is_empty() && !self.advance(limit, on_open) {
            return None;
        }
        let event = *self.open.last()?;
        if event.time >= limit {
            return None;
        }
        self.open.pop();
        self.len -= 1;
        Some(event)
    }

    /// Opens the next bucket that holds something; false if there is none that begins before `limit`.
    fn advance(&mut self, limit: u64, mut on_open: impl FnMut(&Event)) -> bool {
        let near = self.next_filled();
        let far = self.far.peek().map(|Reverse((time, ..))| time >> self.shift);
        let Some(bucket) = [near, far].into_iter().flatten().min() else { return false };
        if bucket << self.shift >= limit {
            return false;
        }
        self.open_bucket = bucket;
        let at = bucket as usize & (self.heads.len() - 1);
        if near == Some(bucket) {
            self.filled[at / 64] &= !(1 << (at % 64));
            if self.filled[at / 64] == 0 {
                self.filled_words[at / 4096] &= !(1 << (at / 64 % 64));
            }
            let mut index = core::mem::replace(&mut self.heads[at], NONE);
            while index != NONE {
                let node = &mut self.nodes[index as usize];
                on_open(&node.event);
                self.open.push(node.event);
                let next = core::mem::replace(&mut node.next, self.free);
                self.free = index;
                index = next;
            }
        }
        // Far events whose buckets have come into the horizon.
        while let Some(&Reverse((time, key, payload))) = self.far.peek() {
            let bucket = time >> self.shift;
            if bucket - self.open_bucket >= self.heads.len() as u64 {
                break;
            }
            self.far.pop();
            let event = Event { time, key, payload };
            if bucket == self.open_bucket { self.open.push(event) } else { self.link(bucket, event) }
        }
        if self.open.len() > 1 {
            self.open.sort_unstable_by_key(|event| Reverse(event.order()));
        }
        true
    }

    /// The first bucket after the open one that holds something within the horizon.
    fn next_filled(&self) -> Option<u64> {
        let count = self.heads.len();
        let from = (self.open_bucket as usize + 1) & (count - 1);
        // From `from` to the end of the ring, then from its beginning.
        let at = self.filled_from(from).or_else(|| self.filled_from(0))?;
        let ahead = at.wrapping_sub(from) & (count - 1);
        Some(self.open_bucket + 1 + ahead as u64)
    }

    fn filled_from(&self, from: usize) -> Option<usize> {
        let word = from / 64;
        let rest = self.filled[word] >> (from % 64);
        if rest != 0 {
            return Some(from + rest.trailing_zeros() as usize);
        }
        let next_word = word + 1;
        let mut group = next_word / 64;
        let mut words = *self.filled_words.get(group)? >> (next_word % 64) << (next_word % 64);
        while words == 0 {
            group += 1;
            words = *self.filled_words.get(group)?;
        }
        let word = group * 64 + words.trailing_zeros() as usize;
        Some(word * 64 + self.filled[word].trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_units::{Domain, Rng};

    /// Pops in the order of a plain sort, whatever the spread of times.
    #[test]
    fn pops_in_the_order_of_a_heap() {
        for (seed, reach) in [(1, 10), (2, 5_000), (3, 4_000_000), (4, 900_000_000), (5, 1 << 40)] {
            let mut rng = Rng::stream(seed, Domain::Impairment, 0);
            let mut wheel = Schedule::new(8, 4096);
            let mut heap = BinaryHeap::new();
            let mut now = 0;
            for round in 0..30_000u32 {
                for _ in 0..rng.below(3) {
                    let delay = if rng.below(10) == 0 { 0 } else { rng.below(reach) };
                    let event = Event { time: now + delay, key: rng.below(1 << 20) as u32, payload: round };
                    if heap.iter().take(50).all(|Reverse((t, k, _))| (*t, *k) != (event.time, event.key)) {
                        heap.push(Reverse((event.time, event.key, event.payload)));
                        wheel.push(event);
                    }
                }
                assert_eq!(wheel.next_time(), heap.peek().map(|Reverse((time, ..))| *time));
                let limit = now + rng.below(reach * 2);
                let expected = heap.peek().filter(|Reverse((time, ..))| *time < limit).copied();
                let got = wheel.pop_before(limit, |_| {});
                assert_eq!(got.map(|e| (e.time, e.key)), expected.map(|Reverse((t, k, _))| (t, k)));
                if let Some(event) = got {
                    heap.pop();
                    now = event.time;
                }
                assert_eq!(wheel.len(), heap.len());
            }
            while let Some(Reverse((time, key, _))) = heap.pop() {
                let event = wheel.pop_before(u64::MAX, |_| {}).expect("as many as in the heap");
                assert_eq!((event.time, event.key), (time, key));
            }
            assert!(wheel.is_empty() && wheel.next_time().is_none());
        }
    }
}
