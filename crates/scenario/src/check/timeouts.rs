//! Checks of timeouts against the round trip of an empty network: a shorter timeout causes spurious retransmissions.

use selvedge_sim::Network;
use selvedge_sim::config::TransportConfig;
use selvedge_transport::Scheme;
use selvedge_transport::endpoint::EndpointSettings;
use selvedge_units::{Duration, Setting};

use super::Finding;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, network: &Network) -> Vec<Finding> {
    let Scenario { nic, transport, .. } = scenario;
    let frame = nic.payload(transport) + nic.data_header(transport);
    let round_trip = network.longest_rtt(frame + nic.gap, nic.ack_frame(transport) + nic.gap);
    let finding = |key: &str, timeout: Duration, what: &str| {
        let message = format!(
            "{timeout} is less than the longest round trip of the empty network, {round_trip}: {what}; give more"
        );
        (timeout < round_trip).then(|| Finding::new(key, message))
    };
    let senders =
        shortest(transport).and_then(|(key, timeout)| finding(&key, timeout, "what is not lost is sent again, too"));
    let queue_pairs = scenario.workload.verbs.0.iter().filter_map(|verbs| {
        let Setting::Value(timeout) = verbs.timeout else { return None };
        // Queue pairs round the timeout in the same way.
        let rounded = (0..31).map(|code| Duration::from_ns(4_096 << code)).find(|&rounded| rounded >= timeout)?;
        finding("workload.verbs.timeout", rounded, "queue pairs ask again for what is not lost, and fail")
    });
    senders.into_iter().chain(queue_pairs).collect()
}

/// Returns the key and the value of the shortest timeout.
fn shortest(transport: &TransportConfig) -> Option<(String, Duration)> {
    let within = |table: &str, (key, timeout): (&str, Duration)| (format!("transport.{table}.{key}"), timeout);
    if let Some(eqds) = transport.tunnels() {
        return eqds.rto.resolve(|| None).map(|rto| within("eqds", ("rto", rto)));
    }
    if let Some(messages) = transport.messages() {
        return messages.shortest_timeout().map(|timeout| within(messages.name(), timeout));
    }
    let recovery = transport.recovery()?;
    recovery.shortest_timeout().map(|timeout| within(&format!("recovery.{}", recovery.name()), timeout))
}
