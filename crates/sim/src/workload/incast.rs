//! Incasts: many hosts send to one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use selvedge_telemetry::GroupParts;
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Rng};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Part, Source, WorkloadKind, WorkloadSummary};
use super::closed_loop::{MAX_OPEN, jitter};
use super::flow::stream;
use super::flow_list::ListedFlows;
use super::triggers::Repetitions;
use super::{Extent, FlowSpec, Generator, HostRef, Hosts};
use crate::ConfigError;
use crate::topology::Graph;

/// Incast: one receiver fetches an amount of data that is striped over many senders (IRN section 4.4.3), once or
/// repeatedly. A repetition is a group of flows ([`FlowSpec::group`]).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Incast {
    /// All data of a repetition, striped evenly over all connections; at least a byte for each.
    pub size: Bytes,
    /// Senders: a number of hosts, drawn anew for each repetition, or a list of hosts.
    pub senders: Senders,
    /// Connections of each sender, at least 1, with a flow each, which begin together.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub connections: u32,
    /// Receiver. Absent: drawn anew for each repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<HostRef>,
    /// Time at which the first repetition begins.
    #[serde(default)]
    pub start: Duration,
    /// Time from each sender's start to the next one's.
    #[serde(default)]
    pub stagger: Duration,
    /// Largest random delay of each sender's beginning, so that senders do not act in step.
    #[serde(default)]
    pub jitter: Duration,
    /// Number of repetitions, at least 1.
    #[serde(default = "one")]
    pub repeat: u32,
    /// Time from the beginning of each repetition to the next one's. Absent: each begins when the one before it has
    /// been received completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
}

/// Senders of an [`Incast`]: a number of random hosts, or a list of hosts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Senders {
    /// Number of hosts, drawn at random.
    Count(u32),
    /// List of hosts.
    Hosts(Hosts),
}

impl Incast {
    /// Returns an incast of `size` bytes in all from `senders` to a random receiver, once. Each sender has one flow,
    /// and all begin together.
    pub const fn of(size: Bytes, senders: Senders) -> Self {
        Self {
            size,
            senders,
            connections: one(),
            receiver: None,
            start: Duration::ZERO,
            stagger: Duration::ZERO,
            jitter: Duration::ZERO,
            repeat: one(),
            interval: None,
        }
    }
}

impl WorkloadKind for Incast {
    const NAME: &'static str = "incast";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let waves = self.waves(workload, env)?;
        let (count, repeat) = (waves.count, self.repeat);
        let flows = u64::from(repeat) * count as u64;
        let mut senders = waves.fixed_senders.clone().unwrap_or_else(|| waves.others.clone());
        senders.retain(|&host| waves.fixed_receiver != Some(host));
        let receivers = waves.fixed_receiver.map_or(waves.others.clone(), |receiver| vec![receiver]);
        let summary = WorkloadSummary {
            mean_size: self.size.get() as f64 / count as f64,
            extent: Extent::Known(flows),
            group: Some(GroupParts::Flows(count as u64)),
            first: self.start,
            duration: self.interval.map(|interval| self.start + interval * u64::from(repeat)),
            ..WorkloadSummary::new(Self::NAME, &senders, &receivers)
        };
        let source = match self.interval {
            Some(interval) => Source::Stream(Box::new(TimedWaves::new(waves, self.start, interval, repeat))),
            None if repeat == 1 => Source::Stream(Box::new(TimedWaves::new(waves, self.start, Duration::ZERO, 1))),
            None => {
                let start = self.start;
                Source::Triggered(Box::new(move |triggers| {
                    // A repetition begins when all flows of the previous one are received.
                    let first = waves.wave(0).into_iter();
                    let make = Arc::new(move |wave| waves.wave(wave));
                    let trigger = triggers.repeat(Repetitions { workload, repeat, count: count as u32, make });
                    let begin = first.map(|(delay, flow)| FlowSpec {
                        start: Instant::ZERO + start + delay,
                        on_received: Some(trigger),
                        ..flow
                    });
                    Box::new(ListedFlows::new(begin.collect()))
                }))
            }
        };
        Ok(Part { source, summary, offers: Vec::new() })
    }
}

impl Incast {
    fn waves(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Waves, ConfigError> {
        let receiver = self.receiver.as_ref().map(|receiver| receiver.resolve(env.graph)).transpose();
        let receiver = receiver.map_err(|error| error.within("receiver"))?;
        let (machines, senders) = self.resolve_senders(env.graph, receiver)?;
        let count = self.count_flows(machines)?;
        self.check_times(machines as u64)?;
        Ok(Waves {
            workload,
            seed: env.seed,
            others: others(env.graph.host_count(), senders.as_deref().unwrap_or_default()),
            size: self.size,
            count,
            connections: self.connections,
            fixed_senders: senders,
            fixed_receiver: receiver,
            stagger: self.stagger,
            jitter: self.jitter,
        })
    }

    /// Returns the number of senders, and the senders themselves if they are always the same.
    fn resolve_senders(
        &self,
        graph: &Graph,
        receiver: Option<HostId>,
    ) -> Result<(usize, Option<Vec<HostId>>), ConfigError> {
        let hosts = graph.host_count();
        match &self.senders {
            Senders::Count(0) => Err(ConfigError::new("senders", "found 0, expected at least 1")),
            Senders::Count(count) if *count >= hosts => {
                let message =
                    format!("found {count}, but of {hosts} hosts at most {} can send to another one", hosts - 1);
                Err(ConfigError::new("senders", message))
            }
            Senders::Count(count) => Ok((*count as usize, None)),
            Senders::Hosts(names) => {
                let senders = Hosts::resolve(Some(names), graph).map_err(|error| error.within("senders"))?;
                if let Some(own) = receiver.filter(|receiver| senders.contains(receiver)) {
                    let name = &graph.hosts[own.index()].name;
                    return Err(ConfigError::new("senders", format!("\"{name}\" is the receiver: leave it out")));
                }
                if senders.len() as u32 == hosts {
                    return Err(ConfigError::new("senders", "all hosts send, hence none is left to receive"));
                }
                Ok((senders.len(), Some(senders)))
            }
        }
    }

    /// Returns the number of flows of a repetition with `machines` senders, after checks.
    ///
    /// # Errors
    /// A count or size with which there can be no incast.
    fn count_flows(&self, machines: usize) -> Result<usize, ConfigError> {
        if self.connections == 0 {
            return Err(ConfigError::new("connections", "found 0, expected at least 1"));
        }
        let count = machines * self.connections as usize;
        if count as u64 > MAX_OPEN {
            let message = format!(
                "that makes {count} flows at once, but at most {MAX_OPEN} can be kept: let each of the {machines} senders \
                 have at most {}",
                MAX_OPEN / machines as u64
            );
            return Err(ConfigError::new("connections", message));
        }
        if self.size < Bytes::new(count as u64) {
            let message =
                format!("{} cannot be striped over {count} connections: each carries a byte at least", self.size);
            return Err(ConfigError::new("size", message));
        }
        Ok(count)
    }

    /// Checks when the repetitions with `machines` senders begin.
    fn check_times(&self, machines: u64) -> Result<(), ConfigError> {
        if self.repeat == 0 {
            return Err(ConfigError::new("repeat", "found 0, expected at least 1"));
        }
        let end = u128::from(self.interval.unwrap_or_default().as_ps()) * u128::from(self.repeat)
            + u128::from(self.stagger.as_ps()) * u128::from(machines)
            + u128::from(self.start.as_ps())
            + u128::from(self.jitter.as_ps());
        if end > u128::from(Instant::HORIZON.as_ps()) {
            return Err(ConfigError::new(
                "",
                "the last flow would start later than 53 days, the end of simulated time",
            ));
        }
        let spread = self.stagger * (machines - 1) + self.jitter;
        if let Some(interval) = self.interval.filter(|&interval| interval < spread || interval.is_zero()) {
            let message = if interval.is_zero() {
                "repetitions would begin all at once: give a time above zero, or none, and each begins when the one \
                 before is done"
                    .to_owned()
            } else {
                format!(
                    "{interval} is too short: the senders of one repetition take {spread} to begin; choose at least \
                     that, or write several incasts"
                )
            };
            return Err(ConfigError::new("interval", message));
        }
        Ok(())
    }
}

/// Generator of any repetition of an incast.
#[derive(Clone)]
struct Waves {
    workload: u16,
    seed: u64,
    /// Hosts among which receivers, and senders that are not fixed, are drawn.
    others: Vec<HostId>,
    size: Bytes,
    /// Number of flows of a repetition.
    count: usize,
    connections: u32,
    fixed_senders: Option<Vec<HostId>>,
    fixed_receiver: Option<HostId>,
    stagger: Duration,
    jitter: Duration,
}

impl Waves {
    /// Returns the flows of one repetition in the order of their senders, with their delay from its beginning.
    fn wave(&self, wave: u32) -> Vec<(Duration, FlowSpec)> {
        let (senders, receiver) = self.cast(wave);
        let mut late = stream(self.seed, Domain::StartJitter, self.workload, wave);
        let (stripe, rest) = (self.size.get() / self.count as u64, self.size.get() % self.count as u64);
        let begins = (0..).zip(senders).map(|(n, src)| (src, self.stagger * n + jitter(&mut late, self.jitter)));
        let connections = begins.flat_map(|begin| (0..self.connections).map(move |_| begin));
        let flows = (0..).zip(connections).map(|(n, (src, delay))| {
            let flow = FlowSpec {
                id: u64::from(wave) * self.count as u64 + n,
                workload: self.workload,
                group: wave,
                src,
                dst: receiver,
                size: Bytes::new(stripe + u64::from(n < rest)),
                priority: None,
                start: Instant::ZERO,
                measured: true,
                on_sent: None,
                on_received: None,
            };
            (delay, flow)
        });
        flows.collect()
    }
    /// Returns the senders and the receiver of a repetition.
    fn cast(&self, wave: u32) -> (Vec<HostId>, HostId) {
        let mut rng = stream(self.seed, Domain::WorkloadShape, self.workload, wave);
        let draw = |rng: &mut Rng| self.others[rng.below(self.others.len() as u64) as usize];
        let receiver = self.fixed_receiver.unwrap_or_else(|| draw(&mut rng));
        let senders = self.fixed_senders.clone().unwrap_or_else(|| {
            let mut senders = self.others.clone();
            senders.retain(|&host| host != receiver);
            // These are the first steps of a shuffle.
            let wanted = self.count / self.connections as usize;
            for n in 0..wanted {
                let choice = n + rng.below((senders.len() - n) as u64) as usize;
                senders.swap(n, choice);
            }
            senders.truncate(wanted);
            senders
        });
        (senders, receiver)
    }
}

/// Returns all `hosts` hosts but the `given`.
fn others(hosts: u32, given: &[HostId]) -> Vec<HostId> {
    let mut free = vec![true; hosts as usize];
    given.iter().for_each(|host| free[host.index()] = false);
    (0..hosts).map(HostId).filter(|host| free[host.index()]).collect()
}

/// Generator of repetitions at fixed times; holds one repetition at a time.
#[derive(Clone)]
struct TimedWaves {
    waves: Waves,
    begin: Instant,
    interval: Duration,
    /// Number of the next repetition.
    next: u32,
    repeat: u32,
    current: ListedFlows,
}

impl TimedWaves {
    fn new(waves: Waves, start: Duration, interval: Duration, repeat: u32) -> Self {
        let current = ListedFlows::new(Vec::new());
        Self { waves, begin: Instant::ZERO + start, interval, next: 0, repeat, current }
    }
}

impl Generator for TimedWaves {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        if let Some(flow) = self.current.next_flow() {
            return Some(flow);
        }
        if self.next == self.repeat {
            return None;
        }
        let begin = self.begin + self.interval * u64::from(self.next);
        let wave = self.waves.wave(self.next).into_iter();
        self.current = ListedFlows::new(wave.map(|(delay, flow)| FlowSpec { start: begin + delay, ..flow }).collect());
        self.next += 1;
        self.current.next_flow()
    }
    fn extent(&self) -> Extent {
        let later = u64::from(self.repeat - self.next) * self.waves.count as u64;
        self.current.extent().plus(Extent::Known(later))
    }
    fn boxed_clone(&self) -> Box<dyn Generator> {
        Box::new(self.clone())
    }
}

impl<'de> Deserialize<'de> for Senders {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Senders;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("senders: a number of hosts, or an array of hosts")
            }
            fn visit_u64<E: Error>(self, count: u64) -> Result<Senders, E> {
                u32::try_from(count)
                    .map(Senders::Count)
                    .map_err(|_| E::custom(format!("{count} senders are more than there are hosts")))
            }
            fn visit_i64<E: Error>(self, count: i64) -> Result<Senders, E> {
                let count = u64::try_from(count);
                count
                    .map_err(|_| E::custom("found a negative number of senders"))
                    .and_then(|count| self.visit_u64(count))
            }
            fn visit_str<E: Error>(self, name: &str) -> Result<Senders, E> {
                Ok(Senders::Hosts(Hosts(vec![HostRef::Name(name.to_owned())])))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Senders, A::Error> {
                Hosts::deserialize(SeqAccessDeserializer::new(seq)).map(Senders::Hosts)
            }
        }
        from.deserialize_any(Either)
    }
}
impl Serialize for Senders {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Count(count) => to.serialize_u32(*count),
            Self::Hosts(hosts) => hosts.serialize(to),
        }
    }
}
impl JsonSchema for Senders {
    fn schema_name() -> Cow<'static, str> {
        "Senders".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let hosts = generator.subschema_for::<Hosts>();
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, hosts] })
    }
}

const fn one() -> u32 {
    1
}
fn is_one(count: &u32) -> bool {
    *count == 1
}
