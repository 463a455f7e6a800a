//! Measured flows: counts and quantiles, in memory that does not depend on their number.

use std::collections::BTreeMap;

use selvedge_telemetry::{FlowRow, GroupParts, RankRow, TimeProfile, WorkloadTime};
use selvedge_units::{Duration, Instant};

use super::groups::Groups;
use super::values::{KEPT, Values};
use crate::Quantiles;
use crate::point::{Distribution, FlowSummary, OpenQuantiles, SizeClass, TimeSplit, cdf_levels, tail_levels};

#[derive(Default)]
pub(super) struct FlowAccumulator {
    /// Composition of each workload's groups, indexed by workload; `None` for a workload without groups.
    groups_of: Vec<Option<GroupParts>>,
    /// Whether flows of groups count only as part of their group, because other flows count individually.
    is_mixed: bool,
    measured: u64,
    /// Measured flows that had not finished when the run ended.
    open: Vec<Open>,
    /// Sum of the completion times of finished flows, in picoseconds.
    finished_ps: u128,
    fct_us: Values,
    slowdown: Values,
    throughput: Evenness,
    single_packet_fct_us: Values,
    /// Size classes, keyed by the exponent of the smallest power of two that the size does not exceed.
    by_size: BTreeMap<u32, ClassAccumulator>,
    /// Repetitions of incasts and collectives.
    groups: Groups,
}

/// A measured flow that had not finished when its run ended.
struct Open {
    start: Instant,
    ideal: Duration,
    size: u64,
    is_single: bool,
}

struct ClassAccumulator {
    slowdown: Quantiles,
    /// Slowdowns of flows that had not finished.
    open: Vec<f64>,
    fct_sum_us: f64,
    size_sum: f64,
}

impl FlowAccumulator {
    /// Creates an accumulator for workloads with these groups.
    pub(super) fn new(groups_of: &[Option<GroupParts>]) -> Self {
        Self { groups_of: groups_of.to_vec(), ..Self::default() }
    }

    /// Creates an accumulator for the flows of all workloads, beside which each workload has its own accumulator.
    pub(super) fn of_all(groups_of: &[Option<GroupParts>]) -> Self {
        let is_mixed = groups_of.iter().any(Option::is_some) && groups_of.contains(&None);
        Self { is_mixed, ..Self::new(groups_of) }
    }

    pub(super) fn add(&mut self, row: &FlowRow) {
        if let Some(parts) = self.groups_of(row.workload) {
            self.groups.add(parts, row);
        }
        if !self.counts(row) {
            return;
        }
        self.measured += 1;
        let Some((fct_us, slowdown)) = self.times(row) else {
            let is_single = row.packets == 1;
            self.open.push(Open { start: row.start, ideal: row.ideal, size: row.size.get(), is_single });
            return;
        };
        self.finished_ps += row.fct().map_or(0, |fct| u128::from(fct.as_ps()));
        self.fct_us.add(fct_us);
        self.slowdown.add(slowdown);
        self.throughput.add(row.size.get() as f64 / fct_us);
        if row.packets == 1 {
            self.single_packet_fct_us.add(fct_us);
        }
        self.class(row.size.get()).add(row.size.get(), fct_us, slowdown);
    }

    fn class(&mut self, size: u64) -> &mut ClassAccumulator {
        self.by_size.entry(size_class(size)).or_default()
    }

    /// Returns whether all flows must be added a second time, in the same order.
    pub(super) fn begin_again(&mut self) -> bool {
        let late = self.open.len() as u64;
        let single = self.open.iter().filter(|open| open.is_single).count() as u64;
        let values = [(&mut self.fct_us, late), (&mut self.slowdown, late), (&mut self.single_packet_fct_us, single)];
        values.map(|(values, late)| values.begin_again(late)).contains(&true)
    }

    /// Adds a flow a second time.
    pub(super) fn add_again(&mut self, row: &FlowRow) {
        let Some((fct_us, slowdown)) = self.times(row) else { return };
        self.fct_us.add_again(fct_us);
        self.slowdown.add_again(slowdown);
        if row.packets == 1 {
            self.single_packet_fct_us.add_again(fct_us);
        }
    }

    /// Returns the flow's contribution to the distributions: completion time in microseconds, and slowdown. `None` if
    /// the flow did not finish, or does not count individually.
    fn times(&self, row: &FlowRow) -> Option<(f64, f64)> {
        row.fct().map(|fct| fct.as_us_f64()).zip(row.slowdown()).filter(|_| self.counts(row))
    }

    pub(super) fn add_rank(&mut self, row: &RankRow) {
        if let Some(parts) = self.groups_of(row.workload) {
            self.groups.add_rank(parts, row);
        }
    }

    /// Returns whether a flow counts individually.
    fn counts(&self, row: &FlowRow) -> bool {
        row.measured && self.counts_workload(row.workload)
    }

    /// Returns whether flows of this workload count individually.
    fn counts_workload(&self, workload: u16) -> bool {
        !(self.is_mixed && self.groups_of(workload).is_some())
    }

    /// Returns the time that individually counting flows of all workloads spent, by part.
    pub(super) fn time_of_all(&self, profile: &TimeProfile) -> WorkloadTime {
        let mut sum = WorkloadTime::default();
        let counting = (0..).zip(&profile.workloads).filter(|&(workload, _)| self.counts_workload(workload));
        counting.for_each(|(_, time)| sum.add(time));
        sum
    }

    fn groups_of(&self, workload: u16) -> Option<GroupParts> {
        self.groups_of.get(usize::from(workload)).copied().flatten()
    }

    /// Returns the summary of the flows in a run that ended at `end`; `time` is the time that they spent, by part.
    pub(super) fn finish(mut self, time: &WorkloadTime, end: Instant) -> FlowSummary {
        // The curve covers finished flows only; their share of all flows is where the curve ends.
        let fct_cdf_us = cdf_levels().into_iter().filter_map(|level| self.fct_us.quantiles().at(level)).collect();
        let open = std::mem::take(&mut self.open);
        let fct_us: Vec<f64> = open.iter().map(|open| open.age(end).as_us_f64()).collect();
        let slowdowns: Vec<f64> = open.iter().map(|open| open.slowdown(end)).collect();
        let single_fct_us: Vec<f64> =
            open.iter().zip(&fct_us).filter_map(|(open, &us)| open.is_single.then_some(us)).collect();
        for ((open, &us), &slowdown) in open.iter().zip(&fct_us).zip(&slowdowns) {
            self.class(open.size).add_open(open.size, us, slowdown);
        }
        let enough = |level: f64, count: u64| (1.0 - level) * count as f64 >= 1.0 - 1e-9;
        let single = self.single_packet_fct_us.quantiles();
        let late = single_fct_us.len() as u64;
        let most: Vec<Option<f64>> = tail_levels().into_iter().map(|level| single.at_most(level, late)).collect();
        let single_packet_fct_us = distribution(single, &single_fct_us);
        let messages = single.count();
        // The first level has a metric of its own, which must have a value even with few messages.
        let known = (0..).zip(tail_levels()).take_while(|&(at, level)| at == 0 || enough(level, messages));
        let single_packet_tail_us: Vec<f64> = known.filter_map(|(_, level)| single.at(level)).collect();
        let open_tail = single_packet_tail_us.iter().zip(most).position(|(&least, most)| is_open(Some(least), most));
        let groups = self.groups.finish();
        let unfinished_ps: u128 = open.iter().map(|open| u128::from(open.age(end).as_ps())).sum();
        let mean_us = (self.finished_ps + unfinished_ps) as f64 / 1e6 / self.measured.max(1) as f64;
        FlowSummary {
            measured: self.measured,
            unfinished: open.len() as u64,
            fct_cdf_us,
            fct_us: distribution(self.fct_us.quantiles(), &fct_us),
            slowdown: distribution(self.slowdown.quantiles(), &slowdowns),
            single_packet_fct_us,
            single_packet_tail_us,
            open_tail,
            throughput_jain: self.throughput.jain(),
            by_size: self
                .by_size
                .into_iter()
                .map(|(power, mut class)| {
                    let slowdown = distribution(&mut class.slowdown, &class.open);
                    SizeClass {
                        above: if power == 0 { 0 } else { 1 << (power - 1) },
                        up_to: 1_u64.checked_shl(power).unwrap_or(u64::MAX),
                        size_mean: class.size_sum / slowdown.count as f64,
                        fct_mean_us: class.fct_sum_us / slowdown.count as f64,
                        unfinished: class.open.len() as u64,
                        slowdown,
                    }
                })
                .collect(),
            groups: groups.complete + groups.unfinished,
            unfinished_groups: groups.unfinished,
            group_completion_mean_us: groups.completion_mean_us(end),
            time: TimeSplit::new(time, mean_us),
        }
    }
}

impl Open {
    /// Returns the flow's age when the run ended at `end`.
    fn age(&self, end: Instant) -> Duration {
        if end > self.start { end.since(self.start) } else { Duration::ZERO }
    }

    /// Returns the flow's age divided by its completion time in an empty network.
    fn slowdown(&self, end: Instant) -> f64 {
        self.age(end).as_ps() as f64 / self.ideal.as_ps().max(1) as f64
    }
}

impl Default for ClassAccumulator {
    fn default() -> Self {
        Self { slowdown: Quantiles::with_exact_limit(KEPT), open: Vec::new(), fct_sum_us: 0.0, size_sum: 0.0 }
    }
}

impl ClassAccumulator {
    fn add(&mut self, size: u64, fct_us: f64, slowdown: f64) {
        self.slowdown.add(slowdown);
        self.add_sums(size, fct_us);
    }

    /// Adds a flow that had not finished.
    fn add_open(&mut self, size: u64, age_us: f64, slowdown: f64) {
        self.open.push(slowdown);
        self.add_sums(size, age_us);
    }

    fn add_sums(&mut self, size: u64, fct_us: f64) {
        self.fct_sum_us += fct_us;
        self.size_sum += size as f64;
    }
}

/// Sums for Jain's index of fairness.
#[derive(Default)]
struct Evenness {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Evenness {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.squares += value * value;
    }
    /// Returns Jain's index (Jain, Chiu and Hawe 1984): 1 for equal values, 1/n if one of n is not zero.
    fn jain(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.sum * self.sum / (self.count as f64 * self.squares))
    }
}

/// Returns the exponent of the smallest power of two that `bytes` does not exceed.
fn size_class(bytes: u64) -> u32 {
    bytes.max(1).checked_next_power_of_two().map_or(64, u64::trailing_zeros)
}

/// Returns the distribution of `values` and of `open` ones, which count although they may still grow.
fn distribution(values: &mut Quantiles, open: &[f64]) -> Distribution {
    let late = open.len() as u64;
    let most = [0.5, 0.99, 0.999].map(|level| values.at_most(level, late));
    open.iter().for_each(|&value| values.add(value));
    let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|level| values.at(level));
    Distribution {
        count: values.count(),
        mean: values.mean(),
        p50,
        p99,
        p999,
        max: values.max(),
        open: OpenQuantiles { p50: is_open(p50, most[0]), p99: is_open(p99, most[1]), p999: is_open(p999, most[2]) },
    }
}

/// Returns whether a quantile may be visibly larger than `least`, given its upper limit `most` (`None`: no limit).
fn is_open(least: Option<f64>, most: Option<f64>) -> bool {
    least.is_some_and(|least| most.is_none_or(|most| most > least * (1.0 + VISIBLE)))
}

/// Relative increase below which a quantile counts as known, though unfinished flows can raise it.
const VISIBLE: f64 = 0.005;
