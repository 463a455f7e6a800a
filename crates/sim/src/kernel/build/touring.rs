//! In which order a partition's nodes are visited.

use std::collections::VecDeque;

use super::cut::Cut;
use super::sides::neighbours;
use super::tempo::Tempo;
use crate::kernel::tour::Tour;
use crate::topology::Graph;

/// The order in which a partition with so many nodes visits them. What leaves a partition is on its way between
/// windows, so only where there is one they can run in pairs.
pub(super) fn tour(graph: &Graph, cut: &Cut, tempo: &Tempo, nodes: usize) -> Tour {
    let Some(leader) = tempo.pace.leader().filter(|_| cut.count == 1) else { return Tour::by_number(nodes) };
    let neighbours = neighbours(graph);
    let distance = distances(&neighbours, graph.hosts.len());
    let sides: Vec<u8> = tempo.sides.all().collect();
    Tour::in_legs(&neighbours, &distance, |node| sides[node as usize] == leader)
}

/// How many links lie between each node and the next of so many hosts, which are the first nodes.
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
