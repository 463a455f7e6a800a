//! Ports of a switch that will be free soon, in order of time.
//!
//! The list is sorted by time. A port that begins to send is mostly the one that will be free last, or, with a short
//! packet, first: inserting it then moves no other entry. The list advances through its tables as the first entries
//! leave and others are added at the end; at the end of the tables, it is moved to their beginning. While a switch is
//! visited, its list lies in a scratch buffer ([`Scratch`]) that all switches share and that stays in the cache: it has
//! space to advance.

use selvedge_memory::Table;

/// Marker of no time, in picoseconds.
pub const NEVER: u64 = u64::MAX;

/// Times of numbered items, at most one per item. Of equal times, the item with the lowest number comes first.
pub struct BusyPorts {
    /// Times, from `head` to `end`; [`NEVER`] everywhere behind these.
    times: Table<u64>,
    /// Item of each time.
    ports: Table<u32>,
    head: u32,
    end: u32,
    /// Earliest time.
    first: u64,
    in_order: bool,
}

/// Scratch buffer: tables for the list of the switch that is visited. They are longer than the switch's own tables, so
/// that either hold the whole list.
pub struct Scratch {
    /// Times; [`NEVER`] everywhere but in front of the first entry.
    times: Table<u64>,
    ports: Table<u32>,
}

/// Returns empty tables with `room` entries. The entry in front of the list is earlier than all that follow.
fn tables(room: usize) -> (Table<u64>, Table<u32>) {
    let mut times = Table::of(room, || NEVER);
    times[0] = 0;
    (times, Table::of(room, || 0))
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Scratch {
    /// Number of times that a list can advance by its length before it reaches the end of the tables.
    const ROUNDS: u32 = 8;

    /// Creates a buffer without space.
    pub const fn new() -> Self {
        Self { times: Table::new(), ports: Table::new() }
    }

    /// Enlarges the tables for lists of items numbered below `count`.
    pub fn make_room_for(&mut self, count: u32) {
        let room = (Self::ROUNDS * (count + 2)) as usize;
        if self.times.len() < room {
            (self.times, self.ports) = tables(room);
        }
    }
}

impl BusyPorts {
    /// Creates an empty list of items numbered below `count`.
    pub fn new(count: u32) -> Self {
        let (times, ports) = tables(count as usize + 2);
        Self { times, ports, head: 1, end: 1, first: NEVER, in_order: true }
    }

    /// Moves the list to the beginning of the tables in the scratch buffer and exchanges these with its own tables:
    /// once before a visit, and once more, in the other direction, after it.
    #[inline]
    pub fn change_places(&mut self, scratch: &mut Scratch) {
        let mut end = 1;
        for place in self.head..self.end {
            (scratch.times[end], scratch.ports[end]) = (self.times[place], self.ports[place]);
            self.times[place] = NEVER;
            end += 1;
        }
        if self.head > 1 {
            (*self.times)[1..self.head as usize].fill(NEVER);
        }
        std::mem::swap(&mut self.times, &mut scratch.times);
        std::mem::swap(&mut self.ports, &mut scratch.ports);
        (self.head, self.end) = (1, end);
    }

    /// Returns the earliest time.
    #[inline(always)]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the item whose time is the earliest. The list must not be empty.
    #[inline(always)]
    pub fn first_port(&self) -> u32 {
        debug_assert!(self.in_order && self.head < self.end, "the first is the earliest");
        self.ports[self.head]
    }

    /// Removes the item whose time is the earliest and returns it. The list must not be empty.
    #[inline(always)]
    pub fn pop(&mut self) -> u32 {
        let who = self.first_port();
        self.head += 1;
        self.first = self.times[self.head];
        who
    }

    /// Gives item `who`, whose time is the earliest, a later time.
    #[inline(always)]
    pub fn postpone_first(&mut self, who: u32, time: u64) {
        debug_assert!(who == self.first_port() && time > self.first, "later than the earliest");
        self.head += 1;
        self.insert(who, time);
        self.first = self.times[self.head];
    }

    /// Gives item `who`, which has no time, the time `time`.
    #[inline(always)]
    pub fn push(&mut self, who: u32, time: u64) {
        debug_assert!(self.in_order, "there is an order to keep");
        if time < self.first {
            self.first = time;
            if self.head > 1 {
                self.head -= 1;
                (self.times[self.head], self.ports[self.head]) = (time, who);
                return;
            }
        }
        self.insert(who, time);
    }

    /// Inserts the time of item `who` in its place.
    #[inline(always)]
    fn insert(&mut self, who: u32, time: u64) {
        let end = self.end;
        // In an empty list, the entry before holds an old time or zero.
        if time > self.times[end - 1] {
            (self.times[end], self.ports[end]) = (time, who);
        } else {
            self.insert_before_the_last(who, time);
        }
        self.lengthen();
    }

    #[inline(never)]
    fn insert_before_the_last(&mut self, who: u32, time: u64) {
        let mut place = self.end;
        while place > self.head && (self.times[place - 1], self.ports[place - 1]) > (time, who) {
            (self.times[place], self.ports[place]) = (self.times[place - 1], self.ports[place - 1]);
            place -= 1;
        }
        (self.times[place], self.ports[place]) = (time, who);
    }

    /// Makes the list one entry longer.
    #[inline(always)]
    fn lengthen(&mut self) {
        self.end += 1;
        // The table must have space for a [`NEVER`] behind the last entry, too.
        if self.end as usize == self.times.len() {
            self.return_to_the_beginning();
        }
    }

    #[cold]
    #[inline(never)]
    fn return_to_the_beginning(&mut self) {
        let list = self.head as usize..self.end as usize;
        self.times.copy_within(list.clone(), 1);
        self.ports.copy_within(list, 1);
        (self.head, self.end) = (1, 1 + self.end - self.head);
        self.times.iter_mut().skip(self.end as usize).for_each(|time| *time = NEVER);
    }

    /// Removes the time of item `who`; returns whether it had one.
    pub fn forget(&mut self, who: u32) -> bool {
        self.put_in_order();
        let Some(n) = self.ports().position(|other| other == who) else { return false };
        let (place, end) = (self.head as usize + n, self.end as usize);
        // The [`NEVER`] behind the last entry moves, too.
        self.times.copy_within(place + 1..=end, place);
        self.ports.copy_within(place + 1..end, place);
        self.end -= 1;
        self.first = self.times[self.head];
        true
    }

    /// Removes all times.
    #[inline(always)]
    pub fn clear(&mut self) {
        (*self.times)[1..self.end as usize].fill(NEVER);
        (self.head, self.end) = (1, 1);
        self.first = NEVER;
    }

    /// Gives item `who`, which has no time, the time `time`, without keeping the order. The list must be
    /// [cleared](Self::clear) before the first such call, and [put in order](Self::put_in_order) before any other use.
    #[inline(always)]
    pub fn append(&mut self, who: u32, time: u64) {
        (self.times[self.end], self.ports[self.end]) = (time, who);
        self.lengthen();
        self.first = self.first.min(time);
        self.in_order = false;
    }

    /// Sorts the times that have been [appended](Self::append).
    #[inline(always)]
    pub fn put_in_order(&mut self) {
        if !self.in_order {
            self.sort();
        }
    }

    #[inline(never)]
    fn sort(&mut self) {
        let entries = (self.head..self.end).map(|place| (self.times[place], self.ports[place]));
        let mut entries: Vec<_> = entries.collect();
        entries.sort_unstable();
        for (place, (time, who)) in (self.head..).zip(entries) {
            (self.times[place], self.ports[place]) = (time, who);
        }
        self.in_order = true;
    }

    /// Returns all items that have a time.
    #[inline(always)]
    pub fn ports(&self) -> impl Iterator<Item = u32> {
        (self.head..self.end).map(|place| self.ports[place])
    }

    /// Prefetches the entries that [`BusyPorts::first`] and [`BusyPorts::push`] will need.
    #[inline]
    pub fn prefetch(&self) {
        selvedge_prefetch::prefetch(&self.times, self.head);
        selvedge_prefetch::prefetch(&self.ports, self.head);
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;

    #[test]
    fn what_is_appended_can_be_put_in_order() {
        let mut busy_ports = BusyPorts::new(5);
        busy_ports.push(0, 9);
        busy_ports.clear();
        for (who, time) in [(3, 30), (1, 10), (4, 30), (0, 20)] {
            busy_ports.append(who, time);
        }
        assert_eq!(busy_ports.first(), 10);
        assert!(busy_ports.ports().eq([3, 1, 4, 0]));
        busy_ports.put_in_order();
        busy_ports.push(2, 25);
        assert!(std::iter::from_fn(|| (busy_ports.first() != NEVER).then(|| busy_ports.pop())).eq([1, 0, 2, 3, 4]));
    }

    #[test]
    fn is_in_order() {
        for count in [1, 2, 3, 8, 13, 64] {
            let mut rng = Rng::stream(u64::from(count), Domain::Impairment, 0);
            let mut busy_ports = BusyPorts::new(count);
            let mut scratch = Scratch::new();
            scratch.make_room_for(count);
            let mut model: Vec<Option<u64>> = vec![None; count as usize];
            for round in 0..5_000 {
                let n = rng.below(u64::from(count)) as u32;
                // The list lies in the scratch buffer at some times, and in its own tables at others.
                if rng.below(16) == 0 {
                    busy_ports.change_places(&mut scratch);
                }
                if rng.below(8) == 0 {
                    assert_eq!(busy_ports.forget(n), model[n as usize].take().is_some());
                } else if model[n as usize].is_none() {
                    let time = round + rng.below(50);
                    busy_ports.push(n, time);
                    model[n as usize] = Some(time);
                } else {
                    let earliest = model.iter().zip(0..).filter_map(|(time, who)| time.map(|time| (time, who))).min();
                    let (time, who) = earliest.expect("the model holds a time");
                    assert_eq!((busy_ports.first(), busy_ports.pop()), (time, who));
                    model[who as usize] = None;
                }
                if model.iter().all(Option::is_none) {
                    assert_eq!(busy_ports.first(), NEVER);
                }
            }
        }
    }
}
