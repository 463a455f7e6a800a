//! Second NICs, on networks inside servers.

use selvedge_units::HostId;

use super::{Graph, Node, Ports};

/// NICs that two hosts use towards each other, where some have a second one ([`Graph::inner`]).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct InnerNics {
    /// Second NIC of each host and the switch that it is attached to. Empty: no host has one.
    nics: Vec<Option<(HostId, Node)>>,
}

impl InnerNics {
    /// Returns the second NICs of `graph`, whose ports are `ports`.
    pub fn new(graph: &Graph, ports: &Ports) -> Self {
        if graph.inner.is_empty() {
            return Self { nics: Vec::new() };
        }
        let mut nics = vec![None; graph.hosts.len()];
        for (nic, host) in graph.inner_nics() {
            nics[host.index()] = Some((nic, ports.of_host(nic).peer));
        }
        Self { nics }
    }

    /// Returns the NICs of a flow from `src` to `dst`: the second ones of both where these are on one switch, else the
    /// first.
    #[inline]
    pub fn between(&self, src: HostId, dst: HostId) -> (HostId, HostId) {
        if self.nics.is_empty() {
            return (src, dst);
        }
        match (self.nics[src.index()], self.nics[dst.index()]) {
            (Some((from, switch)), Some((to, other))) if switch == other => (from, to),
            _ => (src, dst),
        }
    }

    /// Returns the second NIC of a host and the switch that it is attached to, if the host has one.
    pub fn of(&self, host: HostId) -> Option<(HostId, Node)> {
        self.nics.get(host.index()).copied().flatten()
    }

    /// Returns whether flows between these two hosts stay inside their server.
    pub fn are_together(&self, a: HostId, b: HostId) -> bool {
        self.between(a, b) != (a, b)
    }
}
