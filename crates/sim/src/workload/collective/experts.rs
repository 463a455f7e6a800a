//! Mixtures of experts: all-to-all to the experts and back, layer by layer.

use schemars::JsonSchema;
use selvedge_units::{Bytes, Domain, Duration, Rng};
use serde::{Deserialize, Serialize};

use super::{Team, exchange, one};
use crate::ConfigError;
use crate::workload::build::{BuildEnv, Part, WorkloadKind};
use crate::workload::flow::stream;
use crate::workload::schedule::{Rank, Step};

/// Layers with one expert per host (Shazeer et al. 2017; GShard, 2020): each host computes, sends its data to the
/// experts that its tokens chose (dispatch), the experts compute, and send the results back (combine). A repetition of
/// a group is a job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct MixtureOfExperts {
    /// Bytes that each host sends to all experts of a layer together, its own among them; at least a byte per host of a
    /// group.
    pub size: Bytes,
    /// Skew of the choice of experts: the n-th most popular one is chosen in proportion to n^-skew (Zipf), with another
    /// order in each layer. 0: all equally often. At least 0.
    #[serde(default)]
    pub skew: f64,
    /// Layers in a repetition, at least 1.
    #[serde(default = "one")]
    pub layers: u32,
    /// Time that each host computes before each dispatch.
    #[serde(default)]
    pub compute: Duration,
    /// Time that each expert computes when all of its input has arrived.
    #[serde(default)]
    pub expert_compute: Duration,
    /// Hosts that take part.
    #[serde(default)]
    pub team: Team,
    /// Number of repetitions, at least 1. A host begins the next as soon as it is done itself.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Time at which the first repetition begins.
    #[serde(default)]
    pub start: Duration,
}

impl WorkloadKind for MixtureOfExperts {
    const NAME: &'static str = "mixture-of-experts";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let groups = self.team.groups(workload, env)?;
        let n = groups.size();
        groups.check_parts(self.size)?;
        if !(0.0..=10.0).contains(&self.skew) {
            return Err(ConfigError::new("skew", format!("found {}, expected a number from 0 to 10", self.skew)));
        }
        if self.layers == 0 {
            return Err(ConfigError::new("layers", "found 0, expected at least 1"));
        }
        groups.limit(
            4 * u64::from(n) * u64::from(self.layers),
            "give fewer \"layers\", or a smaller \"team.group-size\"",
        )?;
        groups.build_part(Self::NAME, workload, env, self.start, self.repeat, |group, ranks| {
            let mut rng = stream(env.seed, Domain::WorkloadShape, workload, group);
            let mut before: Vec<Vec<u32>> = vec![Vec::new(); ranks.len()];
            for layer in 0..self.layers {
                let sizes = self.popularity(n, &mut rng);
                let dispatched = |_, to: u32| sizes[to as usize];
                let combined = |from: u32, _| sizes[from as usize];
                let ready = compute(ranks, self.compute, &before);
                let inputs = exchange::all_to_all(ranks, 2 * layer, n, dispatched, &ready);
                let outputs = compute(ranks, self.expert_compute, &inputs);
                before = exchange::all_to_all(ranks, 2 * layer + 1, n, combined, &outputs);
            }
        })
    }
}

impl MixtureOfExperts {
    /// Returns the bytes that a host sends to each expert of a layer.
    fn popularity(&self, n: u32, rng: &mut Rng) -> Vec<Bytes> {
        let weights: Vec<f64> = (1..=n).map(|place| f64::from(place).powf(-self.skew)).collect();
        let all: f64 = weights.iter().sum();
        let mut order: Vec<usize> = (0..n as usize).collect();
        rng.shuffle(&mut order);
        let size = |&place: &usize| Bytes::new((self.size.get() as f64 * weights[place] / all).round() as u64);
        order.iter().map(size).collect()
    }
}

/// Lets every rank compute for `time` once its steps `after` have ended; returns the steps to wait for then.
fn compute(ranks: &mut [Rank], time: Duration, after: &[Vec<u32>]) -> Vec<Vec<u32>> {
    if time.is_zero() {
        return after.to_vec();
    }
    let step = Step::Compute { time, cpu: 0 };
    ranks.iter_mut().zip(after).map(|(rank, after)| vec![rank.step(step, after)]).collect()
}
