//! Findings about the devices of a series.

use std::collections::BTreeSet;

use selvedge_sim::Network;
use selvedge_sim::config::BufferConfig;
use selvedge_sim::topology::Link;
use selvedge_units::words::{all_of, plural};
use selvedge_units::{Duration, Rate, Setting};

use super::{Chosen, Device, DeviceKind};
use crate::check::Finding;
use crate::scenario::Scenario;

/// Returns the findings about `chosen` in a series, whose `scenario` still says "auto".
pub(crate) fn findings(chosen: &[Chosen], scenario: &Scenario, network: &Network) -> Vec<Finding> {
    let mut findings = Vec::new();
    for device in chosen.iter().map(|chosen| chosen.device) {
        findings.push(Finding::new(device.kind.key(), in_general(device)));
        let specific = match device.kind {
            DeviceKind::Nic => vec![too_fast(device, network)],
            DeviceKind::Switch => vec![other_buffer(device, scenario), without_row(device, scenario, network)],
        };
        let specific = specific.into_iter().flatten();
        findings.extend(specific.map(|message| Finding::new(device.kind.key(), message)));
    }
    findings
}

/// Returns the statement that holds for every device.
fn in_general(device: &Device) -> String {
    format!(
        "\"{0}\" has values of public documents, none of them calibrated; {1} unknown, {2} not modelled: `selvedge presets \
         {0}` and the head of scenario.toml say which",
        device.name,
        plural(device.unknown.len() as u64, "thing"),
        device.not_modelled.len(),
    )
}

/// Returns a message about a NIC whose links are faster than any of its ports.
fn too_fast(device: &Device, network: &Network) -> Option<String> {
    let (fastest, found) = (device.fastest.as_ref()?.value, network.line_rate());
    (found > fastest)
        .then(|| format!("\"{}\" has ports of up to {fastest}, and hosts have links of {found} here", device.name))
}

/// Returns a message about a buffer of another kind than the device's.
fn other_buffer(device: &Device, scenario: &Scenario) -> Option<String> {
    let kind = match scenario.switch.buffer {
        BufferConfig::SharedBuffer(_) => return None,
        BufferConfig::InputQueued(_) => "input-queued",
        BufferConfig::Trimming(_) => "trimming",
        BufferConfig::FairQueued(_) => "fair-queued",
    };
    Some(format!(
        "switch.buffer is \"{kind}\" here, so the buffer of \"{}\", its headroom and X-ON do not count; its ECN thresholds do",
        device.name
    ))
}

/// Returns a message about links for which the device's table of headroom has no row.
fn without_row(device: &Device, scenario: &Scenario, network: &Network) -> Option<String> {
    let (table, pfc) = (device.headroom.as_ref()?, &scenario.switch.pfc);
    let is_used = pfc.enabled && pfc.headroom == Setting::Auto && !pfc.headroom_by_link.is_empty();
    let is_missing = |link: &&Link| pfc.headroom_row(link.rate, link.delay).is_none();
    let missing: BTreeSet<(Rate, Duration)> =
        network.links_to_switches().filter(is_missing).map(|link| (link.rate, link.delay)).collect();
    if !is_used || missing.is_empty() {
        return None;
    }
    let wire = scenario.nic.with_longest_header(&scenario.transport, scenario.beside.as_ref());
    let taken = missing
        .iter()
        .map(|&(rate, delay)| format!("{} for links of {rate} and {delay}", pfc.headroom_on(rate, delay, &wire)));
    let rates: Vec<String> = table.rows.iter().map(|row| row.rate.as_gbps_f64().to_string()).collect();
    let longest = table.by_link().map(|row| row.delay).max().unwrap_or_default();
    Some(format!(
        "the headroom of \"{}\" is published for {} Gb/s and cables of up to {} m ({longest}); taken instead, as \"auto\" has it \
         without a preset: {}",
        device.name,
        all_of(&rates),
        table.cables.last().copied().unwrap_or_default(),
        all_of(&taken.collect::<Vec<_>>()),
    ))
}
