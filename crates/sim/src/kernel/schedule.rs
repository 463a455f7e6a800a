//! Window schedule: how much time a node handles in one visit.
//!
//! Let L be the smallest delay of any link. A packet that a node sends at T reaches its neighbour at T + L or later, so
//! all nodes can run L ahead without synchronisation: L is the lookahead. In most fabrics they can run twice as far.
//! Where nodes are of two sides, and every link leads from one side to the other (fat-trees, leaf-spine networks: tiers
//! alternate between the sides), the sides take turns: once one side has come to T + L, the other can run from T to T +
//! 2 L, as nothing sent after T + L arrives before.
//!
//! ```text
//!                  0    L    2L   3L   4L   5L
//!     side 0:      |-0--|----2----|----4----|      windows are numbered in the order in which they run
//!     side 1:      |----1----|----3----|----5-
//! ```
//!
//! Where sides take turns, a node is visited half as often and has twice as much to do: its state is fetched into the
//! cache half as often.

use selvedge_units::{Duration, Instant};

/// Schedule of windows. Times are in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WindowSchedule {
    /// Length of a step: L, or less.
    step: u64,
    /// Number of steps by which windows overlap: 1 where two sides take turns, with windows of two steps, else 0.
    overlap: u64,
    /// Leading side, where there are two: its windows come first where windows run in pairs.
    leader: u8,
}

impl WindowSchedule {
    /// Creates a schedule with steps of `step`; where there are two sides, `leader` is the leading one.
    pub(crate) fn new(step: Duration, leader: Option<u8>) -> Self {
        let (overlap, leader) = (u64::from(leader.is_some()), leader.unwrap_or(0));
        Self { step: step.as_ps().max(1), overlap, leader }
    }

    /// Returns the leading side, where there are two.
    pub(crate) fn leader(self) -> Option<u8> {
        (self.overlap != 0).then_some(self.leader)
    }

    /// Returns whether `window` and the next one are a pair: a window of the leading side, then one of the other.
    pub(crate) fn leads(self, window: u64) -> bool {
        self.leader().is_some_and(|leader| self.is_turn(leader, window))
    }

    /// Returns the length of windows.
    pub(crate) fn length(self) -> u64 {
        self.step * self.each()
    }

    /// Returns the length of a step; no link's delay is shorter.
    pub(crate) fn step(self) -> u64 {
        self.step
    }

    /// Returns the difference between the numbers of consecutive windows of the same node.
    #[inline(always)]
    pub(crate) fn each(self) -> u64 {
        1 + self.overlap
    }

    /// Returns the beginning of a window. All windows before it are over when it runs, so everything earlier has
    /// happened.
    #[inline]
    pub(crate) fn begin(self, window: u64) -> u64 {
        window.saturating_sub(self.overlap).saturating_mul(self.step)
    }

    /// Returns the end of a window.
    #[inline]
    pub(crate) fn end(self, window: u64) -> u64 {
        (window + 1).saturating_mul(self.step)
    }

    /// Returns whether nodes of `side` are visited in `window`.
    #[inline]
    pub(crate) fn is_turn(self, side: u8, window: u64) -> bool {
        (window ^ u64::from(side)) & self.overlap == 0
    }

    /// Returns the window in which nodes of `side` handle events at `time`.
    #[inline]
    pub(crate) fn window_of(self, side: u8, time: u64) -> u64 {
        let first = self.first_with(time);
        first + u64::from(!self.is_turn(side, first))
    }

    /// Returns the first window in which something may happen at `time`.
    #[inline]
    pub(crate) fn first_with(self, time: u64) -> u64 {
        time / self.step
    }

    /// Returns the time before which everything has happened once `window` has run until `end`.
    pub(crate) fn done(self, window: u64, end: Instant) -> Instant {
        Instant::from_ps(self.begin(window + 1)).min(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that everything sent in a window arrives in one that has not begun, and that every moment has its window.
    #[test]
    fn nothing_arrives_in_the_past() {
        for in_turns in [false, true] {
            let schedule = WindowSchedule::new(Duration::from_ps(10), in_turns.then_some(1));
            for side in [0, 1] {
                for sent in 0..200 {
                    let window = schedule.window_of(side, sent);
                    assert!(schedule.is_turn(side, window));
                    assert!((schedule.begin(window)..schedule.end(window)).contains(&sent), "{side} {sent}");
                    assert!(schedule.begin(window + 1) <= schedule.end(window));
                    let other = if in_turns { 1 - side } else { side };
                    for arrival in sent + 10..sent + 50 {
                        assert!(schedule.window_of(other, arrival) > window, "{side} {sent} {arrival}");
                    }
                    assert!(
                        schedule.window_of(side, sent + 10 * schedule.each()) > window,
                        "news between nodes of one side"
                    );
                }
            }
        }
    }
}
