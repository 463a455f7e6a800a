//! Numbers of ports.

use std::sync::Arc;

use selvedge_telemetry::{PortInfo, PortKind};
use selvedge_units::{PortId, SwitchId};

use crate::topology::{Graph, Node, Ports};

/// Numbers of ports over the whole fabric: hosts first, then switch by switch.
pub(super) struct Numbering {
    pub(super) ports: Ports,
    /// First port of each switch.
    pub(super) first: Vec<u32>,
    pub(super) total: u32,
}

impl Numbering {
    pub(super) fn new(graph: &Graph) -> Self {
        let ports = Ports::new(graph);
        let mut total = graph.hosts.len() as u32;
        let mut first = Vec::with_capacity(graph.switches.len());
        for switch in (0..graph.switches.len() as u32).map(SwitchId) {
            first.push(total);
            total += ports.of(switch).len() as u32;
        }
        Self { ports, first, total }
    }

    /// Returns the ports at both ends of each link, `a` first.
    pub(super) fn of_links(&self, graph: &Graph) -> Vec<[PortId; 2]> {
        let mut next = self.first.clone();
        let mut port_of = |node: Node| match node {
            Node::Host(host) => PortId(host.0),
            Node::Switch(switch) => {
                let port = next[switch.index()];
                next[switch.index()] += 1;
                PortId(port)
            }
        };
        graph.links.iter().map(|link| [port_of(link.a), port_of(link.b)]).collect()
    }
}

/// Returns a description of each port of the fabric, by its number. Hosts' ports have the numbers of their hosts, so
/// that rows of flows and of ports can be joined.
pub fn port_infos(graph: &Graph) -> Vec<PortInfo> {
    let numbering = Numbering::new(graph);
    let kind = |node: Node| match node {
        Node::Host(_) => PortKind::Host,
        Node::Switch(switch) => PortKind::Switch { tier: graph.switches[switch.index()].tier },
    };
    let hosts: Vec<Arc<str>> = graph.hosts.iter().map(|host| host.name.as_str().into()).collect();
    let switches: Vec<Arc<str>> = graph.switches.iter().map(|switch| switch.name.as_str().into()).collect();
    let name = |node: Node| match node {
        Node::Host(host) => Arc::clone(&hosts[host.index()]),
        Node::Switch(switch) => Arc::clone(&switches[switch.index()]),
    };
    let mut infos: Vec<Option<PortInfo>> = vec![None; numbering.total as usize];
    for (link, [a, b]) in graph.links.iter().zip(numbering.of_links(graph)) {
        for (id, node, peer_id, peer) in [(a, link.a, b, link.b), (b, link.b, a, link.a)] {
            infos[id.index()] = Some(PortInfo {
                id,
                node: name(node),
                peer: name(peer),
                peer_id,
                kind: kind(node),
                peer_kind: kind(peer),
                rate: link.rate,
            });
        }
    }
    infos.into_iter().flatten().collect()
}

/// Returns the ports at both ends of each link of `graph`, in the order of links and their ends.
pub fn ports_of_links(graph: &Graph) -> Vec<[PortId; 2]> {
    Numbering::new(graph).of_links(graph)
}

#[cfg(test)]
mod tests {
    use selvedge_units::{Duration, Rate};

    use super::*;
    use crate::topology::LinkConfig;

    #[test]
    fn ports_of_hosts_have_their_hosts_numbers_in_whatever_order_links_are() {
        let mut graph = Graph::default();
        let link = LinkConfig { rate: Rate::from_gbps(10), delay: Duration::from_us(1) };
        let switch = graph.add_switch("s".into(), 0, 0);
        let hosts: Vec<_> = (0..3).map(|n| graph.add_host(format!("name{n}"), 0)).collect();
        for n in [2, 0, 1] {
            graph.connect(hosts[n].into(), switch.into(), link);
        }
        let infos = port_infos(&graph);
        for host in hosts {
            let own = infos.iter().find(|info| info.id.0 == host.0).expect("each host has a port");
            assert_eq!((&*own.node, own.kind), (&*graph.hosts[host.index()].name, PortKind::Host));
        }
    }
}
