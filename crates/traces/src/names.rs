//! Names and owners of ports.

use std::collections::BTreeMap;

use selvedge_sim::port_infos;
use selvedge_sim::topology::{Graph, Node};
use selvedge_telemetry::PortInfo;
use selvedge_units::{HostId, PortId, SwitchId};

/// Returns the names of ports, as [`PortNames`] has them.
pub(crate) fn names_of(infos: &[PortInfo]) -> Vec<String> {
    let mut parallel: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let name = |info: &'_ PortInfo, count: u32| match count {
        1 => format!("{}:{}", info.node, info.peer),
        _ => format!("{}:{}.{count}", info.node, info.peer),
    };
    let mut names = Vec::with_capacity(infos.len());
    for info in infos {
        let count = parallel.entry((&info.node, &info.peer)).or_default();
        *count += 1;
        names.push(name(info, *count));
    }
    names
}

/// Names of a fabric's ports: `h3:leaf0` is the port of host h3 towards leaf0. The second of parallel links is
/// `leaf0:spine0.2`.
#[derive(Clone, Debug)]
pub struct PortNames {
    infos: Vec<PortInfo>,
    names: Vec<String>,
    owners: Vec<Node>,
}

impl PortNames {
    /// Returns the names of the ports of `graph`.
    pub fn new(graph: &Graph) -> Self {
        let infos = port_infos(graph);
        let names = names_of(&infos);
        let hosts = (0..).map(|n| Node::Host(HostId(n))).zip(graph.hosts.iter().map(|host| &*host.name));
        let switches = (0..).map(|n| Node::Switch(SwitchId(n))).zip(graph.switches.iter().map(|switch| &*switch.name));
        let nodes: BTreeMap<&str, Node> = hosts.chain(switches).map(|(node, name)| (name, node)).collect();
        Self { names, owners: infos.iter().map(|info| nodes[&*info.node]).collect(), infos }
    }

    /// Returns the name of a port.
    pub fn name(&self, port: PortId) -> &str {
        &self.names[port.index()]
    }

    /// Returns the description of a port.
    pub fn info(&self, port: PortId) -> &PortInfo {
        &self.infos[port.index()]
    }

    /// Returns the node that a port belongs to.
    pub fn owner(&self, port: PortId) -> Node {
        self.owners[port.index()]
    }

    /// Returns the number of ports.
    pub fn count(&self) -> usize {
        self.infos.len()
    }

    /// Returns the ports that `text` names: one port by its own name, optionally with " - " for the colon as in
    /// scenarios; all ports of a node; or one port by its number.
    pub fn find(&self, text: &str) -> Vec<PortId> {
        let is_called = |text: &str| self.names.iter().position(|name| name == text);
        let as_link = || text.split_once(" - ").and_then(|(node, peer)| is_called(&format!("{node}:{peer}")));
        if let Some(index) = is_called(text).or_else(as_link) {
            return vec![self.infos[index].id];
        }
        let of_node: Vec<PortId> = self.infos.iter().filter(|info| &*info.node == text).map(|info| info.id).collect();
        if !of_node.is_empty() {
            return of_node;
        }
        text.parse().ok().and_then(|number: usize| self.infos.get(number)).map(|info| info.id).into_iter().collect()
    }
}
