//! Traffic: which host sends how much to which other host, and when.
//!
//! A [`WorkloadConfig`] builds a [`Workload`], in which a flow can begin in four ways:
//! - at a time of its own ([`Merged`], a stream in ascending order of start: Poisson arrivals, flow lists, timed
//!   incasts);
//! - when another flow of the same host has finished ([`ClosedLoop`]: permutations, all-to-all, requests with a number
//!   outstanding; [`Posting`]: work requests on queue pairs);
//! - when its host's part of a schedule reaches it ([`schedule::Executor`]: collectives, training, GOAL files);
//! - when any other flows have finished ([`Triggers`]: flow lists, incasts one after another).
//!
//! All randomness comes from streams by workload and host (or repetition); hence the flows are the same in every series
//! of a plan, and in every partition.

mod all_to_all;
mod build;
mod cdf;
mod closed_loop;
mod collective;
mod config;
mod flow;
mod flow_list;
mod fraction;
mod goal;
mod hosts;
mod incast;
mod many;
mod measure;
mod merged;
mod permutation;
mod poisson;
pub mod schedule;
mod sizes;
mod triggers;
mod verbs;

pub use all_to_all::AllToAll;
pub use build::{BuildEnv, Workload, WorkloadSummary};
pub use cdf::{Cdf, LARGEST_FLOW};
pub use closed_loop::{ClosedLoop, ClosedLoopConfig};
pub use collective::{Collective, MixtureOfExperts, Operation, Order, Pipeline, Placement, Team};
pub use config::WorkloadConfig;
pub use flow::{Extent, FlowSpec, Generator};
pub use flow_list::{FlowFile, FlowList, ListedFlow, Priorities, Start, StartUnit, TriggerKind};
pub use fraction::Fraction;
pub use goal::GoalFile;
pub use hosts::{HostRef, Hosts};
pub use incast::{Incast, Senders};
pub use many::Many;
pub use measure::{Measure, Window};
pub use merged::Merged;
pub use permutation::Permutation;
pub use poisson::{Pairs, Poisson};
pub use sizes::{SizeDistribution, Sizes};
pub use triggers::Triggers;
pub use verbs::{Connection, Operations, Partners, Posting, PostingLimits, Verb, Verbs};

#[cfg(test)]
mod tests;
