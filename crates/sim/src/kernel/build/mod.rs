//! From a configuration to partitions that can run.

mod classes;
mod cut;
mod numbering;
mod populate;
mod shared;
mod sides;

use std::sync::Arc;

use selvedge_units::{Bytes, Duration, Instant, PortId, Rate, SwitchId};
use selvedge_wire::Header;
use selvedge_wire::verbs::Headers;

use self::classes::Classes;
use self::cut::Cut;
use self::numbering::Numbering;
pub use self::numbering::port_infos;
use self::populate::{connect, populate};
use self::shared::{fabric, nic};
use self::sides::{Sides, has_hosts_back_to_back};
use super::calendar::Calendar;
use super::fabric::Fabric;
use super::log::Log;
use super::pace::Pace;
use super::parcel::Outbox;
use super::partition::Partition;
use super::table::Table;
use super::tally::Tally;
use super::window::Parallel;
use crate::config::{BalancingConfig, SimConfig};
use crate::error::{ConfigError, Library};
use crate::fault::{LossPlan, link_events};
use crate::net::forward::Forwarding;
use crate::net::pool::Pool;
use crate::net::queue::Store;
use crate::net::records::Records;
use crate::topology::{Framing, Graph, Ports, Routes};
use crate::workload::BuildEnv;

/// A fabric ready to run.
pub(crate) struct Built<const RECORDED: bool> {
    pub(crate) partitions: Vec<Partition<RECORDED>>,
    /// Partition and local number of each port.
    pub(crate) places: Vec<(u16, u32)>,
    /// Failures and repairs, latest first.
    pub(crate) changes: Vec<Change>,
    pub(crate) pace: Pace,
}

/// Links that go down or come back at one time, and the routes after that.
pub(crate) struct Change {
    pub(crate) at: Instant,
    /// Ports (both ends of each link) and whether they are down from now on.
    pub(crate) ports: Vec<(PortId, bool)>,
    pub(crate) forwarding: Option<Arc<Forwarding>>,
}

/// Builds the fabric, cut into at most as many partitions as are wanted.
pub(crate) fn build<const RECORDED: bool>(
    config: &SimConfig,
    library: &dyn Library,
    parallel: Parallel,
) -> Result<Built<RECORDED>, ConfigError> {
    let paths = Arc::clone(&config.paths);
    let (graph, routes) = (paths.graph(), paths.routes());
    let numbering = Numbering::new(graph);
    let link_ports = numbering.of_links(graph);
    let lookahead = graph.links.iter().map(|link| link.delay).min().unwrap_or(Duration::from_us(1));

    let framing = config.nic.framing(&config.transport);
    let workload = config.workload.build(&BuildEnv {
        graph,
        routes,
        seed: config.seed,
        library,
        framing,
        measure: config.measure,
        stop_flows: config.stop.flows,
    })?;
    // Triggers act at once, wherever the flow that they release begins: no node may run ahead.
    let is_free = workload.triggers.is_empty();
    let wanted = if is_free { parallel.partitions.max(1) } else { 1 };
    let sides = if is_free && parallel.in_turns { Sides::two(graph) } else { None };
    let step = if is_free { step(graph, &numbering.ports, lookahead) } else { Duration::from_ps(1) };
    let pace = Pace::new(step, sides.is_some());
    let sides = sides.unwrap_or_else(|| Sides::one(graph));
    // Where hosts stand back to back, a packet takes one link, else two at least.
    let notice = lookahead * if has_hosts_back_to_back(graph) { 1 } else { 2 };
    let reach = reach(graph, config);
    let cut = Cut::new(graph, &numbering.ports, wanted);

    let tcp_workloads = match &config.beside {
        Some(beside) if config.transport.tcp.is_none() => {
            beside.which(&workload.summaries).map_err(|error| error.within("beside"))?
        }
        _ => vec![config.transport.tcp.is_some(); workload.summaries.len()],
    };
    let classes = Classes::of(config, &workload.summaries)?;
    let has_verbs = !workload.postings.is_empty();
    let mut nics = Vec::new();
    for rate in paths.host_rates() {
        nics.push((rate, Arc::new(nic(config, &classes, rate, has_verbs)?)));
    }
    let any = Arc::clone(&nics[0].1);
    let fabric = Fabric { tcp_workloads, ..fabric(config, (&classes, any), &cut, (pace, notice))? };
    let fabric = Arc::new(fabric);
    let forwarding = Arc::new(forwarding(config, routes)?);
    let mut partitions = Vec::with_capacity(cut.count);
    for index in 0..cut.count {
        partitions.push(Partition {
            index: index as u16,
            fabric: Arc::clone(&fabric),
            forwarding: Arc::clone(&forwarding),
            gap: config.nic.gap.get(),
            classes: fabric.classes,
            accounting: fabric.accounting,
            calendar: Calendar::new(cut.sides(index, &sides), pace, reach),
            postponed: Vec::new(),
            order: None,
            listed: Vec::new(),
            now: Instant::ZERO,
            begin: 0,
            stop: 0,
            pool: Pool::new(),
            store: Store::new(),
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
    let places = populate(&mut partitions, config, graph, routes, &numbering, &cut, &nics);
    connect(&mut partitions, &link_ports, &places);
    for (lane, loss) in
        LossPlan::new(graph, &config.loss, config.seed, library).map_err(|error| error.within("loss"))?.lanes()
    {
        // The process belongs to the receiving end.
        let [a, b] = link_ports[lane.link as usize];
        let (partition, at) = places[if lane.from_a { b } else { a }.index()];
        let partition = &mut partitions[partition as usize];
        partition.extras[at].loss = Some(loss.clone());
        partition.set_slow_path(at, true);
    }
    crate::net::verbs::connect(&mut partitions, &config.transport, &workload.postings)?;
    for partition in &mut partitions {
        partition.open_workload();
    }
    let changes = changes(config, graph, &link_ports)?;
    Ok(Built { partitions, places, changes, pace })
}

fn forwarding(config: &SimConfig, routes: &Routes) -> Result<Forwarding, ConfigError> {
    Forwarding::new(routes, config.switch.balancing == BalancingConfig::Ecmp).ok_or_else(|| {
        ConfigError::new(
            "topology",
            "a switch has more than 2,047 equal paths to some host: give it fewer parallel links",
        )
    })
}

/// How far nodes may go ahead: no link may deliver what was sent in the same step; the mail that a switch gets in two
/// steps must not be more than 16 bits can count, and times within them fit into 32 bits.
fn step(graph: &Graph, ports: &Ports, lookahead: Duration) -> Duration {
    let shortest_frame = Header::MINIMUM_FRAME + Header::GAP;
    let rate_into =
        |switch| -> u64 { ports.of(switch).iter().map(|port| graph.links[port.link as usize].rate.as_bps()).sum() };
    let most = (0..graph.switches.len() as u32).map(|switch| rate_into(SwitchId(switch))).max().unwrap_or(0);
    let fits = Rate::from_bps(most.max(1)).time_for(shortest_frame * u64::from(u16::MAX / 4));
    lookahead.min(fits).min(Duration::from_ps(u64::from(u32::MAX / 2)))
}

/// How TCP's payload becomes what a link carries.
fn tcp_framing(config: &SimConfig) -> Framing {
    let own = config.nic.framing(&config.transport);
    let beside = config.beside.as_ref().filter(|_| config.transport.tcp.is_none());
    beside.map_or(own, |beside| beside.framing(&config.nic))
}

/// No frame takes more on a link.
fn longest_frame(config: &SimConfig) -> Bytes {
    let full = |framing: Framing| framing.mtu + framing.overhead;
    let own = full(config.nic.framing(&config.transport)).max(config.nic.mtu + config.nic.gap);
    let tunnelled = config.largest_frame() + config.nic.gap;
    own.max(full(tcp_framing(config))).max(tunnelled) + Bytes::new(Headers::LONGEST as u64)
}

/// How long a full frame takes to the other end of the slowest link, in picoseconds.
fn reach(graph: &Graph, config: &SimConfig) -> u64 {
    let frame = longest_frame(config);
    graph.links.iter().map(|link| (link.rate.time_for(frame) + link.delay).as_ps()).max().unwrap_or(1)
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
