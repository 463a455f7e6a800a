//! Checks of out-of-order packets, where go-back-N has no signal but NACKs.

use selvedge_sim::Network;
use selvedge_sim::config::{BalancingConfig, RdmaConfig, TransportConfig};
use selvedge_transport::Scheme;
use selvedge_units::SwitchId;

use super::Finding;
use crate::scenario::Scenario;

/// Returns a finding if reordering can keep a flow from finishing: a gap is reported once, and a packet that overtakes
/// the retransmission closing the gap is refused silently. If it was the last packet, nothing reports it missing.
pub(super) fn check(series: &str, scenario: &Scenario, network: &Network) -> Option<Finding> {
    // Tunnels put packets in order.
    let TransportConfig::Rdma(RdmaConfig { recovery, .. }) = &scenario.transport else { return None };
    if recovery.survives_reordering() || scenario.switch.balancing == BalancingConfig::Ecmp || !has_choices(network) {
        return None;
    }
    let message = format!(
        "{series} has no timeout, and its packets may overtake each other (switch.balancing): a gap is reported once, so \
         that flows may never finish though nothing is lost; give a time, as in \"1ms\", and acks = \"per-packet\" \
         beside it"
    );
    Some(Finding::new(&format!("transport.recovery.{}.rto", recovery.name()), message))
}

/// Returns whether there are several paths between any two hosts.
fn has_choices(network: &Network) -> bool {
    let routes = network.routes();
    let switches = (0..network.graph().switches.len() as u32).map(SwitchId);
    let mut leaves = switches.flat_map(|switch| (0..routes.leaves().len()).map(move |leaf| (switch, leaf)));
    leaves.any(|(switch, leaf)| routes.next_hops(switch, leaf).len() > 1)
}
