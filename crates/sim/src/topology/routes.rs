//! Shortest paths.
//!
//! 1. Next hops are kept per switch and *leaf* (switch with hosts), not per host: a fat-tree of 8,192
//!    hosts has 1,280 switches and 512 leaves, hence 655,360 entries of 4 bytes.
//! 2. An entry is the index of a group of ports. Groups are shared: all edges of a fat-tree use "all
//!    my uplinks" for all destinations elsewhere.
//! 3. One breadth-first search over switches per leaf: O(leaves x links). Leaves with the same neighbours are *twins*,
//!    to which the same ways lead but for the last link: one search does for all edges of a pod.

use std::collections::BTreeMap;

use selvedge_units::{HostId, SwitchId};

use super::{Graph, Ports};

/// Equal-cost next hops from every switch towards every host, by number of links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Routes {
    ports: Ports,
    leaves: Vec<SwitchId>,
    /// Per host: index into `leaves`, or [`NO_LEAF`].
    leaf_of: Vec<u32>,
    /// Per host: the port of its leaf that leads to it.
    down_ports: Vec<u16>,
    table: Vec<u32>,
    groups: Vec<Group>,
    members: Vec<u16>,
}

/// A set of equal-cost ports: `members[offset..offset + len]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Group {
    /// Where it begins in [`RouteTable::members`].
    pub offset: u32,
    /// How many ports it has.
    pub len: u32,
}

/// The tables behind [`Routes`], for whoever copies them into a layout of their own.
#[derive(Clone, Copy, Debug)]
pub struct RouteTable<'a> {
    /// `table[switch * leaves + leaf]`: index of the group. Group 0 has no ports: the leaf itself, or
    /// no way.
    pub table: &'a [u32],
    /// The groups.
    pub groups: &'a [Group],
    /// Ports of all groups, numbered within their switch; ascending within a group.
    pub members: &'a [u16],
    /// How many leaves there are.
    pub leaves: usize,
    /// Per host: index of its leaf; `u32::MAX` where two hosts stand back to back.
    pub leaf_of: &'a [u32],
    /// Per host: the port of its leaf that leads to it.
    pub down_ports: &'a [u16],
}

impl Routes {
    /// The routes of `graph` that avoid the links marked in `down` (one entry per link; empty: none
    /// is down). Ports of links that are down keep their numbers.
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

    /// Ports of `switch` that lead closer to the leaf with this index; ascending. None at the leaf
    /// itself, and where no way is left.
    #[inline]
    pub fn next_hops(&self, switch: SwitchId, leaf: usize) -> &[u16] {
        let group = self.groups[self.table[switch.index() * self.leaves.len() + leaf] as usize];
        &self.members[group.offset as usize..(group.offset + group.len) as usize]
    }
    /// Index of the leaf that `host` is attached to; `None` where two hosts stand back to back.
    #[inline]
    pub fn leaf_of(&self, host: HostId) -> Option<usize> {
        match self.leaf_of[host.index()] {
            NO_LEAF => None,
            leaf => Some(leaf as usize),
        }
    }
    /// The port of its leaf that leads to `host`, whether that link is up or not.
    #[inline]
    pub fn down_port(&self, host: HostId) -> u16 {
        self.down_ports[host.index()]
    }
    /// The switches with hosts, in ascending order.
    pub fn leaves(&self) -> &[SwitchId] {
        &self.leaves
    }
    /// The ports of all nodes.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }
    /// The tables.
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

/// The breadth-first searches, and the tables as they grow.
struct Search {
    /// Of switch `s`, those that links lead to that are up, and its ports: `neighbours[offsets[s]..offsets[s + 1]]`.
    neighbours: Vec<(SwitchId, u16)>,
    offsets: Vec<u32>,
    leaves: usize,
    distance: Vec<u32>,
    queue: Vec<SwitchId>,
    table: Vec<u32>,
    groups: Vec<Group>,
    members: Vec<u16>,
    known: BTreeMap<Box<[u16]>, u32>,
    /// Per switch: its latest group, which the next leaf often shares.
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

    /// Finds the ways to all leaves: to the first of twins by a search, to the others as to that one.
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
        // Row by row: a column of a large table has each of its entries on another page.
        for row in self.table.chunks_exact_mut(leaves.len().max(1)) {
            for (index, &first) in first_of.iter().enumerate() {
                row[index] = row[first as usize];
            }
        }
        for (index, &first) in first_of.iter().enumerate().filter(|&(index, &first)| first as usize != index) {
            self.correct_near(leaves[index], index, leaves[first as usize]);
        }
    }

    /// Corrects what was taken over for `leaf` from its twin: their own entries, and those of their neighbours. Twins
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

    /// The switches at the other end of `switch`'s links, and its ports.
    fn neighbours(&self, switch: SwitchId) -> &[(SwitchId, u16)] {
        &self.neighbours[self.offsets[switch.index()] as usize..self.offsets[switch.index() + 1] as usize]
    }

    /// Visits all switches that can reach `leaf`, nearest first. When one is visited, all that are nearer are known, so
    /// its ports are looked at once: they lead to where it came from, or on.
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
