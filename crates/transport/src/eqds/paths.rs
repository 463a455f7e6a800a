//! Path ids: the path of each packet of a tunnel (sections 3 and 5: per-packet ECMP, chosen by the sender).

use selvedge_units::mix64;

/// The path ids of one tunnel. All are used equally often, in a different order in each round, so that tunnels do not
/// synchronize.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Paths {
    /// Hash key of the tunnel.
    key: u64,
    /// Packets sent.
    count: u64,
    /// Seed of the order of this round.
    turn: u32,
}

impl Paths {
    /// Creates the paths of the tunnel identified by `key`.
    pub const fn new(key: u64) -> Self {
        Self { key: mix64(key), count: 0, turn: 0 }
    }

    /// Returns the next packet's path id, below `paths`, and the value that switches hash for it.
    #[inline]
    pub fn next(&mut self, paths: u32) -> (u16, u32) {
        let mask = if paths.is_power_of_two() { paths - 1 } else { 0 };
        let place = if mask > 0 { self.count as u32 & mask } else { (self.count % u64::from(paths)) as u32 };
        if place == 0 {
            self.turn = mix64(self.key ^ self.count) as u32;
        }
        self.count += 1;
        // Each round XORs the index with a random mask; unless the number of paths is a power of two, the mask is zero.
        let path = place ^ (self.turn & mask);
        (path as u16, (mix64(self.key.wrapping_add(u64::from(path))) >> 32) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_round_takes_every_path_once() {
        for count in [1, 2, 5, 64] {
            let mut paths = Paths::new(7);
            for _ in 0..4 {
                let round: BTreeSet<u16> = (0..count).map(|_| paths.next(count).0).collect();
                assert_eq!(round.len(), count as usize);
            }
        }
    }

    #[test]
    fn a_path_has_its_hash_for_life() {
        let (mut one, mut other) = (Paths::new(1), Paths::new(2));
        let hashes: BTreeSet<(u16, u32)> = (0..64).map(|_| one.next(4)).collect();
        assert_eq!(hashes.len(), 4);
        assert!((0..64).all(|_| !hashes.contains(&other.next(4))), "another tunnel has others");
    }
}
