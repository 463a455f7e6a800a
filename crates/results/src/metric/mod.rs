//! The metrics: one table that the summary, the terminal, the report and expectations share.

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
    /// Its name in files; stable.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What it counts in.
    pub unit: Unit,
    /// What it means.
    pub meaning: &'static str,
    /// Its value in one run, if the run has one.
    pub of: fn(&PointSummary) -> Option<f64>,
}

/// How a metric is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A plain number, as a slowdown.
    Plain,
    /// A number of things.
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
    /// What values in files are in, where that is not plain.
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
    /// Its estimate from the runs of the seeds, some of which may be missing.
    pub(crate) fn estimate<'a>(&self, points: impl Iterator<Item = Option<&'a PointSummary>> + Clone) -> Estimate {
        let per_seed = points.clone().map(|point| point.and_then(self.of)).collect();
        let bound = Bound::of_all(points.flatten().map(|point| self.bound(point)));
        let estimate = match self.unit {
            Unit::Share | Unit::Index => Estimate::of_share(per_seed),
            Unit::Plain | Unit::Count | Unit::Us | Unit::Gbps | Unit::Kb => Estimate::of_mean(per_seed),
        };
        estimate.bounded(bound)
    }

    /// The metric of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// That of this name, or the one that a workload's is like.
    pub(crate) fn find_any(name: &str) -> Option<&'static Self> {
        Self::find(name).or_else(|| Some(Self::find_of_workload(name)?.1))
    }

    /// A workload's metric by its name there, as in "poisson\[1\].fct_mean_us": the workload, and the metric of
    /// all flows that it corresponds to.
    pub fn find_of_workload(name: &str) -> Option<(&str, &'static Self)> {
        let (workload, metric) = name.rsplit_once('.')?;
        PER_WORKLOAD.contains(&metric).then(|| Self::find(metric)).flatten().map(|metric| (workload, metric))
    }
}
