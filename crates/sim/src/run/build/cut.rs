//! Assignment of nodes to partitions.

use selvedge_units::SwitchId;

use super::sides::Sides;
use crate::topology::{Graph, Ports};

/// Partition of each node: whole units, in order, with about equally many ports in each partition.
pub(super) struct Cut {
    pub(super) hosts: Vec<u16>,
    pub(super) switches: Vec<u16>,
    pub(super) count: usize,
}

impl Cut {
    pub(super) fn new(graph: &Graph, ports: &Ports, wanted: usize) -> Self {
        let units = graph.hosts.iter().map(|host| host.unit).chain(graph.switches.iter().map(|switch| switch.unit));
        let units = units.max().map_or(1, |last| last as usize + 1);
        let mut weight = vec![0usize; units];
        for host in &graph.hosts {
            weight[host.unit as usize] += 1;
        }
        for (id, switch) in (0..).map(SwitchId).zip(&graph.switches) {
            weight[switch.unit as usize] += ports.of(id).len();
        }
        let count = wanted.min(weight.iter().filter(|&&weight| weight > 0).count()).max(1);
        let total: usize = weight.iter().sum();
        let mut before = 0;
        let of_unit: Vec<u16> = weight
            .iter()
            .map(|weight| {
                // Partition that contains the middle of the unit.
                let middle = before + weight / 2;
                before += weight;
                (middle * count / total.max(1)).min(count - 1) as u16
            })
            .collect();
        Self {
            hosts: graph.hosts.iter().map(|host| of_unit[host.unit as usize]).collect(),
            switches: graph.switches.iter().map(|switch| of_unit[switch.unit as usize]).collect(),
            count,
        }
    }

    /// Returns the sides of a partition's nodes, hosts first.
    pub(super) fn sides(&self, partition: usize, sides: &Sides) -> Vec<u8> {
        let hosts = self.hosts.iter().zip(&sides.hosts);
        let nodes = hosts.chain(self.switches.iter().zip(&sides.switches));
        nodes.filter(|(of, _)| usize::from(**of) == partition).map(|(_, &side)| side).collect()
    }
}
