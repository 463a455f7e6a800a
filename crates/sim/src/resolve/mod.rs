//! Resolution of "auto": from settings as they are written to values that a run needs.
//!
//! [`Settings`] may say "auto", "off" or a value for many keys. [`Settings::resolve`] derives each "auto" from the
//! [`Network`]: buffers and timeouts from its bandwidth-delay product and its longest queue, windows from the path of
//! each flow. The result, [`Resolved`], is a part of [`SimConfig`](crate::SimConfig).

mod network;
mod switch;
mod transport;

use schemars::JsonSchema;
use selvedge_transport::Fabric;
use selvedge_units::{Duration, Rate, Setting};
use serde::{Deserialize, Serialize};

pub use network::Network;

use self::switch::{resolve_ecn, resolve_switch};
use self::transport::{RoundTrip, distinct, fabric, fabric_of, resolve_transports};
use crate::Beside;
use crate::config::{BufferConfig, NicConfig, PathTransports, Stop, SwitchConfig, TransportConfig};
use crate::topology::PathClass;
use crate::workload::WorkloadSummary;

/// Settings of switches, NICs and transports as they are written: any of them may say "auto". The default is a
/// scenario file that mentions none of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Settings {
    /// Switches of the network.
    pub switch: SwitchConfig,
    /// NICs of the hosts.
    pub nic: NicConfig,
    /// Loss recovery and congestion control, or another transport.
    pub transport: TransportConfig,
    /// Part of the traffic that uses TCP beside the transport.
    pub beside: Option<Beside>,
    /// Paths from which windows, round-trip times and timeouts at "auto" are derived.
    pub auto: AutoScope,
}

/// Paths that "auto" in `transport` is derived from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AutoScope {
    /// Paths of each flow: pairs of hosts with equal paths share values, as if NICs knew, or measured, how far each
    /// peer is. Tunnels of EQDS, switches, and TCP in `beside` still have one value for all.
    #[default]
    PerPath,
    /// Longest path from any host with a link of the sender's rate: one static configuration per NIC, as in the IRN
    /// paper, whose BDP cap is that of the network's longest path (section 3.2), and as T in the HPCC paper.
    LongestPath,
}

/// Settings of switches, NICs and transports on one network, with a value for each "auto". Two settings of switches
/// stay "auto" where links differ, and are then a value per link: the headroom ([`PfcConfig::headroom_on`]) and the
/// buffer of an input ([`InputQueued::room`]).
///
/// [`PfcConfig::headroom_on`]: crate::config::PfcConfig::headroom_on
/// [`InputQueued::room`]: crate::config::InputQueued::room
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    /// Switches of the network.
    pub switch: SwitchConfig,
    /// NICs of the hosts.
    pub nic: NicConfig,
    /// Transport of the hosts with the fastest links.
    pub transport: TransportConfig,
    /// Transports of other hosts, and of flows by their path.
    pub transports: Transports,
    /// Part of the traffic that uses TCP beside the transport.
    pub beside: Option<Beside>,
}

/// Transports that differ from that of the fastest hosts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Transports {
    /// Transports of NICs, by the rate of their links.
    pub hosts: Vec<(Rate, TransportConfig)>,
    /// Transports of flows, by the class of their path.
    pub paths: PathTransports,
}

impl Transports {
    /// Returns all transports, those of hosts first.
    pub fn all(&self) -> impl Iterator<Item = &TransportConfig> {
        self.hosts.iter().map(|(_, transport)| transport).chain(&self.paths.distinct)
    }
}

impl Settings {
    /// Returns the settings with every "auto" replaced, for these workloads on `network`. Timeouts depend on the
    /// priorities that `workloads` ask for; an empty list stands for workloads that ask for none.
    #[must_use]
    pub fn resolve(self, network: &Network, workloads: &[WorkloadSummary]) -> Resolved {
        let xon_gap = self.nic.xon_gap(&self.transport);
        let Self { mut switch, nic, mut transport, mut beside, auto } = self;
        if workloads.iter().any(WorkloadSummary::is_of_verbs) {
            transport.carry_verbs();
        }
        let frame = nic.payload(&transport) + nic.data_header(&transport);
        let wire = nic.with_longest_header(&transport, beside.as_ref());
        resolve_switch(&mut switch, network, &wire, frame, xon_gap);

        let trip = RoundTrip { packet: frame + nic.gap, answer: nic.ack_frame(&transport) + nic.gap };
        let data = switch.data_priorities(&nic, &transport, beside.as_ref(), workloads);
        let mut fabric = fabric(network, &switch, &data, trip, nic.gap);
        switch.netrt.resolve(&fabric);
        if transport.tunnels().is_some() {
            // All tunnels have the same credit, except those inside servers, where both ends are.
            let pipe = network.widest_pipe(trip.packet, trip.answer);
            fabric.fill_time = fabric.fill_time.max(fabric.line_rate.time_for(pipe));
        }
        let trims = matches!(switch.buffer, BufferConfig::Trimming(_));
        let written = transport;
        let (mut needs, hosts) = resolve_transports(&mut transport, &fabric, network, &nic, trip, trims);
        let mut transports = Transports { hosts, paths: PathTransports::default() };
        if auto == AutoScope::PerPath {
            let queueing = network.longest_queueing(&switch.buffer, frame, nic.gap, &data);
            let own_of = |class: &PathClass| {
                let mut own = written.of_paths(transports.at(class.sender).unwrap_or(&transport));
                own.resolve(&fabric_of(class, &fabric, trip, queueing), &nic, trims);
                own
            };
            let classes = network.paths().classes().all();
            let resolved: Vec<TransportConfig> = classes.iter().map(own_of).collect();
            let of_host = |class: &PathClass| *transports.at(class.sender).unwrap_or(&transport);
            if classes.iter().zip(&resolved).any(|(class, own)| *own != of_host(class)) {
                transports.paths = distinct(&resolved);
            }
        }
        if let Some(Beside { tcp, .. }) = &mut beside {
            // All hosts have the same.
            let base_rtt = network.longest_rtt(trip.packet, trip.answer).max(fabric.base_rtt);
            tcp.resolve(&transport.around_tcp(&Fabric { base_rtt, ..fabric }), nic.mtu);
            // Through tunnels, TCP's queues are in EQIFs, and so are marks.
            let is_carried = transport.tunnels().is_some_and(|eqds| eqds.eqif.tcp.is_some());
            needs.marking = needs.marking.or(tcp.marking(&fabric).filter(|_| !is_carried));
        }
        resolve_ecn(&mut switch.ecn, &needs, network.line_rate());
        Resolved { switch, nic, transport, transports, beside }
    }
}

impl Transports {
    /// Returns the transport of the NICs whose links have this rate, where it differs.
    fn at(&self, rate: Rate) -> Option<&TransportConfig> {
        self.hosts.iter().find(|(of, _)| *of == rate).map(|(_, transport)| transport)
    }
}

/// Returns the time over which flows start, or may start, in a run that ends as `stop` says.
pub fn span_of_starts(workloads: &[WorkloadSummary], stop: Stop) -> Duration {
    let begin = workloads.iter().map(|workload| workload.first).min().unwrap_or_default();
    let last = workloads.iter().filter_map(|workload| workload.duration).max().unwrap_or_default();
    let starts = last.saturating_sub(begin);
    match stop.time.map(|end| end.saturating_sub(begin)) {
        Some(end) if starts.is_zero() => end,
        Some(end) => end.min(starts),
        None => starts,
    }
}

/// Returns the interval at which ports are sampled, where flows start over `span`: `sample`, or for "auto" every other
/// base round-trip time, because queues change little within less, but not much more than 2,000 samples. `None`: never.
pub fn sampling_interval(sample: Setting<Duration>, network: &Network, span: Duration) -> Option<Duration> {
    sample.resolve(|| {
        let fine = network.base_rtt().max(SHORTEST_RTT) * 2;
        let coarse = Duration::from_us(span.as_ps().div_ceil(MOST_SAMPLES * Duration::from_us(1).as_ps()));
        Some(fine.max(coarse))
    })
}

/// Lower limit of the round-trip time for sampling intervals: in smaller networks, queues last longer than round trips.
const SHORTEST_RTT: Duration = Duration::from_us(5);
/// Approximate maximum number of samples while flows start.
const MOST_SAMPLES: u64 = 2_000;
