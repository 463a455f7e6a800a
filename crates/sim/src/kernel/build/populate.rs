//! Hosts, switches and ports of the partitions.

use std::sync::Arc;

use selvedge_nic::NicParams;
use selvedge_units::{Bytes, Domain, Duration, HostId, PortId, Rate, Rng, SwitchId, mix64};

use super::cut::Cut;
use super::longest_frame;
use super::numbering::Numbering;
use crate::config::{Arbitration, BufferConfig, InputQueued, NetRtConfig, SimConfig};
use crate::kernel::partition::Partition;
use crate::kernel::table::Table;
use crate::net::balancing::Balancer;
use crate::net::buffer::{Account, Limits, Queueing};
use crate::net::fair::FairLine;
use crate::net::host::Host;
use crate::net::marking::Red;
use crate::net::netrt::Tor;
use crate::net::port::{Egress, Ingress, PortExtra};
use crate::net::queue::{Line, Queue};
use crate::net::switch::{NOT_A_LEAF, Site, Switch};
use crate::net::trimming::Trimmer;
use crate::topology::{Graph, Link, Node, Port, Routes};

/// Gives every partition its hosts, switches and ports, in the order of their global numbers.
/// Returns partition and local number of each port.
pub(super) fn populate<const RECORDED: bool>(
    partitions: &mut [Partition<RECORDED>],
    config: &SimConfig,
    graph: &Graph,
    routes: &Routes,
    numbering: &Numbering,
    cut: &Cut,
    nics: &[(Rate, Arc<NicParams>)],
) -> Vec<(u16, u32)> {
    let mut places = vec![(0, 0); numbering.total as usize];
    make_room(partitions, numbering, cut);
    let wire = config.nic.with_longest_header(&config.transport, config.beside.as_ref());
    let frame = longest_frame(config);
    let headroom = |link: &Link| config.switch.pfc.headroom_on(link.rate, link.delay, &wire);
    let mut add_port = |partition: &mut Partition<RECORDED>, id: PortId, link: &Link, node: Node, owner: u32| {
        let at = partition.egress.len() as u32;
        places[id.index()] = (partition.index, at);
        let mut egress = Egress::new(link.delay, node.host().is_some(), owner, link.rate);
        if partition.fabric.writes_telemetry || (partition.fabric.hosts_load() && node.host().is_some()) {
            egress.take_slow_path();
        }
        partition.egress.push(egress);
        let window = Duration::from_ps(partition.fabric.pace.length());
        // One has begun to come in before.
        partition.ingress.push(Ingress::new(link.rate.amount_in(window) + frame));
        let rng = Rng::stream(config.seed, Domain::EcnMark, u64::from(id.0));
        let red = Red::new(config.switch.ecn.curve_on(link.rate), rng);
        partition.extras.push(PortExtra::new(id, link.rate, red));
        let classes = partition.fabric.classes as usize;
        match partition.fabric.queueing {
            Queueing::Plain => {}
            Queueing::Trimming(_) => partition.trimmers.push(Trimmer::new(config.seed, id)),
            Queueing::Fair(_) => partition.fair.extend(std::iter::repeat_with(FairLine::default).take(classes)),
        }
        let queueing = &partition.fabric.queueing;
        partition.lines.extend((0..classes as u8).map(|class| Line::with_room(queueing.room(class))));
        let accounting = partition.fabric.accounting;
        if !accounting.is_plain {
            partition.accounts.extend((0..classes as u8).map(|class| {
                let headroom = accounting.is_lossless(class).then(|| headroom(link));
                Account::new(limits(link, node, config, headroom), headroom.unwrap_or_default().get())
            }));
        }
        at
    };
    for host in (0..graph.hosts.len() as u32).map(HostId) {
        let partition = &mut partitions[cut.hosts[host.index()] as usize];
        let link = &graph.links[numbering.ports.of_host(host).link as usize];
        let port = add_port(partition, PortId(host.0), link, host.into(), partition.hosts.len() as u32);
        let (_, nic) = nics.iter().find(|(rate, _)| *rate == link.rate).expect("all rates of hosts are listed");
        partition.hosts.push(Host::new(host, port, link.rate, Arc::clone(nic)));
    }
    for id in (0..graph.switches.len() as u32).map(SwitchId) {
        let partition = &mut partitions[cut.switches[id.index()] as usize];
        let ports = numbering.ports.of(id);
        let owner = partition.switches.len() as u32;
        let first_port = partition.egress.len() as u32;
        for (offset, port) in (0..).zip(ports) {
            let link = &graph.links[port.link as usize];
            let global = PortId(numbering.first[id.index()] + offset);
            let at = add_port(partition, global, link, id.into(), owner);
            let accounting = partition.fabric.accounting;
            if let BufferConfig::Trimming(_) = config.switch.buffer {
                let port = &mut partition.ingress[at];
                (port.slow_above, port.slow_below) = Limits::NONE.while_open();
            } else if accounting.is_plain {
                let limits = limits(link, id.into(), config, (accounting.lossless != 0).then(|| headroom(link)));
                partition.extras[at].limits = limits;
                let port = &mut partition.ingress[at];
                (port.slow_above, port.slow_below) = limits.while_open();
            }
        }
        // Round-robin over inputs would undo what a destination ToR puts in order, where paths are many.
        let is_tor = config.switch.netrt.enabled && ports.iter().any(|port| port.peer.host().is_some());
        let inputs = match config.switch.buffer {
            _ if is_tor => 1,
            BufferConfig::InputQueued(InputQueued { arbitration: Arbitration::RoundRobin, .. }) => ports.len() as u32,
            BufferConfig::InputQueued(_)
            | BufferConfig::SharedBuffer(_)
            | BufferConfig::Trimming(_)
            | BufferConfig::FairQueued(_) => 1,
        };
        let per_port = partition.line_of(1, 0) * inputs;
        for at in (first_port..).take(ports.len()) {
            partition.egress[at].first_queue = partition.queues.len() as u32;
            partition.queues.extend(std::iter::repeat_n(Queue::EMPTY, per_port as usize));
        }
        let shared_total = match config.switch.buffer {
            BufferConfig::InputQueued(_) | BufferConfig::Trimming(_) | BufferConfig::FairQueued(_) => 0,
            BufferConfig::SharedBuffer(shared) => {
                let lossless = u64::from(partition.fabric.accounting.lossless.count_ones());
                let headroom: Bytes = ports.iter().map(|port| headroom(&graph.links[port.link as usize])).sum();
                shared.total.saturating_sub(headroom * lossless).get()
            }
        };
        let site = Site {
            switch: partition.switches.len() as u32,
            leaf: routes.leaves().binary_search(&id).map_or(NOT_A_LEAF, |leaf| leaf as u32),
            first_port,
            routes: partition.forwarding.routes_of(id),
            per_line: inputs,
            input_mask: if inputs == 1 { 0 } else { u32::MAX },
            salt: mix64(config.seed ^ mix64(u64::from(id.0) + 1)) | 1,
            slow_path: false,
            has_lasting_pauses: (first_port..).take(ports.len()).all(|at| partition.has_lasting_pauses(at)),
        };
        partition.switches.push(Switch::new(id, site, ports.len() as u32, shared_total));
        let rng = Rng::stream(config.seed, Domain::LoadBalancing, u64::from(id.0));
        if config.switch.netrt.enabled {
            add_tor(partition, graph, &config.switch.netrt, ports, is_tor);
        }
        partition.balancers.extend(Balancer::new(&config.switch.balancing, routes.leaves().len(), rng));
    }
    places
}

/// Makes room for what every port has.
fn make_room<const RECORDED: bool>(partitions: &mut [Partition<RECORDED>], numbering: &Numbering, cut: &Cut) {
    let mut counts = vec![0; partitions.len()];
    cut.hosts.iter().for_each(|&partition| counts[partition as usize] += 1);
    for (switch, &partition) in (0..).map(SwitchId).zip(&cut.switches) {
        counts[partition as usize] += numbering.ports.of(switch).len();
    }
    for (partition, count) in partitions.iter_mut().zip(counts) {
        let lines = count * partition.fabric.classes as usize;
        (partition.egress, partition.ingress) = (Table::with_room(count), Table::with_room(count));
        (partition.extras, partition.lines) = (Table::with_room(count), Table::with_room(lines));
    }
}

/// Makes a ToR of NetRT of the switch that was just added, if hosts hang on it.
fn add_tor<const RECORDED: bool>(
    partition: &mut Partition<RECORDED>,
    graph: &Graph,
    config: &NetRtConfig,
    ports: &[Port],
    is_tor: bool,
) {
    let rates = ports.iter().map(|port| graph.links[port.link as usize].rate).collect();
    partition.tors.push(is_tor.then(|| Box::new(Tor::new(config.into(), rates))));
    if is_tor {
        let first_port = partition.egress.len() as u32 - ports.len() as u32;
        (first_port..first_port + ports.len() as u32).for_each(|at| partition.set_slow_path(at, true));
    }
}

/// Fixed limits of an input with a buffer of its own, for a lossless class, of which `headroom` is kept free, or for
/// all lossy ones.
fn limits(link: &Link, node: Node, config: &SimConfig, headroom: Option<Bytes>) -> Limits {
    let BufferConfig::InputQueued(own) = config.switch.buffer else { return Limits::NONE };
    let Some(buffer) = own.room(link, node) else { return Limits::NONE };
    let most = buffer.get();
    let Some(headroom) = headroom else { return Limits { most, ..Limits::NONE } };
    let xoff = buffer.saturating_sub(headroom);
    let xon = xoff.saturating_sub(config.switch.pfc.xon_gap.resolve(|| None).unwrap_or(Bytes::ZERO));
    Limits { xoff: xoff.get(), xon: xon.get(), most }
}

/// Tells each port who is at the other end.
pub(super) fn connect<const RECORDED: bool>(
    partitions: &mut [Partition<RECORDED>],
    link_ports: &[[PortId; 2]],
    places: &[(u16, u32)],
) {
    for &[a, b] in link_ports {
        for (from, to) in [(a, b), (b, a)] {
            let ((partition, at), (peer_partition, peer)) = (places[from.index()], places[to.index()]);
            let there = &partitions[peer_partition as usize];
            let owner = there.egress[peer].owner;
            let (node, number) = if there.egress[peer].is_host {
                (owner, 0)
            } else {
                (there.hosts.len() as u32 + owner, (peer - there.switches[owner].site.first_port) as u16)
            };
            let port = &mut partitions[partition as usize].egress[at];
            port.lead_to(peer_partition, partition != peer_partition);
            (port.peer, port.peer_node, port.peer_port) = (peer, node, number);
        }
    }
}
