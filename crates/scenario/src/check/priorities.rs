//! Checks of the priorities of flows, answers and headers together.

use selvedge_sim::config::{BufferConfig, MOST_CLASSES, Trimming};
use selvedge_sim::workload::WorkloadSummary;
use selvedge_transport::Scheme;

use super::Finding;
use crate::scenario::Scenario;

/// Checks the priorities of data and answers together, and those that flows ask for; returns warnings.
pub(super) fn check_priorities(
    scenario: &Scenario,
    priorities: &[u8],
    workloads: &[WorkloadSummary],
) -> Result<Option<Finding>, Finding> {
    if let BufferConfig::Trimming(trimming) = &scenario.switch.buffer {
        check_headers_above(scenario, trimming, workloads)?;
    }
    let asked = workloads.iter().flat_map(|workload| workload.priorities.iter().copied());
    if priorities.len() > MOST_CLASSES {
        let message = format!(
            "flows and NICs use {} priorities together, and at most {MOST_CLASSES} can be; let some flows share one, or set \
             priorities = \"nic\"",
            priorities.len()
        );
        return Err(Finding::new("workload.flows", message));
    }
    let netrt = &scenario.switch.netrt;
    if netrt.enabled
        && let Some(priority) = asked.chain([scenario.nic.data_class]).find(|&class| class == netrt.priority)
    {
        let message = format!(
            "data has priority {priority}, too, and switches know NetRT's duplicates by it: they would drop what NICs send \
             again; give one that no data has, 0 to 7"
        );
        return Err(Finding::new("switch.netrt.priority", message));
    }
    let pfc = &scenario.switch.pfc;
    // Networks with lossless RDMA are meant to drop TCP packets.
    let guest = scenario.beside.as_ref().and_then(|beside| beside.class);
    let own = |priority: u8| priority == scenario.nic.data_class || Some(priority) == guest;
    // CNPs in a class above all data hardly ever wait, and DCQCN tolerates their loss; commercial networks configure
    // them like this.
    let (cnps, acks) = (scenario.nic.cnp_class, scenario.nic.ack_class);
    let data = scenario.switch.data_priorities(&scenario.nic, &scenario.transport, scenario.beside.as_ref(), workloads);
    let cnps = (cnps != acks && data.iter().all(|&data| data < cnps)).then_some(cnps);
    let lossy =
        priorities.iter().filter(|&&priority| Some(priority) != cnps).find(|priority| !pfc.classes.contains(priority));
    let lossy = lossy.filter(|&&priority| pfc.enabled && !own(priority));
    Ok(lossy.map(|priority| {
        let message =
            format!("PFC is enabled, but priority {priority}, which some packets have, is not among its classes");
        Finding::new("switch.pfc.classes", message)
    }))
}

/// Refuses data that would travel with the headers of trimmed packets, or before them.
fn check_headers_above(scenario: &Scenario, trimming: &Trimming, workloads: &[WorkloadSummary]) -> Result<(), Finding> {
    let class = trimming.header_class;
    let refuse = |whose: String, priority: u8, other: &str| {
        let give = if priority < 7 {
            format!("give {} here and to nic.ack-class, or {other}", priority + 1)
        } else {
            other.to_owned()
        };
        let message = format!(
            "headers of trimmed packets have priority {class}, and {whose} has priority {priority}: headers must be above all \
             data; {give}"
        );
        Err(Finding::new("switch.buffer.trimming.header-class", message))
    };
    for workload in workloads {
        if let Some(&priority) = workload.priorities.last().filter(|&&priority| priority >= class) {
            let whose = format!("a flow of workload.{}", workload.key);
            return refuse(whose, priority, &format!("set workload.{}.priorities = \"nic\"", workload.key));
        }
    }
    match scenario.beside.as_ref().and_then(|beside| beside.class).filter(|&priority| priority >= class) {
        Some(priority) => refuse("TCP (beside.class)".to_owned(), priority, "give TCP a lower one"),
        None => Ok(()),
    }
}

/// Returns a finding about acknowledgements that data of the other direction may delay without limit.
pub(super) fn acks_behind_data(scenario: &Scenario, workloads: &[WorkloadSummary]) -> Option<Finding> {
    let (nic, transport) = (&scenario.nic, &scenario.transport);
    let asked = workloads.iter().flat_map(|workload| workload.priorities.iter().copied());
    let data = asked.chain([nic.data_class]).max().unwrap_or_default();
    let acknowledges = transport.recovery().is_some_and(Scheme::acknowledges);
    if transport.tunnels().is_some() || !acknowledges || nic.ack_class >= data {
        return None;
    }
    let message = format!(
        "acknowledgements (priority {}) wait behind data (priority {data}): where data fill a link both ways none arrives, \
         and timeouts send again what was not lost; give the priority of data, or a higher one",
        nic.ack_class
    );
    Some(Finding::new("nic.ack-class", message))
}
