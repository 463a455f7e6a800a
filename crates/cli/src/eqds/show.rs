//! The daemon's state and settings, for people.

use std::fmt::Write as _;
use std::time::Duration;

use selvedge_dataplane::eqds::DaemonStatus;
use selvedge_tunnel::config::{Config, Seal};
use selvedge_tunnel::endpoint::{PeerStatus, TunnelStatus};

/// Columns between two cells of a table.
const GAP: usize = 2;

/// Returns the settings' consequences.
pub(super) fn settings(config: &Config) -> String {
    let listed = |list: Vec<String>, none: &str| if list.is_empty() { none.to_owned() } else { list.join(", ") };
    let inner = config.inner_addresses.iter().map(ToString::to_string).collect();
    let ports = &config.path_ports;
    let encrypted = match config.seal {
        Seal::Aes128Gcm => "AES-128-GCM",
        Seal::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        Seal::Off => "none: headers are authenticated, payloads can be read and changed on the way",
    };
    let mut rows = vec![
        ("host", config.name.clone()),
        ("outside", format!("{}, UDP port {}", join(&config.addresses), config.port)),
        ("paths", format!("{}: source ports {} to {}", ports.clone().count(), ports.start(), ports.end())),
        ("link", config.link_rate.to_string()),
        ("device", config.device.clone()),
        ("addresses", listed(inner, "none: this host only forwards (inner-addresses)")),
        ("prefixes", join(&config.prefixes)),
        ("encryption", encrypted.to_owned()),
        ("epochs", config.state.display().to_string()),
    ];
    if let Some(mtu) = config.inner_mtu() {
        rows.push(("MTU inside", format!("{mtu} bytes")));
    }
    if !config.classes.is_empty() {
        let class = |class: &selvedge_tunnel::config::Class| {
            format!("{} (weight {}, priority {})", class.name, class.weight, class.priority)
        };
        rows.push(("classes", config.classes.iter().map(class).collect::<Vec<_>>().join(", ")));
    }
    let mut text = String::new();
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<12}{value}");
    }
    if config.peers.is_empty() {
        return text + "no peers: add a table [[peer]] for each\n";
    }
    let mut table = vec![["peer", "address", "MTU", "prefixes"].map(str::to_owned).to_vec()];
    table.extend(config.peers.iter().map(|peer| {
        vec![peer.name.clone(), peer.address.to_string(), peer.inner_mtu.to_string(), join(&peer.prefixes)]
    }));
    text + "\n" + &aligned(&table, &[2])
}

/// Returns the whole state.
pub(super) fn status(status: &DaemonStatus) -> String {
    let of = |name: &str| status.io.get(name).copied().unwrap_or(0);
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<10}{value}");
    };
    let seconds = Duration::from_secs(status.uptime_s);
    row("host", &format!("{}, up for {}, process {}", status.endpoint.name, span(seconds), status.pid));
    let inner = if status.inner_addresses.is_empty() { "no address" } else { &status.inner_addresses.join(", ") };
    row("device", &format!("{} ({inner}), MTU {}", status.device, status.mtu));
    row("listens", &format!("UDP {}, {} paths", status.listens.join(", "), status.paths));
    row("inside", &format!("{} packets sent, {} received", count(of("inside-taken")), count(of("inside-given"))));
    let per_call = |packets: u64, calls: u64| packets as f64 / calls.max(1) as f64;
    row(
        "outside",
        &format!(
            "{} datagrams sent ({:.1} per call), {} received",
            count(of("datagrams-sent")),
            per_call(of("datagrams-sent"), of("send-calls")),
            count(of("datagrams-received")),
        ),
    );
    let refused = [
        (of("datagrams-refused"), "datagrams by the kernel outside", status.last_refusal.as_deref()),
        (of("inside-refused"), "packets by the kernel inside", None),
    ];
    for (number, what, why) in refused.into_iter().filter(|(number, ..)| *number > 0) {
        let why = why.map_or_else(String::new, |why| format!(", the last one for: {why}"));
        row("refused", &format!("{} {what}{why}", count(number)));
    }
    for (name, counters) in [("datagrams", &status.endpoint.datagrams), ("dropped", &status.endpoint.dropped)] {
        let counted: Vec<String> = counters
            .iter()
            .filter(|(_, number)| **number > 0)
            .map(|(reason, number)| format!("{reason} {}", count(*number)))
            .collect();
        if !counted.is_empty() {
            row(name, &counted.join(", "));
        }
    }
    if status.segments <= 1 {
        row("slow", "datagrams leave one by one: the kernel or a network device does not cut them (UDP_SEGMENT)");
    }
    if !status.cuts_udp {
        row("slow", "long UDP datagrams of programs are cut before the device: the kernel is older than Linux 6.2");
    }
    text + "\n" + &peers(status) + &tunnels(status)
}

/// Returns the table of peers.
pub(super) fn peers(status: &DaemonStatus) -> String {
    if status.endpoint.peers.is_empty() {
        return "no peers\n".to_owned();
    }
    let head = ["peer", "address", "state", "round trip", "path MTU", "in flight", "waiting", "retransmitted"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    table.extend(status.endpoint.peers.iter().map(|peer| {
        let sum = |of: fn(&TunnelStatus) -> u64| peer.tunnels.iter().map(of).sum::<u64>();
        vec![
            peer.name.clone(),
            peer.address.clone(),
            state(peer).to_owned(),
            peer.round_trip_us.map_or_else(|| "-".to_owned(), round_trip),
            if peer.path_mtu == 0 { "-".to_owned() } else { peer.path_mtu.to_string() },
            size(sum(|tunnel| tunnel.in_flight)),
            size(sum(|tunnel| tunnel.waiting)),
            resent(sum(|tunnel| tunnel.retransmissions), sum(|tunnel| tunnel.data_sent)),
        ]
    }));
    aligned(&table, &[3, 4, 5, 6, 7])
}

/// Returns the table of tunnels that were used; empty if none was.
fn tunnels(status: &DaemonStatus) -> String {
    let head = ["tunnel", "sent", "", "received", "", "in flight", "waiting", "credit", "owed", "dropped", "marked"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for peer in &status.endpoint.peers {
        let is_used = |tunnel: &&TunnelStatus| tunnel.packets_sent + tunnel.packets_received + tunnel.waiting > 0;
        table.extend(peer.tunnels.iter().filter(is_used).map(|tunnel| {
            vec![
                format!("{} {}", peer.name, tunnel.eqif),
                count(tunnel.packets_sent),
                size(tunnel.bytes_sent),
                count(tunnel.packets_received),
                size(tunnel.bytes_received),
                size(tunnel.in_flight),
                size(tunnel.waiting),
                size(tunnel.credit),
                count(tunnel.owed),
                count(tunnel.dropped),
                count(tunnel.marked),
            ]
        }));
    }
    if table.len() == 1 { String::new() } else { "\n".to_owned() + &aligned(&table, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]) }
}

fn state(peer: &PeerStatus) -> &'static str {
    match (peer.unreachable, peer.established) {
        (true, _) => "unreachable",
        (false, true) => "up",
        (false, false) => "idle",
    }
}

/// Returns a table with aligned columns, those of `right` to the right.
fn aligned(table: &[Vec<String>], right: &[usize]) -> String {
    let columns = table.first().map_or(0, Vec::len);
    let width = |column: usize| table.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in table {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { 0 } else { GAP };
            // Writing to a string cannot fail.
            let _ = match right.contains(&column) {
                true => write!(line, "{:gap$}{cell:>width$}", ""),
                false => write!(line, "{:gap$}{cell:<width$}", ""),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn join(list: &[impl ToString]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a number with its digits in groups of three.
fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number of bytes, with three digits.
fn size(bytes: u64) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => {
            let value = bytes as f64 / unit as f64;
            let places = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
            format!("{value:.places$} {name}")
        }
        None => format!("{bytes} B"),
    }
}

fn round_trip(us: f64) -> String {
    if us < 1_000.0 { format!("{us:.0} us") } else { format!("{:.2} ms", us / 1_000.0) }
}

/// Returns the number of retransmissions, and their share.
fn resent(number: u64, all: u64) -> String {
    let percent = 100.0 * number as f64 / all.max(1) as f64;
    match number {
        0 => "0".to_owned(),
        _ if percent < 0.01 => format!("{} (<0.01%)", count(number)),
        _ => format!("{} ({percent:.2}%)", count(number)),
    }
}

/// Returns a time in its two greatest units.
fn span(time: Duration) -> String {
    let seconds = time.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, ..) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use expect_test::expect;
    use selvedge_tunnel::endpoint::Status;

    use super::*;

    #[test]
    fn a_status_can_be_read() {
        let counters = |pairs: &[(&str, u64)]| -> BTreeMap<String, u64> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
        };
        let tcp = TunnelStatus {
            eqif: "tcp".into(),
            waiting: 1_310_720,
            in_flight: 196_000,
            credit: 49_152,
            owed: 12,
            packets_sent: 1_204_311,
            bytes_sent: 52_340_000_000,
            packets_received: 602_120,
            bytes_received: 31_270_000,
            data_sent: 37_400_000,
            retransmissions: 1_204,
            requests: 31,
            dropped: 3,
            marked: 201,
        };
        let other =
            TunnelStatus { eqif: "other".into(), packets_sent: 12, bytes_sent: 1_008, ..TunnelStatus::default() };
        let peer = |name: &str, address: &str| PeerStatus {
            name: name.into(),
            address: address.into(),
            path_mtu: 1_472,
            ..PeerStatus::default()
        };
        let b = PeerStatus {
            established: true,
            round_trip_us: Some(118.4),
            tunnels: vec![tcp, other],
            ..peer("b", "192.0.2.2:49016")
        };
        let c = PeerStatus { unreachable: true, ..peer("storage-7", "[2001:db8::7]:49016") };
        let state = DaemonStatus {
            version: "0.1.0".into(),
            pid: 4_711,
            uptime_s: 93_784,
            device: "eqds0".into(),
            mtu: 1_396,
            inner_addresses: vec!["10.77.1.1/24".into(), "fd77:1::1/64".into()],
            listens: vec!["192.0.2.1:49016".into(), "[2001:db8::1]:49016".into()],
            paths: 16,
            segments: 64,
            cuts_udp: true,
            io: counters(&[
                ("inside-taken", 1_204_326),
                ("inside-given", 602_120),
                ("datagrams-sent", 37_411_009),
                ("send-calls", 2_004_900),
                ("datagrams-received", 9_302_111),
                ("datagrams-refused", 2),
            ]),
            last_refusal: Some("No route to host".into()),
            endpoint: Status {
                name: "a".into(),
                datagrams: counters(&[("accepted", 9_302_104), ("replayed", 7), ("forged", 0)]),
                dropped: counters(&[("no peer", 15)]),
                peers: vec![b, c, peer("d", "192.0.2.4:49016")],
            },
        };
        expect![[r#"
            host      a, up for 1 d 2 h, process 4711
            device    eqds0 (10.77.1.1/24, fd77:1::1/64), MTU 1396
            listens   UDP 192.0.2.1:49016, [2001:db8::1]:49016, 16 paths
            inside    1,204,326 packets sent, 602,120 received
            outside   37,411,009 datagrams sent (18.7 per call), 9,302,111 received
            refused   2 datagrams by the kernel outside, the last one for: No route to host
            datagrams accepted 9,302,104, replayed 7
            dropped   no peer 15

            peer       address              state        round trip  path MTU  in flight  waiting   retransmitted
            b          192.0.2.2:49016      up               118 us      1472     196 KB  1.31 MB  1,204 (<0.01%)
            storage-7  [2001:db8::7]:49016  unreachable           -      1472        0 B      0 B               0
            d          192.0.2.4:49016      idle                  -      1472        0 B      0 B               0

            tunnel        sent           received           in flight  waiting   credit  owed  dropped  marked
            b tcp    1,204,311  52.3 GB   602,120  31.3 MB     196 KB  1.31 MB  49.2 KB    12        3     201
            b other         12  1.01 KB         0      0 B        0 B      0 B      0 B     0        0       0
        "#]]
        .assert_eq(&status(&state));
    }

    #[test]
    fn numbers_are_short_and_readable() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let sizes = [0, 999, 1_000, 9_994, 65_536, 123_456, 999_999, 5_000_000_000];
        assert_eq!(sizes.map(size), ["0 B", "999 B", "1.00 KB", "9.99 KB", "65.5 KB", "123 KB", "1000 KB", "5.00 GB"]);
        assert_eq!(
            [59, 61, 3_700, 90_000].map(|s| span(Duration::from_secs(s))),
            ["59 s", "1 min 1 s", "1 h 1 min", "1 d 1 h"]
        );
        assert_eq!((resent(0, 0).as_str(), resent(3, 400).as_str()), ("0", "3 (0.75%)"));
    }
}
