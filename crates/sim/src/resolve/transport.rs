//! Every "auto" of transports, derived from the network: for the fastest hosts, for other hosts, and for paths.

use std::collections::BTreeSet;
use std::iter;

use selvedge_transport::{Fabric, Needs};
use selvedge_units::{Bytes, Duration, Rate, Setting};

use super::Network;
use super::network::time_at;
use crate::config::{NicConfig, PathTransports, SwitchConfig, TransportConfig};
use crate::topology::{Bdp, PathClass};

/// Parts of the longest round trip, gaps included.
#[derive(Clone, Copy)]
pub(super) struct RoundTrip {
    /// Size of a full packet.
    pub(super) packet: Bytes,
    /// Size of the acknowledgement.
    pub(super) answer: Bytes,
}

/// Returns the properties of `network` that transports need, for data of these priorities.
pub(super) fn fabric(
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
pub(super) fn fabric_of(
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
pub(super) fn distinct(resolved: &[TransportConfig]) -> PathTransports {
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
pub(super) fn resolve_transports(
    transport: &mut TransportConfig,
    fabric: &Fabric,
    network: &Network,
    nic: &NicConfig,
    RoundTrip { packet, answer }: RoundTrip,
    trims: bool,
) -> (Needs, Vec<(Rate, TransportConfig)>) {
    let inside = transport.tunnels().and_then(|_| network.widest_pipe_inside(packet, answer));
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
    if written.tcp().is_some_and(|tcp| tcp.delayed_ack == Setting::Auto) {
        delay_alike(iter::once(&mut *transport).chain(others.iter_mut().map(|(_, other)| other)));
    }
    others.retain(|(_, other)| other != transport);
    (needs, others)
}

/// Sets the delays of all TCP acknowledgements to the shortest that any timeout allows: the timeout that runs while a
/// receiver delays is its sender's, not its own.
fn delay_alike<'a>(transports: impl Iterator<Item = &'a mut TransportConfig>) {
    let delays: Vec<_> = transports.filter_map(|transport| Some(&mut transport.tcp_mut()?.delayed_ack)).collect();
    let shortest = delays.iter().filter_map(|delay| delay.resolve(|| None)).min();
    for delay in delays {
        *delay = shortest.into();
    }
}
