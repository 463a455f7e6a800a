//! Hosts, switches and ports of the partitions.

use std::iter::{repeat_n, repeat_with};
use std::ops::Range;
use std::sync::Arc;

use selvedge_memory::Table;
use selvedge_nic::NicParams;
use selvedge_switch::Switches;
use selvedge_switch::balancing::Balancer;
use selvedge_switch::buffer::{Account, InputLimits};
use selvedge_switch::crossbar::Crossbar;
use selvedge_switch::fair::FairLine;
use selvedge_switch::marking::Red;
use selvedge_switch::netrt::Tor;
use selvedge_switch::port::{Egress, Ingress, PortExtra};
use selvedge_switch::queue::{Line, Queue};
use selvedge_switch::shares::Share;
use selvedge_switch::switch::{NOT_A_LEAF, Switch, SwitchFacts};
use selvedge_switch::trimming::Trimmer;
use selvedge_transport::netrt::Settings;
use selvedge_units::{Bytes, Domain, Duration, HostId, PortId, Rate, Rng, SwitchId, mix64};

use super::cut::Cut;
use super::frames::longest_frame;
use super::numbering::Numbering;
use crate::config::{Arbitration, BufferConfig, InputQueued, NicConfig, SimConfig, Trimming};
use crate::net::clock::NicClock;
use crate::net::host::Host;
use crate::net::partition::Partition;
use crate::topology::{Graph, Link, Node, Port, Routes};

/// Adds to every partition its hosts, switches and ports, in the order of their global numbers. Returns the partition
/// and local number of each port.
pub(super) fn populate<const RECORDED: bool>(
    partitions: &mut [Partition<RECORDED>],
    config: &SimConfig,
    numbering: &Numbering,
    cut: &Cut,
    nics: &[(Rate, Arc<NicParams>)],
    netrt: Option<Settings>,
) -> Vec<(u16, u32)> {
    make_room(partitions, numbering, cut);
    let blueprint = Blueprint::new(config, numbering, nics, netrt, partitions[0].edge.fabric.schedule.length());
    let mut places = Vec::with_capacity(numbering.total as usize);
    for (host, &partition) in (0..).map(HostId).zip(&cut.hosts) {
        let port = blueprint.add_host(&mut partitions[partition as usize], host);
        places.push((partition, port));
    }
    for (switch, &partition) in (0..).map(SwitchId).zip(&cut.switches) {
        let ports = blueprint.add_switch(&mut partitions[partition as usize].net, switch);
        places.extend(ports.map(|port| (partition, port)));
    }
    for partition in partitions.iter_mut() {
        partition.edge.losses.resize_with(partition.net.egress.len(), || None);
    }
    if let Some(speed_up) = crossbar(config) {
        for partition in partitions {
            partition.net.crossbar = Crossbar::new(partition.net.egress.len(), speed_up);
        }
    }
    places
}

/// Returns the speed-up of the switches' crossbars, in hundredths, if they have any.
fn crossbar(config: &SimConfig) -> Option<u64> {
    match &config.switch.buffer {
        BufferConfig::InputQueued(own) => own.crossbar(),
        BufferConfig::SharedBuffer(_) | BufferConfig::Trimming(_) | BufferConfig::FairQueued(_) => None,
    }
}

/// Allocates the tables with an entry per port.
fn make_room<const RECORDED: bool>(partitions: &mut [Partition<RECORDED>], numbering: &Numbering, cut: &Cut) {
    let mut counts = vec![0; partitions.len()];
    cut.hosts.iter().for_each(|&partition| counts[partition as usize] += 1);
    for (switch, &partition) in (0..).map(SwitchId).zip(&cut.switches) {
        counts[partition as usize] += numbering.ports.of(switch).len();
    }
    for (partition, count) in partitions.iter_mut().zip(counts) {
        let lines = count * partition.net.params.classes as usize;
        (partition.net.egress, partition.net.ingress) = (Table::with_room(count), Table::with_room(count));
        (partition.net.extras, partition.net.lines) = (Table::with_room(count), Table::with_room(lines));
    }
}

/// Common inputs for building nodes.
struct Blueprint<'a> {
    config: &'a SimConfig,
    graph: &'a Graph,
    routes: &'a Routes,
    numbering: &'a Numbering,
    nics: &'a [(Rate, Arc<NicParams>)],
    /// Parameters of NetRT, where ToRs have it.
    netrt: Option<Settings>,
    /// Whether switches write telemetry on packets.
    writes_telemetry: bool,
    /// Length of a window in picoseconds.
    window: u64,
    /// Longest header and frame, for which headroom is sized.
    longest_header: NicConfig,
    longest_frame: Bytes,
}

impl<'a> Blueprint<'a> {
    fn new(
        config: &'a SimConfig,
        numbering: &'a Numbering,
        nics: &'a [(Rate, Arc<NicParams>)],
        netrt: Option<Settings>,
        window: u64,
    ) -> Self {
        Self {
            config,
            graph: config.paths.graph(),
            routes: config.paths.routes(),
            numbering,
            nics,
            netrt,
            writes_telemetry: config.transport.needs_telemetry(),
            window,
            longest_header: config.nic.with_longest_header(&config.transport, config.beside.as_ref()),
            longest_frame: longest_frame(config),
        }
    }

    /// Adds a host; returns its port.
    fn add_host<const RECORDED: bool>(&self, partition: &mut Partition<RECORDED>, id: HostId) -> u32 {
        let link = self.link_of(&self.numbering.ports.of_host(id));
        let (_, nic) = self.nics.iter().find(|(rate, _)| *rate == link.rate).expect("all rates of hosts are listed");
        let (edge, net) = (&mut partition.edge, &mut partition.net);
        let owner = edge.hosts.len() as u32;
        let port = self.add_port(net, PortId(id.0), link, id.into(), owner);
        let mut host = Host::new(id, port, link.rate, Arc::clone(nic));
        host.clock = NicClock::of(&self.config.nic, self.config.seed, id).map(Box::new);
        if host.clock.is_some() || edge.fabric.hosts_load() {
            net.egress[port].take_slow_path();
        }
        edge.hosts.push(host);
        port
    }

    /// Adds a switch; returns its ports.
    fn add_switch(&self, net: &mut Switches, id: SwitchId) -> Range<u32> {
        let config = &self.config.switch;
        let ports = self.numbering.ports.of(id);
        let (owner, first_port) = (net.switches.len() as u32, net.egress.len() as u32);
        for (global, port) in (self.numbering.first[id.index()]..).map(PortId).zip(ports) {
            let link = self.link_of(port);
            let at = self.add_port(net, global, link, id.into(), owner);
            self.limit_input(net, at, link, id.into());
        }
        let local = first_port..first_port + ports.len() as u32;
        let is_tor = self.netrt.is_some() && ports.iter().any(|port| port.peer.host().is_some());
        let facts = self.add_queues(net, id, local.clone(), is_tor);
        let (shared, headroom) = self.shared_totals(net, ports);
        let ties = Rng::stream(self.config.seed, Domain::Ties, u64::from(id.0)).next_u64();
        net.switches.push(Switch::new(id, facts, [shared, headroom], ties));
        net.scratch.make_room_for(ports.len() as u32);
        if config.netrt.enabled {
            self.add_tor(net, ports, local.clone(), is_tor);
        }
        let rng = Rng::stream(self.config.seed, Domain::LoadBalancing, u64::from(id.0));
        let leaves = self.routes.leaves().len();
        net.balancers.extend(config.balancing.resolved().map(|balancing| Balancer::new(balancing, leaves, rng)));
        local
    }

    /// Adds the port of `node` at the end of `link`, with its lines; returns its local number.
    fn add_port(&self, net: &mut Switches, id: PortId, link: &Link, node: Node, owner: u32) -> u32 {
        let at = net.egress.len() as u32;
        let is_host = node.host().is_some();
        let mut egress = Egress::new(link.delay, is_host, owner, link.rate);
        if self.writes_telemetry {
            egress.take_slow_path();
        }
        net.egress.push(egress);
        let window = self.config.nic.clock_skew.longest(Duration::from_ps(self.window));
        // One frame may have begun to arrive before the window.
        net.ingress.push(Ingress::new(link.rate.amount_in(window) + self.longest_frame));
        let rng = Rng::stream(self.config.seed, Domain::EcnMark, u64::from(id.0));
        let red = Red::new(self.config.switch.ecn.curve_on(link.rate), rng);
        net.extras.push(PortExtra::new(id, link.rate, red));

        let classes = 0..net.params.classes as u8;
        let queueing = net.params.queueing;
        net.trimmers.extend(queueing.trims.map(|_| Trimmer::new(self.config.seed, id)));
        if queueing.fair.is_some() {
            net.fair.extend(repeat_with(FairLine::default).take(classes.len()));
        }
        net.shares.extend(queueing.shares.map(|_| Share::default()));
        net.lines.extend(classes.clone().map(|class| Line::with_room(queueing.room(class))));
        let accounting = net.params.accounting;
        if !accounting.is_plain {
            net.accounts.extend(classes.map(|class| {
                let headroom = accounting.is_lossless(class).then(|| self.headroom(link));
                Account::new(self.limits(link, node, headroom), headroom.unwrap_or_default().get())
            }));
        }
        at
    }

    /// Sets the thresholds of a switch's input at which its buffer must be examined.
    fn limit_input(&self, net: &mut Switches, at: u32, link: &Link, node: Node) {
        let accounting = &net.params.accounting;
        let limits = match self.config.switch.buffer {
            BufferConfig::Trimming(Trimming { flow_queues: None, .. }) => InputLimits::NONE,
            _ if !accounting.is_plain => return,
            _ => self.limits(link, node, (accounting.lossless != 0).then(|| self.headroom(link))),
        };
        net.extras[at].limits = limits;
        let port = &mut net.ingress[at];
        (port.slow_above, port.slow_below) = limits.while_open();
    }

    /// Adds the queues of the switch with these ports; returns where the switch's state lies.
    fn add_queues(&self, net: &mut Switches, id: SwitchId, ports: Range<u32>, is_tor: bool) -> SwitchFacts {
        let inputs = match self.config.switch.buffer {
            // Round-robin service of inputs would undo the order that a destination ToR restores, where paths are many.
            _ if is_tor => 1,
            BufferConfig::InputQueued(InputQueued { arbitration: Arbitration::RoundRobin, .. }) => ports.len() as u32,
            BufferConfig::InputQueued(_)
            | BufferConfig::SharedBuffer(_)
            | BufferConfig::Trimming(_)
            | BufferConfig::FairQueued(_) => 1,
        };
        let has_crossbar = !is_tor && crossbar(self.config).is_some();
        let per_port = net.line_of(1, 0) * inputs;
        for at in ports.clone() {
            net.egress[at].first_queue = net.queues.len() as u32;
            net.queues.extend(repeat_n(Queue::EMPTY, per_port as usize));
        }
        SwitchFacts {
            switch: net.switches.len() as u32,
            leaf: self.routes.leaves().binary_search(&id).map_or(NOT_A_LEAF, |leaf| leaf as u32),
            first_port: ports.start,
            ports: ports.len() as u32,
            routes: net.forwarding.routes_of(id),
            per_line: inputs,
            input_mask: if inputs == 1 { 0 } else { u32::MAX },
            salt: mix64(self.config.seed ^ mix64(u64::from(id.0) + 1)) | 1,
            slow_path: false,
            has_crossbar,
            has_arbiter: has_crossbar || net.params.queueing.shares.is_some(),
            has_lasting_pauses: ports.clone().all(|at| net.has_lasting_pauses(at, self.window)),
        }
    }

    /// Makes the switch that was just added a ToR of NetRT, if hosts are attached to it.
    fn add_tor(&self, net: &mut Switches, ports: &[Port], local: Range<u32>, is_tor: bool) {
        let rates = ports.iter().map(|port| self.link_of(port).rate).collect();
        net.tors.push(self.netrt.filter(|_| is_tor).map(|netrt| Box::new(Tor::new(netrt, rates))));
        if is_tor {
            local.for_each(|at| net.set_slow_path(at, true));
        }
    }

    fn link_of(&self, port: &Port) -> &'a Link {
        &self.graph.links[port.link as usize]
    }

    fn headroom(&self, link: &Link) -> Bytes {
        self.config.switch.pfc.headroom_on(link.rate, link.delay, &self.longest_header)
    }

    /// Returns the fixed limits of an input with a buffer of its own: for a lossless class, with `headroom` kept free,
    /// or for all lossy classes together.
    fn limits(&self, link: &Link, node: Node, headroom: Option<Bytes>) -> InputLimits {
        let BufferConfig::InputQueued(own) = self.config.switch.buffer else { return InputLimits::NONE };
        let Some(buffer) = own.room(link, node) else { return InputLimits::NONE };
        let most = buffer.get();
        let Some(headroom) = headroom else { return InputLimits { most, ..InputLimits::NONE } };
        let xoff = buffer.saturating_sub(headroom);
        let pfc = &self.config.switch.pfc;
        let xon = xoff.saturating_sub(pfc.xon_gap.resolve(|| None).unwrap_or(Bytes::ZERO));
        let xon = xon.max(pfc.xon).min(xoff);
        InputLimits { xoff: xoff.get(), xon: xon.get(), most }
    }

    /// Returns the bytes that all ports of a switch share: of the buffer without headroom, and of headroom.
    fn shared_totals(&self, net: &Switches, ports: &[Port]) -> (u64, u64) {
        match self.config.switch.buffer {
            BufferConfig::InputQueued(_) | BufferConfig::Trimming(_) | BufferConfig::FairQueued(_) => (0, u64::MAX),
            BufferConfig::SharedBuffer(shared) => {
                let lossless = u64::from(net.params.accounting.lossless.count_ones());
                let headroom: Bytes = ports.iter().map(|port| self.headroom(self.link_of(port))).sum();
                let pool = shared.headroom_pool.resolve(|| None).map_or(u64::MAX, Bytes::get);
                (shared.shared_beside(headroom * lossless).get(), pool)
            }
        }
    }
}
