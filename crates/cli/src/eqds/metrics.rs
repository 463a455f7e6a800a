//! The daemon's state in Prometheus' text format.

use std::fmt::Write as _;

use selvedge_dataplane::eqds::DaemonStatus;
use selvedge_tunnel::endpoint::{PeerStatus, TunnelStatus};

/// Kinds of a metric.
#[derive(Clone, Copy)]
enum Kind {
    Gauge,
    Counter,
}

/// A metric of each peer: name, meaning, and value, if the peer has one.
type OfPeer = (&'static str, &'static str, fn(&PeerStatus) -> Option<f64>);
/// A metric of each tunnel: name, kind, meaning, and value.
type OfTunnel = (&'static str, Kind, &'static str, fn(&TunnelStatus) -> u64);

const OF_PEER: [OfPeer; 4] = [
    ("peer_established", "Whether a tunnel to or from the peer is established.", |peer| {
        Some(f64::from(u8::from(peer.established)))
    }),
    ("peer_unreachable", "Whether the peer has been given up.", |peer| Some(f64::from(u8::from(peer.unreachable)))),
    ("peer_round_trip_seconds", "Smoothed round-trip time, if one was measured.", |peer| {
        peer.round_trip_us.map(|us| us / 1e6)
    }),
    ("peer_path_mtu_bytes", "Longest UDP payload that the path is known to take.", |peer| Some(peer.path_mtu.into())),
];

const OF_TUNNEL: [OfTunnel; 13] = [
    ("waiting_bytes", Kind::Gauge, "Bytes waiting to be sent.", |tunnel| tunnel.waiting),
    ("in_flight_bytes", Kind::Gauge, "Bytes in flight.", |tunnel| tunnel.in_flight),
    ("credit_bytes", Kind::Gauge, "Credit held.", |tunnel| tunnel.credit),
    ("owed_quanta", Kind::Gauge, "Quanta of credit that this host owes the peer.", |tunnel| tunnel.owed),
    ("sent_packets_total", Kind::Counter, "Packets of this host sent through the tunnel.", |tunnel| {
        tunnel.packets_sent
    }),
    ("sent_bytes_total", Kind::Counter, "Bytes of packets of this host sent through the tunnel.", |tunnel| {
        tunnel.bytes_sent
    }),
    ("received_packets_total", Kind::Counter, "Packets delivered to this host.", |tunnel| tunnel.packets_received),
    ("received_bytes_total", Kind::Counter, "Bytes of packets delivered to this host.", |tunnel| tunnel.bytes_received),
    ("data_datagrams_sent_total", Kind::Counter, "Datagrams with data sent, retransmissions included.", |tunnel| {
        tunnel.data_sent
    }),
    ("retransmissions_total", Kind::Counter, "Datagrams with data sent again.", |tunnel| tunnel.retransmissions),
    ("credit_requests_total", Kind::Counter, "Requests for credit sent.", |tunnel| tunnel.requests),
    ("queue_dropped_packets_total", Kind::Counter, "Packets dropped because the queue was full.", |tunnel| {
        tunnel.dropped
    }),
    ("queue_marked_packets_total", Kind::Counter, "Packets marked because the queue was long.", |tunnel| tunnel.marked),
];

/// Returns all metrics.
pub(super) fn text(status: &DaemonStatus) -> String {
    let mut page = Page::default();
    let host = &status.endpoint.name;
    page.begin("info", Kind::Gauge, "The daemon's version, host and device; always 1.");
    page.sample("info", &[("version", &status.version), ("host", host), ("device", &status.device)], 1.0);
    page.begin("uptime_seconds", Kind::Gauge, "Time since the start.");
    page.sample("uptime_seconds", &[], status.uptime_s as f64);
    page.begin("device_mtu_bytes", Kind::Gauge, "MTU of the device inside.");
    page.sample("device_mtu_bytes", &[], status.mtu.into());
    page.begin("send_segments", Kind::Gauge, "Most datagrams that one system call sends; 1 without UDP_SEGMENT.");
    page.sample("send_segments", &[], status.segments.into());
    for (name, help, label, counters) in [
        ("io_total", "Packets, datagrams and system calls at the device and the sockets.", "kind", &status.io),
        ("datagrams_total", "Datagrams refused and accepted.", "reason", &status.endpoint.datagrams),
        ("dropped_packets_total", "Packets from and to inside that were dropped.", "reason", &status.endpoint.dropped),
    ] {
        page.begin(name, Kind::Counter, help);
        for (reason, number) in counters {
            page.sample(name, &[(label, reason)], *number as f64);
        }
    }
    let peers = &status.endpoint.peers;
    for (name, help, value) in OF_PEER {
        page.begin(name, Kind::Gauge, help);
        for (peer, value) in peers.iter().filter_map(|peer| Some((peer, value(peer)?))) {
            page.sample(name, &[("peer", &peer.name)], value);
        }
    }
    for (name, kind, help, value) in OF_TUNNEL {
        page.begin(name, kind, help);
        for (peer, tunnel) in peers.iter().flat_map(|peer| peer.tunnels.iter().map(move |tunnel| (peer, tunnel))) {
            page.sample(name, &[("peer", &peer.name), ("eqif", &tunnel.eqif)], value(tunnel) as f64);
        }
    }
    page.0
}

/// A page of metrics.
#[derive(Default)]
struct Page(String);

impl Page {
    fn begin(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP selvedge_eqds_{name} {help}\n# TYPE selvedge_eqds_{name} {kind}");
    }
    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "selvedge_eqds_{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_follows_its_help_and_type() {
        let tunnel = TunnelStatus { eqif: "tcp".into(), packets_sent: 1 << 40, ..TunnelStatus::default() };
        let peer = PeerStatus { name: "b \"2\"".into(), tunnels: vec![tunnel], ..PeerStatus::default() };
        let mut status = DaemonStatus::default();
        status.endpoint.peers = vec![peer];
        status.endpoint.dropped.insert("no peer".into(), 3);
        let page = text(&status);
        let mut name = "";
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                name = rest.split_once(' ').unwrap().0;
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let kind = rest.strip_prefix(name).unwrap();
                assert_eq!(kind == " counter", name.ends_with("_total"), "{line}");
            } else {
                let end = line.find(['{', ' ']).unwrap();
                assert_eq!(&line[..end], name);
            }
        }
        let sent = "selvedge_eqds_sent_packets_total{peer=\"b \\\"2\\\"\",eqif=\"tcp\"} 1099511627776\n";
        assert!(page.contains(sent), "{page}");
        assert!(page.contains("selvedge_eqds_dropped_packets_total{reason=\"no peer\"} 3\n"));
        assert!(!page.contains("round_trip_seconds{"), "none was measured");
    }
}
