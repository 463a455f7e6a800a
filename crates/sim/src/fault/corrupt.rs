//! Bit errors: packets that arrive, fail the check of their FCS or ICRC, and are discarded there.

use schemars::JsonSchema;
use selvedge_units::{Chance, Rng};
use serde::{Deserialize, Serialize};

/// Parameters of [`LossModel::Corrupt`](super::LossModel::Corrupt): each bit of a frame fails independently, so that
/// longer packets are lost more often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BitErrors {
    /// Probability that a bit is received wrong; Ethernet allows at most 1e-12 without forward error correction (IEEE
    /// 802.3).
    pub bit_error_rate: Chance,
}

/// Process that decides frame by frame whether bit errors damage the frame.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BitErrorProcess {
    rate: Chance,
    rng: Rng,
    /// Length of the latest frame in bytes, and the probability that such a frame is damaged: most frames are equally
    /// long.
    latest: (u64, Chance),
}

impl BitErrorProcess {
    /// Creates a process that draws from `rng` once per frame, whatever the frame's length.
    pub const fn new(errors: BitErrors, rng: Rng) -> Self {
        Self { rate: errors.bit_error_rate, rng, latest: (0, Chance::NEVER) }
    }
    /// Returns the probability that a frame as long as the latest one is not damaged.
    pub fn chance_to_pass(&self) -> f64 {
        self.latest.1.of_not()
    }
    /// Returns whether the next frame, of `bytes`, is damaged.
    pub fn damages(&mut self, bytes: u64) -> bool {
        if self.latest.0 != bytes {
            self.latest = (bytes, self.rate.of_any(bytes * 8));
        }
        self.latest.1.hits(self.rng.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::Domain;

    use super::*;

    #[test]
    fn longer_frames_are_damaged_more_often() {
        let bit_error_rate = Chance::from_f64(1e-6).unwrap();
        let mut process = BitErrorProcess::new(BitErrors { bit_error_rate }, Rng::stream(3, Domain::LinkLoss, 0));
        for (bytes, expected) in [(64u64, 5.1187e-4), (1_086, 8.6504e-3), (9_000, 6.9469e-2)] {
            let share = (0..2_000_000).filter(|_| process.damages(bytes)).count() as f64 / 2e6;
            assert!((share / expected - 1.0).abs() < 0.1, "{bytes}: {share}, not {expected}");
        }
    }
}
