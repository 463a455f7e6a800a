//! Links between the ports of all partitions.

use std::collections::BTreeMap;

use selvedge_units::PortId;

use crate::config::SimConfig;
use crate::error::{ConfigError, Library};
use crate::fault::LossPlan;
use crate::net::partition::Partition;

/// Connects the two ends of every link. Neighbours that other partitions own get numbers behind a partition's own.
pub(super) fn connect<const RECORDED: bool>(
    partitions: &mut [Partition<RECORDED>],
    link_ports: &[[PortId; 2]],
    places: &[(u16, u32)],
) {
    let mut remote = BTreeMap::new();
    for &[a, b] in link_ports {
        for (from, to) in [(a, b), (b, a)] {
            let ((partition, at), (peer_partition, peer)) = (places[from.index()], places[to.index()]);
            let there = &partitions[peer_partition as usize];
            let owner = there.net.egress[peer].owner;
            let (node, number) = if there.net.egress[peer].is_host {
                (owner, 0)
            } else {
                (there.edge.hosts.len() as u32 + owner, (peer - there.net.switches[owner].facts.first_port) as u16)
            };
            let side = there.edge.calendar.side_of(node);
            let here = &mut partitions[partition as usize];
            let node = if partition == peer_partition {
                node
            } else {
                let first = || here.edge.calendar.add_remote(peer_partition, node, side);
                *remote.entry((partition, peer_partition, node)).or_insert_with(first)
            };
            let port = &mut here.net.egress[at];
            (port.peer_partition, port.peer) = (peer_partition, peer);
            (port.peer_node, port.peer_port) = (node, number);
        }
    }
}

/// Gives each direction of a link the processes that lose packets there, at the receiving end.
pub(super) fn make_lossy<const RECORDED: bool>(
    partitions: &mut [Partition<RECORDED>],
    config: &SimConfig,
    library: &dyn Library,
    link_ports: &[[PortId; 2]],
    places: &[(u16, u32)],
) -> Result<(), ConfigError> {
    let plan = LossPlan::new(config.paths.graph(), &config.loss, config.seed, library);
    for (lane, loss) in plan.map_err(|error| error.within("loss"))?.lanes() {
        let [a, b] = link_ports[lane.link as usize];
        let (partition, at) = places[if lane.from_a { b } else { a }.index()];
        let partition = &mut partitions[partition as usize];
        partition.edge.losses[at as usize] = Some(Box::new(loss.clone()));
        partition.net.set_slow_path(at, true);
    }
    Ok(())
}
