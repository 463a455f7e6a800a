//! Quantiles of values that are on disk as well.

use crate::Quantiles;
use crate::quantile::EXACT_LIMIT;

/// Values that are kept while a run goes on.
pub(super) const KEPT: usize = 1 << 14;

/// Quantiles as exact as those of [`Quantiles::new`], in a quarter of the memory. Where more values came than were
/// kept, and answers ought to be exact all the same, all of them are added a second time: when the run is over, and
/// neither it nor the writers of its tables need their memory any more.
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

    /// Says whether all values are wanted a second time, in the same order: all but `late` more, which
    /// come last and once.
    pub(super) fn begin_again(&mut self, late: u64) -> bool {
        let all = self.first.count() + late;
        let again = all > KEPT as u64 && all <= EXACT_LIMIT as u64;
        self.second = again.then(Quantiles::new);
        again
    }

    /// Adds a value a second time, where that is wanted.
    pub(super) fn add_again(&mut self, value: f64) {
        if let Some(second) = &mut self.second {
            second.add(value);
        }
    }

    pub(super) fn quantiles(&mut self) -> &mut Quantiles {
        self.second.as_mut().unwrap_or(&mut self.first)
    }
}
