//! The bitmap of one connection: a linked list of blocks of a [`BitsPool`], accessed at both ends only (section 3.2.3).
//!
//! 1. The bitmap covers the packets from `first` (RCV.NXT) to before `high` (one past RCV.HIGH). `start` (start_ptr) is
//!    the block that holds `first`, `end` (end_ptr) the one that holds the last packet; a packet's bit is bit
//!    `seq mod b` of its block of `b` bits. A bitmap that covers no packet has no block.
//! 2. The bitmap grows at the end and shrinks at the front. Bits are set in the last and the first block. Every other
//!    block is the middle, which cannot be reached without walking the list.
//! 3. A block returns to the pool when `first` leaves it.

use alloc::boxed::Box;

use selvedge_units::Seq;

use super::pool::{BitsPool, Block};

/// The bitmap of one connection. Its blocks belong to the pool, so the bitmap must be emptied before it is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkedBitmap {
    first: Seq,
    high: Seq,
    start: Block,
    end: Block,
}

/// The result of setting a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Set {
    /// The bit was clear.
    Fresh,
    /// The bit was set already.
    Already,
    /// The bit lies in the middle and was not set.
    Middle,
}

/// The position where the search for clear bits continues: the only pointer into the middle that a sender keeps.
///
/// `block` holds the packet before `at`, or the first packet when `at` is that one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    at: Seq,
    block: Block,
}

impl LinkedBitmap {
    /// Returns the first packet covered.
    #[inline]
    pub(crate) fn first(&self) -> Seq {
        self.first
    }
    /// Returns one past the last packet covered.
    #[inline]
    pub(crate) fn high(&self) -> Seq {
        self.high
    }
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.high
    }
    /// Returns the number of blocks of the bitmap.
    #[inline]
    pub(crate) fn blocks(&self, pool: &BitsPool) -> u64 {
        if self.is_empty() { 0 } else { pool.block_of(self.last()) - pool.block_of(self.first) + 1 }
    }
    fn last(&self) -> Seq {
        Seq::new(self.high.index() - 1)
    }

    /// Returns whether the pool has enough blocks to cover every packet before `until`.
    #[inline]
    pub(crate) fn has_room(&self, pool: &BitsPool, until: Seq) -> bool {
        let last = Seq::new(until.index() - 1);
        let needed = pool.block_of(last) - pool.block_of(self.first) + 1;
        needed - self.blocks(pool) <= u64::from(pool.free())
    }

    /// Extends the bitmap to the packets before `until`, with their bits set to `bit`; returns the number of added
    /// packets.
    ///
    /// # Panics
    /// When the pool is exhausted; see [`LinkedBitmap::has_room`].
    pub(crate) fn push(&mut self, pool: &mut BitsPool, until: Seq, bit: bool) -> u64 {
        let before = self.high;
        while self.high < until {
            if self.is_empty() || pool.offset(self.high) == 0 {
                self.append(pool);
            }
            let to = until.min(pool.behind(self.high));
            if bit {
                pool.set(self.end, pool.mask(self.high, to));
            }
            self.high = to;
        }
        self.high - before
    }

    /// Extends the bitmap, which must not be empty, by one packet with its bit set. Returns `false` if that takes a
    /// block and the pool has none.
    #[inline]
    pub(crate) fn extend(&mut self, pool: &mut BitsPool) -> bool {
        debug_assert!(!self.is_empty(), "the first block is not this one's to take");
        let bit = pool.offset(self.high);
        if bit == 0 {
            if pool.free() == 0 {
                return false;
            }
            self.append(pool);
        }
        pool.set(self.end, 1 << bit);
        self.high += 1;
        true
    }

    /// Appends a block.
    #[inline]
    fn append(&mut self, pool: &mut BitsPool) {
        let block = pool.take();
        if self.is_empty() {
            self.start = block;
        } else {
            pool.link(self.end, block);
        }
        self.end = block;
    }

    /// Sets the bit of a covered packet, if it lies in the first or the last block.
    #[inline]
    pub(crate) fn set(&mut self, pool: &mut BitsPool, seq: Seq) -> Set {
        let block = match pool.block_of(seq) {
            at if at == pool.block_of(self.first) => self.start,
            at if at == pool.block_of(self.last()) => self.end,
            _ => return Set::Middle,
        };
        if pool.set(block, pool.mask(seq, seq + 1)) > 0 { Set::Fresh } else { Set::Already }
    }

    /// Moves the front past the unbroken run of set bits that begins there; returns the length of the run.
    pub(crate) fn take_run(&mut self, pool: &mut BitsPool) -> u64 {
        let from = self.first;
        while !self.is_empty() {
            let offset = pool.offset(self.first);
            let ones = u64::from((pool.bits(self.start) >> offset).trailing_ones());
            // All bits behind the last packet are clear, so a run never leads beyond it.
            self.step(pool, self.first + ones);
            if offset + ones < pool.block() {
                break;
            }
        }
        self.first - from
    }

    /// Moves the front to `to`; returns how many of the bits that it passes were set. Packets beyond the end were never
    /// covered.
    pub(crate) fn advance(&mut self, pool: &mut BitsPool, to: Seq) -> u64 {
        let mut set = 0;
        while !self.is_empty() && self.first < to {
            let next = to.min(self.high).min(pool.behind(self.first));
            set += u64::from((pool.bits(self.start) & pool.mask(self.first, next)).count_ones());
            self.step(pool, next);
        }
        self.first = to;
        self.high = self.high.max(to);
        set
    }

    /// Moves the front to `to`, in this block or at the beginning of the next one, and gives the block that it leaves
    /// back to the pool.
    #[inline]
    fn step(&mut self, pool: &mut BitsPool, to: Seq) {
        let left = self.start;
        if to == self.high {
            pool.give_back(left);
        } else if pool.offset(to) == 0 && to > self.first {
            self.start = pool.next(left);
            pool.give_back(left);
        }
        self.first = to;
    }

    /// Removes all packets from the front on, and gives all blocks back to the pool.
    pub(crate) fn clear(&mut self, pool: &mut BitsPool) {
        let first = self.first;
        self.advance(pool, self.high);
        (self.first, self.high) = (first, first);
    }

    /// Gives all blocks back to the pool and returns their bits, in order, when the connection leaves the chip (section
    /// 3.2.5). Until [`LinkedBitmap::load`], no other method may be called.
    pub(crate) fn unload(&self, pool: &mut BitsPool) -> Box<[u64]> {
        let mut block = self.start;
        let blocks = 0..self.blocks(pool);
        let unload = |_| {
            let (left, bits) = (block, pool.bits(block));
            block = pool.next(left);
            pool.give_back(left);
            bits
        };
        blocks.map(unload).collect()
    }

    /// Takes blocks for `bits`, which [`LinkedBitmap::unload`] returned; returns whether the pool had enough blocks.
    pub(crate) fn load(&mut self, pool: &mut BitsPool, bits: &[u64]) -> bool {
        if bits.len() > pool.free() as usize {
            return false;
        }
        for (nth, &bits) in bits.iter().enumerate() {
            let block = pool.take();
            pool.set(block, bits);
            if nth == 0 {
                self.start = block;
            } else {
                pool.link(self.end, block);
            }
            self.end = block;
        }
        true
    }

    /// Removes all packets from the front on, without giving blocks back, because the bitmap is unloaded.
    pub(crate) fn forget(&mut self) {
        self.high = self.first;
    }

    /// Corrects the block of `cursor` after the bitmap was loaded into other blocks.
    pub(crate) fn find(&self, pool: &BitsPool, cursor: &mut Cursor) {
        if cursor.at > self.first {
            let before = Seq::new(cursor.at.index() - 1);
            let steps = pool.block_of(self.first)..pool.block_of(before);
            cursor.block = steps.fold(self.start, |block, _| pool.next(block));
        }
    }

    /// Returns the first packet at or behind `cursor` whose bit is clear; moves `cursor` past it.
    pub(crate) fn next_clear(&self, pool: &BitsPool, cursor: &mut Cursor) -> Option<Seq> {
        if cursor.at <= self.first {
            *cursor = Cursor { at: self.first, block: self.start };
        }
        while cursor.at < self.high {
            let offset = pool.offset(cursor.at);
            if offset == 0 && cursor.at > self.first {
                cursor.block = pool.next(cursor.block);
            }
            let ones = u64::from((pool.bits(cursor.block) >> offset).trailing_ones());
            let clear = cursor.at + ones;
            if offset + ones < pool.block() {
                // All bits behind the last packet are clear.
                let found = clear < self.high;
                cursor.at = if found { clear + 1 } else { self.high };
                return found.then_some(clear);
            }
            cursor.at = clear;
        }
        None
    }

    /// Returns whether the bit of a packet is set, by walking along the list; for tests.
    #[cfg(test)]
    pub(crate) fn contains(&self, pool: &BitsPool, seq: Seq) -> bool {
        if seq < self.first || seq >= self.high {
            return false;
        }
        let block = (pool.block_of(self.first)..pool.block_of(seq)).fold(self.start, |block, _| pool.next(block));
        pool.bits(block) & pool.mask(seq, seq + 1) != 0
    }
    /// Returns the ids of the bitmap's blocks, in order.
    #[cfg(test)]
    pub(crate) fn chain(&self, pool: &BitsPool) -> alloc::vec::Vec<u16> {
        let blocks = core::iter::successors(Some(self.start), |&block| Some(pool.next(block)));
        blocks.take(self.blocks(pool) as usize).map(Block::id).collect()
    }
}
