//! All shortest ways between switches with hosts, by what their links are like: which of them is the worst depends on
//! the question. A large packet is longest on a slow link, a small one on a long one.

use std::collections::BTreeMap;
use std::iter;

use selvedge_units::{Bytes, Duration, Rate, SwitchId};

use super::choice::COMMON_PACKET;
use super::{Graph, Routes};

/// Shortest ways whose links have the same rates.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Kind {
    /// Of all links, the slowest first.
    pub rates: Vec<Rate>,
    /// Of the longest of these ways.
    pub propagation: Duration,
    /// How many ways there are.
    pub ways: u64,
}

impl Kind {
    /// From a switch to itself.
    pub(super) const NONE: Self = Self { rates: Vec::new(), propagation: Duration::ZERO, ways: 1 };

    /// The same with one more link.
    pub(super) fn and(&self, rate: Rate, delay: Duration) -> Self {
        let mut rates = self.rates.clone();
        rates.insert(rates.partition_point(|other| *other < rate), rate);
        Self { rates, propagation: self.propagation.saturating_add(delay), ways: self.ways }
    }
    /// Rate of the slowest link.
    pub fn bottleneck(&self) -> Rate {
        self.rates.first().copied().unwrap_or(Rate::MAX)
    }
    /// How long a packet that takes `size` on each link is under way when nothing else is.
    pub fn time_for(&self, size: Bytes) -> Duration {
        self.rates.iter().fold(self.propagation, |sum, rate| sum.saturating_add(rate.time_for(size)))
    }
}

/// The kinds of ways from each leaf to each.
#[derive(Clone, Debug)]
pub(super) struct Kinds {
    /// Those that have been met: in most networks there are few.
    sets: Vec<Vec<Kind>>,
    /// `table[from * leaves + to]`: index into `sets`.
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
    /// A number for the ways from one leaf to another: pairs with the same number have the same ways.
    pub(super) fn id(&self, from: usize, to: usize) -> u32 {
        self.table[from * self.leaves + to]
    }
    /// The ways from one leaf to another; none where there is no way.
    pub(super) fn between(&self, from: usize, to: usize) -> &[Kind] {
        &self.sets[self.table[from * self.leaves + to] as usize]
    }
}

/// What a set of ways consists of: the rate and the delay of the next link, the set of the rest, and how often.
type Parts = Vec<((Rate, Duration, u32), u64)>;

/// The search for the ways to one leaf.
struct Search<'a> {
    graph: &'a Graph,
    routes: &'a Routes,
    sets: Vec<Vec<Kind>>,
    /// By what they consist of.
    numbers: BTreeMap<Parts, u32>,
    /// By switch: the set of its ways to the leaf, once known.
    known: Vec<Option<u32>>,
}

impl Search<'_> {
    /// The set of ways from `switch` to the leaf with this index, after those of all its next hops. The depth of the
    /// search is the length of the path.
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
        self.known[switch.index()].expect("it is settled")
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

/// Of ways with the same bottleneck, keeps the longest, and that which takes longest for a packet of common size.
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

/// In hardly any real network are there as many.
const MOST: usize = 64;
