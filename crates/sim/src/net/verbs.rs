//! Applications that post work requests: the messages that their queue pairs have under way, and the resulting rows.
//!
//! The packets of [`selvedge_nic`]'s RNIC travel like all others, or in tunnels, with their headers as records
//! ([`super::records`]).
//! Completions are passed to the application at once; the next message follows.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use selvedge_nic::verbs::{
    Attached, Completion, CompletionKind, Data, Operation, Remote, SendRequest, Status, VerbsError,
};
use selvedge_nic::{ConnectionParams, Nic};
use selvedge_telemetry::FlowRow;
use selvedge_transport::Cx;
use selvedge_units::{Bytes, Domain, HostId, QpNumber, Rng};

use super::host::Host;
use crate::config::TransportConfig;
use crate::error::ConfigError;
use crate::net::fabric::FabricParams;
use crate::net::partition::Partition;
use crate::workload::{FlowSpec, Posting, Verb};

/// Applications of one host.
#[derive(Default)]
pub(crate) struct Applications {
    /// Queue pairs by workload (its first operation) and connection.
    ends: BTreeMap<(u16, usize), QpNumber>,
    queues: BTreeMap<QpNumber, SendQueue>,
}

/// Messages that an application has requested from a queue pair.
struct SendQueue {
    depth: usize,
    /// Other end: host and queue pair.
    peer: (HostId, QpNumber),
    /// Messages that were posted and have not completed, oldest first.
    posted: VecDeque<Posted>,
    /// Messages that find the queue full.
    waiting: VecDeque<FlowSpec>,
    /// Number of messages ever posted.
    count: u64,
    /// Last known value of the word on which Atomics work.
    seen: u64,
    /// Whether the queue pair has failed, so that no further message completes.
    failed: bool,
}

struct Posted {
    spec: FlowSpec,
    verb: Verb,
    /// Address of an Atomic's result.
    answer: u64,
}

/// Addresses of the word to which all requesters of a host add, and of the word that they increment by
/// compare-and-swap.
const COUNTER: u64 = 0;
const TICKET: u64 = 8;
/// Address of the first result, and bits per queue pair: results are stored by queue pair, then by place in its queue.
const ANSWERS: u64 = 1 << 46;
const ANSWERS_PER_QP: u32 = 20;

impl Applications {
    /// Returns the messages that have not completed.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &FlowSpec> {
        self.queues.values().flat_map(|queue| queue.posted.iter().map(|posted| &posted.spec).chain(&queue.waiting))
    }
}

impl SendQueue {
    fn request(&mut self, qp: QpNumber, spec: &FlowSpec, verb: Verb) -> (SendRequest, u64) {
        let at = self.count % (1 << (ANSWERS_PER_QP - 3));
        let answer = ANSWERS + (u64::from(qp.0) << ANSWERS_PER_QP) + at * 8;
        let remote = |address| Remote { address, key: Nic::memory(0, 0).key };
        let immediate = (self.count as u32).to_be_bytes();
        let operation = match verb {
            Verb::Write => Operation::Write { remote: remote(0), immediate: None },
            Verb::WriteImmediate => Operation::Write { remote: remote(0), immediate: Some(immediate) },
            Verb::Read => Operation::Read(remote(0)),
            Verb::Send => Operation::Send(Attached::Nothing),
            Verb::SendImmediate => Operation::Send(Attached::Immediate(immediate)),
            Verb::FetchAdd => Operation::FetchAdd { remote: remote(COUNTER), add: 1 },
            Verb::CompareSwap => {
                Operation::CompareSwap { remote: remote(TICKET), compare: self.seen, swap: self.seen.wrapping_add(1) }
            }
        };
        let request = SendRequest {
            id: self.count,
            operation,
            data: Data::Gather(vec![Nic::memory(answer, spec.size.get() as u32)]),
            signaled: true,
            solicited: false,
            fence: false,
            destination: None,
        };
        self.count += 1;
        (request, answer)
    }
}

impl<const RECORDED: bool> Partition<RECORDED> {
    /// Accepts a message that an application of `host` wants to send.
    #[cold]
    pub(super) fn post(&mut self, host: u32, spec: FlowSpec) {
        self.flows_started += 1;
        let Some(posting) = self.workload.posting_of(spec.workload) else { return };
        let end = (posting.first(), posting.connection_of(&spec));
        let qp = self.applications[host as usize].ends[&end];
        let Some(queue) = self.applications[host as usize].queues.get_mut(&qp) else { return };
        queue.waiting.push_back(spec);
        if RECORDED {
            let (row, peer) = (self.row_of(&spec), self.applications[host as usize].queues[&qp].peer);
            self.edge.note_message_started(&self.net, host, row, qp, peer);
        }
        self.post_waiting(host, qp);
        self.after_nic(host);
    }

    /// Asks the applications of this partition's hosts for their first messages.
    pub(super) fn open_postings(&mut self) {
        for posting in 0..self.workload.postings.len() {
            let connections = Arc::clone(self.workload.postings[posting].connections());
            let asking: BTreeSet<HostId> = connections.iter().map(|connection| connection.src).collect();
            for own in asking {
                if self.local_host(own).is_some() {
                    for message in self.workload.postings[posting].begin(own) {
                        if let Some(host) = self.nic_for(&message) {
                            self.begin_later(host, message);
                        }
                    }
                }
            }
        }
    }

    /// Posts waiting messages while the queue has space.
    fn post_waiting(&mut self, host: u32, qp: QpNumber) {
        let Some(queue) = self.applications[host as usize].queues.get_mut(&qp) else { return };
        while queue.posted.len() < queue.depth
            && !queue.failed
            && let Some(spec) = queue.waiting.pop_front()
        {
            let Some(verb) = self.workload.posting_of(spec.workload).and_then(|posting| posting.verb_of(spec.workload))
            else {
                continue;
            };
            let (request, answer) = queue.request(qp, &spec, verb);
            let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
            let Host { nic, params, .. } = &mut self.edge.hosts[host];
            let posted = nic.post(&mut cx, params, qp, request);
            queue.failed |= posted.is_err();
            queue.posted.push_back(Posted { spec, verb, answer });
        }
    }

    /// Passes completions to the applications of `host`.
    #[cold]
    pub(super) fn attend_applications(&mut self, host: u32) {
        while let Some(done) = self.edge.hosts[host].nic.poll_completed() {
            if matches!(done.kind, CompletionKind::Receive | CompletionKind::ReceiveWrite) {
                if done.status == Status::Success {
                    // The application uses the received data at once.
                    let mut cx = Cx { now: self.net.now, probe: self.edge.log.probe::<RECORDED>() };
                    let Host { nic, params, .. } = &mut self.edge.hosts[host];
                    let posted = nic.post_receive(&mut cx, params, done.qp);
                    debug_assert_eq!(posted, Ok(()), "there is room for as many as have completed");
                }
            } else {
                self.on_done(host, &done);
            }
        }
    }

    fn on_done(&mut self, host: u32, done: &Completion) {
        let Some(queue) = self.applications[host as usize].queues.get_mut(&done.qp) else { return };
        if done.status != Status::Success {
            queue.failed = true;
            return;
        }
        let Some(Posted { spec, verb, answer }) = queue.posted.pop_front() else { return };
        if verb.is_atomic() {
            let found = self.edge.hosts[host].nic.ledger().map_or(0, |ledger| ledger.take(answer));
            if verb == Verb::CompareSwap {
                // The word has the value that this application wrote, or that of another application.
                queue.seen = if found == queue.seen { found.wrapping_add(1) } else { found };
            }
        }
        let row = FlowRow { finish: Some(self.net.now), ..self.row_of(&spec) };
        self.rows.push(row);
        if RECORDED {
            self.edge.note_flow_finished(&self.net, host, row);
        }
        self.flows_finished += 1;
        self.flows_closed += 1;
        self.post_waiting(host, done.qp);
        if !self.closing
            && let Some(next) = self.workload.posting_of(spec.workload).and_then(|all| all.after(&spec, self.net.now))
        {
            self.begin_later(host, next);
        }
    }

    /// Returns the row of a message that has not finished.
    fn row_of(&self, spec: &FlowSpec) -> FlowRow {
        let verb = self.workload.postings.iter().find_map(|posting| posting.verb_of(spec.workload));
        let (src, dst) = self.edge.fabric.inner.between(spec.src, spec.dst);
        let FabricParams { paths, framing, .. } = &*self.edge.fabric;
        let ideal =
            verb.and_then(|verb| verb.ideal(paths, [src, dst], spec.size, *framing, Bytes::new(self.net.params.gap)));
        spec.row(framing.mtu, ideal)
    }

    /// Returns the messages that have not completed when a run ends.
    pub(crate) fn unfinished_messages(&self) -> impl Iterator<Item = FlowRow> {
        self.applications.iter().flat_map(Applications::unfinished).map(|spec| self.row_of(spec))
    }
}

/// Creates the queue pairs of `postings` at both ends, and connects them.
pub(crate) fn connect<const RECORDED: bool>(
    partitions: &mut [Partition<RECORDED>],
    transport: &TransportConfig,
    postings: &[Posting],
) -> Result<(), ConfigError> {
    let fabric = Arc::clone(&partitions[0].edge.fabric);
    if !fabric.has_verbs {
        return Ok(());
    }
    for partition in &mut *partitions {
        partition.applications.resize_with(partition.edge.hosts.len(), Applications::default);
    }
    for posting in postings {
        let params = transport.connection_params(posting, fabric.paths.slowest_host());
        for (n, connection) in posting.connections().iter().enumerate() {
            let (src, dst) = fabric.inner.between(connection.src, connection.dst);
            let stream = u64::from(posting.first()) << 48 ^ n as u64;
            let entropy = Rng::stream(fabric.seed, Domain::PathEntropy, stream).next_u64() as u32;
            let asking = create_qp(&fabric, host_of(partitions, src), dst, &params)?;
            let asked = create_qp(&fabric, host_of(partitions, dst), src, &params)?;
            connect_qp(host_of(partitions, src), &params, asking, (dst, asked), entropy)?;
            // The reverse path hashes differently, like that of acknowledgements.
            connect_qp(host_of(partitions, dst), &params, asked, (src, asking), !entropy)?;
            let (partition, local) = fabric.home[src.index()];
            let applications = &mut partitions[usize::from(partition)].applications[local as usize];
            applications.ends.insert((posting.first(), n), asking);
            applications.queues.insert(asking, SendQueue::new(params.send_requests as usize, (dst, asked)));
        }
    }
    Ok(())
}

fn host_of<const RECORDED: bool>(partitions: &mut [Partition<RECORDED>], host: HostId) -> &mut Host {
    let (partition, local) = partitions[0].edge.fabric.home[host.index()];
    &mut partitions[usize::from(partition)].edge.hosts[local]
}

fn create_qp(
    fabric: &FabricParams,
    host: &mut Host,
    peer: HostId,
    params: &ConnectionParams,
) -> Result<QpNumber, ConfigError> {
    let own = fabric.flow_params(&host.params, host.id, peer);
    let verbs = own.verbs.as_ref().expect("NICs of applications have parameters of verbs");
    host.nic.create_qp(verbs, params).map_err(refused)
}

fn connect_qp(
    host: &mut Host,
    params: &ConnectionParams,
    own: QpNumber,
    peer: (HostId, QpNumber),
    entropy: u32,
) -> Result<(), ConfigError> {
    host.nic.connect_qp(&host.params, params, own, peer, entropy).map_err(refused)
}

fn refused(error: VerbsError) -> ConfigError {
    ConfigError::new("workload.verbs", error.to_string())
}

impl SendQueue {
    fn new(depth: usize, peer: (HostId, QpNumber)) -> Self {
        Self { depth, peer, posted: VecDeque::new(), waiting: VecDeque::new(), count: 0, seen: 0, failed: false }
    }
}
