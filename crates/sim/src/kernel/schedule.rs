//! What happens next: delay lines, and a timing wheel for the rest.
//!
//! Design notes.
//! 1. *Order.* Events are handled in the order of `(time, kind, entity)`; events that are scheduled
//!    for the present come after those already pending for it. Nothing depends on when an event was
//!    scheduled otherwise, so every node sees the same order for any number of partitions and
//!    threads. Two events with the same three are the same event: handlers treat the second as a
//!    repetition.
//! 2. *Delay lines.* Most events lie a fixed time ahead: a full frame's serialisation, the same plus a
//!    link's delay, an acknowledgement's. What takes equally long comes out in the order in which it
//!    went in, so each such time has a plain queue, and finding the next event is a glance at the
//!    heads of a few queues. No sorting, no heap, and the queues say what to prefetch.
//! 3. *The wheel* takes the rest (odd sizes, wake-ups). The near future is cut into buckets of 2^shift
//!    picoseconds, filled unsorted and sorted when opened; a two-level bitmap finds the next one.
//! 4. *Far events* (retransmission timeouts, pause refreshes) wait in a heap until their bucket
//!    comes into the wheel's horizon.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use selvedge_units::Instant;

/// One thing to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Event {
    /// When.
    pub(crate) time: u64,
    /// What and to whom: `kind << 28 | entity`.
    pub(crate) key: u32,
    /// A handle for the handler; not part of the order.
    pub(crate) payload: u32,
}

impl Event {
    /// The largest entity number.
    pub(crate) const MAX_ENTITY: u32 = (1 << 28) - 1;

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

/// Which delay line an event goes into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line(u8);

impl Line {
    /// None: the wheel.
    pub(crate) const WHEEL: Self = Self(0);
}

/// The pending events of one partition.
pub(crate) struct Schedule {
    /// The first event of each line and of the wheel, earliest first.
    heads: [Head; LINES],
    /// Lines in use, the wheel included.
    used: usize,
    lines: [DelayLine; LINES],
    /// Delay of each line.
    delays: [u64; LINES],
    /// Events of the present that wait for their turn: those from `next_tie` on.
    ties: Vec<Event>,
    next_tie: usize,
    wheel: Wheel,
}

/// When the first event of a line comes; [`NEVER`] if there is none.
#[derive(Clone, Copy)]
struct Head {
    time: u64,
    line: usize,
}

/// The most lines: the wheel and fifteen delays.
const LINES: usize = 16;
const NEVER: u64 = u64::MAX;

impl Schedule {
    /// A schedule without delay lines; its wheel has `count` (a power of two, at least 4096) buckets
    /// of `2^shift` picoseconds.
    pub(crate) fn new(shift: u32, count: usize) -> Self {
        Self {
            heads: std::array::from_fn(|line| Head { time: NEVER, line }),
            used: 1,
            lines: std::array::from_fn(|_| DelayLine::default()),
            delays: [0; LINES],
            ties: Vec::new(),
            next_tie: 0,
            wheel: Wheel::new(shift, count),
        }
    }

    /// A schedule for a fabric in which about `events_per_us` events per microsecond are odd enough
    /// for the wheel, most of them less than `reach_ps` ahead.
    pub(crate) fn tuned(reach_ps: u64, events_per_us: u64) -> Self {
        // About two events in a bucket, between 64 ps and 1 us wide.
        let width = (2_000_000 / events_per_us.max(1)).clamp(64, 1 << 20);
        let count = (reach_ps / width).next_power_of_two().clamp(4096, 1 << 16);
        // A long reach must fit: rather wider buckets than arrivals in the heap.
        let width = width.max(reach_ps.div_ceil(count));
        Self::new(width.next_power_of_two().ilog2(), count as usize)
    }

    /// The line for events `delay` picoseconds ahead; the wheel if there are too many lines.
    pub(crate) fn line_for(&mut self, delay: u64) -> Line {
        if let Some(line) = (1..self.used).find(|&line| self.delays[line] == delay) {
            return Line(line as u8);
        }
        if self.used == LINES {
            return Line::WHEEL;
        }
        self.delays[self.used] = delay;
        self.used += 1;
        Line((self.used - 1) as u8)
    }

    /// Adds an event, not earlier than the last one popped.
    #[inline]
    pub(crate) fn push(&mut self, event: Event) {
        self.push_line(Line::WHEEL, event);
    }

    /// Adds an event that lies the line's delay ahead of the last one popped.
    #[inline]
    pub(crate) fn push_line(&mut self, line: Line, event: Event) {
        let at = line.0 as usize & (LINES - 1);
        if at == 0 {
            self.push_wheel(event);
        } else if self.lines[at].push(event) {
            self.move_up(at, event.time);
        }
    }

    #[inline(never)]
    fn push_wheel(&mut self, event: Event) {
        self.wheel.push(event);
        self.move_up(0, event.time);
    }

    /// A line's first event comes at `time`, if that is earlier than it was.
    fn move_up(&mut self, line: usize, time: u64) {
        let Some(mut at) = self.heads.iter().position(|head| head.line == line) else { return };
        if time >= self.heads[at].time {
            return;
        }
        while at > 0 && self.heads[at - 1].time > time {
            self.heads[at] = self.heads[at - 1];
            at -= 1;
        }
        self.heads[at] = Head { time, line };
    }

    /// The first line's next event comes at `time`: puts it where it belongs.
    #[inline]
    fn move_first_down(&mut self, line: usize, time: u64) {
        let mut at = 0;
        while at + 1 < LINES && self.heads[at + 1].time < time {
            self.heads[at] = self.heads[at + 1];
            at += 1;
        }
        self.heads[at] = Head { time, line };
    }

    /// The time of the next event; `None` if there is none.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let time = self.ties.get(self.next_tie).map_or(self.heads[0].time, |event| event.time);
        (time != NEVER).then_some(time)
    }

    /// Takes the next event, if it is earlier than `limit`. `upcoming` is shown an event that comes
    /// soon, for prefetching.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: u64, upcoming: impl Fn(&Event)) -> Option<Event> {
        if let Some(event) = self.ties.get(self.next_tie) {
            self.next_tie += 1;
            return Some(*event);
        }
        let time = self.heads[0].time;
        if time >= limit {
            return None;
        }
        let event = self.take_first(&upcoming);
        if self.heads[0].time == time {
            return Some(self.first_of_ties(event, upcoming));
        }
        Some(event)
    }

    /// Takes the event at the first head.
    #[inline]
    fn take_first(&mut self, upcoming: &impl Fn(&Event)) -> Event {
        let line = self.heads[0].line & (LINES - 1);
        let (event, next) = if line == 0 {
            (self.wheel.pop(), self.wheel.head_time())
        } else {
            let lane = &mut self.lines[line];
            let event = lane.pop();
            upcoming(lane.ahead());
            (event, lane.head_time())
        };
        self.move_first_down(line, next);
        event
    }

    /// Collects every event of the same time, and returns the first.
    #[inline(never)]
    fn first_of_ties(&mut self, first: Event, upcoming: impl Fn(&Event)) -> Event {
        self.ties.clear();
        self.ties.push(first);
        let mut sorted = true;
        let mut last = first.key;
        while self.heads[0].time == first.time {
            let event = self.take_first(&upcoming);
            sorted &= last <= event.key;
            last = event.key;
            self.ties.push(event);
        }
        if !sorted {
            sort_ties(&mut self.ties);
        }
        self.next_tie = 1;
        self.ties[0]
    }
}

/// Sorts by key: a few events by insertion, which is what they are nearly always.
fn sort_ties(ties: &mut [Event]) {
    if ties.len() > 20 {
        return ties.sort_unstable_by_key(|event| event.key);
    }
    for end in 1..ties.len() {
        let event = ties[end];
        let mut at = end;
        while at > 0 && ties[at - 1].key > event.key {
            ties[at] = ties[at - 1];
            at -= 1;
        }
        ties[at] = event;
    }
}

/// Events that take equally long: first in, first out.
struct DelayLine {
    /// A ring; its length is a power of two. Never full: an empty ring has its ends together.
    ring: Box<[Event]>,
    head: usize,
    tail: usize,
}

/// How many places before an event's turn it is shown to the prefetcher.
const AHEAD: usize = 6;
const NOTHING: Event = Event { time: NEVER, key: 0, payload: u32::MAX };

impl Default for DelayLine {
    fn default() -> Self {
        Self { ring: vec![NOTHING; 16].into(), head: 0, tail: 0 }
    }
}

impl DelayLine {
    /// Returns whether it is the only one.
    #[inline]
    fn push(&mut self, event: Event) -> bool {
        let mask = self.ring.len() - 1;
        debug_assert!(
            self.head == self.tail || self.ring[self.tail.wrapping_sub(1) & mask].time <= event.time,
            "what goes in later comes out later"
        );
        let was_empty = self.tail == self.head;
        self.ring[self.tail & mask] = event;
        self.tail = (self.tail + 1) & mask;
        if self.tail == self.head {
            self.grow();
        }
        was_empty
    }

    #[inline]
    fn pop(&mut self) -> Event {
        let mask = self.ring.len() - 1;
        let event = self.ring[self.head & mask];
        self.head = (self.head + 1) & mask;
        event
    }

    #[inline]
    fn head_time(&self) -> u64 {
        if self.head == self.tail { NEVER } else { self.ring[self.head & (self.ring.len() - 1)].time }
    }

    #[inline]
    fn ahead(&self) -> &Event {
        &self.ring[(self.head + AHEAD) & (self.ring.len() - 1)]
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.ring.len();
        let mut larger = vec![NOTHING; len * 2];
        for (n, place) in larger.iter_mut().enumerate().take(len) {
            *place = self.ring[(self.head + n) & (len - 1)];
        }
        (self.ring, self.head, self.tail) = (larger.into(), 0, len);
    }
}

#[derive(Clone, Copy)]
struct Node {
    event: Event,
    next: u32,
}

const NONE: u32 = u32::MAX;

/// Events at arbitrary times.
struct Wheel {
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
}

impl Wheel {
    fn new(shift: u32, count: usize) -> Self {
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
        }
    }

    fn push(&mut self, event: Event) {
        let bucket = event.time >> self.shift;
        let ahead = bucket.wrapping_sub(self.open_bucket);
        if ahead.wrapping_sub(1) < self.heads.len() as u64 - 1 {
            self.link(bucket, event);
        } else if bucket <= self.open_bucket {
            // The open bucket, sorted already.
            let at = self.open.partition_point(|other| other.order() > event.order());
            self.open.insert(at, event);
        } else {
            self.far.push(Reverse((event.time, event.key, event.payload)));
        }
    }

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

    /// The time of the first event. Opens nothing: a bucket that is opened too early would have to be
    /// kept sorted while earlier events are still being added.
    fn head_time(&self) -> u64 {
        if let Some(event) = self.open.last() {
            return event.time;
        }
        let far = self.far.peek().map_or(NEVER, |Reverse((time, ..))| *time);
        let Some(bucket) = self.next_filled() else { return far };
        let mut first = far;
        let mut index = self.heads[bucket as usize & (self.heads.len() - 1)];
        while index != NONE {
            let node = &self.nodes[index as usize];
            first = first.min(node.event.time);
            index = node.next;
        }
        first
    }

    /// Takes the first event; there must be one.
    fn pop(&mut self) -> Event {
        if self.open.is_empty() {
            self.advance();
        }
        self.open.pop().expect("the head told of an event")
    }

    /// Opens the next bucket that holds something.
    fn advance(&mut self) {
        let near = self.next_filled();
        let far = self.far.peek().map(|Reverse((time, ..))| time >> self.shift);
        let Some(bucket) = [near, far].into_iter().flatten().min() else { return };
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

    /// The definition: pending events in order; what is pushed for the present waits until the ties
    /// that were pending before have been taken.
    #[derive(Default)]
    struct Model {
        pending: Vec<Event>,
        ties: Vec<Event>,
    }

    impl Model {
        fn pop_before(&mut self, limit: u64) -> Option<Event> {
            if self.ties.is_empty() {
                let first = self.pending.iter().map(|event| event.time).min().filter(|&time| time < limit)?;
                self.ties = self.pending.extract_if(.., |event| event.time == first).collect();
                self.ties.sort_by_key(|event| Reverse(event.key));
            }
            self.ties.pop()
        }
    }

    /// Events at arbitrary times, some of them on lines, come out as the model says.
    #[test]
    fn pops_in_the_order_of_its_definition() {
        for (seed, reach) in [(1, 10), (2, 5_000), (3, 4_000_000), (4, 900_000_000), (5, 1 << 40)] {
            let mut rng = Rng::stream(seed, Domain::Impairment, 0);
            let mut schedule = Schedule::new(8, 4096);
            let delays = [reach / 7 + 1, reach / 3 + 2, reach + 3];
            let lines = delays.map(|delay| schedule.line_for(delay));
            let mut model = Model::default();
            let mut now = 0;
            let mut key = 0;
            for round in 0..20_000 {
                for _ in 0..if round < 15_000 { rng.below(3) } else { 0 } {
                    // Keys in no order, but each only once.
                    key += 1;
                    let key = (key as u32).reverse_bits();
                    let (line, time) = match rng.below(4) {
                        0 => (Line::WHEEL, now + if rng.below(4) == 0 { 0 } else { rng.below(reach) }),
                        n => (lines[n as usize - 1], now + delays[n as usize - 1]),
                    };
                    let event = Event { time, key, payload: round };
                    model.pending.push(event);
                    schedule.push_line(line, event);
                }
                let first = model.ties.iter().chain(&model.pending).map(|event| event.time).min();
                assert_eq!(schedule.next_time(), first);
                let limit = now + rng.below(reach * 2);
                let expected = model.pop_before(limit);
                assert_eq!(schedule.pop_before(limit, |_| {}), expected, "seed {seed}, round {round}");
                now = expected.map_or(now, |event| event.time);
            }
            while let Some(expected) = model.pop_before(NEVER) {
                assert_eq!(schedule.pop_before(NEVER, |_| {}), Some(expected));
            }
            assert_eq!(schedule.next_time(), None);
        }
    }

    #[test]
    fn there_is_a_line_for_each_of_the_first_fifteen_delays() {
        let mut schedule = Schedule::tuned(2_000_000, 1_000);
        let lines: Vec<_> = (1..=20).map(|delay| schedule.line_for(delay)).collect();
        assert_eq!(schedule.line_for(3), lines[2]);
        assert!(lines[..15].iter().all(|line| *line != Line::WHEEL));
        assert!(lines[15..].iter().all(|line| *line == Line::WHEEL));
    }
}
