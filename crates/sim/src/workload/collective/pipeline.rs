//! Pipelines: a model cut into stages, and batches that pass through these.

use schemars::JsonSchema;
use selvedge_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::{Team, one};
use crate::ConfigError;
use crate::workload::build::{BuildEnv, Part, WorkloadKind};
use crate::workload::schedule::{Rank, Step};

/// Pipeline-parallel training: the hosts of a group are the stages of a model. Micro-batches go forward through all
/// stages, and their gradients back. A repetition of a group is a job.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pipeline {
    /// Bytes that a stage passes on of each micro-batch, forward and back; above zero.
    pub size: Bytes,
    /// Micro-batches of a repetition, at least 1.
    pub micro_batches: u32,
    /// Time of a stage's forward computation for a micro-batch.
    pub forward: Duration,
    /// Time of a stage's backward computation for a micro-batch. Absent: twice as long as forward.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Duration>,
    /// Order of a stage's computations.
    #[serde(default)]
    pub order: Order,
    /// Hosts that take part.
    #[serde(default)]
    pub team: Team,
    /// Number of repetitions, at least 1.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Time at which the first repetition begins.
    #[serde(default)]
    pub start: Duration,
}

/// Order of the computations of a stage of a [`Pipeline`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// One forward, one backward, once the pipeline is filled (PipeDream, 2019).
    #[default]
    OneForwardOneBackward,
    /// All forward, then all backward (GPipe, 2019).
    AllForwardFirst,
}

/// One computation of a stage.
#[derive(Clone, Copy)]
enum Work {
    Forward(u32),
    Backward(u32),
}

impl WorkloadKind for Pipeline {
    const NAME: &'static str = "pipeline";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let groups = self.team.groups(workload, env)?;
        if self.size.is_zero() {
            return Err(ConfigError::new("size", "found 0, expected at least a byte"));
        }
        if self.micro_batches == 0 {
            return Err(ConfigError::new("micro-batches", "found 0, expected at least 1"));
        }
        groups.limit(6 * u64::from(self.micro_batches), "give fewer \"micro-batches\", or \"team.hosts\"")?;
        groups.build_part(Self::NAME, workload, env, self.start, self.repeat, |_, ranks| {
            let stages = ranks.len() as u32;
            for (stage, rank) in (0..).zip(ranks) {
                self.write(stage, stages, rank);
            }
        })
    }
}

impl Pipeline {
    /// Writes the steps of one stage.
    fn write(&self, stage: u32, stages: u32, rank: &mut Rank) {
        let backward = self.backward.unwrap_or(self.forward * 2);
        let mut before = Vec::new();
        for work in self.works(stage, stages) {
            // Source rank, computing time, destination rank and tag.
            let (from, time, to, tag) = match work {
                Work::Forward(batch) => (stage.checked_sub(1), self.forward, stage + 1, 2 * batch),
                Work::Backward(batch) => (Some(stage + 1), backward, stage.wrapping_sub(1), 2 * batch + 1),
            };
            let mut after = std::mem::take(&mut before);
            if let Some(from) = from.filter(|&from| from < stages) {
                after.push(rank.step(Step::Recv { from, tag }, &[]));
            }
            let done = rank.step(Step::Compute { time, cpu: 0 }, &after);
            if to < stages {
                rank.step(Step::Send { to, size: self.size, tag }, &[done]);
            }
            before.push(done);
        }
    }

    /// Returns the computations of stage `stage` in their order.
    fn works(&self, stage: u32, stages: u32) -> Vec<Work> {
        let batches = self.micro_batches;
        // Number of forward computations before the first backward one.
        let ahead = match self.order {
            Order::OneForwardOneBackward => (stages - stage).min(batches),
            Order::AllForwardFirst => batches,
        };
        let mut works: Vec<Work> = (0..ahead).map(Work::Forward).collect();
        for batch in 0..batches {
            works.push(Work::Backward(batch));
            works.extend((ahead + batch < batches).then_some(Work::Forward(ahead + batch)));
        }
        works
    }
}
