//! State and counters of an endpoint, for people and for programs.

use std::collections::BTreeMap;

use selvedge_transport::eqds::State;
use selvedge_units::Instant;

use super::inside::Eqif;
use super::{Endpoint, Link};
use crate::gate::Counters;

/// State of an endpoint, as `selvedge eqds status --json` prints it.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Status {
    /// Name of this host.
    pub name: String,
    /// Datagrams refused and accepted, by reason, with the names of [`crate::Counters`].
    pub datagrams: BTreeMap<String, u64>,
    /// Packets from and to inside that were dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Peers, in the order of the settings.
    pub peers: Vec<PeerStatus>,
}

/// State of the tunnels to and from one peer.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PeerStatus {
    /// Name of the peer.
    pub name: String,
    /// Address and port of the peer.
    pub address: String,
    /// Whether a tunnel to or from the peer is established.
    pub established: bool,
    /// Whether the peer has been given up.
    pub unreachable: bool,
    /// Smoothed round-trip time in microseconds, if one was measured.
    pub round_trip_us: Option<f64>,
    /// Bytes of the longest UDP payload that the path is known to take.
    pub path_mtu: u32,
    /// Tunnels, by EQIF.
    pub tunnels: Vec<TunnelStatus>,
}

/// State of one EQIF's tunnel to a peer, and of the peer's tunnel to this host.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TunnelStatus {
    /// Name of the EQIF: "tcp", "rdma", "other", "native".
    pub eqif: String,
    /// Bytes waiting to be sent.
    pub waiting: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes of credit held.
    pub credit: u64,
    /// Quanta of credit that the peer is owed by this host.
    pub owed: u64,
    /// Packets of this host sent through the tunnel (whole ones, as the host gave them).
    pub packets_sent: u64,
    /// Bytes of these packets.
    pub bytes_sent: u64,
    /// Packets delivered to this host.
    pub packets_received: u64,
    /// Bytes of these packets.
    pub bytes_received: u64,
    /// Datagrams with data sent, retransmissions included.
    pub data_sent: u64,
    /// Retransmissions among them.
    pub retransmissions: u64,
    /// Requests for credit sent.
    pub requests: u64,
    /// Packets of this host dropped because the queue was full.
    pub dropped: u64,
    /// Packets of this host marked with congestion experienced because the queue was long.
    pub marked: u64,
}

/// Packets from and to inside that were dropped, and datagrams of peers that meant nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Drops {
    /// Packets of this host that are no IP packets.
    pub(super) malformed: u64,
    /// Packets of this host to an address that no peer serves.
    pub(super) no_route: u64,
    /// Packets of this host to a peer that does not answer.
    pub(super) unreachable: u64,
    /// Packets of this host for which the queue had no room.
    pub(super) queue_full: u64,
    /// Packets of a peer that are no IP packets, or are not complete.
    pub(super) broken: u64,
    /// Packets of a peer from an address that it does not serve, or to one that this host does not serve.
    pub(super) foreign: u64,
    /// Packets of a peer that do not know ECN and met congestion (RFC 6040).
    pub(super) congested: u64,
    /// Datagrams of a peer for an EQIF that does not exist.
    pub(super) unknown_eqif: u64,
    /// Datagrams of a peer for a tunnel that does not exist.
    pub(super) stray: u64,
    /// Datagrams of a peer that had arrived before.
    pub(super) duplicates: u64,
    /// Datagrams of a peer whose MTU or capabilities differ from the settings.
    pub(super) disagreements: u64,
    /// Native messages of a peer to a port that no program has.
    pub(super) no_listener: u64,
    /// Native messages of a peer to a program that had too much unread.
    pub(super) port_full: u64,
    /// Refusals of native messages that were not sent, or notices that a program did not read.
    pub(super) unheard: u64,
    /// Key epochs that a peer named and that are too far ahead to be true.
    pub(super) lies: u64,
}

impl Endpoint {
    /// Returns the state and the counters, as `selvedge eqds status` shows them.
    pub fn status(&self, now: Instant) -> Status {
        Status {
            name: self.config.name.clone(),
            datagrams: datagrams(self.gate.counters()),
            dropped: dropped(&Drops { unheard: self.drops.unheard + self.ports.unheard, ..self.drops }),
            peers: self.links.iter().flatten().map(|link| peer(link, now)).collect(),
        }
    }
}

fn peer(link: &Link, now: Instant) -> PeerStatus {
    let tunnels = Eqif::ALL.map(|eqif| tunnel(link, eqif));
    let is_open = |eqif: Eqif| {
        let tunnel = &link.tunnels[eqif as usize];
        tunnel.outward.sender.state() == State::Established || tunnel.inward.receiver.epoch().is_some()
    };
    let trips = link
        .tunnels
        .iter()
        .filter_map(|tunnel| tunnel.outward.sender.native_info(&tunnel.outward.params, now).round_trips);
    let trips = trips.filter(|trips| trips.samples > 0).map(|trips| trips.smoothed.as_ps() as f64 / 1e6);
    PeerStatus {
        name: link.peer.name.clone(),
        address: link.peer.address.to_string(),
        established: Eqif::ALL.into_iter().any(is_open),
        unreachable: link.is_unreachable,
        round_trip_us: trips.reduce(f64::min),
        path_mtu: link.path_mtu.size().into(),
        tunnels: tunnels.into(),
    }
}

fn tunnel(link: &Link, eqif: Eqif) -> TunnelStatus {
    let tunnel = &link.tunnels[eqif as usize];
    let counts = tunnel.outward.counts;
    TunnelStatus {
        eqif: eqif.name().to_owned(),
        waiting: tunnel.outward.queue.waiting,
        in_flight: tunnel.outward.sender.in_flight(),
        credit: tunnel.outward.sender.credit().into(),
        owed: tunnel.inward.owed.into(),
        packets_sent: counts.packets,
        bytes_sent: counts.bytes,
        packets_received: tunnel.inward.packets,
        bytes_received: tunnel.inward.bytes,
        data_sent: counts.data,
        retransmissions: counts.retransmissions,
        requests: counts.requests,
        dropped: counts.dropped,
        marked: counts.marked,
    }
}

fn datagrams(counters: &Counters) -> BTreeMap<String, u64> {
    let Counters {
        accepted,
        trimmed,
        damaged,
        other_version,
        unknown_type,
        malformed,
        strangers,
        limited,
        forged,
        replayed,
        stale,
        unsealed,
    } = *counters;
    named([
        ("accepted", accepted),
        ("trimmed", trimmed),
        ("damaged", damaged),
        ("other-version", other_version),
        ("unknown-type", unknown_type),
        ("malformed", malformed),
        ("strangers", strangers),
        ("limited", limited),
        ("forged", forged),
        ("replayed", replayed),
        ("stale", stale),
        ("unsealed", unsealed),
    ])
}

fn dropped(drops: &Drops) -> BTreeMap<String, u64> {
    let Drops {
        malformed,
        no_route,
        unreachable,
        queue_full,
        broken,
        foreign,
        congested,
        unknown_eqif,
        stray,
        duplicates,
        disagreements,
        no_listener,
        port_full,
        unheard,
        lies,
    } = *drops;
    named([
        ("malformed", malformed),
        ("no-route", no_route),
        ("unreachable", unreachable),
        ("queue-full", queue_full),
        ("broken", broken),
        ("foreign", foreign),
        ("congested", congested),
        ("unknown-eqif", unknown_eqif),
        ("stray", stray),
        ("duplicates", duplicates),
        ("disagreements", disagreements),
        ("no-listener", no_listener),
        ("port-full", port_full),
        ("unheard", unheard),
        ("lies", lies),
    ])
}

fn named<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}
