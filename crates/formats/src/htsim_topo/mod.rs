//! htsim's fat-tree description, `.topo`, and the network that htsim builds from it.
//!
//! ```text
//! Nodes 1024                      hosts
//! Tiers 3                         2 or 3
//! Podsize 64                      hosts per pod; all of them if there are 2 tiers
//!
//! Tier 0                          0: switches with hosts (ToR), 1: aggregation or spine, 2: core
//! Downlink_speed_Gbps 100         of each link to the tier below
//! Downlink_Latency_ns 1000        the same links
//! Radix_Down 8
//! Radix_Up 8                      not for the top tier
//! Oversubscribed 1                traffic from below over traffic to above, default 1
//! Bundle 1                        parallel links to each node below, default 1
//! Switch_Latency_ns 0             default 0
//! Queue_Up 100000                 bytes per port, optional
//! Queue_Down 100000
//! ```
//!
//! Keys may be written in any case. htsim ignores keys that it does not know; here they are errors.

mod check;
mod read;
mod wiring;

use selvedge_units::{Bytes, Duration, Rate};

pub use read::read;
pub use wiring::{Link, Node};

/// Fat-tree (or leaf-spine, with two tiers) whose numbers fit together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FatTreeFile {
    /// Number of hosts.
    pub hosts: u32,
    /// Properties of tier 0 (ToRs), tier 1 (aggregation, spines) and, of three tiers, tier 2 (cores).
    pub hosts_per_pod: u32,
    /// Tier 0 (ToRs), tier 1 (aggregation, spines) and, of three tiers, tier 2 (cores).
    pub tiers: Vec<Tier>,
    /// Number of pods; one if there are two tiers.
    pub pods: u32,
    /// Number of ToRs in each pod.
    pub tors_per_pod: u32,
    /// Number of aggregation switches in each pod: the spines, if there are two tiers.
    pub aggs_per_pod: u32,
    /// Number of core switches; none if there are two tiers.
    pub cores: u32,
    /// Smallest buffer of any port, if the file gives some.
    pub least_queue: Option<WrittenQueue>,
}

/// Buffer as written in a file: the key, and the place of its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WrittenQueue {
    /// Size in bytes per port.
    pub room: Bytes,
    /// Line and column of the number, from 1.
    pub place: (u64, u64),
    /// Key of the buffer.
    pub key: &'static str,
}

/// Properties of the switches of one tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tier {
    /// Rate of each direction of each link to the tier below.
    pub downlink_rate: Rate,
    /// Propagation delay of each link to the tier below; above zero.
    pub downlink_delay: Duration,
    /// Ports to the tier below.
    pub radix_down: u32,
    /// Ports to the tier above; `None` for the top tier.
    pub radix_up: Option<u32>,
    /// Ratio of the traffic that may come from below to the capacity upwards.
    pub oversubscription: u32,
    /// Parallel links to each node of the tier below.
    pub bundle: u32,
    /// Time that a packet takes through the switch.
    pub switch_delay: Duration,
    /// Buffer of each port upwards, where the file gives it.
    pub queue_up: Option<Bytes>,
    /// Buffer of each port downwards, where the file gives it.
    pub queue_down: Option<Bytes>,
}

impl FatTreeFile {
    /// Returns the number of hosts on each ToR.
    pub fn hosts_per_tor(&self) -> u32 {
        self.hosts_per_pod / self.tors_per_pod
    }
    /// Returns the number of ToRs in all pods.
    pub fn tors(&self) -> u32 {
        self.pods * self.tors_per_pod
    }
    /// Returns the number of aggregation switches in all pods.
    pub fn aggs(&self) -> u32 {
        self.pods * self.aggs_per_pod
    }
    /// Returns the buffers of the ports at the lower and the upper end of a link, where the file gives them; none at
    /// hosts.
    pub fn queues(&self, link: Link) -> [Option<Bytes>; 2] {
        let tier = |node| match node {
            Node::Host(_) => None,
            Node::Tor(_) => self.tiers.first(),
            Node::Agg(_) => self.tiers.get(1),
            Node::Core(_) => self.tiers.get(2),
        };
        [tier(link.lower).and_then(|tier| tier.queue_up), tier(link.upper).and_then(|tier| tier.queue_down)]
    }
    /// Returns the number of switches of all tiers.
    pub fn switches(&self) -> u32 {
        self.tors() + self.aggs() + self.cores
    }
}
