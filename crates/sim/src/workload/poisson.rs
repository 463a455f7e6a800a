//! Flows that arrive at random.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use schemars::JsonSchema;
use selvedge_units::{Domain, Duration, HostId, Instant, Rng};
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Offer, Part, Source, WorkloadKind, WorkloadSummary};
use super::flow::stream;
use super::hosts::other_than;
use super::{Extent, FlowSpec, Fraction, Generator, Hosts, SizeDistribution, Sizes};
use crate::ConfigError;
use crate::topology::Demand;

/// Poisson arrivals: every host starts flows at exponentially distributed intervals, each to a random other host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Poisson {
    /// Payload that each sender offers, as a fraction of its link's rate; headers come on top.
    pub load: Fraction,
    /// Sizes of flows.
    pub sizes: Sizes,
    /// Hosts that take part. Absent: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Pairs of senders and receivers.
    #[serde(default)]
    pub pairs: Pairs,
    /// Number of flows, at least 1. Absent: without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Time at which arrivals begin.
    #[serde(default)]
    pub start: Duration,
    /// Time at which arrivals end. Absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
}

/// Pairs of senders and receivers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pairs {
    /// Every host to any other, chosen anew for each flow.
    #[default]
    Uniform,
    /// The first half of the hosts to the second half (MELO section 4), chosen anew for each flow.
    OtherHalf,
}

impl Poisson {
    /// Returns arrivals without an end, from the beginning of the run on, between all hosts.
    pub const fn of(load: Fraction, sizes: Sizes) -> Self {
        Self { load, sizes, hosts: None, pairs: Pairs::Uniform, flows: None, start: Duration::ZERO, until: None }
    }
}

impl WorkloadKind for Poisson {
    const NAME: &'static str = "poisson";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let (senders, receivers) = self.ends(env)?;
        let sizes = self.sizes.build(env.library).map_err(|error| error.within("sizes"))?;
        if self.flows == Some(0) {
            return Err(ConfigError::new("flows", "found 0, expected at least 1"));
        }
        if self.until.is_some_and(|until| until <= self.start) {
            return Err(ConfigError::new("until", format!("nothing arrives before {}: it must be later", self.start)));
        }
        let load = self.load.get();
        let rate = |host: HostId| env.graph.links[env.routes.ports().of_host(host).link as usize].rate;
        let flows_per_second: Vec<f64> =
            senders.iter().map(|&host| load * rate(host).as_bps() as f64 / 8.0 / sizes.mean()).collect();
        let total: f64 = flows_per_second.iter().sum();

        let extent = match (self.flows, self.until) {
            (Some(flows), None) => Extent::Known(flows),
            (_, Some(_)) => Extent::Bounded,
            (None, None) => Extent::Endless,
        };
        let span = self.until.map(|until| until - self.start);
        let by_count = self.flows.or(env.stop_flows).map(|flows| seconds(flows as f64 / total));
        let summary = WorkloadSummary {
            load: Some(load),
            mean_size: sizes.mean(),
            flows_per_second: Some(total),
            extent,
            first: self.start,
            last: self.until,
            duration: by_count.into_iter().chain(span).min().map(|span| self.start.saturating_add(span)),
            ..WorkloadSummary::new(Self::NAME, &senders, &receivers)
        };
        let demand = Demand { from: senders.clone(), to: receivers.clone(), load };
        let offers = vec![Offer { demand, expansion: sizes.expansion(env.framing) }];
        let sources = senders.iter().zip(flows_per_second).map(|(&host, per_second)| Arrivals {
            host,
            gap_ps: PS_PER_SECOND / per_second,
            gaps: stream(env.seed, Domain::FlowArrival, workload, host.0),
            sizes: stream(env.seed, Domain::FlowSize, workload, host.0),
            destinations: stream(env.seed, Domain::FlowDestination, workload, host.0),
        });
        let end = self.until.map_or(Instant::NEVER, |until| Instant::ZERO + until);
        let generator =
            PoissonFlows::new(workload, sources.collect(), receivers, sizes, self.start, end, extent, self.flows);
        Ok(Part { source: Source::Stream(Box::new(generator)), summary, offers })
    }
}

impl Poisson {
    /// Returns the senders and the receivers; receivers in ascending order.
    fn ends(&self, env: &BuildEnv<'_>) -> Result<(Vec<HostId>, Vec<HostId>), ConfigError> {
        let hosts = Hosts::resolve(self.hosts.as_ref(), env.graph).map_err(|error| error.within("hosts"))?;
        if hosts.len() < 2 {
            return Err(ConfigError::new("hosts", "flows need at least two hosts, found one"));
        }
        let (senders, receivers) = match self.pairs {
            Pairs::Uniform => (hosts.clone(), hosts),
            Pairs::OtherHalf => {
                let (first, second) = hosts.split_at(hosts.len() / 2);
                (first.to_vec(), second.to_vec())
            }
        };
        let mut receivers = receivers;
        receivers.sort();
        Ok((senders, receivers))
    }
}

/// Arrivals of all hosts in order of time; per host, one arrival waits in a heap.
#[derive(Clone)]
struct PoissonFlows {
    workload: u16,
    sources: Vec<Arrivals>,
    /// Receivers, in ascending order.
    receivers: Vec<HostId>,
    sizes: SizeDistribution,
    end: Instant,
    extent: Extent,
    /// Number of flows that may still come.
    left: u64,
    next_id: u64,
    /// Time of each source's next flow; ties by the host's number.
    next: BinaryHeap<Reverse<(Instant, HostId, u32)>>,
}

/// Random streams of one host.
#[derive(Clone)]
struct Arrivals {
    host: HostId,
    gap_ps: f64,
    gaps: Rng,
    sizes: Rng,
    destinations: Rng,
}

impl PoissonFlows {
    #[expect(clippy::too_many_arguments, reason = "called once, with what the configuration says")]
    fn new(
        workload: u16,
        mut sources: Vec<Arrivals>,
        receivers: Vec<HostId>,
        sizes: SizeDistribution,
        start: Duration,
        end: Instant,
        extent: Extent,
        flows: Option<u64>,
    ) -> Self {
        let start = Instant::ZERO + start;
        let next = (0..).zip(&mut sources).map(|(n, source)| Reverse((source.after(start), source.host, n))).collect();
        let left = flows.unwrap_or(u64::MAX);
        Self { workload, sources, receivers, sizes, end, extent, left, next_id: 0, next }
    }
}

impl Generator for PoissonFlows {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let mut first = self.next.peek_mut()?;
        let Reverse((start, src, n)) = *first;
        if self.left == 0 || start >= self.end {
            return None;
        }
        let source = &mut self.sources[n as usize];
        *first = Reverse((source.after(start), src, n));
        let flow = FlowSpec {
            id: self.next_id,
            workload: self.workload,
            group: 0,
            src,
            dst: other_than(src, &self.receivers, &mut source.destinations),
            size: self.sizes.sample(&mut source.sizes),
            priority: None,
            start,
            measured: true,
            on_sent: None,
            on_received: None,
        };
        self.next_id += 1;
        self.left -= 1;
        Some(flow)
    }
    fn extent(&self) -> Extent {
        match self.extent {
            Extent::Known(_) => Extent::Known(self.left),
            other => other,
        }
    }
    fn boxed_clone(&self) -> Box<dyn Generator> {
        Box::new(self.clone())
    }
}

impl Arrivals {
    /// Returns the time of the flow after one at `previous`.
    fn after(&mut self, previous: Instant) -> Instant {
        exponential(&mut self.gaps, self.gap_ps, previous)
    }
}

/// Returns `previous` plus an exponentially distributed time of mean `mean_ps` picoseconds.
pub(super) fn exponential(rng: &mut Rng, mean_ps: f64, previous: Instant) -> Instant {
    // Uniform in (0, 1], so that the logarithm is finite; libm's is the same on every platform.
    let uniform = ((rng.next_u64() >> 11) + 1) as f64 / 9_007_199_254_740_992.0;
    let gap = -libm::log(uniform) * mean_ps;
    previous.saturating_add(Duration::from_ps(gap.round() as u64))
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_ps((seconds * PS_PER_SECOND) as u64)
}

const PS_PER_SECOND: f64 = 1e12;
