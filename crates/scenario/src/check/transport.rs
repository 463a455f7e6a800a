//! Checks of transports and their congestion controls.

use selvedge_sim::Beside;
use selvedge_sim::Network;
use selvedge_sim::config::{BufferConfig, RdmaConfig};
use selvedge_transport::congestion::fixed::FixedConfig;
use selvedge_transport::congestion::hpcc::MOST_SWITCHES;
use selvedge_transport::endpoint::{EndpointConfig, EndpointSettings};
use selvedge_transport::tcp::TcpConfig;
use selvedge_transport::{CongestionConfig, Scheme, SettingError, Tuning};
use selvedge_units::{Bytes, Duration, Rate, Setting};

use super::Finding;
use super::eqds::{self, control_behind_data, pulled_beyond};
use crate::scenario::Scenario;

pub(super) fn check(scenario: &Scenario, network: &Network, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let transport = &scenario.transport;
    check_beside(scenario, warnings)?;
    if let Some(tunnels) = transport.tunnels() {
        eqds::check(scenario, tunnels, network, warnings)?;
    }
    if let Some(tcp) = transport.tcp() {
        return check_tcp(scenario, tcp, "transport.tcp", warnings);
    }
    if let Some(messages) = transport.messages() {
        return check_messages(scenario, messages, network, warnings);
    }
    transport.rdma().map_or(Ok(()), |rdma| check_rdma(scenario, rdma, network, warnings))
}

/// Checks `[beside]`: TCP that shares the network.
fn check_beside(scenario: &Scenario, warnings: &mut Vec<Finding>) -> Result<(), Finding> {
    let Some(Beside { tcp, class, .. }) = &scenario.beside else { return Ok(()) };
    if let Some(class) = class.filter(|&class| class > 7) {
        let message = format!("{class} is not a priority: they are 0 to 7");
        return Err(Finding::new("beside.class", message));
    }
    check_tcp(scenario, tcp, "beside.tcp", warnings)
}

/// Checks a loss recovery with a congestion control.
fn check_rdma(
    scenario: &Scenario,
    RdmaConfig { recovery, congestion }: &RdmaConfig,
    network: &Network,
    warnings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let of = |role: &str, name: &str, error: SettingError| {
        Finding::new(&format!("transport.{role}.{name}.{}", error.key), error.message)
    };
    recovery.check().map_err(|error| of("recovery", recovery.name(), error))?;
    congestion.check().map_err(|error| of("congestion", congestion.name(), error))?;
    if let CongestionConfig::Fixed(FixedConfig { window: Setting::Off, rate: Setting::Off }) = congestion {
        let message = "neither a window nor a rate is given, so that nothing is limited: give one, or \"auto\"";
        warnings.push(Finding::new("transport.congestion.fixed.window", message));
    }
    warnings.extend(always_above(scenario, congestion, network));
    let needs = congestion.needs();
    let name = congestion.name();
    if needs.acks && !recovery.acknowledges() {
        let message = format!("{name} lives by acknowledgements; set \"per-packet\" or \"auto\"");
        return Err(Finding::new(&format!("transport.recovery.{}.acks", recovery.name()), message));
    }
    if needs.telemetry {
        check_telemetry(congestion, network, warnings)?;
    }
    if needs.losses && scenario.switch.pfc.enabled {
        let message = format!("{name} hears of congestion by losses alone, and PFC prevents them: it never slows down");
        warnings.push(Finding::new("switch.pfc.enabled", message));
    }
    Ok(())
}

/// Returns a finding if TIMELY's T_high is below the round trip of an empty path: above T_high rates only decrease.
fn always_above(scenario: &Scenario, congestion: &CongestionConfig, network: &Network) -> Option<Finding> {
    let Scenario { nic, transport, .. } = scenario;
    let CongestionConfig::Timely(timely) = congestion else { return None };
    let frame = nic.payload(transport) + nic.data_header(transport) + nic.gap;
    let round_trip = network.longest_rtt(frame, nic.ack_frame(transport) + nic.gap);
    let message = format!(
        "{} is less than the longest round trip of the empty network, {round_trip}: flows there only slow down; give \
         more, and t-low beside it",
        timely.t_high
    );
    (timely.t_high < round_trip).then(|| Finding::new("transport.congestion.timely.t-high", message))
}

/// Checks a transport of messages by what it says of itself.
fn check_messages(
    scenario: &Scenario,
    messages: &EndpointConfig,
    network: &Network,
    warnings: &mut Vec<Finding>,
) -> Result<(), Finding> {
    let name = messages.name();
    let of = |key: &str, message: String| Finding::new(&format!("transport.{name}.{key}"), message);
    messages.check().map_err(|error| of(error.key, error.message))?;
    check_own_priorities(scenario, messages)?;
    if !messages.needs_trimming() {
        return Ok(());
    }
    let BufferConfig::Trimming(trimming) = scenario.switch.buffer else {
        let message = format!(
            "{} needs switches that trim: write [switch.buffer.trimming], as the series \"{name}\" does",
            name.to_uppercase()
        );
        return Err(Finding::new("switch.buffer", message));
    };
    warnings.extend(control_behind_data(scenario, &trimming));
    let Some((key, interval, window)) = messages.receiver_pace() else { return Ok(()) };
    let Scenario { nic, transport, .. } = scenario;
    let frame = nic.payload(transport) + nic.data_header(transport) + nic.gap;
    let beyond = pulled_beyond(network, &trimming, rate_of(frame, interval), window);
    warnings.extend(beyond.map(|beyond| {
        let interval = beyond.carried.time_for(frame);
        of(key, format!("{beyond}; give \"{interval}\", which then goes for all hosts"))
    }));
    Ok(())
}

/// Checks the priorities among which a transport chooses for each packet.
fn check_own_priorities(scenario: &Scenario, messages: &EndpointConfig) -> Result<(), Finding> {
    let Some(highest) = messages.priorities().checked_sub(1) else { return Ok(()) };
    let (name, ack_class) = (messages.name(), scenario.nic.ack_class);
    if ack_class < highest {
        let message = format!(
            "control packets (priority {ack_class}) wait behind data, to which \"{name}\" gives priorities up to {highest}; \
             give {highest} or more"
        );
        return Err(Finding::new("nic.ack-class", message));
    }
    Ok(())
}

/// Returns the rate of one `frame` per `interval`.
fn rate_of(frame: Bytes, interval: Duration) -> Rate {
    let bits = u128::from(frame.get()) * 8 * Duration::from_ms(1_000).as_ps() as u128;
    Rate::from_bps(u64::try_from(bits / u128::from(interval.as_ps().max(1))).unwrap_or(u64::MAX))
}

fn check_telemetry(
    congestion: &CongestionConfig,
    network: &Network,
    warnings: &mut Vec<Finding>,
) -> Result<(), Finding> {
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
    let of = |error: SettingError| Finding::new(&format!("{place}.{}", error.key), error.message);
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
