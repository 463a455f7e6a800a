//! Files of the ns-3 RDMA family as graphs and flows.

use std::collections::BTreeMap;

use selvedge_formats::Warning;
use selvedge_formats::ns3_flow::FlowList as Ns3Flows;
use selvedge_formats::ns3_topology::{SwitchKind, Topology as Ns3Topology};
use selvedge_sim::ConfigError;
use selvedge_sim::topology::{Graph, Link, Node};
use selvedge_sim::workload::{FlowList, ListedFlow, Start};

use super::FileLibrary;

impl FileLibrary {
    pub(super) fn ns3_flows(&self, path: &str, mut list: Ns3Flows) -> Result<FlowList, ConfigError> {
        self.note(path, list.settle_surplus(|id| self.hosts.contains_key(&id)));
        let flows = (0..).zip(&list.flows).map(|(position, flow)| {
            Ok(ListedFlow {
                id: flow.id.unwrap_or(position),
                src: self.host(path, flow.line, flow.src)?,
                dst: self.host(path, flow.line, flow.dst)?,
                size: flow.size,
                start: Start::At(flow.start),
                on_sent: None,
                on_received: None,
            })
        });
        Ok(FlowList { flows: flows.collect::<Result<_, ConfigError>>()?, triggers: Vec::new() })
    }

    pub(super) fn ns3_graph(&self, path: &str, file: &Ns3Topology) -> Graph {
        let is_nv = |id: &u32| file.switches.get(id) == Some(&SwitchKind::NvSwitch);
        let links = || file.links.iter().filter(|link| !is_nv(&link.a) && !is_nv(&link.b));
        if file.links.len() > links().count() {
            let message = "NVSwitches and their links are left out: hosts of one server talk through the network";
            self.note(path, [Warning { line: 1, message: message.to_owned() }]);
        }
        let linked: std::collections::BTreeSet<u32> = links().flat_map(|link| [link.a, link.b]).collect();
        let mut graph = Graph::default();
        let mut nodes: BTreeMap<u32, Node> = BTreeMap::new();
        for id in file.hosts().filter(|id| linked.contains(id)) {
            nodes.insert(id, graph.add_host(id.to_string(), 0).into());
        }
        for &id in file.switches.keys().filter(|id| linked.contains(id)) {
            nodes.insert(id, graph.add_switch(id.to_string(), 0, 0).into());
        }
        let unlinked = file.hosts().filter(|id| !linked.contains(id)).count();
        if unlinked > 0 {
            let message = format!("{unlinked} hosts of the header have no link and are left out");
            self.note(path, [Warning { line: 1, message }]);
        }
        graph.links = links()
            .map(|link| Link {
                a: nodes[&link.a],
                b: nodes[&link.b],
                rate: link.rate,
                delay: link.delay,
                loss: link.loss,
            })
            .collect();
        graph.place_switches();
        graph
    }
}
