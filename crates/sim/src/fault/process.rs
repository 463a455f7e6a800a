//! Which packets of a sequence are lost.

use std::sync::Arc;

use selvedge_telemetry::DropReason;
use selvedge_units::{Chance, Rng};

use super::{BitErrorProcess, BitErrors};

/// Decides packet by packet. The n-th packet of a sequence has the same fate in every run with the
/// same seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LossProcess {
    /// Each packet alike, independently.
    Random {
        /// How likely a packet is lost.
        rate: Chance,
        /// Draws.
        rng: Rng,
    },
    /// A channel with two states (Gilbert 1960, Elliott 1963): after each packet it may change.
    GilbertElliott {
        /// The state.
        bad: bool,
        /// How likely it turns bad after a packet in the good state.
        to_bad: Chance,
        /// How likely it turns good after a packet in the bad state.
        to_good: Chance,
        /// How likely a packet is lost in the good state.
        in_good: Chance,
        /// How likely a packet is lost in the bad state.
        in_bad: Chance,
        /// Draws, two per packet.
        rng: Rng,
    },
    /// Each bit alike, independently.
    BitErrors(BitErrorProcess),
    /// Those with these numbers.
    Listed {
        /// Numbers of the lost packets, ascending, from 0.
        drops: Arc<[u64]>,
        /// How many of them have passed.
        passed: usize,
        /// The next packet's number.
        packet: u64,
    },
}

impl LossProcess {
    /// Each packet lost with probability `rate`.
    pub const fn random(rate: Chance, rng: Rng) -> Self {
        Self::Random { rate, rng }
    }
    /// A two-state channel that begins in a state drawn from its long-run distribution, so that the
    /// first packets fare like all others.
    pub fn gilbert_elliott(to_bad: Chance, to_good: Chance, in_good: Chance, in_bad: Chance, mut rng: Rng) -> Self {
        let (p, r) = (to_bad.as_f64(), to_good.as_f64());
        let stationary = if p + r > 0.0 { p / (p + r) } else { 0.0 };
        let bad = Chance::from_f64(stationary).is_some_and(|chance| chance.hits(rng.next_u64()));
        Self::GilbertElliott { bad, to_bad, to_good, in_good, in_bad, rng }
    }
    /// Bit errors.
    pub const fn bit_errors(errors: BitErrors, rng: Rng) -> Self {
        Self::BitErrors(BitErrorProcess::new(errors, rng))
    }
    /// The packets with these numbers (ascending, from 0) lost.
    pub fn listed(drops: Arc<[u64]>) -> Self {
        Self::Listed { drops, passed: 0, packet: 0 }
    }
    /// Why the next packet, `bytes` long, is lost, if it is. To be asked once per packet.
    pub fn lost(&mut self, bytes: u64) -> Option<DropReason> {
        let (lost, reason) = match self {
            Self::BitErrors(process) => (process.damages(bytes), DropReason::Corrupt),
            other => (other.loses(), DropReason::LinkLoss),
        };
        lost.then_some(reason)
    }

    /// Whether the next packet is lost by a process that does not care how long it is.
    fn loses(&mut self) -> bool {
        match self {
            Self::BitErrors(_) => false,
            Self::Random { rate, rng } => rate.hits(rng.next_u64()),
            Self::GilbertElliott { bad, to_bad, to_good, in_good, in_bad, rng } => {
                let (loss, change) = if *bad { (in_bad, to_good) } else { (in_good, to_bad) };
                let lost = loss.hits(rng.next_u64());
                *bad ^= change.hits(rng.next_u64());
                lost
            }
            Self::Listed { drops, passed, packet } => {
                let lost = drops.get(*passed) == Some(packet);
                *passed += usize::from(lost);
                *packet += 1;
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::Domain;

    use super::*;

    fn rng(entity: u64) -> Rng {
        Rng::stream(3, Domain::LinkLoss, entity)
    }
    fn chance(p: f64) -> Chance {
        Chance::from_f64(p).unwrap()
    }
    fn share(process: &mut LossProcess, packets: u32) -> f64 {
        f64::from((0..packets).filter(|_| process.loses()).count() as u32) / f64::from(packets)
    }

    #[test]
    fn random_loss_has_its_rate() {
        let found = share(&mut LossProcess::random(chance(0.01), rng(0)), 1_000_000);
        assert!((found - 0.01).abs() < 4.0 * (0.01f64 / 1e6).sqrt(), "{found}");
        assert_eq!(share(&mut LossProcess::random(Chance::NEVER, rng(0)), 1000), 0.0);
        assert_eq!(share(&mut LossProcess::random(Chance::ALWAYS, rng(0)), 1000), 1.0);
    }

    #[test]
    fn a_two_state_channel_loses_its_long_run_share_in_bursts() {
        let mut channel =
            LossProcess::gilbert_elliott(chance(0.002), chance(0.2), Chance::NEVER, Chance::ALWAYS, rng(1));
        let fates: Vec<bool> = (0..2_000_000).map(|_| channel.loses()).collect();
        let lost = fates.iter().filter(|lost| **lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        // p / (p + r), and bursts of 1/r packets.
        assert!((lost / 2e6 / (0.002 / 0.202) - 1.0).abs() < 0.05, "{}", lost / 2e6);
        assert!((lost / bursts / 5.0 - 1.0).abs() < 0.05, "{}", lost / bursts);

        let (p, r, g, b) = (0.01, 0.05, 0.001, 0.3);
        let mut channel = LossProcess::gilbert_elliott(chance(p), chance(r), chance(g), chance(b), rng(2));
        let expected = (p * b + r * g) / (p + r);
        let found = share(&mut channel, 2_000_000);
        assert!((found / expected - 1.0).abs() < 0.05, "{found}, not {expected}");
    }

    #[test]
    fn the_first_packet_fares_like_all_others() {
        let first = |entity| {
            LossProcess::gilbert_elliott(chance(0.1), chance(0.3), Chance::NEVER, Chance::ALWAYS, rng(entity)).loses()
        };
        let lost = (0..10_000).filter(|&entity| first(entity)).count();
        assert!((2300..2700).contains(&lost), "{lost} of 10,000, not a quarter");
    }

    #[test]
    fn listed_packets_are_lost_and_no_others() {
        let mut process = LossProcess::listed([0, 3, 4].into());
        let fates: Vec<bool> = (0..7).map(|_| process.loses()).collect();
        assert_eq!(fates, [true, false, false, true, true, false, false]);
    }
}
