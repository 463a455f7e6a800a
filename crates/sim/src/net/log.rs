//! Log of a recorded partition: events of the flows in focus.
//!
//! Code of this module runs only in recorded runs: callers check `RECORDED` first, which is known at compile time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use selvedge_nic::REQUESTS;
use selvedge_switch::descriptor::{Descriptor, Slot};
use selvedge_switch::{Switches, busy_time};
use selvedge_telemetry::{DropReason, FlowRow, Probe, Trace};
use selvedge_units::{Bytes, Duration, HostId, Instant, QpNumber};
use selvedge_wire::netrt::Message;
use selvedge_wire::verbs::Headers;
use selvedge_wire::{Packet, Repr};

use super::edge::Edge;
use crate::record::{Chosen, Event, FlowKey, Focus, What};
use crate::topology::Node;

/// Queue pair: the host that sends its data, and its number there.
pub(crate) type QueuePair = (HostId, QpNumber);

/// Events since the last window, and the queue pairs to follow.
#[derive(Default)]
pub(crate) struct Log {
    pub(crate) focus: Arc<Focus>,
    pub(crate) events: Vec<Event>,
    /// Queue pairs of the flows in focus, including those of other partitions.
    pub(crate) followed: Followed,
    /// Followed queue pairs that the other partitions have not been told of. No packet can reach these partitions
    /// before the end of the window, when they are told.
    pub(crate) fresh: Vec<QueuePair>,
    /// Slot of each followed queue pair that still sends in its NIC, and the queue pair of the first of its flows.
    slots: BTreeMap<QueuePair, (u32, QpNumber)>,
    heard: EngineReports,
    /// Bytes by input. Kept to reuse its memory.
    by_input: Vec<u64>,
}

/// Reports of the engines during the present call.
#[derive(Default)]
struct EngineReports {
    /// Queue pairs that the NIC has named, in order.
    named: Vec<QpNumber>,
    /// Reports, with the queue pair that each is about, if it was named.
    traces: Vec<(Option<QpNumber>, Trace)>,
}

impl Probe for EngineReports {
    fn on_queue_pair(&mut self, qp: QpNumber) {
        self.named.push(qp);
    }
    fn on_trace(&mut self, _: Instant, event: &Trace) {
        self.traces.push((self.named.last().copied(), *event));
    }
}

impl Log {
    /// Returns the listener for the engines' reports, in a recorded run.
    #[inline]
    pub(crate) fn probe<const RECORDED: bool>(&mut self) -> Option<&mut dyn Probe> {
        if RECORDED { Some(&mut self.heard) } else { None }
    }

    /// Discards the engines' latest reports, which lead to no packet: of a standard Read, responses count as sent when
    /// they are requested.
    #[cold]
    pub(crate) fn ignore_heard(&mut self) {
        self.heard.traces.clear();
    }

    /// Returns whether a packet of a queue pair with this number may be in focus: `false` for nearly all packets.
    #[inline]
    fn may_see(&self, qp: QpNumber) -> bool {
        self.followed.may_have(qp) || self.focus.flows == Chosen::All || self.focus.ports.has_any()
    }

    fn follows(&self, pair: QueuePair) -> bool {
        self.followed.contains(pair) || self.focus.flows == Chosen::All
    }
}

/// Queue pairs that are followed. The set is asked about each packet on each hop, and nearly always answers no.
#[derive(Default)]
pub(crate) struct Followed {
    pairs: BTreeSet<QueuePair>,
    /// Hashed bit per pair, of [`Followed::BITS`] bits: a pair whose bit is not set is not in the set.
    marks: [u64; Self::BITS / 64],
    /// Hashed bit per number of a pair, regardless of the host.
    numbers: [u64; 16],
}

impl Followed {
    const BITS: usize = 2_048;

    fn insert(&mut self, pair: QueuePair) {
        let (word, bit) = Self::mark(pair);
        self.marks[word] |= bit;
        let (word, bit) = Self::mark_of_number(pair.1);
        self.numbers[word] |= bit;
        self.pairs.insert(pair);
    }

    pub(crate) fn extend(&mut self, pairs: &[QueuePair]) {
        pairs.iter().for_each(|&pair| self.insert(pair));
    }

    #[inline]
    fn contains(&self, pair: QueuePair) -> bool {
        let (word, bit) = Self::mark(pair);
        self.marks[word] & bit != 0 && self.pairs.contains(&pair)
    }

    /// Returns whether a pair with this number may be in the set.
    #[inline]
    fn may_have(&self, qp: QpNumber) -> bool {
        let (word, bit) = Self::mark_of_number(qp);
        self.numbers[word] & bit != 0
    }

    #[inline]
    fn mark_of_number(QpNumber(qp): QpNumber) -> (usize, u64) {
        ((qp >> 6) as usize % 16, 1 << (qp & 63))
    }

    /// Returns the word and the bit of a pair.
    #[inline]
    fn mark((HostId(host), QpNumber(qp)): QueuePair) -> (usize, u64) {
        let hash = (u64::from(host) << 32 | u64::from(qp)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = (hash >> (u64::BITS - Self::BITS.ilog2())) as usize;
        (place / 64, 1 << (place % 64))
    }
}

/// Returns the queue pair that a packet belongs to.
pub(crate) fn pair_of(packet: &Packet) -> Option<QueuePair> {
    match packet.repr {
        Repr::Data(_) | Repr::EqdsData(_) => Some((packet.src, packet.qp)),
        Repr::Control(control) if control.to_receiver => Some((packet.src, packet.qp)),
        Repr::Ack(_) | Repr::HoleNack(_) | Repr::Cnp | Repr::Control(_) | Repr::EqdsControl(_) => {
            Some((packet.dst, packet.qp))
        }
        Repr::Pause(_) => None,
        Repr::NetRt(message) => match message.message() {
            Message::Request(_) => Some((packet.dst, packet.qp)),
            Message::Unfulfilled(_) => Some((packet.src, packet.qp)),
        },
        Repr::Tcp(tcp) => Some((if tcp.is_backward() { packet.dst } else { packet.src }, packet.qp)),
    }
}

impl<const RECORDED: bool> Edge<RECORDED> {
    fn write(&mut self, net: &Switches, node: Node, what: What) {
        if self.log.focus.covers(net.now) {
            self.log.events.push(Event { at: net.now, node, what });
        }
    }

    /// Returns the node that owns port `at`.
    fn owner_of(&self, net: &Switches, at: u32) -> Node {
        let port = &net.egress[at];
        if port.is_host { Node::Host(self.hosts[port.owner].id) } else { Node::Switch(net.switches[port.owner].id) }
    }

    /// Returns whether a packet at one of these ports is in focus.
    #[inline]
    fn sees(&self, net: &Switches, ports: &[u32], packet: &Packet) -> bool {
        self.log.may_see(packet.qp) && self.sees_in_full(net, ports, packet)
    }

    fn sees_in_full(&self, net: &Switches, ports: &[u32], packet: &Packet) -> bool {
        pair_of(packet).map_or(self.log.focus.flows == Chosen::All, |pair| self.log.follows(pair))
            || self.log.focus.ports.has_any() && ports.iter().any(|&at| self.is_watched(net, at))
    }

    fn is_watched(&self, net: &Switches, at: u32) -> bool {
        self.log.focus.ports.contains(&net.extras[at].id)
    }

    /// Returns the packet in `slot` at one of these ports if it is in focus. All packets of a train belong to one queue
    /// pair, so the first of them is enough.
    #[inline]
    fn seen(&self, net: &Switches, ports: &[u32], slot: Slot) -> Option<Packet> {
        self.sees(net, ports, self.pool.first(slot).0).then(|| self.pool.get(slot))
    }

    /// Returns the headers of a packet of an application's queue pair.
    fn headers_of(&self, packet: &Packet, slot: Slot) -> Option<Headers> {
        (packet.slot == REQUESTS).then(|| self.records.headers(slot))
    }

    /// Returns how long port `at` has been transmitting.
    fn busy(&self, net: &Switches, at: u32) -> Duration {
        busy_time(&net.egress[at], net.extras[at].rate, net.params.gap, net.now)
    }

    /// Logs that port `at`, which is free, begins to send a packet. `serialisation` includes the time that a NIC takes
    /// to begin.
    #[cold]
    pub(crate) fn note_sent(&mut self, net: &Switches, at: u32, slot: Slot, serialisation: Duration) {
        if let Some(packet) = self.seen(net, &[at], slot) {
            let (port, extra) = (&net.egress[at], &net.extras[at]);
            let arrives = net.now + serialisation + port.delay;
            let (busy, port, headers) = (self.busy(net, at), extra.id, self.headers_of(&packet, slot));
            let waiting = Bytes::new(net.lines[net.line_of(at, packet.class)].bytes);
            self.write(
                net,
                self.owner_of(net, at),
                What::Sent { port, packet, headers, serialisation, arrives, busy, waiting },
            );
        }
    }

    /// Logs that the last bit of a packet has reached port `at`.
    #[cold]
    pub(crate) fn note_arrived(&mut self, net: &Switches, at: u32, slot: Slot) {
        if let Some(packet) = self.seen(net, &[at], slot) {
            let (port, headers) = (net.extras[at].id, self.headers_of(&packet, slot));
            self.write(net, self.owner_of(net, at), What::Arrived { port, packet, headers });
        }
    }

    /// Logs that a packet that entered through port `at` has begun to wait for port `out`.
    #[cold]
    pub(crate) fn note_queued(&mut self, net: &Switches, at: u32, out: u32, slot: Slot) {
        if let Some(packet) = self.seen(net, &[out, at], slot) {
            let (port, ingress) = (net.extras[out].id, net.extras[at].id);
            let line = &net.lines[net.line_of(out, packet.class)];
            let (ahead, busy) = (Bytes::new(line.bytes - u64::from(packet.frame)), self.busy(net, out));
            self.write(net, self.owner_of(net, out), What::Queued { port, packet, ingress, ahead, busy });
        }
    }

    /// Logs that a packet that entered through port `at` and waits for port `out` has been trimmed; `before` describes
    /// the whole packet.
    #[cold]
    pub(crate) fn note_trimmed(&mut self, net: &Switches, at: u32, out: u32, before: &Descriptor) {
        let packet = self.pool.get(before.slot);
        if self.sees(net, &[out, at], &packet) {
            let (port, ingress) = (net.extras[out].id, net.extras[at].id);
            let waiting = Bytes::new(net.lines[net.line_of(out, before.class)].bytes);
            let what = What::Trimmed { port, packet, ingress, class: before.class, waiting };
            self.write(net, self.owner_of(net, out), what);
        }
    }

    /// Logs that a packet that entered through port `at` has been dropped.
    #[cold]
    pub(crate) fn note_dropped(&mut self, net: &Switches, at: u32, packet: &Packet, reason: DropReason) {
        if self.sees(net, &[at], packet) {
            let port = net.extras[at].id;
            self.write(net, self.owner_of(net, at), What::Dropped { port, packet: *packet, reason });
        }
    }

    /// Logs that the set of classes that port `at` may send has changed.
    #[cold]
    pub(crate) fn note_paused(&mut self, net: &Switches, at: u32) {
        if self.log.focus.pauses || self.is_watched(net, at) {
            let what = What::Paused { port: net.extras[at].id, classes: net.egress[at].paused };
            self.write(net, self.owner_of(net, at), what);
        }
    }

    /// Logs that the link at port `at` has gone down or come back.
    #[cold]
    pub(crate) fn note_link(&mut self, net: &Switches, at: u32, up: bool) {
        if self.log.focus.pauses || self.is_watched(net, at) {
            self.write(net, self.owner_of(net, at), What::Link { port: net.extras[at].id, up });
        }
    }

    /// Logs that input `at` of a switch has filled up with a packet of `frame` bytes for port `out`.
    #[cold]
    pub(crate) fn note_filled(&mut self, net: &Switches, at: u32, out: u32, frame: u64) {
        if !self.log.focus.pauses && !self.is_watched(net, at) {
            return;
        }
        let (node, ports) = (self.owner_of(net, at), net.switches[net.egress[at].owner].port_range());
        let mut by_input = std::mem::take(&mut self.log.by_input);
        for output in ports {
            by_input.clear();
            self.add_waiting_for(net, output, &mut by_input);
            let input = (at - net.switches[net.egress[at].owner].facts.first_port) as usize;
            if output == out {
                // The packet that filled the input is in no queue yet.
                by_input.resize(by_input.len().max(input + 1), 0);
                by_input[input] += frame;
            }
            if let Some(&held) = by_input.get(input).filter(|&&held| held > 0) {
                let what = What::Filled {
                    port: net.extras[at].id,
                    output: net.extras[output].id,
                    held: Bytes::new(held),
                    waiting: Bytes::new(by_input.iter().sum()),
                    inputs: by_input.iter().filter(|&&held| held > 0).count() as u32,
                };
                self.write(net, node, what);
            }
        }
        self.log.by_input = by_input;
    }

    /// Adds up the bytes that wait for port `out` of a switch, by the number of their input port at the switch.
    fn add_waiting_for(&self, net: &Switches, out: u32, by_input: &mut Vec<u64>) {
        let owner = net.egress[out].owner;
        let switch = &net.switches[owner];
        for queue in net.queues.part(net.egress[out].first_queue, net.params.classes * switch.facts.per_line) {
            for packet in queue.packets(&net.store) {
                let input = usize::from(packet.port);
                if input >= by_input.len() {
                    by_input.resize(input + 1, 0);
                }
                by_input[input] += u64::from(packet.frame);
            }
        }
    }

    /// Logs that a flow begins at a host of this partition.
    #[cold]
    pub(crate) fn note_flow_started(&mut self, net: &Switches, host: u32, flow: FlowRow, qp: QpNumber, slot: u32) {
        let state = &self.hosts[host];
        let (id, queue_pairs) = (state.id, state.nic.queue_pairs(slot, qp));
        let started = What::FlowStarted { flow, qp, queue_pairs, peer: None };
        if self.log.focus.flows.contains(&FlowKey::from(&flow)) {
            for pair in (0..queue_pairs).map(|n| (id, QpNumber(qp.0.wrapping_add(n)))) {
                self.log.slots.insert(pair, (slot, qp));
                if self.log.focus.flows != Chosen::All {
                    self.log.followed.insert(pair);
                    self.log.fresh.push(pair);
                }
            }
            self.write(net, Node::Host(id), started);
            self.note_held(net, host, qp);
        } else if self.log.focus.ports != Chosen::default() {
            self.write(net, Node::Host(id), started);
        }
    }

    /// Logs that a message begins at a host of this partition, on a queue pair that has others under way and whose
    /// other end is `peer`. All partitions follow both ends from the next window on.
    #[cold]
    pub(crate) fn note_message_started(
        &mut self,
        net: &Switches,
        host: u32,
        flow: FlowRow,
        qp: QpNumber,
        peer: QueuePair,
    ) {
        let id = self.hosts[host].id;
        let is_chosen = self.log.focus.flows.contains(&FlowKey::from(&flow));
        if is_chosen && self.log.focus.flows != Chosen::All {
            self.log.fresh.extend([(id, qp), peer]);
        }
        if is_chosen || self.log.focus.ports != Chosen::default() {
            self.write(net, Node::Host(id), What::FlowStarted { flow, qp, queue_pairs: 1, peer: Some(peer) });
        }
    }

    /// Logs that a flow has ended at a host of this partition.
    #[cold]
    pub(crate) fn note_flow_finished(&mut self, net: &Switches, host: u32, flow: FlowRow) {
        if self.log.focus.flows.contains(&FlowKey::from(&flow)) {
            self.write(net, Node::Host(self.hosts[host].id), What::FlowFinished { flow });
        }
    }

    /// Logs that a host's NIC has taken in or sent `packet`.
    #[cold]
    pub(crate) fn note_handled(&mut self, net: &Switches, host: u32, packet: &Packet) {
        let Some((sender, qp)) = pair_of(packet) else { return };
        self.note_engines(net, host, Some((sender, qp)));
        if sender == self.hosts[host].id {
            self.note_held(net, host, qp);
        }
    }

    /// Logs that a host's NIC has let queue pairs act whose timers had expired.
    #[cold]
    pub(crate) fn note_woken(&mut self, net: &Switches, host: u32) {
        self.note_engines(net, host, None);
        for qp in std::mem::take(&mut self.log.heard.named) {
            self.note_held(net, host, qp);
        }
    }

    /// Logs the latest reports of the engines: about `pair`, or about a queue pair of this host that the NIC has named.
    fn note_engines(&mut self, net: &Switches, host: u32, pair: Option<QueuePair>) {
        let id = self.hosts[host].id;
        for (about, trace) in std::mem::take(&mut self.log.heard.traces) {
            let pair = pair.or(about.map(|qp| (id, qp)));
            let is_wanted = |pair: &QueuePair| self.log.follows(*pair) || self.log.focus.engines.contains(&pair.0);
            if let Some((sender, qp)) = pair.filter(is_wanted) {
                self.write(net, Node::Host(id), What::Engine { sender, qp, trace });
            }
        }
    }

    /// Logs what holds the flow of a queue pair of this host.
    fn note_held(&mut self, net: &Switches, host: u32, pair: QpNumber) {
        let state = &self.hosts[host];
        let (id, port) = (state.id, state.port);
        let Some(&(slot, qp)) = self.log.slots.get(&(id, pair)) else { return };
        match state.nic.hold(slot, qp, net.now) {
            Some(hold) => {
                let (busy, limits) = (self.busy(net, port), state.nic.limits(slot, qp));
                self.write(net, Node::Host(id), What::Held { qp, hold, busy, limits });
            }
            // The queue pair has finished.
            None => drop(self.log.slots.remove(&(id, pair))),
        }
    }
}
