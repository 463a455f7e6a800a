//! Permutation traffic: each host sends to one and receives from one.

use schemars::JsonSchema;
use selvedge_units::{Bytes, Domain, Duration, HostId, Rng};
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Part, WorkloadKind, WorkloadSummary};
use super::closed_loop::{LoopPlan, Pattern};
use super::flow::stream;
use super::{ClosedLoop, Hosts, SizeDistribution};
use crate::ConfigError;

/// Permutation: each host sends to one other host and receives from one, by a random derangement, drawn from the seed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Permutation {
    /// Size of each flow; above zero.
    pub size: Bytes,
    /// Number of flows that each host sends to its partner, one after another; at least 1.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Hosts that take part. Absent: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Time at which the first flows begin.
    #[serde(default)]
    pub start: Duration,
    /// Largest random delay of each host's beginning, so that hosts do not act in step.
    #[serde(default)]
    pub jitter: Duration,
}

impl Permutation {
    /// Returns a permutation of all hosts, which begin together, with one flow of `size` each.
    pub const fn of(size: Bytes) -> Self {
        Self { size, repeat: one(), hosts: None, start: Duration::ZERO, jitter: Duration::ZERO }
    }
}

impl WorkloadKind for Permutation {
    const NAME: &'static str = "permutation";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let hosts = Hosts::resolve(self.hosts.as_ref(), env.graph).map_err(|error| error.within("hosts"))?;
        if hosts.len() < 2 {
            return Err(ConfigError::new("hosts", "a permutation needs at least two hosts, found one"));
        }
        if self.repeat == 0 {
            return Err(ConfigError::new("repeat", "found 0, expected at least 1"));
        }
        let sizes = SizeDistribution::fixed("size", self.size)?;
        let partners = derangement(&hosts, &mut stream(env.seed, Domain::WorkloadShape, workload, 0));
        let summary = WorkloadSummary {
            mean_size: sizes.mean(),
            first: self.start,
            ..WorkloadSummary::new(Self::NAME, &hosts, &hosts)
        };
        let plan = LoopPlan {
            workload,
            outstanding: 1,
            think: Duration::ZERO,
            limit: Some(u64::from(self.repeat)),
            sizes,
            pattern: Pattern::Partner(partners),
            start: self.start,
            jitter: self.jitter,
        };
        Ok(Part::reactive(ClosedLoop::new(plan, &hosts, env)?, summary))
    }
}

/// Returns the hosts in an order in which none is in its place, all such orders equally likely.
pub(super) fn derangement(hosts: &[HostId], rng: &mut Rng) -> Vec<HostId> {
    let mut partners = hosts.to_vec();
    // Each try succeeds with a probability of about 1/e.
    loop {
        rng.shuffle(&mut partners);
        if partners.iter().zip(hosts).all(|(partner, host)| partner != host) {
            return partners;
        }
    }
}

const fn one() -> u32 {
    1
}
