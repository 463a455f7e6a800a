//! Exchanges between pairs.

use selvedge_units::Bytes;

use super::share;
use crate::workload::schedule::{Rank, Step};

/// Writes an all-to-all in which each rank sends `size(from, to)` to each other one, first to the next and round again,
/// at most `outstanding` at a time; nothing where the size is zero. Returns each rank's receives.
pub(super) fn all_to_all(
    ranks: &mut [Rank],
    tag: u32,
    outstanding: u32,
    size: impl Fn(u32, u32) -> Bytes,
    ready: &[Vec<u32>],
) -> Vec<Vec<u32>> {
    let n = ranks.len() as u32;
    let exchange = |(own, rank): (u32, &mut Rank)| {
        let mut sends: Vec<u32> = Vec::new();
        for distance in 1..n {
            let to = (own + distance) % n;
            let size = size(own, to);
            if size.is_zero() {
                continue;
            }
            let mut after = ready[own as usize].clone();
            after.extend(sends.len().checked_sub(outstanding as usize).map(|earlier| sends[earlier]));
            sends.push(rank.step(Step::Send { to, size, tag }, &after));
        }
        let others = (1..n).map(|distance| (own + n - distance) % n);
        let senders = others.filter(|&from| !size(from, own).is_zero());
        senders.map(|from| rank.step(Step::Recv { from, tag }, &[])).collect()
    };
    (0..).zip(ranks).map(exchange).collect()
}

/// Writes an all-reduce by recursive halving, then doubling. The number of ranks is a power of two.
pub(super) fn halving_doubling(ranks: &mut [Rank], size: Bytes, ready: &[Vec<u32>]) {
    let n = ranks.len() as u32;
    let rounds = n.ilog2();
    for (own, rank) in (0..).zip(ranks) {
        let mut before = ready[own as usize].clone();
        // Partners are half the group away in the first and the last round.
        let halving = (0..rounds).map(|round| (n >> (round + 1), round + 1));
        let doubling = (0..rounds).rev().map(|round| (n >> (round + 1), round + 1));
        for (tag, (distance, halvings)) in (0..).zip(halving.chain(doubling)) {
            let partner = own ^ distance;
            let part = share(size, 1 << halvings, partner >> (rounds - halvings));
            let send = rank.step(Step::Send { to: partner, size: part, tag }, &before);
            let recv = rank.step(Step::Recv { from: partner, tag }, &[]);
            before = vec![send, recv];
        }
    }
}
