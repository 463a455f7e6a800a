//! One number per port and sample, aggregated by tier over time.

use selvedge_units::{Duration, Instant};

use crate::Tier;
use crate::point::{PortTimes, TierTimes};
use crate::timeline::{Bin, Timeline};

/// Largest number of bins for the whole run.
const BINS: usize = 256;

/// A quantity of all ports over time.
pub(super) struct TierTimeline {
    /// Number of ports of each tier.
    ports: Vec<u64>,
    /// Bins over time; created at the first sample, whose interval is the first bin's width.
    line: Option<Timeline<AllTiers>>,
    /// Values of the present sample by tier; whole numbers, which compare faster than floats.
    values: Vec<Vec<u64>>,
}

/// The bins of one interval, one per tier.
#[derive(Clone, Default)]
pub(super) struct AllTiers(Vec<TierBin>);

#[derive(Clone, Copy, Default)]
struct TierBin {
    samples: u64,
    max: f64,
    p99_sum: f64,
    mean_sum: f64,
}

impl Bin for AllTiers {
    fn absorb(&mut self, later: &Self) {
        if self.0.is_empty() {
            self.0.clone_from(&later.0);
            return;
        }
        for (mine, theirs) in self.0.iter_mut().zip(&later.0) {
            mine.samples += theirs.samples;
            mine.max = mine.max.max(theirs.max);
            mine.p99_sum += theirs.p99_sum;
            mine.mean_sum += theirs.mean_sum;
        }
    }
}

impl TierTimeline {
    pub(super) fn new(ports: Vec<u64>) -> Self {
        let values = vec![Vec::new(); ports.len()];
        Self { ports, line: None, values }
    }

    /// Adds the value of a port of the tier at index `tier` to the present sample.
    #[inline]
    pub(super) fn note(&mut self, tier: usize, value: u64) {
        self.values[tier].push(value);
    }

    /// Closes the present sample, taken at `time` and covering the `interval` before. `unit` is the value that counts
    /// as 1.
    pub(super) fn close(&mut self, time: Instant, interval: Duration, unit: u64) {
        let unit = unit as f64;
        let all = self.line.get_or_insert_with(|| Timeline::new(BINS, interval)).at(time);
        all.0.resize(self.ports.len(), TierBin::default());
        for ((bin, values), &ports) in all.0.iter_mut().zip(&mut self.values).zip(&self.ports) {
            // A port that was not sampled has the value 0.
            values.resize(ports.max(values.len() as u64) as usize, 0);
            if let Some(last) = values.len().checked_sub(1) {
                let rank = (values.len() * 99).div_ceil(100) - 1;
                let (_, &mut p99, above) = values.select_nth_unstable(rank.min(last));
                let max = above.iter().copied().max().unwrap_or(p99);
                bin.samples += 1;
                bin.p99_sum += p99 as f64 / unit;
                bin.max = bin.max.max(max as f64 / unit);
                bin.mean_sum += values.iter().sum::<u64>() as f64 / unit / values.len() as f64;
            }
            values.clear();
        }
    }

    /// Returns the bins, once there are any.
    pub(super) fn line(&self) -> Option<&Timeline<AllTiers>> {
        self.line.as_ref()
    }

    /// Returns the quantity over time, rounded to multiples of 1 / `steps`; `tiers` are those given to
    /// [`TierTimeline::new`].
    pub(super) fn times(&self, tiers: &[(Tier, u64)], steps: f64) -> PortTimes {
        let Some(line) = &self.line else { return PortTimes::default() };
        let column = |at: usize, of: fn(&TierBin) -> f64| {
            line.bins().iter().map(|bin| (bin.0.get(at).map_or(0.0, of) * steps).round() / steps).collect()
        };
        let tiers = tiers.iter().enumerate().map(|(at, &(tier, ports))| TierTimes {
            tier,
            ports,
            max: column(at, |bin| bin.max),
            p99: column(at, |bin| bin.p99_sum / bin.samples.max(1) as f64),
            mean: column(at, |bin| bin.mean_sum / bin.samples.max(1) as f64),
        });
        PortTimes { bin_us: line.width().as_us_f64(), tiers: tiers.collect() }
    }
}
