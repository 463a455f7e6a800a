//! The shared bits pool (section 3.2.3, figure 3): memory for the bitmaps of all connections of a NIC.
//!
//! ```text
//!            0     1     2     3     4            n-1
//! bits     [ 8b ][ 8b ][ 8b ][ 8b ][ 8b ]  ...  [ 8b ]   a block holds eight packets of one connection
//! next_ptr [  4 ][    ][    ][    ][  2 ]  ...  [    ]   its connection's next block: here 0, 4, 2
//! available[  0 ][  4 ][  2 ][  1 ][ n-1]  ...  [  3 ]   a stack of block ids
//!                              ^ avail_ptr                from here on: free
//! ```
//!
//! With the paper's blocks of eight bits and up to 256 of them, each of the three takes eight bits per block: 3 Kb for
//! a pool of 1 Kb, for any number of connections. Larger blocks take fewer pointers, and waste more bits at both ends
//! of a list ("a clear tradeoff"). Only a connection itself knows its blocks and their order: it holds the first and
//! the last ([`super::linked_bitmap::LinkedBitmap`]). The entry behind the last block is undefined, so no id is
//! reserved for "none".

use alloc::boxed::Box;

use selvedge_units::Seq;

/// Largest number of blocks of a pool. Ids have eight bits up to 256 blocks, like in the paper, and up to 16 beyond.
pub(crate) const MOST_BLOCKS: u32 = 1 << 16;

/// The id of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block(u16);

/// A pool of blocks of bits.
#[derive(Clone, Debug, Default)]
pub struct BitsPool {
    /// Blocks' bits; a block has as many as a pool's creator says, and only these are ever set.
    bits: Box<[u64]>,
    next_ptr: Box<[Block]>,
    available: Box<[Block]>,
    /// Logarithm of the number of bits of a block.
    shift: u32,
    /// The index in `available` from which on blocks are free.
    avail_ptr: u32,
    /// The largest value of `avail_ptr` so far; not part of the paper's memory.
    peak: u32,
}

impl BitsPool {
    /// Creates a pool of `blocks` blocks of `block` bits each, all free.
    ///
    /// # Panics
    /// When there are more than 65,536 blocks, or a block has not 8, 16, 32 or 64 bits.
    pub fn new(blocks: u32, block: u32) -> Self {
        assert!(blocks <= MOST_BLOCKS, "{blocks} blocks; ids have 16 bits");
        assert!(matches!(block, 8 | 16 | 32 | 64), "{block} bits; a block has 8, 16, 32 or 64");
        Self {
            bits: (0..blocks).map(|_| 0).collect(),
            next_ptr: (0..blocks).map(|_| Block::default()).collect(),
            available: (0..blocks).map(|id| Block(id as u16)).collect(),
            shift: block.trailing_zeros(),
            avail_ptr: 0,
            peak: 0,
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u32 {
        self.available.len() as u32
    }
    /// Returns the number of bits of a block.
    #[inline]
    pub fn block(&self) -> u64 {
        1 << self.shift
    }
    /// Returns the number of blocks that connections hold.
    #[inline]
    pub fn in_use(&self) -> u32 {
        self.avail_ptr
    }
    /// Returns the largest number of blocks that connections held at any time.
    pub fn peak(&self) -> u32 {
        self.peak
    }
    /// Returns the number of free blocks.
    #[inline]
    pub(crate) fn free(&self) -> u32 {
        self.blocks() - self.avail_ptr
    }

    /// Takes a block from the stack, its bits clear.
    ///
    /// # Panics
    /// When none is free.
    #[inline]
    pub fn take(&mut self) -> Block {
        let block = self.available[self.avail_ptr as usize];
        self.avail_ptr += 1;
        self.peak = self.peak.max(self.avail_ptr);
        self.bits[usize::from(block.0)] = 0;
        block
    }
    /// Puts a block back on the stack.
    #[inline]
    pub fn give_back(&mut self, block: Block) {
        self.avail_ptr -= 1;
        self.available[self.avail_ptr as usize] = block;
    }

    /// Returns the block behind `block`, which is not its connection's last.
    #[inline]
    pub fn next(&self, block: Block) -> Block {
        self.next_ptr[usize::from(block.0)]
    }
    /// Puts a block behind another of the same connection.
    #[inline]
    pub fn link(&mut self, block: Block, next: Block) {
        self.next_ptr[usize::from(block.0)] = next;
    }
    /// Returns a block's bits.
    #[inline]
    pub fn bits(&self, block: Block) -> u64 {
        self.bits[usize::from(block.0)]
    }
    /// Sets bits of a block; returns how many of them were clear.
    #[inline]
    pub fn set(&mut self, block: Block, mask: u64) -> u32 {
        let bits = &mut self.bits[usize::from(block.0)];
        let fresh = mask & !*bits;
        *bits |= mask;
        fresh.count_ones()
    }

    /// Returns the index of the block that holds a packet's bit, among the blocks of its connection from packet 0 on.
    #[inline]
    pub(crate) fn block_of(&self, seq: Seq) -> u64 {
        seq.index() >> self.shift
    }
    /// Returns the number of a packet's bit in its block.
    #[inline]
    pub(crate) fn offset(&self, seq: Seq) -> u64 {
        seq.index() & (self.block() - 1)
    }
    /// Returns the first packet of the block behind that of `seq`.
    #[inline]
    pub(crate) fn behind(&self, seq: Seq) -> Seq {
        Seq::new((self.block_of(seq) + 1) << self.shift)
    }
    /// Returns the bits of the packets from `from` to before `to`, all in the block that holds `from`.
    #[inline]
    pub(crate) fn mask(&self, from: Seq, to: Seq) -> u64 {
        match to.index() - from.index() {
            0 => 0,
            count => (u64::MAX >> (64 - count)) << self.offset(from),
        }
    }
}

impl Block {
    /// Returns the block's number in the pool.
    pub fn id(self) -> u16 {
        self.0
    }
}

#[cfg(test)]
impl BitsPool {
    /// Returns the free blocks, in the order in which they will be taken.
    pub(crate) fn stack(&self) -> impl Iterator<Item = u16> {
        self.available[self.avail_ptr as usize..].iter().map(|block| block.0)
    }
}
