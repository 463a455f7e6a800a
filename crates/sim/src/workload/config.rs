//! All workloads of a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Builder, Workload};
use super::{
    AllToAll, ClosedLoopConfig, Collective, FlowFile, GoalFile, Incast, Many, MixtureOfExperts, Permutation, Pipeline,
    Poisson, Verbs,
};
use crate::ConfigError;

/// Traffic of a run. Any combination; each key takes a table or an array of tables. Results number workloads from 0,
/// whatever their order in the file: poisson, incast, permutation, all-to-all, closed-loop, collective,
/// mixture-of-experts, pipeline, goal, flows, verbs; those of a kind in the order of the file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct WorkloadConfig {
    /// Random arrivals at a load.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub poisson: Many<Poisson>,
    /// Many to one.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub incast: Many<Incast>,
    /// Each host to one other.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub permutation: Many<Permutation>,
    /// Each host to all others.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub all_to_all: Many<AllToAll>,
    /// A number of flows outstanding per client.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub closed_loop: Many<ClosedLoopConfig>,
    /// Collective operations.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub collective: Many<Collective>,
    /// Training of a mixture of experts: all-to-all, layer by layer.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub mixture_of_experts: Many<MixtureOfExperts>,
    /// Pipeline-parallel training.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub pipeline: Many<Pipeline>,
    /// A GOAL schedule from a file.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub goal: Many<GoalFile>,
    /// Flows from a file.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub flows: Many<FlowFile>,
    /// RDMA verbs: Writes, Reads, Sends and Atomics over connected queue pairs.
    #[serde(skip_serializing_if = "Many::is_none")]
    pub verbs: Many<Verbs>,
}

impl WorkloadConfig {
    /// Adds the workloads of `other`, each behind those of its kind.
    pub fn extend(&mut self, other: Self) {
        let Self {
            poisson,
            incast,
            permutation,
            all_to_all,
            closed_loop,
            collective,
            mixture_of_experts,
            pipeline,
            goal,
            flows,
            verbs,
        } = other;
        self.poisson.0.extend(poisson.0);
        self.incast.0.extend(incast.0);
        self.permutation.0.extend(permutation.0);
        self.all_to_all.0.extend(all_to_all.0);
        self.closed_loop.0.extend(closed_loop.0);
        self.collective.0.extend(collective.0);
        self.mixture_of_experts.0.extend(mixture_of_experts.0);
        self.pipeline.0.extend(pipeline.0);
        self.goal.0.extend(goal.0);
        self.flows.0.extend(flows.0);
        self.verbs.0.extend(verbs.0);
    }
    /// Builds the flows of all workloads.
    ///
    /// # Errors
    /// No workload at all; values that make no flows, named by a key like "poisson.load" (with several of a kind,
    /// "poisson\[1\].load"); a load that some link on the way cannot carry.
    pub fn build(&self, env: &BuildEnv<'_>) -> Result<Workload, ConfigError> {
        let mut builder = Builder::new(env);
        builder.add(&self.poisson)?;
        builder.add(&self.incast)?;
        builder.add(&self.permutation)?;
        builder.add(&self.all_to_all)?;
        builder.add(&self.closed_loop)?;
        builder.add(&self.collective)?;
        builder.add(&self.mixture_of_experts)?;
        builder.add(&self.pipeline)?;
        builder.add(&self.goal)?;
        builder.add(&self.flows)?;
        builder.add(&self.verbs)?;
        builder.finish()
    }
}

/// Conversions of one workload into the traffic of a run that has no other.
macro_rules! from_kinds {
    ($($field:ident: $WorkloadKind:ty,)+) => {
        $(impl From<$WorkloadKind> for WorkloadConfig {
            fn from(one: $WorkloadKind) -> Self {
                Self { $field: Many::from(one), ..Self::default() }
            }
        })+
    };
}

from_kinds! {
    poisson: Poisson,
    incast: Incast,
    permutation: Permutation,
    all_to_all: AllToAll,
    closed_loop: ClosedLoopConfig,
    collective: Collective,
    mixture_of_experts: MixtureOfExperts,
    pipeline: Pipeline,
    goal: GoalFile,
    flows: FlowFile,
    verbs: Verbs,
}
