//! A network as a graph.

use selvedge_units::{Chance, Duration, HostId, Rate, SwitchId};

/// Hosts, switches and links.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// The hosts; each has exactly one link.
    pub hosts: Vec<Host>,
    /// The switches.
    pub switches: Vec<Switch>,
    /// The links, each of which carries both directions.
    pub links: Vec<Link>,
}

/// An end point with one NIC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name: "h17", or the node id of the file it came from.
    pub name: String,
    /// Which unit of locality it belongs to: a pod, a rack. Units are what partitions are made of.
    pub unit: u32,
}

/// A switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    /// Its name, which says where it stands: "pod2-edge0", "core5".
    pub name: String,
    /// Distance from the hosts: 0 for switches with hosts.
    pub tier: u8,
    /// Which unit of locality it belongs to.
    pub unit: u32,
}

/// A full-duplex link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// One end.
    pub a: Node,
    /// The other.
    pub b: Node,
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction; above zero.
    pub delay: Duration,
    /// Random loss per packet in each direction, where the topology file asks for it.
    pub loss: Chance,
}

/// What a link ends at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Node {
    /// A host.
    Host(HostId),
    /// A switch.
    Switch(SwitchId),
}
