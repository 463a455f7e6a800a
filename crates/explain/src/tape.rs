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
        match &packet.repr {
            Repr::Data(data) => {
                let Some(story) = self.story(packet.src, packet.qp) else { return };
                if event.node == Node::Host(packet.src) {
                    story.marks.push((event.at, Mark::Sent(story.journeys.len())));
                    story.sent.push(event.at);
                    let before = story.journeys.last().map_or(0, |last| last.before + u64::from(!last.again));
                    story.journeys.push(Journey {
                        before,
                        again: data.retransmission,
                        class: packet.class,
                        way: vec![hop],
                        reached: event.at,
                        back_class: packet.class,
                        back: Vec::new(),
                        back_reached: event.at,
                    });
                } else if let Some(at) = story.find(packet.sent_at) {
                    let journey = &mut story.journeys[at];
                    journey.way.push(Hop { from: journey.reached, ..hop });
                }
            }
            Repr::Ack(_) => {
                let Some(story) = self.story(packet.dst, packet.qp) else { return };
                if let Some(at) = story.find(packet.sent_at) {
                    let journey = &mut story.journeys[at];
                    journey.back_class = packet.class;
                    journey.back.push(Hop { from: journey.back_reached, ..hop });
                }
            }
            Repr::Pause(_) => {}
        }
    }

    fn on_arrived(&mut self, event: &Event, packet: &Packet) {
        match packet.repr {
            Repr::Data(_) => {
                let Some(story) = self.story(packet.src, packet.qp) else { return };
                let Some(at) = story.find(packet.sent_at) else { return };
                story.journeys[at].reached = event.at;
                if event.node == Node::Host(packet.dst) {
                    story.journeys[at].back_reached = event.at;
                    story.last = at;
                }
            }
            Repr::Ack(_) => {
                let Some(story) = self.story(packet.dst, packet.qp) else { return };
                let Some(at) = story.find(packet.sent_at) else { return };
                story.journeys[at].back_reached = event.at;
                if event.node == Node::Host(packet.dst) {
                    story.marks.push((event.at, Mark::Heard(at)));
                }
            }
            Repr::Pause(_) => {}
        }
    }

    fn on_dropped(&mut self, packet: &Packet, port: PortId, reason: DropReason) {
        let sender = if let Repr::Data(_) = packet.repr { packet.src } else { packet.dst };
        if let Some(story) = self.story(sender, packet.qp) {
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

impl Story {
    fn new(flow: FlowRow) -> Self {
        Self { flow, marks: Vec::new(), journeys: Vec::new(), sent: Vec::new(), dropped: BTreeMap::new(), last: 0 }
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
                What::FlowStarted { flow, qp } => {
                    self.by_pair.insert((flow.src, *qp), self.stories.len());
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
                What::Queued { .. } | What::Engine { .. } => {}
            }
        }
    }
}
