//! Which point to run next.

use selvedge_scenario::Point;

/// Points that wait, handed out so that all threads finish at about the same time: first one point
/// of each series, to learn how long they take, then those of the slowest series first.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Queue {
    waiting: Vec<Point>,
    series: Vec<Cost>,
}

/// What is known of one series.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Cost {
    begun: bool,
    /// Mean seconds of the points that are done, and how many those are.
    mean_s: f64,
    done: u32,
}

impl Queue {
    /// A queue of `points` of `series` series.
    pub(crate) fn new(points: impl IntoIterator<Item = Point>, series: usize) -> Self {
        Self { waiting: points.into_iter().collect(), series: vec![Cost::default(); series] }
    }
    /// The next point.
    pub(crate) fn next(&mut self) -> Option<Point> {
        // Of equals the first in the plan's order.
        let urgency = |point: &Point| {
            let cost = self.series[point.series];
            match (cost.begun, cost.done) {
                (false, _) => (2, 0.0),
                (true, 0) => (0, 0.0),
                (true, _) => (1, cost.mean_s),
            }
        };
        let mut best: Option<usize> = None;
        for (index, point) in self.waiting.iter().enumerate() {
            if best.is_none_or(|best| urgency(point) > urgency(&self.waiting[best])) {
                best = Some(index);
            }
        }
        let point = self.waiting.remove(best?);
        self.series[point.series].begun = true;
        Some(point)
    }
    /// A point of this series took `seconds`.
    pub(crate) fn learn(&mut self, series: usize, seconds: f64) {
        let cost = &mut self.series[series];
        cost.done += 1;
        cost.mean_s += (seconds - cost.mean_s) / f64::from(cost.done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_each_series_then_the_slowest_first() {
        let points = (0..3).flat_map(|series| (1..=3).map(move |seed| Point { series, seed }));
        let mut queue = Queue::new(points, 3);
        let mut next = || queue.next().map(|point| (point.series, point.seed));
        assert_eq!([next(), next(), next()], [Some((0, 1)), Some((1, 1)), Some((2, 1))]);
        queue.learn(0, 1.0);
        queue.learn(1, 5.0);
        let mut next = || queue.next().map(|point| (point.series, point.seed));
        assert_eq!([next(), next()], [Some((1, 2)), Some((1, 3))], "the slowest of those known");
        queue.learn(2, 3.0);
        let mut next = || queue.next().map(|point| (point.series, point.seed));
        assert_eq!([next(), next(), next()], [Some((2, 2)), Some((2, 3)), Some((0, 2))]);
        assert_eq!(queue.waiting.len(), 1);
    }
}
