//! Sides of a network: whether its nodes form two sides such that every link leads from one to the other.

use std::collections::VecDeque;

use crate::topology::{Graph, Node};

/// Side of each node: 0 or 1.
pub(super) struct Sides {
    pub(super) hosts: Vec<u8>,
    pub(super) switches: Vec<u8>,
}

impl Sides {
    /// Returns a single side for all nodes.
    pub(super) fn one(graph: &Graph) -> Self {
        Self { hosts: vec![0; graph.hosts.len()], switches: vec![0; graph.switches.len()] }
    }

    /// Returns two sides; `None` where some cycle has an odd number of links, or hosts stand back to back, because
    /// notices between hosts take as long as two links.
    pub(super) fn two(graph: &Graph) -> Option<Self> {
        if has_hosts_back_to_back(graph) {
            return None;
        }
        let neighbours = neighbours(graph);
        let mut sides: Vec<Option<u8>> = vec![None; neighbours.len()];
        let mut reached = VecDeque::new();
        for start in 0..sides.len() {
            if sides[start].is_none() {
                sides[start] = Some(0);
                reached.push_back((start, 0));
            }
            while let Some((node, side)) = reached.pop_front() {
                for next in neighbours[node].iter().map(|&next| next as usize) {
                    match sides[next] {
                        Some(taken) if taken == side => return None,
                        Some(_) => {}
                        None => {
                            sides[next] = Some(1 - side);
                            reached.push_back((next, 1 - side));
                        }
                    }
                }
            }
        }
        let mut hosts_first: Vec<u8> = sides.into_iter().flatten().collect();
        let switches = hosts_first.split_off(graph.hosts.len());
        Some(Self { hosts: hosts_first, switches })
    }

    /// Returns the smaller of two sides: not that of most hosts.
    pub(super) fn smaller(&self) -> u8 {
        let (all, ones) = self.all().fold((0, 0), |(all, ones), side| (all + 1, ones + usize::from(side)));
        u8::from(2 * ones <= all)
    }

    /// Returns the sides of all hosts, then of all switches.
    pub(super) fn all(&self) -> impl Iterator<Item = u8> {
        self.hosts.iter().chain(&self.switches).copied()
    }
}

/// Returns the neighbours of each node, hosts first.
pub(super) fn neighbours(graph: &Graph) -> Vec<Vec<u32>> {
    let hosts = graph.hosts.len();
    let place = |node: Node| match node {
        Node::Host(host) => host.index(),
        Node::Switch(switch) => hosts + switch.index(),
    };
    let mut neighbours = vec![Vec::new(); hosts + graph.switches.len()];
    for link in &graph.links {
        let (a, b) = (place(link.a), place(link.b));
        neighbours[a].push(b as u32);
        neighbours[b].push(a as u32);
    }
    neighbours
}

/// Returns whether a link joins two hosts.
pub(super) fn has_hosts_back_to_back(graph: &Graph) -> bool {
    graph.links.iter().any(|link| link.a.host().is_some() && link.b.host().is_some())
}

#[cfg(test)]
mod tests {
    use selvedge_units::Rate;

    use super::*;
    use crate::topology::{FatTree, LinkConfig};

    fn link() -> LinkConfig {
        LinkConfig { rate: Rate::from_gbps(10), delay: selvedge_units::Duration::from_us(1) }
    }

    #[test]
    fn tiers_are_sides_in_turn() {
        let graph = FatTree { k: 4, link: link() }.build().unwrap();
        let sides = Sides::two(&graph).unwrap();
        assert!(sides.hosts.iter().all(|&side| side == 0));
        for (switch, &side) in graph.switches.iter().zip(&sides.switches) {
            assert_eq!(side, (switch.tier + 1) % 2);
        }
    }

    #[test]
    fn some_networks_have_no_sides() {
        let mut graph = Graph::default();
        let switches: Vec<_> = (0..3).map(|n| graph.add_switch(format!("s{n}"), 0, 0)).collect();
        for n in 0..3 {
            assert!(Sides::two(&graph).is_some());
            graph.connect(switches[n].into(), switches[(n + 1) % 3].into(), link());
        }
        assert!(Sides::two(&graph).is_none(), "three switches in a ring");
        let mut graph = Graph::default();
        let (a, b) = (graph.add_host("a".into(), 0), graph.add_host("b".into(), 0));
        graph.connect(a.into(), b.into(), link());
        assert!(Sides::two(&graph).is_none(), "hosts back to back");
    }
}
