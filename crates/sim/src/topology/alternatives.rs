//! Unlike paths of equal length: which of them is best depends on the size of a flow.
//!
//! A short flow waits for propagation, a long one for the slowest link. A path is at least as good as another for every
//! flow if each of its links is as fast as the other's in that position, and its delay is no longer. Only paths that no
//! other path beats in this sense are kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use selvedge_units::{Duration, Rate, SwitchId};

use super::{Graph, Routes};

/// Links between switches of alternative paths, per pair of leaves that has several.
pub(super) type Alternatives = BTreeMap<(usize, usize), Vec<Vec<u32>>>;

/// Path from a switch to a leaf.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct PathToLeaf {
    /// Links of the path with their rates, the last one first.
    links: Vec<(Rate, u32)>,
    delay: Duration,
}

impl PathToLeaf {
    /// Returns whether no flow is faster on `other`; both paths have the same number of links.
    fn is_as_good_as(&self, other: &Self) -> bool {
        let rates = self.links.iter().zip(&other.links);
        self.delay <= other.delay && rates.into_iter().all(|((own, _), (others, _))| own >= others)
    }

    fn bottleneck(&self) -> Rate {
        self.links.iter().map(|&(rate, _)| rate).min().unwrap_or(Rate::MAX)
    }
}

/// Adds the alternatives among the paths to the leaf with this index; `order`: switches, each behind all its next hops.
pub(super) fn add(found: &mut Alternatives, graph: &Graph, routes: &Routes, leaf: usize, order: &[SwitchId]) {
    let mut ways: Vec<Vec<PathToLeaf>> = vec![Vec::new(); graph.switches.len()];
    ways[routes.leaves()[leaf].index()] = vec![PathToLeaf { links: Vec::new(), delay: Duration::ZERO }];
    for &switch in order {
        let mut best: Vec<PathToLeaf> = Vec::new();
        for &port in routes.next_hops(switch, leaf) {
            let port = routes.ports().of(switch)[usize::from(port)];
            let link = &graph.links[port.link as usize];
            let Some(next) = port.peer.switch() else { continue };
            for rest in &ways[next.index()] {
                let links = rest.links.iter().copied().chain([(link.rate, port.link)]).collect();
                keep(&mut best, PathToLeaf { links, delay: rest.delay.saturating_add(link.delay) });
            }
        }
        if best.len() > MOST {
            thin_out(&mut best);
        }
        ways[switch.index()] = best;
    }
    for (from, &switch) in routes.leaves().iter().enumerate() {
        let ways = &ways[switch.index()];
        if ways.len() > 1 {
            let links_of = |way: &PathToLeaf| way.links.iter().rev().map(|&(_, link)| link).collect();
            found.insert((from, leaf), ways.iter().map(links_of).collect());
        }
    }
}

/// Keeps a path unless another is as good, and drops those that it is as good as.
fn keep(best: &mut Vec<PathToLeaf>, way: PathToLeaf) {
    if !best.iter().any(|other| other.is_as_good_as(&way)) {
        best.retain(|other| !way.is_as_good_as(other));
        best.push(way);
    }
}

/// Keeps the path with the least delay for each rate of the bottleneck.
fn thin_out(best: &mut Vec<PathToLeaf>) {
    best.sort_by_key(|way| (Reverse(way.bottleneck()), way.delay, way.links.clone()));
    best.dedup_by_key(|way| way.bottleneck());
}

/// Number of alternatives above which they are thinned out: paths with equal bottlenecks then differ by the
/// serialisation of one packet. Hardly any real network has as many.
const MOST: usize = 64;
