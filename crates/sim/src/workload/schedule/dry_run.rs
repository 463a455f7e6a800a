//! Dry run of a schedule, which shows before a run whether it can be executed to its end: messages take no time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_units::Instant;

use super::executor::State;
use super::partners;
use super::{ANY, Action, ExecutionPlan, Executor, ScheduleError, Step};

impl Executor {
    /// Executes one iteration where messages take no time. This is no proof where receives take the first message that
    /// arrives: which is first depends on how long messages take.
    ///
    /// # Errors
    /// The schedule cannot be executed to its end.
    pub(super) fn dry_run(&self) -> Result<(), ScheduleError> {
        let mut executor = self.clone();
        executor.plan = Arc::new(ExecutionPlan { repeat: 1, ..(*self.plan).clone() });
        let mut actions = Vec::new();
        for host in self.hosts() {
            executor.begin(host, &mut actions);
        }
        let mut now = Instant::ZERO;
        // Computations by the time at which they are done, ties by the order in which they began.
        let mut computations = BTreeSet::new();
        for begun in 0.. {
            for action in std::mem::take(&mut actions) {
                match action {
                    Action::Flow(flow) => {
                        executor.on_received(flow.id, now, &mut actions);
                        executor.on_sent(flow.id, now, &mut actions);
                    }
                    Action::Done(_) => {}
                    Action::Compute { at, place } => {
                        computations.insert((at, begun, place));
                    }
                }
            }
            if actions.is_empty() {
                let Some((at, _, place)) = computations.pop_first() else { break };
                now = at;
                executor.on_computed(place, now, &mut actions);
            }
        }
        executor.blocked_step().map_or(Ok(()), Err)
    }

    /// Returns why a step cannot begin or end, if not all have ended.
    fn blocked_step(&mut self) -> Option<ScheduleError> {
        let schedule = &self.plan.schedule;
        let stuck = |state: &Option<Box<State>>| state.as_ref().is_some_and(|state| state.left > 0);
        let rank = self.ranks.iter().position(stuck)?;
        // A receive without a partner in the whole schedule is a cause; other waiting steps may be its consequence.
        if let Some(unmatched) = partners::unmatched(schedule) {
            return Some(ScheduleError {
                place: schedule.place(unmatched.rank, unmatched.step),
                message: unmatched.message(schedule),
            });
        }
        // Next, a receive whose message is never sent; other waiting steps may be its consequence.
        let waiting = self.sends_that_wait();
        let mut never = None;
        for rank in 0..self.ranks.len() {
            let state = self.ranks[rank].as_mut();
            if let Some(step) = state.and_then(|state| state.receives.take_message((ANY, ANY))) {
                let rank = rank as u32;
                let Step::Recv { from, tag } = schedule.step(rank, step) else { continue };
                // The message was sent, and a receive that takes any message took it: another order may have an end.
                let mut own = waiting.get(&rank).into_iter().flatten();
                let &((sender, _), send) = own.find(|(sent, _)| partners::suits((from, tag), *sent))?;
                never.get_or_insert((rank, step, (from, tag), (sender, send)));
            }
        }
        if let Some((rank, step, wanted, (from, send))) = never {
            let message = format!(
                "{} that is never sent (its \"send\", {}, never begins): each \"recv\" needs a \"send\" of its own, and that must not wait for what comes after it",
                partners::waits(rank, step, wanted),
                schedule.step_name(from, send),
            );
            return Some(ScheduleError { place: schedule.place(rank, step), message });
        }
        let state = self.ranks[rank].as_ref()?;
        let step = state.waits.iter().position(|&waits| waits > 0)?;
        let message = format!("step {} of rank {rank} never begins: steps wait for each other in a cycle", step + 1);
        Some(ScheduleError { place: schedule.place(rank as u32, step as u32), message })
    }

    /// Returns the sends that have not begun, with their steps, by the rank that they are for.
    fn sends_that_wait(&self) -> BTreeMap<u32, Vec<(partners::Address, u32)>> {
        let mut sends: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for &(from, step) in self.plan.schedule.sends.iter() {
            let waits = self.ranks[from as usize].as_ref().is_some_and(|state| state.waits[step as usize] > 0);
            if let Step::Send { to, tag, .. } = self.plan.schedule.step(from, step)
                && waits
            {
                sends.entry(to).or_default().push(((from, tag), step));
            }
        }
        sends
    }
}
