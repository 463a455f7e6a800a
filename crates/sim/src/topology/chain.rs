//! A row of switches.

use schemars::JsonSchema;
use selvedge_units::SwitchId;
use serde::{Deserialize, Serialize};

use super::graph::check_size;
use super::link::at_least;
use super::{Graph, LinkConfig};
use crate::ConfigError;

/// Row of switches, with hosts on the first and the last, or on each ("parking lot").
///
/// Hosts are numbered along the row: `h0`, `h1` and so on; so are switches: `s0`, `s1`. Each switch is a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Chain {
    /// Switches in the row, at least 1.
    pub switches: u32,
    /// Hosts on the first and on the last switch (on the only one: twice as many), at least 1.
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

impl Chain {
    /// Returns the network: switches "s0", "s1", ...
    ///
    /// # Errors
    /// No switches, no hosts at the ends, too many hosts, a link of rate or delay zero.
    pub fn build(&self) -> Result<Graph, ConfigError> {
        at_least("switches", self.switches, 1, "a chain needs")?;
        at_least("hosts-per-end", self.hosts_per_end, 1, "each end needs")?;
        self.host_link.check("host-link")?;
        self.switch_link.check("switch-link")?;
        let inner = u64::from(self.switches.saturating_sub(2)) * u64::from(self.hosts_per_inner);
        let hosts = 2 * u64::from(self.hosts_per_end) + inner;
        check_size("", hosts, hosts + u64::from(self.switches) - 1)?;

        let mut graph = Graph::default();
        let last = self.switches - 1;
        for n in 0..self.switches {
            let tier = if self.hosts_on(n) > 0 { 0 } else { n.min(last - n).min(255) as u8 };
            graph.add_switch(format!("s{n}"), tier, n);
        }
        for n in 0..self.switches {
            for _ in 0..self.hosts_on(n) {
                graph.add_host_on(SwitchId(n), n, self.host_link);
            }
        }
        for n in 0..last {
            let (this, next) = (SwitchId(n), SwitchId(n + 1));
            graph.connect(this.into(), next.into(), self.switch_link);
        }
        Ok(graph)
    }

    fn hosts_on(&self, switch: u32) -> u32 {
        let ends = u32::from(switch == 0) + u32::from(switch == self.switches - 1);
        if ends == 0 { self.hosts_per_inner } else { ends * self.hosts_per_end }
    }
}

fn one() -> u32 {
    1
}
