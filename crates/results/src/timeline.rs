//! Quantities over time, in a bounded number of bins.
//!
//! The length of a run is not known in advance. Bins begin as wide as the first sampling interval; when their number
//! reaches the limit, adjacent bins are joined and the width doubles.

use selvedge_units::{Duration, Instant};

/// The content of a bin.
pub(crate) trait Bin: Clone + Default {
    /// Adds the content of the bin that follows in time.
    fn absorb(&mut self, later: &Self);
}

/// At most `limit` bins of equal width, from time zero on.
#[derive(Clone, Debug)]
pub(crate) struct Timeline<B> {
    limit: usize,
    width: u64,
    bins: Vec<B>,
}

impl<B: Bin> Timeline<B> {
    /// Creates an empty timeline whose bins are `width` wide at first. `limit` is even.
    pub(crate) fn new(limit: usize, width: Duration) -> Self {
        Self { limit, width: width.as_ps().max(1), bins: Vec::new() }
    }

    /// Returns the bin of an interval that ends at `end`.
    pub(crate) fn at(&mut self, end: Instant) -> &mut B {
        let moment = end.as_ps().saturating_sub(1);
        while moment / self.width >= self.limit as u64 {
            self.halve();
        }
        let index = (moment / self.width) as usize;
        if index >= self.bins.len() {
            self.bins.resize(index + 1, B::default());
        }
        &mut self.bins[index]
    }

    /// Joins bins until they are `width` wide, a power of two times their present width.
    pub(crate) fn widen_to(&mut self, width: Duration) {
        while self.width < width.as_ps() {
            self.halve();
        }
    }

    /// Returns the width of a bin.
    pub(crate) fn width(&self) -> Duration {
        Duration::from_ps(self.width)
    }

    /// Returns the bins, oldest first.
    pub(crate) fn bins(&self) -> &[B] {
        &self.bins
    }

    fn halve(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.bins = self
            .bins
            .chunks(2)
            .map(|pair| {
                let mut joined = pair[0].clone();
                if let Some(later) = pair.get(1) {
                    joined.absorb(later);
                }
                joined
            })
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bin that holds a sum, joined by addition.
    impl Bin for u64 {
        fn absorb(&mut self, later: &Self) {
            *self += later;
        }
    }

    #[test]
    fn bins_stay_bounded_and_lose_nothing() {
        let mut line = Timeline::<u64>::new(8, Duration::from_us(1));
        for us in 1..=1000 {
            *line.at(Instant::ZERO + Duration::from_us(us)) += us;
        }
        assert!(line.bins().len() <= 8);
        assert_eq!(line.width(), Duration::from_us(128));
        assert_eq!(line.bins().iter().sum::<u64>(), 500_500);
        assert_eq!(line.bins()[0], 128 * 129 / 2);
    }

    #[test]
    fn an_interval_belongs_to_the_bin_in_which_it_ends() {
        let mut line = Timeline::<u64>::new(8, Duration::from_us(1));
        *line.at(Instant::from_ps(1_000_000)) += 1;
        *line.at(Instant::from_ps(1_000_001)) += 1;
        assert_eq!(line.bins(), [1, 1]);
    }
}
