//! Every "auto" of a scenario, derived from its network.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use selvedge_sim::Beside;
use selvedge_sim::config::{
    BalancingConfig, BufferConfig, EcnConfig, NicConfig, PathTransports, PfcConfig, SwitchConfig, TransportConfig,
    Trimming,
};
use selvedge_sim::topology::{Bdp, PathClass};
use selvedge_sim::workload::WorkloadSummary;
use selvedge_transport::{Fabric, Marking, Needs};
use selvedge_units::{Bytes, Chance, Duration, Rate, Setting};

use crate::network::{Network, time_at};
use crate::scenario::{AutoScope, Scenario};

/// Transports that differ from that of the fastest hosts.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Transports {
    /// Transports of NICs, by the rate of their links.
    pub(crate) hosts: Vec<(Rate, TransportConfig)>,
    /// Transports of flows, by the class of their path.
    pub(crate) paths: PathTransports,
}

impl Transports {
    /// Returns all transports.
    pub(crate) fn all(&self) -> impl Iterator<Item = &TransportConfig> {
        self.hosts.iter().map(|(_, transport)| transport).chain(&self.paths.distinct)
    }
}

/// Parts of the longest round trip, gaps included.
#[derive(Clone, Copy)]
struct RoundTrip {
    /// Size of a full packet.
    packet: Bytes,
    /// Size of the acknowledgement.
    answer: Bytes,
}

/// Replaces every "auto" of `scenario`, which runs these workloads on `network`, except that of `sample`. Returns the
/// transports of hosts whose links have other rates than the fastest, and those of flows on paths of each class, where
/// they differ.
pub(crate) fn resolve(scenario: &mut Scenario, network: &Network, workloads: &[WorkloadSummary]) -> Transports {
    let Scenario { switch, nic, transport, beside, auto, .. } = scenario;
    let frame = nic.payload(transport) + nic.data_header(transport);
    let wire = nic.with_longest_header(transport, beside.as_ref());
    resolve_switch(switch, network, &wire, frame, xon_gap_of(nic, transport));

    let trip = RoundTrip { packet: frame + nic.gap, answer: nic.ack_frame(transport) + nic.gap };
    let data = switch.data_priorities(nic, beside.as_ref(), workloads);
    let mut fabric = fabric(network, switch, &data, trip, nic.gap);
    switch.netrt.resolve(&fabric);
    if transport.eqds.is_some() {
        // All tunnels have the same credit, except those inside servers, where both ends are.
        let pipe = network.widest_pipe(trip.packet, trip.answer);
        fabric.fill_time = fabric.fill_time.max(fabric.line_rate.time_for(pipe));
    }
    let trims = matches!(switch.buffer, BufferConfig::Trimming(_));
    let queueing = network.longest_queueing(&switch.buffer, frame, nic.gap, &data);
    let written = *transport;
    let (mut needs, hosts) = resolve_transports(transport, &fabric, network, nic, trip, trims);
    let mut others = Transports { hosts, paths: PathTransports::default() };
    if *auto == AutoScope::PerPath {
        let of_class = |class: &PathClass| {
            let nic_of = others.hosts.iter().find(|(rate, _)| *rate == class.sender);
            let mut own = written.of_paths(nic_of.map_or(transport, |(_, transport)| transport));
            own.resolve(&fabric_of(class, &fabric, trip, queueing), nic, trims);
            own
        };
        let classes = network.paths().classes().all();
        let of_hosts = |class: &PathClass| {
            let own = others.hosts.iter().find(|(rate, _)| *rate == class.sender);
            own.map_or(*transport, |(_, transport)| *transport)
        };
        let resolved: Vec<TransportConfig> = classes.iter().map(of_class).collect();
        if classes.iter().zip(&resolved).any(|(class, own)| *own != of_hosts(class)) {
            others.paths = distinct(&resolved);
        }
    }
    if let Some(Beside { tcp, .. }) = beside {
        // All hosts have the same.
        let base_rtt = network.longest_rtt(trip.packet, trip.answer).max(fabric.base_rtt);
        tcp.resolve(&transport.around_tcp(&Fabric { base_rtt, ..fabric }), nic.mtu);
        // Through tunnels, TCP's queues are in EQIFs, and so are marks.
        let is_carried = transport.eqds.is_some_and(|eqds| eqds.eqif.tcp.is_some());
        needs.marking = needs.marking.or(tcp.marking(&fabric).filter(|_| !is_carried));
    }
    resolve_ecn(&mut switch.ecn, &needs, network.line_rate());
    others
}

/// Resolves the buffers of switches, and the settings that depend on links alone.
fn resolve_switch(switch: &mut SwitchConfig, network: &Network, wire: &NicConfig, frame: Bytes, xon_gap: Bytes) {
    // One value where all links are alike; otherwise each input has its own.
    let mut per_link = network.links_to_switches().map(|link| switch.pfc.headroom_on(link.rate, link.delay, wire));
    let first = per_link.next();
    if per_link.all(|other| Some(other) == first) {
        drop(per_link);
        settle(&mut switch.pfc.headroom, first);
        switch.pfc.headroom_by_link.clear();
    }
    settle(&mut switch.pfc.xon_gap, Some(xon_gap));
    if let BalancingConfig::Flowlet(flowlet) = &mut switch.balancing {
        settle(&mut flowlet.gap, Some(network.base_rtt()));
    }
    let room = (network.bdp().bytes * 2).max(least_room(network, &switch.pfc, wire, xon_gap));
    match &mut switch.buffer {
        BufferConfig::InputQueued(buffer) => {
            // One value where all ports are alike; otherwise each port has its own.
            let mut own = network.own_buffers();
            let first = own.next().flatten();
            if own.all(|other| other == first) {
                settle(&mut buffer.per_port, Some(first.unwrap_or(room)));
            }
        }
        BufferConfig::FairQueued(fair) => {
            settle(&mut fair.per_port, Some(room));
            settle(&mut fair.quantum, Some(frame));
        }
        BufferConfig::Trimming(trimming) => {
            let headers = trimming.header_room(frame);
            settle(&mut trimming.headers, headers);
            settle(&mut trimming.headers_per_data, Some(Trimming::HEADERS_PER_DATA));
        }
        BufferConfig::SharedBuffer(shared) => {
            settle(&mut shared.shared, None);
            settle(&mut shared.headroom_pool, None);
        }
    }
}

/// Returns the properties of `network` that transports need, for data of these priorities.
fn fabric(
    network: &Network,
    switch: &SwitchConfig,
    data: &BTreeSet<u8>,
    RoundTrip { packet, answer }: RoundTrip,
    gap: Bytes,
) -> Fabric {
    let frame = packet - gap;
    let Bdp { bytes: bdp, sender_is_slowest } = network.bdp();
    let line_rate = network.line_rate();
    // Without switches, or with hardly any buffer in them, an answer still waits for a packet that is being sent.
    let least_rtt = network.longest_rtt(packet, packet + answer);
    Fabric {
        pfc: switch.pfc.enabled,
        line_rate,
        bdp,
        sender_is_slowest,
        frame,
        gap,
        base_rtt: network.longest_rtt_from(line_rate, packet, answer),
        fill_time: network.fill_time(line_rate, packet, answer),
        links: network.longest().links,
        inputs: network.most_inputs(),
        congested_rtt: network
            .base_rtt()
            .saturating_add(network.longest_queueing(&switch.buffer, frame, gap, data))
            .max(least_rtt),
        acks: false,
    }
}

/// Returns the properties of the paths of a class that transports need; the others are those of `fabric`. The longest
/// queue may be anywhere.
fn fabric_of(
    class: &PathClass,
    fabric: &Fabric,
    RoundTrip { packet, answer }: RoundTrip,
    queueing: Duration,
) -> Fabric {
    let (line_rate, rtt) = (class.sender, class.base_rtt(packet, answer));
    let bdps = class.forth.iter().map(|kind| Bdp {
        bytes: kind.bottleneck().amount_in(kind.propagation.saturating_mul(2)),
        sender_is_slowest: kind.bottleneck() >= line_rate,
    });
    let Bdp { bytes: bdp, sender_is_slowest } = bdps.max().unwrap_or_default();
    let back = class.back.iter().map(|kind| kind.time_for(answer)).max().unwrap_or_default();
    let fill_times = class
        .forth
        .iter()
        .map(|kind| time_at(line_rate, class.rate_on(kind), kind.time_for(packet).saturating_add(back)));
    Fabric {
        line_rate,
        bdp,
        sender_is_slowest,
        base_rtt: rtt,
        fill_time: fill_times.max().unwrap_or(rtt),
        links: class.links(),
        congested_rtt: class.propagation().saturating_add(queueing).max(class.base_rtt(packet, packet + answer)),
        ..*fabric
    }
}

/// Returns each of these transports once, with the class each belongs to.
fn distinct(resolved: &[TransportConfig]) -> PathTransports {
    let mut all = PathTransports::default();
    for transport in resolved {
        let known = all.distinct.iter().position(|known| known == transport);
        let number = known.unwrap_or_else(|| {
            all.distinct.push(*transport);
            all.distinct.len() - 1
        });
        all.by_class.push(number as u32);
    }
    all
}

/// Resolves the transport of the hosts with the fastest links. Returns its needs, and the transports of the other
/// hosts, where those differ.
fn resolve_transports(
    transport: &mut TransportConfig,
    fabric: &Fabric,
    network: &Network,
    nic: &NicConfig,
    RoundTrip { packet, answer }: RoundTrip,
    trims: bool,
) -> (Needs, Vec<(Rate, TransportConfig)>) {
    let inside = transport.eqds.and_then(|_| network.widest_pipe_inside(packet, answer));
    let written = *transport;
    let needs = transport.resolve(fabric, nic, trims);
    let others = network.paths().host_rates().into_iter().filter(|rate| *rate != fabric.line_rate);
    let mut agreed: Option<TransportConfig> = None;
    let others = others.map(|line_rate| {
        let inside = inside.filter(|_| line_rate > fabric.line_rate);
        let mut other = match inside {
            None => written.agreeing_with(transport),
            Some(_) => agreed.map_or(written, |first| written.agreeing_with(&first)),
        };
        let Bdp { bytes: bdp, sender_is_slowest } = network.bdp_from(line_rate);
        let base_rtt = network.longest_rtt_from(line_rate, packet, answer);
        let fill_time = match inside {
            None => network.fill_time(line_rate, packet, answer),
            Some(pipe) => line_rate.time_for(pipe),
        };
        let own = Fabric { line_rate, bdp, sender_is_slowest, base_rtt, fill_time, ..*fabric };
        other.resolve(&own, nic, trims);
        if inside.is_some() {
            agreed.get_or_insert(other);
        }
        (line_rate, other)
    });
    let mut others: Vec<(Rate, TransportConfig)> = others.collect();
    if written.tcp.is_some_and(|tcp| tcp.delayed_ack == Setting::Auto) {
        delay_alike(iter::once(&mut *transport).chain(others.iter_mut().map(|(_, other)| other)));
    }
    others.retain(|(_, other)| other != transport);
    (needs, others)
}

/// Sets the delays of all TCP acknowledgements to the shortest that any timeout allows: the timeout that runs while a
/// receiver delays is its sender's, not its own.
fn delay_alike<'a>(transports: impl Iterator<Item = &'a mut TransportConfig>) {
    let delays: Vec<_> = transports.filter_map(|transport| Some(&mut transport.tcp.as_mut()?.delayed_ack)).collect();
    let shortest = delays.iter().filter_map(|delay| delay.resolve(|| None)).min();
    for delay in delays {
        *delay = shortest.into();
    }
}

/// Returns the values that `transport` and `others` have in common; "auto" is left where hosts or paths have different
/// values.
pub(crate) fn in_common(transport: TransportConfig, others: &Transports) -> TransportConfig {
    fn keep(ours: &mut toml::Table, theirs: &toml::Table) {
        for (key, value) in ours {
            match (value, theirs.get(key)) {
                (toml::Value::Table(ours), Some(toml::Value::Table(theirs))) => keep(ours, theirs),
                (value, other) if Some(&*value) != other => *value = "auto".into(),
                _ => {}
            }
        }
    }
    let table = |transport| toml::Table::try_from(transport).expect("a transport can be written");
    let mut common = table(transport);
    others.all().for_each(|other| keep(&mut common, &table(*other)));
    common.try_into().expect("what depends on rates and paths may be \"auto\"")
}

/// Returns the keys of `[transport]` whose values depend on the host or on the path, each with the least and the
/// greatest.
pub(crate) fn ranges(transport: &TransportConfig, others: &Transports) -> Vec<(String, [String; 2])> {
    fn leaves(path: &str, value: &toml::Value, found: &mut impl FnMut(String, String)) {
        match value {
            toml::Value::Table(table) => {
                table.iter().for_each(|(key, value)| leaves(&format!("{path}.{key}"), value, found));
            }
            toml::Value::String(text) => found(path.to_owned(), text.clone()),
            other => found(path.to_owned(), other.to_string()),
        }
    }
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for transport in iter::once(transport).chain(others.all()) {
        let table = toml::Value::try_from(*transport).expect("a transport can be written");
        leaves("transport", &table, &mut |key, value| values.entry(key).or_default().push(value));
    }
    let extremes = |(key, mut values): (String, Vec<String>)| {
        values.sort_by(|a, b| magnitude(a).total_cmp(&magnitude(b)).then_with(|| a.cmp(b)));
        values.dedup();
        let [first, .., last] = &values[..] else { return None };
        Some((key, [first.clone(), last.clone()]))
    };
    values.into_iter().filter_map(extremes).collect()
}

/// Returns the magnitude of a written value, for comparison with other values of the same key.
fn magnitude(text: &str) -> f64 {
    let time = text.parse::<Duration>().map(|time| time.as_ps() as f64).ok();
    let size = text.parse::<Bytes>().map(|size| size.get() as f64).ok();
    let rate = text.parse::<Rate>().map(|rate| rate.as_bps() as f64).ok();
    text.parse().ok().or(time).or(size).or(rate).unwrap_or(f64::INFINITY)
}

/// Returns the default distance of X-ON below X-OFF: two frames.
pub(crate) fn xon_gap_of(nic: &NicConfig, transport: &TransportConfig) -> Bytes {
    (nic.payload(transport) + nic.data_header(transport) + nic.gap) * 2
}

/// Returns the smallest size of an input buffer, the same with and without PFC for the sake of comparison: the headroom
/// of any link, and as much again below X-ON, which the output sends while the end of a pause and the packets after it
/// are on their way. The size exceeds two bandwidth-delay products where links are short, or where some links are
/// faster than those of hosts.
fn least_room(network: &Network, pfc: &PfcConfig, wire: &NicConfig, xon_gap: Bytes) -> Bytes {
    let pfc = PfcConfig { headroom_by_link: pfc.headroom_by_link.clone(), ..PfcConfig::default() };
    let headroom = network.links_to_switches().map(|link| pfc.headroom_on(link.rate, link.delay, wire)).max();
    let headroom = headroom.unwrap_or_default();
    headroom + headroom.max(xon_gap) + xon_gap
}

/// Resolves marking thresholds to values that suit the congestion control, along its own curve.
fn resolve_ecn(ecn: &mut EcnConfig, needs: &Needs, line_rate: Rate) {
    ecn.enabled = ecn.enabled.resolve(|| needs.marking.is_some()).into();
    settle(&mut ecn.at_rate, Some(line_rate));
    let rate = ecn.at_rate.resolve(|| None).unwrap_or(line_rate);
    let curve = needs.marking.unwrap_or(Marking::DCQCN).on(rate);
    settle(&mut ecn.k_min, Some(curve.k_min));
    settle(&mut ecn.k_max, Some(curve.k_max));
    settle(&mut ecn.p_max, Some(curve.p_max));
    // Rounded to the nearest number that a file can hold, so that the resolved scenario runs alike.
    if let Setting::Value(p_max) = &mut ecn.p_max {
        *p_max = Chance::from_f64(p_max.as_f64()).unwrap_or(Chance::ALWAYS);
    }
}

/// Returns the sampling interval where it is left open and flows start over `span`: every other base round-trip time,
/// because queues change little within less, but not much more than 2,000 samples.
pub(crate) fn sampling_interval(network: &Network, span: Duration) -> Duration {
    let fine = network.base_rtt().max(SHORTEST_RTT) * 2;
    let coarse = Duration::from_us(span.as_ps().div_ceil(MOST_SAMPLES * Duration::from_us(1).as_ps()));
    fine.max(coarse)
}

/// Replaces "auto" by the value `auto`.
pub(crate) fn settle<T: Copy>(setting: &mut Setting<T>, auto: Option<T>) {
    *setting = setting.resolve(|| auto).into();
}

/// Lower limit of the round-trip time for sampling intervals: in smaller networks, queues last longer than round trips.
const SHORTEST_RTT: Duration = Duration::from_us(5);
/// Approximate maximum number of samples while flows start.
const MOST_SAMPLES: u64 = 2_000;
