//! Two binary trees, each for half of the buffer.

use selvedge_units::Bytes;

use super::share;
use crate::workload::schedule::{Rank, Step};

/// Up one tree in chunks, and down again; the same in its mirror image with the other half.
pub(super) fn all_reduce(ranks: &mut [Rank], size: Bytes, chunk: Bytes, ready: &[Vec<u32>]) {
    let n = ranks.len() as u32;
    for tree in 0..2 {
        let half = share(size, 2, tree);
        let chunks = u32::try_from(half.pieces(chunk)).unwrap_or(u32::MAX).max(1);
        for (own, rank) in (0..).zip(&mut *ranks) {
            let place = Place { n, own, is_mirrored: tree == 1 };
            for number in 0..chunks {
                let tag = 4 * number + 2 * tree;
                place.pass(rank, share(half, chunks, number), tag, &ready[own as usize]);
            }
        }
    }
}

/// Where a rank stands in a tree: numbered from the root, row by row; backwards in the mirrored one.
struct Place {
    n: u32,
    own: u32,
    is_mirrored: bool,
}

impl Place {
    fn mirror(&self, rank: u32) -> u32 {
        if self.is_mirrored { self.n - 1 - rank } else { rank }
    }
    fn parent(&self) -> Option<u32> {
        let place = self.mirror(self.own);
        (place > 0).then(|| self.mirror((place - 1) / 2))
    }
    fn children(&self) -> impl Iterator<Item = u32> + '_ {
        let place = self.mirror(self.own);
        [2 * place + 1, 2 * place + 2].into_iter().filter(|&child| child < self.n).map(|child| self.mirror(child))
    }

    /// One chunk's way through this rank: tag `tag` up, the next one down.
    fn pass(&self, rank: &mut Rank, size: Bytes, tag: u32, ready: &[u32]) {
        let mut whole: Vec<u32> = ready.to_vec();
        whole.extend(self.children().map(|from| rank.step(Step::Recv { from, tag }, &[])).collect::<Vec<_>>());
        if let Some(parent) = self.parent() {
            rank.step(Step::Send { to: parent, size, tag }, &whole);
            whole = vec![rank.step(Step::Recv { from: parent, tag: tag + 1 }, &[])];
        }
        for to in self.children() {
            rank.step(Step::Send { to, size, tag: tag + 1 }, &whole);
        }
    }
}
