//! Evenly spaced events at a given probability: probabilities accumulate until they make one event. RED wants marks
//! spread out (Floyd and Jacobson 1993, section 7, method 2); accumulation achieves it without random numbers.

use selvedge_units::Chance;

/// Accumulated probability, in units of 2^-32 events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Spacing(pub(super) u64);

impl Spacing {
    /// Adds the probability `chance * part / whole`; returns whether an event happens.
    #[inline]
    pub(super) fn draw(&mut self, chance: Chance, part: u64, whole: u64) -> bool {
        let due = (chance.as_f64() * part as f64 / whole.max(1) as f64 * ONE as f64) as u64;
        self.0 += due.min(ONE);
        let happens = self.0 >= ONE;
        if happens {
            self.0 -= ONE;
        }
        happens
    }
}

const ONE: u64 = 1 << 32;
