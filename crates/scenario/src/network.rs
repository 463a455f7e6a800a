//! A scenario's network, and the facts about it that settings are derived from.

use std::collections::BTreeSet;
use std::sync::Arc;

use selvedge_sim::config::BufferConfig;
use selvedge_sim::topology::{Graph, Link, Path, Paths, Routes};
use selvedge_units::{Bytes, Duration, HostId, Rate, SwitchId};

/// A network with its routes.
#[derive(Clone, Debug)]
pub struct Network {
    graph: Arc<Graph>,
    routes: Arc<Routes>,
    paths: Paths,
    longest: Path,
}

impl Network {
    /// The network of a graph that was checked. `None` when no two hosts can reach each other.
    pub(crate) fn new(graph: Graph) -> Option<Self> {
        let graph = Arc::new(graph);
        let routes = Arc::new(Routes::new(&graph, &[]));
        let paths = Paths::new(Arc::clone(&graph), Arc::clone(&routes));
        let longest = paths.longest()?;
        Some(Self { graph, routes, paths, longest })
    }
    /// Hosts, switches and links.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
    /// Which ports lead where.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }
    /// The ways between hosts.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }
    /// The path with the longest propagation delay.
    pub fn longest(&self) -> Path {
        self.longest
    }
    /// What two hosts at the ends of the longest path can send each other: where packets may spread over several
    /// paths, as much as both their links take.
    pub(crate) fn longest_rate(&self) -> Rate {
        let Path { src, dst, bottleneck, .. } = self.longest;
        let spreads =
            self.routes.leaf_of(src).zip(self.routes.leaf_of(dst)).is_some_and(|(from, to)| {
                from != to && self.routes.next_hops(self.routes.leaves()[from], to).len() > 1
            });
        match spreads {
            true => self.paths.host_rate(src).min(self.paths.host_rate(dst)),
            false => bottleneck,
        }
    }
    /// The propagation delay of the first and the last link of the longest path together.
    pub(crate) fn longest_ends(&self) -> Duration {
        let ends = [self.longest.src, self.longest.dst].map(|host| self.routes.ports().of_host(host).link);
        ends.iter().map(|&link| self.graph.links[link as usize].delay).sum()
    }
    /// Twice the propagation delay of the longest path (IRN section 4.1: 24 us).
    pub fn base_rtt(&self) -> Duration {
        self.longest.propagation * 2
    }
    /// The same with serialisation: how long a packet that takes `forth` on each link and an answer that
    /// takes `back` are under way on the longest path when nothing else is.
    pub(crate) fn loaded_rtt(&self, forth: Bytes, back: Bytes) -> Duration {
        let Path { src, dst, .. } = self.longest;
        self.paths.base_rtt(src, dst, forth, back).unwrap_or_else(|| self.base_rtt())
    }
    /// Bandwidth-delay product of the longest path (IRN section 4.1: 120 KB).
    pub fn bdp(&self) -> Bytes {
        self.paths.bdp()
    }
    /// Rate of the fastest link of any host, those inside servers left out.
    pub fn line_rate(&self) -> Rate {
        self.paths.fastest_host()
    }
    /// The same of the slowest.
    pub(crate) fn slowest_line_rate(&self) -> Rate {
        let hosts = (0..self.graph.host_count()).map(HostId);
        hosts.map(|host| self.paths.host_rate(host)).min().unwrap_or_default()
    }
    /// Rate of the slowest link.
    pub(crate) fn slowest_link(&self) -> Rate {
        self.graph.links.iter().map(|link| link.rate).min().unwrap_or_default()
    }
    /// The links that end at a switch: those that PFC can pause.
    pub(crate) fn links_to_switches(&self) -> impl Iterator<Item = &Link> {
        self.graph.links.iter().filter(|link| link.a.switch().is_some() || link.b.switch().is_some())
    }

    /// Buffers that the topology file gives to ports of switches, port by port; `None` where it does not.
    pub(crate) fn own_buffers(&self) -> impl Iterator<Item = Option<Bytes>> {
        let ends = self.graph.links.iter().flat_map(|link| [(link.a, link.buffers[0]), (link.b, link.buffers[1])]);
        ends.filter(|(node, _)| node.switch().is_some()).map(|(_, buffer)| buffer)
    }

    /// How long a packet waits at most where much is queued.
    ///
    /// IRN section 4.1 calls 320 us the maximum when "the switch buffer on a congested link is completely full": 24 us
    /// and six inputs of 240 KB at 40 Gb/s (288 us): ports x buffer / rate, of the switch where that is longest. Where
    /// switches trim, an output has short queues of its own, for full frames of `frame` bytes, one per priority of
    /// `data`, and for headers; packets that take all paths fill many of them, so all on the way may be full, and
    /// those of the lowest priority wait for all others.
    pub(crate) fn longest_queueing(&self, buffer: &BufferConfig, frame: Bytes, data: &BTreeSet<u8>) -> Duration {
        match buffer {
            BufferConfig::InputQueued(own) => {
                self.in_worst_switch(|switch, links| links.iter().map(|link| own.room(link, switch.into())).sum())
            }
            BufferConfig::SharedBuffer(shared) => self.in_worst_switch(|_, _| Some(shared.total)),
            BufferConfig::FairQueued(fair) => self.in_worst_switch(|_, _| fair.per_port.resolve(|| None)),
            BufferConfig::Trimming(trimming) => {
                let queues = data.iter().filter(|&&priority| priority != trimming.header_class).count() as u64;
                let full = trimming.data_room(frame) * queues + trimming.header_room(frame).unwrap_or_default();
                let outputs = self.longest.links.saturating_sub(1);
                self.slowest_link().time_for(full).saturating_mul(outputs.into())
            }
        }
    }
    /// How long it takes the slowest link of a switch to send what is `full` there, of the switch where that is
    /// longest.
    fn in_worst_switch(&self, full: impl Fn(SwitchId, &[&Link]) -> Option<Bytes>) -> Duration {
        let switches = (0..).map(SwitchId).zip(self.links_of_switches());
        let waits = switches.filter_map(|(switch, links)| {
            let slowest = links.iter().map(|link| link.rate).min()?;
            Some(slowest.time_for(full(switch, &links)?))
        });
        waits.max().unwrap_or_default()
    }
    /// The links of each switch.
    pub(crate) fn links_of_switches(&self) -> impl Iterator<Item = Vec<&Link>> {
        (0..self.graph.switches.len() as u32).map(|switch| {
            let ports = self.routes.ports().of(SwitchId(switch)).iter();
            ports.map(|port| &self.graph.links[port.link as usize]).collect()
        })
    }
}
