//! Applications that use RDMA verbs: mixes of Writes, Reads, Sends and Atomics over connected queue pairs.
//!
//! ```text
//!   Verbs (what is written) ──> connections (who with whom) ──> Posting: the next message of each connection
//!                               mix (which operation, how large)     closed loop, or at random (arrivals)
//! ```
//!
//! Each operation counts as a workload of its own: the n-th of a mix has the number of the first plus n, so that
//! results are split by operation. The n-th message of a connection is the same whenever it is posted, and in every
//! series.

mod arrivals;
mod connections;
mod messages;
mod mix;
mod posting;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use selvedge_units::{Duration, HostId, Setting};
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Part, Source, WorkloadKind, WorkloadSummary};
use super::{Extent, Fraction, Generator, Hosts, Sizes};
use crate::ConfigError;

use arrivals::Arrivals;
pub use connections::{Connection, Partners};
use messages::Messages;
pub use mix::{Operations, Verb};
pub use posting::{Posting, PostingLimits};

/// Applications that use RDMA verbs over queue pairs that are connected from the start. Each queue pair has
/// `queue-depth` requests outstanding, or requests are posted at random if a load is given. Messages are counted at the
/// requester: from the application's call to its completion.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Verbs {
    /// Operations: weights, such as { write = 3, read = 1 }, or in turn, such as ["write", "send"]. There are `write`,
    /// `write-immediate` (completes a receive request, too), `read`, `send`, `send-immediate` (with four bytes of
    /// immediate data), and on words of 8 bytes `fetch-add` and `compare-swap`.
    #[serde(default)]
    pub operations: Operations,
    /// Sizes of messages; Atomics have 8 bytes.
    pub sizes: Sizes,
    /// Hosts that have connections. The requester is named first.
    #[serde(default)]
    pub pairs: Partners,
    /// Hosts that take part, where `pairs` does not name them. Absent: all hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// Queue pairs of each pair of hosts, at least 1.
    #[serde(default = "one")]
    pub queue_pairs: u32,
    /// Requests that each queue pair may have outstanding, 1 to 32768; without a load it always has as many.
    #[serde(default = "usual_depth")]
    pub queue_depth: u32,
    /// Number of receive requests that wait at each queue pair, 1 to 32768: with fewer than the depth, Sends may find
    /// none and are asked to wait. Absent: as many as the depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receives: Option<u32>,
    /// Payload that each requester moves, in either direction, as a fraction of its link's rate: then messages come at
    /// exponentially distributed intervals, and wait where a queue is full. Absent: each message follows one that is
    /// done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Fraction>,
    /// Number of messages of each queue pair, at least 1. Absent: without limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Number of Reads and Atomics that a queue pair may have under way, 1 to 128.
    #[serde(default = "usual_reads")]
    pub reads: u8,
    /// Time that a queue pair waits for an answer, rounded up to 4.096 us times a power of two. With go-back-N it then
    /// sends again; "auto" is the series' retransmission timeout and what its link takes for all that the queue holds
    /// in the mean. Other schemes have retransmission timeouts of their own, and the queue pair gives up by this one;
    /// "auto" is 67 ms. "off": for ever.
    #[serde(default = "auto")]
    pub timeout: Setting<Duration>,
    /// Number of retries after timeouts before a queue pair fails, 0 to 7.
    #[serde(default = "usual_retries")]
    pub retries: u8,
    /// End-to-end credits (InfiniBand's; IRN, section 5.4): acknowledgements advertise how many receive requests wait,
    /// and Sends and Writes with immediates wait for one, so that no receiver is found not ready. Default: false, as in
    /// NICs for Ethernet: a receiver without a receive request asks to wait (an RNR NAK).
    #[serde(default)]
    pub end_to_end_credits: bool,
    /// Time that an application waits from the end of a message to the next; not with a load.
    #[serde(default)]
    pub think: Duration,
    /// Time at which the first messages are posted.
    #[serde(default)]
    pub start: Duration,
    /// Largest random delay of each connection's beginning, so that connections do not act in step; not with a load.
    #[serde(default)]
    pub jitter: Duration,
}

impl Verbs {
    /// Largest number of requests in a queue, a limit of `nic::verbs`.
    const MOST_REQUESTS: u32 = 1 << 15;
    /// Largest number of queue pairs of a NIC, a limit of `nic::verbs`.
    const MOST_QUEUE_PAIRS: usize = 1 << 14;
    const MOST_READS: u8 = 128;
    const MOST_RETRIES: u8 = 7;

    /// Creates a configuration of Writes of these sizes over a permutation, with defaults otherwise.
    pub fn of(sizes: Sizes) -> Self {
        Self {
            operations: Operations::default(),
            sizes,
            pairs: Partners::default(),
            hosts: None,
            queue_pairs: one(),
            queue_depth: usual_depth(),
            receives: None,
            load: None,
            messages: None,
            reads: usual_reads(),
            timeout: auto(),
            retries: usual_retries(),
            end_to_end_credits: false,
            think: Duration::ZERO,
            start: Duration::ZERO,
            jitter: Duration::ZERO,
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        self.operations.check()?;
        let out_of = |key: &str, found: u64, most: u64| {
            ConfigError::new(key, format!("{found} is out of range: give 1 to {most}"))
        };
        let most = u64::from(Self::MOST_REQUESTS);
        for (key, value) in [("queue-depth", self.queue_depth), ("receives", self.receives.unwrap_or(1))] {
            if value == 0 || u64::from(value) > most {
                return Err(out_of(key, value.into(), most));
            }
        }
        if self.queue_pairs == 0 || self.queue_pairs as usize > Self::MOST_QUEUE_PAIRS {
            return Err(out_of("queue-pairs", self.queue_pairs.into(), Self::MOST_QUEUE_PAIRS as u64));
        }
        if self.reads == 0 || self.reads > Self::MOST_READS {
            return Err(out_of("reads", self.reads.into(), Self::MOST_READS.into()));
        }
        if self.retries > Self::MOST_RETRIES {
            return Err(ConfigError::new("retries", format!("{} is out of range: give 0 to 7", self.retries)));
        }
        if self.messages == Some(0) {
            return Err(ConfigError::new("messages", "found 0, expected at least 1"));
        }
        for (key, is_given) in [("think", !self.think.is_zero()), ("jitter", !self.jitter.is_zero())] {
            if is_given && self.load.is_some() {
                let message = "messages come at random where a load is given: leave this out, or the load";
                return Err(ConfigError::new(key, message));
            }
        }
        Ok(())
    }
}

impl WorkloadKind for Verbs {
    const NAME: &'static str = "verbs";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        self.check()?;
        let pairs = self.pairs.resolve(self.hosts.as_ref(), env, workload)?;
        let connections = pairs.connections(self.queue_pairs);
        check_hosts(&connections, env)?;
        let sizes = self.sizes.build(env.library).map_err(|error| error.within("sizes"))?;
        let messages = Messages::new(workload, &self.operations, sizes, connections, env);
        let limits = PostingLimits {
            depth: self.queue_depth,
            receives: self.receives.unwrap_or(self.queue_depth),
            reads: self.reads,
            timeout: self.timeout,
            retries: self.retries,
            credits: self.end_to_end_credits,
            messages: self.messages,
            think: self.think,
        };
        let mut summaries = self.summaries(&messages, env).into_iter();
        let Some(summary) = summaries.next() else { unreachable!("some operation has a share") };
        let (offers, posting, stream) = match self.load.map(Fraction::get) {
            Some(load) => (
                pairs.offers(load, &messages, env),
                Posting::random(messages.clone(), limits),
                Some(Box::new(Arrivals::new(messages, load, self.start, self.messages, env)) as Box<dyn Generator>),
            ),
            None => (Vec::new(), Posting::closed(messages, limits, self.start, self.jitter, env)?, None),
        };
        Ok(Part { source: Source::Posted { posting, stream, others: summaries.collect() }, summary, offers })
    }
}

impl Verbs {
    /// Returns the summary of each operation.
    fn summaries(&self, messages: &Messages, env: &BuildEnv<'_>) -> Vec<WorkloadSummary> {
        let ends = |of: fn(&Connection) -> HostId| {
            let hosts: BTreeSet<HostId> = messages.connections().iter().map(of).collect();
            Vec::from_iter(hosts)
        };
        let (asking, asked) = (ends(|connection| connection.src), ends(|connection| connection.dst));
        let total = self.load.map(|load| arrivals::per_second(messages, load.get(), env).iter().sum::<f64>());
        let shares = messages.shares();
        let known =
            self.messages.map(|messages_each| messages_each.saturating_mul(messages.connections().len() as u64));
        let count = known.or(env.stop_flows).map(|count| count as f64);
        let of = |&(verb, share): &(Verb, f64)| WorkloadSummary {
            operation: (shares.len() > 1).then(|| verb.name()),
            load: self.load.map(|load| load.get() * share * messages.mean_of(verb) / messages.mean()),
            mean_size: messages.mean_of(verb),
            flows_per_second: total.map(|total| total * share),
            // The number of each of several operations is not known beforehand.
            extent: match known {
                Some(known) if shares.len() == 1 => Extent::Known(known),
                Some(_) => Extent::Bounded,
                None => Extent::Endless,
            },
            first: self.start,
            duration: total
                .zip(count)
                .map(|(total, count)| self.start.saturating_add(Duration::from_ps((count / total * 1e12) as u64))),
            ..WorkloadSummary::new(Self::NAME, &asking, &asked)
        };
        shares.iter().map(of).collect()
    }
}

/// Checks that no NIC has more queue pairs than its limit.
///
/// # Errors
/// A host with too many; the key is "queue-pairs".
fn check_hosts(connections: &[Connection], env: &BuildEnv<'_>) -> Result<(), ConfigError> {
    let mut held = vec![0usize; env.graph.hosts.len()];
    for connection in connections {
        for host in [connection.src, connection.dst] {
            held[host.index()] += 1;
            if held[host.index()] > Verbs::MOST_QUEUE_PAIRS {
                let (name, most) = (&env.graph.hosts[host.index()].name, Verbs::MOST_QUEUE_PAIRS);
                let message = format!("\"{name}\" would have more than {most} queue pairs: give fewer, or fewer hosts");
                return Err(ConfigError::new("queue-pairs", message));
            }
        }
    }
    Ok(())
}

fn one() -> u32 {
    1
}
/// Returns the default queue depth, like perftest's.
fn usual_depth() -> u32 {
    128
}
fn auto() -> Setting<Duration> {
    Setting::Auto
}
/// Returns the default number of outstanding Reads and Atomics, as in NICs.
fn usual_reads() -> u8 {
    16
}
/// Returns the default number of retries, like perftest's; the largest that there is.
fn usual_retries() -> u8 {
    Verbs::MOST_RETRIES
}
