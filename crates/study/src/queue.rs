//! The order in which runs are started.

/// Waiting runs, ordered so that all threads finish at about the same time: stage by stage, and in each stage first one
/// run of each group of similar runs, to measure their duration, then the runs of the slowest group first.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Queue {
    waiting: Vec<Waiting>,
    groups: Vec<Cost>,
}

/// One waiting run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Waiting {
    job: usize,
    stage: usize,
    group: usize,
}

/// Measurements of one group.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Cost {
    begun: bool,
    /// Mean duration of the completed runs, in seconds.
    mean_s: f64,
    /// Number of completed runs.
    done: u32,
}

impl Queue {
    /// Creates a queue of runs, numbered from 0, each with its stage and its group.
    pub(crate) fn new(runs: impl IntoIterator<Item = (usize, usize)>) -> Self {
        let waiting = runs.into_iter().enumerate().map(|(job, (stage, group))| Waiting { job, stage, group });
        let waiting: Vec<Waiting> = waiting.collect();
        let groups = waiting.iter().map(|run| run.group + 1).max().unwrap_or(0);
        Self { waiting, groups: vec![Cost::default(); groups] }
    }
    /// Removes and returns the next run, with its group.
    pub(crate) fn next(&mut self) -> Option<(usize, usize)> {
        let stage = self.waiting.iter().map(|run| run.stage).min()?;
        // Among equally urgent runs, the first.
        let urgency = |run: &Waiting| {
            let cost = self.groups[run.group];
            match (cost.begun, cost.done) {
                (false, _) => (2, 0.0),
                (true, 0) => (0, 0.0),
                (true, _) => (1, cost.mean_s),
            }
        };
        let mut best: Option<usize> = None;
        for (index, run) in self.waiting.iter().enumerate().filter(|(_, run)| run.stage == stage) {
            if best.is_none_or(|best| urgency(run) > urgency(&self.waiting[best])) {
                best = Some(index);
            }
        }
        let Waiting { job, group, .. } = self.waiting.remove(best?);
        self.groups[group].begun = true;
        Some((job, group))
    }
    /// Records that a run of this group took `seconds`.
    pub(crate) fn learn(&mut self, group: usize, seconds: f64) {
        let cost = &mut self.groups[group];
        cost.done += 1;
        cost.mean_s += (seconds - cost.mean_s) / f64::from(cost.done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_group_then_the_slowest_first() {
        let runs = (0..3).flat_map(|group| (0..3).map(move |_| (0, group)));
        let mut queue = Queue::new(runs);
        let take = |queue: &mut Queue| queue.next().map(|(job, _)| job);
        let three = |queue: &mut Queue| [take(queue), take(queue), take(queue)];
        assert_eq!(three(&mut queue), [Some(0), Some(3), Some(6)]);
        queue.learn(0, 1.0);
        queue.learn(1, 5.0);
        assert_eq!([take(&mut queue), take(&mut queue)], [Some(4), Some(5)], "the slowest of those known");
        queue.learn(2, 3.0);
        assert_eq!(three(&mut queue), [Some(7), Some(8), Some(1)]);
        assert_eq!(queue.waiting.len(), 1);
    }

    #[test]
    fn an_earlier_stage_goes_first() {
        let mut queue = Queue::new([(1, 0), (0, 1), (1, 2), (0, 3)]);
        let order: Vec<usize> = std::iter::from_fn(|| queue.next().map(|(job, _)| job)).collect();
        assert_eq!(order, [1, 3, 0, 2]);
    }
}
