//! Which port paused whom, and why.

use std::collections::BTreeMap;

use selvedge_units::{Bytes, Duration, Instant, PortId};

use crate::names::Names;
use crate::pauses::Pauses;
use crate::share::share;

/// The pauses of one port that held a flow up, and what was behind them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseTree {
    /// The paused port.
    pub port: PortId,
    /// How long its pauses held the flow up.
    pub time: Duration,
    /// Outputs of the node at its other end for which the packets waited that had filled up its input.
    /// Their times add up to that of the port, unless a pause began before the recording.
    pub causes: Vec<Cause>,
}

/// An output that did not empty fast enough.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The output.
    pub port: PortId,
    /// Its share of the pauses: that of the paused port's bytes that waited for it.
    pub time: Duration,
    /// The part of that for which it was not paused itself: it was congested.
    pub congested: Duration,
    /// The most bytes that waited for it then, and the inputs that they came from.
    pub waiting: Bytes,
    /// See `waiting`.
    pub inputs: u32,
    /// What was behind its own pauses; empty where that comes back to a port above it.
    pub causes: Vec<Cause>,
}

/// A congested output at the beginning of pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    /// The output.
    pub port: PortId,
    /// Its share of the pauses.
    pub time: Duration,
    /// The most bytes that waited for it when it was to blame, and the inputs that they came from.
    pub waiting: Bytes,
    /// See `waiting`.
    pub inputs: u32,
}

/// What was congested behind all these pauses, the worst first.
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

/// Longer chains do not tell more.
const DEPTH: usize = 13;

/// Time by episode of one port.
pub(crate) type Weights = BTreeMap<usize, Duration>;

/// The trees behind these pauses, the longest first.
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

/// What was behind these pauses of the last port of `chain`, which are behind those of the ports before it.
fn causes(pauses: &Pauses, names: &Names, chain: &[PortId], weights: &Weights) -> Vec<Cause> {
    let port = chain[chain.len() - 1];
    let mut found: BTreeMap<PortId, (Cause, Weights)> = BTreeMap::new();
    for (&episode, &time) in weights {
        let pause = pauses.episodes(port)[episode];
        let Some(fill) = pauses.fill(names.peer(port), pause.from) else { continue };
        // However it began, a pause does not end because of outputs whose pauses do not.
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
        // What comes back to itself is a cycle.
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
