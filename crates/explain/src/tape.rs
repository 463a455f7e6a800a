//! What is kept of a run: the story of each flow in focus, all pauses, and what stands at some ports.

use std::collections::BTreeMap;

use selvedge_sim::Recorder;
use selvedge_sim::record::{Chosen, Event, FlowKey, Focus, What};
use selvedge_sim::topology::Node;
use selvedge_telemetry::{DropReason, FlowRow, RunRecord, Trace};
use selvedge_transport::Hold;
use selvedge_units::{HostId, Instant, PortId, QpNumber};
use selvedge_wire::{Packet, Repr};

use crate::journey::{Hop, Journey, Travel, Whereabouts};
use crate::pauses::Pauses;
use crate::standing::Standing;

/// Listens to a run and keeps what [`crate::explain`] needs.
#[derive(Debug)]
pub struct Tape {
    flows: Chosen<FlowKey>,
    pub(crate) stories: Vec<Story>,
    pub(crate) pauses: Pauses,
    pub(crate) standing: Standing,
    by_pair: BTreeMap<(HostId, QpNumber), usize>,
    by_flow: BTreeMap<FlowKey, usize>,
}

/// What happened to one flow, until it finished or the run ended.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) flow: FlowRow,
    /// The NIC that sends it: the host's own, or its second one inside the server.
    pub(crate) nic: HostId,
    /// What the sender did and heard, in order.
    pub(crate) marks: Vec<(Instant, Mark)>,
    /// Data packets in the order of sending; one host sends one at a time, so these times are names.
    pub(crate) journeys: Vec<Journey>,
    /// When they began.
    sent: Vec<Instant>,
    /// By the time that they carry: the journeys that answers answer.
    answers: BTreeMap<Instant, usize>,
    /// Packets that were dropped, by the port through which they had entered, and why.
    pub(crate) dropped: BTreeMap<(PortId, DropReason), u64>,
    /// The journey that ended last so far, and in the end the one that finished the flow.
    pub(crate) last: usize,
    /// How it stood when the run ended, if it had not finished.
    pub(crate) end: Option<End>,
}

/// How an unfinished flow stands at the end of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) at: Instant,
    /// The oldest journey that has not ended: the flow waits for its packet.
    pub(crate) packet: Option<usize>,
    /// The oldest whose acknowledgement is on its way.
    pub(crate) answer: Option<usize>,
    /// Whether something was lost since the sender last heard anything.
    pub(crate) lost: bool,
}

/// Something that changed the sender's situation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// It sent the packet of this journey.
    Sent(usize),
    /// It heard the acknowledgement of this journey.
    Heard(usize),
    /// A retransmission timeout ran out.
    TimedOut,
    /// From now on, this is what it waits for.
    Held(Hold),
}

impl Tape {
    /// For these flows, and what stands at these ports when the run ends.
    pub fn of(flows: Chosen<FlowKey>, ports: impl IntoIterator<Item = PortId>) -> Self {
        let standing = Standing::at(ports);
        let (by_pair, by_flow) = (BTreeMap::new(), BTreeMap::new());
        Self { flows, stories: Vec::new(), pauses: Pauses::default(), standing, by_pair, by_flow }
    }

    /// What to record for it.
    pub fn focus(&self) -> Focus {
        let ports = Chosen::These(self.standing.ports().collect());
        Focus { flows: self.flows.clone(), ports, pauses: true, ..Focus::default() }
    }

    /// The run has ended. What has not finished by then never does.
    pub fn end(&mut self, record: &RunRecord) {
        self.stories.iter_mut().filter(|story| story.flow.finish.is_none()).for_each(|story| story.end(record.end));
    }

    fn story(&mut self, sender: HostId, qp: QpNumber) -> Option<&mut Story> {
        let at = *self.by_pair.get(&(sender, qp))?;
        self.stories.get_mut(at).filter(|story| story.flow.finish.is_none())
    }

    fn on_sent(&mut self, event: &Event, packet: &Packet, hop: Hop) {
        let Some(errand) = errand(packet) else { return };
        let Some(story) = self.story(errand.sender(packet), packet.qp) else { return };
        let begins = event.node == Node::Host(packet.src);
        match errand {
            Errand::There { again } if begins => story.begin(event.at, packet, again, hop),
            Errand::There { .. } => {
                if let Some(journey) = story.find(packet.sent_at).map(|at| &mut story.journeys[at]) {
                    journey.leave(event.node, hop);
                }
            }
            Errand::Back => {
                if begins {
                    story.answer(packet);
                }
                let answered = story.answered(packet).and_then(|at| story.journeys[at].back.as_mut());
                if let Some(back) = answered {
                    back.leave(hop);
                }
            }
        }
    }

    fn on_arrived(&mut self, event: &Event, packet: &Packet) {
        let Some(errand) = errand(packet) else { return };
        let Some(story) = self.story(errand.sender(packet), packet.qp) else { return };
        let ends = event.node == Node::Host(packet.dst);
        let place = if ends { Whereabouts::Destination } else { Whereabouts::Node(event.node, None) };
        match errand {
            Errand::There { .. } => {
                let Some(at) = story.find(packet.sent_at) else { return };
                if story.journeys[at].arrive(event.at, place) {
                    story.last = at;
                }
            }
            Errand::Back => {
                let Some(at) = story.answered(packet) else { return };
                if let Some(back) = &mut story.journeys[at].back {
                    (back.reached, back.place) = (event.at, place);
                }
                if ends {
                    story.marks.push((event.at, Mark::Heard(at)));
                }
            }
        }
    }

    fn on_queued(&mut self, event: &Event, packet: &Packet, port: PortId) {
        let Some(errand) = errand(packet) else { return };
        if let Some(story) = self.story(errand.sender(packet), packet.qp) {
            story.stay(event, errand, packet, Whereabouts::Node(event.node, Some(port)));
        }
    }

    fn on_dropped(&mut self, event: &Event, packet: &Packet, port: PortId, reason: DropReason) {
        let Some(errand) = errand(packet) else { return };
        if let Some(story) = self.story(errand.sender(packet), packet.qp) {
            *story.dropped.entry((port, reason)).or_default() += 1;
            story.stay(event, errand, packet, Whereabouts::Lost);
        }
    }

    fn on_finished(&mut self, flow: FlowRow) {
        if let Some(&at) = self.by_flow.get(&FlowKey::from(&flow)) {
            self.stories[at].flow = flow;
        }
    }
}

/// What a packet is on its way for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Errand {
    /// From the sender of a flow to its receiver.
    There {
        /// Whether it had been sent before.
        again: bool,
    },
    /// An answer to one of these.
    Back,
}

/// The errand of a packet that belongs to a flow and moves it on.
pub(crate) fn errand(packet: &Packet) -> Option<Errand> {
    match &packet.repr {
        Repr::Data(data) => Some(Errand::There { again: data.retransmission }),
        Repr::Tcp(tcp) if !tcp.is_backward() => Some(Errand::There { again: tcp.is_again() }),
        Repr::EqdsData(data) if data.payload > 0 => Some(Errand::There { again: data.retransmission }),
        Repr::Ack(_) | Repr::HoleNack(_) | Repr::Tcp(_) | Repr::EqdsControl(_) => Some(Errand::Back),
        // It slows the flow down, and answers nothing.
        Repr::Cnp | Repr::Pull(_) | Repr::Pause(_) | Repr::EqdsData(_) | Repr::NetRt(_) => None,
    }
}

impl Errand {
    /// The host that sends the flow.
    pub(crate) fn sender(self, packet: &Packet) -> HostId {
        match self {
            Self::There { .. } => packet.src,
            Self::Back => packet.dst,
        }
    }
    /// The host that receives it.
    pub(crate) fn receiver(self, packet: &Packet) -> HostId {
        match self {
            Self::There { .. } => packet.dst,
            Self::Back => packet.src,
        }
    }
}

impl Story {
    fn new(flow: FlowRow, nic: HostId) -> Self {
        let (marks, journeys, dropped) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { flow, nic, marks, journeys, sent: Vec::new(), answers: BTreeMap::new(), dropped, last: 0, end: None }
    }

    /// A packet begins its journey.
    fn begin(&mut self, at: Instant, packet: &Packet, again: bool, hop: Hop) {
        self.marks.push((at, Mark::Sent(self.journeys.len())));
        self.sent.push(at);
        let before = self.journeys.last().map_or(0, |last| last.before + u64::from(!last.again));
        self.journeys.push(Journey::new(before, again, packet.class, hop));
    }

    /// An answer begins its way back.
    fn answer(&mut self, packet: &Packet) {
        let at = match packet.repr {
            // It carries the time of the packet that it answers.
            Repr::Ack(_) | Repr::HoleNack(_) => self.find(packet.sent_at),
            // It carries its own, and answers what has arrived until then.
            _ => Some(self.last).filter(|&last| last < self.journeys.len()),
        };
        let Some(at) = at else { return };
        self.answers.insert(packet.sent_at, at);
        let journey = &mut self.journeys[at];
        // Until then the receiver kept it back: that is nobody's fault on the way.
        let made = packet.sent_at.max(journey.there.reached);
        journey.back_class = packet.class;
        journey.back = Some(Travel { way: Vec::new(), reached: made, place: Whereabouts::Link });
    }

    /// The journey that this answer answers.
    fn answered(&self, packet: &Packet) -> Option<usize> {
        self.answers.get(&packet.sent_at).copied()
    }

    /// The journey that began at this time.
    fn find(&self, sent_at: Instant) -> Option<usize> {
        self.sent.binary_search(&sent_at).ok()
    }

    /// A packet waits in the node of `event`, or is dropped there.
    fn stay(&mut self, event: &Event, errand: Errand, packet: &Packet, place: Whereabouts) {
        match errand {
            Errand::There { .. } => {
                if let Some(at) = self.find(packet.sent_at) {
                    self.journeys[at].stay(event.at, event.node, place);
                }
            }
            Errand::Back => {
                let answered = self.answered(packet).and_then(|at| self.journeys[at].back.as_mut());
                // Where it was to go, it is dropped because nobody waits for it any more.
                if let Some(back) = answered.filter(|back| back.is_under_way()) {
                    back.place = place;
                }
            }
        }
    }

    /// The run ends before the flow.
    fn end(&mut self, at: Instant) {
        self.journeys.iter_mut().for_each(|journey| journey.end(at));
        let packet = self.journeys.iter().position(|journey| journey.there.is_under_way());
        let is_answered = |journey: &Journey| journey.back.as_ref().is_some_and(Travel::is_under_way);
        let answer = self.journeys.iter().position(is_answered);
        let is_lost = |&(_, mark): &(Instant, Mark)| match mark {
            Mark::Sent(journey) => self.journeys[journey].is_lost(),
            Mark::Heard(_) | Mark::TimedOut | Mark::Held(_) => false,
        };
        let mut unheard = self.marks.iter().rev().take_while(|(_, mark)| !matches!(mark, Mark::Heard(_)));
        let lost = unheard.any(is_lost);
        self.end = Some(End { at, packet, answer, lost });
    }

    /// The journey with which the story ends: of the packet that finished the flow, or of the one that it waits for;
    /// `None` if it waits for its sender.
    pub(crate) fn ends_with(&self) -> Option<usize> {
        self.end.map_or(Some(self.last), |end| end.packet)
    }
}

impl Recorder for Tape {
    fn on_events(&mut self, events: &[Event]) {
        for event in events {
            match &event.what {
                What::FlowStarted { flow, qp, queue_pairs } => {
                    let Node::Host(nic) = event.node else { continue };
                    let pairs = (0..*queue_pairs).map(|n| (nic, QpNumber(qp.0.wrapping_add(n))));
                    self.standing.on_started(flow, pairs.clone());
                    // Where ports are watched, one is told of all flows.
                    let key = FlowKey::from(flow);
                    if self.flows.contains(&key) {
                        self.by_flow.insert(key, self.stories.len());
                        self.by_pair.extend(pairs.map(|pair| (pair, self.stories.len())));
                        self.stories.push(Story::new(*flow, nic));
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
                    if let Some(story) = self.story(*sender, *qp) {
                        story.marks.push((event.at, Mark::TimedOut));
                    }
                }
                What::Held { qp, hold, .. } => {
                    if let Node::Host(sender) = event.node
                        && let Some(story) = self.story(sender, *qp)
                    {
                        story.marks.push((event.at, Mark::Held(*hold)));
                    }
                }
                What::Paused { .. } | What::Filled { .. } | What::Link { .. } => self.pauses.take(event),
                What::Engine { .. } => {}
            }
        }
    }
}
