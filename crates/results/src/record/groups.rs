//! Repetitions of incasts and collectives, and the completion time of each repetition.

use std::collections::BTreeMap;

use selvedge_telemetry::{FlowRow, GroupParts, RankRow};
use selvedge_units::Instant;

/// Completion times of repetitions, in memory that does not depend on their number: only repetitions are kept that have
/// some, but not all, parts reported.
#[derive(Default)]
pub(super) struct Groups {
    /// Partly reported repetitions, keyed by workload and repetition.
    open: BTreeMap<(u16, u32), Group>,
    totals: GroupTotals,
}

/// Totals of the repetitions that began in the measured interval.
#[derive(Clone, Copy, Default)]
pub(super) struct GroupTotals {
    pub(super) complete: u64,
    pub(super) unfinished: u64,
    /// Sum of the completion times of complete repetitions, in microseconds.
    sum_us: f64,
    /// Sum of the start times of incomplete repetitions, in microseconds.
    begun_us: f64,
}

#[derive(Clone, Copy)]
struct Group {
    start: Instant,
    /// Whether the repetition is measured, as its earliest part is.
    measured: bool,
    /// Finish of the latest part; `None` once a part is known to be unfinished.
    finish: Option<Instant>,
    /// Number of parts not yet reported.
    left: u64,
}

impl Groups {
    /// Adds a flow, finished or not, of a workload whose groups consist of `parts`.
    pub(super) fn add(&mut self, parts: GroupParts, row: &FlowRow) {
        if let GroupParts::Flows(count) = parts {
            let part = Group { start: row.start, measured: row.measured, finish: row.finish, left: count };
            self.widen((row.workload, row.group), part);
        }
    }

    /// Adds a rank's part, which begins before its first flow and ends after its last one, because ranks also compute.
    pub(super) fn add_rank(&mut self, parts: GroupParts, row: &RankRow) {
        if let GroupParts::Ranks(count) = parts {
            let part = Group { start: row.begin, measured: row.measured, finish: row.end, left: count };
            self.widen((row.workload, row.group), part);
        }
    }

    fn widen(&mut self, key: (u16, u32), part: Group) {
        let group = self.open.entry(key).or_insert(part);
        if part.start < group.start {
            (group.start, group.measured) = (part.start, part.measured);
        }
        group.finish = group.finish.zip(part.finish).map(|(a, b)| a.max(b));
        group.left -= 1;
        if group.left == 0 {
            let group = *group;
            self.open.remove(&key);
            self.totals.add(&group);
        }
    }

    /// Returns the totals of all repetitions, including those with unreported parts.
    pub(super) fn finish(mut self) -> GroupTotals {
        for group in self.open.into_values() {
            self.totals.add(&Group { finish: None, ..group });
        }
        self.totals
    }
}

impl GroupTotals {
    fn add(&mut self, group: &Group) {
        match group.finish {
            _ if !group.measured => {}
            Some(finish) => {
                self.complete += 1;
                self.sum_us += finish.since(group.start).as_us_f64();
            }
            None => {
                self.unfinished += 1;
                self.begun_us += group.start.since(Instant::ZERO).as_us_f64();
            }
        }
    }

    /// Returns the mean time of repetitions, from the first start to the last finish. Incomplete ones count with their
    /// age at the `end` of the run, which makes the mean a lower bound.
    pub(super) fn completion_mean_us(&self, end: Instant) -> Option<f64> {
        let all = self.complete + self.unfinished;
        let ages_us = self.unfinished as f64 * end.since(Instant::ZERO).as_us_f64() - self.begun_us;
        (all > 0).then(|| (self.sum_us + ages_us.max(0.0)) / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Bytes, Duration, HostId};

    use super::*;

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_us(us)
    }

    fn flow(group: u32, start_us: u64, finish_us: Option<u64>) -> FlowRow {
        FlowRow {
            id: 0,
            workload: 0,
            group,
            src: HostId(0),
            dst: HostId(1),
            size: Bytes::new(1),
            packets: 1,
            start: at(start_us),
            finish: finish_us.map(at),
            ideal: Duration::from_us(1),
            spurious: 0,
            measured: true,
        }
    }

    /// Returns complete and unfinished repetitions of two flows each, and the mean, in a run of 40 us.
    fn of_pairs(rows: &[FlowRow]) -> (u64, u64, Option<f64>) {
        let mut groups = Groups::default();
        rows.iter().for_each(|row| groups.add(GroupParts::Flows(2), row));
        let totals = groups.finish();
        (totals.complete, totals.unfinished, totals.completion_mean_us(at(40)))
    }

    #[test]
    fn a_repetition_lasts_from_its_first_start_to_its_last_finish() {
        let first = [flow(0, 2, Some(5)), flow(1, 10, Some(13)), flow(0, 1, Some(3)), flow(1, 9, Some(12))];
        assert_eq!(of_pairs(&first), (2, 0, Some(4.0)));
        assert_eq!(of_pairs(&[flow(2, 20, Some(29)), flow(2, 20, None)]), (0, 1, Some(20.0)), "a flow never finished");
        assert_eq!(of_pairs(&[]), (0, 0, None));
    }

    #[test]
    fn a_repetition_that_was_cut_off_is_unfinished() {
        let rows = [flow(0, 1, Some(3)), flow(0, 1, Some(5)), flow(1, 10, Some(13))];
        assert_eq!(of_pairs(&rows), (1, 1, Some(17.0)), "the other flow of the second never began: 30 us, and 4");
    }

    #[test]
    fn a_repetition_counts_where_it_began() {
        let outside = |row: FlowRow| FlowRow { measured: false, ..row };
        let before = [outside(flow(0, 1, Some(3))), flow(0, 2, Some(5))];
        assert_eq!(of_pairs(&before), (0, 0, None), "in whatever order its flows end");
        let across = [outside(flow(1, 10, Some(12))), flow(1, 9, Some(13))];
        assert_eq!(of_pairs(&across), (1, 0, Some(4.0)));
        assert_eq!(of_pairs(&across[..1]), (0, 0, None));
    }

    #[test]
    fn jobs_are_done_when_their_ranks_are() {
        let rank = |group, begin, end: Option<u64>| RankRow {
            workload: 0,
            group,
            begin: at(begin),
            end: end.map(at),
            measured: true,
        };
        let mut groups = Groups::default();
        let parts = GroupParts::Ranks(2);
        groups.add(parts, &flow(0, 2, Some(5)));
        for row in [rank(0, 1, Some(9)), rank(0, 2, Some(7)), rank(1, 7, Some(20)), rank(1, 9, None), rank(2, 20, None)]
        {
            groups.add_rank(parts, &row);
        }
        let totals = groups.finish();
        // One complete repetition of 8 us, and two incomplete ones with ages of 33 and 20 us.
        let mean = totals.completion_mean_us(at(40)).expect("three repetitions");
        assert_eq!((totals.complete, totals.unfinished), (1, 2));
        assert!((mean - 61.0 / 3.0).abs() < 1e-9, "{mean}");
    }

    #[test]
    fn those_that_are_over_take_no_memory() {
        let mut groups = Groups::default();
        for n in 0..100_000u32 {
            let start = u64::from(n) * 10;
            groups.add(GroupParts::Flows(2), &flow(n, start, Some(start + 2)));
            groups.add(GroupParts::Flows(2), &flow(n, start + 1, Some(start + 7)));
            assert!(groups.open.is_empty());
        }
        assert_eq!(groups.finish().completion_mean_us(at(2_000_000)), Some(7.0));
    }
}
