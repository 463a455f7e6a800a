//! Builder of partitions from a configuration.

mod classes;
mod connect;
mod cut;
mod frames;
mod lookahead;
mod numbering;
mod populate;
mod shared;
mod sides;
mod visit_order;

use std::sync::Arc;

use selvedge_switch::forward::Forwarding;
use selvedge_switch::{Change, Switches};
use selvedge_transport::SettingError;
use selvedge_transport::netrt::{NetRtConfig, Settings};
use selvedge_units::PortId;

use self::classes::Classes;
use self::connect::{connect, make_lossy};
use self::cut::Cut;
use self::lookahead::Lookahead;
use self::numbering::Numbering;
pub use self::numbering::{port_infos, ports_of_links};
use self::populate::populate;
use self::shared::{carriers, fabric, flows, nics, switches};
use self::visit_order::visit_order;
use crate::config::{BalancingConfig, SimConfig};
use crate::error::{ConfigError, Library};
use crate::fault::link_events;
use crate::kernel::calendar::Calendar;
use crate::kernel::rounds::Parallel;
use crate::kernel::schedule::WindowSchedule;
use crate::net::edge::Edge;
use crate::net::partition::Partition;
use crate::topology::{Graph, Routes};
use crate::workload::Workload;

/// Fabric that is ready to run.
pub(crate) struct Built<const RECORDED: bool> {
    pub(crate) partitions: Vec<Partition<RECORDED>>,
    /// Partition and local number of each port.
    pub(crate) places: Vec<(u16, u32)>,
    /// Failures and repairs, latest first.
    pub(crate) changes: Vec<Change>,
    pub(crate) schedule: WindowSchedule,
}

/// Builds the fabric with the configured traffic, cut into at most as many partitions as `parallel` asks for.
pub(crate) fn build<const RECORDED: bool>(
    config: &SimConfig,
    library: &dyn Library,
    parallel: Parallel,
) -> Result<Built<RECORDED>, ConfigError> {
    build_with(config, config.traffic(library)?, library, parallel)
}

/// Builds the fabric with this traffic, cut into at most as many partitions as `parallel` asks for.
pub(crate) fn build_with<const RECORDED: bool>(
    config: &SimConfig,
    workload: Workload,
    library: &dyn Library,
    parallel: Parallel,
) -> Result<Built<RECORDED>, ConfigError> {
    let (graph, routes) = (config.paths.graph(), config.paths.routes());
    let numbering = Numbering::new(graph);
    let link_ports = numbering.of_links(graph);
    // Triggers act at once, wherever the flow that they release begins, so no node may run ahead.
    let is_free = workload.triggers.is_empty();
    let lookahead = Lookahead::new(config, &numbering.ports, is_free, parallel.in_turns);
    let cut = Cut::new(graph, &numbering.ports, if is_free { parallel.partitions.max(1) } else { 1 });

    let carriers = carriers(config, &workload.summaries)?;
    let classes = Classes::of(config, &workload.summaries)?;
    let has_verbs = !workload.postings.is_empty();
    let nics = nics(config, &classes, has_verbs)?;
    let flows = flows(config, &classes, has_verbs)?;
    let params = switches(config, &classes, nics[0].1.data_classes, has_verbs)?;
    let fabric = Arc::new(fabric(config, &classes, &nics[0].1, flows, &cut, &lookahead, carriers));
    let forwarding = Arc::new(forwarding(config, routes)?);
    let empty = |index| {
        let sides = cut.sides(index, &lookahead.sides);
        let visit_order = visit_order(graph, &cut, &lookahead, sides.len());
        let calendar = Calendar::new(sides, visit_order, lookahead.schedule, lookahead.reach);
        let net = Switches::new(params, Arc::clone(&forwarding));
        Partition::new(index as u16, cut.count, net, Edge::new(Arc::clone(&fabric), calendar), workload.clone())
    };
    let mut partitions: Vec<Partition<RECORDED>> = (0..cut.count).map(empty).collect();
    let places = populate(&mut partitions, config, &numbering, &cut, &nics, netrt(&config.switch.netrt)?);
    connect(&mut partitions, &link_ports, &places);
    make_lossy(&mut partitions, config, library, &link_ports, &places)?;
    crate::net::verbs::connect(&mut partitions, &config.transport, &workload.postings)?;
    partitions.iter_mut().for_each(Partition::open_workload);
    let changes = changes(config, graph, &link_ports)?;
    Ok(Built { partitions, places, changes, schedule: lookahead.schedule })
}

/// Returns the parameters of NetRT, if it is enabled.
fn netrt(config: &NetRtConfig) -> Result<Option<Settings>, ConfigError> {
    let wrong = |error: SettingError| ConfigError::new(&format!("switch.netrt.{}", error.key), error.message);
    config.enabled.then(|| config.params().map_err(wrong)).transpose()
}

fn forwarding(config: &SimConfig, routes: &Routes) -> Result<Forwarding, ConfigError> {
    Forwarding::new(&routes.tables(), config.switch.balancing == BalancingConfig::Ecmp).ok_or_else(|| {
        ConfigError::new(
            "topology",
            "a switch has more than 2,047 equal paths to some host: give it fewer parallel links",
        )
    })
}

/// Returns the failures and repairs of links, with the routes that all switches use from then on: rerouting takes no
/// time, and packets in flight are lost.
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
        let forwarding = Arc::new(forwarding(config, &Routes::new(graph, &down))?);
        changes.push(Change { at: together[0].at, ports, forwarding });
    }
    changes.reverse();
    Ok(changes)
}
