//! Best and slowest of the unlike paths of equal length between switches.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use selvedge_units::{Bytes, Duration, Rate, SwitchId};

use super::alternatives::{self, Alternatives};
use super::{Graph, Routes};

/// Packet size by which the slowest path is found, where it has to be found for all packets.
pub(super) const COMMON_PACKET: Bytes = Bytes::new(1086);

/// Selected paths among those of equal length between two switches.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// Port of the best path, per switch and leaf.
    pub(super) best: Vec<u16>,
    /// Port of the path with the longest delay, per switch and leaf.
    pub(super) slowest: Vec<u16>,
    /// Paths that are better than the best one for some flows.
    pub(super) alternatives: Alternatives,
}

impl Choice {
    /// Returns the selected paths; `None` where all links between switches are alike.
    pub(super) fn new(graph: &Graph, routes: &Routes) -> Option<Self> {
        (!fabric_is_uniform(graph)).then(|| Self::search(graph, routes))
    }

    /// Finds the best and the slowest paths.
    ///
    /// Best: the path with the fastest bottleneck, then the least delay (propagation, and serialisation of a packet of
    /// common size), then the lowest ports. Slowest: the path with the longest propagation, then the longest
    /// serialisation of such a packet, then the lowest ports.
    fn search(graph: &Graph, routes: &Routes) -> Self {
        let leaves = routes.leaves().len();
        let ports = vec![0; graph.switches.len() * leaves];
        let mut choice = Self { best: ports.clone(), slowest: ports, alternatives: Alternatives::new() };
        for leaf in 0..leaves {
            let mut search = Search {
                cost: vec![None; graph.switches.len()],
                order: Vec::new(),
                kinds: BTreeMap::new(),
                next_kind: 1,
                are_alike: true,
            };
            search.cost[routes.leaves()[leaf].index()] = Some(Cost::NONE);
            for switch in (0..graph.switches.len() as u32).map(SwitchId) {
                search.settle(graph, routes, leaf, switch, &mut choice);
            }
            if !search.are_alike {
                alternatives::add(&mut choice.alternatives, graph, routes, leaf, &search.order);
            }
        }
        choice
    }
}

/// Search for the best paths to one leaf.
struct Search {
    /// Cost of each switch, once known.
    cost: Vec<Option<Cost>>,
    /// Switches whose costs are known, each behind all its next hops.
    order: Vec<SwitchId>,
    /// Number of each kind of path, by the next link's rate and delay and the kind of the rest.
    kinds: BTreeMap<(Rate, Duration, u32), u32>,
    next_kind: u32,
    /// Whether all paths from any switch are alike.
    are_alike: bool,
}

/// Cost from a switch to a leaf.
#[derive(Clone, Copy)]
struct Cost {
    /// Rate of the bottleneck.
    rate: Rate,
    delay: Duration,
    /// Propagation and serialisation on the slowest path.
    slowest: (Duration, Duration),
    /// Kind of the paths: those of the same kind have the same rates and delays, link by link.
    kind: u32,
}

impl Cost {
    /// Cost from a leaf to itself.
    const NONE: Self =
        Self { rate: Rate::MAX, delay: Duration::ZERO, slowest: (Duration::ZERO, Duration::ZERO), kind: 0 };
}

impl Search {
    /// Finds the cost from `switch` to the leaf, after those of all its next hops. The depth of the search is the
    /// length of the path.
    fn settle(&mut self, graph: &Graph, routes: &Routes, leaf: usize, switch: SwitchId, choice: &mut Choice) {
        let mut stack = vec![switch];
        while let Some(&switch) = stack.last() {
            let hops = routes.next_hops(switch, leaf);
            let peer = |port: u16| routes.ports().of(switch)[usize::from(port)].peer.switch();
            let open = |port: u16| peer(port).filter(|peer| self.cost[peer.index()].is_none());
            if self.cost[switch.index()].is_some() || hops.is_empty() {
                stack.pop();
                continue;
            }
            if let Some(next) = hops.iter().find_map(|&port| open(port)) {
                stack.push(next);
                continue;
            }
            let through = |port: u16| {
                let link = &graph.links[routes.ports().of(switch)[usize::from(port)].link as usize];
                Some((link, self.cost[peer(port)?.index()]?, port))
            };
            let ways = || hops.iter().filter_map(|&port| through(port));
            let chosen = ways()
                .map(|(link, rest, port)| {
                    (rest.rate.min(link.rate), rest.delay + link.delay + link.rate.time_for(COMMON_PACKET), port)
                })
                .min_by_key(|&(rate, delay, port)| (Reverse(rate), delay, port));
            let slowest = ways()
                .map(|(link, rest, port)| {
                    let (propagation, serialisation) = rest.slowest;
                    let serialisation = serialisation.saturating_add(link.rate.time_for(COMMON_PACKET));
                    ((propagation.saturating_add(link.delay), serialisation), port)
                })
                .max_by_key(|&(delays, port)| (delays, Reverse(port)));
            let mut kinds = ways().map(|(link, rest, _)| (link.rate, link.delay, rest.kind));
            let first = kinds.next();
            let only = first.filter(|first| kinds.all(|kind| kind == *first));
            if let Some(((rate, delay, port), (slowest, slowest_port))) = chosen.zip(slowest) {
                let kind = self.kind_of(only);
                self.cost[switch.index()] = Some(Cost { rate, delay, slowest, kind });
                self.order.push(switch);
                let at = switch.index() * routes.leaves().len() + leaf;
                (choice.best[at], choice.slowest[at]) = (port, slowest_port);
            }
            stack.pop();
        }
    }

    /// Returns the kind of all paths from a switch, if they share one, or else a new kind.
    fn kind_of(&mut self, only: Option<(Rate, Duration, u32)>) -> u32 {
        let next = self.next_kind;
        let kind = match only {
            Some(only) => *self.kinds.entry(only).or_insert(next),
            None => {
                self.are_alike = false;
                next
            }
        };
        self.next_kind += u32::from(kind == next);
        kind
    }
}

/// Returns whether all links between switches are alike, and hence all paths of equal length.
fn fabric_is_uniform(graph: &Graph) -> bool {
    let mut fabric = graph.links.iter().filter(|link| link.a.host().is_none() && link.b.host().is_none());
    let first = fabric.next();
    first.is_none_or(|first| fabric.all(|link| (link.rate, link.delay) == (first.rate, first.delay)))
}
