//! Counters of a port, read live.
//!
//! `counters` are those of the interface, all its packets included; `hw_counters` are those of the process that reads
//! them, since each process has a NIC of its own.

use std::fs;

use selvedge_dataplane::rnic::{Adapter, Counters, Device};

/// InfiniBand's names of an interface's counters.
pub(super) const OF_INTERFACE: [&str; 17] = [
    "VL15_dropped",
    "excessive_buffer_overrun_errors",
    "link_downed",
    "link_error_recovery",
    "local_link_integrity_errors",
    "multicast_rcv_packets",
    "port_rcv_constraint_errors",
    "port_rcv_data",
    "port_rcv_errors",
    "port_rcv_packets",
    "port_rcv_remote_physical_errors",
    "port_rcv_switch_relay_errors",
    "port_xmit_constraint_errors",
    "port_xmit_data",
    "port_xmit_discards",
    "port_xmit_packets",
    "port_xmit_wait",
];
/// Names of a process's counters; the first two exist in soft RoCE, too.
pub(super) const OF_PROCESS: [&str; 5] = ["sent_pkts", "rcvd_pkts", "damaged_pkts", "refused_pkts", "passed_on"];

/// Returns the content of the counter file at a path without links; `None` if there is none.
pub(super) fn read(devices: &[&Device], path: &str) -> Option<String> {
    let (port, name) = path.rsplit_once('/')?;
    let (port, folder) = port.rsplit_once('/')?;
    let device = port.strip_suffix("/ports/1")?.rsplit_once('/')?.1;
    let device = devices.iter().find(|known| known.name == device)?;
    let value = match folder {
        "counters" if OF_INTERFACE.contains(&name) => of_interface(&device.interface, name),
        "hw_counters" if OF_PROCESS.contains(&name) => {
            let counters = Adapter::existing().and_then(|adapter| adapter.counters().ok());
            of_process(&counters.unwrap_or_default(), name)
        }
        _ => return None,
    };
    Some(format!("{value}\n"))
}

fn of_interface(interface: &str, name: &str) -> u64 {
    /// Bytes of a word: the specification counts data in words.
    const WORD: u64 = 4;
    let known = |file: &str| {
        let text = fs::read_to_string(format!("/sys/class/net/{interface}/{file}")).unwrap_or_default();
        text.trim().parse::<u64>().unwrap_or(0)
    };
    match name {
        "port_rcv_data" => known("statistics/rx_bytes") / WORD,
        "port_xmit_data" => known("statistics/tx_bytes") / WORD,
        "port_rcv_packets" => known("statistics/rx_packets"),
        "port_xmit_packets" => known("statistics/tx_packets"),
        "multicast_rcv_packets" => known("statistics/multicast"),
        "port_rcv_errors" => known("statistics/rx_errors"),
        "port_xmit_discards" => known("statistics/tx_dropped"),
        "link_downed" => known("carrier_down_count"),
        // The other counters have no equivalent in Ethernet.
        _ => 0,
    }
}

fn of_process(counters: &Counters, name: &str) -> u64 {
    match name {
        "sent_pkts" => counters.sent,
        "rcvd_pkts" => counters.received,
        "damaged_pkts" => counters.damaged,
        "refused_pkts" => counters.refused,
        _ => counters.passed_on,
    }
}
