//! A network, and the facts about it that settings are derived from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_units::{Bytes, Duration, HostId, Rate, SwitchId};

use crate::config::BufferConfig;
use crate::error::ConfigError;
use crate::topology::{Bdp, Graph, Kind, Link, Node, Path, PathClass, Paths, Routes};

/// Network with its routes, and the facts that follow from both: round trips, bandwidth-delay products, the longest
/// queues. Computed once, for any number of runs.
#[derive(Clone, Debug)]
pub struct Network {
    paths: Arc<Paths>,
    longest: Path,
    /// Pairs of hosts with the longest round trips.
    farthest: Vec<(HostId, HostId)>,
    /// Bandwidth-delay products, indexed by the rates of hosts' links.
    bdps: BTreeMap<Rate, Bdp>,
}

/// Round trip between a sender and a receiver, on the longest path of a kind.
struct Trip {
    /// Rate of the sender's link.
    sender: Rate,
    /// Rate of the path.
    path: Rate,
    /// Round-trip time in an otherwise idle network.
    rtt: Duration,
}

/// Returns the time that a host takes to send at `rate` the data that a path of rate `slower` carries in a round trip.
pub(super) fn time_at(rate: Rate, slower: Rate, rtt: Duration) -> Duration {
    if slower < rate { rate.time_for(slower.amount_in(rtt)) } else { rtt }
}

/// Size assumed for a buffer without limit where timeouts depend on the longest queue: the buffer of large switch
/// chips.
const ENDLESS: Bytes = Bytes::from_kb(64_000);

impl Network {
    /// Returns the network of a graph.
    ///
    /// # Errors
    /// The error of [`Graph::check`], or that no two hosts can reach each other.
    pub fn of(graph: Graph) -> Result<Self, ConfigError> {
        graph.check()?;
        Self::of_checked(graph)
    }
    /// Returns the network of a graph that was checked, like those that
    /// [`Topology::build`](crate::topology::Topology::build) returns.
    ///
    /// # Errors
    /// No two hosts can reach each other.
    pub fn of_checked(graph: Graph) -> Result<Self, ConfigError> {
        let routes = Arc::new(Routes::new(&graph, &[]));
        let paths = Paths::new(Arc::new(graph), routes);
        let graph = paths.graph();
        let nowhere = || ConfigError::new("", "no host can reach another: connect at least two");
        let longest = paths.longest().ok_or_else(nowhere)?;
        let mut rates = (0..graph.host_count()).map(|host| paths.host_rate(HostId(host)));
        let rate = paths.fastest_host();
        let are_alike = rates.all(|own| own == rate) && graph.links.iter().all(|link| link.rate >= rate);
        // Where all hosts are alike, and no link is slower than theirs, the longest path stands for all.
        let (farthest, bdps) = match are_alike {
            true => {
                let bdp = Bdp { bytes: rate.amount_in(longest.propagation * 2), sender_is_slowest: true };
                (vec![(longest.src, longest.dst)], BTreeMap::from([(rate, bdp)]))
            }
            false => (paths.farthest(), paths.bdps()),
        };
        Ok(Self { paths: Arc::new(paths), longest, farthest, bdps })
    }
    /// Returns the graph: hosts, switches and links.
    pub fn graph(&self) -> &Graph {
        self.paths.graph()
    }
    /// Returns the routes: the ports that lead to each destination.
    pub fn routes(&self) -> &Routes {
        self.paths.routes()
    }
    /// Returns the paths between hosts.
    pub fn paths(&self) -> &Arc<Paths> {
        &self.paths
    }
    /// Returns the path with the longest propagation delay.
    pub fn longest(&self) -> Path {
        self.longest
    }
    /// Returns the rate at which two hosts can send to each other on paths of this kind, which are `all_alike` or not:
    /// where packets may spread over several paths, the rate of both hosts' links, unless there are too few paths of
    /// this kind.
    fn rate_on(&self, kind: &Kind, src: HostId, dst: HostId, all_alike: bool) -> Rate {
        let spreads = self.routes().leaf_of(src).zip(self.routes().leaf_of(dst)).is_some_and(|(from, to)| {
            from != to && self.routes().next_hops(self.routes().leaves()[from], to).len() > 1
        });
        let most = self.paths.host_rate(src).min(self.paths.host_rate(dst));
        match spreads {
            true if all_alike => most,
            true => Rate::from_bps(kind.bottleneck().as_bps().saturating_mul(kind.ways)).min(most),
            false => kind.bottleneck(),
        }
    }
    /// Returns the rate of a lone flow on paths of this class whose packets are spread evenly: the rate of both hosts'
    /// links, or that of the slowest link of any path times the number of paths out of either end's switch, whichever
    /// is lower.
    pub fn carried(&self, class: &PathClass) -> Rate {
        if !class.spreads {
            return class.bottleneck();
        }
        let (src, dst) = class.example;
        let leaves = self.routes().leaf_of(src).zip(self.routes().leaf_of(dst));
        let ways = |from: usize, to: usize| self.routes().next_hops(self.routes().leaves()[from], to).len() as u64;
        let ways = leaves.map_or(1, |(from, to)| ways(from, to).min(ways(to, from)));
        Rate::from_bps(class.bottleneck().as_bps().saturating_mul(ways)).min(class.sender).min(class.receiver)
    }
    /// Returns the propagation delay of the first and the last link of the longest path together.
    pub fn longest_ends(&self) -> Duration {
        let ends = [self.longest.src, self.longest.dst].map(|host| self.routes().ports().of_host(host).link);
        ends.iter().map(|&link| self.graph().links[link as usize].delay).sum()
    }
    /// Returns twice the propagation delay of the longest path (IRN section 4.1: 24 us).
    pub fn base_rtt(&self) -> Duration {
        self.longest.propagation * 2
    }
    /// Returns the longest round-trip time between any two hosts of an idle network, for a packet of `forth` bytes on
    /// each link and an answer of `back` bytes: no timeout may be shorter.
    pub fn longest_rtt(&self, forth: Bytes, back: Bytes) -> Duration {
        self.rtts(forth, back).map(|trip| trip.rtt).max().unwrap_or_else(|| self.base_rtt())
    }
    /// Returns the longest round-trip time, like [`Self::longest_rtt`], but only from hosts whose links have this rate.
    pub fn longest_rtt_from(&self, rate: Rate, forth: Bytes, back: Bytes) -> Duration {
        let own = self.rtts(forth, back).filter(|trip| trip.sender == rate);
        own.map(|trip| trip.rtt).max().unwrap_or_else(|| self.longest_rtt(forth, back))
    }
    /// Returns the time for which a host of this rate has to send to fill the path to any receiver, until the first
    /// answer comes.
    pub fn fill_time(&self, rate: Rate, forth: Bytes, back: Bytes) -> Duration {
        let own = self.rtts(forth, back).filter(|trip| trip.sender == rate);
        // Slower receivers and links on the path are taken into account by their rates.
        let times = own.map(|trip| time_at(rate, trip.path, trip.rtt));
        times.max().unwrap_or_else(|| self.longest_rtt(forth, back))
    }
    /// Returns the most data that two hosts can have under way before the first answer comes; networks inside servers
    /// are left out, which [`Network::widest_pipe_inside`] covers.
    pub fn widest_pipe(&self, forth: Bytes, back: Bytes) -> Bytes {
        let most = if self.is_faster_inside() { self.line_rate() } else { Rate::MAX };
        let outside = self.rtts(forth, back).filter(|trip| trip.sender <= most);
        outside.map(|trip| trip.path.amount_in(trip.rtt)).max().unwrap_or_default()
    }
    /// Returns the bandwidth-delay product of the widest path between two hosts inside one server, where all NICs there
    /// are faster than those of any host outside, so that rates tell them apart.
    pub fn widest_pipe_inside(&self, forth: Bytes, back: Bytes) -> Option<Bytes> {
        if !self.is_faster_inside() {
            return None;
        }
        let mut servers: BTreeMap<Node, Vec<(Rate, Duration)>> = BTreeMap::new();
        for (server, link) in self.links_inside() {
            servers.entry(server).or_default().push((link.rate, link.delay));
        }
        servers.values_mut().for_each(|links| links.sort_unstable());
        // Most are alike.
        let servers: BTreeSet<Vec<(Rate, Duration)>> = servers.into_values().collect();
        let pairs = servers.iter().flat_map(|links| {
            links.iter().enumerate().flat_map(|(n, first)| links[n + 1..].iter().map(move |second| [first, second]))
        });
        let pipes = pairs.map(|ends| {
            let rtt = ends.iter().map(|(rate, delay)| rate.time_for(forth) + rate.time_for(back) + *delay * 2).sum();
            ends[0].0.min(ends[1].0).amount_in(rtt)
        });
        pipes.max()
    }
    /// Returns whether there are networks inside servers, all of whose NICs are faster than those of hosts.
    fn is_faster_inside(&self) -> bool {
        let rate = self.line_rate();
        self.links_inside().next().is_some() && self.links_inside().all(|(_, link)| link.rate > rate)
    }
    /// Returns the links of NICs inside servers, with the switches that they are attached to.
    fn links_inside(&self) -> impl Iterator<Item = (Node, &Link)> {
        self.graph().inner_nics().map(|(nic, _)| {
            let port = self.routes().ports().of_host(nic);
            (port.peer, &self.graph().links[port.link as usize])
        })
    }
    /// Returns the longest round trips, for each kind of path between two hosts.
    fn rtts(&self, forth: Bytes, back: Bytes) -> impl Iterator<Item = Trip> {
        self.farthest.iter().flat_map(move |&(src, dst)| {
            let kinds = self.paths.kinds(src, dst);
            let all_alike = kinds.windows(2).all(|two| two[0].bottleneck() == two[1].bottleneck());
            let answer = self.paths.kinds(dst, src).iter().map(|kind| kind.time_for(back)).max();
            let sender = self.paths.host_rate(src);
            kinds.into_iter().filter_map(move |kind| {
                let rtt = kind.time_for(forth).saturating_add(answer?);
                Some(Trip { sender, path: self.rate_on(&kind, src, dst, all_alike), rtt })
            })
        })
    }
    /// Returns the largest bandwidth-delay product of any path, by the slowest link on it (IRN section 4.1: 120 KB).
    pub fn bdp(&self) -> Bdp {
        self.bdps.values().copied().max().unwrap_or_default()
    }
    /// Returns the bandwidth-delay product of paths from hosts whose links have this rate.
    pub fn bdp_from(&self, rate: Rate) -> Bdp {
        // Inside servers, where no path of the network begins, the longest path is used.
        let own = self.bdps.get(&rate).filter(|_| rate <= self.line_rate());
        own.copied().unwrap_or_else(|| Bdp { bytes: rate.amount_in(self.base_rtt()), sender_is_slowest: true })
    }
    /// Returns the rate of the fastest link of any host, those inside servers left out.
    pub fn line_rate(&self) -> Rate {
        self.paths.fastest_host()
    }
    /// Returns the rate of the slowest host link.
    pub fn slowest_line_rate(&self) -> Rate {
        let hosts = (0..self.graph().host_count()).map(HostId);
        hosts.map(|host| self.paths.host_rate(host)).min().unwrap_or_default()
    }
    /// Returns the rate of the slowest link.
    pub fn slowest_link(&self) -> Rate {
        self.graph().links.iter().map(|link| link.rate).min().unwrap_or_default()
    }
    /// Returns the links that end at a switch: those that PFC can pause.
    pub fn links_to_switches(&self) -> impl Iterator<Item = &Link> {
        self.graph().links.iter().filter(|link| link.a.switch().is_some() || link.b.switch().is_some())
    }

    /// Returns the buffers that the topology file gives to ports of switches, port by port; `None` for ports without
    /// one.
    pub fn own_buffers(&self) -> impl Iterator<Item = Option<Bytes>> {
        let ends = self.graph().links.iter().flat_map(|link| [(link.a, link.buffers[0]), (link.b, link.buffers[1])]);
        ends.filter(|(node, _)| node.switch().is_some()).map(|(_, buffer)| buffer)
    }

    /// Returns the longest time that a packet waits in queues.
    ///
    /// IRN section 4.1 calls 320 us the maximum when "the switch buffer on a congested link is completely full": 24 us
    /// and six inputs of 240 KB at 40 Gb/s (288 us): ports x buffer / rate, of the switch where that is longest. Where
    /// switches trim, an output has short queues of its own, for full frames of `frame` bytes, one per priority of
    /// `data`, and for headers. Packets that take all paths fill many of these queues, so those of data may be full on
    /// the whole path, and those of the lowest priority wait for all others. The queue of headers is full at one
    /// output, where many send to one receiver. Frames have a `gap` after them. A buffer without limit counts as
    /// 64 MB in each switch.
    pub fn longest_queueing(&self, buffer: &BufferConfig, frame: Bytes, gap: Bytes, data: &BTreeSet<u8>) -> Duration {
        match buffer {
            BufferConfig::InputQueued(own) => {
                let of_all = |switch: SwitchId, links: &[&Link]| -> Option<Bytes> {
                    links.iter().map(|link| own.room(link, switch.into())).sum()
                };
                self.in_worst_switch(|switch, links| of_all(switch, links).unwrap_or(ENDLESS))
            }
            BufferConfig::SharedBuffer(shared) => self.in_worst_switch(|_, _| shared.total),
            BufferConfig::FairQueued(fair) => {
                self.in_worst_switch(|_, _| fair.per_port.resolve(|| None).unwrap_or(ENDLESS))
            }
            BufferConfig::Trimming(trimming) => {
                let queues = data.iter().filter(|&&priority| priority != trimming.header_class).count() as u64;
                // At most the packets in flight of all hosts, all of them trimmed.
                let packets = self.line_rate().amount_in(self.base_rtt()).get().div_ceil(frame.get().max(1));
                let all = packets.saturating_add(1).saturating_mul(self.graph().hosts.len() as u64);
                let waits = trimming.longest_waits(frame, gap, queues, all);
                let [data, headers] = waits.map(|full| self.slowest_link().time_for(full));
                match self.longest.links {
                    0 | 1 => Duration::ZERO,
                    links => data.saturating_mul(u64::from(links) - 2).saturating_add(headers),
                }
            }
        }
    }
    /// Returns the longest time, over all switches, in which the slowest link of a switch sends the bytes that `full`
    /// gives for it.
    fn in_worst_switch(&self, full: impl Fn(SwitchId, &[&Link]) -> Bytes) -> Duration {
        let switches = (0..).map(SwitchId).zip(self.links_of_switches());
        let waits = switches.filter_map(|(switch, links)| {
            let slowest = links.iter().map(|link| link.rate).min()?;
            Some(slowest.time_for(full(switch, &links)))
        });
        waits.max().unwrap_or_default()
    }
    /// Returns the number of links of the switch with the most links.
    pub fn most_inputs(&self) -> u32 {
        self.links_of_switches().map(|links| links.len() as u32).max().unwrap_or(1)
    }
    /// Returns the links of each switch.
    pub fn links_of_switches(&self) -> impl Iterator<Item = Vec<&Link>> {
        (0..self.graph().switches.len() as u32).map(|switch| {
            let ports = self.routes().ports().of(SwitchId(switch)).iter();
            ports.map(|port| &self.graph().links[port.link as usize]).collect()
        })
    }
}
