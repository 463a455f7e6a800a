//! Causes of pauses: which port paused which, and why.

use std::collections::BTreeMap;

use selvedge_units::{Bytes, Duration, Instant, PortId};

use crate::names::Names;
use crate::pauses::Pauses;
use crate::share::share;

/// The pauses of one port that delayed a flow, and their causes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseTree {
    /// The paused port.
    pub port: PortId,
    /// Time for which the port's pauses delayed the flow.
    pub time: Duration,
    /// Congested or paused outputs of the node at the port's other end, for which packets waited that filled up its
    /// input. The sum of their times is that of the port, unless a pause began before the recording.
    pub causes: Vec<Cause>,
}

/// An output that drained too slowly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The output port.
    pub port: PortId,
    /// Output's share of the pauses: the share of the paused port's bytes that waited for it.
    pub time: Duration,
    /// Part of `time` during which the output was not paused itself, but congested.
    pub congested: Duration,
    /// Largest number of bytes that waited for the output during the pauses.
    pub waiting: Bytes,
    /// Number of inputs that the waiting bytes came from; see `waiting`.
    pub inputs: u32,
    /// Causes of the output's own pauses; empty where these lead back to a port higher in the tree.
    pub causes: Vec<Cause>,
}

/// A congested output at which a tree of pauses begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    /// The output port.
    pub port: PortId,
    /// Output's share of the pauses.
    pub time: Duration,
    /// Largest number of bytes that waited for the output while it caused pauses.
    pub waiting: Bytes,
    /// Number of inputs that the waiting bytes came from; see `waiting`.
    pub inputs: u32,
}

/// Returns the congested outputs behind all these pauses, the largest share first.
pub fn roots<'a>(trees: impl IntoIterator<Item = &'a PauseTree>) -> Vec<Root> {
    let mut found = BTreeMap::new();
    trees.into_iter().for_each(|tree| gather(&tree.causes, &mut found));
    let mut roots: Vec<Root> = found.into_values().collect();
    roots.sort_by_key(|root: &Root| (std::cmp::Reverse(root.time), root.port));
    roots
}

fn gather(causes: &[Cause], found: &mut BTreeMap<PortId, Root>) {
    for &Cause { port, congested, waiting, inputs, ref causes, .. } in causes {
        if !congested.is_zero() {
            let none = Root { port, time: Duration::ZERO, waiting: Bytes::ZERO, inputs: 0 };
            let root = found.entry(port).or_insert(none);
            root.time += congested;
            if waiting > root.waiting {
                (root.waiting, root.inputs) = (waiting, inputs);
            }
        }
        gather(causes, found);
    }
}

/// Largest depth of a tree of causes; longer chains give no further insight.
const DEPTH: usize = 13;

/// Time by index of one port's episode.
pub(crate) type Weights = BTreeMap<usize, Duration>;

/// Returns the trees of causes of these pauses, the longest pauses first.
pub(crate) fn trees(pauses: &Pauses, names: &Names, paused: &BTreeMap<PortId, Weights>) -> Vec<PauseTree> {
    let tree = |(&port, weights): (&PortId, &Weights)| PauseTree {
        port,
        time: weights.values().copied().sum(),
        causes: causes(pauses, names, &[port], weights),
    };
    let mut trees: Vec<PauseTree> = paused.iter().map(tree).collect();
    trees.sort_by_key(|tree| (std::cmp::Reverse(tree.time), tree.port));
    trees
}

/// Returns the causes of these pauses of the last port of `chain`; each port of the chain causes the pauses of the one
/// before.
fn causes(pauses: &Pauses, names: &Names, chain: &[PortId], weights: &Weights) -> Vec<Cause> {
    let port = chain[chain.len() - 1];
    let mut found: BTreeMap<PortId, (Cause, Weights)> = BTreeMap::new();
    for (&episode, &time) in weights {
        let pause = pauses.episodes(port)[episode];
        let Some(fill) = pauses.fill(names.peer(port), pause.from) else { continue };
        // A pause that does not end cannot be due to outputs whose pauses end, however it began.
        let endless = |output| pauses.endless(output).filter(|_| pause.to == Instant::NEVER);
        let is_stuck = fill.outputs.iter().any(|backlog| endless(backlog.output).is_some());
        let outputs = fill.outputs.iter().filter(|backlog| !is_stuck || endless(backlog.output).is_some());
        let held: Vec<u64> = outputs.clone().map(|backlog| backlog.held.get()).collect();
        for (backlog, time) in outputs.zip(share(time.as_ps(), &held)) {
            let time = Duration::from_ps(time);
            let (cause, upstream) =
                found.entry(backlog.output).or_insert_with(|| (Cause::new(backlog.output), Weights::new()));
            cause.time += time;
            if let Some(episode) = endless(backlog.output).or_else(|| pauses.at(backlog.output, fill.at)) {
                *upstream.entry(episode).or_default() += time;
                continue;
            }
            cause.congested += time;
            if backlog.waiting > cause.waiting {
                (cause.waiting, cause.inputs) = (backlog.waiting, backlog.inputs);
            }
        }
    }
    let further = |(port, (mut cause, weights)): (PortId, (Cause, Weights))| {
        // An output that is already in the chain closes a cycle.
        if chain.len() < DEPTH && !chain.contains(&port) {
            cause.causes = causes(pauses, names, &[chain, &[port]].concat(), &weights);
        }
        cause
    };
    let mut causes: Vec<Cause> = found.into_iter().map(further).filter(|cause| !cause.time.is_zero()).collect();
    causes.sort_by_key(|cause| (std::cmp::Reverse(cause.time), cause.port));
    causes
}

impl Cause {
    fn new(port: PortId) -> Self {
        let (time, congested) = (Duration::ZERO, Duration::ZERO);
        Self { port, time, congested, waiting: Bytes::ZERO, inputs: 0, causes: Vec::new() }
    }
}
