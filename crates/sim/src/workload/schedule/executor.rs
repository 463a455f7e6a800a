//! Executes a schedule on the hosts of a network.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use selvedge_telemetry::{RankRow, StuckRank};
use selvedge_units::{Bytes, Duration, HostId, Instant};

use super::mailbox::Mailbox;
use super::{Rank, Schedule, Step, partners};
use crate::workload::{FlowSpec, Measure};

/// Schedule for an [`Executor`], and where and when to execute it.
#[derive(Clone, Debug)]
pub struct ExecutionPlan {
    /// Number of the workload in the scenario.
    pub workload: u16,
    /// Choice of the flows that are measured.
    pub measure: Measure,
    /// Schedule to execute.
    pub schedule: Schedule,
    /// Host of each rank; several ranks may share a host.
    pub hosts: Vec<HostId>,
    /// Independent job that each rank belongs to, from 0.
    pub jobs: Vec<u32>,
    /// Time at which the ranks begin.
    pub start: Instant,
    /// Number of executions of the schedule, at least 1. A rank begins anew as soon as it is done, whatever the others
    /// do.
    pub repeat: u32,
}

/// Executor of a schedule: says which messages begin when, as others end. Each host's calls concern its own ranks
/// alone.
#[derive(Clone, Debug)]
pub struct Executor {
    pub(super) plan: Arc<ExecutionPlan>,
    job_count: u32,
    /// Ranks of each host, as a sorted list.
    at_host: Arc<[(HostId, u32)]>,
    pub(super) ranks: Vec<Option<Box<State>>>,
}

/// Action that an [`Executor`] requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Begin a flow.
    Flow(FlowSpec),
    /// Call [`Executor::on_computed`] with a place at a time.
    Compute {
        /// Time of the call.
        at: Instant,
        /// Argument of the call.
        place: u64,
    },
    /// A rank is done with a repetition.
    Done(RankRow),
}

/// Progress of a rank.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    iteration: u32,
    /// Time at which the rank began the iteration.
    since: Instant,
    /// Number of others that each step still waits for.
    pub(super) waits: Vec<u32>,
    /// Number of steps that have not ended.
    pub(super) left: u32,
    cpus: BTreeMap<u8, Cpu>,
    pub(super) receives: Mailbox,
    /// Messages that no receive has taken yet, by iteration.
    messages: BTreeMap<u32, Mailbox>,
}

/// Computations of one processor, the current one first.
type Cpu = VecDeque<u32>;

/// Beginning or end of a step, by rank and step.
#[derive(Clone, Copy)]
enum Turn {
    Begin(u32, u32),
    End(u32, u32),
}

/// Consequences of an event at one time, as they are worked off.
struct Round<'a> {
    now: Instant,
    /// Steps that begin or end next.
    turns: VecDeque<Turn>,
    actions: &'a mut Vec<Action>,
}

/// Reason why a schedule cannot be executed to its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleError {
    /// Line and column of the file with the step at fault, if the schedule comes from one.
    pub place: Option<(u32, u32)>,
    /// Message: which step waits, and for what.
    pub message: String,
}

impl Executor {
    /// Creates an executor that has not begun.
    ///
    /// # Errors
    /// The schedule cannot be executed to its end, whatever the network does; the message says which step waits, and
    /// for what.
    ///
    /// # Panics
    /// When the plan does not give each rank a host.
    pub fn new(plan: ExecutionPlan) -> Result<Self, ScheduleError> {
        assert_eq!(plan.hosts.len(), plan.schedule.ranks().len(), "each rank has a host");
        let mut at_host: Vec<(HostId, u32)> = plan.hosts.iter().copied().zip(0..).collect();
        at_host.sort_unstable();
        let ranks = vec![None; plan.hosts.len()];
        let job_count = plan.jobs.iter().max().map_or(1, |&last| last + 1);
        let executor = Self { plan: Arc::new(plan), job_count, at_host: at_host.into(), ranks };
        executor.dry_run()?;
        Ok(executor)
    }
    /// Returns the number of the workload in the scenario; equals [`FlowSpec::workload`] of its flows.
    pub fn workload(&self) -> u16 {
        self.plan.workload
    }
    /// Returns the number of flows that there will be.
    pub fn flows(&self) -> u64 {
        let plan = &self.plan;
        let between = |&&(rank, step): &&(u32, u32)| match plan.schedule.step(rank, step) {
            Step::Send { to, .. } => plan.hosts[to as usize] != plan.hosts[rank as usize],
            Step::Recv { .. } | Step::Compute { .. } => false,
        };
        plan.schedule.sends.iter().filter(between).count() as u64 * u64::from(plan.repeat)
    }
    /// Returns about `most` of the messages between hosts of one repetition: sender, receiver, size.
    pub(crate) fn messages(&self, most: u64) -> impl Iterator<Item = (HostId, HostId, Bytes)> {
        let plan = &self.plan;
        let step = (plan.schedule.sends.len() as u64).div_ceil(most.max(1)).max(1) as usize;
        plan.schedule.sends.iter().step_by(step).filter_map(|&(rank, step)| {
            let Step::Send { to, size, .. } = plan.schedule.step(rank, step) else { return None };
            let (src, dst) = (plan.hosts[rank as usize], plan.hosts[to as usize]);
            (src != dst).then_some((src, dst, size.max(Bytes::new(1))))
        })
    }
    /// Returns the most messages that all ranks together may have under way, as far as each rank's own order tells.
    pub(crate) fn open_at_once(&self) -> u64 {
        self.plan.schedule.ranks().iter().map(Rank::widest).sum()
    }
    /// Returns the bytes of the schedule, and of the state of ranks.
    pub(crate) fn bytes(&self) -> usize {
        self.plan.schedule.ranks().iter().map(Rank::bytes).sum::<usize>() + self.ranks.len() * size_of::<State>()
    }
    /// Returns the number of ranks that take part in each job, without those that do nothing.
    pub fn ranks_of_a_job(&self) -> u64 {
        self.plan.schedule.ranks().iter().filter(|rank| !rank.is_empty()).count() as u64 / u64::from(self.job_count)
    }
    /// Returns the bound below which the numbers of the flows lie.
    pub fn numbers(&self) -> u64 {
        self.plan.schedule.messages() * u64::from(self.plan.repeat)
    }
    /// Returns the hosts that take part.
    pub fn hosts(&self) -> impl Iterator<Item = HostId> + use<> {
        let at_host = Arc::clone(&self.at_host);
        let mut last = None;
        (0..at_host.len()).map(move |n| at_host[n].0).filter(move |&host| last.replace(host) != Some(host))
    }

    /// Lets the ranks at `host` begin. Must be called once per host.
    pub fn begin(&mut self, host: HostId, actions: &mut Vec<Action>) {
        let first = self.at_host.partition_point(|&(at, _)| at < host);
        let at_host = Arc::clone(&self.at_host);
        let mut turns = VecDeque::new();
        let own = at_host[first..].iter().take_while(|&&(at, _)| at == host);
        // The state of all ranks exists before any acts: they may have messages for each other.
        own.clone().for_each(|&(_, rank)| self.ranks[rank as usize] = Some(Box::default()));
        let start = self.plan.start;
        own.for_each(|&(_, rank)| self.open(rank, start, &mut turns));
        self.run(turns, start, actions);
    }
    /// Handles the acknowledgement of the flow with this number; called for the flow's sender.
    pub fn on_sent(&mut self, flow: u64, now: Instant, actions: &mut Vec<Action>) {
        let (_, rank, step) = self.message(flow);
        self.run([Turn::End(rank, step)].into(), now, actions);
    }
    /// Handles the arrival of the flow with this number; called for the flow's receiver.
    pub fn on_received(&mut self, flow: u64, now: Instant, actions: &mut Vec<Action>) {
        let (iteration, rank, step) = self.message(flow);
        let Step::Send { to, tag, .. } = self.plan.schedule.step(rank, step) else { return };
        let turns = self.deliver(iteration, rank, to, tag).into_iter().collect();
        self.run(turns, now, actions);
    }
    /// Returns the ranks that have begun a repetition before `end` and are not done with it.
    pub fn unfinished(&self, end: Instant) -> impl Iterator<Item = RankRow> {
        let ranks = (0..).zip(&self.ranks).filter_map(|(rank, state)| Some((rank, state.as_deref()?)));
        let begun = ranks.filter(move |(_, state)| state.left > 0 && state.since < end);
        begun.map(|(rank, state)| self.row_of(rank, state, None))
    }
    /// Returns a rank that still waits though all messages have arrived, because a receive that takes any message has
    /// taken the one that it waits for. `parts`: this executor in each partition.
    pub(crate) fn stuck(parts: &[&Self]) -> Option<StuckRank> {
        let plan = &parts.first()?.plan;
        let state = |rank: u32| parts.iter().find_map(|part| part.ranks[rank as usize].as_deref());
        // Sends to each rank, with the first iteration that is still to be sent.
        let mut unsent: BTreeMap<u32, Vec<(partners::Address, u32)>> = BTreeMap::new();
        for &(from, step) in plan.schedule.sends.iter() {
            let (Step::Send { to, tag, .. }, Some(sender)) = (plan.schedule.step(from, step), state(from)) else {
                continue;
            };
            let waits = sender.left > 0 && sender.waits[step as usize] > 0;
            unsent.entry(to).or_default().push(((from, tag), sender.iteration + u32::from(!waits)));
        }
        let mut receives = Vec::new();
        for (rank, state) in (0..plan.hosts.len() as u32).filter_map(|rank| Some((rank, state(rank)?))) {
            receives.extend(state.receives.iter().map(|(wanted, step)| (rank, step, wanted, state.iteration)));
        }
        // A rank that waits for a message still to be sent may be waiting because of another.
        let is_cause = |&(rank, _, wanted, iteration): &(u32, u32, partners::Address, u32)| {
            let mut own = unsent.get(&rank).into_iter().flatten();
            !own.any(|&(sent, first)| first <= iteration && partners::suits(wanted, sent))
        };
        let &(rank, step, wanted, _) = receives.iter().find(|one| is_cause(one)).or(receives.first())?;
        let line = plan.schedule.place(rank, step).map_or(String::new(), |(line, _)| format!(", in line {line}"));
        Some(StuckRank { workload: plan.workload, waits: partners::waits(rank, step, wanted) + &line })
    }
    /// Handles the end of a computation.
    pub fn on_computed(&mut self, place: u64, now: Instant, actions: &mut Vec<Action>) {
        self.run([Turn::End((place >> 32) as u32, place as u32)].into(), now, actions);
    }

    /// Returns the number of an iteration of a rank's job, among those of all jobs.
    fn group(&self, rank: u32, iteration: u32) -> u32 {
        iteration * self.job_count + self.plan.jobs[rank as usize]
    }

    /// Returns the row about a rank's part in its iteration.
    fn row_of(&self, rank: u32, state: &State, end: Option<Instant>) -> RankRow {
        RankRow {
            workload: self.plan.workload,
            group: self.group(rank, state.iteration),
            begin: state.since,
            end,
            measured: self.plan.measure.counts(state.since),
        }
    }

    /// Returns the iteration, rank and step of the flow with this number.
    fn message(&self, flow: u64) -> (u32, u32, u32) {
        let messages = self.plan.schedule.messages();
        let (rank, step) = self.plan.schedule.sends[(flow % messages) as usize];
        ((flow / messages) as u32, rank, step)
    }

    /// Lets a rank begin an iteration.
    fn open(&mut self, rank: u32, now: Instant, turns: &mut VecDeque<Turn>) {
        let steps = &self.plan.schedule.ranks[rank as usize];
        let Some(state) = &mut self.ranks[rank as usize] else { return };
        state.since = now;
        state.waits.clone_from(&steps.waits);
        state.left = steps.len() as u32;
        let ready = (0..steps.len() as u32).filter(|&step| steps.waits[step as usize] == 0);
        turns.extend(ready.map(|step| Turn::Begin(rank, step)));
    }

    /// Handles a message of `iteration` that has reached rank `to`; returns the end of the receive that takes it, if
    /// one waits.
    fn deliver(&mut self, iteration: u32, from: u32, to: u32, tag: u32) -> Option<Turn> {
        let state = self.ranks[to as usize].as_mut()?;
        if iteration == state.iteration
            && let Some(step) = state.receives.take_receive((from, tag))
        {
            return Some(Turn::End(to, step));
        }
        state.messages.entry(iteration).or_default().put((from, tag), 0);
        None
    }

    /// Works off the turns until all ranks are done or wait.
    fn run(&mut self, turns: VecDeque<Turn>, now: Instant, actions: &mut Vec<Action>) {
        let plan = Arc::clone(&self.plan);
        let mut round = Round { now, turns, actions };
        while let Some(turn) = round.turns.pop_front() {
            match turn {
                Turn::Begin(rank, step) => self.on_begin(&plan, rank, step, &mut round),
                Turn::End(rank, step) => self.on_end(&plan, rank, step, &mut round),
            }
        }
    }

    fn on_begin(&mut self, plan: &ExecutionPlan, rank: u32, step: u32, round: &mut Round<'_>) {
        let Some(state) = &mut self.ranks[rank as usize] else { return };
        match plan.schedule.step(rank, step) {
            Step::Send { to, size, tag } => {
                let (src, dst) = (plan.hosts[rank as usize], plan.hosts[to as usize]);
                let iteration = state.iteration;
                if src == dst {
                    // Within a host nothing is sent: the message arrives at once.
                    round.turns.push_back(Turn::End(rank, step));
                    round.turns.extend(self.deliver(iteration, rank, to, tag));
                } else {
                    round.actions.push(Action::Flow(FlowSpec {
                        id: u64::from(iteration) * plan.schedule.messages() + plan.schedule.message_of(rank, step),
                        workload: plan.workload,
                        group: self.group(rank, iteration),
                        src,
                        dst,
                        size: size.max(Bytes::new(1)),
                        priority: None,
                        start: round.now,
                        measured: plan.measure.counts(round.now),
                        on_sent: None,
                        on_received: None,
                    }));
                }
            }
            Step::Recv { from, tag } => {
                let iteration = state.iteration;
                let there = state.messages.get_mut(&iteration).and_then(|messages| messages.take_message((from, tag)));
                match there {
                    Some(_) => round.turns.push_back(Turn::End(rank, step)),
                    None => state.receives.put((from, tag), step),
                }
            }
            Step::Compute { time, cpu } => {
                let queue = state.cpus.entry(cpu).or_default();
                queue.push_back(step);
                if queue.len() > 1 {
                    return;
                }
                round.actions.push(compute(rank, step, round.now, time));
            }
        }
        self.release(plan.schedule.ranks[rank as usize].after_start(step), rank, &mut round.turns);
    }

    fn on_end(&mut self, plan: &ExecutionPlan, rank: u32, step: u32, round: &mut Round<'_>) {
        let Some(state) = &mut self.ranks[rank as usize] else { return };
        state.left -= 1;
        let steps = &plan.schedule.ranks[rank as usize];
        if let Step::Compute { cpu, .. } = plan.schedule.step(rank, step)
            && let Some(queue) = state.cpus.get_mut(&cpu)
        {
            queue.pop_front();
            if let Some(&next) = queue.front()
                && let Step::Compute { time, .. } = plan.schedule.step(rank, next)
            {
                round.actions.push(compute(rank, next, round.now, time));
                self.release(steps.after_start(next), rank, &mut round.turns);
            }
        }
        self.release(steps.after_end(step), rank, &mut round.turns);
        let Some(state) = &self.ranks[rank as usize] else { return };
        if state.left > 0 {
            return;
        }
        round.actions.push(Action::Done(self.row_of(rank, state, Some(round.now))));
        let Some(state) = &mut self.ranks[rank as usize] else { return };
        if state.iteration + 1 < plan.repeat {
            state.messages.remove(&state.iteration);
            state.iteration += 1;
            self.open(rank, round.now, &mut round.turns);
        }
    }

    /// Removes one dependency of each of these steps of a rank, and lets those begin that have none left.
    fn release(&mut self, steps: impl Iterator<Item = u32>, rank: u32, turns: &mut VecDeque<Turn>) {
        let Some(state) = &mut self.ranks[rank as usize] else { return };
        for step in steps {
            let waits = &mut state.waits[step as usize];
            *waits -= 1;
            if *waits == 0 {
                turns.push_back(Turn::Begin(rank, step));
            }
        }
    }
}

/// Returns the action by which step `step` of `rank` begins to compute.
fn compute(rank: u32, step: u32, now: Instant, time: Duration) -> Action {
    Action::Compute { at: now.saturating_add(time), place: u64::from(rank) << 32 | u64::from(step) }
}
