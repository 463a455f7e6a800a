//! Checks of pauses: durations, thresholds, headroom.

use selvedge_sim::Network;
use selvedge_sim::config::{BufferConfig, NicConfig, PfcConfig};
use selvedge_sim::topology::Link;
use selvedge_units::{Bytes, Setting};

use super::Finding;
use super::buffer::least_room;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, network: &Network, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let pfc = &scenario.switch.pfc;
    let wire = scenario.nic.with_longest_header(&scenario.transport, scenario.beside.as_ref());
    check_pauses(scenario, &wire, warnings)?;
    if !pfc.enabled {
        return Ok(());
    }
    let headrooms = network.links_to_switches().map(|link| pfc.headroom_on(link.rate, link.delay, &wire));
    // Without switches there are no pauses, and no need for headroom.
    let Some(largest) = headrooms.max() else { return Ok(()) };
    if largest.is_zero() {
        let message = "PFC without headroom drops what arrives after each pause: give some, or \"auto\"";
        return Err(Finding::new("switch.pfc.headroom", message));
    }
    check_thresholds(scenario, network, largest)?;
    warnings.extend(scarce_headroom(pfc, network, &wire));
    Ok(())
}

/// Checks which priorities are paused, and for how long.
fn check_pauses(scenario: &Scenario, wire: &NicConfig, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let pfc = &scenario.switch.pfc;
    if let Some(class) = pfc.classes.iter().find(|&&class| class > 7) {
        return Err(Finding::new("switch.pfc.classes", format!("{class} is not a traffic class: they are 0 to 7")));
    }
    let least = PfcConfig::quanta_beyond(PfcConfig::FRAME + scenario.nic.gap);
    if u64::from(pfc.quanta) < least {
        let message = format!(
            "{} quanta are too few: a pause is refreshed at half its time, which leaves room for pause frames alone; \
             give {least} to 65535",
            pfc.quanta
        );
        return Err(Finding::new("switch.pfc.quanta", message));
    }
    if !pfc.enabled {
        return Ok(());
    }
    if !pfc.classes.contains(&scenario.nic.data_class) {
        let class = scenario.nic.data_class;
        let message = format!("PFC is enabled, but class {class}, which carries the data, is not among its classes");
        warnings.push(Finding::new("switch.pfc.classes", message));
    }
    let enough = PfcConfig::quanta_beyond(wire.mtu + wire.header + wire.gap);
    if u64::from(pfc.quanta) < enough {
        let message = format!(
            "a pause of {} quanta ends before it is refreshed where a frame is on the wire just then: expect drops in \
             spite of PFC; give at least {enough}",
            pfc.quanta
        );
        warnings.push(Finding::new("switch.pfc.quanta", message));
    }
    Ok(())
}

/// Checks X-OFF and X-ON in input buffers, of which headroom takes up to `largest`.
fn check_thresholds(scenario: &Scenario, network: &Network, largest: Bytes) -> Result<(), Finding> {
    let (pfc, BufferConfig::InputQueued(buffer)) = (&scenario.switch.pfc, &scenario.switch.buffer) else {
        return Ok(());
    };
    let Some(room) = least_room(buffer, network) else { return Ok(()) };
    let xon_gap = pfc.xon_gap.resolve(|| None).unwrap_or_default();
    if largest >= room {
        let nothing = format!("headroom of {largest} leaves nothing of the {room} buffer");
        // The headroom is "auto": the fault is the buffer, which is too small for it.
        if pfc.headroom == Setting::Auto {
            let message = format!("{nothing} to use before pausing; give more than {}", largest + xon_gap);
            return Err(Finding::new("switch.buffer.input-queued.per-port", message));
        }
        let message = format!(
            "{nothing} (switch.buffer.input-queued.per-port) to use before pausing; give less headroom or more buffer"
        );
        return Err(Finding::new("switch.pfc.headroom", message));
    }
    let threshold = room - largest;
    // The gap is "auto": the fault is the buffer, which is too small for it.
    if xon_gap >= threshold && xon_gap == scenario.nic.xon_gap(&scenario.transport) {
        let message = format!(
            "{room} leaves {threshold} below the headroom of {largest}, and X-ON is to be {xon_gap} below X-OFF \
             (switch.pfc.xon-gap); give more than {}",
            largest + xon_gap
        );
        return Err(Finding::new("switch.buffer.input-queued.per-port", message));
    }
    if xon_gap >= threshold {
        let message = format!("X-ON would be {xon_gap} below X-OFF, which is at {threshold}; give less");
        return Err(Finding::new("switch.pfc.xon-gap", message));
    }
    Ok(())
}

/// Returns a finding about the link whose headroom lacks most, if headroom is smaller than the data under way when a
/// pause is sent.
fn scarce_headroom(pfc: &PfcConfig, network: &Network, wire: &NicConfig) -> Option<Finding> {
    let headroom = |link: &Link| pfc.headroom_on(link.rate, link.delay, wire);
    let under_way = |link: &Link| link.rate.amount_in(link.delay * 2);
    let missing = |link: &&Link| under_way(link).saturating_sub(headroom(link));
    let link = network.links_to_switches().max_by_key(missing).filter(|link| !missing(link).is_zero())?;
    let message = format!(
        "headroom of {} is less than the {} under way on the link {}: expect drops in spite of PFC; \"auto\" gives {}",
        headroom(link),
        under_way(link),
        network.graph().link_name(link),
        PfcConfig::default().headroom_on(link.rate, link.delay, wire),
    );
    Some(Finding::new("switch.pfc.headroom", message))
}
