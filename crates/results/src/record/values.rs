//! Quantiles of values that are also on disk.

use crate::Quantiles;
use crate::quantile::EXACT_LIMIT;

/// Number of values kept exactly during a run.
pub(super) const KEPT: usize = 1 << 14;

/// Quantiles as exact as those of [`Quantiles::new`], in a quarter of the memory. If more values were added than are
/// kept, but few enough for exact answers, all of them are added a second time after the run, when neither the run nor
/// the writers of its tables need their memory any more.
pub(super) struct Values {
    first: Quantiles,
    second: Option<Quantiles>,
}

impl Default for Values {
    fn default() -> Self {
        Self { first: Quantiles::with_exact_limit(KEPT), second: None }
    }
}

impl Values {
    pub(super) fn add(&mut self, value: f64) {
        self.first.add(value);
    }

    /// Returns whether all values must be added a second time, in the same order; the `late` values are added once,
    /// after them.
    pub(super) fn begin_again(&mut self, late: u64) -> bool {
        let all = self.first.count() + late;
        let again = all > KEPT as u64 && all <= EXACT_LIMIT as u64;
        self.second = again.then(Quantiles::new);
        again
    }

    /// Adds a value a second time, if [`begin_again`](Self::begin_again) returned true.
    pub(super) fn add_again(&mut self, value: f64) {
        if let Some(second) = &mut self.second {
            second.add(value);
        }
    }

    pub(super) fn quantiles(&mut self) -> &mut Quantiles {
        self.second.as_mut().unwrap_or(&mut self.first)
    }
}
