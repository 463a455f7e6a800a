//! Events at a given probability, evenly spaced: what is due is saved up until it makes one event. RED wants marks
//! spread out (Floyd and Jacobson 1993, section 7, method 2); this does so without drawing numbers.

use selvedge_units::Chance;

/// What is saved up, in units of 2^-32 events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Spacing(pub(super) u64);

impl Spacing {
    /// An event is due with this probability, times `part / whole`; returns whether it happens.
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
