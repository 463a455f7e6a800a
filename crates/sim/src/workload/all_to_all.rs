//! All-to-all traffic.

use schemars::JsonSchema;
use selvedge_telemetry::GroupParts;
use selvedge_units::{Bytes, Duration};
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Part, WorkloadKind, WorkloadSummary};
use super::closed_loop::{LoopPlan, Pattern};
use super::{ClosedLoop, Hosts, SizeDistribution};
use crate::ConfigError;

/// Traffic in which each host sends one flow to every other: first to the next host, then to the one after that, and
/// round again, so that receivers are used evenly.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AllToAll {
    /// Size of each flow; above zero.
    pub size: Bytes,
    /// Number of flows that each host keeps outstanding, at least 1. Absent: all at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
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

impl AllToAll {
    /// Returns an all-to-all of all hosts, which begin together, with all flows at once, each of `size`.
    pub const fn of(size: Bytes) -> Self {
        Self { size, outstanding: None, hosts: None, start: Duration::ZERO, jitter: Duration::ZERO }
    }
}

impl WorkloadKind for AllToAll {
    const NAME: &'static str = "all-to-all";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let hosts = Hosts::resolve(self.hosts.as_ref(), env.graph).map_err(|error| error.within("hosts"))?;
        if hosts.len() < 2 {
            return Err(ConfigError::new("hosts", "all-to-all needs at least two hosts, found one"));
        }
        if self.outstanding == Some(0) {
            return Err(ConfigError::new("outstanding", "found 0, expected at least 1"));
        }
        let others = hosts.len() as u32 - 1;
        let sizes = SizeDistribution::fixed("size", self.size)?;
        let group = Some(GroupParts::Flows(hosts.len() as u64 * u64::from(others)));
        let summary = WorkloadSummary {
            mean_size: sizes.mean(),
            group,
            first: self.start,
            ..WorkloadSummary::new(Self::NAME, &hosts, &hosts)
        };
        let plan = LoopPlan {
            workload,
            outstanding: self.outstanding.unwrap_or(others),
            think: Duration::ZERO,
            limit: Some(u64::from(others)),
            sizes,
            pattern: Pattern::Rotation,
            start: self.start,
            jitter: self.jitter,
        };
        Ok(Part::reactive(ClosedLoop::new(plan, &hosts, env)?, summary))
    }
}
