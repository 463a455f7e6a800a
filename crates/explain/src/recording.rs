//! The recording of a run: the history of each flow in focus, all pauses, and packets waiting at some ports.

use std::collections::BTreeMap;

use selvedge_sim::Recorder;
use selvedge_sim::record::{Chosen, Event, FlowKey, Focus, What};
use selvedge_sim::topology::Node;
use selvedge_telemetry::{DropReason, FlowRow, RunRecord, Trace};
use selvedge_units::{HostId, PortId, QpNumber};
use selvedge_wire::Packet;

use crate::direction::Direction;
use crate::history::{FlowHistory, SenderEvent};
use crate::pauses::Pauses;
use crate::standing::Standing;
use crate::transmission::{Hop, Location};

/// A recorder that keeps the events that [`crate::explain`] needs.
#[derive(Debug)]
pub struct Recording {
    flows: Chosen<FlowKey>,
    pub(crate) histories: Vec<FlowHistory>,
    pub(crate) pauses: Pauses,
    pub(crate) standing: Standing,
    by_pair: BTreeMap<(HostId, QpNumber), usize>,
    by_flow: BTreeMap<FlowKey, usize>,
}

impl Recording {
    /// Creates a recording of these flows, and of the packets that wait at these ports when the run ends.
    pub fn of(flows: Chosen<FlowKey>, ports: impl IntoIterator<Item = PortId>) -> Self {
        let standing = Standing::at(ports);
        let (by_pair, by_flow) = (BTreeMap::new(), BTreeMap::new());
        Self { flows, histories: Vec::new(), pauses: Pauses::default(), standing, by_pair, by_flow }
    }

    /// Returns the focus that the simulator must record.
    pub fn focus(&self) -> Focus {
        let ports = Chosen::These(self.standing.ports().collect());
        Focus { flows: self.flows.clone(), ports, pauses: true, ..Focus::default() }
    }

    /// Records the end of the run, at which unfinished flows stop.
    pub fn end(&mut self, record: &RunRecord) {
        self.histories
            .iter_mut()
            .filter(|history| history.flow.finish.is_none())
            .for_each(|history| history.end(record.end));
    }

    fn history(&mut self, sender: HostId, qp: QpNumber) -> Option<&mut FlowHistory> {
        let at = *self.by_pair.get(&(sender, qp))?;
        self.histories.get_mut(at).filter(|history| history.flow.finish.is_none())
    }

    fn on_sent(&mut self, event: &Event, packet: &Packet, hop: Hop) {
        let Some(direction) = Direction::of(packet) else { return };
        let Some(history) = self.history(direction.sender(packet), packet.qp) else { return };
        let begins = event.node == Node::Host(packet.src);
        match direction {
            Direction::Forward { again } if begins => history.begin(event.at, packet, again, hop),
            Direction::Forward { .. } => {
                if let Some(transmission) = history.find(packet.sent_at).map(|at| &mut history.transmissions[at]) {
                    transmission.leave(event.node, hop);
                }
            }
            Direction::Backward => {
                if begins {
                    history.answer(packet);
                }
                let answered = history.answered(packet).and_then(|at| history.transmissions[at].backward.as_mut());
                if let Some(back) = answered {
                    back.leave(hop);
                }
            }
        }
    }

    fn on_arrived(&mut self, event: &Event, packet: &Packet) {
        let Some(direction) = Direction::of(packet) else { return };
        let Some(history) = self.history(direction.sender(packet), packet.qp) else { return };
        let ends = event.node == Node::Host(packet.dst);
        let place = if ends { Location::Destination } else { Location::Node(event.node, None) };
        match direction {
            Direction::Forward { .. } => {
                let Some(at) = history.find(packet.sent_at) else { return };
                if history.transmissions[at].arrive(event.at, place) {
                    history.last = at;
                }
            }
            Direction::Backward => {
                let Some(at) = history.answered(packet) else { return };
                if let Some(back) = &mut history.transmissions[at].backward {
                    (back.reached, back.place) = (event.at, place);
                }
                if ends {
                    history.events.push((event.at, SenderEvent::Heard(at)));
                }
            }
        }
    }

    fn on_queued(&mut self, event: &Event, packet: &Packet, port: PortId) {
        let Some(direction) = Direction::of(packet) else { return };
        if let Some(history) = self.history(direction.sender(packet), packet.qp) {
            history.stay(event, direction, packet, Location::Node(event.node, Some(port)));
        }
    }

    fn on_dropped(&mut self, event: &Event, packet: &Packet, port: PortId, reason: DropReason) {
        let Some(direction) = Direction::of(packet) else { return };
        if let Some(history) = self.history(direction.sender(packet), packet.qp) {
            *history.dropped.entry((port, reason)).or_default() += 1;
            history.stay(event, direction, packet, Location::Lost);
        }
    }

    fn on_finished(&mut self, flow: FlowRow) {
        if let Some(&at) = self.by_flow.get(&FlowKey::from(&flow)) {
            self.histories[at].flow = flow;
        }
    }
}

impl Recorder for Recording {
    fn on_events(&mut self, events: &[Event]) {
        for event in events {
            match &event.what {
                What::FlowStarted { flow, qp, queue_pairs, .. } => {
                    let Node::Host(nic) = event.node else { continue };
                    let pairs = (0..*queue_pairs).map(|n| (nic, QpNumber(qp.0.wrapping_add(n))));
                    self.standing.on_started(flow, pairs.clone());
                    // A run with watched ports reports all flows.
                    let key = FlowKey::from(flow);
                    if self.flows.contains(&key) {
                        self.by_flow.insert(key, self.histories.len());
                        self.by_pair.extend(pairs.map(|pair| (pair, self.histories.len())));
                        self.histories.push(FlowHistory::new(*flow, nic));
                    }
                }
                What::FlowFinished { flow } => self.on_finished(*flow),
                What::Sent { port, packet, serialisation, arrives, .. } => {
                    let (port, serialisation, arrives) = (*port, *serialisation, *arrives);
                    self.standing.on_gone(port, packet);
                    self.on_sent(event, packet, Hop { port, from: event.at, sent: event.at, serialisation, arrives });
                }
                What::Arrived { packet, .. } => self.on_arrived(event, packet),
                What::Queued { port, packet, .. } => {
                    self.standing.on_queued(event.at, *port, packet);
                    self.on_queued(event, packet, *port);
                }
                What::Trimmed { port, packet, .. } => self.standing.on_gone(*port, packet),
                What::Dropped { packet, port, reason } => {
                    self.standing.on_dropped(packet);
                    self.on_dropped(event, packet, *port, *reason);
                }
                What::Engine { sender, qp, trace: Trace::TimedOut { .. } } => {
                    if let Some(history) = self.history(*sender, *qp) {
                        history.events.push((event.at, SenderEvent::TimedOut));
                    }
                }
                What::Held { qp, hold, .. } => {
                    if let Node::Host(sender) = event.node
                        && let Some(history) = self.history(sender, *qp)
                    {
                        history.events.push((event.at, SenderEvent::Held(*hold)));
                    }
                }
                What::Paused { .. } | What::Filled { .. } | What::Link { .. } => self.pauses.take(event),
                What::Engine { .. } => {}
            }
        }
    }
}
