//! Networks of two tiers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::graph::check_size;
use super::link::at_least;
use super::{Graph, LinkConfig};
use crate::ConfigError;

/// Two tiers: every leaf connects to every spine.
///
/// Hosts are numbered leaf by leaf: `h0`, `h1` and so on; switches are `leaf0`, `leaf1`, `spine0`, `spine1`. On leaves,
/// host ports come first, then spine by spine. A leaf is a unit; spines are assigned to the leaves in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LeafSpine {
    /// Leaf (top-of-rack) switches, at least 1.
    pub leaves: u32,
    /// Spine switches, at least 1.
    pub spines: u32,
    /// Hosts on each leaf, at least 1.
    pub hosts_per_leaf: u32,
    /// Links from hosts to leaves.
    pub host_link: LinkConfig,
    /// Links from leaves to spines. Oversubscription follows from counts and rates.
    pub spine_link: LinkConfig,
    /// Parallel links between each leaf and each spine, at least 1.
    #[serde(default = "one")]
    pub parallel_links: u32,
}

impl LeafSpine {
    /// Returns the network.
    ///
    /// # Errors
    /// A count of zero or beyond what can be simulated; a link of rate or delay zero; a single host.
    pub fn build(&self) -> Result<Graph, ConfigError> {
        self.check()?;
        let mut graph = Graph::default();
        let leaves: Vec<_> = (0..self.leaves).map(|leaf| graph.add_switch(format!("leaf{leaf}"), 0, leaf)).collect();
        let spines: Vec<_> =
            (0..self.spines).map(|spine| graph.add_switch(format!("spine{spine}"), 1, spine % self.leaves)).collect();
        for (unit, &leaf) in (0..).zip(&leaves) {
            for _ in 0..self.hosts_per_leaf {
                graph.add_host_on(leaf, unit, self.host_link);
            }
        }
        for &leaf in &leaves {
            for &spine in &spines {
                for _ in 0..self.parallel_links {
                    graph.connect(leaf.into(), spine.into(), self.spine_link);
                }
            }
        }
        Ok(graph)
    }
    /// Returns the ratio of the rates of a leaf's hosts to those of its uplinks: 4.0 is "4:1". At most 1 means full
    /// bisection.
    pub fn oversubscription(&self) -> f64 {
        let down = f64::from(self.hosts_per_leaf) * self.host_link.rate.as_gbps_f64();
        let up = f64::from(self.spines) * f64::from(self.parallel_links) * self.spine_link.rate.as_gbps_f64();
        down / up
    }

    fn check(&self) -> Result<(), ConfigError> {
        at_least("leaves", self.leaves, 1, "a leaf-spine network needs")?;
        at_least("spines", self.spines, 1, "a leaf-spine network needs")?;
        at_least("hosts-per-leaf", self.hosts_per_leaf, 1, "each leaf needs")?;
        at_least("parallel-links", self.parallel_links, 1, "a leaf and a spine are joined by")?;
        self.host_link.check("host-link")?;
        self.spine_link.check("spine-link")?;
        let hosts = u64::from(self.leaves) * u64::from(self.hosts_per_leaf);
        let links = u128::from(self.leaves) * u128::from(self.spines) * u128::from(self.parallel_links);
        check_size("", hosts, u64::try_from(links).unwrap_or(u64::MAX).saturating_add(hosts))
    }
}

fn one() -> u32 {
    1
}
