//! Nanoseconds per operation of MELO's bits pool.
//!
//! `cargo bench -p selvedge-transport --bench melo`. The goal is 20 ns (50 million/s) for each. What a receiver does
//! around them: `melo_bits_pool` in `engines`.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use selvedge_transport::recovery::melo::{BitsPool, Block};

fn main() {
    divan::main();
}

/// All that eight bits can name.
const BLOCKS: u32 = 256;
const POOLS: usize = 64;
const OPERATIONS: u64 = BLOCKS as u64 * POOLS as u64;

/// Pools that are not in the fastest cache, each with its blocks in the order in which they were taken, linked.
fn taken() -> Vec<(BitsPool, Vec<Block>)> {
    let mut pools = vec![(BitsPool::new(BLOCKS, 8), Vec::new()); POOLS];
    for (pool, blocks) in &mut pools {
        *blocks = (0..BLOCKS).map(|_| pool.take()).collect();
        // Not the order in which they lie in memory.
        blocks.sort_by_key(|block| (block.id() as u8).wrapping_mul(157));
        blocks.windows(2).for_each(|pair| pool.link(pair[0], pair[1]));
    }
    pools
}

/// One operation on each block of each pool.
fn each(bencher: Bencher<'_, '_>, operation: impl Fn(&mut BitsPool, Block)) {
    bencher.counter(ItemsCount::new(OPERATIONS)).with_inputs(taken).bench_local_refs(|pools| {
        for (pool, blocks) in pools {
            blocks.iter().for_each(|&block| operation(pool, block));
        }
    });
}

/// Taking a block from the stack of free ones.
#[divan::bench]
fn take(bencher: Bencher<'_, '_>) {
    let pools = || vec![BitsPool::new(BLOCKS, 8); POOLS];
    bencher.counter(ItemsCount::new(OPERATIONS)).with_inputs(pools).bench_local_refs(|pools| {
        for pool in pools {
            for _ in 0..BLOCKS {
                black_box(pool.take());
            }
        }
    });
}

/// Returning one.
#[divan::bench]
fn give_back(bencher: Bencher<'_, '_>) {
    each(bencher, |pool, block| pool.give_back(black_box(block)));
}

/// Hanging a block behind another.
#[divan::bench]
fn link(bencher: Bencher<'_, '_>) {
    each(bencher, |pool, block| pool.link(black_box(block), block));
}

/// Setting a packet's bit.
#[divan::bench]
fn set(bencher: Bencher<'_, '_>) {
    each(bencher, |pool, block| {
        black_box(pool.set(black_box(block), 0b100));
    });
}

/// Going from one block to the next along the whole list, which is where a search for holes waits for memory.
#[divan::bench]
fn walk(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(OPERATIONS)).with_inputs(taken).bench_local_refs(|pools| {
        for (pool, blocks) in pools {
            let last = (1..BLOCKS).fold(blocks[0], |block, _| pool.next(block));
            black_box(last);
        }
    });
}
