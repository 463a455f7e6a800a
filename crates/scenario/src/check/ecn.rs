//! Checks of ECN marks, and of the congestion controls that react to them.

use selvedge_sim::Network;
use selvedge_sim::config::BufferConfig;
use selvedge_units::{Rate, Setting, Toggle};

use super::Finding;
use super::buffer::least_room;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, network: &Network, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let ecn = &scenario.switch.ecn;
    let transport = &scenario.transport;
    let congestion = transport.congestion_name();
    let hears = transport.hears_marks();
    if ecn.enabled != Toggle::On {
        if hears && transport.tcp().is_some() {
            let message = "no switch marks packets, so TCP hears of congestion by losses only";
            warnings.push(Finding::new("switch.ecn.enabled", message));
        } else if hears {
            let message = format!(
                "{} hears of congestion by ECN marks, and switches that do not mark leave it at line rate; set true or \
                 \"auto\", or choose another congestion control",
                congestion
            );
            return Err(Finding::new("switch.ecn.enabled", message));
        }
        return Ok(());
    }
    if ecn.at_rate == Setting::Value(Rate::ZERO) {
        return Err(Finding::new("switch.ecn.at-rate", "thresholds scale by it; give a rate above zero, or \"off\""));
    }
    let limits = [("switch.ecn.k-min", ecn.k_min), ("switch.ecn.k-max", ecn.k_max)];
    let [k_min, k_max] = limits.map(|(key, setting)| {
        setting
            .resolve(|| None)
            .ok_or_else(|| Finding::new(key, "the curve has two ends: give a queue length, or \"auto\""))
    });
    let (k_min, k_max) = (k_min?, k_max?);
    if ecn.p_max == Setting::Off {
        return Err(Finding::new("switch.ecn.p-max", "give a probability from 0 to 1, or \"auto\""));
    }
    if k_min > k_max {
        let message = format!("marking would begin at {k_min} and be certain from {k_max} on; k-max must not be less");
        return Err(Finding::new("switch.ecn.k-max", message));
    }
    if !hears {
        let message = format!("switches mark packets, and nobody hears it (congestion control: {congestion})");
        warnings.push(Finding::new("switch.ecn.enabled", message));
    } else if let BufferConfig::InputQueued(buffer) = &scenario.switch.buffer
        && let Some(room) = least_room(buffer, network)
        && !scenario.switch.pfc.enabled
        && k_min >= room
    {
        // Several inputs may feed one output, so it is no contradiction.
        let message =
            format!("a flow that meets no other is dropped at {room} (per-port) before it is marked at {k_min}");
        warnings.push(Finding::new("switch.ecn.k-min", message));
    }
    Ok(())
}
