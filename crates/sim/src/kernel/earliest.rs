//! The earliest of a few times: a tournament.
//!
//! A switch has one time per port, at which the port is free again, and one for its pause timers.
//! Changing one costs a comparison per round, knowing the earliest costs a look.

use super::table::Table;

/// No time.
pub(crate) const NEVER: u64 = u64::MAX;

/// Times of numbered things; of equal ones the lowest number wins.
pub(crate) struct Earliest {
    times: Table<u64>,
    /// `winners[1]` won everything; the two before match `n` are `2 n` and `2 n + 1`; the second half
    /// are the things themselves.
    winners: Table<u16>,
    leaves: u32,
    /// Who won, and with what.
    first: (u64, u32),
}

impl Earliest {
    /// For things numbered below `count`, none of which has a time.
    pub(crate) fn new(count: u32) -> Self {
        let leaves = count.next_power_of_two().max(2);
        let (mut times, mut winners) = (Table::new(), Table::new());
        times.extend((0..leaves).map(|_| NEVER));
        winners.extend((0..2 * leaves).map(|at| (at % leaves) as u16));
        // All equal: the lowest number on the left.
        for at in (1..leaves).rev() {
            winners[at] = winners[2 * at];
        }
        Self { times, winners, leaves, first: (NEVER, 0) }
    }

    /// The earliest time, and whose it is.
    #[inline]
    pub(crate) fn first(&self) -> (u64, u32) {
        self.first
    }

    /// Gives `n` the time `time`.
    #[inline]
    pub(crate) fn set(&mut self, n: u32, time: u64) {
        self.times[n] = time;
        let mut at = self.leaves + n;
        let (mut winner, mut best) = (n, time);
        while at > 1 {
            // The other side of the match; the left one wins a tie.
            let rival = u32::from(self.winners[at ^ 1]);
            let rival_time = self.times[rival];
            if (rival_time, rival) < (best, winner) {
                (winner, best) = (rival, rival_time);
            }
            at /= 2;
            self.winners[at] = winner as u16;
        }
        self.first = (best, winner);
    }

    /// Fetches what [`Earliest::set`] will need.
    pub(crate) fn prefetch(&self) {
        for line in (0..self.leaves).step_by(8) {
            super::prefetch(&self.times, line);
        }
        for line in (0..2 * self.leaves).step_by(32) {
            super::prefetch(&self.winners, line);
        }
    }

    /// The time of `n`.
    pub(crate) fn get(&self, n: u32) -> u64 {
        self.times[n]
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Domain, Rng};

    use super::*;

    #[test]
    fn is_the_minimum() {
        for count in [1, 2, 3, 8, 13, 64] {
            let mut rng = Rng::stream(u64::from(count), Domain::Impairment, 0);
            let mut earliest = Earliest::new(count);
            let mut model = vec![NEVER; count as usize];
            assert_eq!(earliest.first().0, NEVER);
            for _ in 0..5_000 {
                let n = rng.below(u64::from(count)) as u32;
                let time = if rng.below(3) == 0 { NEVER } else { rng.below(50) };
                earliest.set(n, time);
                model[n as usize] = time;
                let expected = model.iter().zip(0..).min().expect("some");
                let (time, who) = earliest.first();
                assert_eq!(time, *expected.0);
                assert!(time == NEVER || who == expected.1);
            }
        }
    }
}
