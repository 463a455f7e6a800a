//! Ports of nodes, and the links at them.

use selvedge_units::{HostId, SwitchId};

use super::{Graph, Node};

/// One end of a link, seen from the node that it is attached to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Port {
    /// Index of the link in [`Graph::links`].
    pub link: u32,
    /// Node at the other end.
    pub peer: Node,
}

/// Ports of all nodes. Those of a switch are numbered from 0 in the order of its links in [`Graph::links`]; a host has
/// one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ports {
    /// Ports of switch `s`: `ports[offsets[s]..offsets[s + 1]]`.
    offsets: Vec<u32>,
    ports: Vec<Port>,
    hosts: Vec<Port>,
}

impl Ports {
    /// Returns the ports of `graph`. Hosts without a link get a port that leads back to themselves; [`Graph::check`]
    /// refuses such networks.
    pub fn new(graph: &Graph) -> Self {
        let ends = || {
            (0..)
                .zip(&graph.links)
                .flat_map(|(link, ends)| [(ends.a, Port { link, peer: ends.b }), (ends.b, Port { link, peer: ends.a })])
        };
        let mut offsets = vec![0u32; graph.switches.len() + 1];
        for (switch, _) in ends().filter_map(|(node, port)| Some((node.switch()?, port))) {
            offsets[switch.index() + 1] += 1;
        }
        for n in 1..offsets.len() {
            offsets[n] += offsets[n - 1];
        }
        let mut free = offsets.clone();
        let mut ports = vec![Port { link: 0, peer: Node::Host(HostId(0)) }; offsets[graph.switches.len()] as usize];
        let mut hosts: Vec<Port> =
            (0..graph.hosts.len() as u32).map(|n| Port { link: u32::MAX, peer: Node::Host(HostId(n)) }).collect();
        for (node, port) in ends() {
            match node {
                Node::Host(host) => hosts[host.index()] = port,
                Node::Switch(switch) => {
                    ports[free[switch.index()] as usize] = port;
                    free[switch.index()] += 1;
                }
            }
        }
        Self { offsets, ports, hosts }
    }
    /// Returns the ports of `switch`; the position is the port's number.
    #[inline]
    pub fn of(&self, switch: SwitchId) -> &[Port] {
        &self.ports[self.offsets[switch.index()] as usize..self.offsets[switch.index() + 1] as usize]
    }
    /// Returns the port of `host`.
    #[inline]
    pub fn of_host(&self, host: HostId) -> Port {
        self.hosts[host.index()]
    }
    /// Returns the number of switches.
    pub fn switches(&self) -> usize {
        self.offsets.len() - 1
    }
    /// Returns the number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }
}
