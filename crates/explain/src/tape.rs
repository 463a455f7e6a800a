//! What is kept of a run: the story of each flow in focus, and all pauses.

use std::collections::BTreeMap;

use selvedge_sim::Recorder;
use selvedge_sim::record::{Chosen, Event, FlowKey, Focus, What};
use selvedge_sim::topology::Node;
use selvedge_telemetry::{DropReason, FlowRow, Trace};
use selvedge_transport::Hold;
use selvedge_units::{HostId, Instant, PortId, QpNumber};
use selvedge_wire::{Packet, Repr};

use crate::journey::{Hop, Journey};
use crate::pauses::Pauses;

/// Listens to a run and keeps what [`crate::explain`] needs.
#[derive(Debug, Default)]
pub struct Tape {
    pub(crate) stories: Vec<Story>,
    pub(crate) pauses: Pauses,
    by_pair: BTreeMap<(HostId, QpNumber), usize>,
}

/// What happened to one flow, until it finished.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) flow: FlowRow,
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
    /// What to record for it, for these flows.
    pub fn focus(flows: impl IntoIterator<Item = FlowKey>) -> Focus {
        Focus { flows: Chosen::These(flows.into_iter().collect()), pauses: true, ..Focus::default() }
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
                    journey.way.push(Hop { from: journey.reached, ..hop });
                }
            }
            Errand::Back => {
                if begins {
                    story.answer(packet);
                }
                if let Some(journey) = story.answered(packet).map(|at| &mut story.journeys[at]) {
                    journey.back.push(Hop { from: journey.back_reached, ..hop });
                }
            }
        }
    }

    fn on_arrived(&mut self, event: &Event, packet: &Packet) {
        let Some(errand) = errand(packet) else { return };
        let Some(story) = self.story(errand.sender(packet), packet.qp) else { return };
        let ends = event.node == Node::Host(packet.dst);
        match errand {
            Errand::There { .. } => {
                let Some(at) = story.find(packet.sent_at) else { return };
                story.journeys[at].reached = event.at;
                if ends {
                    story.last = at;
                }
            }
            Errand::Back => {
                let Some(at) = story.answered(packet) else { return };
                story.journeys[at].back_reached = event.at;
                if ends {
                    story.marks.push((event.at, Mark::Heard(at)));
                }
            }
        }
    }

    fn on_dropped(&mut self, packet: &Packet, port: PortId, reason: DropReason) {
        let Some(errand) = errand(packet) else { return };
        if let Some(story) = self.story(errand.sender(packet), packet.qp) {
            *story.dropped.entry((port, reason)).or_default() += 1;
        }
    }

    fn on_finished(&mut self, flow: FlowRow) {
        let same = |story: &&mut Story| FlowKey::from(&story.flow) == FlowKey::from(&flow);
        if let Some(story) = self.stories.iter_mut().find(same) {
            story.flow = flow;
        }
    }
}

/// What a packet is on its way for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Errand {
    /// From the sender of a flow to its receiver.
    There {
        /// Whether it had been sent before.
        again: bool,
    },
    /// An answer to one of these.
    Back,
}

/// The errand of a packet that belongs to a flow and moves it on.
fn errand(packet: &Packet) -> Option<Errand> {
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
    fn sender(self, packet: &Packet) -> HostId {
        match self {
            Self::There { .. } => packet.src,
            Self::Back => packet.dst,
        }
    }
}

impl Story {
    fn new(flow: FlowRow) -> Self {
        let (marks, journeys, dropped) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { flow, marks, journeys, sent: Vec::new(), answers: BTreeMap::new(), dropped, last: 0 }
    }

    /// A packet begins its journey.
    fn begin(&mut self, at: Instant, packet: &Packet, again: bool, hop: Hop) {
        self.marks.push((at, Mark::Sent(self.journeys.len())));
        self.sent.push(at);
        let before = self.journeys.last().map_or(0, |last| last.before + u64::from(!last.again));
        let (class, way, reached) = (packet.class, vec![hop], at);
        let (back_class, back, back_reached) = (class, Vec::new(), at);
        self.journeys.push(Journey { before, again, class, way, reached, back_class, back, back_reached });
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
        let made = packet.sent_at.max(journey.reached);
        (journey.back_class, journey.back, journey.back_reached) = (packet.class, Vec::new(), made);
    }

    /// The journey that this answer answers.
    fn answered(&self, packet: &Packet) -> Option<usize> {
        self.answers.get(&packet.sent_at).copied()
    }

    /// The journey that began at this time.
    fn find(&self, sent_at: Instant) -> Option<usize> {
        self.sent.binary_search(&sent_at).ok()
    }
}

impl Recorder for Tape {
    fn on_events(&mut self, events: &[Event]) {
        for event in events {
            match &event.what {
                What::FlowStarted { flow, qp, queue_pairs } => {
                    let pairs = (0..*queue_pairs).map(|n| (flow.src, QpNumber(qp.0.wrapping_add(n))));
                    self.by_pair.extend(pairs.map(|pair| (pair, self.stories.len())));
                    self.stories.push(Story::new(*flow));
                }
                What::FlowFinished { flow } => self.on_finished(*flow),
                What::Sent { port, packet, serialisation, arrives, .. } => {
                    let (port, serialisation, arrives) = (*port, *serialisation, *arrives);
                    self.on_sent(event, packet, Hop { port, from: event.at, sent: event.at, serialisation, arrives });
                }
                What::Arrived { packet, .. } => self.on_arrived(event, packet),
                What::Dropped { packet, port, reason } => self.on_dropped(packet, *port, *reason),
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
                What::Queued { .. } | What::Trimmed { .. } | What::Engine { .. } => {}
            }
        }
    }
}
