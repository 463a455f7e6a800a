//! Buffers of switches.

use selvedge_sim::Network;
use selvedge_sim::config::{Arbitration, BufferConfig, FairQueued, FlowQueues, InputQueued, Trimming};
use selvedge_sim::topology::Link;
use selvedge_units::{Bytes, Duration, Setting};

use super::Finding;
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, network: &Network) -> Result<(), Finding> {
    let nic = &scenario.nic;
    let frame = nic.payload(&scenario.transport) + nic.data_header(&scenario.transport);
    let room = match &scenario.switch.buffer {
        BufferConfig::InputQueued(buffer) => {
            check_crossbar(scenario, buffer)?;
            match least_room(buffer, network) {
                Some(room) => ("switch.buffer.input-queued.per-port", room),
                None => return Ok(()),
            }
        }
        BufferConfig::SharedBuffer(buffer) => {
            for (key, alpha) in [
                ("switch.buffer.shared-buffer.egress-alpha", buffer.egress_alpha),
                ("switch.buffer.shared-buffer.ingress-alpha", buffer.ingress_alpha),
            ] {
                if !(alpha > 0.0 && alpha.is_finite()) {
                    return Err(Finding::new(key, format!("{alpha} leaves queues no room; give a number above 0")));
                }
            }
            if let Setting::Value(shared) = buffer.shared
                && shared < frame
            {
                let message = format!("{shared} does not hold one frame of {frame}; give more, or \"off\"");
                return Err(Finding::new("switch.buffer.shared-buffer.shared", message));
            }
            ("switch.buffer.shared-buffer.total", buffer.total)
        }
        BufferConfig::Trimming(trimming) => {
            check_trimming(scenario, trimming)?;
            ("switch.buffer.trimming.packets", frame * u64::from(trimming.packets))
        }
        BufferConfig::FairQueued(fair) => {
            check_fair(scenario, fair)?;
            match fair.per_port.resolve(|| None) {
                Some(room) => ("switch.buffer.fair-queued.per-port", room),
                None => return Ok(()),
            }
        }
    };
    if room.1 < frame {
        return Err(Finding::new(room.0, format!("{} does not hold one frame of {frame}; give more", room.1)));
    }
    let data = scenario.switch.data_priorities(nic, &scenario.transport, scenario.beside.as_ref(), &[]);
    if network.longest_queueing(&scenario.switch.buffer, frame, nic.gap, &data) > LONGEST_QUEUEING {
        let message = format!(
            "a switch full of packets for its slowest link takes more than {} days to send them: give less, or faster \
             links (the slowest has {})",
            LONGEST_QUEUEING.as_secs_f64() as u64 / 86_400,
            network.slowest_link()
        );
        return Err(Finding::new(room.0, message));
    }
    Ok(())
}

fn check_fair(scenario: &Scenario, fair: &FairQueued) -> Result<(), Finding> {
    let flows = FlowQueues { per_flow: fair.per_flow, queues: fair.queues, quantum: fair.quantum };
    check_flow_queues(scenario, &flows, "switch.buffer.fair-queued")?;
    if scenario.switch.pfc.enabled {
        let message =
            "fair queues (switch.buffer.fair-queued) do not pause; set false, or give switches another buffer";
        return Err(Finding::new("switch.pfc.enabled", message));
    }
    Ok(())
}

/// Checks queues by flow, whose keys stand in `table`.
fn check_flow_queues(scenario: &Scenario, flows: &FlowQueues, table: &str) -> Result<(), Finding> {
    let key = |name: &str| format!("{table}.{name}");
    if !(1..=65_536).contains(&flows.queues) {
        return Err(Finding::new(&key("queues"), format!("{} is out of range: give 1 to 65536", flows.queues)));
    }
    if flows.quantum.resolve(|| None).is_none_or(|quantum| quantum < Bytes::new(64)) {
        return Err(Finding::new(&key("quantum"), "a turn of less than 64B sends nothing; give more, or \"auto\""));
    }
    let frame = scenario.nic.payload(&scenario.transport) + scenario.nic.data_header(&scenario.transport);
    if let Setting::Value(room) = flows.per_flow
        && room < frame
    {
        let message = format!("{room} does not hold one frame of {frame}; give more, or \"off\"");
        return Err(Finding::new(&key("per-flow"), message));
    }
    Ok(())
}

/// Checks the weights of priorities that share outputs.
pub(super) fn check_weights(scenario: &Scenario) -> Result<(), Finding> {
    let weights = &scenario.switch.weights;
    let Some(highest) = (0..8u8).rev().find(|&priority| weights[usize::from(priority)] > 0) else { return Ok(()) };
    let refused = |message: String| Err(Finding::new("switch.weights", message));
    match &scenario.switch.buffer {
        BufferConfig::InputQueued(own) if own.crossbar().is_some() => refused(
            "a crossbar (switch.buffer.input-queued.crossbar-speed-up) serves priorities strictly; give no weights, or \
             switch it \"off\""
                .to_owned(),
        ),
        BufferConfig::Trimming(trimming) if highest >= trimming.header_class => refused(format!(
            "priority {highest} has a weight, and headers of trimmed packets have priority {}, which takes turns with all \
             data below it (switch.buffer.trimming.headers-per-data); give weights to lower ones only",
            trimming.header_class
        )),
        _ => Ok(()),
    }
}

/// Returns a warning about weights of which at most one concerns any packet.
pub(super) fn idle_weights(scenario: &Scenario, priorities: &[u8]) -> Option<Finding> {
    let weights = &scenario.switch.weights;
    let shared = priorities.iter().filter(|&&priority| weights[usize::from(priority)] > 0).count();
    let message = "fewer than two of the priorities in use have a weight, so that nothing is shared by weight: give those of \
                   data, or leave them out";
    (shared < 2 && weights.iter().any(|&weight| weight > 0)).then(|| Finding::new("switch.weights", message))
}

/// Checks the buffer of a crossbar, which needs queues by input, and inputs that wait for outputs alone.
fn check_crossbar(scenario: &Scenario, buffer: &InputQueued) -> Result<(), Finding> {
    let Setting::Value(speed_up) = buffer.crossbar_speed_up else { return Ok(()) };
    let refused = |message: &str| Err(Finding::new("switch.buffer.input-queued.crossbar-speed-up", message));
    if !(1.0..=64.0).contains(&speed_up) {
        return refused(&format!("{speed_up} is out of range: 1 to 64 times the rate of an input's link, or \"off\""));
    }
    if buffer.arbitration != Arbitration::RoundRobin {
        return refused(
            "a crossbar needs queues by input: set switch.buffer.input-queued.arbitration to \"round-robin\"",
        );
    }
    if scenario.switch.netrt.enabled {
        return refused("ToRs of NetRT have no crossbar; give \"off\", or set switch.netrt.enabled to false");
    }
    Ok(())
}

fn check_trimming(scenario: &Scenario, trimming: &Trimming) -> Result<(), Finding> {
    let key = |name: &str| format!("switch.buffer.trimming.{name}");
    if trimming.packets == 0 {
        return Err(Finding::new(&key("packets"), "a queue of nothing trims everything; give at least 1 packet"));
    }
    if let Setting::Value(room) = trimming.headers
        && room < Trimming::HEADER
    {
        let message = format!("{room} does not hold one header of {}; give more", Trimming::HEADER);
        return Err(Finding::new(&key("headers"), message));
    }
    if trimming.headers_per_data == Setting::Value(0) {
        return Err(Finding::new(&key("headers-per-data"), "headers would never be sent; give 1 or more, or \"off\""));
    }
    let (class, data) = (trimming.header_class, scenario.nic.data_class);
    if class > 7 || class <= data {
        let message = format!("{class} is not above the class of data (nic.data-class), {data}, and at most 7");
        return Err(Finding::new(&key("header-class"), message));
    }
    if scenario.switch.pfc.enabled {
        let message =
            "switches that trim (switch.buffer.trimming) do not pause; set false, or give them another buffer";
        return Err(Finding::new("switch.pfc.enabled", message));
    }
    match &trimming.flow_queues {
        Some(flows) => check_flow_queues(scenario, flows, &key("flow-queues")),
        None => Ok(()),
    }
}

/// Returns the smallest buffer of any port, or `None` if buffers have no limit.
pub(super) fn least_room(buffer: &InputQueued, network: &Network) -> Option<Bytes> {
    buffer.per_port.resolve(|| network.own_buffers().flatten().min())
}

/// Checks the buffers that several lossless priorities have beside each other; returns warnings.
pub(super) fn check_accounts(
    scenario: &Scenario,
    network: &Network,
    priorities: &[u8],
) -> Result<Option<Finding>, Finding> {
    let pfc = &scenario.switch.pfc;
    let lossless = priorities.iter().filter(|&priority| pfc.enabled && pfc.classes.contains(priority)).count() as u64;
    match &scenario.switch.buffer {
        BufferConfig::SharedBuffer(shared) => {
            let wire = scenario.nic.with_longest_header(&scenario.transport, scenario.beside.as_ref());
            let headroom = |link: &&Link| pfc.headroom_on(link.rate, link.delay, &wire);
            let of_switch = |links: Vec<&Link>| links.iter().map(headroom).sum::<Bytes>() * lossless;
            let needed = network.links_of_switches().map(of_switch).max().unwrap_or_default();
            let (total, reserved) = (shared.total, shared.reserved(needed));
            if let Setting::Value(pool) = shared.headroom_pool
                && lossless > 0
            {
                let largest = network.links_to_switches().map(|link| headroom(&link)).max().unwrap_or_default();
                return check_headroom_pool(pool, total, largest);
            }
            if reserved >= total {
                let all = format!(
                    "headroom of all ports, for each lossless priority in use ({lossless}), takes {reserved} of a switch, \
                     which is all of its {total}"
                );
                if pfc.headroom == Setting::Auto {
                    return Err(Finding::new("switch.buffer.shared-buffer.total", format!("{all}; give more")));
                }
                let message = format!("{all} (switch.buffer.shared-buffer.total); give less headroom or more buffer");
                return Err(Finding::new("switch.pfc.headroom", message));
            }
            Ok(None)
        }
        BufferConfig::InputQueued(_) if lossless > 1 => {
            let message = format!(
                "{lossless} lossless priorities are in use, and each has per-port of its own at every input; without PFC all \
                 share it"
            );
            Ok(Some(Finding::new("switch.buffer.input-queued.per-port", message)))
        }
        BufferConfig::InputQueued(_) | BufferConfig::Trimming(_) | BufferConfig::FairQueued(_) => Ok(None),
    }
}

/// Checks a pool of headroom in a buffer of `total`, where one input has as much as `largest`.
fn check_headroom_pool(pool: Bytes, total: Bytes, largest: Bytes) -> Result<Option<Finding>, Finding> {
    let key = "switch.buffer.shared-buffer.headroom-pool";
    if pool >= total {
        let message = format!("{pool} of headroom leaves nothing of the {total} buffer to share; give less");
        return Err(Finding::new(key, message));
    }
    let message = format!(
        "all inputs together have {pool} of headroom, and one of them may need {largest}: expect drops in spite of PFC; \
         give more, or \"off\""
    );
    Ok((pool < largest).then(|| Finding::new(key, message)))
}

/// Longest queueing delay. Timeouts follow from it, and several of them in a row must be countable.
const LONGEST_QUEUEING: Duration = Duration::from_ps(Duration::MAX.as_ps() / 64);
