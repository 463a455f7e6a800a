//! What ports are called, and what is at their other ends.

use selvedge_telemetry::{PortInfo, PortKind};
use selvedge_units::{HostId, PortId};

/// The ports of a fabric by name.
#[derive(Clone, Debug)]
pub struct Names {
    ports: Vec<PortInfo>,
}

impl Names {
    /// The names of these ports, which are numbered in their order; hosts come first.
    pub fn new(ports: Vec<PortInfo>) -> Self {
        Self { ports }
    }
    /// A host's name.
    pub fn host(&self, host: HostId) -> &str {
        &self.ports[host.index()].node
    }
    /// A host's port.
    pub fn host_port(&self, host: HostId) -> PortId {
        self.ports[host.index()].id
    }
    /// A port as "node -> peer".
    pub fn port(&self, port: PortId) -> String {
        let info = &self.ports[port.index()];
        format!("{} -> {}", info.node, info.peer)
    }
    /// A port as the place where packets enter: "node, from peer".
    pub fn entry(&self, port: PortId) -> String {
        let info = &self.ports[port.index()];
        format!("{}, from {}", info.node, info.peer)
    }
    /// The port at the other end.
    pub fn peer(&self, port: PortId) -> PortId {
        self.ports[port.index()].peer_id
    }
    /// Whether the port belongs to a host.
    pub fn is_host(&self, port: PortId) -> bool {
        self.ports[port.index()].kind == PortKind::Host
    }
}
