//! Posting of applications' requests.

use std::sync::Arc;

use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Setting};

use super::messages::Messages;
use super::{Connection, Verb};
use crate::ConfigError;
use crate::workload::build::BuildEnv;
use crate::workload::closed_loop::{MAX_OPEN, jitter};
use crate::workload::flow::stream;
use crate::workload::{Extent, FlowSpec};

/// Limits of queue pairs and their applications.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PostingLimits {
    /// Largest number of requests outstanding.
    pub depth: u32,
    /// Number of receive requests that wait.
    pub receives: u32,
    /// Largest number of Reads and Atomics under way.
    pub reads: u8,
    /// Time to wait for an answer.
    pub timeout: Setting<Duration>,
    /// Number of retries after a timeout.
    pub retries: u8,
    /// Whether Sends wait for advertised receive requests.
    pub credits: bool,
    /// Number of messages of each connection; `None`: without limit.
    pub(super) messages: Option<u64>,
    pub(super) think: Duration,
}

/// Applications of a workload: their connections, and the requests that they post when earlier ones complete.
#[derive(Clone, Debug)]
pub struct Posting {
    messages: Messages,
    limits: PostingLimits,
    /// Time at which each connection's first messages begin, where a message follows another.
    begins: Option<Vec<Instant>>,
}

impl Posting {
    /// Creates applications that keep their queues full; each connection begins at `start` or up to `most` later.
    pub(super) fn closed(
        messages: Messages,
        limits: PostingLimits,
        start: Duration,
        most: Duration,
        env: &BuildEnv<'_>,
    ) -> Result<Self, ConfigError> {
        let count = messages.connections().len() as u64;
        let at_once = u64::from(limits.depth).min(limits.messages.unwrap_or(u64::MAX)) * count;
        if at_once > MAX_OPEN {
            let message = format!(
                "that makes {at_once} messages at once, but at most {MAX_OPEN} can be kept: let each of the {count} queue pairs have at most {} outstanding",
                MAX_OPEN / count
            );
            return Err(ConfigError::new("queue-depth", message));
        }
        let begin = |n: u64| {
            let late = jitter(&mut stream(env.seed, Domain::StartJitter, messages.first(), n as u32), most);
            (Instant::ZERO + start).saturating_add(late)
        };
        let begins = Some((0..count).map(begin).collect());
        Ok(Self { messages, limits, begins })
    }
    /// Creates applications that post at random; their messages come in a stream.
    pub(super) fn random(messages: Messages, limits: PostingLimits) -> Self {
        Self { messages, limits, begins: None }
    }

    /// Returns the limits of the queue pairs.
    pub fn limits(&self) -> &PostingLimits {
        &self.limits
    }
    /// Returns the mean bytes of all requests that a queue pair may have outstanding.
    pub fn outstanding(&self) -> Bytes {
        Bytes::new((self.messages.mean() * f64::from(self.limits.depth)).ceil() as u64)
    }
    /// Returns the workload number of the first operation.
    pub fn first(&self) -> u16 {
        self.messages.first()
    }
    /// Returns the connections, each with one queue pair at both ends.
    pub fn connections(&self) -> &Arc<[Connection]> {
        self.messages.connections()
    }
    /// Returns the index of the connection of a message.
    pub fn connection_of(&self, message: &FlowSpec) -> usize {
        self.messages.connection_of(message)
    }
    /// Returns the operation of messages of this workload, if the workload is one of the operations.
    pub fn verb_of(&self, workload: u16) -> Option<Verb> {
        self.messages.verb_of(workload)
    }
    /// Returns the number of messages that follow others.
    pub fn extent(&self) -> Extent {
        let Some(begins) = &self.begins else { return Extent::Known(0) };
        let all = |messages: u64| Extent::Known(messages.saturating_mul(begins.len() as u64));
        self.limits.messages.map_or(Extent::Endless, all)
    }

    /// Returns the messages with which the connections of `host` begin. Must be called once per host.
    pub fn begin(&mut self, host: HostId) -> Vec<FlowSpec> {
        let Some(begins) = self.begins.clone() else { return Vec::new() };
        let connections = Arc::clone(self.connections());
        let own = connections.iter().enumerate().filter(|(_, connection)| connection.src == host);
        let depth = self.limits.depth;
        own.flat_map(|(n, _)| (0..depth).map_while(|_| self.next(n, begins[n])).collect::<Vec<_>>()).collect()
    }
    /// Returns the message that follows `done`, which ended at `now`; `None` if that was the last of its connection, or
    /// messages do not follow each other.
    pub fn after(&mut self, done: &FlowSpec, now: Instant) -> Option<FlowSpec> {
        self.begins.as_ref()?;
        self.next(self.connection_of(done), now.saturating_add(self.limits.think))
    }

    /// Returns the time from the end of a message to the next one.
    pub(crate) fn think(&self) -> Duration {
        self.limits.think
    }
    /// Returns the next message of a connection, as if it began with the first; `None` where messages do not follow
    /// each other.
    pub(crate) fn message(&mut self, connection: usize) -> Option<FlowSpec> {
        let begin = *self.begins.as_ref()?.get(connection)?;
        self.next(connection, begin)
    }

    fn next(&mut self, connection: usize, start: Instant) -> Option<FlowSpec> {
        let is_over = self.limits.messages.is_some_and(|most| self.messages.made(connection) >= most);
        (!is_over).then(|| self.messages.next(connection, start))
    }
}
