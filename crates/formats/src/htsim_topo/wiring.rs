//! Wiring of htsim's switches.

use std::fmt;

use selvedge_units::{Duration, Rate};

use super::FatTreeFile;

/// Node of the tree, numbered from 0 within its tier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Node {
    /// Host with this number.
    Host(u32),
    /// Switch with hosts.
    Tor(u32),
    /// Aggregation switch, or spine.
    Agg(u32),
    /// Core switch.
    Core(u32),
}

/// Name of the node: "h17", "tor2", "agg3", "core0".
impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(number) => write!(f, "h{number}"),
            Self::Tor(number) => write!(f, "tor{number}"),
            Self::Agg(number) => write!(f, "agg{number}"),
            Self::Core(number) => write!(f, "core{number}"),
        }
    }
}

/// Full-duplex link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// End nearer to the hosts.
    pub lower: Node,
    /// End farther from the hosts.
    pub upper: Node,
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction.
    pub delay: Duration,
}

impl FatTreeFile {
    /// Returns the links: hosts to ToRs by host, ToRs to aggregation switches by ToR, aggregation switches to cores by
    /// aggregation switch. Parallel links of a bundle follow each other.
    ///
    /// Every ToR reaches every aggregation switch of its pod. The aggregation switches at one position
    /// of all pods share their cores: position `p` has the cores `p`, `p + aggs_per_pod`, and so on.
    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        let hosts = (0..self.hosts).map(|host| (Node::Host(host), Node::Tor(host / self.hosts_per_tor()), 0));
        let tors = (0..self.tors()).flat_map(|tor| {
            let first = tor / self.tors_per_pod * self.aggs_per_pod;
            (first..first + self.aggs_per_pod).map(move |agg| (Node::Tor(tor), Node::Agg(agg), 1))
        });
        let aggs = (0..self.aggs()).flat_map(|agg| {
            let position = (agg % self.aggs_per_pod) as usize;
            let cores = (0..self.cores).skip(position).step_by(self.aggs_per_pod as usize);
            cores.map(move |core| (Node::Agg(agg), Node::Core(core), 2))
        });
        hosts.chain(tors).chain(aggs).flat_map(|(lower, upper, tier)| {
            let tier = self.tiers[tier];
            let link = Link { lower, upper, rate: tier.downlink_rate, delay: tier.downlink_delay };
            (0..tier.bundle).map(move |_| link)
        })
    }

    /// Returns the pod that a node belongs to; `None` for cores.
    pub fn pod_of(&self, node: Node) -> Option<u32> {
        match node {
            Node::Host(host) => Some(host / self.hosts_per_pod),
            Node::Tor(tor) => Some(tor / self.tors_per_pod),
            Node::Agg(agg) => Some(agg / self.aggs_per_pod),
            Node::Core(_) => None,
        }
    }
}
