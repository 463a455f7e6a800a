//! Flows that wait for others.

use std::fmt;
use std::sync::Arc;

use selvedge_units::{Duration, Instant};

use super::{FlowSpec, Measure, TriggerKind};

/// Triggers, and the flows that they release. All workloads of a scenario share one table.
#[derive(Clone, Debug, Default)]
pub struct Triggers {
    triggers: Vec<Trigger>,
    measure: Measure,
    /// Waiting flows, in input order by trigger once [`Triggers::sort`] was called.
    waiting: Vec<Waiting>,
}

#[derive(Clone, Debug)]
enum Trigger {
    /// Trigger of listed flows.
    Listed {
        kind: TriggerKind,
        activations: u32,
        /// Index in `waiting` of the first flow that is not released: those that wait are `waiting[next..end]`.
        next: u32,
        end: u32,
    },
    /// Trigger of repetitions that follow one another.
    Recurring {
        repetitions: Repetitions,
        /// Number of the next repetition.
        next: u32,
        /// Number of flows of the latest repetition that have ended.
        ended: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    trigger: u32,
    /// Time from the release to the start.
    delay: Duration,
    flow: FlowSpec,
}

/// Repetitions of which each begins when all flows of the previous one have activated the trigger. Each is made when it
/// begins, so that a million of them take the memory of one.
#[derive(Clone)]
pub(crate) struct Repetitions {
    /// Number of the workload that the repetitions belong to.
    pub(crate) workload: u16,
    /// Number of repetitions; at least 1. The first does not wait.
    pub(crate) repeat: u32,
    /// Number of flows of each repetition; their numbers continue from one repetition to the next.
    pub(crate) count: u32,
    /// Function that makes a repetition: its flows, with their delays from its beginning.
    pub(crate) make: Arc<dyn Fn(u32) -> Vec<(Duration, FlowSpec)> + Send + Sync>,
}

impl Triggers {
    pub(super) fn new(measure: Measure) -> Self {
        Self { measure, ..Self::default() }
    }
    /// Adds triggers of one workload; returns the index of the first.
    pub(super) fn add(&mut self, kinds: impl IntoIterator<Item = TriggerKind>) -> u32 {
        let first = self.triggers.len() as u32;
        let listed = |kind| Trigger::Listed { kind, activations: 0, next: 0, end: 0 };
        self.triggers.extend(kinds.into_iter().map(listed));
        first
    }
    /// Adds a trigger that every flow of the repetitions but the last one activates when it is received; returns its
    /// index.
    pub(super) fn repeat(&mut self, repetitions: Repetitions) -> u32 {
        self.triggers.push(Trigger::Recurring { repetitions, next: 1, ended: 0 });
        self.triggers.len() as u32 - 1
    }
    /// Lets `flow` wait for `trigger`; it starts `delay` after the release.
    pub(super) fn wait(&mut self, trigger: u32, flow: FlowSpec, delay: Duration) {
        self.waiting.push(Waiting { trigger, delay, flow });
    }
    /// Sorts waiting flows by trigger, after the last was added.
    pub(super) fn sort(&mut self) {
        self.waiting.sort_by_key(|waiting| waiting.trigger);
        for (n, trigger) in (0..).zip(&mut self.triggers) {
            if let Trigger::Listed { next, end, .. } = trigger {
                *next = self.waiting.partition_point(|waiting| waiting.trigger < n) as u32;
                *end = self.waiting.partition_point(|waiting| waiting.trigger <= n) as u32;
            }
        }
    }
    /// Returns whether no flow waits for any other, now or later.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the number of flows that wait at first.
    pub fn len(&self) -> u64 {
        self.waiting.len() as u64 + self.repetitions().map(|(_, ids)| ids.end - ids.start).sum::<u64>()
    }
    /// Returns the numbers of the flows of `workload` that wait at first.
    pub fn waiting(&self, workload: u16) -> impl Iterator<Item = u64> {
        let listed = self.waiting.iter().filter(move |waiting| waiting.flow.workload == workload);
        let repeated = self.repetitions().filter(move |(of, _)| *of == workload).flat_map(|(_, ids)| ids);
        listed.map(|waiting| waiting.flow.id).chain(repeated)
    }
    /// Returns the sets of repetitions, each with the number of the next one.
    pub(crate) fn recurring(&self) -> impl Iterator<Item = (&Repetitions, u32)> {
        self.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Recurring { repetitions, next, .. } => Some((repetitions, *next)),
            Trigger::Listed { .. } => None,
        })
    }
    /// Returns about `most` of the waiting flows but repetitions, each with the number of flows that it stands for.
    pub(crate) fn sampled(&self, most: u64) -> Vec<(FlowSpec, f64)> {
        let step = (self.waiting.len() as u64).div_ceil(most.max(1)).max(1) as usize;
        let shown = self.waiting.len().div_ceil(step).max(1) as f64;
        let weight = self.waiting.len() as f64 / shown;
        self.waiting.iter().step_by(step).map(|waiting| (waiting.flow, weight)).collect()
    }
    /// Returns, per workload, the most flows that one of its triggers releases together.
    pub(crate) fn together(&self) -> Vec<(u16, f64)> {
        let of = |trigger: &Trigger| match trigger {
            Trigger::Recurring { repetitions, .. } => Some((repetitions.workload, f64::from(repetitions.count))),
            Trigger::Listed { kind: TriggerKind::MultiShot, .. } => None,
            Trigger::Listed { next, end, .. } if end == next => None,
            Trigger::Listed { next, end, .. } => {
                Some((self.waiting[*next as usize].flow.workload, f64::from(end - next)))
            }
        };
        // Lists have very many triggers: the one that releases most flows counts for its workload.
        let mut most = std::collections::BTreeMap::<u16, f64>::new();
        for (workload, count) in self.triggers.iter().filter_map(of) {
            let known = most.entry(workload).or_default();
            *known = known.max(count);
        }
        most.into_iter().collect()
    }
    /// Returns the bytes of the table in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.len() * size_of::<Waiting>() + self.triggers.len() * size_of::<Trigger>()
    }
    /// Returns the flows that an activation of `trigger` at `now` releases, in input order.
    pub fn activate(&mut self, trigger: u32, now: Instant) -> Vec<FlowSpec> {
        let released: Vec<_> = match &mut self.triggers[trigger as usize] {
            Trigger::Listed { kind, activations, next, end } => {
                *activations = activations.saturating_add(1);
                let count = match kind {
                    TriggerKind::MultiShot => u32::from(next < end),
                    TriggerKind::Barrier(n) if *activations < *n => 0,
                    TriggerKind::OneShot | TriggerKind::Barrier(_) => *end - *next,
                };
                let first = *next as usize;
                *next += count;
                let waiting = &self.waiting[first..first + count as usize];
                waiting.iter().map(|waiting| (waiting.delay, waiting.flow)).collect()
            }
            Trigger::Recurring { repetitions, next, ended } => {
                *ended += 1;
                if *ended < repetitions.count || *next == repetitions.repeat {
                    return Vec::new();
                }
                *ended = 0;
                *next += 1;
                let on_received = (*next < repetitions.repeat).then_some(trigger);
                let flows = (repetitions.make)(*next - 1).into_iter();
                flows.map(|(delay, flow)| (delay, FlowSpec { on_received, ..flow })).collect()
            }
        };
        let begin = |(delay, flow): (Duration, FlowSpec)| {
            let start = now.saturating_add(delay);
            FlowSpec { start, measured: self.measure.counts(start), ..flow }
        };
        released.into_iter().map(begin).collect()
    }

    /// Returns the workload and the numbers of repeated flows that are to come.
    fn repetitions(&self) -> impl Iterator<Item = (u16, std::ops::Range<u64>)> {
        self.triggers.iter().filter_map(|trigger| match trigger {
            Trigger::Listed { .. } => None,
            Trigger::Recurring { repetitions: Repetitions { workload, repeat, count, .. }, next, .. } => {
                let ids = |repetition: u32| u64::from(repetition) * u64::from(*count);
                Some((*workload, ids(*next)..ids(*repeat)))
            }
        })
    }
}

impl fmt::Debug for Repetitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, repeat, count, .. } = self;
        write!(f, "{repeat} repetitions of {count} flows of workload {workload}")
    }
}
