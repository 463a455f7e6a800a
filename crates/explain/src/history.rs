//! What happened to one flow: what its sender did and heard, and how its packets fared.

use std::collections::BTreeMap;

use selvedge_sim::record::Event;
use selvedge_telemetry::{DropReason, FlowRow};
use selvedge_transport::Hold;
use selvedge_units::{HostId, Instant, PortId};
use selvedge_wire::{Packet, Repr};

use crate::direction::Direction;
use crate::transmission::{Hop, Location, Path, Transmission};

/// What happened to one flow, until it finished or the run ended.
#[derive(Debug)]
pub(crate) struct FlowHistory {
    pub(crate) flow: FlowRow,
    /// The NIC that sends it: the host's own, or its second one inside the server.
    pub(crate) nic: HostId,
    /// What the sender did and heard, in order.
    pub(crate) events: Vec<(Instant, SenderEvent)>,
    /// Data packets in the order of sending; one host sends one at a time, so these times are names.
    pub(crate) transmissions: Vec<Transmission>,
    /// When they began.
    sent: Vec<Instant>,
    /// By the time that they carry: the transmissions that answers answer.
    answers: BTreeMap<Instant, usize>,
    /// Packets that were dropped, by the port through which they had entered, and why.
    pub(crate) dropped: BTreeMap<(PortId, DropReason), u64>,
    /// The transmission that ended last so far, and in the end the one that finished the flow.
    pub(crate) last: usize,
    /// How it stood when the run ended, if it had not finished.
    pub(crate) end: Option<End>,
}

/// How an unfinished flow stands at the end of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) at: Instant,
    /// The oldest transmission that has not ended: the flow waits for its packet.
    pub(crate) packet: Option<usize>,
    /// The oldest whose acknowledgement is on its way.
    pub(crate) answer: Option<usize>,
    /// Whether something was lost since the sender last heard anything.
    pub(crate) lost: bool,
}

/// Something that changed the sender's situation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SenderEvent {
    /// It sent the packet of this transmission.
    Sent(usize),
    /// It heard the acknowledgement of this transmission.
    Heard(usize),
    /// A retransmission timeout ran out.
    TimedOut,
    /// From now on, this is what it waits for.
    Held(Hold),
}

impl FlowHistory {
    pub(crate) fn new(flow: FlowRow, nic: HostId) -> Self {
        let (events, transmissions, dropped) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self {
            flow,
            nic,
            events,
            transmissions,
            sent: Vec::new(),
            answers: BTreeMap::new(),
            dropped,
            last: 0,
            end: None,
        }
    }

    /// A packet begins its transmission.
    pub(crate) fn begin(&mut self, at: Instant, packet: &Packet, again: bool, hop: Hop) {
        self.events.push((at, SenderEvent::Sent(self.transmissions.len())));
        self.sent.push(at);
        let before = self.transmissions.last().map_or(0, |last| last.before + u64::from(!last.again));
        self.transmissions.push(Transmission::new(before, again, packet.class, hop));
    }

    /// An answer begins its way back.
    pub(crate) fn answer(&mut self, packet: &Packet) {
        let at = match packet.repr {
            // It carries the time of the packet that it answers.
            Repr::Ack(_) | Repr::HoleNack(_) => self.find(packet.sent_at),
            // It carries its own, and answers what has arrived until then.
            _ => Some(self.last).filter(|&last| last < self.transmissions.len()),
        };
        let Some(at) = at else { return };
        self.answers.insert(packet.sent_at, at);
        let transmission = &mut self.transmissions[at];
        // Until then the receiver kept it back: that is nobody's fault on the way.
        let made = packet.sent_at.max(transmission.forward.reached);
        transmission.backward_class = packet.class;
        transmission.backward = Some(Path { hops: Vec::new(), reached: made, place: Location::Link });
    }

    /// The transmission that this answer answers.
    pub(crate) fn answered(&self, packet: &Packet) -> Option<usize> {
        self.answers.get(&packet.sent_at).copied()
    }

    /// The transmission that began at this time.
    pub(crate) fn find(&self, sent_at: Instant) -> Option<usize> {
        self.sent.binary_search(&sent_at).ok()
    }

    /// A packet waits in the node of `event`, or is dropped there.
    pub(crate) fn stay(&mut self, event: &Event, direction: Direction, packet: &Packet, place: Location) {
        match direction {
            Direction::Forward { .. } => {
                if let Some(at) = self.find(packet.sent_at) {
                    self.transmissions[at].stay(event.at, event.node, place);
                }
            }
            Direction::Backward => {
                let answered = self.answered(packet).and_then(|at| self.transmissions[at].backward.as_mut());
                // Where it was to go, it is dropped because nobody waits for it any more.
                if let Some(back) = answered.filter(|back| back.is_under_way()) {
                    back.place = place;
                }
            }
        }
    }

    /// The run ends before the flow.
    pub(crate) fn end(&mut self, at: Instant) {
        self.transmissions.iter_mut().for_each(|transmission| transmission.end(at));
        let packet = self.transmissions.iter().position(|transmission| transmission.forward.is_under_way());
        let is_answered = |transmission: &Transmission| transmission.backward.as_ref().is_some_and(Path::is_under_way);
        let answer = self.transmissions.iter().position(is_answered);
        let is_lost = |&(_, event): &(Instant, SenderEvent)| match event {
            SenderEvent::Sent(transmission) => self.transmissions[transmission].is_lost(),
            SenderEvent::Heard(_) | SenderEvent::TimedOut | SenderEvent::Held(_) => false,
        };
        let mut unheard = self.events.iter().rev().take_while(|(_, event)| !matches!(event, SenderEvent::Heard(_)));
        let lost = unheard.any(is_lost);
        self.end = Some(End { at, packet, answer, lost });
    }

    /// The transmission with which the history ends: of the packet that finished the flow, or of the one that it waits
    /// for; `None` if it waits for its sender.
    pub(crate) fn ends_with(&self) -> Option<usize> {
        self.end.map_or(Some(self.last), |end| end.packet)
    }
}
