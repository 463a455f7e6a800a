//! Files of the ns-3 RDMA family as graphs and flows.

use std::collections::{BTreeMap, BTreeSet};

use selvedge_formats::Warning;
use selvedge_formats::ns3_flow::FlowList as Ns3Flows;
use selvedge_formats::ns3_topology::{self, SwitchKind, Topology as Ns3Topology};
use selvedge_sim::ConfigError;
use selvedge_sim::topology::{Graph, Link, LinkConfig, Node};
use selvedge_sim::workload::{FlowList, ListedFlow, Start};
use selvedge_units::words::plural;

use super::FileLibrary;

impl FileLibrary {
    pub(super) fn ns3_flows(&self, path: &str, mut list: Ns3Flows) -> Result<FlowList, ConfigError> {
        self.note(path, list.settle_surplus(|id| self.hosts.contains_key(&id)));
        let numbers = self.numbers(path, list.flows.iter().map(|flow| (flow.line, flow.id)));
        let flows = numbers.into_iter().zip(&list.flows).map(|(id, flow)| {
            Ok(ListedFlow {
                id,
                line: Some(flow.line),
                src: self.host(path, flow.line, flow.src)?,
                dst: self.host(path, flow.line, flow.dst)?,
                size: flow.size,
                priority: Some(flow.priority),
                start: Start::At(flow.start),
                on_sent: None,
                on_received: None,
            })
        });
        Ok(FlowList {
            flows: flows.collect::<Result<_, ConfigError>>()?,
            triggers: Vec::new(),
            trigger_places: Vec::new(),
        })
    }

    /// Returns the UDP destination ports of a list's flows by the ids of [`FileLibrary::ns3_flows`], where the list has
    /// ports: HPCC's scripts tell the flows of an incast by them.
    pub(super) fn ns3_ports(&self, path: &str, mut list: Ns3Flows) -> BTreeMap<u64, u16> {
        // Warnings about the list were reported when its flows were read.
        list.settle_surplus(|id| self.hosts.contains_key(&id));
        let numbers = self.numbers(path, list.flows.iter().map(|flow| (flow.line, flow.id)));
        numbers.into_iter().zip(&list.flows).filter_map(|(id, flow)| Some((id, flow.dst_port?))).collect()
    }

    /// Returns the network of a file. A GPU that is linked to a server's NVSwitch and to the Ethernet has a NIC at each
    /// ([`Graph::inner`]): packets to GPUs on the same NVSwitch go through it, as in SimAI.
    pub(super) fn ns3_graph(&self, path: &str, file: &Ns3Topology) -> Result<Graph, ConfigError> {
        let linked: BTreeSet<u32> = file.links.iter().flat_map(|link| [link.a, link.b]).collect();
        let mut graph = Graph::default();
        let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
        // A header may name billions of nodes.
        for &id in linked.iter().filter(|&&id| file.is_host(id)) {
            nodes.insert(id, graph.add_host(id.to_string(), 0).into());
        }
        if graph.hosts.len() < 2 {
            let found = plural(graph.hosts.len() as u64, "host");
            let message = format!(
                "{path}: traffic needs at least two hosts, found {found} with a link{}",
                self.notes_about(path)
            );
            return Err(ConfigError::new("", message));
        }
        let inner = self.inner_nics(path, file, &mut graph, &nodes);
        let outer = || file.links.iter().enumerate().filter(|(n, _)| !inner.contains_key(n)).map(|(_, link)| link);
        check_hosts(file, outer()).and_then(|()| check_connected(file, outer)).map_err(|(line, node, message)| {
            let place = self.files.place(path, line, &node.to_string());
            ConfigError::new("", format!("{place}: {message}{}", self.notes_about(path)))
        })?;
        for &id in file.switches.keys().filter(|id| linked.contains(id)) {
            nodes.insert(id, graph.add_switch(id.to_string(), 0, 0).into());
        }
        for (n, link) in file.links.iter().enumerate() {
            let [a, b] = match inner.get(&n) {
                Some(Some(End { nic, switch })) => [*nic, nodes[switch]],
                Some(None) => continue,
                None => [nodes[&link.a], nodes[&link.b]],
            };
            let config = LinkConfig { rate: link.rate, delay: link.delay };
            graph.links.push(Link { loss: link.loss, ..Link::new(a, b, config) });
        }
        graph.place_switches();
        Ok(graph)
    }

    /// Adds second NICs to `graph`; returns, by position in the file, the links that end at one, and
    /// `None` for those that a GPU has too many.
    fn inner_nics(
        &self,
        path: &str,
        file: &Ns3Topology,
        graph: &mut Graph,
        nodes: &BTreeMap<u32, Node>,
    ) -> BTreeMap<usize, Option<End>> {
        let is_nv = |id: u32| file.switches.get(&id) == Some(&SwitchKind::NvSwitch);
        let ends = |link: &ns3_topology::Link| [(link.a, link.b), (link.b, link.a)];
        let outside = file.links.iter().flat_map(ends).filter(|&(_, other)| !is_nv(other));
        let has_ethernet: BTreeSet<u32> = outside.map(|(id, _)| id).collect();
        // GPU, NVSwitch and link, by GPU.
        let mut second: Vec<(u32, u32, usize)> = Vec::new();
        for (n, link) in file.links.iter().enumerate() {
            let of_gpu = |&(id, other): &(u32, u32)| is_nv(other) && file.is_host(id) && has_ethernet.contains(&id);
            second.extend(ends(link).into_iter().find(of_gpu).map(|(gpu, switch)| (gpu, switch, n)));
        }
        second.sort();
        let mut inner = BTreeMap::new();
        for links in second.chunk_by(|a, b| a.0 == b.0) {
            let (gpu, switch, first) = links[0];
            if let Some(owner) = nodes[&gpu].host() {
                let nic = graph.add_inner_nic(format!("{gpu}-nvlink"), owner).into();
                inner.insert(first, Some(End { nic, switch }));
            }
            for &(.., n) in &links[1..] {
                let message = format!("node {gpu} has a link to an NVSwitch already: this one is left out");
                self.note(path, [Warning { line: file.links[n].line, message }]);
                inner.insert(n, None);
            }
        }
        inner
    }
}

/// Checks that each host has at most one of these links. The error is the line, the host with more links, and advice.
fn check_hosts<'a>(
    file: &Ns3Topology,
    links: impl Iterator<Item = &'a ns3_topology::Link>,
) -> Result<(), (u64, u32, String)> {
    let is_nv = |id: u32| file.switches.get(&id) == Some(&SwitchKind::NvSwitch);
    let mut linked = BTreeMap::new();
    for link in links {
        for (host, other) in [(link.a, link.b), (link.b, link.a)].into_iter().filter(|&(id, _)| file.is_host(id)) {
            if let Some((before, first)) = linked.insert(host, (link.line, other)) {
                let what = format!("node {host} is a host and has a link already (line {before})");
                let message = if is_nv(first) && is_nv(other) {
                    format!(
                        "{what}, but a GPU has one link to NVSwitches here: give each server one NVSwitch, and its links \
                         the rates of all of them together"
                    )
                } else {
                    format!(
                        "{what}, but a host has one NIC with one link: put a switch in between, or make it several hosts"
                    )
                };
                return Err((link.line, host, message));
            }
        }
    }
    Ok(())
}

/// Checks that these links form a connected network. The error is the line and the first node that is not connected
/// with the first of all. Second NICs of GPUs are left out: GPUs forward nothing.
fn check_connected<'a, L: Iterator<Item = &'a ns3_topology::Link>>(
    file: &Ns3Topology,
    links: impl Fn() -> L,
) -> Result<(), (u64, u32, String)> {
    let mut neighbours: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for link in links() {
        neighbours.entry(link.a).or_default().push(link.b);
        neighbours.entry(link.b).or_default().push(link.a);
    }
    let is_nv = |link: &ns3_topology::Link| {
        [link.a, link.b].iter().any(|id| file.switches.get(id) == Some(&SwitchKind::NvSwitch))
    };
    let first = links().find(|link| !is_nv(link)).or_else(|| links().next());
    let Some(first) = first.map(|link| link.a) else { return Ok(()) };
    let (mut reached, mut waiting) = (BTreeSet::from([first]), vec![first]);
    while let Some(node) = waiting.pop() {
        waiting.extend(neighbours[&node].iter().filter(|&&next| reached.insert(next)));
    }
    let Some(link) = links().find(|link| !reached.contains(&link.a)) else { return Ok(()) };
    let what = format!("no path leads from node {first} to node {}", link.a);
    let message = if is_nv(link) {
        format!("{what}: NVSwitches join the GPUs of a server alone; give each GPU a link to the network, too")
    } else {
        format!("{what}: the network must hang together")
    };
    Err((link.line, link.a, message))
}

/// Ends of a GPU's link to an NVSwitch.
struct End {
    nic: Node,
    switch: u32,
}
