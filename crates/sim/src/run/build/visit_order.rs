//! Visit order of a partition's nodes.

use std::collections::VecDeque;

use super::cut::Cut;
use super::lookahead::Lookahead;
use super::sides::neighbours;
use crate::kernel::visit_order::VisitOrder;
use crate::topology::Graph;

/// Returns the visit order of a partition with `nodes` nodes. Descriptors leave a partition only between windows, so
/// windows can run in pairs only where there is one partition.
pub(super) fn visit_order(graph: &Graph, cut: &Cut, lookahead: &Lookahead, nodes: usize) -> VisitOrder {
    let Some(leader) = lookahead.schedule.leader().filter(|_| cut.count == 1) else {
        return VisitOrder::by_number(nodes);
    };
    let neighbours = neighbours(graph);
    let distance = distances(&neighbours, graph.hosts.len());
    let sides: Vec<u8> = lookahead.sides.all().collect();
    VisitOrder::in_sections(&neighbours, &distance, |node| sides[node as usize] == leader)
}

/// Returns the distance in links between each node and the nearest host; the first `hosts` nodes are the hosts.
fn distances(neighbours: &[Vec<u32>], hosts: usize) -> Vec<u32> {
    let mut distances = vec![u32::MAX; neighbours.len()];
    distances[..hosts].fill(0);
    let mut reached: VecDeque<u32> = (0..hosts as u32).collect();
    while let Some(node) = reached.pop_front() {
        let next = distances[node as usize] + 1;
        for &neighbour in &neighbours[node as usize] {
            if distances[neighbour as usize] > next {
                distances[neighbour as usize] = next;
                reached.push_back(neighbour);
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Duration, Rate};

    use super::*;
    use crate::run::build::sides::Sides;
    use crate::topology::{FatTree, LinkConfig};

    fn link() -> LinkConfig {
        LinkConfig { rate: Rate::from_gbps(10), delay: Duration::from_us(1) }
    }

    /// Returns a network of two switches with three hosts each, and one switch without hosts.
    fn two_switches() -> Graph {
        let mut graph = Graph::default();
        let switches: Vec<_> = (0..3).map(|n| graph.add_switch(format!("s{n}"), 0, 0)).collect();
        graph.connect(switches[0].into(), switches[1].into(), link());
        for n in 0..6 {
            let host = graph.add_host(format!("h{n}"), 0);
            graph.connect(host.into(), switches[n / 3].into(), link());
        }
        graph
    }

    #[test]
    fn everybody_is_visited_once_and_behind_the_leaders_that_are_neighbours() {
        let graphs = [2, 4, 8, 16].map(|k| FatTree { k, link: link() }.build().unwrap());
        for graph in graphs.into_iter().chain([two_switches()]) {
            let sides = Sides::two(&graph).unwrap();
            let (neighbours, leader) = (neighbours(&graph), sides.smaller());
            let sides: Vec<u8> = sides.all().collect();
            let leads = |node: u32| sides[node as usize] == leader;
            let visit_order = VisitOrder::in_sections(&neighbours, &distances(&neighbours, graph.hosts.len()), leads);

            let mut turn = vec![None; neighbours.len()];
            for (n, section) in visit_order.sections().iter().enumerate() {
                for node in section
                    .words
                    .clone()
                    .flat_map(|word| visit_order.nodes(word, u64::MAX))
                    .filter(|&node| node != u32::MAX)
                {
                    assert_eq!(leads(node), section.leads);
                    assert_eq!(turn[node as usize].replace(n), None, "once");
                    let (word, bit) = visit_order.place(node);
                    assert!(visit_order.nodes(word, bit).eq([node]), "where it says");
                }
            }
            for (node, neighbours) in (0..).zip(&neighbours).filter(|&(node, _)| !leads(node)) {
                let own = turn[node as usize];
                assert!(own.is_some() && neighbours.iter().all(|&leader| turn[leader as usize] < own));
            }
            assert!(turn.iter().all(Option::is_some));
        }
    }

    /// Checks that hosts are visited soon after their switch: before descriptors of other switches are written.
    #[test]
    fn hosts_come_soon_after_their_switch() {
        let graph = FatTree { k: 32, link: link() }.build().unwrap();
        let sides = Sides::two(&graph).unwrap();
        let leader = sides.smaller();
        assert_ne!(sides.hosts[0], leader, "most nodes are hosts");
        let neighbours = neighbours(&graph);
        let sides: Vec<u8> = sides.all().collect();
        let distances = distances(&neighbours, graph.hosts.len());
        let visit_order = VisitOrder::in_sections(&neighbours, &distances, |node| sides[node as usize] == leader);
        let section_of = |node: u32| {
            let (word, _) = visit_order.place(node);
            visit_order
                .sections()
                .iter()
                .position(|section| section.words.contains(&word))
                .expect("every node stands in a section")
        };
        for host in 0..graph.hosts.len() as u32 {
            assert_eq!(section_of(host), section_of(neighbours[host as usize][0]) + 1);
        }
        // Eight switches with their hosts each; with the second half of a pod its other switches, which wait for all
        // hosts.
        assert_eq!(visit_order.sections().len(), 2 * 64);
    }
}
