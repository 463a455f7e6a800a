//! Pairs of hosts whose paths are alike.
//!
//! Design notes.
//! 1. *By leaves.* The path of a pair consists of the links of both hosts and the paths between their switches. Equal
//!    links share a number, and so do equal sets of paths, so that a pair's class takes two look-ups and a search among
//!    few: 8,192 hosts of a fat-tree have three classes, in 262,144 entries for pairs of switches.
//! 2. *Bounded.* Where delays are all different there could be as many classes as pairs. Delays are then rounded up, to
//!    fewer and fewer significant bits, until there are [`MOST`] classes at most; so a class may promise a longer path
//!    than a pair has, and never a shorter one.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_units::{Bytes, Duration, HostId, Rate};

use super::kinds::{Kind, Kinds};
use super::{Graph, Routes};

/// Largest number of classes of a network, unless rates alone make more.
const MOST: usize = 2_048;
/// Significant bits of delays, tried in order; the first does not round.
const PRECISIONS: [u32; 9] = [64, 8, 7, 6, 5, 4, 3, 2, 1];

/// Classes of pairs of hosts between which paths are alike: the rates and delays of both hosts' links, and the paths
/// between their switches there and back.
#[derive(Clone, Debug)]
pub struct PathClasses {
    /// Number of the kind of a host's link, indexed by host.
    links: Vec<u32>,
    /// Number of the relation of two leaves: `between[from * leaves + to]`; [`NO_WAY`] where there is no path.
    between: Vec<u32>,
    leaves: usize,
    /// Number of each class, by the relation of the leaves and the links of sender and receiver.
    numbers: BTreeMap<(u32, u32, u32), u32>,
    classes: Vec<PathClass>,
}

/// Properties of the paths of a class.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathClass {
    /// Sender and receiver of one of the class's pairs.
    pub example: (HostId, HostId),
    /// Number of ordered pairs of hosts in the class.
    pub pairs: u64,
    /// Rate of the sender's link.
    pub sender: Rate,
    /// Rate of the receiver's link.
    pub receiver: Rate,
    /// Paths from the sender to the receiver, by the rates of their links. Not empty.
    pub forth: Vec<Kind>,
    /// Paths back, by the rates of their links. Not empty.
    pub back: Vec<Kind>,
    /// Whether a switch chooses among several paths for a packet to the receiver.
    pub spreads: bool,
}

const NO_WAY: u32 = u32::MAX;

/// Paths between two leaves: their kinds there and back, and whether there are several to choose from.
type Relation = (Vec<Kind>, Vec<Kind>, bool);

impl PathClass {
    /// Returns the number of links of the longest path there.
    pub fn links(&self) -> u32 {
        self.forth.iter().map(|kind| kind.rates.len() as u32).max().unwrap_or_default()
    }
    /// Returns the propagation delay there and back, on the longest paths.
    pub fn propagation(&self) -> Duration {
        let longest = |kinds: &[Kind]| kinds.iter().map(|kind| kind.propagation).max().unwrap_or_default();
        longest(&self.forth).saturating_add(longest(&self.back))
    }
    /// Returns the longest round trip in an empty network of a packet that takes `forth` on each link and an answer
    /// that takes `back`.
    pub fn base_rtt(&self, forth: Bytes, back: Bytes) -> Duration {
        let longest = |kinds: &[Kind], size| kinds.iter().map(|kind| kind.time_for(size)).max().unwrap_or_default();
        longest(&self.forth, forth).saturating_add(longest(&self.back, back))
    }
    /// Returns the rate of the slowest link of any of the paths there.
    pub fn bottleneck(&self) -> Rate {
        self.forth.iter().map(Kind::bottleneck).min().unwrap_or_default()
    }
    /// Returns the rate at which sender and receiver can exchange data on paths of this kind: where packets may spread
    /// over several paths, as much as both hosts' links take, unless there are too few of this kind for that.
    pub fn rate_on(&self, kind: &Kind) -> Rate {
        let all_alike = self.forth.windows(2).all(|two| two[0].bottleneck() == two[1].bottleneck());
        let most = self.sender.min(self.receiver);
        match self.spreads {
            true if all_alike => most,
            true => Rate::from_bps(kind.bottleneck().as_bps().saturating_mul(kind.ways)).min(most),
            false => kind.bottleneck(),
        }
    }
}

impl PathClasses {
    /// Creates the classes of a network. `kinds` gives the paths between leaves where links between switches are
    /// unlike.
    pub(super) fn new(graph: &Graph, routes: &Routes, kinds: Option<&Kinds>) -> Self {
        let mut classes = None;
        for bits in PRECISIONS {
            let found = Self::with_precision(graph, routes, kinds, bits);
            if found.classes.len() <= MOST {
                return found;
            }
            classes = Some(found);
        }
        classes.expect("at least one precision was tried")
    }

    /// Returns the class of a pair of hosts' NICs; `None` where no path leads from one to the other.
    #[inline]
    pub fn of(&self, routes: &Routes, src: HostId, dst: HostId) -> Option<usize> {
        let between = match (routes.leaf_of(src), routes.leaf_of(dst)) {
            (Some(from), Some(to)) => self.between[from * self.leaves + to],
            (None, None) => 0,
            _ => return None,
        };
        let key = (between, self.links[src.index()], self.links[dst.index()]);
        self.numbers.get(&key).map(|&number| number as usize)
    }
    /// Returns all classes.
    pub fn all(&self) -> &[PathClass] {
        &self.classes
    }

    fn with_precision(graph: &Graph, routes: &Routes, kinds: Option<&Kinds>, bits: u32) -> Self {
        let link_of = |host: usize| &graph.links[routes.ports().of_host(HostId(host as u32)).link as usize];
        let mut known: BTreeMap<(Rate, Duration), u32> = BTreeMap::new();
        let mut links = Vec::with_capacity(graph.hosts.len());
        for host in 0..graph.hosts.len() {
            let (link, next) = (link_of(host), known.len() as u32);
            links.push(*known.entry((link.rate, rounded_up(link.delay, bits))).or_insert(next));
        }
        let mut of_links = vec![(Rate::ZERO, Duration::ZERO); known.len()];
        known.into_iter().for_each(|(link, number)| of_links[number as usize] = link);

        let leaves = routes.leaves().len();
        let mut relations = Relations::new(graph, routes, kinds, bits);
        let mut between = Vec::with_capacity(leaves * leaves);
        for from in 0..leaves {
            between.extend((0..leaves).map(|to| relations.number(from, to)));
        }
        let mut classes = Self { links, between, leaves, numbers: BTreeMap::new(), classes: Vec::new() };
        classes.number_pairs(graph, routes, &of_links, &relations.list);
        classes
    }

    /// Numbers the classes that have pairs.
    fn number_pairs(&mut self, graph: &Graph, routes: &Routes, links: &[(Rate, Duration)], relations: &[Relation]) {
        // First two hosts and the number of hosts, per leaf and kind of link.
        let mut hosts: Vec<BTreeMap<u32, (Vec<HostId>, u64)>> = vec![BTreeMap::new(); self.leaves.max(1)];
        for host in (0..graph.hosts.len() as u32).map(HostId) {
            let (first, count) = hosts[routes.leaf_of(host).unwrap_or(0)].entry(self.links[host.index()]).or_default();
            first.extend((first.len() < 2).then_some(host));
            *count += 1;
        }
        for (from, senders) in hosts.iter().enumerate() {
            for (to, receivers) in hosts.iter().enumerate() {
                let relation = self.between.get(from * self.leaves + to).copied().unwrap_or(0);
                if relation == NO_WAY {
                    continue;
                }
                for (&a, (src, sending)) in senders {
                    for (&b, (dst, receiving)) in receivers {
                        let is_same = from == to && a == b;
                        let Some(example) = (if is_same { src.get(1) } else { dst.first() }).map(|&dst| (src[0], dst))
                        else {
                            continue;
                        };
                        let pairs = sending * (receiving - u64::from(is_same));
                        let next = self.classes.len() as u32;
                        let number = *self.numbers.entry((relation, a, b)).or_insert(next);
                        if number == next {
                            let relation = (self.leaves > 0).then(|| &relations[relation as usize]);
                            self.classes.push(PathClass::new(relation, links[a as usize], links[b as usize], example));
                        }
                        self.classes[number as usize].pairs += pairs;
                    }
                }
            }
        }
    }
}

impl PathClass {
    /// Creates the class between hosts with these links; without a relation the hosts stand back to back, and share one
    /// link.
    fn new(
        relation: Option<&Relation>,
        first: (Rate, Duration),
        last: (Rate, Duration),
        example: (HostId, HostId),
    ) -> Self {
        let around = |kinds: &[Kind]| -> Vec<Kind> {
            kinds.iter().map(|kind| kind.and(first.0, first.1).and(last.0, last.1)).collect()
        };
        let alone = vec![Kind::NONE.and(first.0, first.1)];
        let (forth, back, spreads) = match relation {
            Some((forth, back, spreads)) => (around(forth), around(back), *spreads),
            None => (alone.clone(), alone, false),
        };
        Self { example, pairs: 0, sender: first.0, receiver: last.0, forth, back, spreads }
    }
}

/// Paths between leaves, with each kind numbered once.
struct Relations<'a> {
    graph: &'a Graph,
    routes: &'a Routes,
    kinds: Option<&'a Kinds>,
    bits: u32,
    /// Number of links between each switch and the leaf `towards`, where links between switches are alike.
    lengths: Vec<Option<u32>>,
    towards: usize,
    numbers: BTreeMap<(Vec<Kind>, Vec<Kind>, bool), u32>,
    /// Number of each relation by its unrounded description: sets of kinds there and back, or a length.
    short_cuts: BTreeMap<(u32, u32, bool), u32>,
    list: Vec<Relation>,
}

impl<'a> Relations<'a> {
    fn new(graph: &'a Graph, routes: &'a Routes, kinds: Option<&'a Kinds>, bits: u32) -> Self {
        Self {
            graph,
            routes,
            kinds,
            bits,
            lengths: Vec::new(),
            towards: usize::MAX,
            numbers: BTreeMap::new(),
            short_cuts: BTreeMap::new(),
            list: Vec::new(),
        }
    }

    /// Returns the number of the paths from one leaf to another.
    fn number(&mut self, from: usize, to: usize) -> u32 {
        let spreads = from != to && self.routes.next_hops(self.routes.leaves()[from], to).len() > 1;
        let ids = match self.kinds {
            Some(kinds) => Some((kinds.id(from, to), kinds.id(to, from))),
            // Paths there and back are equally long.
            None => self.length(to, from).map(|length| (length, length)),
        };
        let Some((forth, back)) = ids else { return NO_WAY };
        if let Some(&known) = self.short_cuts.get(&(forth, back, spreads)) {
            return known;
        }
        let of = |from, to, length| match self.kinds {
            Some(kinds) => self.rounded(kinds.between(from, to)),
            None => self.rounded(&[self.uniform(length)]),
        };
        let relation = (of(from, to, forth), of(to, from, back), spreads);
        let number = if relation.0.is_empty() || relation.1.is_empty() {
            NO_WAY
        } else {
            let next = self.list.len() as u32;
            let number = *self.numbers.entry(relation.clone()).or_insert(next);
            if number == next {
                self.list.push(relation);
            }
            number
        };
        self.short_cuts.insert((forth, back, spreads), number);
        number
    }

    /// Returns the kind of a path of `length` links between switches, all of which are alike.
    fn uniform(&self, length: u32) -> Kind {
        let link = self.graph.links.iter().find(|link| link.a.switch().is_some() && link.b.switch().is_some());
        let all = link.into_iter().flat_map(|link| (0..length).map(move |_| link));
        all.fold(Kind::NONE, |kind, link| kind.and(link.rate, link.delay))
    }

    /// Returns the number of links on the shortest paths from one leaf to another; fast when called for one `to` after
    /// the other.
    fn length(&mut self, from: usize, to: usize) -> Option<u32> {
        let routes = self.routes;
        if self.towards != to {
            self.towards = to;
            self.lengths = vec![None; self.graph.switches.len()];
            self.lengths[routes.leaves()[to].index()] = Some(0);
        }
        let (mut passed, mut at) = (Vec::new(), routes.leaves()[from]);
        let mut length = loop {
            if let Some(known) = self.lengths[at.index()] {
                break known;
            }
            passed.push(at);
            let port = *routes.next_hops(at, to).first()?;
            at = routes.ports().of(at)[usize::from(port)].peer.switch()?;
        };
        while let Some(switch) = passed.pop() {
            length += 1;
            self.lengths[switch.index()] = Some(length);
        }
        Some(length)
    }

    fn rounded(&self, kinds: &[Kind]) -> Vec<Kind> {
        let round = |kind: &Kind| Kind { propagation: rounded_up(kind.propagation, self.bits), ..kind.clone() };
        let distinct: BTreeSet<Kind> = kinds.iter().map(round).collect();
        distinct.into_iter().collect()
    }
}

/// Returns the least duration of at most `bits` significant bits that is no shorter than `time`.
fn rounded_up(time: Duration, bits: u32) -> Duration {
    let ps = time.as_ps();
    let below = (u64::BITS - ps.leading_zeros()).saturating_sub(bits);
    if below == 0 {
        return time;
    }
    Duration::from_ps((ps >> below).saturating_add(u64::from(ps.trailing_zeros() < below)) << below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_rounded_up_to_few_bits() {
        let of = |ps: u64, bits| rounded_up(Duration::from_ps(ps), bits).as_ps();
        assert_eq!((of(0, 1), of(5, 64), of(5, 3)), (0, 5, 5));
        assert_eq!((of(5, 2), of(7, 2), of(8, 1), of(9, 1)), (6, 8, 8, 16));
    }
}
