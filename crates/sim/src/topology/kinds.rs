//! All shortest paths between switches with hosts, by the rates of their links. Which path is slowest depends on the
//! packet: for a large one, a path with a slow link, for a small one, a long path.

use std::collections::BTreeMap;
use std::iter;

use selvedge_units::{Bytes, Duration, Rate, SwitchId};

use super::choice::COMMON_PACKET;
use super::{Graph, Routes};

/// Shortest paths whose links have the same rates.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind {
    /// Rates of all links, the slowest first.
    pub rates: Vec<Rate>,
    /// Propagation delay of the longest of these paths.
    pub propagation: Duration,
    /// Number of paths.
    pub ways: u64,
}

impl Kind {
    /// Path from a switch to itself.
    pub(super) const NONE: Self = Self { rates: Vec::new(), propagation: Duration::ZERO, ways: 1 };

    /// Returns the kind of these paths with one more link.
    pub(super) fn and(&self, rate: Rate, delay: Duration) -> Self {
        let mut rates = self.rates.clone();
        rates.insert(rates.partition_point(|other| *other < rate), rate);
        Self { rates, propagation: self.propagation.saturating_add(delay), ways: self.ways }
    }
    /// Returns the rate of the slowest link.
    pub fn bottleneck(&self) -> Rate {
        self.rates.first().copied().unwrap_or(Rate::MAX)
    }
    /// Returns the time in an empty network of a packet that takes `size` on each link.
    pub fn time_for(&self, size: Bytes) -> Duration {
        self.rates.iter().fold(self.propagation, |sum, rate| sum.saturating_add(rate.time_for(size)))
    }
}

/// Kinds of paths from each leaf to each.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    /// Distinct sets of paths: most networks have few.
    sets: Vec<Vec<Kind>>,
    /// Index into `sets` of a pair of leaves: `table[from * leaves + to]`.
    table: Vec<u32>,
    leaves: usize,
}

impl Kinds {
    pub(super) fn new(graph: &Graph, routes: &Routes) -> Self {
        let leaves = routes.leaves();
        let mut search =
            Search { graph, routes, sets: vec![vec![Kind::NONE]], numbers: BTreeMap::new(), known: Vec::new() };
        let mut table = vec![0; leaves.len() * leaves.len()];
        for (to, leaf) in leaves.iter().enumerate() {
            search.known = vec![None; graph.switches.len()];
            search.known[leaf.index()] = Some(0);
            for (from, &switch) in leaves.iter().enumerate() {
                table[from * leaves.len() + to] = search.settle(switch, to);
            }
        }
        Self { sets: search.sets, table, leaves: leaves.len() }
    }
    /// Returns a number for the paths from one leaf to another: pairs with the same number have the same paths.
    pub(super) fn id(&self, from: usize, to: usize) -> u32 {
        self.table[from * self.leaves + to]
    }
    /// Returns the paths from one leaf to another; empty where there is none.
    pub(super) fn between(&self, from: usize, to: usize) -> &[Kind] {
        &self.sets[self.table[from * self.leaves + to] as usize]
    }
}

/// Parts of a set of paths: the rate and the delay of the next link, the set of the rest, and the number of such links.
type Parts = Vec<((Rate, Duration, u32), u64)>;

/// Search for the paths to one leaf.
struct Search<'a> {
    graph: &'a Graph,
    routes: &'a Routes,
    sets: Vec<Vec<Kind>>,
    /// Numbers of the sets of paths, by their parts.
    numbers: BTreeMap<Parts, u32>,
    /// Set of the paths from a switch to the leaf, indexed by switch, once known.
    known: Vec<Option<u32>>,
}

impl Search<'_> {
    /// Returns the set of paths from `switch` to the leaf with this index, and finds those of all its next hops first.
    /// The depth of the search is the length of the path.
    fn settle(&mut self, switch: SwitchId, leaf: usize) -> u32 {
        let mut stack = vec![switch];
        while let Some(&at) = stack.last() {
            if self.known[at.index()].is_some() {
                stack.pop();
                continue;
            }
            let ports = self.routes.ports().of(at);
            let hops = self.routes.next_hops(at, leaf).iter().map(|&port| ports[usize::from(port)]);
            let hops = hops.filter_map(|port| Some((port.link, port.peer.switch()?)));
            if let Some((_, next)) = hops.clone().find(|(_, peer)| self.known[peer.index()].is_none()) {
                stack.push(next);
                continue;
            }
            let mut parts: Parts = Vec::new();
            for (link, peer) in hops {
                let link = &self.graph.links[link as usize];
                let part = (link.rate, link.delay, self.known[peer.index()].unwrap_or_default());
                match parts.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, times)) => *times += 1,
                    None => parts.push((part, 1)),
                }
            }
            parts.sort_unstable();
            self.known[at.index()] = Some(self.number_of(parts));
        }
        self.known[switch.index()].expect("the switch's paths are known")
    }

    fn number_of(&mut self, parts: Parts) -> u32 {
        if let Some(&known) = self.numbers.get(&parts) {
            return known;
        }
        let mut found: BTreeMap<Vec<Rate>, (Duration, u64)> = BTreeMap::new();
        for &((rate, delay, rest), times) in &parts {
            for kind in &self.sets[rest as usize] {
                let Kind { rates, propagation, ways } = kind.and(rate, delay);
                let (longest, all) = found.entry(rates).or_default();
                *longest = propagation.max(*longest);
                *all = all.saturating_add(ways.saturating_mul(times));
            }
        }
        let found = found.into_iter().map(|(rates, (propagation, ways))| Kind { rates, propagation, ways });
        let mut set: Vec<Kind> = found.collect();
        if set.len() > MOST {
            set = thinned_out(set);
        }
        let number = self.sets.len() as u32;
        self.sets.push(set);
        self.numbers.insert(parts, number);
        number
    }
}

/// Thins out paths: of those with the same bottleneck, keeps the longest, and the slowest for a packet of common size.
fn thinned_out(kinds: Vec<Kind>) -> Vec<Kind> {
    let mut worst: BTreeMap<Rate, [Kind; 2]> = BTreeMap::new();
    for kind in kinds {
        let [longest, slowest] = worst.entry(kind.bottleneck()).or_insert_with(|| [kind.clone(), kind.clone()]);
        if kind.propagation > longest.propagation {
            *longest = kind.clone();
        }
        if kind.time_for(COMMON_PACKET) > slowest.time_for(COMMON_PACKET) {
            *slowest = kind;
        }
    }
    worst
        .into_values()
        .flat_map(|[longest, slowest]| iter::once(longest.clone()).chain((slowest != longest).then_some(slowest)))
        .collect()
}

/// Number of kinds above which they are thinned out; hardly any real network has as many.
const MOST: usize = 64;
