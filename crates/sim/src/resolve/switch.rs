//! Every "auto" of switches, derived from the network.

use selvedge_transport::{Marking, Needs};
use selvedge_units::{Bytes, Chance, Rate, Setting};

use super::Network;
use crate::config::{BalancingConfig, BufferConfig, EcnConfig, NicConfig, PfcConfig, SwitchConfig, Trimming};

/// Resolves the buffers of switches, and the settings that depend on links alone.
pub(super) fn resolve_switch(
    switch: &mut SwitchConfig,
    network: &Network,
    wire: &NicConfig,
    frame: Bytes,
    xon_gap: Bytes,
) {
    // One value where all links are alike; otherwise each input has its own.
    let mut per_link = network.links_to_switches().map(|link| switch.pfc.headroom_on(link.rate, link.delay, wire));
    let first = per_link.next();
    if per_link.all(|other| Some(other) == first) {
        drop(per_link);
        settle(&mut switch.pfc.headroom, first);
        switch.pfc.headroom_by_link.clear();
    }
    settle(&mut switch.pfc.xon_gap, Some(xon_gap));
    if let BalancingConfig::Flowlet(flowlet) = &mut switch.balancing {
        settle(&mut flowlet.gap, Some(network.base_rtt()));
    }
    let room = (network.bdp().bytes * 2).max(least_room(network, &switch.pfc, wire, xon_gap));
    match &mut switch.buffer {
        BufferConfig::InputQueued(buffer) => {
            // One value where all ports are alike; otherwise each port has its own.
            let mut own = network.own_buffers();
            let first = own.next().flatten();
            if own.all(|other| other == first) {
                settle(&mut buffer.per_port, Some(first.unwrap_or(room)));
            }
        }
        BufferConfig::FairQueued(fair) => {
            settle(&mut fair.per_port, Some(room));
            settle(&mut fair.quantum, Some(frame));
        }
        BufferConfig::Trimming(trimming) => {
            let headers = trimming.header_room(frame);
            settle(&mut trimming.headers, headers);
            settle(&mut trimming.headers_per_data, Some(Trimming::HEADERS_PER_DATA));
            if let Some(flows) = &mut trimming.flow_queues {
                settle(&mut flows.quantum, Some(frame));
            }
        }
        BufferConfig::SharedBuffer(shared) => {
            settle(&mut shared.shared, None);
            settle(&mut shared.headroom_pool, None);
        }
    }
}

/// Resolves marking thresholds to values that suit the congestion control, along its own curve.
pub(super) fn resolve_ecn(ecn: &mut EcnConfig, needs: &Needs, line_rate: Rate) {
    ecn.enabled = ecn.enabled.resolve(|| needs.marking.is_some()).into();
    settle(&mut ecn.at_rate, Some(line_rate));
    let rate = ecn.at_rate.resolve(|| None).unwrap_or(line_rate);
    let curve = needs.marking.unwrap_or(Marking::DCQCN).on(rate);
    settle(&mut ecn.k_min, Some(curve.k_min));
    settle(&mut ecn.k_max, Some(curve.k_max));
    settle(&mut ecn.p_max, Some(curve.p_max));
    // Rounded to the nearest number that a file can hold, so that the resolved scenario runs alike.
    if let Setting::Value(p_max) = &mut ecn.p_max {
        *p_max = Chance::from_f64(p_max.as_f64()).unwrap_or(Chance::ALWAYS);
    }
}

/// Returns the smallest size of an input buffer, the same with and without PFC for the sake of comparison: the headroom
/// of any link, and as much again below X-ON, which the output sends while the end of a pause and the packets after it
/// are on their way. The size exceeds two bandwidth-delay products where links are short, or where some links are
/// faster than those of hosts.
fn least_room(network: &Network, pfc: &PfcConfig, wire: &NicConfig, xon_gap: Bytes) -> Bytes {
    let pfc = PfcConfig { headroom_by_link: pfc.headroom_by_link.clone(), ..PfcConfig::default() };
    let headroom = network.links_to_switches().map(|link| pfc.headroom_on(link.rate, link.delay, wire)).max();
    let headroom = headroom.unwrap_or_default();
    headroom + headroom.max(xon_gap) + xon_gap
}

/// Replaces "auto" by the value `auto`.
fn settle<T: Copy>(setting: &mut Setting<T>, auto: Option<T>) {
    *setting = setting.resolve(|| auto).into();
}
