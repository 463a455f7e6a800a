//! Path selection per packet (NDP section 3.1.1): over all paths, in a new random order in each round.

use alloc::vec::Vec;

use selvedge_units::{Domain, Rng};

/// The paths of one flow.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    order: Vec<u16>,
    next: usize,
    /// Rounds for which each path is still skipped, indexed by path; empty without penalties.
    penalties: Vec<u8>,
    /// Value that ECMP hashes on path 0.
    base: u32,
    rng: Rng,
}

/// Distance between the hashes of two consecutive paths: 2^32 divided by the golden ratio, so that few paths lie far
/// apart and no two coincide.
const STEP: u32 = 0x9e37_79b9;

impl Paths {
    pub(super) fn new(count: u32, has_penalties: bool, base: u32) -> Self {
        let order: Vec<u16> = (0..count as u16).collect();
        let penalties = if has_penalties { order.iter().map(|_| 0).collect() } else { Vec::new() };
        let rng = Rng::stream(u64::from(base), Domain::PathSpraying, 0);
        Self { next: order.len(), order, penalties, base, rng }
    }

    /// Returns the path of the next packet.
    pub(super) fn choose(&mut self) -> u16 {
        // If all paths have penalties, the next one is used after a full round.
        for _ in 0..self.order.len() {
            let path = self.turn();
            match self.penalties.get_mut(usize::from(path)) {
                Some(penalty @ 1..) => *penalty -= 1,
                _ => return path,
            }
        }
        self.turn()
    }

    /// Returns the value that ECMP hashes on a path.
    pub(super) fn entropy(&self, path: u16) -> u32 {
        self.base.wrapping_add(STEP.wrapping_mul(u32::from(path)))
    }

    /// Adds a penalty to a path on which a packet was trimmed.
    pub(super) fn punish(&mut self, path: u16) {
        if let Some(penalty) = self.penalties.get_mut(usize::from(path)) {
            *penalty = penalty.saturating_add(1);
        }
    }

    fn turn(&mut self) -> u16 {
        if self.next == self.order.len() {
            self.next = 0;
            self.rng.shuffle(&mut self.order);
        }
        self.next += 1;
        self.order[self.next - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_round_takes_every_path_once() {
        let mut paths = Paths::new(16, false, 7);
        let mut rounds = Vec::new();
        for _ in 0..8 {
            let round: Vec<u16> = (0..16).map(|_| paths.choose()).collect();
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..16).collect::<Vec<_>>());
            rounds.push(round);
        }
        rounds.dedup();
        assert_eq!(rounds.len(), 8, "in an order of its own");
    }

    #[test]
    fn a_punished_path_is_left_out_once_for_each_trim() {
        let mut paths = Paths::new(4, true, 7);
        paths.punish(2);
        paths.punish(2);
        let mut seen = [0; 4];
        // Two rounds of three, and one of four.
        (0..10).for_each(|_| seen[usize::from(paths.choose())] += 1);
        assert_eq!(seen, [3, 3, 1, 3]);
        (0..4).for_each(|path| paths.punish(path));
        paths.choose();
    }
}
