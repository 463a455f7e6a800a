//! Packets that wait to leave through watched ports.

use std::collections::{BTreeMap, VecDeque};
use std::mem::discriminant;

use selvedge_sim::record::FlowKey;
use selvedge_telemetry::FlowRow;
use selvedge_units::{HostId, Instant, PortId, QpNumber};
use selvedge_wire::Packet;

/// The packets that wait at the watched ports.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    ports: BTreeMap<PortId, VecDeque<(Instant, Packet)>>,
    /// Flow of each queue pair; `None` where several flows share one.
    owners: BTreeMap<(HostId, QpNumber), Option<FlowKey>>,
}

impl Standing {
    pub(crate) fn at(ports: impl IntoIterator<Item = PortId>) -> Self {
        let ports = ports.into_iter().map(|port| (port, VecDeque::new())).collect();
        Self { ports, owners: BTreeMap::new() }
    }

    pub(crate) fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.ports.keys().copied()
    }

    /// Returns the packets at `port`, each with the time since which it waits there.
    pub(crate) fn packets(&self, port: PortId) -> impl Iterator<Item = &(Instant, Packet)> {
        self.ports.get(&port).into_iter().flatten()
    }

    /// Returns the flow of a queue pair, if the queue pair has only one.
    pub(crate) fn flow(&self, pair: (HostId, QpNumber)) -> Option<FlowKey> {
        self.owners.get(&pair).copied().flatten()
    }

    pub(crate) fn on_started(&mut self, flow: &FlowRow, pairs: impl Iterator<Item = (HostId, QpNumber)>) {
        if self.ports.is_empty() {
            return;
        }
        for pair in pairs {
            let shared = self.owners.contains_key(&pair);
            self.owners.insert(pair, (!shared).then_some(FlowKey::from(flow)));
        }
    }

    pub(crate) fn on_queued(&mut self, at: Instant, port: PortId, packet: &Packet) {
        if let Some(queue) = self.ports.get_mut(&port) {
            queue.push_back((at, *packet));
        }
    }

    /// Records that a packet no longer waits for `port`.
    pub(crate) fn on_gone(&mut self, port: PortId, packet: &Packet) {
        if let Some(queue) = self.ports.get_mut(&port) {
            remove(queue, packet);
        }
    }

    /// Records that a packet was dropped and waits nowhere any longer.
    pub(crate) fn on_dropped(&mut self, packet: &Packet) {
        self.ports.values_mut().for_each(|queue| remove(queue, packet));
    }
}

fn remove(queue: &mut VecDeque<(Instant, Packet)>, packet: &Packet) {
    let name = |packet: &Packet| (packet.src, packet.dst, packet.qp, packet.sent_at, discriminant(&packet.repr));
    if let Some(at) = queue.iter().position(|(_, other)| name(other) == name(packet)) {
        queue.remove(at);
    }
}
