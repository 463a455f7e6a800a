//! Checks of EQDS's tunnels, and of stacks that send through them.

use std::fmt;

use selvedge_sim::Network;
use selvedge_sim::config::{BufferConfig, RdmaConfig, Trimming};
use selvedge_sim::topology::PathClass;
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::eqds::eqif::{BackPressure, EqifConfig};
use selvedge_transport::{Scheme, Tuning};
use selvedge_units::{Rate, Setting};

use super::Finding;
use crate::scenario::Scenario;

pub(super) fn check(
    scenario: &Scenario,
    eqds: &EqdsConfig,
    network: &Network,
    warnings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let frame = scenario.transport.tunnel_frame(&scenario.nic).unwrap_or(scenario.nic.mtu);
    eqds.check(frame).map_err(|error| Finding::new(&format!("transport.eqds.{}", error.key), error.message))?;
    match scenario.switch.buffer {
        BufferConfig::Trimming(trimming) => {
            warnings.extend(control_behind_data(scenario, &trimming));
            let pull_rate = eqds.pull_rate.resolve(|| None).unwrap_or(Rate::MAX);
            let window = eqds.window().pieces(frame);
            warnings.extend(pulled_beyond(network, &trimming, pull_rate, window).map(|beyond| {
                let message = format!("{beyond}; give \"{}\", which then goes for all hosts", beyond.carried);
                Finding::new("transport.eqds.pull-rate", message)
            }));
        }
        BufferConfig::InputQueued(_) | BufferConfig::SharedBuffer(_) if eqds.bursts() => {
            let message = "a first window is sent unasked, but switches do not trim: what they drop is missed only after a \
                           timeout; give false, or let them trim (switch.buffer.trimming)";
            warnings.push(Finding::new("transport.eqds.burst", message));
        }
        _ => {}
    }
    if let Setting::Value(packets) = eqds.reorder
        && eqds.ack_after >= frame * u64::from(packets)
    {
        let message = format!(
            "{} are more than the {packets} packets of {frame} that may be under way (reorder): senders stop and ask each \
             time that these are; give less, or raise reorder",
            eqds.ack_after
        );
        warnings.push(Finding::new("transport.eqds.ack-after", message));
    }
    check_eqif(scenario, &eqds.eqif)
}

/// Path that carries less than its receiver grants.
pub(super) struct Beyond {
    /// Names of sender and receiver.
    ends: [String; 2],
    pulled: Rate,
    pub(super) carried: Rate,
    /// Packets of a window, packets of it that arrive at the slower link in excess while it sends the others, and
    /// packets that fit in its queue.
    packets: [u64; 3],
}

impl fmt::Display for Beyond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ends: [src, dst], pulled, carried, packets: [window, beyond, queue] } = self;
        write!(
            f,
            "receivers let {pulled} come, and the path from {src} to {dst} carries {carried}: of a window of {window} \
             packets about {beyond} come faster than that, where {queue} can wait; the others are trimmed and sent again, \
             until credit has spread over a round trip"
        )
    }
}

/// Returns the path on which most of a `window` of packets finds the queue full, among those with links slower than the
/// rate that receivers grant, at most `pull_rate`.
pub(super) fn pulled_beyond(network: &Network, trimming: &Trimming, pull_rate: Rate, window: u64) -> Option<Beyond> {
    let queue = u64::from(trimming.packets);
    let of = |class: &PathClass| {
        let pulled = pull_rate.min(class.receiver).min(class.sender);
        let carried = network.carried(class);
        let more = u128::from(pulled.as_bps().saturating_sub(carried.as_bps()));
        let beyond = (u128::from(window) * more / u128::from(pulled.as_bps().max(1))) as u64;
        let ends = || [class.example.0, class.example.1].map(|host| network.graph().hosts[host.index()].name.clone());
        let packets = [window, beyond, queue];
        (beyond > queue).then(|| Beyond { ends: ends(), pulled, carried, packets })
    };
    let worst = |beyond: &Beyond| beyond.packets[1];
    network.paths().classes().all().iter().filter_map(of).max_by_key(worst)
}

/// Returns a finding if control packets of EQDS's receivers wait behind data, in the queues that EQDS is to keep short.
pub(super) fn control_behind_data(scenario: &Scenario, trimming: &Trimming) -> Option<Finding> {
    let message = format!(
        "control packets (priority {}) wait behind data, and do not travel with the headers of trimmed packets \
         (priority {}); give that one",
        scenario.nic.ack_class, trimming.header_class
    );
    (scenario.nic.ack_class < trimming.header_class).then(|| Finding::new("nic.ack-class", message))
}

/// Checks stacks that send through tunnels.
fn check_eqif(scenario: &Scenario, eqif: &EqifConfig) -> Result<(), Finding> {
    let transport = &scenario.transport;
    if !eqif.is_used() {
        return Ok(());
    }
    let wrong = |key: &str, message: &str| Err(Finding::new(key, message));
    if scenario.switch.pfc.enabled {
        let message = "tunnels keep queues in EQIFs, and receivers set their pace: there is nothing for links to pause; give \
                       false, or leave out transport.eqds.eqif";
        return wrong("switch.pfc.enabled", message);
    }
    if eqif.tcp.is_some() && transport.tcp().is_none() && scenario.beside.is_none() {
        let message = "nobody speaks TCP; write [transport.tcp], or [beside] for some workloads, or leave it out";
        return wrong("transport.eqds.eqif.tcp", message);
    }
    let Some(rdma) = &eqif.rdma else { return Ok(()) };
    if scenario.switch.netrt.enabled {
        let message = "NetRT's switches do not see into tunnels; give false, or leave out transport.eqds.eqif.rdma";
        return wrong("switch.netrt.enabled", message);
    }
    let Some(RdmaConfig { recovery, congestion }) = transport.rdma() else { return Ok(()) };
    if !recovery.acknowledges() {
        let message = "without PFC, and PFC cannot be with tunnels, a sender must hear of its data; give \"per-packet\" or \"auto\"";
        return wrong(&format!("transport.recovery.{}.acks", recovery.name()), message);
    }
    let name = congestion.name();
    if congestion.needs().telemetry {
        let message = format!("{name} wants switches to write on its packets, which are in tunnels; give another one");
        return wrong("transport.congestion", &message);
    }
    let hears_cnps = congestion.hears_cnps();
    if matches!(rdma.back_pressure, BackPressure::Cnp(_)) && !hears_cnps {
        let message = format!("{name} does not hear CNPs; give pause, \"auto\", or DCQCN");
        return wrong("transport.eqds.eqif.rdma.back-pressure", &message);
    }
    Ok(())
}
