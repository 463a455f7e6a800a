//! Checks of RDMA applications.

use selvedge_sim::ConfigError;
use selvedge_transport::{CongestionConfig, Scheme};

use super::Finding;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario) -> Result<(), Finding> {
    if scenario.workload.verbs.is_empty() {
        return Ok(());
    }
    let mut beside = scenario.beside.iter().flat_map(|beside| &beside.workloads);
    if let Some(named) = beside.find(|name| name.split(['.', '[']).next() == Some("verbs")) {
        let message = format!("\"{named}\" is what RDMA applications do and cannot speak TCP: leave it out");
        return Err(Finding::new("beside.workloads", message));
    }
    let rdma = scenario.transport.rdma();
    let has_standard = rdma.is_some_and(|rdma| rdma.recovery.wire_id().is_none());
    if scenario.workload.verbs.0.iter().any(|verbs| verbs.operations.has_reads())
        && has_standard
        && let Some(congestion) = rdma.map(|rdma| rdma.congestion)
        && !matches!(congestion, CongestionConfig::None(_))
    {
        let message = "standard queue pairs answer Reads without congestion control: leave Reads out of [workload.verbs], or give a series without, or one with \"irn\" or \"melo\"";
        return Err(Finding::new(&format!("transport.congestion.{}", congestion.name()), message));
    }
    let checked = scenario.transport.verbs(&scenario.nic, scenario.nic.data_class);
    checked.map(drop).map_err(|ConfigError { key, message, .. }| Finding { key, message })
}
