//! Schedules of communication: the steps of each rank, and their dependencies.
//!
//! A [`Schedule`] is a GOAL schedule (Hoefler, Siebert, Lumsdaine: "Group Operation Assembly Language", ICPP 2009): per
//! rank a graph of sends, receives and computations. It comes from a file, or from a collective operation that is
//! expressed as a schedule (`collective`). An [`Executor`] executes it on the hosts of a network.
//!
//! Steps wait for steps of the same rank alone, and ranks affect each other by messages alone. A host therefore needs
//! no more than its own steps, and fabrics may be partitioned between hosts as with random arrivals.

mod dry_run;
mod executor;
mod mailbox;
mod partners;

use std::sync::Arc;

use selvedge_units::{Bytes, Duration};

pub use executor::{Action, ExecutionPlan, Executor, ScheduleError};

/// Wildcard: any rank, or any tag, of a receive.
pub const ANY: u32 = u32::MAX;

/// Step of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Sends a message; done when it is acknowledged.
    Send {
        /// Rank that receives the message; may be the sender itself.
        to: u32,
        /// Payload in bytes. A message of no bytes takes one.
        size: Bytes,
        /// Tag by which receives choose the message.
        tag: u32,
    },
    /// Waits for a message; done when the message has arrived completely.
    Recv {
        /// Rank that sends the message, or [`ANY`].
        from: u32,
        /// Tag of the message, or [`ANY`].
        tag: u32,
    },
    /// Computes; done after a time.
    Compute {
        /// Computing time, on a processor of the rank, which does one computation at a time.
        time: Duration,
        /// Number of the processor.
        cpu: u8,
    },
}

/// Steps of all ranks, shared by clones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    ranks: Arc<[Rank]>,
    /// All sends, by rank and step: messages are numbered in this order.
    sends: Arc<[(u32, u32)]>,
}

/// Steps of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rank {
    steps: Vec<Step>,
    /// Pairs of a step and one that waits for its end; sorted once the rank is part of a [`Schedule`].
    after_end: Vec<(u32, u32)>,
    /// Pairs of a step and one that waits for its beginning; sorted once the rank is part of a [`Schedule`].
    after_start: Vec<(u32, u32)>,
    /// Number of others that each step waits for.
    waits: Vec<u32>,
    /// Number of the rank's first message.
    first_send: u32,
    /// Lines and columns of the steps in a file, if they come from one.
    places: Vec<(u32, u32)>,
}

impl Rank {
    /// Adds a step that begins when all of `after` have ended; returns its number.
    ///
    /// # Panics
    /// When one of `after` is not a step yet.
    pub fn step(&mut self, step: Step, after: &[u32]) -> u32 {
        let number = self.steps.len() as u32;
        self.steps.push(step);
        self.waits.push(0);
        for &before in after {
            self.require(number, before);
        }
        number
    }
    /// Lets `step` wait for the end of `before`; either may come first in the list.
    ///
    /// # Panics
    /// When `step` or `before` is not a step.
    pub fn require(&mut self, step: u32, before: u32) {
        assert!((before as usize) < self.steps.len(), "step {before} does not exist");
        self.waits[step as usize] += 1;
        self.after_end.push((before, step));
    }
    /// Lets `step` wait for the beginning of `before`.
    ///
    /// # Panics
    /// When `step` or `before` is not a step.
    pub fn require_start(&mut self, step: u32, before: u32) {
        assert!((before as usize) < self.steps.len(), "step {before} does not exist");
        self.waits[step as usize] += 1;
        self.after_start.push((before, step));
    }
    /// Sets the lines and columns of the rank's steps in a file, from 1, for messages.
    pub fn stands_in(&mut self, places: Vec<(u32, u32)>) {
        self.places = places;
    }
    /// Returns the number of steps.
    pub fn len(&self) -> usize {
        self.steps.len()
    }
    /// Returns whether the rank has no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns the most messages that may be under way together, estimated as the largest number of sends at the same
    /// depth in the graph of steps.
    pub(super) fn widest(&self) -> u64 {
        let mut levels = vec![0_u32; self.steps.len()];
        let mut counts: Vec<u64> = Vec::new();
        // Steps may wait for later ones, but this is rare.
        for step in 0..self.steps.len() as u32 {
            let level = levels[step as usize];
            let (last, first) = (self.after_end(step), self.after_start(step));
            last.map(|next| (next, level + 1)).chain(first.map(|next| (next, level))).for_each(|(next, level)| {
                levels[next as usize] = levels[next as usize].max(level);
            });
            if let Step::Send { .. } = self.steps[step as usize] {
                if counts.len() <= level as usize {
                    counts.resize(level as usize + 1, 0);
                }
                counts[level as usize] += 1;
            }
        }
        counts.into_iter().max().unwrap_or(0)
    }
    /// Returns the bytes of the rank in memory.
    pub(super) fn bytes(&self) -> usize {
        let pairs = self.after_end.len() + self.after_start.len();
        // An executor's state of each step is as large as the step's dependencies.
        self.steps.len() * (size_of::<Step>() + 2 * size_of::<u32>())
            + (pairs + self.places.len()) * size_of::<(u32, u32)>()
    }

    /// Returns the steps, to be changed.
    pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = &mut Step> {
        self.steps.iter_mut()
    }
    /// Returns the steps that wait for the end of `step`.
    fn after_end(&self, step: u32) -> impl Iterator<Item = u32> + '_ {
        followers(&self.after_end, step)
    }
    fn after_start(&self, step: u32) -> impl Iterator<Item = u32> + '_ {
        followers(&self.after_start, step)
    }
}

/// Returns the second halves of the pairs whose first is `step`.
fn followers(pairs: &[(u32, u32)], step: u32) -> impl Iterator<Item = u32> + '_ {
    let first = pairs.partition_point(|&(before, _)| before < step);
    pairs[first..].iter().take_while(move |&&(before, _)| before == step).map(|&(_, after)| after)
}

impl Schedule {
    /// Creates the schedule of these ranks, numbered from 0.
    pub fn new(mut ranks: Vec<Rank>) -> Self {
        let mut sends = Vec::new();
        for (number, rank) in (0..).zip(&mut ranks) {
            rank.after_end.sort_unstable();
            rank.after_start.sort_unstable();
            rank.first_send = sends.len() as u32;
            let own = (0..).zip(&rank.steps).filter(|(_, step)| matches!(step, Step::Send { .. }));
            sends.extend(own.map(|(step, _)| (number, step)));
        }
        Self { ranks: ranks.into(), sends: sends.into() }
    }
    /// Returns the ranks.
    pub fn ranks(&self) -> &[Rank] {
        &self.ranks
    }
    /// Returns the number of messages.
    pub fn messages(&self) -> u64 {
        self.sends.len() as u64
    }
    /// Returns the bytes of all messages.
    pub fn bytes(&self) -> Bytes {
        let size = |&(rank, step): &(u32, u32)| match self.ranks[rank as usize].steps[step as usize] {
            Step::Send { size, .. } => size,
            Step::Recv { .. } | Step::Compute { .. } => Bytes::ZERO,
        };
        self.sends.iter().map(size).fold(Bytes::ZERO, |sum, size| sum + size)
    }

    /// Returns step `step` of `rank`.
    fn step(&self, rank: u32, step: u32) -> Step {
        self.ranks[rank as usize].steps[step as usize]
    }
    /// Returns the line and column of a step, if it comes from a file.
    fn place(&self, rank: u32, step: u32) -> Option<(u32, u32)> {
        self.ranks[rank as usize].places.get(step as usize).copied()
    }
    /// Returns a step's name in messages: "step 2 of rank 3 (line 9)".
    fn step_name(&self, rank: u32, step: u32) -> String {
        let line = self.place(rank, step).map_or(String::new(), |(line, _)| format!(" (line {line})"));
        format!("step {} of rank {rank}{line}", step + 1)
    }
    /// Returns the number of the message that step `step` of `rank` sends.
    fn message_of(&self, rank: u32, step: u32) -> u64 {
        let first = self.ranks[rank as usize].first_send;
        let own = &self.sends[first as usize..];
        u64::from(first) + own.partition_point(|&send| send < (rank, step)) as u64
    }
}

#[cfg(test)]
mod tests;
