//! The network between two processes: the scenario's switches, of whose hosts two are real.

use selvedge_dataplane::impair::{Class, classify};
use selvedge_dataplane::switch::{Arrival, Engine, FabricEngine, Leaving};
use selvedge_switch::{Change, Parts};
use selvedge_telemetry::PortRow;
use selvedge_units::{HostId, Instant};
use selvedge_wire::{Ethernet, Pfc};

/// Engine of a network with two ports, at two of its hosts. It carries RoCE alone: frames of other kinds, which hosts
/// send by themselves and the simulator's do not, would change which packets are lost.
pub(super) struct Between {
    pub(super) fabric: FabricEngine,
    /// Hosts at the ports.
    hosts: [usize; 2],
    /// Failures and repairs of links, latest first, until the first data packet: their times count from it.
    changes: Vec<Change>,
    /// Packets that hosts have sent.
    pub(super) sent: Packets,
    /// Packets that hosts were given.
    pub(super) delivered: Packets,
}

/// Numbers of packets by kind.
#[derive(Clone, Copy, Default)]
pub(super) struct Packets {
    pub(super) data: u64,
    pub(super) acks: u64,
}

impl Between {
    pub(super) fn new(mut parts: Parts, hosts: [HostId; 2]) -> Self {
        Self {
            changes: std::mem::take(&mut parts.changes),
            fabric: FabricEngine::new(parts, Vec::new()),
            hosts: hosts.map(HostId::index),
            sent: Packets::default(),
            delivered: Packets::default(),
        }
    }
}

impl Packets {
    /// Counts a frame; returns whether it has a RoCE packet.
    fn count(&mut self, frame: &[u8]) -> bool {
        match classify(frame.get(Ethernet::LENGTH..).unwrap_or_default()) {
            Class::Data => self.data += 1,
            Class::Ack => self.acks += 1,
            Class::Management => {}
            Class::Other => return false,
        }
        true
    }
}

impl Engine for Between {
    fn handle_packet(&mut self, now: Instant, arrival: Arrival<'_>) {
        if self.sent.count(arrival.frame) {
            if self.sent.data > 0 && !self.changes.is_empty() {
                self.fabric.schedule(now, std::mem::take(&mut self.changes));
            }
            let [from, to] = [arrival.from, arrival.to].map(|port| self.hosts[port]);
            self.fabric.handle_packet(now, Arrival { from, to, ..arrival });
        }
    }

    fn handle_pause(&mut self, now: Instant, port: usize, pause: &Pfc) {
        self.fabric.handle_pause(now, self.hosts[port], pause);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Leaving<'_>> {
        let Leaving { port, frame } = self.fabric.poll_transmit(now)?;
        self.delivered.count(frame);
        let port = usize::from(port != self.hosts[0]);
        Some(Leaving { port, frame })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.fabric.poll_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.fabric.handle_timeout(now);
    }

    fn sample(&mut self, now: Instant, rows: &mut Vec<PortRow>) {
        self.fabric.sample(now, rows);
    }

    fn visit_counts(&self, each: &mut dyn FnMut(&str, &'static str, u64)) {
        self.fabric.visit_counts(each);
    }
}
