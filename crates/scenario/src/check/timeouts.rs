//! Checks of timeouts against the round trip of an empty network: a shorter timeout causes spurious retransmissions.

use selvedge_sim::Network;
use selvedge_transport::RecoveryConfig;
use selvedge_transport::recovery::irn::{Rto, Timeouts};
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
        shortest(scenario).and_then(|(key, timeout)| finding(key, timeout, "what is not lost is sent again, too"));
    let queue_pairs = scenario.workload.verbs.0.iter().filter_map(|verbs| {
        let Setting::Value(timeout) = verbs.timeout else { return None };
        // Queue pairs round the timeout in the same way.
        let rounded = (0..31).map(|code| Duration::from_ns(4_096 << code)).find(|&rounded| rounded >= timeout)?;
        finding("workload.verbs.timeout", rounded, "queue pairs ask again for what is not lost, and fail")
    });
    senders.into_iter().chain(queue_pairs).collect()
}

/// Returns the key and the value of the shortest timeout.
fn shortest(scenario: &Scenario) -> Option<(&'static str, Duration)> {
    let transport = &scenario.transport;
    let given = |key, rto| if let Setting::Value(rto) = rto { Some((key, rto)) } else { None };
    if let Some(eqds) = &transport.eqds {
        return given("transport.eqds.rto", eqds.rto);
    }
    if let Some(ndp) = &transport.ndp {
        return given("transport.ndp.rto", ndp.rto);
    }
    if !transport.is_rdma() {
        return None;
    }
    match transport.recovery {
        RecoveryConfig::Irn(irn) if irn.timeouts == Timeouts::On && irn.rto == Rto::Static => {
            given("transport.recovery.irn.rto-low", irn.rto_low)
        }
        RecoveryConfig::Irn(_) => None,
        RecoveryConfig::GoBackN(go_back_n) => given("transport.recovery.go-back-n.rto-low", go_back_n.rto_low)
            .or_else(|| given("transport.recovery.go-back-n.rto", go_back_n.rto)),
        RecoveryConfig::Melo(melo) => given("transport.recovery.melo.rto", melo.rto),
    }
}
