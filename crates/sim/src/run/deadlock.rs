//! Detection of runs that would never end: PFC deadlocks, and traffic that circulates without progress.
//!
//! A paused port waits until the switch at its other end has buffer space. The switch gains space when the packets that
//! came from the port leave through its outputs, which may be paused themselves. Where some paused ports have sent
//! nothing since the last check, and all outputs that they wait for are among them, nothing there will ever move again.
//!
//! Time during which a link loses one packet after the other does not count as a stall, however often senders repeat
//! them: a random loss process lets packets pass at some time.

use std::collections::BTreeMap;
use std::ops::Deref;

use selvedge_switch::port::of_bits;
use selvedge_telemetry::{Deadlock, PausedHop};
use selvedge_units::{Bytes, Instant, PortId};

use super::stall::{BURST, StallLimits};
use crate::net::partition::Partition;
use crate::topology::Node;

/// Periodic check of the whole fabric.
pub(crate) struct Watch {
    next: Instant,
    /// Time of the last check, and the frames that each port with a paused class had sent by then.
    last: Instant,
    frames: BTreeMap<PortId, u64>,
    /// Payload accepted so far, and the time since when it has not changed.
    goodput: u64,
    since: Instant,
    /// Number of events before the last check.
    events: u64,
    limits: StallLimits,
}

/// Reason why a run has to end.
pub(crate) struct EndReason {
    /// Cycle of a deadlock; `None` if nothing has arrived for too long.
    pub(crate) deadlock: Option<Deadlock>,
}

/// Class of a port in the fabric: the partition, the port's number there, and the class.
type PortClass = (usize, u32, u8);

impl Watch {
    pub(crate) fn new(limits: StallLimits) -> Self {
        Self {
            next: Instant::ZERO.saturating_add(limits.look),
            last: Instant::ZERO,
            frames: BTreeMap::new(),
            goodput: 0,
            since: Instant::ZERO,
            events: 0,
            limits,
        }
    }

    pub(crate) fn next_check(&self) -> Instant {
        self.next
    }

    /// Returns a reason to end the run, if there is one. `hopeful`: a link will still change, which may help. Nothing
    /// happens before `begin`.
    pub(crate) fn check<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        now: Instant,
        partitions: &[P],
        hopeful: bool,
        begin: Instant,
    ) -> Option<EndReason> {
        self.next = now.saturating_add(self.limits.look);
        let events = partitions.iter().map(|p| p.net.events).sum();
        let still = std::mem::replace(&mut self.events, events) == events;
        let goodput = partitions.iter().flat_map(|p| p.edge.hosts.iter()).map(|host| host.nic.stats().goodput).sum();
        let waiting =
            partitions.iter().any(|p| p.flows_started > 0) && partitions.iter().all(|p| !p.expects_arrivals());
        if goodput != self.goodput || !waiting || hopeful {
            self.goodput = goodput;
            self.since = now;
        } else if self.meets_burst(now, partitions) {
            self.since = self.since.saturating_add(now.since(self.last)).min(now);
        }
        let cycle = self.find_cycle(partitions);
        let since = std::mem::replace(&mut self.last, now);
        if let Some(cycle) = cycle {
            let deadlock = Deadlock { at: now, since, cycle };
            return Some(EndReason { deadlock: Some(deadlock) });
        }
        // Hosts may compute for days, and senders wait for long timeouts: all checks until then but the last one would
        // see the same state, and are skipped.
        let end = self.limits.end(self.since);
        let stall = if self.since == now { Instant::NEVER } else { end };
        let until = begin.min(stall);
        if still && until > self.next {
            let look = self.limits.look;
            self.next = now.saturating_add(look * ((until.since(now).as_ps() - 1) / look.as_ps()));
        }
        (now >= end).then_some(EndReason { deadlock: None })
    }

    /// Returns whether some link is at present losing everything that is sent over it.
    fn meets_burst<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &self,
        now: Instant,
        partitions: &[P],
    ) -> bool {
        let since = Instant::from_ps(now.as_ps().saturating_sub(self.limits.silence.as_ps()));
        let mut losses = partitions.iter().flat_map(|p| &p.edge.losses).filter_map(Option::as_deref);
        losses.any(|loss| loss.is_in_burst(BURST, since))
    }

    /// Returns a cycle of ports that wait for each other and have not moved since the last check.
    fn find_cycle<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
        &mut self,
        partitions: &[P],
    ) -> Option<Vec<PausedHop>> {
        let mut frames = BTreeMap::new();
        // Ordered by port, so that the result does not depend on how the fabric is cut.
        let mut stuck: BTreeMap<(PortId, u8), PortClass> = BTreeMap::new();
        for (index, partition) in partitions.iter().enumerate() {
            for (at, port) in (0..).zip(partition.net.egress.iter()) {
                // Lossless classes that wait and are paused.
                let held = port.waiting & port.paused & partition.net.params.accounting.lossless;
                if held == 0 || port.is_host {
                    continue;
                }
                let extra = &partition.net.extras[at];
                // Pause frames still leave through a paused port, but do not count as progress.
                let sent = port.frames - extra.pause_frames;
                frames.insert(extra.id, sent);
                // Either nothing has left since the last check, or the class has been paused throughout.
                let idle = self.frames.get(&extra.id) == Some(&sent);
                for class in of_bits(held).filter(|&class| idle || extra.pauses[class].since <= self.last) {
                    let class = class as u8;
                    stuck.insert((extra.id, class), (index, at, class));
                }
            }
        }
        self.frames = frames;
        let mut waits: BTreeMap<PortClass, Vec<PortClass>> =
            stuck.values().map(|&place| (place, waits_for(place, partitions))).collect();
        // A port that waits for an output that is not stuck may be released by it. The ports that are left after
        // removing all such ports can only release each other.
        loop {
            let hopeless =
                |next: &Vec<PortClass>| !next.is_empty() && next.iter().all(|place| waits.contains_key(place));
            let hopeful: Vec<PortClass> =
                waits.iter().filter(|(_, next)| !hopeless(next)).map(|(place, _)| *place).collect();
            if hopeful.is_empty() {
                break;
            }
            hopeful.iter().for_each(|place| drop(waits.remove(place)));
        }
        let first = *stuck.values().find(|place| waits.contains_key(place))?;
        // Following any of the outputs that a port waits for leads into a cycle.
        let mut path = vec![first];
        loop {
            let next = waits[path.last()?][0];
            if let Some(begin) = path.iter().position(|place| *place == next) {
                return Some(path[begin..].iter().map(|&place| describe(place, partitions)).collect());
            }
            path.push(next);
        }
    }
}

/// Returns the outputs that hold packets of the paused class which came from the paused port `place`, each with that
/// class.
fn waits_for<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
    (index, at, class): PortClass,
    partitions: &[P],
) -> Vec<PortClass> {
    let port = &partitions[index].net.egress[at];
    let (there, peer) = (&partitions[port.peer_partition as usize], port.peer);
    let entry = &there.net.egress[peer];
    if entry.is_host {
        return Vec::new();
    }
    let switch = &there.net.switches[entry.owner];
    let input = peer - switch.facts.first_port;
    let holds = |&out: &u32| {
        let queue = &there.net.queues[switch.facts.queue(&there.net.egress[out], class, port.peer_port)];
        queue.packets(&there.net.store).any(|packet| u32::from(packet.port) == input)
    };
    switch.port_range().filter(holds).map(|out| (port.peer_partition as usize, out, class)).collect()
}

fn describe<P: Deref<Target = Partition<RECORDED>>, const RECORDED: bool>(
    (index, at, class): PortClass,
    partitions: &[P],
) -> PausedHop {
    let partition = &partitions[index];
    let port = &partition.net.egress[at];
    let name = |partition: &Partition<RECORDED>, at: u32| {
        let port = &partition.net.egress[at];
        let node = if port.is_host {
            Node::Host(partition.edge.hosts[port.owner].id)
        } else {
            Node::Switch(partition.net.switches[port.owner].id)
        };
        partition.edge.fabric.paths.graph().name(node).to_owned()
    };
    PausedHop {
        port: partition.net.extras[at].id,
        node: name(partition, at),
        paused_by: name(&partitions[port.peer_partition as usize], port.peer),
        waiting: Bytes::new(partition.net.lines_of(at)[usize::from(class)].bytes),
    }
}
