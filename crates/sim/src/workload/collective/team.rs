//! Hosts that take part in collective operations.

use schemars::JsonSchema;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant};
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::workload::Hosts;
use crate::workload::build::{BuildEnv, Part, WorkloadSummary};
use crate::workload::flow::stream;
use crate::workload::schedule::{ExecutionPlan, Executor, Rank, Schedule, ScheduleError, Step};

/// Hosts that take part, split into groups that perform the same operation at the same time, independently of each
/// other.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Team {
    /// Hosts that take part. Absent: all hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Hosts of each group, at least 2; divides the number of hosts. Absent: all are one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_size: Option<u32>,
    /// Choice of the hosts that make a group.
    pub placement: Placement,
}

/// Choice of the hosts that make a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Hosts with consecutive numbers: most traffic stays near.
    #[default]
    Adjacent,
    /// Hosts at equal distances: with 4 groups every fourth host.
    Strided,
    /// Hosts drawn at random.
    Random,
}

/// Hosts that take part, in their groups.
pub(super) struct Groups {
    /// Hosts, ordered by group.
    hosts: Vec<HostId>,
    size: u32,
}

/// Largest number of steps of all ranks together: each takes about 40 bytes.
const MOST_STEPS: u64 = 1 << 25;

impl Team {
    pub(super) fn groups(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Groups, ConfigError> {
        let at = |error: ConfigError| error.within("team");
        let mut hosts = Hosts::resolve(self.hosts.as_ref(), env.graph).map_err(|error| at(error.within("hosts")))?;
        let count = hosts.len() as u32;
        if count < 2 {
            return Err(at(ConfigError::new("hosts", "a collective needs at least two hosts, found one")));
        }
        let size = self.group_size.unwrap_or(count);
        if size < 2 || !count.is_multiple_of(size) {
            let message = format!("found {size}, expected a number from 2 that divides the {count} hosts");
            return Err(at(ConfigError::new("group-size", message)));
        }
        match self.placement {
            Placement::Adjacent => {}
            Placement::Strided => {
                let groups = (count / size) as usize;
                hosts = (0..groups).flat_map(|group| hosts.iter().copied().skip(group).step_by(groups)).collect();
            }
            Placement::Random => stream(env.seed, Domain::WorkloadShape, workload, 0).shuffle(&mut hosts),
        }
        Ok(Groups { hosts, size })
    }
}

impl Groups {
    /// Returns the number of hosts in each group.
    pub(super) fn size(&self) -> u32 {
        self.size
    }

    /// Checks that a buffer of this size has a part for each rank.
    pub(super) fn check_parts(&self, size: Bytes) -> Result<(), ConfigError> {
        let n = self.size();
        if size < Bytes::new(u64::from(n)) {
            let message = format!("{size} cannot be cut into {n} parts: each has a byte at least");
            return Err(ConfigError::new("size", message));
        }
        Ok(())
    }

    /// Checks that `steps` steps of each rank fit into memory; `remedy` says how to have fewer.
    pub(super) fn limit(&self, steps: u64, remedy: &str) -> Result<(), ConfigError> {
        let all = steps.saturating_mul(self.hosts.len() as u64);
        if all > MOST_STEPS {
            let message = format!(
                "that makes about {all} steps of {} hosts, but at most {MOST_STEPS} can be kept: {remedy}",
                self.hosts.len()
            );
            return Err(ConfigError::new("", message));
        }
        Ok(())
    }

    /// Builds the workload: calls `write` with each group's number and its ranks, and makes one schedule of all groups.
    pub(super) fn build_part(
        self,
        kind: &'static str,
        workload: u16,
        env: &BuildEnv<'_>,
        start: Duration,
        repeat: u32,
        mut write: impl FnMut(u32, &mut [Rank]),
    ) -> Result<Part, ConfigError> {
        if repeat == 0 {
            return Err(ConfigError::new("repeat", "found 0, expected at least 1"));
        }
        let count = self.hosts.len() as u32 / self.size;
        let mut ranks = Vec::with_capacity(self.hosts.len());
        for group in 0..count {
            let mut own = vec![Rank::default(); self.size as usize];
            write(group, &mut own);
            let first = group * self.size;
            ranks.extend(own.into_iter().map(|rank| rank.renamed(|peer| peer + first)));
        }
        let plan = ExecutionPlan {
            workload,
            measure: env.measure,
            schedule: Schedule::new(ranks),
            jobs: (0..self.hosts.len() as u32).map(|rank| rank / self.size).collect(),
            hosts: self.hosts,
            start: Instant::ZERO + start,
            repeat,
        };
        let summary = WorkloadSummary { first: start, ..WorkloadSummary::new(kind, &plan.hosts, &plan.hosts) };
        let mean_size = plan.schedule.bytes().get() as f64 / plan.schedule.messages().max(1) as f64;
        Ok(Part::scheduled(
            Executor::new(plan).map_err(|ScheduleError { message, .. }| ConfigError::new("", message))?,
            WorkloadSummary { mean_size, ..summary },
        ))
    }
}

impl Rank {
    /// Returns the rank with other numbers for its peers.
    fn renamed(mut self, name: impl Fn(u32) -> u32) -> Self {
        for step in self.steps_mut() {
            match step {
                Step::Send { to: peer, .. } | Step::Recv { from: peer, .. } => *peer = name(*peer),
                Step::Compute { .. } => {}
            }
        }
        self
    }
}
