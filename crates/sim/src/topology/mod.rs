//! Networks: hosts, switches and the links between them.
//!
//! Each builder turns its few parameters into a [`Graph`]; everything after that works on graphs: [`Ports`] numbers the
//! ends of links, [`Routes`] gives the ports that lead closer to a host, [`Paths`] the properties of the path between
//! two hosts in an empty network, [`LinkLoads`] the load of each link under an offered traffic.
//!
//! ```
//! use selvedge_sim::topology::{FatTree, LinkConfig, Paths};
//! use selvedge_units::{Bytes, Duration, Rate};
//!
//! // The network of the IRN paper, section 4.1.
//! let link = LinkConfig { rate: Rate::from_gbps(40), delay: Duration::from_us(2) };
//! let paths = Paths::of(FatTree { k: 6, link }.build()?)?;
//! assert_eq!(paths.graph().hosts.len(), 54);
//! assert_eq!(paths.bdp().bytes, Bytes::from_kb(120));
//! # Ok::<(), selvedge_sim::ConfigError>(())
//! ```

mod alternatives;
mod chain;
mod choice;
mod classes;
mod dumbbell;
mod explicit;
mod fat_tree;
mod file;
mod graph;
mod inner;
mod kinds;
mod leaf_spine;
mod link;
mod load;
mod paths;
mod ports;
mod routes;

pub use chain::Chain;
pub use classes::{PathClass, PathClasses};
pub use dumbbell::Dumbbell;
pub use explicit::{Explicit, ExplicitLink};
pub use fat_tree::FatTree;
pub use file::TopologyFile;
pub use graph::{Graph, Host, Link, MAX_HOSTS, MAX_LINKS, Node, Switch};
pub use inner::InnerNics;
pub use kinds::Kind;
pub use leaf_spine::LeafSpine;
pub use link::LinkConfig;
pub use load::{Demand, LinkLoad, LinkLoads, uniform_link_loads};
pub use paths::{Bdp, Framing, Path, PathLinks, Paths};
pub use ports::{Port, Ports};
pub use routes::{Group, RouteTable, Routes};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ConfigError, Library};

/// Topology of the network. Each variant has a builder in a file of its own; a new one is added here as well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Three-tier fat-tree of k-port switches.
    FatTree(FatTree),
    /// Two tiers in which every leaf connects to every spine.
    LeafSpine(LeafSpine),
    /// Hosts on both sides of one bottleneck.
    Dumbbell(Dumbbell),
    /// A row of switches.
    Chain(Chain),
    /// Nodes and links, listed one by one.
    Explicit(Explicit),
    /// Topology file of another simulator.
    File(TopologyFile),
}

impl Topology {
    /// Returns the network of this description, checked (see [`Graph::check`]).
    ///
    /// # Errors
    /// Values that make no network, named by a key like "fat-tree.k"; by the variant alone where several values
    /// together are wrong.
    pub fn build(&self, library: &dyn Library) -> Result<Graph, ConfigError> {
        let graph = match self {
            Self::FatTree(fat_tree) => fat_tree.build(),
            Self::LeafSpine(leaf_spine) => leaf_spine.build(),
            Self::Dumbbell(dumbbell) => dumbbell.build(),
            Self::Chain(chain) => chain.build(),
            Self::Explicit(explicit) => explicit.build(),
            Self::File(file) => file.build(library),
        };
        let checked = graph.and_then(|graph| graph.check().map_err(|error| self.of_graph(error)).map(|()| graph));
        checked.map_err(|error| error.within(self.name()))
    }
    /// Returns an error of the graph with a key of the scenario: where nodes and links are not listed, its own keys are
    /// none.
    fn of_graph(&self, error: ConfigError) -> ConfigError {
        match self {
            Self::Explicit(_) => error,
            _ => ConfigError { key: String::new(), ..error },
        }
    }
    /// Returns the key of this variant in a scenario.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FatTree(_) => "fat-tree",
            Self::LeafSpine(_) => "leaf-spine",
            Self::Dumbbell(_) => "dumbbell",
            Self::Chain(_) => "chain",
            Self::Explicit(_) => "explicit",
            Self::File(_) => "file",
        }
    }
}

#[cfg(test)]
mod tests;
