//! A network as a graph.

use std::collections::VecDeque;

use selvedge_units::{Bytes, Chance, Duration, HostId, Rate, SwitchId};

use super::{LinkConfig, Ports};
use crate::ConfigError;

/// Hosts, switches and links.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// The hosts, followed by the second NICs that some have; each has exactly one link.
    pub hosts: Vec<Host>,
    /// Owners of the second NICs, which are the last entries of `hosts`. Second NICs are on networks inside servers
    /// (NVLink), which need not be connected to the others; flows between two hosts whose second NICs are on one switch
    /// use these ([`InnerNics`](super::InnerNics)).
    pub inner: Vec<HostId>,
    /// The switches.
    pub switches: Vec<Switch>,
    /// The links, each of which carries both directions.
    pub links: Vec<Link>,
}

/// An end point with one NIC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Name of the host: "h17", or the node id of the file it came from.
    pub name: String,
    /// Unit of locality that the host belongs to: a pod, a rack. Partitions consist of units.
    pub unit: u32,
}

/// A switch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Switch {
    /// Name of the switch, which says its position: "pod2-edge0", "core5".
    pub name: String,
    /// Distance from the hosts: 0 for switches with hosts.
    pub tier: u8,
    /// Unit of locality that the switch belongs to.
    pub unit: u32,
}

/// A full-duplex link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// One end of the link.
    pub a: Node,
    /// The other end of the link.
    pub b: Node,
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction; above zero.
    pub delay: Duration,
    /// Random loss per packet in each direction, where the topology file asks for it.
    pub loss: Chance,
    /// Buffers of the ports at `a` and `b`, where the topology file gives them.
    pub buffers: [Option<Bytes>; 2],
}

impl Link {
    /// Creates a link without random loss, and without buffers of its own.
    pub fn new(a: Node, b: Node, config: LinkConfig) -> Self {
        Self { a, b, rate: config.rate, delay: config.delay, loss: Chance::NEVER, buffers: [None; 2] }
    }
    /// Returns the buffer of the port at `node`, where the topology file gives it.
    pub fn buffer_at(&self, node: Node) -> Option<Bytes> {
        self.buffers[usize::from(self.a != node)]
    }
}

/// End of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Node {
    /// A host.
    Host(HostId),
    /// A switch.
    Switch(SwitchId),
}

/// Largest number of hosts of a network.
pub const MAX_HOSTS: u64 = 1 << 17;
/// Largest number of links of a network.
pub const MAX_LINKS: u64 = 1 << 22;
/// Largest number of entries, switches times switches with hosts, of a routing table: 512 MiB.
const MAX_ROUTES: u64 = 1 << 27;

impl Graph {
    /// Adds a host without a link and returns its number.
    pub fn add_host(&mut self, name: String, unit: u32) -> HostId {
        self.hosts.push(Host { name, unit });
        HostId(self.hosts.len() as u32 - 1)
    }
    /// Adds a second NIC of `host`, without a link. All hosts must be there already.
    pub fn add_inner_nic(&mut self, name: String, host: HostId) -> HostId {
        self.inner.push(host);
        self.add_host(name, self.hosts[host.index()].unit)
    }
    /// Adds a switch and returns its number.
    pub fn add_switch(&mut self, name: String, tier: u8, unit: u32) -> SwitchId {
        self.switches.push(Switch { name, tier, unit });
        SwitchId(self.switches.len() as u32 - 1)
    }
    /// Adds a link without random loss.
    pub fn connect(&mut self, a: Node, b: Node, link: LinkConfig) {
        self.links.push(Link::new(a, b, link));
    }
    /// Adds the next host, "h0" being the first, with a link to `switch`.
    pub(super) fn add_host_on(&mut self, switch: SwitchId, unit: u32, link: LinkConfig) {
        let host = self.add_host(format!("h{}", self.hosts.len()), unit);
        self.connect(host.into(), switch.into(), link);
    }

    /// Returns the number of hosts, second NICs not counted.
    pub fn host_count(&self) -> u32 {
        (self.hosts.len() - self.inner.len()) as u32
    }
    /// Returns the hosts, in ascending order.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> + use<> {
        (0..self.host_count()).map(HostId)
    }
    /// Returns the second NICs, each with its owner.
    pub fn inner_nics(&self) -> impl Iterator<Item = (HostId, HostId)> {
        (self.host_count()..).map(HostId).zip(self.inner.iter().copied())
    }

    /// Returns the name of `node`.
    ///
    /// # Panics
    /// When the graph has no such node.
    pub fn name(&self, node: Node) -> &str {
        match node {
            Node::Host(host) => &self.hosts[host.index()].name,
            Node::Switch(switch) => &self.switches[switch.index()].name,
        }
    }
    /// Returns the node called `name`.
    pub fn find(&self, name: &str) -> Option<Node> {
        let host = self.hosts.iter().position(|host| host.name == name).map(|n| Node::Host(HostId(n as u32)));
        let switch = || self.switches.iter().position(|switch| switch.name == name);
        host.or_else(|| switch().map(|n| Node::Switch(SwitchId(n as u32))))
    }
    /// Returns all names, hosts first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let hosts = self.hosts.iter().map(|host| host.name.as_str());
        hosts.chain(self.switches.iter().map(|switch| switch.name.as_str()))
    }
    /// Returns the distance from the hosts: 0 for hosts, 1 for switches of tier 0, and so on.
    pub fn height(&self, node: Node) -> u32 {
        match node {
            Node::Host(_) => 0,
            Node::Switch(switch) => 1 + u32::from(self.switches[switch.index()].tier),
        }
    }
    /// Returns both ends of `link` by name: "pod0-edge1 - pod0-agg0".
    pub fn link_name(&self, link: &Link) -> String {
        format!("{} - {}", self.name(link.a), self.name(link.b))
    }

    /// Checks that the network can be simulated: at least two hosts, each with exactly one link; every link between two
    /// different nodes, with a rate and a delay above zero; everything connected, second NICs excepted; no more than
    /// [`MAX_HOSTS`], [`MAX_LINKS`] and the largest routing table.
    ///
    /// # Errors
    /// The first violation, with the names of the nodes. Keys are "hosts", "switches" or "links\[3\]".
    pub fn check(&self) -> Result<(), ConfigError> {
        check_size("hosts", u64::from(self.host_count()), self.links.len() as u64)?;
        for (n, link) in self.links.iter().enumerate() {
            self.check_link(link).map_err(|error| error.within(&format!("links[{n}]")))?;
        }
        self.check_host_links()?;
        let ports = Ports::new(self);
        self.check_switches(&ports)?;
        self.check_connected(&ports)
    }

    fn check_link(&self, link: &Link) -> Result<(), ConfigError> {
        for node in [link.a, link.b] {
            let (index, count) = match node {
                Node::Host(host) => (host.index(), self.hosts.len()),
                Node::Switch(switch) => (switch.index(), self.switches.len()),
            };
            if index >= count {
                return Err(ConfigError::new("", format!("there is no node {node:?}: there are {count}, from 0")));
            }
        }
        if link.a == link.b {
            return Err(ConfigError::new("", format!("\"{}\" is linked to itself", self.name(link.a))));
        }
        LinkConfig { rate: link.rate, delay: link.delay }.check("").map_err(|mut error| {
            error.message = format!("{} ({})", error.message, self.link_name(link));
            error
        })
    }
    fn check_host_links(&self) -> Result<(), ConfigError> {
        let mut counts = vec![0u32; self.hosts.len()];
        for link in &self.links {
            for node in [link.a, link.b] {
                if let Node::Host(host) = node {
                    counts[host.index()] += 1;
                }
            }
        }
        match self.hosts.iter().zip(counts).find(|&(_, count)| count != 1) {
            None => Ok(()),
            Some((host, 0)) => Err(ConfigError::new(
                "hosts",
                format!("host \"{}\" has no link: link it to a switch, or leave it out", host.name),
            )),
            Some((host, count)) => Err(ConfigError::new(
                "hosts",
                format!(
                    "host \"{}\" has {count} links, but a host has one NIC with one link: put a switch in between, or make it several hosts",
                    host.name
                ),
            )),
        }
    }
    fn check_switches(&self, ports: &Ports) -> Result<(), ConfigError> {
        let error = |message| Err(ConfigError::new("switches", message));
        let mut leaves = 0u64;
        for (n, switch) in (0..).map(SwitchId).zip(&self.switches) {
            let ports = ports.of(n);
            leaves += u64::from(ports.iter().any(|port| port.peer.host().is_some()));
            if ports.len() > usize::from(u16::MAX) {
                let (name, count, most) = (&switch.name, ports.len(), u16::MAX);
                return error(format!("\"{name}\" has {count} links, but a switch can have {most}"));
            }
        }
        let switches = self.switches.len() as u64;
        if switches * leaves > MAX_ROUTES {
            return error(format!(
                "{switches} switches need routes to {leaves} switches with hosts, {} in all, but at most {MAX_ROUTES} can be kept: put more hosts on each switch",
                switches * leaves
            ));
        }
        Ok(())
    }
    fn check_connected(&self, ports: &Ports) -> Result<(), ConfigError> {
        let mut reached = (vec![false; self.hosts.len()], vec![false; self.switches.len()]);
        let mut reach = |from: Node| {
            let mut waiting = vec![from];
            while let Some(node) = waiting.pop() {
                let seen = match node {
                    Node::Host(host) => &mut reached.0[host.index()],
                    Node::Switch(switch) => &mut reached.1[switch.index()],
                };
                if std::mem::replace(seen, true) {
                    continue;
                }
                match node {
                    Node::Host(host) => waiting.push(ports.of_host(host).peer),
                    Node::Switch(switch) => waiting.extend(ports.of(switch).iter().map(|port| port.peer)),
                }
            }
            reached.0.iter().position(|&seen| !seen)
        };
        let host = reach(Node::Host(HostId(0))).filter(|&host| host < self.host_count() as usize);
        for (nic, _) in self.inner_nics() {
            reach(nic.into());
        }
        let host = host.map(|n| &self.hosts[n].name);
        let switch = || reached.1.iter().position(|&seen| !seen).map(|n| &self.switches[n].name);
        match host.or_else(switch) {
            None => Ok(()),
            Some(name) => Err(ConfigError::new(
                "links",
                format!("no path leads from \"{}\" to \"{name}\": the network must hang together", self.hosts[0].name),
            )),
        }
    }

    /// Sets every switch's tier and every node's unit from the links, for networks that come without them. Each switch
    /// with hosts is a unit with its hosts; every other switch belongs to the unit of one of its neighbours closer to
    /// the hosts, which are taken in turn.
    pub fn place_switches(&mut self) {
        let ports = Ports::new(self);
        let mut units = 0;
        let mut placed = vec![false; self.switches.len()];
        let mut waiting = VecDeque::new();
        for leaf in (0..self.switches.len() as u32).map(SwitchId) {
            let hosts: Vec<HostId> = ports.of(leaf).iter().filter_map(|port| port.peer.host()).collect();
            if hosts.is_empty() {
                continue;
            }
            hosts.iter().for_each(|host| self.hosts[host.index()].unit = units);
            self.switches[leaf.index()].tier = 0;
            self.switches[leaf.index()].unit = units;
            units += 1;
            placed[leaf.index()] = true;
            waiting.push_back(leaf);
        }
        let neighbours = |switch: SwitchId| ports.of(switch).iter().filter_map(|port| port.peer.switch());
        while let Some(below) = waiting.pop_front() {
            for switch in neighbours(below) {
                if std::mem::replace(&mut placed[switch.index()], true) {
                    continue;
                }
                let tier = self.switches[below.index()].tier.saturating_add(1);
                let closer: Vec<u32> = neighbours(switch)
                    .filter(|&peer| peer == below || placed[peer.index()] && self.switches[peer.index()].tier < tier)
                    .map(|peer| self.switches[peer.index()].unit)
                    .collect();
                let unit = closer[switch.index() % closer.len()];
                self.switches[switch.index()].tier = tier;
                self.switches[switch.index()].unit = unit;
                waiting.push_back(switch);
            }
        }
        // NICs of one host are always in the same unit.
        for (nic, host) in (self.host_count() as usize..).zip(&self.inner) {
            self.hosts[nic].unit = self.hosts[host.index()].unit;
        }
        if self.switches.is_empty() {
            (0..).zip(&mut self.hosts).for_each(|(unit, host)| host.unit = unit);
        }
    }
}

impl Node {
    /// Returns the host, if the node is one.
    pub const fn host(self) -> Option<HostId> {
        if let Self::Host(host) = self { Some(host) } else { None }
    }
    /// Returns the switch, if the node is one.
    pub const fn switch(self) -> Option<SwitchId> {
        if let Self::Switch(switch) = self { Some(switch) } else { None }
    }
}
impl From<HostId> for Node {
    fn from(host: HostId) -> Self {
        Self::Host(host)
    }
}
impl From<SwitchId> for Node {
    fn from(switch: SwitchId) -> Self {
        Self::Switch(switch)
    }
}

/// Checks the size of a network.
///
/// # Errors
/// Fewer than two hosts, or more hosts or links than a run can hold; the key is `key` (empty: several keys together).
pub(super) fn check_size(key: &str, hosts: u64, links: u64) -> Result<(), ConfigError> {
    if hosts < 2 {
        return Err(ConfigError::new(key, format!("traffic needs at least two hosts, found {hosts}")));
    }
    for (count, limit, what) in [(hosts, MAX_HOSTS, "hosts"), (links, MAX_LINKS, "links")] {
        if count > limit {
            return Err(ConfigError::new(
                key,
                format!("that makes {count} {what}, but at most {limit} can be simulated"),
            ));
        }
    }
    Ok(())
}
