//! How much of each link an offered load takes.

use std::collections::BTreeMap;

use selvedge_units::{HostId, Rate, SwitchId};

use super::{Graph, InnerNics, Node, Routes};

/// Hosts that each offer a fraction of their link's rate, spread evenly over others.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    /// Who sends.
    pub from: Vec<HostId>,
    /// Who receives, evenly; nobody sends to itself.
    pub to: Vec<HostId>,
    /// What each sender offers, as a fraction of its link's rate.
    pub load: f64,
}

/// The load of every direction of every link, as a fraction of its rate, when flows spread evenly
/// over equal-cost paths. What stays inside a server loads its own network.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkLoads {
    /// Per link: from `a` to `b`, and from `b` to `a`.
    loads: Vec<[f64; 2]>,
}

/// One direction of one link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkLoad {
    /// Index of the link.
    pub link: u32,
    /// Whether it is the direction from `a` to `b`.
    pub from_a: bool,
    /// Fraction of the rate that is in use; above 1 cannot be carried.
    pub load: f64,
}

impl LinkLoads {
    /// The loads that `demands` put on the links of `graph`, along `routes`.
    ///
    /// Takes O(demands x leaves x links): flows are summed over the hosts of each leaf, and flow by
    /// leaf downwards from the farthest switch. Pairs inside servers are counted one by one.
    pub fn new(graph: &Graph, routes: &Routes, demands: &[Demand]) -> Self {
        let mut bps = vec![[0.0; 2]; graph.links.len()];
        let inner = InnerNics::new(graph, routes.ports());
        for demand in demands {
            Spread { graph, routes, inner: &inner, bps: &mut bps }.add(demand);
        }
        for (load, link) in bps.iter_mut().zip(&graph.links) {
            *load = load.map(|bps| bps / link.rate.as_bps() as f64);
        }
        Self { loads: bps }
    }
    /// The load of one direction of one link.
    pub fn of(&self, link: u32, from_a: bool) -> f64 {
        self.loads[link as usize][usize::from(!from_a)]
    }
    /// The most loaded direction of any link; the first of them. `None` without links.
    pub fn worst(&self) -> Option<LinkLoad> {
        let all = (0..).zip(&self.loads).flat_map(|(link, &[there, back])| {
            [LinkLoad { link, from_a: true, load: there }, LinkLoad { link, from_a: false, load: back }]
        });
        all.reduce(|worst, next| if next.load > worst.load { next } else { worst })
    }
}

/// The loads when every host offers `load` of its link's rate, evenly to all others.
pub fn uniform_link_loads(graph: &Graph, routes: &Routes, load: f64) -> LinkLoads {
    let all: Vec<HostId> = graph.host_ids().collect();
    LinkLoads::new(graph, routes, &[Demand { from: all.clone(), to: all, load }])
}

/// Adds bits per second to the links' directions.
struct Spread<'a> {
    graph: &'a Graph,
    routes: &'a Routes,
    inner: &'a InnerNics,
    bps: &'a mut [[f64; 2]],
}

/// What does not leave servers.
#[derive(Default)]
struct Inside {
    /// By host: what it would send, and receive, outside otherwise.
    of_host: BTreeMap<HostId, [f64; 2]>,
    /// The same between leaves.
    between: BTreeMap<(usize, usize), f64>,
}

impl Inside {
    fn of(&self, host: HostId) -> [f64; 2] {
        self.of_host.get(&host).copied().unwrap_or_default()
    }
}

impl Spread<'_> {
    fn add(&mut self, demand: &Demand) {
        let mut receives = vec![false; self.graph.hosts.len()];
        demand.to.iter().for_each(|host| receives[host.index()] = true);
        // What each sender offers to each receiver.
        let leaves = self.routes.leaves().len().max(1);
        let mut offers = vec![0.0; self.graph.hosts.len()];
        let mut offers_by_leaf = vec![0.0; leaves];
        for &host in &demand.from {
            let others = demand.to.len() - usize::from(receives[host.index()]);
            if others == 0 {
                continue;
            }
            let bps = demand.load * self.rate(host).as_bps() as f64;
            offers[host.index()] = bps / others as f64;
            offers_by_leaf[self.leaf(host)] += offers[host.index()];
        }
        let inside = self.add_inside(demand, &offers);
        for &host in &demand.from {
            let others = demand.to.len() - usize::from(receives[host.index()]);
            let bps = offers[host.index()] * others as f64 - inside.of(host)[0];
            self.count(self.routes.ports().of_host(host).link, Node::Host(host), bps);
        }
        let total: f64 = offers_by_leaf.iter().sum();
        let mut receivers_by_leaf = vec![0.0; leaves];
        for &host in &demand.to {
            receivers_by_leaf[self.leaf(host)] += 1.0;
            let port = self.routes.ports().of_host(host);
            // Back to back, the sender's end was counted above.
            if port.peer.switch().is_some() {
                self.count(port.link, port.peer, total - offers[host.index()] - inside.of(host)[1]);
            }
        }
        for (leaf, &receivers) in receivers_by_leaf.iter().enumerate() {
            if receivers > 0.0 && !self.routes.leaves().is_empty() {
                let withheld = |from| inside.between.get(&(from, leaf)).copied().unwrap_or(0.0);
                let outside = (0..).zip(&offers_by_leaf).map(|(from, offers)| offers * receivers - withheld(from));
                self.add_towards(leaf, &outside.collect::<Vec<_>>());
            }
        }
    }
    /// Adds what stays inside servers, where `offers` is what each host offers to each receiver.
    fn add_inside(&mut self, demand: &Demand, offers: &[f64]) -> Inside {
        let mut inside = Inside::default();
        let mut receivers: BTreeMap<Node, Vec<HostId>> = BTreeMap::new();
        for &host in &demand.to {
            if let Some((_, server)) = self.inner.of(host) {
                receivers.entry(server).or_default().push(host);
            }
        }
        for &src in &demand.from {
            let Some((_, server)) = self.inner.of(src) else { continue };
            let bps = offers[src.index()];
            for &dst in receivers.get(&server).into_iter().flatten().filter(|&&dst| dst != src) {
                let (from, to) = self.inner.between(src, dst);
                self.count(self.routes.ports().of_host(from).link, Node::Host(from), bps);
                self.count(self.routes.ports().of_host(to).link, server, bps);
                inside.of_host.entry(src).or_default()[0] += bps;
                inside.of_host.entry(dst).or_default()[1] += bps;
                *inside.between.entry((self.leaf(src), self.leaf(dst))).or_default() += bps;
            }
        }
        inside
    }
    /// Lets the flows to one leaf, `from_leaves` in bits per second, run down the routes, each switch after all that
    /// are farther away.
    fn add_towards(&mut self, leaf: usize, from_leaves: &[f64]) {
        let switches = self.graph.switches.len();
        let mut through = vec![0.0; switches];
        for (source, &bps) in self.routes.leaves().iter().zip(from_leaves) {
            through[source.index()] = bps;
        }
        let mut waiting_for = vec![0u32; switches];
        for switch in (0..switches as u32).map(SwitchId) {
            self.next_switches(switch, leaf).for_each(|(_, next)| waiting_for[next.index()] += 1);
        }
        let mut ready: Vec<SwitchId> =
            (0..switches as u32).map(SwitchId).filter(|switch| waiting_for[switch.index()] == 0).collect();
        while let Some(switch) = ready.pop() {
            let hops = self.routes.next_hops(switch, leaf);
            let share = through[switch.index()] / hops.len() as f64;
            let next: Vec<_> = self.next_switches(switch, leaf).collect();
            for (link, next) in next {
                self.count(link, Node::Switch(switch), share);
                through[next.index()] += share;
                waiting_for[next.index()] -= 1;
                if waiting_for[next.index()] == 0 {
                    ready.push(next);
                }
            }
        }
    }
    fn next_switches(&self, switch: SwitchId, leaf: usize) -> impl Iterator<Item = (u32, SwitchId)> {
        let ports = self.routes.ports().of(switch);
        let hops = self.routes.next_hops(switch, leaf).iter();
        hops.filter_map(|&port| Some((ports[usize::from(port)].link, ports[usize::from(port)].peer.switch()?)))
    }
    fn count(&mut self, link: u32, from: Node, bps: f64) {
        let direction = usize::from(self.graph.links[link as usize].a != from);
        self.bps[link as usize][direction] += bps;
    }
    fn rate(&self, host: HostId) -> Rate {
        self.graph.links[self.routes.ports().of_host(host).link as usize].rate
    }
    fn leaf(&self, host: HostId) -> usize {
        self.routes.leaf_of(host).unwrap_or(0)
    }
}
