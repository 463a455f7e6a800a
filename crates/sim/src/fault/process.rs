//! State machines that decide which packets of a sequence are lost.

use std::sync::Arc;

use selvedge_telemetry::DropReason;
use selvedge_units::{Chance, Channel, Rng, TwoStates};

use super::{BitErrorProcess, BitErrors};

/// Process that decides packet by packet. The n-th packet of a sequence has the same fate in every run with the same
/// seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LossProcess {
    /// Independent loss of each packet with one probability.
    Random {
        /// Probability that a packet is lost.
        rate: Chance,
        /// Random stream that decides.
        rng: Rng,
    },
    /// Loss of a two-state channel.
    TwoStates(Channel),
    /// Independent errors of each bit.
    BitErrors(BitErrorProcess),
    /// Loss of the packets with these numbers.
    Listed {
        /// Numbers of the lost packets, ascending, from 0.
        drops: Arc<[u64]>,
        /// Number of listed packets that have passed.
        passed: usize,
        /// Number of the next packet.
        packet: u64,
    },
}

impl LossProcess {
    /// Returns a process that loses each packet with probability `rate`.
    pub const fn random(rate: Chance, rng: Rng) -> Self {
        Self::Random { rate, rng }
    }
    /// Returns a two-state channel.
    pub fn two_states(states: TwoStates, rng: Rng) -> Self {
        Self::TwoStates(Channel::new(states, rng))
    }
    /// Returns a process of bit errors.
    pub const fn bit_errors(errors: BitErrors, rng: Rng) -> Self {
        Self::BitErrors(BitErrorProcess::new(errors, rng))
    }
    /// Returns a process that loses the packets with these numbers (ascending, from 0).
    pub fn listed(drops: Arc<[u64]>) -> Self {
        Self::Listed { drops, passed: 0, packet: 0 }
    }
    /// Returns why the next packet, `bytes` long, is lost, if it is. Must be called exactly once per packet.
    pub fn lost(&mut self, bytes: u64) -> Option<DropReason> {
        let (lost, reason) = match self {
            Self::BitErrors(process) => (process.damages(bytes), DropReason::Corrupt),
            other => (other.loses(), DropReason::LinkLoss),
        };
        lost.then_some(reason)
    }

    /// Returns the probability that one of the next packets passes; 1 for a list of lost packets, which ends.
    pub(super) fn chance_to_pass(&self) -> f64 {
        match self {
            Self::Random { rate, .. } => rate.of_not(),
            Self::TwoStates(channel) => channel.chance_to_pass(),
            Self::BitErrors(process) => process.chance_to_pass(),
            Self::Listed { .. } => 1.0,
        }
    }

    /// Returns whether the next packet is lost by a process that does not depend on its length.
    fn loses(&mut self) -> bool {
        match self {
            Self::BitErrors(_) => false,
            Self::Random { rate, rng } => rate.hits(rng.next_u64()),
            Self::TwoStates(channel) => channel.loses(),
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
    fn listed_packets_are_lost_and_no_others() {
        let mut process = LossProcess::listed([0, 3, 4].into());
        let fates: Vec<bool> = (0..7).map(|_| process.loses()).collect();
        assert_eq!(fates, [true, false, false, true, true, false, false]);
    }
}
