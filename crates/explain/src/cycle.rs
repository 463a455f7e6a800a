//! PFC deadlocks: the cycle of ports that wait for each other, and the packets that wait there.

use std::collections::BTreeMap;

use selvedge_sim::record::FlowKey;
use selvedge_telemetry::Deadlock;
use selvedge_units::{Bytes, HostId, Instant, PortId};

use crate::direction::Direction;
use crate::pauses::Stop;
use crate::recording::Recording;

/// A cycle of paused ports, each of which waits until the next one sends. The run ends with the cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cycle {
    /// Time at which the cycle was found.
    pub at: Instant,
    /// Time since which none of the ports has sent anything, as far as it was observed.
    pub since: Instant,
    /// The ports, in the order of waiting.
    pub ports: Vec<Stuck>,
}

/// A port of a cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    /// The port.
    pub port: PortId,
    /// Time since which the port has been paused without interruption.
    pub paused: Option<Instant>,
    /// Bytes of the paused class that wait for the port.
    pub waiting: Bytes,
    /// Packets that wait for the port.
    pub packets: u64,
    /// Flows of the waiting packets, the flow with the most first.
    pub flows: Vec<Held>,
}

/// Packets of a flow that wait for a port, acknowledgements included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    /// Key of the flow, unless several flows share its queue pair.
    pub flow: Option<FlowKey>,
    /// Sender of the flow.
    pub src: HostId,
    /// Receiver of the flow.
    pub dst: HostId,
    /// Number of waiting packets.
    pub packets: u64,
    /// Time since which the first of the packets has waited.
    pub since: Instant,
}

impl Cycle {
    /// Returns the cycle of a deadlock whose ports `recording` watched.
    pub fn new(deadlock: &Deadlock, recording: &Recording) -> Self {
        let stuck = |(port, waiting)| {
            let paused = match recording.pauses.stop(port, u8::MAX) {
                Some(Stop::Paused(since)) => Some(since),
                Some(Stop::Down(_)) | None => None,
            };
            let packets = recording.standing.packets(port).count() as u64;
            Stuck { port, paused, waiting, packets, flows: held(recording, port) }
        };
        let ports = deadlock.cycle.iter().map(|hop| (hop.port, hop.waiting));
        Self { at: deadlock.at, since: deadlock.since, ports: ports.map(stuck).collect() }
    }
}

/// Returns the packets that wait for `port`, by flow.
fn held(recording: &Recording, port: PortId) -> Vec<Held> {
    let mut flows: BTreeMap<_, Held> = BTreeMap::new();
    for (since, packet) in recording.standing.packets(port) {
        let Some(direction) = Direction::of(packet) else { continue };
        let (src, dst) = (direction.sender(packet), direction.receiver(packet));
        let flow = recording.standing.flow((src, packet.qp));
        let held = flows.entry((src, dst, flow)).or_insert(Held { flow, src, dst, packets: 0, since: *since });
        held.packets += 1;
    }
    let mut flows: Vec<Held> = flows.into_values().collect();
    flows.sort_by_key(|held| (std::cmp::Reverse(held.packets), held.since, held.flow));
    flows
}
