//! Two binary trees, each for half of the buffer.

use selvedge_units::Bytes;

use super::share;
use crate::workload::schedule::{Rank, Step};

/// Writes an all-reduce: up one tree in chunks, and down again; the other half of the buffer takes the tree's mirror
/// image. Each connection has at most `outstanding` chunks under way: if all were sent at once, all would arrive at
/// once, and the tree would not work as a pipeline.
pub(super) fn all_reduce(ranks: &mut [Rank], size: Bytes, chunk: Bytes, outstanding: u32, ready: &[Vec<u32>]) {
    let n = ranks.len() as u32;
    for tree in 0..2 {
        let half = share(size, 2, tree);
        let chunks = u32::try_from(half.pieces(chunk)).unwrap_or(u32::MAX).max(1);
        for (own, rank) in (0..).zip(&mut *ranks) {
            let place = TreePosition { n, own, is_mirrored: tree == 1 };
            let mut sent = Sent { outstanding: outstanding as usize, chunks: Vec::new() };
            for number in 0..chunks {
                let tag = 4 * number + 2 * tree;
                place.pass(rank, share(half, chunks, number), tag, &ready[own as usize], &mut sent);
            }
        }
    }
}

/// Sends of a rank, and the number that may be under way on each of its connections.
struct Sent {
    outstanding: usize,
    /// Steps of each chunk's sends, one per connection, always in the same order.
    chunks: Vec<Vec<u32>>,
}

impl Sent {
    /// Returns the step that a send on connection `place` waits for besides the data, where there is one.
    fn before(&self, place: usize) -> Option<u32> {
        let earlier = self.chunks.len().checked_sub(self.outstanding)?;
        Some(self.chunks[earlier][place])
    }
}

/// Position of a rank in a tree: numbered from the root, row by row; backwards in the mirrored one.
struct TreePosition {
    n: u32,
    own: u32,
    is_mirrored: bool,
}

impl TreePosition {
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

    /// Adds the steps of one chunk at this rank, with tag `tag` up the tree and the next one down.
    fn pass(&self, rank: &mut Rank, size: Bytes, tag: u32, ready: &[u32], sent: &mut Sent) {
        let mut sends = Vec::new();
        let mut send = |rank: &mut Rank, to, tag, data: &[u32]| {
            let after: Vec<u32> = data.iter().copied().chain(sent.before(sends.len())).collect();
            sends.push(rank.step(Step::Send { to, size, tag }, &after));
        };
        let mut whole: Vec<u32> = ready.to_vec();
        whole.extend(self.children().map(|from| rank.step(Step::Recv { from, tag }, &[])));
        if let Some(parent) = self.parent() {
            send(rank, parent, tag, &whole);
            whole = vec![rank.step(Step::Recv { from: parent, tag: tag + 1 }, &[])];
        }
        for to in self.children() {
            send(rank, to, tag + 1, &whole);
        }
        sent.chunks.push(sends);
    }
}
