//! Checks of NetRT in ToRs.

use selvedge_sim::config::{BufferConfig, InputQueued};
use selvedge_transport::SettingError;
use selvedge_units::Setting;

use super::Finding;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let netrt = &scenario.switch.netrt;
    let wrong = |error: SettingError| Finding::new(&format!("switch.netrt.{}", error.key), error.message);
    netrt.check().map_err(wrong)?;
    let transport = &scenario.transport;
    if let Some(messages) = transport.messages().filter(|_| netrt.enabled) {
        let message = format!(
            "NetRT's switches would take packets of \"{}\" for those of queue pairs, and ask for each that is overtaken; \
             give false",
            messages.name()
        );
        return Err(Finding::new("switch.netrt.enabled", message));
    }
    let stranger = transport.tcp().map(|_| "TCP").or(transport.native().map(|_| "EQDS"));
    if let Some(stranger) = stranger.filter(|_| netrt.enabled) {
        let message = format!("NetRT knows RDMA's packets only: {stranger}'s pass as if it were off");
        warnings.push(Finding::new("switch.netrt.enabled", message));
    }
    if netrt.enabled && matches!(scenario.switch.buffer, BufferConfig::Trimming(_) | BufferConfig::FairQueued(_)) {
        let message = "packets that make place for others after they were admitted (switch.buffer.trimming, \
                       fair-queued) are left to NICs: NetRT asks for those that found no place";
        warnings.push(Finding::new("switch.netrt.enabled", message));
    }
    if netrt.enabled
        && let BufferConfig::InputQueued(InputQueued { per_port: Setting::Value(room), .. }) = scenario.switch.buffer
    {
        let wanted = [("pool", netrt.pool), ("buffer", netrt.buffer)];
        warnings.extend(wanted.into_iter().filter_map(|(key, setting)| match setting {
            Setting::Value(bytes) if bytes > room => {
                let message = format!(
                    "a port's buffer has {room} for regular traffic, duplicates and held packets together: that much of \
                     {bytes} at most has an effect; raise switch.buffer.input-queued.per-port for more"
                );
                Some(Finding::new(&format!("switch.netrt.{key}"), message))
            }
            _ => None,
        }));
    }
    Ok(())
}
