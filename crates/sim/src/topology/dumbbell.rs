//! Two switches and one bottleneck.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::graph::check_size;
use super::link::at_least;
use super::{Graph, LinkConfig};
use crate::ConfigError;

/// Two switches, `left` and `right`, with hosts on both sides of one bottleneck: `h0`, `h1` and so on. Each side is a
/// unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dumbbell {
    /// Hosts on the left, numbered first; at least 1.
    pub left: u32,
    /// Hosts on the right; at least 1.
    pub right: u32,
    /// Links from hosts to switches.
    pub host_link: LinkConfig,
    /// The link between the two switches.
    pub bottleneck: LinkConfig,
}

impl Dumbbell {
    /// Returns the network: switches "left" and "right".
    ///
    /// # Errors
    /// A side without hosts, too many hosts, a link of rate or delay zero.
    pub fn build(&self) -> Result<Graph, ConfigError> {
        at_least("left", self.left, 1, "each side needs")?;
        at_least("right", self.right, 1, "each side needs")?;
        self.host_link.check("host-link")?;
        self.bottleneck.check("bottleneck")?;
        let hosts = u64::from(self.left) + u64::from(self.right);
        check_size("", hosts, hosts + 1)?;

        let mut graph = Graph::default();
        let left = graph.add_switch("left".into(), 0, 0);
        let right = graph.add_switch("right".into(), 0, 1);
        for (switch, unit, hosts) in [(left, 0, self.left), (right, 1, self.right)] {
            for _ in 0..hosts {
                graph.add_host_on(switch, unit, self.host_link);
            }
        }
        graph.connect(left.into(), right.into(), self.bottleneck);
        Ok(graph)
    }
}
