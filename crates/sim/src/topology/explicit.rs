//! Networks given as lists of nodes and links.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use selvedge_units::words::did_you_mean;
use selvedge_units::{Duration, HostId, Rate, SwitchId};
use serde::{Deserialize, Serialize};

use super::graph::check_size;
use super::{Graph, LinkConfig, Node};
use crate::ConfigError;
use crate::two::two;

/// Nodes and links, listed one by one. Names are free; a node that appears in `hosts` is a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Explicit {
    /// Names of the hosts, in the order of their numbers. Each has exactly one link.
    pub hosts: Vec<String>,
    /// Names of the switches. None: two hosts back to back.
    #[serde(default)]
    pub switches: Vec<String>,
    /// The links. Several between the same two switches are parallel links.
    pub links: Vec<ExplicitLink>,
}

/// One link of an [`Explicit`] topology.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExplicitLink {
    /// Names of the two nodes that the link joins.
    #[serde(deserialize_with = "two")]
    pub between: [String; 2],
    /// Rate of each direction; above zero.
    pub rate: Rate,
    /// Propagation delay of each direction; above zero.
    pub delay: Duration,
}

impl Explicit {
    /// Returns the network; tiers and units follow from the links ([`Graph::place_switches`]).
    ///
    /// # Errors
    /// Names that occur twice or are empty, links to nodes that are not named or to themselves, links of rate or delay
    /// zero, and errors of [`Graph::check`].
    pub fn build(&self) -> Result<Graph, ConfigError> {
        check_size("hosts", self.hosts.len() as u64, self.links.len() as u64)?;
        let mut graph = Graph::default();
        let mut nodes = BTreeMap::new();
        for (n, name) in (0..).zip(&self.hosts) {
            insert(&mut nodes, name, Node::Host(HostId(n)), "hosts", n)?;
            graph.add_host(name.clone(), 0);
        }
        for (n, name) in (0..).zip(&self.switches) {
            insert(&mut nodes, name, Node::Switch(SwitchId(n)), "switches", n)?;
            graph.add_switch(name.clone(), 0, 0);
        }
        for (n, link) in self.links.iter().enumerate() {
            let [a, b] = &link.between;
            let ends = find(&nodes, a).and_then(|a| Ok((a, find(&nodes, b)?)));
            let (a, b) = ends.map_err(|error| error.within(&format!("links[{n}].between")))?;
            let config = LinkConfig { rate: link.rate, delay: link.delay };
            config.check(&format!("links[{n}]"))?;
            graph.connect(a, b, config);
        }
        graph.check()?;
        graph.place_switches();
        Ok(graph)
    }
}

fn insert<'a>(
    nodes: &mut BTreeMap<&'a str, Node>,
    name: &'a str,
    node: Node,
    list: &str,
    n: u32,
) -> Result<(), ConfigError> {
    let key = format!("{list}[{n}]");
    if name.trim().is_empty() {
        return Err(ConfigError::new(&key, "a node needs a name, as \"h0\""));
    }
    match nodes.insert(name, node) {
        None => Ok(()),
        Some(_) => Err(ConfigError::new(
            &key,
            format!("\"{name}\" is named twice: each host and switch needs a name of its own"),
        )),
    }
}

fn find(nodes: &BTreeMap<&str, Node>, name: &str) -> Result<Node, ConfigError> {
    nodes.get(name).copied().ok_or_else(|| {
        let hint = did_you_mean(name, nodes.keys().copied());
        ConfigError::new("", format!("there is no node \"{name}\" in `hosts` or `switches`{hint}"))
    })
}
