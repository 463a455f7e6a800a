//! Collective operations and training steps, expressed as schedules.

mod exchange;
mod experts;
mod pipeline;
mod ring;
mod team;
mod tree;

use schemars::JsonSchema;
use selvedge_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

pub use experts::MixtureOfExperts;
pub use pipeline::{Order, Pipeline};
pub use team::{Placement, Team};

use super::build::{BuildEnv, Part, WorkloadKind};
use super::schedule::{Rank, Step};
use crate::ConfigError;

/// Collective operation, once or repeatedly. A repetition of a group is a job: its completion time lasts from its first
/// flow's start to its last one's end.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Collective {
    /// Operation and its algorithm.
    pub operation: Operation,
    /// Buffer of each host: the data that is reduced, gathered as a whole, or sent to all others together. At least a
    /// byte per host of a group.
    pub size: Bytes,
    /// Hosts that take part.
    #[serde(default)]
    pub team: Team,
    /// Time that each host computes before each repetition.
    #[serde(default)]
    pub compute: Duration,
    /// Number of repetitions, at least 1. A host begins the next as soon as it is done itself.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Time at which the first repetition begins.
    #[serde(default)]
    pub start: Duration,
}

/// A collective operation and its algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Operation {
    /// All-reduce in a ring: reduce-scatter, then all-gather; 2 (n - 1) steps of an n-th of the buffer
    /// (Patarasuk and Yuan, 2009; NCCL's ring).
    RingAllReduce,
    /// All-reduce over two binary trees, half of the buffer each, so that a host that is a leaf in one is
    /// inside the other (Sanders, Speck, Traeff, 2009; NCCL's trees), in chunks that follow each other.
    TreeAllReduce {
        /// Size of a chunk; above zero.
        chunk: Bytes,
        /// Number of chunks that each connection has under way, at least 1; the next waits until one is acknowledged.
        #[serde(default = "two")]
        outstanding: u32,
    },
    /// All-reduce by recursive halving and doubling: 2 log2 n steps (Rabenseifner, 2004). Groups of a power
    /// of two.
    HalvingDoublingAllReduce,
    /// First half of a ring's all-reduce: each host ends with an n-th of the sum.
    ReduceScatter,
    /// Second half of a ring's all-reduce: each host begins with an n-th, and ends with all.
    AllGather,
    /// Exchange in which each host sends an n-th of its buffer to each other one.
    AllToAll {
        /// Number of these messages that a host has under way, at least 1. Absent: all at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outstanding: Option<u32>,
    },
}

impl WorkloadKind for Collective {
    const NAME: &'static str = "collective";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let groups = self.team.groups(workload, env)?;
        let n = groups.size();
        groups.check_parts(self.size)?;
        let remedy = match self.operation {
            Operation::TreeAllReduce { .. } => {
                "give a larger \"operation.tree-all-reduce.chunk\", or fewer \"team.hosts\""
            }
            _ => "give a smaller \"team.group-size\", or fewer \"team.hosts\"",
        };
        groups.limit(self.steps(n), remedy)?;
        self.operation.check(n)?;
        groups.build_part(Self::NAME, workload, env, self.start, self.repeat, |_, ranks| {
            let ready: Vec<Vec<u32>> = ranks.iter_mut().map(|rank| think(rank, self.compute)).collect();
            match self.operation {
                Operation::RingAllReduce => ring::all_reduce(ranks, self.size, &ready),
                Operation::ReduceScatter | Operation::AllGather => ring::half(ranks, self.size, &ready),
                Operation::TreeAllReduce { chunk, outstanding } => {
                    tree::all_reduce(ranks, self.size, chunk, outstanding, &ready);
                }
                Operation::HalvingDoublingAllReduce => exchange::halving_doubling(ranks, self.size, &ready),
                Operation::AllToAll { outstanding } => {
                    let size = |from, to| share(self.size, n, (from + to) % n);
                    exchange::all_to_all(ranks, 0, outstanding.unwrap_or(n), size, &ready);
                }
            }
        })
    }
}

impl Collective {
    /// Returns the approximate number of steps of each rank.
    fn steps(&self, n: u32) -> u64 {
        let n = u64::from(n);
        match self.operation {
            Operation::TreeAllReduce { chunk, .. } => 6 * (self.size.get() / chunk.get().max(1) + 2),
            _ => 4 * n,
        }
    }
}

impl Operation {
    fn check(self, n: u32) -> Result<(), ConfigError> {
        match self {
            Self::TreeAllReduce { chunk, .. } if chunk.is_zero() => {
                Err(ConfigError::new("operation.tree-all-reduce.chunk", "found 0, expected at least a byte"))
            }
            Self::TreeAllReduce { outstanding: 0, .. } => {
                Err(ConfigError::new("operation.tree-all-reduce.outstanding", "found 0, expected at least 1"))
            }
            Self::AllToAll { outstanding: Some(0) } => {
                Err(ConfigError::new("operation.all-to-all.outstanding", "found 0, expected at least 1"))
            }
            Self::HalvingDoublingAllReduce if !n.is_power_of_two() => {
                let message = format!("halving and doubling needs groups of 2, 4, 8, ... hosts, found {n}");
                Err(ConfigError::new("operation", message))
            }
            _ => Ok(()),
        }
    }
}

/// Adds a computation, if `time` is above zero; returns the steps that later steps have to wait for.
fn think(rank: &mut Rank, time: Duration) -> Vec<u32> {
    if time.is_zero() { Vec::new() } else { vec![rank.step(Step::Compute { time, cpu: 0 }, &[])] }
}

/// Returns the size of part `index` of `size` cut into `parts` as evenly as bytes allow.
fn share(size: Bytes, parts: u32, index: u32) -> Bytes {
    let end = |n: u32| (u128::from(size.get()) * u128::from(n) / u128::from(parts)) as u64;
    Bytes::new(end(index + 1) - end(index))
}

fn one() -> u32 {
    1
}
fn two() -> u32 {
    2
}

#[cfg(test)]
mod tests;
