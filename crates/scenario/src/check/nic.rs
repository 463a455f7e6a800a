//! Checks of frames and classes of NICs.

use selvedge_units::{Bytes, Duration, Skew};

use super::Finding;
use crate::scenario::Scenario;

/// Checks that frames have possible sizes. The check comes before the scenario is resolved, because "auto" adds the
/// sizes up.
pub(crate) fn check_nic(scenario: &Scenario) -> Result<(), Finding> {
    let nic = &scenario.nic;
    if !(SMALLEST_MTU..=LARGEST_MTU).contains(&nic.mtu) {
        let message = format!("{} is out of range: a packet carries {SMALLEST_MTU} to {LARGEST_MTU}", nic.mtu);
        return Err(Finding::new("nic.mtu", message));
    }
    for (key, value, most) in [
        ("nic.header", nic.header, Bytes::new(1_000)),
        ("nic.ack-frame", nic.ack_frame, Bytes::new(1_000)),
        ("nic.cnp-frame", nic.cnp_frame, Bytes::new(1_000)),
        ("nic.gap", nic.gap, Bytes::new(1_000)),
    ] {
        if value > most {
            return Err(Finding::new(key, format!("{value} is out of range: at most {most}")));
        }
    }
    if nic.clock_skew > LARGEST_SKEW {
        let message = format!(
            "{} is out of range: at most {LARGEST_SKEW}; IEEE 802.3 allows clocks to be off by {USUAL_SKEW}",
            nic.clock_skew
        );
        return Err(Finding::new("nic.clock-skew", message));
    }
    if nic.jitter > LARGEST_JITTER {
        let message = format!(
            "{} is out of range: at most {LARGEST_JITTER}; NICs take some tens of nanoseconds more or less to begin",
            nic.jitter
        );
        return Err(Finding::new("nic.jitter", message));
    }
    if nic.qp_burst == 0 {
        return Err(Finding::new("nic.qp-burst", "a queue pair's turn is at least one packet; give 1 or more"));
    }
    check_polling(scenario)?;
    if nic.ack_frame.is_zero() {
        return Err(Finding::new("nic.ack-frame", "an acknowledgement takes some bytes; 66B with RoCE's headers"));
    }
    if nic.cnp_frame.is_zero() {
        return Err(Finding::new(
            "nic.cnp-frame",
            "a congestion notification takes some bytes; 78B with RoCE's headers",
        ));
    }
    let classes =
        [("nic.data-class", nic.data_class), ("nic.ack-class", nic.ack_class), ("nic.cnp-class", nic.cnp_class)];
    for (key, class) in classes {
        if class > 7 {
            return Err(Finding::new(key, format!("{class} is not a traffic class: they are 0 to 7")));
        }
    }
    Ok(())
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
    let is_plain = transport.is_rdma() && transport.eqds.is_none();
    if !is_plain || scenario.beside.is_some() || !scenario.workload.verbs.is_empty() {
        return refuse(
            "queue pairs with a flow each poll, not TCP, NDP, EQDS or those of [workload.verbs]: give 0ps, or leave \
             these out"
                .into(),
        );
    }
    Ok(())
}

const SMALLEST_MTU: Bytes = Bytes::new(64);

const LARGEST_MTU: Bytes = Bytes::new(9_000);

const LARGEST_SKEW: Skew = Skew::from_ppm(10_000);

/// Largest usual clock skew, of IEEE 802.3 for 10 Gb/s and more.
const USUAL_SKEW: Skew = Skew::from_ppm(100);

const LARGEST_JITTER: Duration = Duration::from_ms(1);

const LARGEST_POLL: Duration = Duration::from_ms(1);
