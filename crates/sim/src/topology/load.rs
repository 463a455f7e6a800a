//! Load of each link under an offered traffic.

use std::collections::BTreeMap;

use selvedge_units::{HostId, Rate, SwitchId};

use super::{Graph, Group, InnerNics, Node, RouteTable, Routes};

/// Hosts that each offer a fraction of their link's rate, spread evenly over receivers.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    /// Senders.
    pub from: Vec<HostId>,
    /// Receivers, chosen evenly; no host sends to itself.
    pub to: Vec<HostId>,
    /// Load that each sender offers, as a fraction of its link's rate.
    pub load: f64,
}

/// Load of every direction of every link, as a fraction of its rate, when flows spread evenly over equal-cost paths.
/// Traffic inside a server loads the server's own network.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkLoads {
    /// Load from `a` to `b`, and from `b` to `a`, indexed by link.
    loads: Vec<[f64; 2]>,
}

/// Load of one direction of one link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkLoad {
    /// Index of the link.
    pub link: u32,
    /// Whether the direction leads from `a` to `b`.
    pub from_a: bool,
    /// Fraction of the rate that is in use; a load above 1 cannot be carried.
    pub load: f64,
}

impl LinkLoads {
    /// Returns the loads that `demands` put on the links of `graph`, along `routes`.
    ///
    /// Flows are summed over the hosts of each leaf, and run down towards each leaf from the farthest switch: in a
    /// fat-tree this takes O(demands x leaves x switches), where no two switches have the same neighbours O(demands x
    /// leaves x links). Pairs inside servers are counted one by one.
    pub fn new(graph: &Graph, routes: &Routes, demands: &[Demand]) -> Self {
        let mut bps = vec![[0.0; 2]; graph.links.len()];
        let inner = InnerNics::new(graph, routes.ports());
        let mut descent = Descent::new(routes);
        for demand in demands {
            Spread { graph, routes, inner: &inner, descent: &mut descent, bps: &mut bps }.add(demand);
        }
        for (load, link) in bps.iter_mut().zip(&graph.links) {
            *load = load.map(|bps| bps / link.rate.as_bps() as f64);
        }
        Self { loads: bps }
    }
    /// Returns the load of one direction of one link.
    pub fn of(&self, link: u32, from_a: bool) -> f64 {
        self.loads[link as usize][usize::from(!from_a)]
    }
    /// Returns the most loaded direction of any link, the first of several; `None` without links.
    pub fn worst(&self) -> Option<LinkLoad> {
        let all = (0..).zip(&self.loads).flat_map(|(link, &[there, back])| {
            [LinkLoad { link, from_a: true, load: there }, LinkLoad { link, from_a: false, load: back }]
        });
        all.reduce(|worst, next| if next.load > worst.load { next } else { worst })
    }
}

/// Returns the loads when every host offers `load` of its link's rate, evenly to all others.
pub fn uniform_link_loads(graph: &Graph, routes: &Routes, load: f64) -> LinkLoads {
    let all: Vec<HostId> = graph.host_ids().collect();
    LinkLoads::new(graph, routes, &[Demand { from: all.clone(), to: all, load }])
}

/// Sum of bits per second on the links' directions.
struct Spread<'a, 'b> {
    graph: &'a Graph,
    routes: &'a Routes,
    inner: &'a InnerNics,
    descent: &'a mut Descent<'b>,
    bps: &'a mut [[f64; 2]],
}

/// Traffic that stays inside servers.
#[derive(Default)]
struct Inside {
    /// Traffic in bits per second that each host would otherwise send to, and receive from, outside its server.
    of_host: BTreeMap<HostId, [f64; 2]>,
    /// Traffic in bits per second that would otherwise run between leaves.
    between: BTreeMap<(usize, usize), f64>,
}

impl Inside {
    fn of(&self, host: HostId) -> [f64; 2] {
        self.of_host.get(&host).copied().unwrap_or_default()
    }
}

impl Spread<'_, '_> {
    fn add(&mut self, demand: &Demand) {
        let mut receives = vec![false; self.graph.hosts.len()];
        demand.to.iter().for_each(|host| receives[host.index()] = true);
        // Rate that each sender offers to each receiver.
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
                self.descent.add_towards(leaf, outside);
            }
        }
        for (switch, port, bps) in self.descent.take() {
            self.count(self.routes.ports().of(switch)[usize::from(port)].link, Node::Switch(switch), bps);
        }
    }
    /// Adds the traffic that stays inside servers, where `offers` is the rate that each host offers to each receiver.
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

/// Distribution of flows along the routes towards a leaf, in bits per second.
///
/// A switch splits its traffic evenly among its next hops, and in regular networks many switches have the same next
/// hops: all leaves of a pod, all switches of a fat-tree that lead to the same core. Their traffic is therefore first
/// summed per *fan* (the switches that some ports lead to), and then split among the fan's members once, which touches
/// each switch a few times per leaf and not every link. The load of each link follows at the end.
struct Descent<'a> {
    routes: &'a Routes,
    /// Groups of ports that each switch uses, and the fans that they lead to; ascending, indexed by switch.
    uses: Vec<Vec<Use>>,
    /// Position in `uses` that was found last, indexed by switch. Neighbouring leaves often share it.
    latest: Vec<u32>,
    fans: Vec<Fan>,
    members: Vec<SwitchId>,
    /// State of each switch for the current leaf.
    at: Vec<At>,
    ready: Vec<SwitchId>,
}

/// Group of ports of a switch.
struct Use {
    group: u32,
    fan: u32,
    /// Bits per second that each port of the group has sent, towards all leaves.
    each: f64,
}

/// Switches that the ports of some group lead to: `members[offset..offset + len]`; each occurs once per link.
struct Fan {
    offset: u32,
    len: u32,
    /// Number of switches whose traffic into the fan towards the current leaf is not yet known.
    waiting_for: u32,
    /// Bits per second that each member gets from the switches whose traffic is known.
    each: f64,
}

#[derive(Clone, Copy, Default)]
struct At {
    /// Index in `uses` of the switch; `None`: the leaf itself, or no path.
    using: Option<u32>,
    /// Number of fans into the switch whose traffic is not yet known.
    waiting_for: u32,
    /// Bits per second that pass through the switch.
    through: f64,
}

impl<'a> Descent<'a> {
    fn new(routes: &'a Routes) -> Self {
        let table = routes.raw();
        let switches = routes.ports().switches();
        let mut descent = Self {
            routes,
            uses: Vec::with_capacity(switches),
            latest: vec![0; switches],
            fans: Vec::new(),
            members: Vec::new(),
            at: vec![At::default(); switches],
            ready: Vec::new(),
        };
        let mut known: BTreeMap<Box<[SwitchId]>, u32> = BTreeMap::new();
        for switch in (0..switches as u32).map(SwitchId) {
            let groups = &table.table[switch.index() * table.leaves..(switch.index() + 1) * table.leaves];
            // Neighbouring leaves mostly share their groups.
            let mut groups = groups.to_vec();
            groups.dedup();
            groups.sort_unstable();
            groups.dedup();
            let groups = groups.into_iter().filter(|&group| table.groups[group as usize].len > 0);
            let uses = groups.map(|group| {
                let hops = ports_of(&table, group).iter().map(|&port| routes.ports().of(switch)[usize::from(port)]);
                let next: Box<[SwitchId]> = hops.filter_map(|port| port.peer.switch()).collect();
                let fan = *known.entry(next).or_insert_with_key(|next| descent.add_fan(next));
                Use { group, fan, each: 0.0 }
            });
            let uses = uses.collect();
            descent.uses.push(uses);
        }
        descent
    }

    fn add_fan(&mut self, next: &[SwitchId]) -> u32 {
        let (offset, len) = (self.members.len() as u32, next.len() as u32);
        self.fans.push(Fan { offset, len, waiting_for: 0, each: 0.0 });
        self.members.extend(next);
        self.fans.len() as u32 - 1
    }

    /// Distributes the flows to one leaf, `from_leaves` in bits per second, along the routes, each switch after all
    /// that are farther away.
    fn add_towards(&mut self, leaf: usize, from_leaves: impl Iterator<Item = f64>) {
        let table = self.routes.raw();
        self.at.fill(At::default());
        for (source, bps) in self.routes.leaves().iter().zip(from_leaves) {
            self.at[source.index()].through = bps;
        }
        for (switch, (uses, latest)) in self.uses.iter().zip(&mut self.latest).enumerate() {
            let group = table.table[switch * table.leaves + leaf];
            if uses.get(*latest as usize).is_none_or(|one| one.group != group) {
                let Ok(index) = uses.binary_search_by_key(&group, |one| one.group) else { continue };
                *latest = index as u32;
            }
            let index = *latest as usize;
            self.at[switch].using = Some(index as u32);
            let fan = &mut self.fans[uses[index].fan as usize];
            fan.waiting_for += 1;
            if fan.waiting_for == 1 {
                for next in &self.members[fan.offset as usize..(fan.offset + fan.len) as usize] {
                    self.at[next.index()].waiting_for += 1;
                }
            }
        }
        let all = (0..self.at.len() as u32).map(SwitchId);
        self.ready.extend(all.filter(|switch| self.at[switch.index()].waiting_for == 0));
        while let Some(switch) = self.ready.pop() {
            let At { using: Some(using), through, .. } = self.at[switch.index()] else { continue };
            let Use { fan, each, .. } = &mut self.uses[switch.index()][using as usize];
            let fan = &mut self.fans[*fan as usize];
            let share = through / f64::from(fan.len);
            *each += share;
            fan.each += share;
            fan.waiting_for -= 1;
            if fan.waiting_for > 0 {
                continue;
            }
            let brought = std::mem::take(&mut fan.each);
            for next in &self.members[fan.offset as usize..(fan.offset + fan.len) as usize] {
                let at = &mut self.at[next.index()];
                at.through += brought;
                at.waiting_for -= 1;
                if at.waiting_for == 0 {
                    self.ready.push(*next);
                }
            }
        }
    }

    /// Returns the bits per second that ports of switches have sent, and resets them to zero.
    fn take(&mut self) -> Vec<(SwitchId, u16, f64)> {
        let table = self.routes.raw();
        let uses = (0..)
            .map(SwitchId)
            .zip(&mut self.uses)
            .flat_map(|(switch, uses)| uses.iter_mut().map(move |one| (switch, one)));
        let sent = uses.flat_map(|(switch, one)| {
            let each = std::mem::take(&mut one.each);
            ports_of(&table, one.group).iter().map(move |&port| (switch, port, each))
        });
        sent.collect()
    }
}

/// Returns the ports of a group.
fn ports_of<'a>(table: &RouteTable<'a>, group: u32) -> &'a [u16] {
    let Group { offset, len } = table.groups[group as usize];
    &table.members[offset as usize..(offset + len) as usize]
}

#[cfg(test)]
mod tests {
    use super::Descent;
    use crate::NoFiles;
    use crate::topology::{Routes, Topology};

    /// Splitting traffic once per link would be too slow for k = 64.
    #[test]
    fn what_many_switches_of_a_fat_tree_share_among_the_same_is_shared_once() {
        let text = "fat-tree = { k = 16, link = { rate = \"40Gbps\", delay = \"2us\" } }";
        let graph = toml::from_str::<Topology>(text).unwrap().build(&NoFiles).unwrap();
        let routes = Routes::new(&graph, &[]);
        let descent = Descent::new(&routes);
        // Edges of a pod split among its 8 aggregations; these, with those of other pods, among 8 cores; downwards
        // there is one path to each edge and aggregation. Between switches there are 2 x 1,024 links.
        let sizes: Vec<u32> = descent.fans.iter().map(|fan| fan.len).collect();
        assert_eq!(sizes.iter().filter(|&&len| len == 8).count(), 16 + 8);
        assert_eq!(sizes.iter().filter(|&&len| len == 1).count(), 128 + 128);
        assert_eq!(sizes.len(), 16 + 8 + 128 + 128);
    }
}
