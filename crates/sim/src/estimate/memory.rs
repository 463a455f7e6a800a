//! Estimate of the memory of a run.

use super::traffic::Traffic;
use crate::config::{BufferConfig, SimConfig};
use crate::run::{bytes_per_host, bytes_per_port, bytes_per_switch};
use crate::topology::Node;
use crate::workload::Workload;

/// Memory of a run, in bytes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct MemoryEstimate {
    /// Bytes of hosts, switches, ports and routes.
    pub fabric: f64,
    /// Bytes of flow lists and schedules, once for each partition of the fabric.
    pub workload: f64,
    /// Bytes of flows that are open together.
    pub flows: f64,
    /// Bytes of packets in flight: those on links, and a part of those that buffers hold.
    pub packets: f64,
    /// Bytes of packets in flight where all buffers, or all windows, are full.
    pub packets_at_most: f64,
}

impl MemoryEstimate {
    /// Returns the total, with packets as expected.
    pub fn total(&self) -> f64 {
        self.fabric + self.workload + self.flows + self.packets
    }
    /// Returns the total, with the most packets that there can be.
    pub fn at_most(&self) -> f64 {
        self.fabric + self.workload + self.flows + self.packets_at_most
    }
}

pub(super) fn estimate(
    config: &SimConfig,
    workload: &Workload,
    traffic: &Traffic,
    partitions: usize,
) -> MemoryEstimate {
    let graph = config.paths.graph();
    let routes = config.paths.routes();
    let (hosts, switches, ports) = (graph.hosts.len(), graph.switches.len(), 2 * graph.links.len());
    // Forwarding has two numbers of four bytes and one of eight for each switch and leaf, in routes and in networks
    // alike.
    let table = switches * routes.leaves().len() * 16;
    let fabric = hosts * bytes_per_host() + switches * bytes_per_switch() + ports * bytes_per_port() + table;
    let copies = partitions as f64;
    let listed = workload.triggers.bytes() as f64 * copies;
    let scheduled: f64 = workload.executors.iter().map(|executor| executor.bytes() as f64).sum();
    let (expected, most) = packets_in_flight(config, traffic);
    MemoryEstimate {
        fabric: BASE + fabric as f64,
        workload: listed + scheduled,
        flows: traffic.open_bytes,
        packets: expected * PACKET,
        packets_at_most: most * PACKET,
    }
}

/// Returns the packets in flight: as expected, and at most.
fn packets_in_flight(config: &SimConfig, traffic: &Traffic) -> (f64, f64) {
    let graph = config.paths.graph();
    let frame = config.largest_frame().get() as f64;
    let on_links: f64 =
        graph.links.iter().map(|link| 2.0 * link.rate.amount_in(link.delay).get() as f64 / frame + 2.0).sum();
    let of_switches: f64 = match &config.switch.buffer {
        BufferConfig::SharedBuffer(shared) => graph.switches.len() as f64 * shared.total.get() as f64,
        BufferConfig::InputQueued(own) => {
            let ends = graph.links.iter().flat_map(|link| [(link, link.a), (link, link.b)]);
            let at_switches = ends.filter(|(_, node)| matches!(node, Node::Switch(_)));
            at_switches.map(|(link, node)| own.room(link, node).map_or(ENDLESS, |bytes| bytes.get() as f64)).sum()
        }
        BufferConfig::FairQueued(fair) => {
            let each = fair.per_port.resolve(|| None).map_or(ENDLESS, |bytes| bytes.get() as f64);
            each * 2.0 * graph.links.len() as f64
        }
        BufferConfig::Trimming(trimming) => {
            trimming.data_room(config.largest_frame()).get() as f64 * 2.0 * graph.links.len() as f64
        }
    };
    // Every packet sent is in flight once.
    let sent = traffic.total.packets;
    let window = traffic.window.unwrap_or(f64::INFINITY);
    let most = (on_links + of_switches / frame).min(window).min(sent);
    let expected = (on_links / 2.0 + of_switches / frame * FILL).min(most);
    (expected, most)
}

/// Bytes of a packet in flight: its entry in the pool, and its descriptor where it waits or is under way.
const PACKET: f64 = 112.0;
/// Part of the buffers that is assumed to be full.
const FILL: f64 = 0.1;
/// Bytes that an input without limit is assumed to hold.
const ENDLESS: f64 = 1e6;
/// Bytes of a run without a network: buffers of its files.
const BASE: f64 = 2e6;
