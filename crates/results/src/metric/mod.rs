//! The metrics: one table for the summary, the terminal, the report and expectations.

mod bounds;
mod names;
mod table;

use crate::{Bound, Estimate, PointSummary};

pub(crate) use self::names::{
    COMPARED, EQIF_DROPS, FLOW_COMPLETION, GROUP_COMPLETION, GROUPS, MEASURED, OF_FINISHED, PER_WORKLOAD,
    TABLE_METRICS, TIME_SAMPLES, TIMES, UNFINISHED, UNFINISHED_GROUPS,
};
pub use self::table::METRICS;

/// One number about a run.
#[derive(Clone, Copy)]
pub struct Metric {
    /// Stable name in files.
    pub name: &'static str,
    /// Displayed name.
    pub title: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Definition of the metric, in words.
    pub meaning: &'static str,
    /// Function that returns the metric's value in one run, if the run has one.
    pub of: fn(&PointSummary) -> Option<f64>,
}

/// The unit of a metric, which determines how it is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A plain number, such as a slowdown.
    Plain,
    /// A count.
    Count,
    /// Microseconds.
    Us,
    /// A share from 0 to 1, printed in per cent.
    Share,
    /// A plain number from 0 to 1.
    Index,
    /// Gigabits per second.
    Gbps,
    /// Kilobytes.
    Kb,
}

impl Unit {
    /// Returns the unit of values in files; `None` for plain numbers.
    pub(crate) const fn in_words(self) -> Option<&'static str> {
        match self {
            Self::Plain | Self::Count | Self::Index => None,
            Self::Us => Some("microseconds"),
            Self::Share => Some("parts of 1"),
            Self::Gbps => Some("gigabits per second"),
            Self::Kb => Some("kilobytes"),
        }
    }
}

impl Metric {
    /// Returns the metric's estimate from the runs of the seeds, some of which may be missing.
    pub(crate) fn estimate<'a>(&self, points: impl Iterator<Item = Option<&'a PointSummary>> + Clone) -> Estimate {
        let per_seed = points.clone().map(|point| point.and_then(self.of)).collect();
        let bound = Bound::of_all(points.flatten().map(|point| self.bound(point)));
        let estimate = match self.unit {
            Unit::Share | Unit::Index => Estimate::of_share(per_seed),
            Unit::Plain | Unit::Count | Unit::Us | Unit::Gbps | Unit::Kb => Estimate::of_mean(per_seed),
        };
        estimate.bounded(bound)
    }

    /// Returns the metric of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Returns the metric of this name, or the one that a workload's metric of this name corresponds to.
    pub(crate) fn find_any(name: &str) -> Option<&'static Self> {
        Self::find(name).or_else(|| Some(Self::find_of_workload(name)?.1))
    }

    /// Splits the name of a workload's metric, such as "poisson\[1\].fct_mean_us", into the workload and the
    /// corresponding metric of all flows.
    pub fn find_of_workload(name: &str) -> Option<(&str, &'static Self)> {
        let (workload, metric) = name.rsplit_once('.')?;
        PER_WORKLOAD.contains(&metric).then(|| Self::find(metric)).flatten().map(|metric| (workload, metric))
    }
}
