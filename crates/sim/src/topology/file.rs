//! Networks from files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Graph;
use crate::{ConfigError, Library};

/// Topology from a file of another simulator (ns-3 RDMA `topology.txt`, htsim `.topo`). Nodes of ns-3 are named by
/// their numbers, those of htsim `h0`, `tor0`, `agg0`, `core0` and so on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TopologyFile {
    /// Path, relative to the scenario file. The dialect is detected.
    pub path: String,
}

impl TopologyFile {
    /// Returns the network in the file.
    ///
    /// # Errors
    /// Errors of `library` about the file.
    pub fn build(&self, library: &dyn Library) -> Result<Graph, ConfigError> {
        library.topology(&self.path)
    }
}
