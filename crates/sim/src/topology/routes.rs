//! Shortest paths.
//!
//! 1. Next hops are kept per switch and *leaf* (switch with hosts), not per host: a fat-tree of 8,192 hosts has 1,280
//!    switches and 512 leaves, hence 655,360 entries of 4 bytes.
//! 2. An entry is the index of a group of ports. Groups are shared: all edges of a fat-tree use the group of all
//!    uplinks for all destinations elsewhere.
//! 3. One breadth-first search over switches per leaf: O(leaves x links). Leaves with the same neighbours are *twins*,
//!    with the same paths but for the last link: one search serves all edges of a pod.

use std::collections::BTreeMap;

use selvedge_switch::forward;
pub use selvedge_switch::forward::Group;
use selvedge_units::{HostId, SwitchId};

use super::{Graph, Ports};

/// Equal-cost next hops from every switch towards every host, by number of links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    ports: Ports,
    leaves: Vec<SwitchId>,
    /// Index into `leaves`, or [`NO_LEAF`], indexed by host.
    leaf_of: Vec<u32>,
    /// Port of a host's leaf that leads to the host, indexed by host.
    down_ports: Vec<u16>,
    table: Vec<u32>,
    groups: Vec<Group>,
    members: Vec<u16>,
}

/// Tables behind [`Routes`], to be copied into other layouts.
#[derive(Clone, Copy, Debug)]
pub struct RouteTable<'a> {
    /// Index of a group: `table[switch * leaves + leaf]`. Group 0 has no ports: the leaf itself, or no path.
    pub table: &'a [u32],
    /// The groups.
    pub groups: &'a [Group],
    /// Ports of all groups, numbered within their switch; ascending within a group.
    pub members: &'a [u16],
    /// Number of leaves.
    pub leaves: usize,
    /// Index of a host's leaf, indexed by host; `u32::MAX` where two hosts stand back to back.
    pub leaf_of: &'a [u32],
    /// Port of a host's leaf that leads to the host, indexed by host.
    pub down_ports: &'a [u16],
}

impl Routes {
    /// Creates the routes of `graph` that avoid the links marked in `down` (one entry per link; empty: none is down).
    /// Ports of links that are down keep their numbers.
    ///
    /// # Panics
    /// When `down` is neither empty nor as long as the list of links.
    pub fn new(graph: &Graph, down: &[bool]) -> Self {
        assert!(down.is_empty() || down.len() == graph.links.len(), "one entry per link");
        let ports = Ports::new(graph);
        let mut leaves = Vec::new();
        let mut leaf_of = vec![NO_LEAF; graph.hosts.len()];
        let mut down_ports = vec![0; graph.hosts.len()];
        for switch in (0..graph.switches.len() as u32).map(SwitchId) {
            let hosts = (0u16..).zip(ports.of(switch)).filter_map(|(n, port)| Some((n, port.peer.host()?)));
            for (port, host) in hosts {
                if leaves.last() != Some(&switch) {
                    leaves.push(switch);
                }
                leaf_of[host.index()] = leaves.len() as u32 - 1;
                down_ports[host.index()] = port;
            }
        }
        let mut search = Search::new(&ports, down, leaves.len());
        search.route_towards_all(&leaves);
        let Search { table, groups, members, .. } = search;
        Self { leaves, leaf_of, down_ports, table, groups, members, ports }
    }

    /// Returns the ports of `switch` that lead closer to the leaf with this index, ascending; none at the leaf itself,
    /// and where no path is left.
    #[inline]
    pub fn next_hops(&self, switch: SwitchId, leaf: usize) -> &[u16] {
        let group = self.groups[self.table[switch.index() * self.leaves.len() + leaf] as usize];
        &self.members[group.offset as usize..(group.offset + group.len) as usize]
    }
    /// Returns the index of the leaf that `host` is attached to; `None` where two hosts stand back to back.
    #[inline]
    pub fn leaf_of(&self, host: HostId) -> Option<usize> {
        match self.leaf_of[host.index()] {
            NO_LEAF => None,
            leaf => Some(leaf as usize),
        }
    }
    /// Returns the port of the leaf of `host` that leads to `host`, whether that link is up or not.
    #[inline]
    pub fn down_port(&self, host: HostId) -> u16 {
        self.down_ports[host.index()]
    }
    /// Returns the switches with hosts, in ascending order.
    pub fn leaves(&self) -> &[SwitchId] {
        &self.leaves
    }
    /// Returns the ports of all nodes.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }
    /// Returns the next hops as switches take them.
    pub(crate) fn tables(&self) -> forward::Routes<'_> {
        let Self { table, groups, members, leaves, .. } = self;
        forward::Routes { table, groups, members, leaves }
    }

    /// Returns the tables.
    pub fn raw(&self) -> RouteTable<'_> {
        RouteTable {
            table: &self.table,
            groups: &self.groups,
            members: &self.members,
            leaves: self.leaves.len(),
            leaf_of: &self.leaf_of,
            down_ports: &self.down_ports,
        }
    }
}

/// Breadth-first searches, and the tables that they fill.
struct Search {
    /// Neighbours over links that are up, with the port to each; those of switch `s` are
    /// `neighbours[offsets[s]..offsets[s + 1]]`.
    neighbours: Vec<(SwitchId, u16)>,
    offsets: Vec<u32>,
    leaves: usize,
    distance: Vec<u32>,
    queue: Vec<SwitchId>,
    table: Vec<u32>,
    groups: Vec<Group>,
    members: Vec<u16>,
    known: BTreeMap<Box<[u16]>, u32>,
    /// Latest group of each switch, which the next leaf often shares.
    latest: Vec<u32>,
}

impl Search {
    fn new(ports: &Ports, down: &[bool], leaves: usize) -> Self {
        let switches = ports.switches();
        let (mut neighbours, mut offsets) = (Vec::new(), vec![0]);
        for switch in (0..switches as u32).map(SwitchId) {
            let up = (0u16..).zip(ports.of(switch)).filter(|(_, port)| !is_down(down, port.link));
            neighbours.extend(up.filter_map(|(n, port)| Some((port.peer.switch()?, n))));
            offsets.push(neighbours.len() as u32);
        }
        Self {
            neighbours,
            offsets,
            leaves,
            distance: vec![FAR; switches],
            queue: Vec::with_capacity(switches),
            table: vec![0; switches * leaves],
            groups: vec![Group { offset: 0, len: 0 }],
            members: Vec::new(),
            known: BTreeMap::new(),
            latest: vec![0; switches],
        }
    }

    /// Finds the paths to all leaves: to the first of twins by a search, to the others by copying.
    fn route_towards_all(&mut self, leaves: &[SwitchId]) {
        let mut firsts: BTreeMap<Vec<SwitchId>, u32> = BTreeMap::new();
        let mut first_of = Vec::with_capacity(leaves.len());
        for (index, &leaf) in (0..).zip(leaves) {
            let mut peers: Vec<SwitchId> = self.neighbours(leaf).iter().map(|&(peer, _)| peer).collect();
            peers.sort_unstable();
            peers.dedup();
            let first = *firsts.entry(peers).or_insert(index);
            first_of.push(first);
            if first == index {
                self.route_towards(leaf, index as usize);
            }
        }
        // The loop goes row by row: in a large table, each entry of a column is on another page.
        for row in self.table.chunks_exact_mut(leaves.len().max(1)) {
            for (index, &first) in first_of.iter().enumerate() {
                row[index] = row[first as usize];
            }
        }
        for (index, &first) in first_of.iter().enumerate().filter(|&(index, &first)| first as usize != index) {
            self.correct_near(leaves[index], index, leaves[first as usize]);
        }
    }

    /// Corrects the entries for `leaf` that were copied from its twin: their own, and those of their neighbours. Twins
    /// are no neighbours of each other.
    fn correct_near(&mut self, leaf: SwitchId, index: usize, twin: SwitchId) {
        let ports = |search: &Self, from: SwitchId, is_wanted: &dyn Fn(SwitchId) -> bool| -> Vec<u16> {
            let wanted = search.neighbours(from).iter().filter(|&&(peer, _)| is_wanted(peer));
            wanted.map(|&(_, port)| port).collect()
        };
        self.table[leaf.index() * self.leaves + index] = 0;
        let hops = ports(self, twin, &|_| true);
        if hops.is_empty() {
            return;
        }
        self.table[twin.index() * self.leaves + index] = self.group(twin, &hops);
        let mut peers: Vec<SwitchId> = self.neighbours(leaf).iter().map(|&(peer, _)| peer).collect();
        peers.dedup();
        for peer in peers {
            let hops = ports(self, peer, &|other| other == leaf);
            self.table[peer.index() * self.leaves + index] = self.group(peer, &hops);
        }
    }

    /// Returns the neighbours of `switch` over links that are up, with the port to each.
    fn neighbours(&self, switch: SwitchId) -> &[(SwitchId, u16)] {
        &self.neighbours[self.offsets[switch.index()] as usize..self.offsets[switch.index() + 1] as usize]
    }

    /// Visits all switches that can reach `leaf`, nearest first. When one is visited, all nearer ones are known, so its
    /// ports are examined once: they lead back or on.
    fn route_towards(&mut self, leaf: SwitchId, index: usize) {
        self.distance.fill(FAR);
        self.distance[leaf.index()] = 0;
        self.queue.clear();
        self.queue.push(leaf);
        let mut hops = Vec::new();
        let mut head = 0;
        while let Some(&switch) = self.queue.get(head) {
            head += 1;
            let here = self.distance[switch.index()];
            hops.clear();
            let neighbours = self.offsets[switch.index()] as usize..self.offsets[switch.index() + 1] as usize;
            for &(peer, port) in &self.neighbours[neighbours] {
                let distance = &mut self.distance[peer.index()];
                if *distance == FAR {
                    *distance = here + 1;
                    self.queue.push(peer);
                } else if *distance + 1 == here {
                    hops.push(port);
                }
            }
            if switch != leaf {
                self.table[switch.index() * self.leaves + index] = self.group(switch, &hops);
            }
        }
    }
    fn group(&mut self, switch: SwitchId, hops: &[u16]) -> u32 {
        let latest = self.latest[switch.index()];
        let Group { offset, len } = self.groups[latest as usize];
        if self.members[offset as usize..(offset + len) as usize] == *hops {
            return latest;
        }
        let index = *self.known.entry(hops.into()).or_insert_with(|| {
            self.groups.push(Group { offset: self.members.len() as u32, len: hops.len() as u32 });
            self.members.extend(hops);
            self.groups.len() as u32 - 1
        });
        self.latest[switch.index()] = index;
        index
    }
}

fn is_down(down: &[bool], link: u32) -> bool {
    down.get(link as usize).copied().unwrap_or(false)
}

const FAR: u32 = u32::MAX;
const NO_LEAF: u32 = u32::MAX;
