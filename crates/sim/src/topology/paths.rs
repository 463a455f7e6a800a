//! Properties of the path between two hosts in an empty network.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::sync::{Arc, OnceLock};

use selvedge_units::{Bytes, Duration, HostId, Rate, SwitchId};

use super::choice::Choice;
use super::classes::PathClasses;
use super::kinds::{Kind, Kinds};
use super::{Graph, InnerNics, Port, Routes};
use crate::ConfigError;

/// Sizes that turn payload into bytes on a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Framing {
    /// Payload of a full packet; above zero.
    pub mtu: Bytes,
    /// Bytes of each packet on a link beyond its payload: headers, trailers, preamble and gap.
    pub overhead: Bytes,
    /// Least bytes of a packet on a link, preamble and gap included.
    pub least: Bytes,
}

impl Framing {
    /// Returns the bytes on a link of a packet with this payload.
    pub fn on_wire(&self, payload: Bytes) -> Bytes {
        (payload + self.overhead).max(self.least)
    }
}

/// Properties of the path from one host to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    /// Host at which the path begins.
    pub src: HostId,
    /// Host at which the path ends.
    pub dst: HostId,
    /// Number of links.
    pub links: u32,
    /// Propagation delay, one way.
    pub propagation: Duration,
    /// Rate of the slowest link.
    pub bottleneck: Rate,
}

/// Bandwidth-delay product of a path, there and back, by propagation alone. Ordered by size; of equal ones, that whose
/// sender is slowest is greater.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Bdp {
    /// Rate of the slowest link times twice the propagation delay.
    pub bytes: Bytes,
    /// No link of the path is slower than its first.
    pub sender_is_slowest: bool,
}

/// Paths between any two hosts of a network.
///
/// Where shortest paths of equal length differ, their properties are those of the one with the fastest bottleneck, then
/// the least delay. Ideal completion times are those of the best path for each size, so that no flow that keeps to one
/// path beats its ideal. [`Paths::longest`] is about the slowest, since some flow may take it.
#[derive(Clone, Debug)]
pub struct Paths {
    graph: Arc<Graph>,
    routes: Arc<Routes>,
    inner: InnerNics,
    /// Choice among unlike paths; `None`: all paths are alike.
    choice: Option<Choice>,
    /// Longest path, computed on first use.
    longest: OnceLock<Option<Path>>,
    /// Kinds of unlike paths, computed on first use.
    kinds: OnceLock<Kinds>,
    /// Classes of paths, computed on first use.
    classes: OnceLock<PathClasses>,
}

impl Paths {
    /// Creates the paths through `graph`.
    ///
    /// # Errors
    /// Those of [`Graph::check`].
    pub fn of(graph: Graph) -> Result<Self, ConfigError> {
        graph.check()?;
        let routes = Arc::new(Routes::new(&graph, &[]));
        Ok(Self::new(Arc::new(graph), routes))
    }
    /// Creates the paths along `routes`.
    pub fn new(graph: Arc<Graph>, routes: Arc<Routes>) -> Self {
        let inner = InnerNics::new(&graph, routes.ports());
        let choice = Choice::new(&graph, &routes);
        Self {
            graph,
            routes,
            inner,
            choice,
            longest: OnceLock::new(),
            kinds: OnceLock::new(),
            classes: OnceLock::new(),
        }
    }
    /// Returns hosts, switches and links.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Returns the routes.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }
    /// Returns the links from `src` to `dst`, by their index, between the NICs that they use towards each other; `None`
    /// when they are the same host or no path is left.
    pub fn links(&self, src: HostId, dst: HostId) -> Option<PathLinks<'_>> {
        self.links_by(self.choice.as_ref().map(|choice| &*choice.best), src, dst)
    }
    /// Returns the links of the slowest of several shortest paths from `src` to `dst`.
    fn slowest_links(&self, src: HostId, dst: HostId) -> Option<PathLinks<'_>> {
        self.links_by(self.slowest(), src, dst)
    }
    /// Returns the port of the slowest path, per switch and leaf; `None`: all paths are alike.
    fn slowest(&self) -> Option<&[u16]> {
        self.choice.as_ref().map(|choice| &*choice.slowest)
    }
    /// Returns the port of `switch` towards another `leaf` by the table `chosen`; without a table, that of any shortest
    /// path.
    #[inline]
    fn port_towards(&self, chosen: Option<&[u16]>, switch: SwitchId, leaf: usize) -> Port {
        let port = match chosen {
            Some(chosen) => chosen[switch.index() * self.routes.leaves().len() + leaf],
            None => self.routes.next_hops(switch, leaf)[0],
        };
        self.routes.ports().of(switch)[usize::from(port)]
    }
    fn links_by<'a>(&'a self, chosen: Option<&'a [u16]>, src: HostId, dst: HostId) -> Option<PathLinks<'a>> {
        let (src, dst) = self.inner.between(src, dst);
        let leaf = match (self.routes.leaf_of(src), self.routes.leaf_of(dst)) {
            _ if src == dst => return None,
            (None, None) => 0,
            (from, to) => {
                let (from, to) = (from?, to?);
                let arrives = from == to || !self.routes.next_hops(self.routes.leaves()[from], to).is_empty();
                arrives.then_some(to)?
            }
        };
        Some(PathLinks { paths: self, chosen, dst, leaf, at: At::Source(src) })
    }
    /// Returns the properties of the path from `src` to `dst`; `None` when they are the same host or no path is left.
    pub fn between(&self, src: HostId, dst: HostId) -> Option<Path> {
        Some(self.facts(src, dst, self.links(src, dst)?))
    }
    fn facts(&self, src: HostId, dst: HostId, links: PathLinks<'_>) -> Path {
        let mut path = Path { src, dst, links: 0, propagation: Duration::ZERO, bottleneck: Rate::MAX };
        for link in links {
            let link = &self.graph.links[link as usize];
            path.links += 1;
            path.propagation += link.delay;
            path.bottleneck = path.bottleneck.min(link.rate);
        }
        path
    }
    /// Returns the path with the longest propagation delay that a flow may take; among those, with the most links;
    /// among those, between the lowest numbers. `None` when no two hosts can reach each other.
    pub fn longest(&self) -> Option<Path> {
        *self.longest.get_or_init(|| self.find_longest())
    }
    fn find_longest(&self) -> Option<Path> {
        let far = self.far_hosts(|_| ());
        // Receivers are the outer loop: paths from all leaves to one have much in common. Of equal paths the first
        // sender's counts.
        let mut longest: Option<(_, _, (HostId, HostId))> = None;
        for (leaf, to) in far.iter().enumerate() {
            let here = to.get(1).map(|&second| (leaf, to[0], second));
            // Both directions count: the paths there and back may differ.
            let others = far.iter().enumerate().filter(|&(other, _)| other != leaf);
            let others = others.flat_map(|(other, from)| self.apart(from, to).map(move |(src, dst)| (other, src, dst)));
            let mut rests = Rests::new(self, leaf);
            for (from, src, dst) in here.into_iter().chain(others) {
                let Some(length) = rests.length(src, dst) else { continue };
                let order = Reverse((from, from != leaf, leaf));
                if longest.is_none_or(|(best, first, _)| (length, order) > (best, first)) {
                    longest = Some((length, order, (src, dst)));
                }
            }
        }
        let (_, _, (src, dst)) = longest?;
        Some(self.facts(src, dst, self.slowest_links(src, dst)?))
    }
    /// Returns all shortest paths from `src` to `dst`, by the rates of their links; none when they are the same host or
    /// no path is left. Where paths are alike, one stands for all.
    pub fn kinds(&self, src: HostId, dst: HostId) -> Vec<Kind> {
        let Some(links) = self.links(src, dst) else { return Vec::new() };
        let leaves = |(src, dst)| self.routes.leaf_of(src).zip(self.routes.leaf_of(dst));
        let (src, dst) = self.inner.between(src, dst);
        let (Some(_), Some((from, to))) = (&self.choice, leaves((src, dst))) else {
            let links = links.map(|link| &self.graph.links[link as usize]);
            return vec![links.fold(Kind::NONE, |kind, link| kind.and(link.rate, link.delay))];
        };
        let kinds = self.all_kinds();
        let [first, last] = [src, dst].map(|host| &self.graph.links[self.routes.ports().of_host(host).link as usize]);
        let whole = |kind: &Kind| kind.and(first.rate, first.delay).and(last.rate, last.delay);
        kinds.between(from, to).iter().map(whole).collect()
    }
    fn all_kinds(&self) -> &Kinds {
        self.kinds.get_or_init(|| Kinds::new(&self.graph, &self.routes))
    }
    /// Returns the classes of pairs of hosts whose paths are alike.
    pub fn classes(&self) -> &PathClasses {
        self.classes.get_or_init(|| {
            let kinds = self.choice.as_ref().map(|_| self.all_kinds());
            PathClasses::new(&self.graph, &self.routes, kinds)
        })
    }
    /// Returns the class of the path between two hosts, by the NICs that they use towards each other; `None` when they
    /// are the same host or no path is left.
    pub fn class_of(&self, src: HostId, dst: HostId) -> Option<usize> {
        let (src, dst) = self.inner.between(src, dst);
        if src == dst { None } else { self.classes().of(&self.routes, src, dst) }
    }
    /// Returns pairs of hosts one of which has the longest round trip ([`Paths::base_rtt`]) of all between hosts with
    /// links of their rates, whatever the packets' sizes: of pairs with paths there and back whose links have the same
    /// rates, the one with the longest propagation.
    pub fn farthest(&self) -> Vec<(HostId, HostId)> {
        let mut farthest = BTreeMap::new();
        for (src, dst) in self.far_pairs() {
            let back = self.kinds(dst, src);
            for forth in self.kinds(src, dst) {
                for back in &back {
                    let propagation = forth.propagation.saturating_add(back.propagation);
                    let key = (self.host_rate(src), self.host_rate(dst), forth.rates.clone(), back.rates.clone());
                    let longest = farthest.entry(key).or_insert((propagation, src, dst));
                    if propagation > longest.0 {
                        *longest = (propagation, src, dst);
                    }
                }
            }
        }
        let farthest: BTreeSet<_> = farthest.into_values().map(|(_, src, dst)| (src, dst)).collect();
        farthest.into_iter().collect()
    }
    /// Returns the two hosts that are farthest apart, for each two leaves and each two rates of hosts' links.
    fn far_pairs(&self) -> Vec<(HostId, HostId)> {
        let far = self.far_hosts(|host| self.host_rate(host));
        let of = |(group, from): (usize, &Vec<HostId>)| {
            let here = from.get(1).map(|&second| (from[0], second));
            let others = far.iter().enumerate().filter(|&(other, _)| other != group);
            let apart: Vec<_> = others.flat_map(|(_, to)| self.apart(from, to)).collect();
            here.into_iter().chain(apart).collect::<Vec<_>>()
        };
        far.iter().enumerate().flat_map(of).collect()
    }
    /// Returns the largest bandwidth-delay product of any path: the rate of its slowest link times twice its
    /// propagation delay. IRN section 4.1: 40 Gb/s x 24 us = 120 KB.
    pub fn bdp(&self) -> Bdp {
        self.bdps().into_values().max().unwrap_or_default()
    }
    /// Returns the largest bandwidth-delay product of the paths that begin at links of each rate. Inside servers no
    /// path counts for more than the fastest link of any host carries.
    pub fn bdps(&self) -> BTreeMap<Rate, Bdp> {
        let most = self.fastest_host();
        let mut bdps: BTreeMap<Rate, Bdp> = BTreeMap::new();
        for (src, dst) in self.far_pairs() {
            let first = self.host_rate(self.inner.between(src, dst).0);
            // A flow may take any kind of path.
            for kind in self.kinds(src, dst) {
                let bytes = kind.bottleneck().min(most).amount_in(kind.propagation.saturating_mul(2));
                let bdp = bdps.entry(first).or_default();
                *bdp = (*bdp).max(Bdp { bytes, sender_is_slowest: kind.bottleneck() >= first });
            }
        }
        bdps
    }
    /// Returns the rate of the link of a host's NIC.
    pub fn host_rate(&self, host: HostId) -> Rate {
        self.graph.links[self.routes.ports().of_host(host).link as usize].rate
    }
    /// Returns the distinct rates of all NICs' links, the slowest first, those inside servers included.
    pub fn host_rates(&self) -> BTreeSet<Rate> {
        (0..self.graph.hosts.len() as u32).map(|host| self.host_rate(HostId(host))).collect()
    }
    /// Returns the rate of the slowest link of any NIC.
    pub fn slowest_host(&self) -> Rate {
        self.host_rates().first().copied().unwrap_or_default()
    }
    /// Returns the rate of the fastest link of any host, those inside servers left out.
    pub fn fastest_host(&self) -> Rate {
        (0..self.graph.host_count()).map(|host| self.host_rate(HostId(host))).max().unwrap_or_default()
    }
    /// Returns the round trip in an empty network of a packet that takes `forth` on each link and an answer that takes
    /// `back`, on those of the shortest paths on which each takes longest: serialisation and propagation at every link,
    /// both ways. Zero sizes give the propagation alone. `None` when `src` and `dst` are the same host or no path is
    /// left.
    pub fn base_rtt(&self, src: HostId, dst: HostId, forth: Bytes, back: Bytes) -> Option<Duration> {
        let one_way = |src, dst, size| self.kinds(src, dst).iter().map(|kind| kind.time_for(size)).max();
        Some(one_way(src, dst, forth)?.saturating_add(one_way(dst, src, back)?))
    }
    /// Returns the time of a flow of `size` in an empty network, from its start until its last packet is received:
    /// packets follow each other without a pause, and every node forwards a packet when it has received all of it.
    /// Exact for any mix of link rates. Of several paths, the one on which a flow of this size is fastest counts; a
    /// flow whose packets spread over them may be faster still, where links between switches are slower than hosts'.
    /// `None` when `src` and `dst` are the same host or no path is left.
    ///
    /// All packets are full but the last. With `a` and `b` the times of a full packet and of the last
    /// one on a link, the last packet arrives when the slowest chain of waits ends: full packets up
    /// to some link `j`, where the last one stops to wait for them, then the last one alone. Each full
    /// packet beyond the first waits at the slowest link so far. Hence, for `m` full packets, the
    /// maximum over `j` of `a_1 + .. + a_j + (m - 1) max(a_1 .. a_j) + b_j + .. + b_last`.
    ///
    /// # Panics
    /// When `size` or `framing.mtu` is zero.
    pub fn ideal_fct(&self, src: HostId, dst: HostId, size: Bytes, framing: Framing) -> Option<Duration> {
        assert!(!size.is_zero(), "a flow has at least one byte");
        let (src, dst) = self.inner.between(src, dst);
        let best = self.fct_along(self.links(src, dst)?, size, framing);
        let others = self.alternatives_between(src, dst).iter().map(|between| {
            let [first, last] = [src, dst].map(|host| self.routes.ports().of_host(host).link);
            let links = iter::once(first).chain(between.iter().copied()).chain([last]);
            self.fct_along(links, size, framing)
        });
        Some(others.fold(best, Duration::min))
    }

    /// Returns the links between switches of all paths where none of them is best for every flow; empty where one is.
    #[inline]
    fn alternatives_between(&self, src: HostId, dst: HostId) -> &[Vec<u32>] {
        let Some(choice) = self.choice.as_ref().filter(|choice| !choice.alternatives.is_empty()) else {
            return &[];
        };
        let leaves = self.routes.leaf_of(src).zip(self.routes.leaf_of(dst));
        leaves.and_then(|leaves| choice.alternatives.get(&leaves)).map_or(&[], Vec::as_slice)
    }

    /// Returns the time of a flow of `size` along these links, like [`Paths::ideal_fct`].
    #[inline]
    fn fct_along(&self, links: impl Iterator<Item = u32>, size: Bytes, framing: Framing) -> Duration {
        let full = size.pieces(framing.mtu) - 1;
        let last = framing.on_wire(size - framing.mtu * full);
        let (mut propagation, mut alone) = (0u64, 0u64);
        let (mut full_sum, mut full_max) = (0u64, 0u64);
        // Delay of the last packet beyond `alone`, because of the full packets before it.
        let mut delayed = 0u64;
        for link in links {
            let link = &self.graph.links[link as usize];
            propagation = propagation.saturating_add(link.delay.as_ps());
            if full > 0 {
                let time = link.rate.time_for(framing.on_wire(framing.mtu)).as_ps();
                full_sum = full_sum.saturating_add(time);
                full_max = full_max.max(time);
                let waits = full_sum.saturating_add(full_max.saturating_mul(full - 1));
                delayed = delayed.max(waits.saturating_sub(alone));
            }
            alone = alone.saturating_add(link.rate.time_for(last).as_ps());
        }
        Duration::from_ps(propagation.saturating_add(alone).saturating_add(delayed))
    }

    /// Returns the hosts of two leaves between which the longest path may run: the first ones, or where these share a
    /// server, either with another.
    fn apart(&self, from: &[HostId], to: &[HostId]) -> impl Iterator<Item = (HostId, HostId)> + use<> {
        let pair = |a: usize, b: usize| Some((*from.get(a)?, *to.get(b)?));
        let first = pair(0, 0).filter(|&(src, dst)| !self.inner.are_together(src, dst));
        let others = if first.is_none() { [pair(0, 1), pair(1, 0)] } else { [None; 2] };
        first.into_iter().chain(others.into_iter().flatten())
    }

    /// Returns, per leaf (there is one where there are no switches) and kind of hosts, the host with the longest link,
    /// and the next of those that do not share a server with it; for a leaf inside a server, any two.
    fn far_hosts<K: Ord>(&self, kind: impl Fn(HostId) -> K) -> Vec<Vec<HostId>> {
        let mut far: BTreeMap<(usize, K), Vec<HostId>> = BTreeMap::new();
        for host in (0..self.graph.hosts.len() as u32).map(HostId) {
            far.entry((self.routes.leaf_of(host).unwrap_or(0), kind(host))).or_default().push(host);
        }
        let mut far: Vec<_> = far.into_values().collect();
        for hosts in &mut far {
            let delay = |host: &HostId| self.graph.links[self.routes.ports().of_host(*host).link as usize].delay;
            hosts.sort_by_key(|host| (Reverse(delay(host)), *host));
            let second = |first: HostId| hosts[1..].iter().find(|host| !self.inner.are_together(first, **host));
            *hosts =
                hosts.first().map_or(Vec::new(), |&first| iter::once(first).chain(second(first).copied()).collect());
        }
        far
    }
}

/// Lengths of the slowest shortest paths to the hosts of one leaf: propagation delay and number of links. Common parts
/// are added up once.
struct Rests<'a> {
    paths: &'a Paths,
    leaf: usize,
    /// Length from a switch to the leaf, indexed by switch.
    known: Vec<Option<(Duration, u32)>>,
    /// Switches on the path to one with a known length, and the delays of their next links; empty between calls.
    passed: Vec<(SwitchId, Duration)>,
}

impl<'a> Rests<'a> {
    fn new(paths: &'a Paths, leaf: usize) -> Self {
        let mut known = vec![None; paths.routes.ports().switches()];
        if let Some(leaf) = paths.routes.leaves().get(leaf) {
            known[leaf.index()] = Some((Duration::ZERO, 0));
        }
        Self { paths, leaf, known, passed: Vec::new() }
    }

    /// Returns the length from `src` to `dst`, which is a host of the leaf; `None` when no path is left.
    fn length(&mut self, src: HostId, dst: HostId) -> Option<(Duration, u32)> {
        let Paths { graph, routes, .. } = self.paths;
        let links = self.paths.slowest_links(src, dst)?;
        let Some(from) = routes.leaf_of(src) else {
            let back_to_back = self.paths.facts(src, dst, links);
            return Some((back_to_back.propagation, back_to_back.links));
        };
        let (between, links) = self.rest(routes.leaves()[from]);
        let delay = |host| graph.links[routes.ports().of_host(host).link as usize].delay;
        Some((delay(src) + between + delay(dst), links + 2))
    }

    /// Returns the length from `switch`, which has a path, to the leaf.
    fn rest(&mut self, switch: SwitchId) -> (Duration, u32) {
        let mut at = switch;
        let mut rest = loop {
            if let Some(known) = self.known[at.index()] {
                break known;
            }
            let port = self.paths.port_towards(self.paths.slowest(), at, self.leaf);
            self.passed.push((at, self.paths.graph.links[port.link as usize].delay));
            at = port.peer.switch().expect("a path to a leaf leads over switches");
        };
        while let Some((switch, delay)) = self.passed.pop() {
            rest = (rest.0 + delay, rest.1 + 1);
            self.known[switch.index()] = Some(rest);
        }
        rest
    }
}

/// Links of a path in order, by their index in [`Graph::links`].
#[derive(Clone, Debug)]
pub struct PathLinks<'a> {
    paths: &'a Paths,
    /// Port to take, per switch and leaf; `None`: any of the shortest paths.
    chosen: Option<&'a [u16]>,
    dst: HostId,
    /// Index of the leaf of `dst`.
    leaf: usize,
    at: At,
}

#[derive(Clone, Copy, Debug)]
enum At {
    Source(HostId),
    Switch(SwitchId),
    Destination,
}

impl Iterator for PathLinks<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let routes = &self.paths.routes;
        let port = match self.at {
            At::Source(host) => routes.ports().of_host(host),
            At::Switch(switch) if switch == routes.leaves()[self.leaf] => {
                self.at = At::Destination;
                return Some(routes.ports().of_host(self.dst).link);
            }
            At::Switch(switch) => self.paths.port_towards(self.chosen, switch, self.leaf),
            At::Destination => return None,
        };
        self.at = port.peer.switch().map_or(At::Destination, At::Switch);
        Some(port.link)
    }
}
