//! Messages of each connection, in order.

use std::sync::Arc;

use selvedge_units::{Bytes, Domain, Instant, Rng};

use super::{Connection, Operations, Verb};
use crate::topology::Framing;
use crate::workload::build::BuildEnv;
use crate::workload::flow::stream;
use crate::workload::{FlowSpec, Measure, SizeDistribution};

/// Messages of each connection of a workload. The n-th of a connection is the same whenever it is posted.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    /// Workload number of the first operation.
    first: u16,
    operations: Operations,
    /// Each operation and its share, in the order of their numbers.
    shares: Vec<(Verb, f64)>,
    sizes: SizeDistribution,
    connections: Arc<[Connection]>,
    progress: Vec<Progress>,
    measure: Measure,
}

/// Progress of one connection.
#[derive(Clone, Debug)]
struct Progress {
    made: u64,
    sizes: Rng,
    operations: Rng,
}

/// Size of the word of an atomic operation.
const WORD: Bytes = Bytes::new(8);

impl Messages {
    pub(super) fn new(
        first: u16,
        operations: &Operations,
        sizes: SizeDistribution,
        connections: Vec<Connection>,
        env: &BuildEnv<'_>,
    ) -> Self {
        let begin = |n: usize| Progress {
            made: 0,
            sizes: stream(env.seed, Domain::FlowSize, first, n as u32),
            operations: stream(env.seed, Domain::Operation, first, n as u32),
        };
        Self {
            first,
            operations: operations.clone(),
            shares: operations.shares(),
            sizes,
            progress: (0..connections.len()).map(begin).collect(),
            connections: connections.into(),
            measure: env.measure,
        }
    }
    pub(super) fn connections(&self) -> &Arc<[Connection]> {
        &self.connections
    }
    pub(super) fn shares(&self) -> &[(Verb, f64)] {
        &self.shares
    }
    /// Returns the number of messages that a connection has had.
    pub(super) fn made(&self, connection: usize) -> u64 {
        self.progress[connection].made
    }
    /// Returns the index of the connection that a message belongs to.
    pub(super) fn connection_of(&self, message: &FlowSpec) -> usize {
        (message.id % self.connections.len() as u64) as usize
    }
    /// Returns the operation of messages of this workload, if the workload is one of these operations.
    pub(super) fn verb_of(&self, workload: u16) -> Option<Verb> {
        self.shares.get(usize::from(workload.checked_sub(self.first)?)).map(|&(verb, _)| verb)
    }
    pub(super) fn first(&self) -> u16 {
        self.first
    }

    /// Returns the mean size of an operation's messages in bytes.
    pub(super) fn mean_of(&self, verb: Verb) -> f64 {
        if verb.is_atomic() { WORD.get() as f64 } else { self.sizes.mean() }
    }
    /// Returns the mean size of all messages in bytes.
    pub(super) fn mean(&self) -> f64 {
        self.shares.iter().map(|&(verb, share)| share * self.mean_of(verb)).sum()
    }
    /// Returns the fraction of the bytes that comes with answers.
    pub(super) fn share_back(&self) -> f64 {
        let back = self.shares.iter().filter(|(verb, _)| !verb.carries());
        back.map(|&(verb, share)| share * self.mean_of(verb)).sum::<f64>() / self.mean()
    }

    /// Returns the mean number of bytes on links for each byte of the payload of these operations.
    pub(super) fn expansion(&self, framing: Framing, of: impl Fn(Verb) -> bool) -> f64 {
        let packets = |verb: Verb| if verb.is_atomic() { 1.0 } else { self.sizes.mean_packets(framing.mtu) };
        let shares = || self.shares.iter().filter(|&&(verb, _)| of(verb));
        let bytes: f64 = shares().map(|&(verb, share)| share * self.mean_of(verb)).sum();
        1.0 + framing.overhead.get() as f64 * shares().map(|&(verb, share)| share * packets(verb)).sum::<f64>() / bytes
    }

    /// Returns the next message of a connection, which begins at `start`.
    pub(super) fn next(&mut self, connection: usize, start: Instant) -> FlowSpec {
        let count = self.connections.len() as u64;
        let Connection { src, dst } = self.connections[connection];
        let progress = &mut self.progress[connection];
        let (n, size) = (progress.made, self.sizes.sample(&mut progress.sizes));
        let verb = self.operations.pick(n, &mut progress.operations);
        progress.made += 1;
        let place = self.shares.iter().position(|&(known, _)| known == verb).unwrap_or(0);
        FlowSpec {
            id: n * count + connection as u64,
            workload: self.first + place as u16,
            group: 0,
            src,
            dst,
            size: if verb.is_atomic() { WORD } else { size },
            priority: None,
            start,
            measured: self.measure.counts(start),
            on_sent: None,
            on_received: None,
        }
    }
}
