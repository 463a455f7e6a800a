//! The ports of a switch that will be free soon, in order.
//!
//! A list, sorted by time. A port that begins to send is most often the one that will be done last, or, with a short
//! packet, the first: putting it in its place then moves nothing. The list wanders through its table as the first leave
//! and others come behind the last; at the end of the table, it is moved to the beginning.

use super::table::Table;

/// No time.
pub(crate) const NEVER: u64 = u64::MAX;

/// A time and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    time: u64,
    who: u32,
}

impl Entry {
    /// Before all others, and behind them.
    const FIRST: Self = Self { time: 0, who: 0 };
    const LAST: Self = Self { time: NEVER, who: 0 };
}

/// Times of numbered things, each of which has one at most; of equal ones the lowest number comes first.
pub(crate) struct Pending {
    /// From `head` to `end`. Before them stands one that is earlier, behind them one whose time is [`NEVER`].
    list: Table<Entry>,
    head: u32,
    end: u32,
    /// The earliest time.
    first: u64,
    in_order: bool,
}

/// How often a list can be moved by its length before it comes to the end of its table.
const ROUNDS: usize = 4;

impl Pending {
    /// For things numbered below `count`, none of which has a time.
    pub(crate) fn new(count: u32) -> Self {
        let mut list = Table::of(ROUNDS * (count as usize + 2), || Entry::LAST);
        list[0] = Entry::FIRST;
        Self { list, head: 1, end: 1, first: NEVER, in_order: true }
    }

    /// The earliest time.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.first
    }

    /// Whose time is the earliest. There must be one.
    #[inline(always)]
    pub(crate) fn whose_is_first(&self) -> u32 {
        debug_assert!(self.in_order, "the first is the earliest");
        self.list[self.head].who
    }

    /// Takes out whose time is the earliest. There must be one.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> u32 {
        let who = self.whose_is_first();
        self.head += 1;
        self.first = self.list[self.head].time;
        who
    }

    /// Gives whose time is the earliest a later one. There must be one.
    #[inline(always)]
    pub(crate) fn postpone_first(&mut self, time: u64) {
        let who = self.whose_is_first();
        self.head += 1;
        self.insert(Entry { time, who });
        self.first = self.list[self.head].time;
    }

    /// Gives `who`, which has none, the time `time`.
    #[inline(always)]
    pub(crate) fn push(&mut self, who: u32, time: u64) {
        debug_assert!(self.in_order, "there is an order to keep");
        let entry = Entry { time, who };
        if time < self.first {
            self.first = time;
            if self.head > 1 {
                self.head -= 1;
                self.list[self.head] = entry;
                return;
            }
        }
        self.insert(entry);
    }

    /// Puts an entry in its place, from the end on.
    #[inline(always)]
    fn insert(&mut self, entry: Entry) {
        let mut place = self.end;
        while self.list[place - 1] > entry {
            self.list[place] = self.list[place - 1];
            place -= 1;
        }
        self.list[place] = entry;
        self.end += 1;
        if self.end as usize == self.list.len() {
            self.return_to_the_beginning();
        }
        self.list[self.end].time = NEVER;
    }

    #[cold]
    #[inline(never)]
    fn return_to_the_beginning(&mut self) {
        self.list.copy_within(self.head as usize..self.end as usize, 1);
        (self.head, self.end) = (1, 1 + self.end - self.head);
    }

    /// Takes the time of `who` away; returns whether it had one.
    pub(crate) fn forget(&mut self, who: u32) -> bool {
        self.put_in_order();
        let Some(n) = self.whose().position(|other| other == who) else { return false };
        let place = self.head as usize + n;
        // That behind the last entry moves, too.
        self.list.copy_within(place + 1..=self.end as usize, place);
        self.end -= 1;
        self.first = self.list[self.head].time;
        true
    }

    /// Forgets all times.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        (self.head, self.end) = (1, 1);
        self.first = NEVER;
        self.list[1].time = NEVER;
    }

    /// Gives `who`, which has none, the time `time`, without an eye on the order. To be [cleared](Self::clear) before
    /// the first of these, and [put in order](Self::put_in_order) before anything else.
    #[inline(always)]
    pub(crate) fn append(&mut self, who: u32, time: u64) {
        self.list[self.end] = Entry { time, who };
        self.end += 1;
        self.list[self.end].time = NEVER;
        self.first = self.first.min(time);
        self.in_order = false;
    }

    /// Puts in order what has been [appended](Self::append).
    #[inline(always)]
    pub(crate) fn put_in_order(&mut self) {
        if !self.in_order {
            let list: &mut [Entry] = &mut self.list;
            list[self.head as usize..self.end as usize].sort_unstable();
            self.in_order = true;
        }
    }

    /// Everything that has a time.
    #[inline(always)]
    pub(crate) fn whose(&self) -> impl Iterator<Item = u32> {
        (self.head..self.end).map(|place| self.list[place].who)
    }

    /// Fetches what [`Pending::first`] and [`Pending::push`] will need.
    #[inline]
    pub(crate) fn prefetch(&self) {
        super::prefetch(&self.list, self.head);
        super::prefetch(&self.list, self.end);
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;

    #[test]
    fn what_is_appended_can_be_put_in_order() {
        let mut pending = Pending::new(5);
        pending.push(0, 9);
        pending.clear();
        for (who, time) in [(3, 30), (1, 10), (4, 30), (0, 20)] {
            pending.append(who, time);
        }
        assert_eq!(pending.first(), 10);
        assert!(pending.whose().eq([3, 1, 4, 0]));
        pending.put_in_order();
        pending.push(2, 25);
        assert!(std::iter::from_fn(|| (pending.first() != NEVER).then(|| pending.pop())).eq([1, 0, 2, 3, 4]));
    }

    #[test]
    fn is_in_order() {
        for count in [1, 2, 3, 8, 13, 64] {
            let mut rng = Rng::stream(u64::from(count), Domain::Impairment, 0);
            let mut pending = Pending::new(count);
            let mut model: Vec<Option<u64>> = vec![None; count as usize];
            for round in 0..5_000 {
                let n = rng.below(u64::from(count)) as u32;
                if rng.below(8) == 0 {
                    assert_eq!(pending.forget(n), model[n as usize].take().is_some());
                } else if model[n as usize].is_none() {
                    let time = round + rng.below(50);
                    pending.push(n, time);
                    model[n as usize] = Some(time);
                } else {
                    let earliest = model.iter().zip(0..).filter_map(|(time, who)| time.map(|time| (time, who))).min();
                    let (time, who) = earliest.expect("some");
                    assert_eq!((pending.first(), pending.pop()), (time, who));
                    model[who as usize] = None;
                }
                if model.iter().all(Option::is_none) {
                    assert_eq!(pending.first(), NEVER);
                }
            }
        }
    }
}
