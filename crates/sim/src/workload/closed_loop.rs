//! Closed loops: flows that follow each other.

use schemars::JsonSchema;
use selvedge_units::{Domain, Duration, HostId, Instant, Rng};
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Part, WorkloadKind, WorkloadSummary};
use super::flow::stream;
use super::hosts::other_than;
use super::{Extent, FlowSpec, Hosts, Measure, SizeDistribution, Sizes};
use crate::ConfigError;

/// Closed loop in which each client keeps a number of flows to random servers outstanding: when one is acknowledged,
/// the next begins.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClosedLoopConfig {
    /// Hosts that send. Absent: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<Hosts>,
    /// Hosts that receive. Absent: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Hosts>,
    /// Number of flows that each client keeps outstanding, at least 1.
    #[serde(default = "one")]
    pub outstanding: u32,
    /// Sizes of flows.
    pub sizes: Sizes,
    /// Number of flows that each client starts, at least 1. Absent: without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows_per_client: Option<u64>,
    /// Time that a client waits from the end of a flow to the beginning of the next.
    #[serde(default)]
    pub think: Duration,
    /// Time at which the first flows begin.
    #[serde(default)]
    pub start: Duration,
    /// Largest random delay of each client's beginning, so that clients do not act in step.
    #[serde(default)]
    pub jitter: Duration,
}

/// Clients that start a flow when one of theirs has ended. The n-th flow of a client is the same whenever it begins,
/// and in whichever partition.
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    workload: u16,
    measure: Measure,
    outstanding: u32,
    think: Duration,
    /// Number of flows that each client starts; `None`: without limit.
    limit: Option<u64>,
    sizes: SizeDistribution,
    pattern: Pattern,
    clients: Vec<Client>,
    /// Index of each host in `clients`, or `u32::MAX`.
    client_of: Vec<u32>,
}

/// Destinations of a client's flows.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// Random ones of these hosts (ascending), other than the client.
    Random(Vec<HostId>),
    /// A fixed partner, indexed by client.
    Partner(Vec<HostId>),
    /// All other clients in turn, beginning with the next one.
    Rotation,
}

#[derive(Clone, Debug)]
struct Client {
    host: HostId,
    begin: Instant,
    started: u64,
    sizes: Rng,
    destinations: Rng,
}

/// Parameters of a [`ClosedLoop`] other than its clients.
pub(super) struct LoopPlan {
    pub(super) workload: u16,
    pub(super) outstanding: u32,
    pub(super) think: Duration,
    pub(super) limit: Option<u64>,
    pub(super) sizes: SizeDistribution,
    pub(super) pattern: Pattern,
    pub(super) start: Duration,
    pub(super) jitter: Duration,
}

impl ClosedLoop {
    pub(super) fn new(plan: LoopPlan, clients: &[HostId], env: &BuildEnv<'_>) -> Result<Self, ConfigError> {
        let at_once = u64::from(plan.outstanding).min(plan.limit.unwrap_or(u64::MAX)) * clients.len() as u64;
        if at_once > MAX_OPEN {
            let message = format!(
                "that makes {at_once} flows at once, but at most {MAX_OPEN} can be kept: let each of the {} hosts have at most {} outstanding",
                clients.len(),
                MAX_OPEN / clients.len() as u64
            );
            return Err(ConfigError::new("outstanding", message));
        }
        let workload = plan.workload;
        let mut client_of = vec![u32::MAX; env.graph.hosts.len()];
        (0..).zip(clients).for_each(|(n, host)| client_of[host.index()] = n);
        let clients = clients.iter().map(|&host| {
            let late = jitter(&mut stream(env.seed, Domain::StartJitter, workload, host.0), plan.jitter);
            Client {
                host,
                begin: (Instant::ZERO + plan.start).saturating_add(late),
                started: 0,
                sizes: stream(env.seed, Domain::FlowSize, workload, host.0),
                destinations: stream(env.seed, Domain::FlowDestination, workload, host.0),
            }
        });
        Ok(Self {
            workload,
            measure: env.measure,
            outstanding: plan.outstanding,
            think: plan.think,
            limit: plan.limit,
            sizes: plan.sizes,
            pattern: plan.pattern,
            clients: clients.collect(),
            client_of,
        })
    }
    /// Returns the number of the workload in the scenario; equals [`FlowSpec::workload`] of its flows.
    pub fn workload(&self) -> u16 {
        self.workload
    }
    /// Returns the hosts that send.
    pub fn clients(&self) -> impl ExactSizeIterator<Item = HostId> {
        self.clients.iter().map(|client| client.host)
    }
    /// Returns the number of flows that each client keeps outstanding.
    pub(crate) fn outstanding(&self) -> u64 {
        u64::from(self.outstanding)
    }
    /// Returns the time from the end of a flow to the beginning of the next.
    pub(crate) fn think(&self) -> Duration {
        self.think
    }
    /// Returns the number of flows that there will be.
    pub fn extent(&self) -> Extent {
        self.limit.map_or(Extent::Endless, |limit| Extent::Known(limit.saturating_mul(self.clients.len() as u64)))
    }
    /// Returns the flows with which `client` begins, all at its first instant. Must be called once per client.
    pub fn begin(&mut self, client: HostId) -> Vec<FlowSpec> {
        let Some(n) = self.place(client) else { return Vec::new() };
        (0..self.outstanding).map_while(|_| self.flow(n, self.clients[n].begin)).collect()
    }
    /// Returns the flow that follows one of `client`'s that ended at `now`; `None` when that was its last, or `client`
    /// is not a client.
    pub fn next(&mut self, client: HostId, now: Instant) -> Option<FlowSpec> {
        let n = self.place(client)?;
        self.flow(n, now.saturating_add(self.think))
    }

    fn place(&self, host: HostId) -> Option<usize> {
        self.client_of.get(host.index()).map(|&n| n as usize).filter(|&n| n < self.clients.len())
    }
    fn flow(&mut self, n: usize, start: Instant) -> Option<FlowSpec> {
        let count = self.clients.len();
        let client = &mut self.clients[n];
        if self.limit.is_some_and(|limit| client.started >= limit) {
            return None;
        }
        let size = self.sizes.sample(&mut client.sizes);
        let (src, started) = (client.host, client.started);
        client.started += 1;
        let dst = match &self.pattern {
            Pattern::Random(servers) => other_than(src, servers, &mut client.destinations),
            Pattern::Partner(partners) => partners[n],
            Pattern::Rotation => self.clients[(n + 1 + (started % (count as u64 - 1)) as usize) % count].host,
        };
        Some(FlowSpec {
            id: started * count as u64 + n as u64,
            workload: self.workload,
            group: 0,
            src,
            dst,
            size,
            priority: None,
            start,
            measured: self.measure.counts(start),
            on_sent: None,
            on_received: None,
        })
    }
}

impl WorkloadKind for ClosedLoopConfig {
    const NAME: &'static str = "closed-loop";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let clients = Hosts::resolve(self.clients.as_ref(), env.graph).map_err(|error| error.within("clients"))?;
        let mut servers = Hosts::resolve(self.servers.as_ref(), env.graph).map_err(|error| error.within("servers"))?;
        servers.sort();
        if let ([server], Some(_)) = (servers.as_slice(), clients.iter().find(|client| servers.contains(client))) {
            let name = &env.graph.hosts[server.index()].name;
            let message = format!("\"{name}\" is the only server and a client too: it has nobody to send to");
            return Err(ConfigError::new("servers", message));
        }
        let sizes = self.sizes.build(env.library).map_err(|error| error.within("sizes"))?;
        if self.outstanding == 0 {
            return Err(ConfigError::new("outstanding", "found 0, expected at least 1"));
        }
        if self.flows_per_client == Some(0) {
            return Err(ConfigError::new("flows-per-client", "found 0, expected at least 1"));
        }
        let mean_size = sizes.mean();
        let summary = WorkloadSummary { first: self.start, ..WorkloadSummary::new(Self::NAME, &clients, &servers) };
        let plan = LoopPlan {
            workload,
            outstanding: self.outstanding,
            think: self.think,
            limit: self.flows_per_client,
            sizes,
            pattern: Pattern::Random(servers),
            start: self.start,
            jitter: self.jitter,
        };
        Ok(Part::reactive(ClosedLoop::new(plan, &clients, env)?, WorkloadSummary { mean_size, ..summary }))
    }
}

/// Returns a uniform delay from zero up to and including `most`.
pub(super) fn jitter(rng: &mut Rng, most: Duration) -> Duration {
    Duration::from_ps(rng.below(most.as_ps().saturating_add(1)))
}

fn one() -> u32 {
    1
}

/// Largest number of flows of closed loops that may be under way; each takes about a kilobyte.
pub(super) const MAX_OPEN: u64 = 1 << 24;
