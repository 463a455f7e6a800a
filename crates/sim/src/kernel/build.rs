//! From a configuration to partitions that can run.

use std::sync::Arc;

use selvedge_nic::{NicParams, VerbsParams};
use selvedge_telemetry::{PortInfo, PortKind};
use selvedge_units::{Bytes, Domain, Duration, HostId, Instant, PortId, Rate, Rng, Setting, SwitchId, mix64};
use selvedge_wire::Header;
use selvedge_wire::Hole;

use super::calendar::{Calendar, Inbox};
use super::log::Log;
use super::order::Order;
use super::partition::{Attachment, Fabric, Outbox, Partition, Tally};
use super::table::Table;
use crate::config::{Arbitration, BalancingConfig, BufferConfig, InputQueued, MOST_CLASSES, NetRtConfig, SimConfig};
use crate::error::{ConfigError, Library};
use crate::fault::{LossPlan, link_events};
use crate::net::balancing::Balancer;
use crate::net::beside::Records;
use crate::net::buffer::{Account, Accounting, Limits, Queueing};
use crate::net::fair::{self, FairLine};
use crate::net::forward::Forwarding;
use crate::net::host::Host;
use crate::net::marking::Red;
use crate::net::netrt::Tor;
use crate::net::pool::Pool;
use crate::net::port::{Egress, Ingress, PortExtra};
use crate::net::queue::{Line, Queue};
use crate::net::switch::{NOT_A_LEAF, Switch, SwitchPlan};
use crate::net::trimming::{self, Trimmer};
use crate::topology::{Framing, Graph, InnerNics, Link, Node, Paths, Port, Ports, Routes};
use crate::workload::{BuildEnv, Summary};

/// A fabric ready to run.
pub(crate) struct Built<const RECORDED: bool> {
    pub(crate) partitions: Vec<Partition<RECORDED>>,
    /// Partition and local number of each port.
    pub(crate) places: Vec<(u16, u32)>,
    /// Failures and repairs, latest first.
    pub(crate) changes: Vec<Change>,
    /// How far partitions may run before they meet: no more than the smallest delay of any link.
    pub(crate) stride: Duration,
}

/// Links that go down or come back at one time, and the routes after that.
pub(crate) struct Change {
    pub(crate) at: Instant,
    /// Ports (both ends of each link) and whether they are down from now on.
    pub(crate) ports: Vec<(PortId, bool)>,
    pub(crate) forwarding: Option<Arc<Forwarding>>,
}

/// Numbers of ports over the whole fabric: hosts first, then switch by switch.
struct Numbering {
    ports: Ports,
    /// First port of each switch.
    first: Vec<u32>,
    total: u32,
}

impl Numbering {
    fn new(graph: &Graph) -> Self {
        let ports = Ports::new(graph);
        let mut total = graph.hosts.len() as u32;
        let mut first = Vec::with_capacity(graph.switches.len());
        for switch in (0..graph.switches.len() as u32).map(SwitchId) {
            first.push(total);
            total += ports.of(switch).len() as u32;
        }
        Self { ports, first, total }
    }

    /// The ports at both ends of each link, `a` first.
    fn of_links(&self, graph: &Graph) -> Vec<[PortId; 2]> {
        let mut next = self.first.clone();
        let mut port_of = |node: Node| match node {
            Node::Host(host) => PortId(host.0),
            Node::Switch(switch) => {
                let port = next[switch.index()];
                next[switch.index()] += 1;
                PortId(port)
            }
        };
        graph.links.iter().map(|link| [port_of(link.a), port_of(link.b)]).collect()
    }
}

/// What each port of the fabric is, by its number.
pub fn port_infos(graph: &Graph) -> Vec<PortInfo> {
    let numbering = Numbering::new(graph);
    let kind = |node: Node| match node {
        Node::Host(_) => PortKind::Host,
        Node::Switch(switch) => PortKind::Switch { tier: graph.switches[switch.index()].tier },
    };
    let mut infos: Vec<Option<PortInfo>> = vec![None; numbering.total as usize];
    for (link, [a, b]) in graph.links.iter().zip(numbering.of_links(graph)) {
        for (id, node, peer_id, peer) in [(a, link.a, b, link.b), (b, link.b, a, link.a)] {
            infos[id.index()] = Some(PortInfo {
                id,
                node: graph.name(node).to_owned(),
                peer: graph.name(peer).to_owned(),
                peer_id,
                kind: kind(node),
                peer_kind: kind(peer),
                rate: link.rate,
            });
        }
    }
    infos.into_iter().flatten().collect()
}

/// Which partition each node goes to: whole units, in order, about equally many ports each.
struct Cut {
    hosts: Vec<u16>,
    switches: Vec<u16>,
    count: usize,
}

impl Cut {
    fn new(graph: &Graph, ports: &Ports, wanted: usize) -> Self {
        let units = graph.hosts.iter().map(|host| host.unit).chain(graph.switches.iter().map(|switch| switch.unit));
        let units = units.max().map_or(1, |last| last as usize + 1);
        let mut weight = vec![0usize; units];
        for host in &graph.hosts {
            weight[host.unit as usize] += 1;
        }
        for (id, switch) in (0..).map(SwitchId).zip(&graph.switches) {
            weight[switch.unit as usize] += ports.of(id).len();
        }
        let count = wanted.min(weight.iter().filter(|&&weight| weight > 0).count()).max(1);
        let total: usize = weight.iter().sum();
        let mut before = 0;
        let of_unit: Vec<u16> = weight
            .iter()
            .map(|weight| {
                // The partition in which the unit's middle falls.
                let middle = before + weight / 2;
                before += weight;
                (middle * count / total.max(1)).min(count - 1) as u16
            })
            .collect();
        Self {
            hosts: graph.hosts.iter().map(|host| of_unit[host.unit as usize]).collect(),
            switches: graph.switches.iter().map(|switch| of_unit[switch.unit as usize]).collect(),
            count,
        }
    }

    /// How many of these nodes a partition gets.
    fn count(nodes: &[u16], partition: usize) -> usize {
        nodes.iter().filter(|&&of| usize::from(of) == partition).count()
    }
}

/// Builds the fabric, cut into at most `wanted` partitions.
pub(crate) fn build<const RECORDED: bool>(
    config: &SimConfig,
    library: &dyn Library,
    wanted: usize,
) -> Result<Built<RECORDED>, ConfigError> {
    let graph = Arc::new(config.graph.clone());
    graph.check()?;
    let routes = Arc::new(Routes::new(&graph, &[]));
    let paths = Paths::new(Arc::clone(&graph), Arc::clone(&routes));
    let numbering = Numbering::new(&graph);
    let link_ports = numbering.of_links(&graph);
    let lookahead = graph.links.iter().map(|link| link.delay).min().unwrap_or(Duration::from_us(1));

    let framing = config.nic.framing(&config.transport);
    let workload = config.workload.build(&BuildEnv {
        graph: &graph,
        routes: &routes,
        seed: config.seed,
        library,
        framing,
        measure: config.measure,
        stop_flows: config.stop.flows,
    })?;
    // What other partitions send must not arrive in a window that has begun. But triggers act at once, wherever the
    // flow that they release begins: no node may run ahead.
    let (wanted, window, stride) = if workload.triggers.is_empty() {
        let window = window(&graph, &numbering.ports, lookahead);
        (wanted, window, Duration::from_ps(window))
    } else {
        (1, 1, lookahead)
    };
    let reach = reach(&graph, config);
    let cut = Cut::new(&graph, &numbering.ports, wanted);

    let tcp_workloads = match &config.beside {
        Some(beside) if config.transport.tcp.is_none() => {
            beside.which(&workload.summaries).map_err(|error| error.within("beside"))?
        }
        _ => vec![config.transport.tcp.is_some(); workload.summaries.len()],
    };
    let classes = Classes::of(config, &workload.summaries)?;
    let verbs = match workload.postings.is_empty() {
        true => None,
        false => Some(config.transport.verbs(&config.nic, classes.of_flow[8])?),
    };
    let fabric = Fabric { tcp_workloads, ..fabric(config, (classes, verbs), &graph, &routes, paths, &cut, lookahead)? };
    let fabric = Arc::new(fabric);
    let forwarding = Arc::new(forwarding(config, &routes)?);
    let mut partitions = Vec::with_capacity(cut.count);
    for index in 0..cut.count {
        partitions.push(Partition {
            index: index as u16,
            fabric: Arc::clone(&fabric),
            forwarding: Arc::clone(&forwarding),
            gap: config.nic.gap.get(),
            classes: fabric.classes,
            accounting: fabric.accounting,
            calendar: Calendar::new(Cut::count(&cut.hosts, index), Cut::count(&cut.switches, index), window, reach),
            postponed: Vec::new(),
            order: Order::default(),
            now: Instant::ZERO,
            stop: 0,
            pool: Pool::new(),
            records: Records::default(),
            egress: Table::new(),
            ingress: Table::new(),
            extras: Table::new(),
            accounts: Table::new(),
            trimmers: Table::new(),
            fair: Table::new(),
            lines: Table::new(),
            queues: Table::new(),
            switches: Table::new(),
            balancers: Table::new(),
            tors: Table::new(),
            hosts: Table::new(),
            applications: Vec::new(),
            outboxes: (0..cut.count).map(|_| Outbox::default()).collect(),
            workload: workload.clone(),
            next_arrival: None,
            later: 0,
            closing: false,
            rows: Vec::new(),
            ranks: Vec::new(),
            tally: Tally::default(),
            events: 0,
            flows_started: 0,
            flows_finished: 0,
            flows_closed: 0,
            log: Log::default(),
        });
    }
    let places = populate(&mut partitions, config, &graph, &routes, &numbering, &cut);
    connect(&mut partitions, &link_ports, &places);
    for (lane, loss) in
        LossPlan::new(&graph, &config.loss, config.seed, library).map_err(|error| error.within("loss"))?.lanes()
    {
        // The process belongs to the receiving end.
        let [a, b] = link_ports[lane.link as usize];
        let (partition, at) = places[if lane.from_a { b } else { a }.index()];
        let partition = &mut partitions[partition as usize];
        partition.extras[at].loss = Some(loss.clone());
        partition.ingress[at].rare_arrivals = true;
    }
    crate::net::verbs::connect(&mut partitions, &config.transport, &workload.postings)?;
    for partition in &mut partitions {
        partition.open_workload();
    }
    let changes = changes(config, &graph, &link_ports)?;
    Ok(Built { partitions, places, changes, stride })
}

fn forwarding(config: &SimConfig, routes: &Routes) -> Result<Forwarding, ConfigError> {
    Forwarding::new(routes, config.switch.balancing == BalancingConfig::Ecmp).ok_or_else(|| {
        ConfigError::new(
            "topology",
            "a switch has more than 4,095 equal paths to some host: give it fewer parallel links",
        )
    })
}

/// What all partitions share.
fn fabric(
    config: &SimConfig,
    (classes, verbs): (Classes, Option<VerbsParams>),
    graph: &Arc<Graph>,
    routes: &Routes,
    paths: Paths,
    cut: &Cut,
    lookahead: Duration,
) -> Result<Fabric, ConfigError> {
    let pfc = &config.switch.pfc;
    let lossless = if pfc.enabled { classes.bits(&pfc.classes) } else { 0 };
    let value = |setting: Setting<Bytes>| setting.resolve(|| None).unwrap_or(Bytes::ZERO).get();
    let frame_limit = config.largest_frame();
    if frame_limit.get() > u64::from(u16::MAX) {
        return Err(ConfigError::new("nic.mtu", format!("{} with headers is longer than any frame", config.nic.mtu)));
    }
    let netrt_class = classes.index(config.switch.netrt.priority);
    let mut next_local = vec![0; cut.count];
    let home = cut.hosts.iter().map(|&partition| {
        let local = next_local[partition as usize];
        next_local[partition as usize] += 1;
        (partition, local)
    });
    let hosts = (0..graph.hosts.len() as u32).map(HostId);
    let (eqds, eqif) = config.transport.tunnels(&config.nic);
    let (has_cargo, has_verbs) = (eqif.is_some(), verbs.is_some());
    Ok(Fabric {
        nic: NicParams {
            mtu: config.nic.mtu.get() as u16,
            header: config.nic.data_header(&config.transport).get() as u16,
            ack_frame: config.nic.ack_frame(&config.transport).get() as u16,
            hole_nack_frame: (config.nic.ack_frame(&config.transport).get() + Hole::THREE as u64) as u16,
            cnp_frame: config.nic.cnp_frame.get() as u16,
            gap: config.nic.gap.get() as u16,
            qp_burst: config.nic.qp_burst,
            data_classes: classes.all_data | if has_verbs { 1 << classes.ack } else { 0 },
            ack_class: classes.ack,
            cnp_class: classes.cnp,
            ecn_capable: config.switch.ecn.enabled.resolve(|| false),
            sender: config.transport.sender(&config.nic),
            receiver: config.transport.receiver(),
            tcp: config.transport.tcp.or(config.beside.as_ref().map(|beside| beside.tcp)),
            tcp_ack_class: classes.tcp_ack,
            eqds,
            eqif,
            ndp: config.transport.ndp,
            feedback: config.transport.feedback(),
            verbs,
        },
        buffer: config.switch.buffer,
        accounting: Accounting::new(classes.count, lossless, &config.switch.buffer),
        queueing: match &config.switch.buffer {
            BufferConfig::Trimming(trimming) => {
                let class = classes.index(trimming.header_class);
                Queueing::Trimming(trimming::Rules::new(trimming, frame_limit, class))
            }
            BufferConfig::FairQueued(fair) => Queueing::Fair(fair::Rules::new(fair, frame_limit)),
            BufferConfig::InputQueued(_) | BufferConfig::SharedBuffer(_) => Queueing::Plain,
        },
        shared_headroom: if pfc.enabled { value(pfc.headroom) } else { 0 },
        xon_gap: value(pfc.xon_gap),
        quanta: pfc.quanta,
        classes: classes.count,
        class_of: classes.of_flow,
        attachment: hosts
            .map(|host| Attachment {
                leaf: routes.leaf_of(host).map_or(u32::MAX, |leaf| leaf as u32),
                port: routes.down_port(host),
            })
            .collect(),
        home: home.collect(),
        lookahead,
        unacknowledged: !config.transport.acknowledges(),
        has_more_to_tell: config.transport.feedback().reports_freely() || config.transport.eqds.is_some(),
        netrt_class,
        hears_trims: config.transport.hears_trims(),
        writes_telemetry: config.transport.needs_telemetry(),
        has_cargo,
        has_verbs,
        reads_records: has_cargo || has_verbs || config.transport.needs_telemetry(),
        seed: config.seed,
        graph: Arc::clone(graph),
        paths,
        inner: InnerNics::new(graph, routes.ports()),
        framing: config.nic.framing(&config.transport),
        tcp_workloads: Vec::new(),
        tcp_framing: tcp_framing(config),
        tcp_class: classes.tcp,
    })
}

/// Priorities in use, as packets carry them inside the fabric: 0 for the lowest.
struct Classes {
    /// Of flows with each priority; behind them, of flows with none.
    of_flow: [u8; 9],
    /// Bit per class: flows may have it.
    all_data: u8,
    ack: u8,
    cnp: u8,
    /// Of TCP, its data and acknowledgements.
    tcp: u8,
    tcp_ack: u8,
    count: u32,
    priorities: Vec<u8>,
}

impl Classes {
    fn of(config: &SimConfig, workloads: &[Summary]) -> Result<Self, ConfigError> {
        let nic = &config.nic;
        let priorities = config.switch.priorities(nic, config.beside.as_ref(), workloads);
        if priorities.len() > MOST_CLASSES {
            let message = format!("{} priorities are in use; at most {MOST_CLASSES} can be", priorities.len());
            return Err(ConfigError::new("workload", message));
        }
        let index = |priority| priorities.iter().position(|&p| p == priority).unwrap_or(0) as u8;
        let of_flow = std::array::from_fn(|priority| match priority as u8 {
            priority @ 0..=7 => index(priority),
            _ => index(nic.data_class),
        });
        let asked = workloads.iter().flat_map(|workload| &workload.priorities);
        let guest = config.beside.as_ref().and_then(|beside| beside.class);
        Ok(Self {
            of_flow,
            all_data: asked
                .chain(guest.as_ref())
                .fold(1 << index(nic.data_class), |bits, &priority| bits | 1 << index(priority)),
            ack: index(nic.ack_class),
            cnp: index(nic.cnp_class),
            tcp: guest.map_or(index(nic.data_class), index),
            tcp_ack: guest.map_or(index(nic.ack_class), index),
            count: priorities.len() as u32,
            priorities,
        })
    }

    /// The class of a priority that is in use.
    fn index(&self, priority: u8) -> u8 {
        self.priorities.iter().position(|&p| p == priority).unwrap_or(0) as u8
    }

    /// Bit per class whose priority is listed.
    fn bits(&self, listed: &[u8]) -> u8 {
        let listed = (0u8..).zip(&self.priorities).filter(|(_, priority)| listed.contains(priority));
        listed.fold(0, |bits, (class, _)| bits | 1 << class)
    }
}

/// How long windows may be, in picoseconds: no link may deliver what was sent in the same window, and the
/// mail of a switch must not be more than 16 bits can count.
fn window(graph: &Graph, ports: &Ports, lookahead: Duration) -> u64 {
    let shortest_frame = Header::MINIMUM_FRAME + Header::GAP;
    let rate_into =
        |switch| -> u64 { ports.of(switch).iter().map(|port| graph.links[port.link as usize].rate.as_bps()).sum() };
    let most = (0..graph.switches.len() as u32).map(|switch| rate_into(SwitchId(switch))).max().unwrap_or(0);
    let fits = Rate::from_bps(most.max(1)).time_for(shortest_frame * u64::from(u16::MAX / 2));
    lookahead.min(fits).as_ps().max(1)
}

/// How TCP's payload becomes what a link carries.
fn tcp_framing(config: &SimConfig) -> Framing {
    let own = config.nic.framing(&config.transport);
    let beside = config.beside.as_ref().filter(|_| config.transport.tcp.is_none());
    beside.map_or(own, |beside| beside.framing(&config.nic))
}

/// How long a full frame takes to the other end of the slowest link, in picoseconds.
fn reach(graph: &Graph, config: &SimConfig) -> u64 {
    let own = config.nic.mtu + config.nic.framing(&config.transport).overhead.max(tcp_framing(config).overhead);
    let frame = own.max(config.largest_frame() + config.nic.gap);
    graph.links.iter().map(|link| (link.rate.time_for(frame) + link.delay).as_ps()).max().unwrap_or(1)
}

/// Gives every partition its hosts, switches and ports, in the order of their global numbers.
/// Returns partition and local number of each port.
fn populate<const RECORDED: bool>(
    partitions: &mut [Partition<RECORDED>],
    config: &SimConfig,
    graph: &Graph,
    routes: &Routes,
    numbering: &Numbering,
    cut: &Cut,
) -> Vec<(u16, u32)> {
    let mut places = vec![(0, 0); numbering.total as usize];
    let mut add_port = |partition: &mut Partition<RECORDED>, id: PortId, link: &Link, node: Node, owner: u32| {
        let at = partition.egress.len() as u32;
        places[id.index()] = (partition.index, at);
        let mut egress = Egress::new(link.delay, node.host().is_some(), owner, link.rate);
        if partition.fabric.writes_telemetry || (partition.fabric.hosts_load() && node.host().is_some()) {
            egress.look_closely();
        }
        partition.egress.push(egress);
        partition.ingress.push(Ingress::NEW);
        let rng = Rng::stream(config.seed, Domain::EcnMark, u64::from(id.0));
        let red = Red::new(config.switch.ecn.curve_on(link.rate), rng);
        partition.extras.push(PortExtra::new(id, link.rate, red));
        let classes = partition.fabric.classes as usize;
        match partition.fabric.queueing {
            Queueing::Plain => {}
            Queueing::Trimming(_) => partition.trimmers.push(Trimmer::new(config.seed, id)),
            Queueing::Fair(_) => partition.fair.extend(std::iter::repeat_with(FairLine::default).take(classes)),
        }
        partition.lines.extend(std::iter::repeat_n(Line::EMPTY, classes));
        let accounting = partition.fabric.accounting;
        if !accounting.is_plain {
            let lossless = |class| accounting.is_lossless(class);
            partition
                .accounts
                .extend((0..classes as u8).map(|class| Account::new(limits(link, node, config, lossless(class)))));
        }
        at
    };
    for host in (0..graph.hosts.len() as u32).map(HostId) {
        let partition = &mut partitions[cut.hosts[host.index()] as usize];
        let link = &graph.links[numbering.ports.of_host(host).link as usize];
        let port = add_port(partition, PortId(host.0), link, host.into(), partition.hosts.len() as u32);
        let mut state = Host::new(host, port, &partition.fabric.nic);
        state.nic.set_link_rate(&partition.fabric.nic, link.rate);
        partition.hosts.push(state);
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
            if accounting.is_plain {
                partition.ingress[at].limits = limits(link, id.into(), config, accounting.lossless != 0);
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
        let first_queue = partition.queues.len() as u32;
        let queues = ports.len() * partition.fabric.classes as usize * inputs as usize;
        partition.queues.extend(std::iter::repeat_n(Queue::EMPTY, queues));
        let shared_total = match config.switch.buffer {
            BufferConfig::InputQueued(_) | BufferConfig::Trimming(_) | BufferConfig::FairQueued(_) => 0,
            BufferConfig::SharedBuffer(shared) => {
                let lossless = u64::from(partition.fabric.accounting.lossless.count_ones());
                let headroom = partition.fabric.shared_headroom * lossless * ports.len() as u64;
                shared.total.get().saturating_sub(headroom)
            }
        };
        partition.switches.push(Switch::new(SwitchPlan {
            id,
            leaf: routes.leaves().binary_search(&id).map_or(NOT_A_LEAF, |leaf| leaf as u32),
            first_port,
            ports: ports.len() as u32,
            routes: partition.forwarding.routes_of(id),
            first_queue,
            inputs,
            salt: mix64(config.seed ^ mix64(u64::from(id.0) + 1)) | 1,
            shared_total,
        }));
        let rng = Rng::stream(config.seed, Domain::LoadBalancing, u64::from(id.0));
        if config.switch.netrt.enabled {
            add_tor(partition, graph, &config.switch.netrt, ports, is_tor);
        }
        partition.balancers.extend(Balancer::new(&config.switch.balancing, routes.leaves().len(), rng));
    }
    places
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
        (first_port..first_port + ports.len() as u32).for_each(|at| partition.ingress[at].rare_arrivals = true);
    }
}

/// Fixed limits of an input with a buffer of its own, for a lossless class or for all lossy ones.
fn limits(link: &Link, node: Node, config: &SimConfig, is_lossless: bool) -> Limits {
    let BufferConfig::InputQueued(own) = config.switch.buffer else { return Limits::NONE };
    let Some(buffer) = own.room(link, node) else { return Limits::NONE };
    let most = buffer.get();
    if !is_lossless {
        return Limits { most, ..Limits::NONE };
    }
    let pfc = &config.switch.pfc;
    let xoff = buffer.saturating_sub(pfc.headroom_on(link.rate, link.delay, &config.nic));
    let xon = xoff.saturating_sub(pfc.xon_gap.resolve(|| None).unwrap_or(Bytes::ZERO));
    Limits { xoff: xoff.get(), xon: xon.get(), most }
}

/// Tells each port who is at the other end.
fn connect<const RECORDED: bool>(
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
                (there.hosts.len() as u32 + owner, (peer - there.switches[owner].first_port) as u16)
            };
            let inbox = if partition == peer_partition { there.calendar.inbox_of(node) } else { Inbox::AWAY };
            let port = &mut partitions[partition as usize].egress[at];
            port.inbox = inbox;
            (port.peer_partition, port.peer, port.peer_node, port.peer_port) = (peer_partition, peer, node, number);
        }
    }
}

/// Links that fail or come back, and the routes that all switches use from then on: rerouting takes no
/// time, packets under way are lost.
fn changes(config: &SimConfig, graph: &Graph, link_ports: &[[PortId; 2]]) -> Result<Vec<Change>, ConfigError> {
    let events = link_events(graph, &config.failures).map_err(|error| error.within("failures"))?;
    let mut down = vec![false; graph.links.len()];
    let mut changes = Vec::new();
    for together in events.chunk_by(|a, b| a.at == b.at) {
        let mut ports = Vec::new();
        for event in together {
            down[event.link as usize] = !event.up;
            ports.extend(link_ports[event.link as usize].map(|port| (port, !event.up)));
        }
        let forwarding = Some(Arc::new(forwarding(config, &Routes::new(graph, &down))?));
        changes.push(Change { at: together[0].at, ports, forwarding });
    }
    changes.reverse();
    Ok(changes)
}
