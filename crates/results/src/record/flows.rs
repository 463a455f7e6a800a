//! Measured flows: counts and quantiles, in memory that does not depend on their number.

use std::collections::BTreeMap;

use selvedge_telemetry::{FlowRow, GroupParts, RankRow, TimeProfile, WorkloadTime};
use selvedge_units::Instant;

use super::groups::Groups;
use super::values::{KEPT, Values};
use crate::Quantiles;
use crate::point::{Distribution, FlowSummary, SizeClass, TimeSplit, cdf_levels, tail_levels};

#[derive(Default)]
pub(super) struct FlowAccumulator {
    /// What the groups of each workload consist of, where it has any.
    groups_of: Vec<Option<GroupParts>>,
    /// Whether flows of groups count only together, because others count one by one.
    is_mixed: bool,
    measured: u64,
    unfinished: u64,
    /// Sum of the completion times of those that finished, in picoseconds.
    finished_ps: u128,
    /// When the others began, summed.
    begun_ps: u128,
    fct_us: Values,
    slowdown: Values,
    throughput: Evenness,
    single_packet_fct_us: Values,
    /// By the power of two that the size does not exceed.
    by_size: BTreeMap<u32, ClassAccumulator>,
    /// Incasts and collectives.
    groups: Groups,
}

struct ClassAccumulator {
    slowdown: Quantiles,
    fct_sum_us: f64,
    size_sum: f64,
}

impl FlowAccumulator {
    /// Of the workloads whose groups are these.
    pub(super) fn new(groups_of: &[Option<GroupParts>]) -> Self {
        Self { groups_of: groups_of.to_vec(), ..Self::default() }
    }

    /// The same, where all workloads have their own beside it.
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
            self.unfinished += 1;
            self.begun_ps += u128::from(row.start.as_ps());
            return;
        };
        self.finished_ps += row.fct().map_or(0, |fct| u128::from(fct.as_ps()));
        self.fct_us.add(fct_us);
        self.slowdown.add(slowdown);
        self.throughput.add(row.size.get() as f64 / fct_us);
        if row.packets == 1 {
            self.single_packet_fct_us.add(fct_us);
        }
        let class = self.by_size.entry(size_class(row.size.get())).or_insert_with(|| ClassAccumulator {
            slowdown: Quantiles::with_exact_limit(KEPT),
            fct_sum_us: 0.0,
            size_sum: 0.0,
        });
        class.slowdown.add(slowdown);
        class.fct_sum_us += fct_us;
        class.size_sum += row.size.get() as f64;
    }

    /// Says whether all flows are wanted a second time, in the same order.
    pub(super) fn begin_again(&mut self) -> bool {
        let values = [&mut self.fct_us, &mut self.slowdown, &mut self.single_packet_fct_us];
        values.map(Values::begin_again).contains(&true)
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

    /// What a flow adds to the distributions: its completion time in microseconds, and its slowdown. `None` if it did
    /// not finish, or does not count by itself.
    fn times(&self, row: &FlowRow) -> Option<(f64, f64)> {
        row.fct().map(|fct| fct.as_us_f64()).zip(row.slowdown()).filter(|_| self.counts(row))
    }

    pub(super) fn add_rank(&mut self, row: &RankRow) {
        if let Some(parts) = self.groups_of(row.workload) {
            self.groups.add_rank(parts, row);
        }
    }

    /// Whether a flow counts by itself.
    fn counts(&self, row: &FlowRow) -> bool {
        row.measured && self.counts_workload(row.workload)
    }

    /// Whether flows of this workload count by themselves.
    fn counts_workload(&self, workload: u16) -> bool {
        !(self.is_mixed && self.groups_of(workload).is_some())
    }

    /// What those flows of all workloads spent that count by themselves.
    pub(super) fn time_of_all(&self, profile: &TimeProfile) -> WorkloadTime {
        let mut sum = WorkloadTime::default();
        let counting = (0..).zip(&profile.workloads).filter(|&(workload, _)| self.counts_workload(workload));
        counting.for_each(|(_, time)| sum.add(time));
        sum
    }

    fn groups_of(&self, workload: u16) -> Option<GroupParts> {
        self.groups_of.get(usize::from(workload)).copied().flatten()
    }

    /// What came of them in a run that ended at `end`; `time` is what they spent.
    pub(super) fn finish(mut self, time: &WorkloadTime, end: Instant) -> FlowSummary {
        let enough = |level: f64, count: u64| (1.0 - level) * count as f64 >= 1.0 - 1e-9;
        let single = self.single_packet_fct_us.quantiles();
        let messages = single.count();
        // The first level has a metric of its own, which always says what there is.
        let known = (0..).zip(tail_levels()).take_while(|&(at, level)| at == 0 || enough(level, messages));
        let single_packet_tail_us = known.filter_map(|(_, level)| single.at(level)).collect();
        let groups = self.groups.finish();
        let unfinished_ps = (u128::from(end.as_ps()) * u128::from(self.unfinished)).saturating_sub(self.begun_ps);
        let mean_us = (self.finished_ps + unfinished_ps) as f64 / 1e6 / self.measured.max(1) as f64;
        FlowSummary {
            measured: self.measured,
            unfinished: self.unfinished,
            fct_cdf_us: cdf_levels().into_iter().filter_map(|level| self.fct_us.quantiles().at(level)).collect(),
            fct_us: distribution(self.fct_us.quantiles()),
            slowdown: distribution(self.slowdown.quantiles()),
            single_packet_fct_us: distribution(self.single_packet_fct_us.quantiles()),
            single_packet_tail_us,
            throughput_jain: self.throughput.jain(),
            by_size: self
                .by_size
                .into_iter()
                .map(|(power, mut class)| SizeClass {
                    above: if power == 0 { 0 } else { 1 << (power - 1) },
                    up_to: 1_u64.checked_shl(power).unwrap_or(u64::MAX),
                    size_mean: class.size_sum / class.slowdown.count() as f64,
                    fct_mean_us: class.fct_sum_us / class.slowdown.count() as f64,
                    slowdown: distribution(&mut class.slowdown),
                })
                .collect(),
            groups: groups.complete + groups.unfinished,
            unfinished_groups: groups.unfinished,
            group_completion_mean_us: groups.completion_mean_us(),
            time: TimeSplit::new(time, mean_us),
        }
    }
}

/// How alike values are.
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
    /// Jain's index (Jain, Chiu and Hawe 1984): 1 where all are alike, 1/n where one of n has everything.
    fn jain(&self) -> Option<f64> {
        (self.squares > 0.0).then(|| self.sum * self.sum / (self.count as f64 * self.squares))
    }
}

/// The smallest power of two that `bytes` does not exceed.
fn size_class(bytes: u64) -> u32 {
    bytes.max(1).checked_next_power_of_two().map_or(64, u64::trailing_zeros)
}

fn distribution(values: &mut Quantiles) -> Distribution {
    Distribution {
        count: values.count(),
        mean: values.mean(),
        p50: values.at(0.5),
        p99: values.at(0.99),
        p999: values.at(0.999),
        max: values.max(),
    }
}
