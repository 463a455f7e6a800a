//! The three-tier fat-tree.

use schemars::JsonSchema;
use selvedge_units::SwitchId;
use serde::{Deserialize, Serialize};

use super::{Graph, LinkConfig};
use crate::ConfigError;

/// Three-tier fat-tree of k-port switches: k pods, k^3/4 hosts, full bisection.
///
/// Wired as in Al-Fares et al., "A Scalable, Commodity Data Center Network Architecture" (SIGCOMM 2008), section 3:
/// every pod has k/2 edge and k/2 aggregation switches, all edges connect to all aggregations of their pod, and
/// aggregation `j` of each pod connects to the cores from `j * k/2` to `(j + 1) * k/2 - 1`, so that core `c` reaches
/// pod `p` through its port `p`.
///
/// Hosts are numbered pod by pod, edge by edge: `h0`, `h1` and so on; switches are `pod0-edge0`, `pod0-agg0`, `core0`.
/// On edges, host ports come first; on aggregations, edge ports come first. A pod is a unit; cores are assigned to the
/// pods in turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FatTree {
    /// Ports per switch; even, 2 to 80. Hosts: k^3/4.
    pub k: u32,
    /// Parameters of every link.
    pub link: LinkConfig,
}

impl FatTree {
    /// Returns the network: k^3/4 hosts, k^2 switches in pods, k^2/4 cores, 3k^3/4 links.
    ///
    /// # Errors
    /// `k` odd, zero or above 80; a link of rate or delay zero.
    pub fn build(&self) -> Result<Graph, ConfigError> {
        self.check()?;
        let half = self.k / 2;
        let mut graph = Graph::default();
        let mut pods = Vec::new();
        for pod in 0..self.k {
            let edges: Vec<_> = (0..half).map(|n| graph.add_switch(format!("pod{pod}-edge{n}"), 0, pod)).collect();
            let aggs: Vec<_> = (0..half).map(|n| graph.add_switch(format!("pod{pod}-agg{n}"), 1, pod)).collect();
            pods.push((edges, aggs));
        }
        let cores: Vec<SwitchId> =
            (0..half * half).map(|core| graph.add_switch(format!("core{core}"), 2, core % self.k)).collect();

        for (pod, (edges, _)) in (0..).zip(&pods) {
            for &edge in edges {
                for _ in 0..half {
                    graph.add_host_on(edge, pod, self.link);
                }
            }
        }
        for (edges, aggs) in &pods {
            for &edge in edges {
                for &agg in aggs {
                    graph.connect(edge.into(), agg.into(), self.link);
                }
            }
        }
        for (_, aggs) in &pods {
            for (&agg, group) in aggs.iter().zip(cores.chunks(half as usize)) {
                for &core in group {
                    graph.connect(agg.into(), core.into(), self.link);
                }
            }
        }
        Ok(graph)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let k = self.k;
        if !(2..=K_MAX).contains(&k) {
            let message = format!("found {k}, but a fat-tree can have 2 to {K_MAX} ports per switch (k = 6: 54 hosts)");
            return Err(ConfigError::new("k", message));
        }
        if !k.is_multiple_of(2) {
            let message =
                format!("a fat-tree needs an even number of ports per switch, found {k}: try {} or {}", k - 1, k + 1);
            return Err(ConfigError::new("k", message));
        }
        self.link.check("link")
    }
}

/// Largest `k`, with 128,000 hosts.
const K_MAX: u32 = 80;
