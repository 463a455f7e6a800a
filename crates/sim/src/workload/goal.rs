//! Schedules from files.

use schemars::JsonSchema;
use selvedge_units::{Duration, HostId, Instant};
use serde::{Deserialize, Serialize};

use super::Hosts;
use super::build::{BuildEnv, Part, WorkloadKind, WorkloadSummary};
use super::schedule::{ExecutionPlan, Executor, ScheduleError};
use crate::ConfigError;

/// Schedule in a GOAL file, as text or binary. Each repetition is a job.
///
/// Messages begin when the sender is ready, whether or not the receiver already waits (like RDMA Writes into a
/// registered buffer). A rank's computations share its processors by their `cpu`; sending and receiving take none. All
/// messages of a host leave by its one NIC, whatever `nic` says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GoalFile {
    /// Path, relative to the scenario file.
    pub path: String,
    /// Hosts of the ranks, the first ranks on the first host. Absent: all hosts, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Number of ranks that share a host, at least 1; messages between them take no time.
    #[serde(default = "one")]
    pub ranks_per_host: u32,
    /// Number of executions of the schedule, at least 1.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Time at which the schedule begins.
    #[serde(default)]
    pub start: Duration,
}

impl GoalFile {
    /// Creates a configuration of the schedule at `path`, one rank per host.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), hosts: None, ranks_per_host: 1, repeat: 1, start: Duration::ZERO }
    }
}

impl WorkloadKind for GoalFile {
    const NAME: &'static str = "goal";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let schedule = env.library.schedule(&self.path).map_err(|error| error.within("path"))?;
        let hosts = Hosts::resolve(self.hosts.as_ref(), env.graph).map_err(|error| error.within("hosts"))?;
        for (key, value) in [("ranks-per-host", self.ranks_per_host), ("repeat", self.repeat)] {
            if value == 0 {
                return Err(ConfigError::new(key, "found 0, expected at least 1"));
            }
        }
        let ranks = schedule.ranks().len();
        let room = hosts.len() * self.ranks_per_host as usize;
        if ranks > room {
            let message = format!(
                "{} has {ranks} ranks, but {} hosts with \"ranks-per-host\" = {} have room for {room}: expected at least {}",
                self.path,
                hosts.len(),
                self.ranks_per_host,
                ranks.div_ceil(hosts.len()),
            );
            return Err(ConfigError::new("ranks-per-host", message));
        }
        let home = |rank: usize| hosts[rank / self.ranks_per_host as usize];
        let plan = ExecutionPlan {
            workload,
            measure: env.measure,
            jobs: vec![0; ranks],
            hosts: (0..ranks).map(home).collect::<Vec<HostId>>(),
            start: Instant::ZERO + self.start,
            repeat: self.repeat,
            schedule,
        };
        let mut used = plan.hosts.clone();
        used.dedup();
        let mean_size = plan.schedule.bytes().get() as f64 / plan.schedule.messages().max(1) as f64;
        let summary =
            WorkloadSummary { mean_size, first: self.start, ..WorkloadSummary::new(Self::NAME, &used, &used) };
        let in_file = |ScheduleError { place, message }: ScheduleError| {
            let place = place.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
            ConfigError::new("path", format!("{}{place}: {message}", self.path))
        };
        Ok(Part::scheduled(Executor::new(plan).map_err(in_file)?, summary))
    }
}

fn one() -> u32 {
    1
}
