//! EQDS's tunnels, and stacks that send through them.

use selvedge_sim::config::{BufferConfig, Trimming};
use selvedge_transport::eqds::EqdsConfig;
use selvedge_transport::eqds::eqif::{BackPressure, EqifConfig};
use selvedge_transport::{Scheme, Tuning};
use selvedge_units::Setting;

use super::Finding;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, eqds: &EqdsConfig, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let frame = scenario.transport.tunnel_frame(&scenario.nic).unwrap_or(scenario.nic.mtu);
    eqds.check(frame).map_err(|error| Finding::new(&format!("transport.eqds.{}", error.key), error.message))?;
    match scenario.switch.buffer {
        BufferConfig::Trimming(trimming) => warnings.extend(control_behind_data(scenario, &trimming)),
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

/// What receivers say should not wait in the queues that it is to keep short.
pub(super) fn control_behind_data(scenario: &Scenario, trimming: &Trimming) -> Option<Finding> {
    let message = format!(
        "control packets (priority {}) wait behind data, and do not travel with the headers of trimmed packets \
         (priority {}); give that one",
        scenario.nic.ack_class, trimming.header_class
    );
    (scenario.nic.ack_class < trimming.header_class).then(|| Finding::new("nic.ack-class", message))
}

/// Stacks that send through tunnels.
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
    if eqif.tcp.is_some() && transport.tcp.is_none() && scenario.beside.is_none() {
        let message = "nobody speaks TCP; write [transport.tcp], or [beside] for some workloads, or leave it out";
        return wrong("transport.eqds.eqif.tcp", message);
    }
    let Some(rdma) = &eqif.rdma else { return Ok(()) };
    if scenario.switch.netrt.enabled {
        let message = "NetRT's switches do not see into tunnels; give false, or leave out transport.eqds.eqif.rdma";
        return wrong("switch.netrt.enabled", message);
    }
    let (recovery, congestion) = (transport.recovery.name(), transport.congestion.name());
    if !transport.recovery.acknowledges() {
        let message = "without PFC, and PFC cannot be with tunnels, a sender must hear of its data; give \"per-packet\" or \"auto\"";
        return wrong(&format!("transport.recovery.{recovery}.acks"), message);
    }
    if transport.congestion.needs().telemetry {
        let message =
            format!("{congestion} wants switches to write on its packets, which are in tunnels; give another one");
        return wrong("transport.congestion", &message);
    }
    let hears_cnps = transport.congestion.hears_cnps();
    if matches!(rdma.back_pressure, BackPressure::Cnp(_)) && !hears_cnps {
        let message = format!("{congestion} does not hear CNPs; give pause, \"auto\", or DCQCN");
        return wrong("transport.eqds.eqif.rdma.back-pressure", &message);
    }
    Ok(())
}
