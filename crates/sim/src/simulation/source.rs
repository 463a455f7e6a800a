//! Networks that a simulation accepts.

use std::sync::Arc;

use crate::error::{ConfigError, Library};
use crate::resolve::Network;
use crate::topology::{Chain, Dumbbell, Explicit, FatTree, Graph, LeafSpine, Topology};

/// Network of a simulation, in any of its forms.
#[derive(Clone, Debug)]
pub enum NetworkSource {
    /// Description with parameters, as in a scenario file.
    Topology(Topology),
    /// Hosts, switches and links.
    Graph(Graph),
    /// Network with its routes, which other runs use, too.
    Network(Arc<Network>),
}

impl NetworkSource {
    /// Returns the network; files come from `library`.
    pub(super) fn network(self, library: &dyn Library) -> Result<Arc<Network>, ConfigError> {
        match self {
            Self::Topology(topology) => Network::of_checked(topology.build(library)?).map(Arc::new),
            Self::Graph(graph) => Network::of(graph).map(Arc::new),
            Self::Network(network) => Ok(network),
        }
    }
}

impl From<Topology> for NetworkSource {
    fn from(topology: Topology) -> Self {
        Self::Topology(topology)
    }
}
impl From<FatTree> for NetworkSource {
    fn from(fat_tree: FatTree) -> Self {
        Self::Topology(Topology::FatTree(fat_tree))
    }
}
impl From<LeafSpine> for NetworkSource {
    fn from(leaf_spine: LeafSpine) -> Self {
        Self::Topology(Topology::LeafSpine(leaf_spine))
    }
}
impl From<Dumbbell> for NetworkSource {
    fn from(dumbbell: Dumbbell) -> Self {
        Self::Topology(Topology::Dumbbell(dumbbell))
    }
}
impl From<Chain> for NetworkSource {
    fn from(chain: Chain) -> Self {
        Self::Topology(Topology::Chain(chain))
    }
}
impl From<Explicit> for NetworkSource {
    fn from(explicit: Explicit) -> Self {
        Self::Topology(Topology::Explicit(explicit))
    }
}
impl From<Graph> for NetworkSource {
    fn from(graph: Graph) -> Self {
        Self::Graph(graph)
    }
}
impl From<Arc<Network>> for NetworkSource {
    fn from(network: Arc<Network>) -> Self {
        Self::Network(network)
    }
}
