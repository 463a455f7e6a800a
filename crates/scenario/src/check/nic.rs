//! Checks of NICs.

use selvedge_sim::ConfigError;
use selvedge_sim::config::TransportConfig;
use selvedge_units::Duration;

use super::Finding;
use crate::scenario::Scenario;

/// Checks values of NICs. The check comes before the scenario is resolved, because "auto" adds sizes up.
pub(crate) fn check_nic(scenario: &Scenario) -> Result<(), Finding> {
    let ConfigError { key, message, .. } = match scenario.nic.check() {
        Err(error) => error.within("nic"),
        Ok(()) => return check_polling(scenario),
    };
    Err(Finding { key, message })
}

/// Checks queue pairs that poll: no other stack may send beside them, and they have no turns.
fn check_polling(scenario: &Scenario) -> Result<(), Finding> {
    let (nic, transport) = (&scenario.nic, &scenario.transport);
    if nic.mac_poll.is_zero() {
        return Ok(());
    }
    let refuse = |message: String| Err(Finding::new("nic.mac-poll", message));
    if nic.mac_poll > LARGEST_POLL {
        return refuse(format!("{} is out of range: at most {LARGEST_POLL}; 0ps for turns instead", nic.mac_poll));
    }
    if nic.qp_burst != 1 {
        return refuse("queue pairs that poll have no turns: give 0ps, or leave nic.qp-burst out".into());
    }
    let is_plain = matches!(transport, TransportConfig::Rdma(_));
    if !is_plain || scenario.beside.is_some() || !scenario.workload.verbs.is_empty() {
        return refuse(
            "queue pairs with a flow each poll, not other transports, tunnels or those of [workload.verbs]: give 0ps, or leave \
             these out"
                .into(),
        );
    }
    Ok(())
}

const LARGEST_POLL: Duration = Duration::from_ms(1);
