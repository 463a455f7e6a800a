//! Names and peers of ports.

use selvedge_telemetry::{PortInfo, PortKind};
use selvedge_units::{HostId, PortId};

/// The ports of a fabric by name.
#[derive(Clone, Debug)]
pub struct Names {
    ports: Vec<PortInfo>,
}

impl Names {
    /// Creates the names of these ports, which are numbered in their order; hosts come first.
    pub fn new(ports: Vec<PortInfo>) -> Self {
        Self { ports }
    }
    /// Returns the name of a host.
    pub fn host(&self, host: HostId) -> &str {
        &self.ports[host.index()].node
    }
    /// Returns the port of a host.
    pub fn host_port(&self, host: HostId) -> PortId {
        self.ports[host.index()].id
    }
    /// Returns the name of a port as "node -> peer".
    pub fn port(&self, port: PortId) -> String {
        let info = &self.ports[port.index()];
        format!("{} -> {}", info.node, info.peer)
    }
    /// Returns the name of a port as the place where packets enter: "node, from peer".
    pub fn entry(&self, port: PortId) -> String {
        let info = &self.ports[port.index()];
        format!("{}, from {}", info.node, info.peer)
    }
    /// Returns the port at the other end of the link.
    pub fn peer(&self, port: PortId) -> PortId {
        self.ports[port.index()].peer_id
    }
    /// Returns whether the port belongs to a host.
    pub fn is_host(&self, port: PortId) -> bool {
        self.ports[port.index()].kind == PortKind::Host
    }
}
