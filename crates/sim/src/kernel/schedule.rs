//! What happens next: delay lines, and a timing wheel for the rest.
//!
//! Design notes.
//! 1. *Order.* Events are handled in the order of `(time, kind, entity)`. Nothing depends on when an
//!    event was scheduled. An event may schedule others for the present, but only for its own node;
//!    so every node sees the same order for any number of partitions and threads. Two events with the
//!    same three are the same event: handlers treat the second as a repetition.
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

/// One thing to happen: time, kind, entity and payload, most significant first, so that events
/// compare as the numbers they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Event(u128);

const KIND_SHIFT: u32 = 60;
const ENTITY_SHIFT: u32 = 32;

impl Event {
    /// The largest entity number.
    pub(crate) const MAX_ENTITY: u32 = (1 << 28) - 1;
    /// Later than every event.
    const NEVER: Self = Self(u128::MAX);

    #[inline]
    pub(crate) fn new(at: Instant, kind: u32, entity: u32, payload: u32) -> Self {
        debug_assert!(entity <= Self::MAX_ENTITY);
        let what = u64::from(kind) << KIND_SHIFT | u64::from(entity) << ENTITY_SHIFT | u64::from(payload);
        Self(u128::from(at.as_ps()) << 64 | u128::from(what))
    }
    /// When.
    #[inline]
    pub(crate) fn time(self) -> u64 {
        (self.0 >> 64) as u64
    }
    /// What.
    #[inline]
    pub(crate) fn kind(self) -> u32 {
        (self.0 as u64 >> KIND_SHIFT) as u32
    }
    /// To whom.
    #[inline]
    pub(crate) fn entity(self) -> u32 {
        (self.0 as u64 >> ENTITY_SHIFT) as u32 & Self::MAX_ENTITY
    }
    /// A handle for the handler.
    #[inline]
    pub(crate) fn payload(self) -> u32 {
        self.0 as u32
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
    lines: [DelayLine; LINES],
    /// The line of the event that was popped last.
    latest: usize,
    /// Delay of each line in use; the first is the wheel's and means nothing.
    delays: Vec<u64>,
    wheel: Wheel,
}

/// The first event of a line; [`Event::NEVER`] if there is none.
#[derive(Clone, Copy)]
struct Head {
    event: Event,
    line: usize,
}

/// The most lines: the wheel and fifteen delays.
const LINES: usize = 16;

impl Schedule {
    /// A schedule without delay lines; its wheel has `count` (a power of two, at least 4096) buckets
    /// of `2^shift` picoseconds.
    pub(crate) fn new(shift: u32, count: usize) -> Self {
        Self {
            heads: std::array::from_fn(|line| Head { event: Event::NEVER, line }),
            lines: std::array::from_fn(|_| DelayLine::new()),
            latest: 0,
            delays: vec![0],
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
        if let Some(line) = (1..self.delays.len()).find(|&line| self.delays[line] == delay) {
            return Line(line as u8);
        }
        if self.delays.len() == LINES {
            return Line::WHEEL;
        }
        self.delays.push(delay);
        Line((self.delays.len() - 1) as u8)
    }

    /// Adds an event, not earlier than the last one popped.
    #[inline(never)]
    pub(crate) fn push(&mut self, event: Event) {
        self.wheel.push(event);
        self.move_up(0, event);
    }

    /// Adds an event that lies the line's delay ahead of the last one popped.
    #[inline]
    pub(crate) fn push_line(&mut self, line: Line, event: Event) {
        let at = line.0 as usize & (LINES - 1);
        if at == 0 {
            self.push(event);
        } else if self.lines[at].push(event) {
            self.move_up(at, event);
        }
    }

    /// `event` is now the first of its line, unless another one is.
    #[inline(never)]
    fn move_up(&mut self, line: usize, event: Event) {
        let Some(mut at) = self.heads.iter().position(|head| head.line == line) else { return };
        if event >= self.heads[at].event {
            return;
        }
        while at > 0 && self.heads[at - 1].event > event {
            self.heads[at] = self.heads[at - 1];
            at -= 1;
        }
        self.heads[at] = Head { event, line };
    }

    /// The time of the next event; `None` if there is none.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let event = self.heads[0].event;
        (event != Event::NEVER).then(|| event.time())
    }

    /// Takes the next event, if it is earlier than `limit`.
    #[inline(always)]
    pub(crate) fn pop_before(&mut self, limit: u64) -> Option<Event> {
        let Head { event, line } = self.heads[0];
        if event.time() >= limit {
            return None;
        }
        let line = line & (LINES - 1);
        let next = if line == 0 { self.wheel.pop_and_look() } else { self.lines[line].pop_and_look() };
        self.latest = line;
        // Where the line's next event belongs among the heads.
        let mut at = 0;
        while at + 1 < LINES && self.heads[at + 1].event < next {
            self.heads[at] = self.heads[at + 1];
            at += 1;
        }
        self.heads[at] = Head { event: next, line };
        Some(event)
    }
}

impl Schedule {
    /// The event that comes `ahead` places after the next one on the line that was popped last, if
    /// there is one.
    #[inline(always)]
    pub(crate) fn upcoming(&self, ahead: usize) -> Option<Event> {
        let line = &self.lines[self.latest & (LINES - 1)];
        let mask = line.ring.len() - 1;
        let waiting = line.tail.wrapping_sub(line.head) & mask;
        (waiting > ahead).then(|| line.ring[line.head.wrapping_add(ahead) & mask])
    }

    /// Brings what follows on the line that was popped last into the cache.
    #[inline(always)]
    pub(crate) fn prefetch_upcoming(&self, ahead: usize) {
        let line = &self.lines[self.latest & (LINES - 1)];
        super::prefetch(&line.ring, (line.head.wrapping_add(ahead) & (line.ring.len() - 1)) as u32);
    }

    /// Everything that is lined up.
    pub(crate) fn lined_up(&self) -> impl Iterator<Item = Event> {
        self.lines.iter().flat_map(|line| {
            let mask = line.ring.len() - 1;
            let waiting = line.tail.wrapping_sub(line.head) & mask;
            (0..waiting).map(move |n| line.ring[(line.head + n) & mask])
        })
    }
}

/// Events that take equally long: first in, first out.
struct DelayLine {
    /// A ring; its length is a power of two. Never full: an empty ring has its ends together.
    ring: Box<[Event]>,
    head: usize,
    tail: usize,
    /// Events of one time may be out of order up to this time, except those of the time `sorted`.
    unsorted_until: u64,
    sorted: u64,
}

impl DelayLine {
    fn new() -> Self {
        // A valid event, so that the prefetcher may look at any place.
        Self { ring: vec![Event(0); 16].into(), head: 0, tail: 0, unsorted_until: 0, sorted: 0 }
    }

    /// Returns whether it is the first now.
    #[inline]
    fn push(&mut self, event: Event) -> bool {
        let mask = self.ring.len() - 1;
        let was_empty = self.tail == self.head;
        let before = self.ring[self.tail.wrapping_sub(1) & mask];
        self.ring[self.tail & mask] = event;
        self.tail = (self.tail + 1) & mask;
        // The place before an only event still holds one that has been taken, which is earlier.
        if event < before {
            return self.sort_last();
        }
        if self.tail == self.head {
            self.grow();
        }
        was_empty
    }

    /// The last event is smaller than the one before it, which has the same time. If it belongs to the
    /// events that come next, it is moved to its place among them; else they are sorted when their
    /// turn comes, which is cheaper when thousands of hosts act at once.
    #[inline(never)]
    fn sort_last(&mut self) -> bool {
        if self.tail == self.head {
            self.grow();
        }
        let mask = self.ring.len() - 1;
        let mut at = self.tail.wrapping_sub(1) & mask;
        let event = self.ring[at];
        debug_assert_eq!(
            self.ring[at.wrapping_sub(1) & mask].time(),
            event.time(),
            "what goes in later comes out later"
        );
        if event.time() != self.ring[self.head].time() {
            self.unsorted_until = event.time();
            return false;
        }
        while at != self.head {
            let before = at.wrapping_sub(1) & mask;
            if self.ring[before] <= event {
                break;
            }
            self.ring[at] = self.ring[before];
            at = before;
        }
        self.ring[at] = event;
        at == self.head
    }

    /// Takes the first event, and looks at the one after it.
    #[inline(always)]
    fn pop_and_look(&mut self) -> Event {
        let mask = self.ring.len() - 1;
        self.head = (self.head + 1) & mask;
        if self.head == self.tail {
            return Event::NEVER;
        }
        let next = self.ring[self.head & mask];
        if next.time() <= self.unsorted_until && next.time() != self.sorted {
            return self.sort_first();
        }
        next
    }

    /// Sorts the events that have the time of the first one, and returns the first.
    #[inline(never)]
    fn sort_first(&mut self) -> Event {
        let mask = self.ring.len() - 1;
        let time = self.ring[self.head].time();
        let waiting = self.tail.wrapping_sub(self.head) & mask;
        let same = (1..waiting).take_while(|n| self.ring[(self.head + n) & mask].time() == time).count() + 1;
        if self.head + same <= self.ring.len() {
            self.ring[self.head..self.head + same].sort_unstable();
        } else {
            let mut events: Vec<Event> = (0..same).map(|n| self.ring[(self.head + n) & mask]).collect();
            events.sort_unstable();
            for (n, event) in events.into_iter().enumerate() {
                self.ring[(self.head + n) & mask] = event;
            }
        }
        self.sorted = time;
        self.ring[self.head]
    }

    #[cold]
    fn grow(&mut self) {
        let len = self.ring.len();
        let mut larger = vec![Event(0); len * 2];
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
    far: BinaryHeap<Reverse<Event>>,
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
        let bucket = event.time() >> self.shift;
        let ahead = bucket.wrapping_sub(self.open_bucket);
        if ahead.wrapping_sub(1) < self.heads.len() as u64 - 1 {
            self.link(bucket, event);
        } else if bucket <= self.open_bucket {
            // The open bucket, sorted already.
            let at = self.open.partition_point(|other| *other > event);
            self.open.insert(at, event);
        } else {
            self.far.push(Reverse(event));
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

    /// The first event. Opens nothing: a bucket that is opened too early would have to be kept sorted
    /// while earlier events are still being added.
    fn look(&self) -> Event {
        if let Some(event) = self.open.last() {
            return *event;
        }
        let far = self.far.peek().map_or(Event::NEVER, |Reverse(event)| *event);
        let Some(bucket) = self.next_filled() else { return far };
        let mut first = far;
        let mut index = self.heads[bucket as usize & (self.heads.len() - 1)];
        while index != NONE {
            let node = &self.nodes[index as usize];
            first = first.min(node.event);
            index = node.next;
        }
        first
    }

    /// Takes the first event, and looks at the one after it.
    #[inline(never)]
    fn pop_and_look(&mut self) -> Event {
        self.pop();
        self.look()
    }

    fn pop(&mut self) {
        if self.open.is_empty() {
            self.advance();
        }
        self.open.pop();
    }

    /// Opens the next bucket that holds something.
    fn advance(&mut self) {
        let near = self.next_filled();
        let far = self.far.peek().map(|Reverse(event)| event.time() >> self.shift);
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
        while let Some(&Reverse(event)) = self.far.peek() {
            let bucket = event.time() >> self.shift;
            if bucket - self.open_bucket >= self.heads.len() as u64 {
                break;
            }
            self.far.pop();
            if bucket == self.open_bucket { self.open.push(event) } else { self.link(bucket, event) }
        }
        if self.open.len() > 1 {
            self.open.sort_unstable_by_key(|&event| Reverse(event));
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

    /// Events at arbitrary times, some of them on lines, come out in order.
    #[test]
    fn pops_in_the_order_of_a_heap() {
        for (seed, reach) in [(1, 10), (2, 5_000), (3, 4_000_000), (4, 900_000_000), (5, 1 << 40)] {
            let mut rng = Rng::stream(seed, Domain::Impairment, 0);
            let mut schedule = Schedule::new(8, 4096);
            let delays = [reach / 7 + 1, reach / 3 + 2, reach + 3];
            let lines = delays.map(|delay| schedule.line_for(delay));
            let mut model = BinaryHeap::new();
            let mut now = 0;
            for round in 0..20_000 {
                for _ in 0..if round < 15_000 { rng.below(3) } else { 0 } {
                    let (line, time) = match rng.below(4) {
                        0 => (Line::WHEEL, now + if rng.below(4) == 0 { 0 } else { rng.below(reach) }),
                        n => (lines[n as usize - 1], now + delays[n as usize - 1]),
                    };
                    let (kind, entity) = (rng.below(6) as u32, rng.below(1 << 28) as u32);
                    let event = Event::new(Instant::from_ps(time), kind, entity, round);
                    model.push(Reverse(event));
                    schedule.push_line(line, event);
                }
                let first = model.peek().map(|Reverse(event)| *event);
                assert_eq!(schedule.next_time(), first.map(Event::time));
                let limit = now + rng.below(reach * 2);
                let expected = first.filter(|event| event.time() < limit);
                assert_eq!(schedule.pop_before(limit), expected, "seed {seed}, round {round}");
                if let Some(event) = expected {
                    now = event.time();
                    model.pop();
                }
            }
            while let Some(Reverse(expected)) = model.pop() {
                assert_eq!(schedule.pop_before(u64::MAX), Some(expected));
            }
            assert_eq!(schedule.next_time(), None);
        }
    }

    /// Many events at the same few times, as when thousands of hosts begin at once.
    #[test]
    fn events_of_one_time_come_in_the_order_of_kind_and_entity() {
        let mut rng = Rng::stream(9, Domain::Impairment, 0);
        let mut schedule = Schedule::new(8, 4096);
        let lines = [1_000, 3_000].map(|delay| (schedule.line_for(delay), delay));
        let mut model = BinaryHeap::new();
        for n in 0..200 {
            schedule.push(Event::new(Instant::ZERO, 0, n, n));
            model.push(Reverse(Event::new(Instant::ZERO, 0, n, n)));
        }
        for round in 0..50_000 {
            let Some(Reverse(expected)) = model.pop() else { break };
            assert_eq!(schedule.pop_before(u64::MAX), Some(expected), "round {round}");
            for (line, delay) in lines {
                if round < 40_000 && rng.below(100) < 50 {
                    let at = Instant::from_ps(expected.time() + delay);
                    let event = Event::new(at, rng.below(6) as u32, rng.below(1 << 28) as u32, round);
                    model.push(Reverse(event));
                    schedule.push_line(line, event);
                }
            }
        }
        assert!(model.is_empty());
    }

    #[test]
    fn an_event_is_made_of_its_parts() {
        let event = Event::new(Instant::from_ps(u64::MAX - 1), 5, Event::MAX_ENTITY, u32::MAX);
        let parts = (event.time(), event.kind(), event.entity(), event.payload());
        assert_eq!(parts, (u64::MAX - 1, 5, Event::MAX_ENTITY, u32::MAX));
        assert!(event < Event::NEVER);
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
