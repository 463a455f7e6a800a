//! What a resolved scenario must not be.
//!
//! Each part checks its own values when it is built; here stands what concerns several parts.

mod arrivals;
mod eqds;
mod reach;
mod reordering;
mod timeouts;

use selvedge_sim::config::{BufferConfig, FairQueued, InputQueued, MOST_CLASSES, NicConfig, PfcConfig, Trimming};
use selvedge_sim::topology::Link;
use selvedge_sim::workload::WorkloadSummary;
use selvedge_sim::{Beside, ConfigError};
use selvedge_transport::congestion::fixed::FixedConfig;
use selvedge_transport::congestion::hpcc::MOST_SWITCHES;
use selvedge_transport::ndp::NdpConfig;
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{CongestionConfig, RecoveryConfig, Scheme, SettingError, Tuning};
use selvedge_units::{Bytes, Duration, Instant, Rate, Setting, Toggle};

use crate::network::Network;
use crate::resolve::xon_gap_of;
use crate::scenario::Scenario;

pub(crate) use arrivals::{check_arrivals, check_begin, check_repeats, check_window};

/// A finding about a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    pub(crate) key: String,
    pub(crate) message: String,
}

impl Finding {
    fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into() }
    }
}

/// Checks the resolved scenario of a series; returns what a person should know although it can run.
pub(crate) fn check(
    series: &str,
    scenario: &Scenario,
    network: &Network,
    workloads: &[WorkloadSummary],
) -> Result<Vec<Finding>, Finding> {
    let mut warnings = Vec::new();
    check_buffer(scenario, network)?;
    check_pfc(scenario, network, &mut warnings)?;
    check_balancing(scenario)?;
    check_netrt(scenario, &mut warnings)?;
    check_ecn(scenario, network, &mut warnings)?;
    check_transport(series, scenario, network, &mut warnings)?;
    check_verbs(scenario)?;
    check_times(scenario)?;
    warnings.extend(reach::check(scenario, network));
    warnings.extend(reordering::check(series, scenario, network));
    warnings.extend(timeouts::check(scenario, network));
    warnings.extend(acks_behind_data(scenario, workloads));
    Ok(warnings)
}

/// Acknowledgements that data of the other direction may keep waiting for ever.
fn acks_behind_data(scenario: &Scenario, workloads: &[WorkloadSummary]) -> Option<Finding> {
    let (nic, transport) = (&scenario.nic, &scenario.transport);
    let asked = workloads.iter().flat_map(|workload| workload.priorities.iter().copied());
    let data = asked.chain([nic.data_class]).max().unwrap_or_default();
    let acknowledges = transport.recovery.acknowledges();
    if !transport.is_rdma() || transport.eqds.is_some() || !acknowledges || nic.ack_class >= data {
        return None;
    }
    let message = format!(
        "acknowledgements (priority {}) wait behind data (priority {data}): where data fill a link both ways none arrives, \
         and timeouts send again what was not lost; give the priority of data, or a higher one",
        nic.ack_class
    );
    Some(Finding::new("nic.ack-class", message))
}

/// Frames of sizes that exist. Before the scenario is resolved: "auto" adds them up.
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
    if nic.qp_burst == 0 {
        return Err(Finding::new("nic.qp-burst", "a queue pair's turn is at least one packet; give 1 or more"));
    }
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

fn check_buffer(scenario: &Scenario, network: &Network) -> Result<(), Finding> {
    let nic = &scenario.nic;
    let frame = nic.payload(&scenario.transport) + nic.data_header(&scenario.transport);
    let room = match &scenario.switch.buffer {
        BufferConfig::InputQueued(buffer) => match least_room(buffer, network) {
            Some(room) => ("switch.buffer.input-queued.per-port", room),
            None => return Ok(()),
        },
        BufferConfig::SharedBuffer(buffer) => {
            for (key, alpha) in [
                ("switch.buffer.shared-buffer.egress-alpha", buffer.egress_alpha),
                ("switch.buffer.shared-buffer.ingress-alpha", buffer.ingress_alpha),
            ] {
                if !(alpha > 0.0 && alpha.is_finite()) {
                    return Err(Finding::new(key, format!("{alpha} leaves queues no room; give a number above 0")));
                }
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
    let data = scenario.switch.data_priorities(nic, scenario.beside.as_ref(), &[]);
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
    let key = |name: &str| format!("switch.buffer.fair-queued.{name}");
    if !(1..=65_536).contains(&fair.queues) {
        return Err(Finding::new(&key("queues"), format!("{} is out of range: give 1 to 65536", fair.queues)));
    }
    if fair.quantum.resolve(|| None).is_none_or(|quantum| quantum < Bytes::new(64)) {
        return Err(Finding::new(&key("quantum"), "a turn of less than 64B sends nothing; give more, or \"auto\""));
    }
    let frame = scenario.nic.payload(&scenario.transport) + scenario.nic.data_header(&scenario.transport);
    if let Setting::Value(room) = fair.per_flow
        && room < frame
    {
        let message = format!("{room} does not hold one frame of {frame}; give more, or \"off\"");
        return Err(Finding::new(&key("per-flow"), message));
    }
    if scenario.switch.pfc.enabled {
        let message =
            "fair queues (switch.buffer.fair-queued) do not pause; set false, or give switches another buffer";
        return Err(Finding::new("switch.pfc.enabled", message));
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
    Ok(())
}

/// The smallest buffer of any port, if they have limits.
fn least_room(buffer: &InputQueued, network: &Network) -> Option<Bytes> {
    buffer.per_port.resolve(|| network.own_buffers().flatten().min())
}

fn check_pfc(scenario: &Scenario, network: &Network, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let pfc = &scenario.switch.pfc;
    let wire = scenario.nic.with_longest_header(&scenario.transport, scenario.beside.as_ref());
    check_pauses(scenario, &wire, warnings)?;
    if !pfc.enabled {
        return Ok(());
    }
    let headrooms = network.links_to_switches().map(|link| pfc.headroom_on(link.rate, link.delay, &wire));
    // Without switches nobody pauses, and nobody needs headroom.
    let Some(largest) = headrooms.max() else { return Ok(()) };
    if largest.is_zero() {
        let message = "PFC without headroom drops what arrives after each pause: give some, or \"auto\"";
        return Err(Finding::new("switch.pfc.headroom", message));
    }
    check_thresholds(scenario, network, largest)?;
    warnings.extend(scarce_headroom(pfc, network, &wire));
    Ok(())
}

/// Which priorities are paused, and for how long.
fn check_pauses(scenario: &Scenario, wire: &NicConfig, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let pfc = &scenario.switch.pfc;
    if let Some(class) = pfc.classes.iter().find(|&&class| class > 7) {
        return Err(Finding::new("switch.pfc.classes", format!("{class} is not a traffic class: they are 0 to 7")));
    }
    let least = PfcConfig::quanta_beyond(PfcConfig::FRAME + scenario.nic.gap);
    if u64::from(pfc.quanta) < least {
        let message = format!(
            "{} quanta are too few: a pause is refreshed at half its time, which leaves room for pause frames alone; \
             give {least} to 65535",
            pfc.quanta
        );
        return Err(Finding::new("switch.pfc.quanta", message));
    }
    if !pfc.enabled {
        return Ok(());
    }
    if !pfc.classes.contains(&scenario.nic.data_class) {
        let class = scenario.nic.data_class;
        let message = format!("PFC is enabled, but class {class}, which carries the data, is not among its classes");
        warnings.push(Finding::new("switch.pfc.classes", message));
    }
    let enough = PfcConfig::quanta_beyond(wire.mtu + wire.header + wire.gap);
    if u64::from(pfc.quanta) < enough {
        let message = format!(
            "a pause of {} quanta ends before it is refreshed where a frame is on the wire just then: expect drops in \
             spite of PFC; give at least {enough}",
            pfc.quanta
        );
        warnings.push(Finding::new("switch.pfc.quanta", message));
    }
    Ok(())
}

/// X-OFF and X-ON in buffers of inputs, of which headroom takes `largest`.
fn check_thresholds(scenario: &Scenario, network: &Network, largest: Bytes) -> Result<(), Finding> {
    let (pfc, BufferConfig::InputQueued(buffer)) = (&scenario.switch.pfc, &scenario.switch.buffer) else {
        return Ok(());
    };
    let Some(room) = least_room(buffer, network) else { return Ok(()) };
    let xon_gap = pfc.xon_gap.resolve(|| None).unwrap_or_default();
    if largest >= room {
        let nothing = format!("headroom of {largest} leaves nothing of the {room} buffer");
        // Nobody gave the headroom: it is the buffer that is too small for it.
        if pfc.headroom == Setting::Auto {
            let message = format!("{nothing} to use before pausing; give more than {}", largest + xon_gap);
            return Err(Finding::new("switch.buffer.input-queued.per-port", message));
        }
        let message = format!(
            "{nothing} (switch.buffer.input-queued.per-port) to use before pausing; give less headroom or more buffer"
        );
        return Err(Finding::new("switch.pfc.headroom", message));
    }
    let threshold = room - largest;
    let Scenario { nic, transport, .. } = scenario;
    // Nobody gave the gap: it is the buffer that is too small for it.
    if xon_gap >= threshold && xon_gap == xon_gap_of(nic, transport) {
        let message = format!(
            "{room} leaves {threshold} below the headroom of {largest}, and X-ON is to be {xon_gap} below X-OFF \
             (switch.pfc.xon-gap); give more than {}",
            largest + xon_gap
        );
        return Err(Finding::new("switch.buffer.input-queued.per-port", message));
    }
    if xon_gap >= threshold {
        let message = format!("X-ON would be {xon_gap} below X-OFF, which is at {threshold}; give less");
        return Err(Finding::new("switch.pfc.xon-gap", message));
    }
    Ok(())
}

/// Headroom for less than what is under way when a pause is sent: of the link that lacks most.
fn scarce_headroom(pfc: &PfcConfig, network: &Network, wire: &NicConfig) -> Option<Finding> {
    let headroom = |link: &Link| pfc.headroom_on(link.rate, link.delay, wire);
    let under_way = |link: &Link| link.rate.amount_in(link.delay * 2);
    let missing = |link: &&Link| under_way(link).saturating_sub(headroom(link));
    let link = network.links_to_switches().max_by_key(missing).filter(|link| !missing(link).is_zero())?;
    let message = format!(
        "headroom of {} is less than the {} under way on the link {}: expect drops in spite of PFC; \"auto\" gives {}",
        headroom(link),
        under_way(link),
        network.graph().link_name(link),
        PfcConfig::default().headroom_on(link.rate, link.delay, wire),
    );
    Some(Finding::new("switch.pfc.headroom", message))
}

fn check_balancing(scenario: &Scenario) -> Result<(), Finding> {
    let wrong = |error: ConfigError| {
        let error = error.within("switch.balancing");
        Finding::new(&error.key, error.message)
    };
    scenario.switch.balancing.check().map_err(wrong)
}

fn check_netrt(scenario: &Scenario, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let netrt = &scenario.switch.netrt;
    let wrong = |error: SettingError| Finding::new(&format!("switch.netrt.{}", error.key), error.message);
    netrt.check().map_err(wrong)?;
    let transport = &scenario.transport;
    let stranger = transport.tcp.map(|_| "TCP").or(transport.native().map(|_| "EQDS"));
    if let Some(stranger) = stranger.filter(|_| netrt.enabled) {
        let message = format!("NetRT knows RDMA's packets only: {stranger}'s pass as if it were off");
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

/// Checks the buffers that several lossless priorities have beside each other; returns what a person should know.
pub(crate) fn check_accounts(
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
            let reserved = network.links_of_switches().map(of_switch).max().unwrap_or_default();
            if reserved >= shared.total {
                let total = shared.total;
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

/// Checks the priorities that data and answers have together, and those that flows ask for; returns what a person
/// should know.
pub(crate) fn check_priorities(
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
    let lossy = priorities.iter().find(|priority| !pfc.classes.contains(priority));
    // That TCP is dropped beside lossless RDMA is what such networks want.
    let guest = scenario.beside.as_ref().and_then(|beside| beside.class);
    let own = |priority: u8| priority == scenario.nic.data_class || Some(priority) == guest;
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

fn check_ecn(scenario: &Scenario, network: &Network, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let ecn = &scenario.switch.ecn;
    let transport = &scenario.transport;
    let congestion = transport.congestion_name();
    let hears = transport.hears_marks();
    if ecn.enabled != Toggle::On {
        if hears && transport.tcp.is_some() {
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

/// `[beside]` where the others speak TCP, too.
fn one_tcp(series: &str, class: &Option<u8>) -> Finding {
    let priority = class.map_or(String::new(), |class| format!(", at priority {class} (beside.class)"));
    let message = format!(
        "in series \"{series}\" all workloads speak TCP as transport.tcp says{priority}: beside.tcp counts for nothing; \
         leave the series out, or write under transport.tcp what is to count"
    );
    Finding::new("beside", message)
}

fn check_transport(
    series: &str,
    scenario: &Scenario,
    network: &Network,
    warnings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let transport = &scenario.transport;
    if let Some(Beside { tcp, class, .. }) = &scenario.beside {
        if let Some(class) = class.filter(|&class| class > 7) {
            let message = format!("{class} is not a priority: they are 0 to 7");
            return Err(Finding::new("beside.class", message));
        }
        check_tcp(scenario, tcp, "beside.tcp", warnings)?;
        if transport.tcp.is_some() {
            warnings.push(one_tcp(series, class));
        }
    }
    if let Some(eqds) = &transport.eqds {
        eqds::check(scenario, eqds, warnings)?;
    }
    if let Some(tcp) = &transport.tcp {
        return check_tcp(scenario, tcp, "transport.tcp", warnings);
    }
    if let Some(ndp) = &transport.ndp {
        return check_ndp(scenario, ndp, warnings);
    }
    if !transport.is_rdma() {
        return Ok(());
    }
    let (recovery, congestion) = (transport.recovery.name(), transport.congestion.name());
    let of = |role: &str, name: &str, error: selvedge_transport::SettingError| {
        Finding::new(&format!("transport.{role}.{name}.{}", error.key), error.message)
    };
    transport.recovery.check().map_err(|error| of("recovery", recovery, error))?;
    transport.congestion.check().map_err(|error| of("congestion", congestion, error))?;
    if let CongestionConfig::Fixed(FixedConfig { window: Setting::Off, rate: Setting::Off }) = transport.congestion {
        let message = "neither a window nor a rate is given, so that nothing is limited: give one, or \"auto\"";
        warnings.push(Finding::new("transport.congestion.fixed.window", message));
    }
    let needs = transport.congestion.needs();
    if needs.acks && !transport.recovery.acknowledges() {
        let message = format!("{congestion} lives by acknowledgements; set \"per-packet\" or \"auto\"");
        return Err(Finding::new(&format!("transport.recovery.{recovery}.acks"), message));
    }
    if needs.telemetry {
        check_telemetry(scenario, network, warnings)?;
    }
    if needs.losses && scenario.switch.pfc.enabled {
        let message =
            format!("{congestion} hears of congestion by losses alone, and PFC prevents them: it never slows down");
        warnings.push(Finding::new("switch.pfc.enabled", message));
    }
    Ok(())
}

fn check_verbs(scenario: &Scenario) -> Result<(), Finding> {
    if scenario.workload.verbs.is_empty() {
        return Ok(());
    }
    if scenario.switch.netrt.enabled {
        let message = "NetRT's switches do not know the packets of [workload.verbs]: set false, or leave that out";
        return Err(Finding::new("switch.netrt.enabled", message));
    }
    let mut beside = scenario.beside.iter().flat_map(|beside| &beside.workloads);
    if let Some(named) = beside.find(|name| name.split(['.', '[']).next() == Some("verbs")) {
        let message = format!("\"{named}\" is what RDMA applications do and cannot speak TCP: leave it out");
        return Err(Finding::new("beside.workloads", message));
    }
    let congestion = scenario.transport.congestion;
    if scenario.workload.verbs.0.iter().any(|verbs| verbs.operations.has_reads())
        && matches!(scenario.transport.recovery, RecoveryConfig::GoBackN(_))
        && !matches!(congestion, CongestionConfig::None(_))
    {
        let message = "standard queue pairs answer Reads without congestion control: leave Reads out of [workload.verbs], or give a series without, or one with \"irn\" or \"melo\"";
        return Err(Finding::new(&format!("transport.congestion.{}", congestion.name()), message));
    }
    let checked = scenario.transport.verbs(&scenario.nic, scenario.nic.data_class);
    checked.map(drop).map_err(|ConfigError { key, message, .. }| Finding { key, message })
}

fn check_ndp(scenario: &Scenario, ndp: &NdpConfig, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    ndp.check().map_err(|error| Finding::new(&format!("transport.ndp.{}", error.key), error.message))?;
    let BufferConfig::Trimming(trimming) = scenario.switch.buffer else {
        let message = "NDP needs switches that trim: write [switch.buffer.trimming], as the series \"ndp\" does";
        return Err(Finding::new("switch.buffer", message));
    };
    warnings.extend(eqds::control_behind_data(scenario, &trimming));
    Ok(())
}

fn check_telemetry(scenario: &Scenario, network: &Network, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let congestion = scenario.transport.congestion;
    let (switches, most) = (network.longest().links - 1, MOST_SWITCHES as u32);
    if switches > most {
        let message = format!("telemetry of {switches} switches on the longest path has no room; it has for {most}");
        return Err(Finding::new(&format!("transport.congestion.{}", congestion.name()), message));
    }
    let takes = Bytes::new(2 + 8 * u64::from(switches));
    if congestion.extra_header() < takes {
        let message = format!(
            "telemetry of {switches} switches takes {takes} on the wire, and {} are counted",
            congestion.extra_header()
        );
        warnings.push(Finding::new(&format!("transport.congestion.{}.header", congestion.name()), message));
    }
    Ok(())
}

fn check_tcp(scenario: &Scenario, tcp: &TcpConfig, place: &str, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let of = |error: selvedge_transport::SettingError| Finding::new(&format!("{place}.{}", error.key), error.message);
    tcp.check().map_err(of)?;
    if let Setting::Value(mss) = tcp.mss
        && mss > scenario.nic.mtu
    {
        let message = format!("{mss} is more than a packet carries, {}; give less, or raise nic.mtu", scenario.nic.mtu);
        return Err(Finding::new(&format!("{place}.mss"), message));
    }
    if let (Setting::Value(delay), Setting::Value(rto)) = (tcp.delayed_ack, tcp.min_rto)
        && delay >= rto
    {
        let message = format!(
            "an acknowledgement may wait {delay}, as long as the shortest timeout, {rto}: \
                               expect timeouts for nothing; give less, or \"off\""
        );
        warnings.push(Finding::new(&format!("{place}.delayed-ack"), message));
    }
    Ok(())
}

fn check_times(scenario: &Scenario) -> Result<(), Finding> {
    if scenario.stop.time == Some(Duration::ZERO) {
        return Err(Finding::new("stop.time", "a run of no time shows nothing; give more, as in \"10ms\""));
    }
    if scenario.stop.time.is_some_and(|time| time > Instant::HORIZON.since(Instant::ZERO)) {
        return Err(Finding::new("stop.time", "simulated time ends after 53 days; give less, or leave it out"));
    }
    if scenario.stop.flows == Some(0) {
        return Err(Finding::new("stop.flows", "a run of no flows shows nothing; give at least 1"));
    }
    if let Setting::Value(interval) = scenario.sample
        && interval < SHORTEST_SAMPLE
    {
        let message = format!(
            "{interval} is shorter than any packet: give at least {SHORTEST_SAMPLE}, as in \"50us\", or \"off\""
        );
        return Err(Finding::new("sample", message));
    }
    Ok(())
}

/// Timeouts follow from it, and several in a row are times that can be counted.
const LONGEST_QUEUEING: Duration = Duration::from_ps(Duration::MAX.as_ps() / 64);
/// Nothing changes within less.
const SHORTEST_SAMPLE: Duration = Duration::from_ns(10);
const SMALLEST_MTU: Bytes = Bytes::new(64);
const LARGEST_MTU: Bytes = Bytes::new(9_000);
