//! Networks: hosts, switches and the links between them.
//!
//! Each builder turns its few parameters into a [`Graph`]; everything after that works on graphs.

mod graph;

pub use graph::{Graph, Host, Link, Node, Switch};

use schemars::JsonSchema;
use selvedge_units::{Duration, Rate};
use serde::{Deserialize, Serialize};

/// A link's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction.
    pub delay: Duration,
}

/// Three-tier fat-tree of k-port switches: k pods, k^3/4 hosts, full bisection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FatTree {
    /// Ports per switch; even, at least 2. Hosts: k^3/4.
    pub k: u32,
    /// Every link.
    pub link: LinkConfig,
}

/// Two tiers: every leaf connects to every spine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LeafSpine {
    /// Leaf (top-of-rack) switches.
    pub leaves: u32,
    /// Spine switches.
    pub spines: u32,
    /// Hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// Links from hosts to leaves.
    pub host_link: LinkConfig,
    /// Links from leaves to spines. Oversubscription follows from counts and rates.
    pub spine_link: LinkConfig,
    /// Parallel links between each leaf and each spine.
    #[serde(default = "one")]
    pub parallel_links: u32,
}

/// Two switches with hosts on both sides of one bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dumbbell {
    /// Hosts on the left, numbered first.
    pub left: u32,
    /// Hosts on the right.
    pub right: u32,
    /// Links from hosts to switches.
    pub host_link: LinkConfig,
    /// The link between the two switches.
    pub bottleneck: LinkConfig,
}

/// A row of switches; hosts on the first and the last, or on each.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chain {
    /// Switches in the row, at least 1.
    pub switches: u32,
    /// Hosts on the first and on the last switch (on the only one: twice as many).
    #[serde(default = "one")]
    pub hosts_per_end: u32,
    /// Hosts on each inner switch.
    #[serde(default)]
    pub hosts_per_inner: u32,
    /// Links from hosts to switches.
    pub host_link: LinkConfig,
    /// Links between switches.
    pub switch_link: LinkConfig,
}

/// Nodes and links written out. Names are free; a node that appears in `hosts` is a host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Explicit {
    /// Names of the hosts, in the order of their numbers. Each has exactly one link.
    pub hosts: Vec<String>,
    /// Names of the switches.
    pub switches: Vec<String>,
    /// The links.
    pub links: Vec<ExplicitLink>,
}

/// One link of an [`Explicit`] topology.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ExplicitLink {
    /// The names of the two nodes that it joins.
    pub between: [String; 2],
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction.
    pub delay: Duration,
}

/// A topology from a file of another simulator (ns-3 RDMA `topology.txt`, htsim `.topo`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyFile {
    /// Path, relative to the scenario file. The dialect is detected.
    pub path: String,
}

fn one() -> u32 {
    1
}
