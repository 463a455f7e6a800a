//! The credit pacer of a host: decides which sender gets credit next, and when (section 5).
//!
//! Senders that want credit are in the active sender list, each once. The first gets one MTU of credit per MTU-time and
//! re-enters the list if it wants more: a FIFO, hence fair. Other policies need a queue with insertion at any position
//! and removal from the front (PIFO, Sivaraman et al., SIGCOMM'16).

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::format;
use alloc::vec::Vec;
use core::cmp::Reverse;

use selvedge_units::{Duration, Instant};

use crate::fabric::SettingError;

/// Policy by which a receiver shares its link among the sending hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "config", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
#[cfg_attr(feature = "config", serde(rename_all = "kebab-case"))]
pub enum Policy {
    /// Equal shares.
    #[default]
    Fair,
    /// Strict priority by the priority of the traffic; equal shares within a priority.
    Priority,
    /// Shares proportional to the weights of the priorities of the traffic: eight numbers from 1 to 65535, that of
    /// priority 0 first.
    Weighted([u16; 8]),
}

impl Policy {
    pub(super) fn check(&self) -> Result<(), SettingError> {
        match self {
            Self::Weighted(weights) if weights.contains(&0) => {
                let message = format!("a weight of zero in {weights:?} starves that priority; give 1 or more");
                Err(SettingError::new("policy", message))
            }
            _ => Ok(()),
        }
    }
}

/// The active sender list of one host, and its pacing state.
#[derive(Clone, Debug)]
pub struct Pacer {
    interval: Duration,
    /// Link time of a control frame.
    control: Duration,
    /// Time at which the next pull may be sent.
    free_at: Instant,
    list: List,
    /// Quanta wanted by all active senders together.
    owed: u64,
}

#[derive(Clone, Debug)]
enum List {
    Fifo(VecDeque<u32>),
    Pifo(Pifo),
}

/// A queue ordered by lowest rank, then by arrival.
#[derive(Clone, Debug)]
struct Pifo {
    policy: Policy,
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    pushed: u64,
    /// Virtual time: rank of the sender served last.
    time: u64,
    /// Virtual time at which a sender's granted credit is used up, indexed by sender.
    finish: Vec<u64>,
}

/// Virtual time per quantum at a weight of 1; large enough for precise division by 16-bit weights.
const TURN: u64 = 1 << 20;

impl Pifo {
    fn push(&mut self, sender: u32, priority: u8) {
        let rank = match self.policy {
            Policy::Fair => 0,
            Policy::Priority => u64::from(7 - priority.min(7)),
            Policy::Weighted(weights) => {
                let place = sender as usize;
                if self.finish.len() <= place {
                    self.finish.resize(place + 1, 0);
                }
                let finish = &mut self.finish[place];
                *finish = self.time.max(*finish) + TURN / u64::from(weights[usize::from(priority.min(7))].max(1));
                *finish
            }
        };
        self.heap.push(Reverse((rank, self.pushed, sender)));
        self.pushed += 1;
    }

    fn pop(&mut self) -> Option<u32> {
        let Reverse((rank, _, sender)) = self.heap.pop()?;
        self.time = rank;
        Some(sender)
    }
}

impl Pacer {
    /// Creates a pacer that grants one quantum per `interval`, during which a control frame takes `control`.
    pub fn new(interval: Duration, control: Duration, policy: Policy) -> Self {
        let list = match policy {
            Policy::Fair => List::Fifo(VecDeque::new()),
            Policy::Priority | Policy::Weighted(_) => {
                List::Pifo(Pifo { policy, heap: BinaryHeap::new(), pushed: 0, time: 0, finish: Vec::new() })
            }
        };
        Self { interval, control, free_at: Instant::ZERO, list, owed: 0 }
    }

    /// Adds `sender`, which wants credit and is not in the list, with the priority of its traffic.
    #[inline]
    pub fn push(&mut self, sender: u32, priority: u8) {
        match &mut self.list {
            List::Fifo(list) => list.push_back(sender),
            List::Pifo(list) => list.push(sender, priority),
        }
    }

    /// Removes and returns the sender that gets credit at `now`, if a pull is due.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<u32> {
        if now < self.free_at {
            return None;
        }
        let sender = match &mut self.list {
            List::Fifo(list) => list.pop_front(),
            List::Pifo(list) => list.pop(),
        }?;
        self.free_at = now + self.interval;
        Some(sender)
    }

    /// Returns the time at which [`Pacer::poll`] will return a sender if none is added before.
    #[inline]
    pub fn poll_timeout(&self) -> Instant {
        let is_empty = match &self.list {
            List::Fifo(list) => list.is_empty(),
            List::Pifo(list) => list.heap.is_empty(),
        };
        if is_empty { Instant::NEVER } else { self.free_at }
    }

    /// Records the arrival of a control frame, which uses no credit: grants leave time for it, so that "the aggregate
    /// arrival rate matches the incoming link speed" (section 5).
    #[inline]
    pub fn note_control(&mut self, now: Instant) {
        if self.free_at > now {
            self.free_at += self.control;
        }
    }

    /// Records that the quanta wanted by one sender changed from `before` to `after`.
    #[inline]
    pub fn note_owed(&mut self, before: u32, after: u32) {
        self.owed = self.owed + u64::from(after) - u64::from(before);
    }

    /// Returns the busy time in microseconds, a lower bound, that control packets announce to a sender owed `own`
    /// quanta: the time that the demand of all others takes. A sender knows its own demand and does not become idle
    /// while there is any.
    #[inline]
    pub fn busy_beside(&self, own: u32) -> u32 {
        let others = self.owed - u64::from(own);
        if others == 0 {
            return 0;
        }
        u32::try_from(others * self.interval.as_ps() / Duration::from_us(1).as_ps()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves senders that always want more; returns the grants of each.
    fn shares(policy: Policy, priorities: &[u8], turns: u64) -> Vec<u64> {
        let interval = Duration::from_us(1);
        let mut pacer = Pacer::new(interval, Duration::ZERO, policy);
        let mut served = alloc::vec![0; priorities.len()];
        for (sender, &priority) in (0..).zip(priorities) {
            pacer.push(sender, priority);
        }
        for turn in 0..turns {
            let sender = pacer.poll(Instant::ZERO + interval * turn).expect("a sender wants credit");
            served[sender as usize] += 1;
            pacer.push(sender, priorities[sender as usize]);
        }
        served
    }

    #[test]
    fn a_fifo_serves_all_alike() {
        assert_eq!(shares(Policy::Fair, &[0, 7, 3], 300), [100, 100, 100]);
    }

    #[test]
    fn a_higher_priority_gets_all() {
        assert_eq!(shares(Policy::Priority, &[1, 5, 5], 300), [0, 150, 150]);
    }

    #[test]
    fn weights_are_proportions() {
        let weights = Policy::Weighted([1, 2, 5, 1, 1, 1, 1, 1]);
        let served = shares(weights, &[0, 1, 2], 800);
        for (served, share) in served.iter().zip([100, 200, 500]) {
            assert!(served.abs_diff(share) <= 2, "{served} of {share}");
        }
    }

    #[test]
    fn pulls_keep_their_distance() {
        let mut pacer = Pacer::new(Duration::from_us(1), Duration::ZERO, Policy::Fair);
        assert_eq!(pacer.poll_timeout(), Instant::NEVER);
        pacer.push(4, 0);
        pacer.push(5, 0);
        let at = |ns| Instant::ZERO + Duration::from_ns(ns);
        assert_eq!(pacer.poll(at(10)), Some(4));
        assert_eq!(pacer.poll(at(1_009)), None);
        assert_eq!(pacer.poll_timeout(), at(1_010));
        assert_eq!(pacer.poll(at(1_010)), Some(5));
    }

    #[test]
    fn the_link_is_busy_as_long_as_all_others_want() {
        let mut pacer = Pacer::new(Duration::from_ns(1_500), Duration::ZERO, Policy::Fair);
        pacer.note_owed(0, 7);
        pacer.note_owed(0, 2);
        assert_eq!((pacer.busy_beside(0), pacer.busy_beside(7), pacer.busy_beside(2)), (13, 3, 10));
        pacer.note_owed(7, 0);
        assert_eq!((pacer.busy_beside(0), pacer.busy_beside(2)), (3, 0));
    }

    #[test]
    fn control_frames_have_their_room() {
        let (interval, control) = (Duration::from_ns(1_000), Duration::from_ns(50));
        let mut pacer = Pacer::new(interval, control, Policy::Fair);
        // The link is idle: it has carried the control frames already.
        pacer.note_control(Instant::ZERO + interval);
        pacer.push(0, 0);
        assert_eq!(pacer.poll(Instant::ZERO + interval), Some(0));
        pacer.push(0, 0);
        (0..3).for_each(|_| pacer.note_control(Instant::ZERO + interval));
        assert_eq!(pacer.poll_timeout(), Instant::ZERO + interval * 2 + control * 3);
    }
}
