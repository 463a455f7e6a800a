//! State of the daemon.

use std::collections::BTreeMap;

use selvedge_tunnel::endpoint::Status;

/// State of the daemon, as `selvedge eqds status --json` prints it.
#[derive(Clone, PartialEq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct DaemonStatus {
    /// Version of the program.
    pub version: String,
    /// Process.
    pub pid: u32,
    /// Seconds since the start.
    pub uptime_s: u64,
    /// Device inside.
    pub device: String,
    /// MTU of the device in bytes.
    pub mtu: u32,
    /// Addresses of the device, with the lengths of their prefixes.
    pub inner_addresses: Vec<String>,
    /// Addresses and port outside on which the daemon listens.
    pub listens: Vec<String>,
    /// Number of paths to each peer.
    pub paths: u32,
    /// Most datagrams that one system call sends: 1 where the kernel does not cut them.
    pub segments: u32,
    /// Whether the kernel leaves long UDP datagrams uncut at the device inside.
    pub cuts_udp: bool,
    /// Packets, datagrams and system calls at the device and the sockets, by kind.
    pub io: BTreeMap<String, u64>,
    /// Error of the last datagram that the kernel refused to send, if any.
    pub last_refusal: Option<String>,
    /// Tunnels.
    #[serde(flatten)]
    pub endpoint: Status,
}
