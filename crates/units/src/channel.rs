//! Channels that lose packets, in bursts or independently.

use crate::{Chance, Rng};

/// Parameters of a channel with two states (Gilbert 1960, Elliott 1963).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TwoStates {
    /// Probability of entering the bad state after a packet in the good state.
    pub to_bad: Chance,
    /// Probability of entering the good state after a packet in the bad state.
    pub to_good: Chance,
    /// Loss probability in the good state.
    pub in_good: Chance,
    /// Loss probability in the bad state.
    pub in_bad: Chance,
}

impl TwoStates {
    /// Returns the parameters for loss bursts of `mean` packets with a long-run loss rate of `rate`: every packet is
    /// lost in the bad state and none in the good one. `None` if impossible: for a mean below 1, or a rate above `mean
    /// / (mean + 1)`.
    ///
    /// Bursts of mean length B end with probability 1/B; the rate L determines the probability p of their beginning: L
    /// = p / (p + 1/B).
    pub fn bursts(mean: f64, rate: Chance) -> Option<Self> {
        if !(mean >= 1.0 && mean.is_finite()) {
            return None;
        }
        let rate = rate.as_f64();
        let begin = if rate < 1.0 { rate / (mean * (1.0 - rate)) } else { f64::INFINITY };
        let (to_bad, to_good) = (Chance::from_f64(begin)?, Chance::from_f64(1.0 / mean)?);
        Some(Self { to_bad, to_good, in_good: Chance::NEVER, in_bad: Chance::ALWAYS })
    }
}

/// A channel with two states, which may change after each packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    states: TwoStates,
    is_bad: bool,
    rng: Rng,
}

impl Channel {
    /// Creates a channel in a state drawn from its long-run distribution, so that the first packets have the loss rate
    /// of all others.
    pub fn new(states: TwoStates, mut rng: Rng) -> Self {
        let (p, r) = (states.to_bad.as_f64(), states.to_good.as_f64());
        let stationary = if p + r > 0.0 { p / (p + r) } else { 0.0 };
        let is_bad = Chance::from_f64(stationary).is_some_and(|chance| chance.hits(rng.next_u64()));
        Self { states, is_bad, rng }
    }
    /// Returns the larger of two probabilities: that the next packet passes, and that the packet after it passes
    /// because the state changes in between. Zero for a channel that never lets a packet pass again.
    pub fn chance_to_pass(&self) -> f64 {
        let TwoStates { to_bad, to_good, in_good, in_bad } = self.states;
        let (here, change, there) = if self.is_bad { (in_bad, to_good, in_good) } else { (in_good, to_bad, in_bad) };
        f64::max(here.of_not(), change.as_f64() * there.of_not())
    }
    /// Returns whether the next packet is lost, with exactly two draws. To be called once per packet.
    pub const fn loses(&mut self) -> bool {
        let TwoStates { to_bad, to_good, in_good, in_bad } = self.states;
        let (loss, change) = if self.is_bad { (in_bad, to_good) } else { (in_good, to_bad) };
        let is_lost = loss.hits(self.rng.next_u64());
        self.is_bad ^= change.hits(self.rng.next_u64());
        is_lost
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::Domain;

    fn chance(p: f64) -> Chance {
        Chance::from_f64(p).unwrap()
    }

    #[test]
    fn a_channel_loses_its_long_run_share_in_bursts() {
        let states =
            TwoStates { to_bad: chance(0.002), to_good: chance(0.2), in_good: Chance::NEVER, in_bad: Chance::ALWAYS };
        let mut channel = Channel::new(states, Rng::stream(3, Domain::LinkLoss, 1));
        let fates: Vec<bool> = (0..2_000_000).map(|_| channel.loses()).collect();
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // The long-run loss rate is p / (p + r), and bursts have 1/r packets.
        assert!((lost / 2e6 / (0.002 / 0.202) - 1.0).abs() < 0.05, "{}", lost / 2e6);
        assert!((lost / bursts / 5.0 - 1.0).abs() < 0.05, "{}", lost / bursts);

        let (p, r, g, b) = (0.01, 0.05, 0.001, 0.3);
        let states = TwoStates { to_bad: chance(p), to_good: chance(r), in_good: chance(g), in_bad: chance(b) };
        let mut channel = Channel::new(states, Rng::stream(3, Domain::LinkLoss, 2));
        let expected = (p * b + r * g) / (p + r);
        let found = (0..2_000_000).filter(|_| channel.loses()).count() as f64 / 2e6;
        assert!((found / expected - 1.0).abs() < 0.05, "{found}, not {expected}");
    }

    #[test]
    fn the_first_packet_fares_like_all_others() {
        let states =
            TwoStates { to_bad: chance(0.1), to_good: chance(0.3), in_good: Chance::NEVER, in_bad: Chance::ALWAYS };
        let first = |entity| Channel::new(states, Rng::stream(3, Domain::LinkLoss, entity)).loses();
        let lost = (0..10_000).filter(|&entity| first(entity)).count();
        assert!((2300..2700).contains(&lost), "{lost} of 10,000, not a quarter");
    }

    #[test]
    fn a_channel_knows_whether_its_burst_can_end() {
        let chance_to_pass = |to_bad, to_good, in_good, in_bad| {
            let states = TwoStates {
                to_bad: chance(to_bad),
                to_good: chance(to_good),
                in_good: chance(in_good),
                in_bad: chance(in_bad),
            };
            Channel { states, is_bad: true, rng: Rng::stream(3, Domain::LinkLoss, 1) }.chance_to_pass()
        };
        assert_eq!(chance_to_pass(0.1, 0.0, 0.0, 1.0), 0.0, "it stays bad");
        assert_eq!(chance_to_pass(0.1, 0.5, 1.0, 1.0), 0.0, "and its good state is no better");
        assert!((chance_to_pass(0.1, 0.002, 0.0, 1.0) - 0.002).abs() < 1e-9);
        assert!((chance_to_pass(0.1, 0.0, 1.0, 0.75) - 0.25).abs() < 1e-9);
    }

    #[test]
    fn bursts_that_cannot_be_are_refused() {
        assert!(TwoStates::bursts(0.5, chance(0.1)).is_none());
        assert!(TwoStates::bursts(f64::NAN, chance(0.1)).is_none());
        assert!(TwoStates::bursts(2.0, chance(0.7)).is_none());
        assert!(TwoStates::bursts(2.0, chance(0.6)).is_some());
    }
}
