//! Repetitions of incasts and collectives: how long each took as a whole.

use std::collections::BTreeMap;

use selvedge_telemetry::{FlowRow, RankRow};
use selvedge_units::Instant;

/// Repetitions that are kept at a time. More do not overlap; beyond it, the lowest numbers are over.
const MOST_OPEN: usize = 1 << 12;

/// Completion times of repetitions, in memory that does not depend on their number.
#[derive(Default)]
pub(super) struct Groups {
    /// By workload and repetition.
    open: BTreeMap<(u16, u32), Group>,
    /// Of those that are over and complete: how many, and their times in microseconds together.
    complete: u64,
    sum_us: f64,
}

#[derive(Clone, Copy)]
struct Group {
    start: Instant,
    /// `None` once a flow of it is known to be unfinished.
    finish: Option<Instant>,
}

impl Groups {
    /// Takes in a flow that ended, or never did.
    pub(super) fn add(&mut self, row: &FlowRow) {
        self.widen(row.workload, row.group, row.start, row.finish);
    }

    /// Takes in a rank's part, which may begin before its first flow and end after its last one: it
    /// computes too.
    pub(super) fn add_rank(&mut self, row: &RankRow) {
        self.widen(row.workload, row.group, row.begin, Some(row.end));
    }

    fn widen(&mut self, workload: u16, group: u32, start: Instant, finish: Option<Instant>) {
        self.open
            .entry((workload, group))
            .and_modify(|group| {
                group.start = group.start.min(start);
                group.finish = group.finish.zip(finish).map(|(a, b)| a.max(b));
            })
            .or_insert(Group { start, finish });
        if self.open.len() > MOST_OPEN {
            self.close_first();
        }
    }

    /// The mean over repetitions whose flows all finished: from the first start to the last finish.
    pub(super) fn completion_mean_us(mut self) -> Option<f64> {
        while !self.open.is_empty() {
            self.close_first();
        }
        (self.complete > 0).then(|| self.sum_us / self.complete as f64)
    }

    fn close_first(&mut self) {
        let Some((_, group)) = self.open.pop_first() else { return };
        if let Some(finish) = group.finish {
            self.complete += 1;
            self.sum_us += finish.since(group.start).as_us_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Bytes, Duration, HostId};

    use super::*;

    fn flow(group: u32, start_us: u64, finish_us: Option<u64>) -> FlowRow {
        let at = |us| Instant::ZERO + Duration::from_us(us);
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

    #[test]
    fn a_repetition_lasts_from_its_first_start_to_its_last_finish() {
        let mut groups = Groups::default();
        for row in
            [flow(0, 2, Some(5)), flow(1, 10, Some(13)), flow(0, 1, Some(3)), flow(2, 20, Some(29)), flow(2, 20, None)]
        {
            groups.add(&row);
        }
        assert_eq!(groups.completion_mean_us(), Some(3.5), "of 4 and 3; the third never finished");
        assert_eq!(Groups::default().completion_mean_us(), None);
    }

    #[test]
    fn computing_counts() {
        let mut groups = Groups::default();
        groups.add(&flow(0, 2, Some(5)));
        let at = |us| Instant::ZERO + Duration::from_us(us);
        groups.add_rank(&RankRow { workload: 0, group: 0, begin: at(1), end: at(9) });
        assert_eq!(groups.completion_mean_us(), Some(8.0));
    }

    #[test]
    fn those_long_past_take_no_memory() {
        let mut groups = Groups::default();
        for n in 0..100_000u32 {
            let start = u64::from(n) * 10;
            groups.add(&flow(n, start, Some(start + 2)));
            groups.add(&flow(n, start + 1, Some(start + 7)));
        }
        assert!(groups.open.len() <= MOST_OPEN);
        assert_eq!(groups.completion_mean_us(), Some(7.0));
    }
}
