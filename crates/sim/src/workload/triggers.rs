//! Flows that wait for others.

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

#[derive(Clone, Copy, Debug)]
struct Trigger {
    kind: TriggerKind,
    activations: u32,
    /// The flows that wait for it and are not released: `waiting[next..end]`.
    next: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    trigger: u32,
    /// From the release to the start.
    delay: Duration,
    flow: FlowSpec,
}

impl Triggers {
    pub(super) fn new(measure: Measure) -> Self {
        Self { measure, ..Self::default() }
    }
    /// Adds triggers of one workload; returns the index of the first.
    pub(super) fn add(&mut self, kinds: impl IntoIterator<Item = TriggerKind>) -> u32 {
        let first = self.triggers.len() as u32;
        self.triggers.extend(kinds.into_iter().map(|kind| Trigger { kind, activations: 0, next: 0, end: 0 }));
        first
    }
    /// Lets `flow` wait for `trigger`; it starts `delay` after the release.
    pub(super) fn wait(&mut self, trigger: u32, flow: FlowSpec, delay: Duration) {
        self.waiting.push(Waiting { trigger, delay, flow });
    }
    /// Brings waiting flows into the order of their triggers, after the last was added.
    pub(super) fn sort(&mut self) {
        self.waiting.sort_by_key(|waiting| waiting.trigger);
        for (n, trigger) in (0..).zip(&mut self.triggers) {
            trigger.next = self.waiting.partition_point(|waiting| waiting.trigger < n) as u32;
            trigger.end = self.waiting.partition_point(|waiting| waiting.trigger <= n) as u32;
        }
    }
    /// Whether no flow waits for any other, now or later.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// How many flows wait at first.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
    /// The numbers of the flows of `workload` that wait at first.
    pub fn waiting(&self, workload: u16) -> impl Iterator<Item = u64> {
        self.waiting.iter().filter(move |waiting| waiting.flow.workload == workload).map(|waiting| waiting.flow.id)
    }
    /// The flows that an activation of `trigger` at `now` releases, in input order.
    pub fn activate(&mut self, trigger: u32, now: Instant) -> impl Iterator<Item = FlowSpec> {
        let measure = self.measure;
        let state = &mut self.triggers[trigger as usize];
        state.activations = state.activations.saturating_add(1);
        let count = match state.kind {
            TriggerKind::MultiShot => u32::from(state.next < state.end),
            TriggerKind::Barrier(n) if state.activations < n => 0,
            TriggerKind::OneShot | TriggerKind::Barrier(_) => state.end - state.next,
        };
        let first = state.next as usize;
        state.next += count;
        self.waiting[first..first + count as usize].iter().map(move |waiting| {
            let start = now.saturating_add(waiting.delay);
            FlowSpec { start, measured: measure.counts(start), ..waiting.flow }
        })
    }
}
