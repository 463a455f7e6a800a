//! Ring algorithms, in which each host sends to the next.

use selvedge_units::Bytes;

use super::share;
use crate::workload::schedule::{Rank, Step};

/// Writes an all-reduce: reduce-scatter, then all-gather.
pub(super) fn all_reduce(ranks: &mut [Rank], size: Bytes, ready: &[Vec<u32>]) {
    let n = ranks.len() as u32;
    turn(ranks, size, 2 * (n - 1), ready);
}

/// Writes a reduce-scatter or an all-gather, which are alike on the wire.
pub(super) fn half(ranks: &mut [Rank], size: Bytes, ready: &[Vec<u32>]) {
    let n = ranks.len() as u32;
    turn(ranks, size, n - 1, ready);
}

/// Writes `rounds` steps, in each of which each rank passes on the part that it received in the step before.
fn turn(ranks: &mut [Rank], size: Bytes, rounds: u32, ready: &[Vec<u32>]) {
    let n = ranks.len() as u32;
    for (own, rank) in (0..).zip(ranks) {
        let mut before = ready[own as usize].clone();
        for round in 0..rounds {
            let part = (own + n - round % n) % n;
            let send = Step::Send { to: (own + 1) % n, size: share(size, n, part), tag: round };
            rank.step(send, &before);
            before = vec![rank.step(Step::Recv { from: (own + n - 1) % n, tag: round }, &[])];
        }
    }
}
