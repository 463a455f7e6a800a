//! Checks of schemes whose state or numbering covers a limited number of packets in the network: beyond that number a
//! scheme works, but not as well as on the networks that it was made for.

use selvedge_sim::Network;
use selvedge_transport::{Scheme, netrt};
use selvedge_units::Setting;

use super::Finding;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, network: &Network) -> Vec<Finding> {
    let Scenario { nic, transport, .. } = scenario;
    let frame = nic.payload(transport) + nic.data_header(transport);
    let held_in = |rtt| network.line_rate().amount_in(rtt).pieces(frame);
    let between_tors = network.base_rtt().saturating_sub(network.longest_ends() * 2);
    let found = [
        of_tunnels(scenario, network),
        of_pool(scenario, held_in(network.base_rtt())),
        of_tors(scenario, held_in(between_tors)),
    ];
    found.into_iter().flatten().collect()
}

/// Returns a finding if EQDS's sequence numbers are too few for the network.
fn of_tunnels(scenario: &Scenario, network: &Network) -> Option<Finding> {
    let Scenario { nic, transport, .. } = scenario;
    let eqds = transport.tunnels()?;
    let frame = transport.tunnel_frame(nic)?;
    let Setting::Value(reorder) = eqds.reorder else { return None };
    let held = network.widest_pipe(frame + nic.gap, eqds.answer_frame() + nic.gap);
    let held = held.min(eqds.window()).pieces(frame);
    let message = format!(
        "a tunnel may have {reorder} packets under way, and a path holds up to {held}: it cannot fill it; larger \
         packets reach farther (nic.mtu)"
    );
    (u64::from(reorder) < held).then(|| Finding::new("transport.eqds.reorder", message))
}

/// Returns a finding if a pool of bits that receivers share (MELO) is too small for the network.
fn of_pool(scenario: &Scenario, held: u64) -> Option<Finding> {
    let recovery = scenario.transport.recovery()?;
    let (key, packets) = recovery.pool()?;
    let message = format!(
        "the longest path holds {held} packets, and the pool has bits for {packets}: behind a loss, packets beyond them are dropped"
    );
    (u64::from(packets) < held).then(|| Finding::new(&format!("transport.recovery.{}.{key}", recovery.name()), message))
}

/// Returns a finding if the bitmaps of NetRT's destination ToRs are too small for the network.
fn of_tors(scenario: &Scenario, held: u64) -> Option<Finding> {
    let most = netrt::WINDOW;
    let message = format!(
        "between ToRs the longest path holds {held} packets, and they keep {most} of a flow behind a loss (NetRT, section III-C): what is \
         beyond is left to the NICs"
    );
    (scenario.switch.netrt.enabled && u64::from(most) < held).then(|| Finding::new("switch.netrt.enabled", message))
}
