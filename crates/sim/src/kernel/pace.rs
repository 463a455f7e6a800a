//! Windows: how much time a node handles in one visit.
//!
//! Let L be the smallest delay of any link. What a node sends at T reaches its neighbour at T + L or later, so all
//! nodes can go L ahead without a word to each other. In most fabrics they can go twice as far. Where nodes are of two
//! sides, and every link leads from one to the other (fat-trees, leaf-spine networks: tiers are sides in turn), the
//! sides take turns: once one has come to T + L, the other can go from T to T + 2 L, as nothing sent after T + L
//! arrives before.
//!
//! ```text
//!                  0    L    2L   3L   4L   5L
//!     side 0:      |-0--|----2----|----4----|      windows are numbered in the order in which they run
//!     side 1:      |----1----|----3----|----5-
//! ```
//!
//! A node is visited half as often then, and finds twice as much to do: its state is fetched into the cache half as
//! often.

use selvedge_units::{Duration, Instant};

/// Which windows there are. Times are in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pace {
    /// L, or less.
    step: u64,
    /// 1 where two sides take turns, so that windows are two steps long and overlap by one; else 0.
    overlap: u64,
    /// Of two sides, that whose windows come first where windows run in pairs.
    leader: u8,
}

impl Pace {
    /// Steps of `step`; if there are two sides, `leader` is that which leads.
    pub(crate) fn new(step: Duration, leader: Option<u8>) -> Self {
        let (overlap, leader) = (u64::from(leader.is_some()), leader.unwrap_or(0));
        Self { step: step.as_ps().max(1), overlap, leader }
    }

    /// The side that leads, if there are two.
    pub(crate) fn leader(self) -> Option<u8> {
        (self.overlap != 0).then_some(self.leader)
    }

    /// Whether `window` and the next one are a pair: those of the side that leads and of the other.
    pub(crate) fn leads(self, window: u64) -> bool {
        self.leader().is_some_and(|leader| self.is_turn(leader, window))
    }

    /// How long windows are.
    pub(crate) fn length(self) -> u64 {
        self.step * self.each()
    }

    /// No link delays by less.
    pub(crate) fn step(self) -> u64 {
        self.step
    }

    /// How many numbers lie between two windows of the same node.
    #[inline(always)]
    pub(crate) fn each(self) -> u64 {
        1 + self.overlap
    }

    /// When a window begins. All of the windows before it are over when it runs, so everything earlier has happened.
    #[inline]
    pub(crate) fn begin(self, window: u64) -> u64 {
        window.saturating_sub(self.overlap).saturating_mul(self.step)
    }

    /// When a window ends.
    #[inline]
    pub(crate) fn end(self, window: u64) -> u64 {
        (window + 1).saturating_mul(self.step)
    }

    /// Whether nodes of `side` are visited in `window`.
    #[inline]
    pub(crate) fn is_turn(self, side: u8, window: u64) -> bool {
        (window ^ u64::from(side)) & self.overlap == 0
    }

    /// The window in which nodes of `side` handle what happens at `time`.
    #[inline]
    pub(crate) fn window_of(self, side: u8, time: u64) -> u64 {
        let first = self.first_with(time);
        first + u64::from(!self.is_turn(side, first))
    }

    /// The first window in which something may happen at `time`.
    #[inline]
    pub(crate) fn first_with(self, time: u64) -> u64 {
        time / self.step
    }

    /// Until when everything has happened once `window` has run until `end`.
    pub(crate) fn done(self, window: u64, end: Instant) -> Instant {
        Instant::from_ps(self.begin(window + 1)).min(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is sent in a window arrives in one that has not begun, and every moment has its window.
    #[test]
    fn nothing_arrives_in_the_past() {
        for in_turns in [false, true] {
            let pace = Pace::new(Duration::from_ps(10), in_turns.then_some(1));
            for side in [0, 1] {
                for sent in 0..200 {
                    let window = pace.window_of(side, sent);
                    assert!(pace.is_turn(side, window));
                    assert!((pace.begin(window)..pace.end(window)).contains(&sent), "{side} {sent}");
                    assert!(pace.begin(window + 1) <= pace.end(window));
                    let other = if in_turns { 1 - side } else { side };
                    for arrival in sent + 10..sent + 50 {
                        assert!(pace.window_of(other, arrival) > window, "{side} {sent} {arrival}");
                    }
                    assert!(pace.window_of(side, sent + 10 * pace.each()) > window, "news between nodes of one side");
                }
            }
        }
    }
}
