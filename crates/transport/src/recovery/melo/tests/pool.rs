//! The pool and its bitmaps, compared with plain bitmaps: under any operations no block is lost or used twice, and
//! every bit has the value that was set.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use proptest::prelude::*;
use selvedge_units::Seq;

use crate::recovery::melo::linked_bitmap::{Cursor, LinkedBitmap, Set};
use crate::recovery::melo::pool::BitsPool;

/// An operation on one connection.
#[derive(Clone, Copy, Debug)]
enum Operation {
    /// A packet arrives this far beyond the last one.
    Beyond(u64),
    /// A packet arrives this far behind the front.
    Late(u64),
    /// The packet at the front arrives.
    Front,
    /// The front advances by this many packets, arrived or not, after an acknowledgement.
    Advance(u64),
    /// The next clear bit is searched for.
    Search,
    /// All packets are removed after a timeout.
    Clear,
    /// The connection leaves the chip, or comes back.
    Swap,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0u64..30).prop_map(Operation::Beyond),
        4 => (0u64..200).prop_map(Operation::Late),
        3 => Just(Operation::Front),
        2 => (0u64..60).prop_map(Operation::Advance),
        2 => Just(Operation::Search),
        1 => Just(Operation::Clear),
        2 => Just(Operation::Swap),
    ]
}

/// A bitmap in the pool, and its model.
#[derive(Default)]
struct Connection {
    bitmap: LinkedBitmap,
    cursor: Cursor,
    /// The bits of the connection while it is off the chip.
    away: Option<Box<[u64]>>,
    first: u64,
    high: u64,
    set: BTreeSet<u64>,
    searched: u64,
}

impl Connection {
    fn apply(&mut self, pool: &mut BitsPool, operation: Operation) {
        if let Some(bits) = self.away.take() {
            if !self.bitmap.load(pool, &bits) {
                assert!(bits.len() as u32 > pool.free(), "there was room");
                self.away = Some(bits);
                return;
            }
            // The blocks have changed, so the search starts again.
            (self.cursor, self.searched) = (Cursor::default(), self.first);
        }
        match operation {
            Operation::Beyond(gap) => self.beyond(pool, self.high + gap),
            Operation::Late(ahead) if self.first + ahead < self.high => self.late(pool, self.first + ahead),
            Operation::Front if self.first < self.high => self.front(pool),
            Operation::Late(_) | Operation::Front => {}
            Operation::Advance(by) => {
                let to = self.first + by;
                let left = self.set.range(..to).count() as u64;
                assert_eq!(self.bitmap.advance(pool, Seq::new(to)), left);
                self.leave(to);
            }
            Operation::Search => {
                let found = (self.searched.max(self.first)..self.high).find(|seq| !self.set.contains(seq));
                assert_eq!(self.bitmap.next_clear(pool, &mut self.cursor), found.map(Seq::new));
                self.searched = found.map_or(self.high, |found| found + 1);
            }
            Operation::Clear => {
                self.bitmap.clear(pool);
                self.set.clear();
                (self.high, self.searched, self.cursor) = (self.first, self.first, Cursor::default());
            }
            Operation::Swap => self.away = Some(self.bitmap.unload(pool)),
        }
    }

    fn beyond(&mut self, pool: &mut BitsPool, seq: u64) {
        let (held, block) = (self.bitmap.blocks(pool), pool.block());
        let end = seq / block + 1;
        let needed = if held == 0 { end - self.first / block } else { end - (self.high - 1) / block - 1 };
        let has_room = self.bitmap.has_room(pool, Seq::new(seq + 1));
        assert_eq!(has_room, needed <= u64::from(pool.free()), "{needed} blocks");
        if has_room {
            assert_eq!(self.bitmap.push(pool, Seq::new(seq), false), seq - self.high);
            assert_eq!(self.bitmap.push(pool, Seq::new(seq + 1), true), 1);
            self.set.insert(seq);
            self.high = seq + 1;
        }
    }

    fn late(&mut self, pool: &mut BitsPool, seq: u64) {
        let block = pool.block();
        let is_reachable = [self.first, self.high - 1].map(|end| end / block).contains(&(seq / block));
        let expected = match (is_reachable, self.set.contains(&seq)) {
            (false, _) => Set::Middle,
            (true, true) => Set::Already,
            (true, false) => Set::Fresh,
        };
        assert_eq!(self.bitmap.set(pool, Seq::new(seq)), expected);
        if is_reachable {
            self.set.insert(seq);
        }
    }

    fn front(&mut self, pool: &mut BitsPool) {
        self.late(pool, self.first);
        let end = (self.first..).find(|seq| !self.set.contains(seq)).expect("the set is finite");
        assert_eq!(self.bitmap.take_run(pool), end - self.first);
        self.leave(end);
    }

    fn leave(&mut self, first: u64) {
        self.set = self.set.split_off(&first);
        (self.first, self.high) = (first, self.high.max(first));
    }

    fn check(&self, pool: &BitsPool) {
        if self.away.is_some() {
            return;
        }
        assert_eq!((self.bitmap.first().index(), self.bitmap.high().index()), (self.first, self.high));
        for seq in self.first..self.high {
            assert_eq!(self.bitmap.contains(pool, Seq::new(seq)), self.set.contains(&seq), "#{seq}");
        }
    }
    fn held(&self, pool: &BitsPool) -> Vec<u16> {
        if self.away.is_some() { Vec::new() } else { self.bitmap.chain(pool) }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_block_is_ever_lost_or_shared(
        operations in prop::collection::vec((0usize..5, operation()), 1..300),
        blocks in prop_oneof![Just(1), Just(7), Just(128), Just(320)],
        block in prop_oneof![Just(8), Just(16), Just(64)],
    ) {
        let mut pool = BitsPool::new(blocks, block);
        let mut connections: Vec<Connection> = (0..5).map(|_| Connection::default()).collect();
        let mut peak = 0;
        for (which, operation) in operations {
            connections[which].apply(&mut pool, operation);
            let held: Vec<u16> = connections.iter().flat_map(|connection| connection.held(&pool)).collect();
            prop_assert_eq!(held.len() as u32, pool.in_use());
            let mut all: Vec<u16> = held.into_iter().chain(pool.stack()).collect();
            all.sort_unstable();
            prop_assert!(all.iter().copied().map(u32::from).eq(0..blocks), "each block is in one place: {:?}", all);
            connections.iter().for_each(|connection| connection.check(&pool));
            peak = peak.max(pool.in_use());
            prop_assert!(pool.peak() >= peak);
        }
        for connection in &mut connections {
            if connection.away.is_none() {
                connection.bitmap.clear(&mut pool);
            }
        }
        prop_assert_eq!(pool.free(), blocks);
    }
}
