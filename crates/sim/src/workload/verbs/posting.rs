//! When applications post.

use std::sync::Arc;

use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, Setting};

use super::messages::Messages;
use super::{Connection, Verb};
use crate::ConfigError;
use crate::workload::build::BuildEnv;
use crate::workload::closed_loop::{MAX_OPEN, jitter};
use crate::workload::flow::stream;
use crate::workload::{Extent, FlowSpec};

/// What queue pairs and their applications allow themselves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PostingLimits {
    /// Requests outstanding.
    pub depth: u32,
    /// Receive requests that wait.
    pub receives: u32,
    /// Reads and Atomics under way.
    pub reads: u8,
    /// How long to wait for an answer.
    pub timeout: Setting<Duration>,
    /// How often to try again after silence.
    pub retries: u8,
    /// Whether Sends wait for advertised receive requests.
    pub credits: bool,
    /// Messages of each connection.
    pub(super) messages: Option<u64>,
    pub(super) think: Duration,
}

/// The applications of a workload: which connections they have, and what they post when something is done.
#[derive(Clone, Debug)]
pub struct Posting {
    messages: Messages,
    limits: PostingLimits,
    /// When each connection's first messages begin, where a message follows another.
    begins: Option<Vec<Instant>>,
}

impl Posting {
    /// Of applications that keep their queues full; each begins at `start` or up to `most` later.
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
    /// Of applications that post at random; their messages come in a stream.
    pub(super) fn random(messages: Messages, limits: PostingLimits) -> Self {
        Self { messages, limits, begins: None }
    }

    /// Limits of its queue pairs.
    pub fn limits(&self) -> &PostingLimits {
        &self.limits
    }
    /// Bytes of all requests that a queue pair may have outstanding, in the mean.
    pub fn outstanding(&self) -> Bytes {
        Bytes::new((self.messages.mean() * f64::from(self.limits.depth)).ceil() as u64)
    }
    /// Number of the workload that its first operation counts as.
    pub fn first(&self) -> u16 {
        self.messages.first()
    }
    /// Its connections, each with one queue pair at both ends.
    pub fn connections(&self) -> &Arc<[Connection]> {
        self.messages.connections()
    }
    /// Which connection a message goes over.
    pub fn connection_of(&self, message: &FlowSpec) -> usize {
        self.messages.connection_of(message)
    }
    /// What messages of this workload ask for, if it is one of its operations.
    pub fn verb_of(&self, workload: u16) -> Option<Verb> {
        self.messages.verb_of(workload)
    }
    /// How many messages there will be that follow others.
    pub fn extent(&self) -> Extent {
        let Some(begins) = &self.begins else { return Extent::Known(0) };
        let all = |messages: u64| Extent::Known(messages.saturating_mul(begins.len() as u64));
        self.limits.messages.map_or(Extent::Endless, all)
    }

    /// The messages with which the connections of `host` begin. To be asked once.
    pub fn begin(&mut self, host: HostId) -> Vec<FlowSpec> {
        let Some(begins) = self.begins.clone() else { return Vec::new() };
        let connections = Arc::clone(self.connections());
        let own = connections.iter().enumerate().filter(|(_, connection)| connection.src == host);
        let depth = self.limits.depth;
        own.flat_map(|(n, _)| (0..depth).map_while(|_| self.next(n, begins[n])).collect::<Vec<_>>()).collect()
    }
    /// The message that follows `done`, which ended at `now`; `None` if that was the last of its connection, or none
    /// follows another.
    pub fn after(&mut self, done: &FlowSpec, now: Instant) -> Option<FlowSpec> {
        self.begins.as_ref()?;
        self.next(self.connection_of(done), now.saturating_add(self.limits.think))
    }

    /// The time from the end of a message to the next one.
    pub(crate) fn think(&self) -> Duration {
        self.limits.think
    }
    /// The next message of a connection, as if it began with the first; `None` where none follows another.
    pub(crate) fn message(&mut self, connection: usize) -> Option<FlowSpec> {
        let begin = *self.begins.as_ref()?.get(connection)?;
        self.next(connection, begin)
    }

    fn next(&mut self, connection: usize, start: Instant) -> Option<FlowSpec> {
        let is_over = self.limits.messages.is_some_and(|most| self.messages.made(connection) >= most);
        (!is_over).then(|| self.messages.next(connection, start))
    }
}
