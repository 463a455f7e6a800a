//! The history of one flow: the actions of its sender, and the paths of its packets.

use std::collections::BTreeMap;

use selvedge_sim::record::Event;
use selvedge_telemetry::{DropReason, FlowRow};
use selvedge_transport::HoldReason;
use selvedge_units::{HostId, Instant, PortId};
use selvedge_wire::{Packet, Repr};

use crate::direction::Direction;
use crate::transmission::{Hop, Location, Path, Transmission};

/// The history of one flow, until it finished or the run ended.
#[derive(Debug)]
pub(crate) struct FlowHistory {
    pub(crate) flow: FlowRow,
    /// NIC that sends the flow: the host's own, or its second one inside the server.
    pub(crate) nic: HostId,
    /// Actions of the sender and signals that reached it, in order.
    pub(crate) events: Vec<(Instant, SenderEvent)>,
    /// Data packets in the order of sending. A host sends one packet at a time, so that the times identify them.
    pub(crate) transmissions: Vec<Transmission>,
    /// Start times of the transmissions.
    sent: Vec<Instant>,
    /// Index of the transmission that an acknowledgement answers, by the time that the acknowledgement carries.
    answers: BTreeMap<Instant, usize>,
    /// Number of dropped packets, by input port and reason.
    pub(crate) dropped: BTreeMap<(PortId, DropReason), u64>,
    /// Index of the transmission that ended last so far; finally, of the one that finished the flow.
    pub(crate) last: usize,
    /// State of an unfinished flow when the run ended.
    pub(crate) end: Option<End>,
}

/// The state of an unfinished flow at the end of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct End {
    pub(crate) at: Instant,
    /// Index of the oldest transmission that has not ended: the flow waits for its packet.
    pub(crate) packet: Option<usize>,
    /// Index of the oldest transmission whose acknowledgement is in flight.
    pub(crate) answer: Option<usize>,
    /// Whether a packet was lost that was sent after the sender last received an acknowledgement.
    pub(crate) lost: bool,
}

/// An event that changed the sender's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SenderEvent {
    /// The sender sent the packet of this transmission.
    Sent(usize),
    /// The acknowledgement of this transmission reached the sender.
    Heard(usize),
    /// A retransmission timeout expired.
    TimedOut,
    /// The reason for which the sender waits has changed to this one.
    Held(HoldReason),
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

    /// Records that a packet begins its transmission.
    pub(crate) fn begin(&mut self, at: Instant, packet: &Packet, again: bool, hop: Hop) {
        self.events.push((at, SenderEvent::Sent(self.transmissions.len())));
        self.sent.push(at);
        let before = self.transmissions.last().map_or(0, |last| last.before + u64::from(!last.again));
        self.transmissions.push(Transmission::new(before, again, packet.class, hop));
    }

    /// Records that an acknowledgement begins its way back.
    pub(crate) fn answer(&mut self, packet: &Packet) {
        let at = match packet.repr {
            // An acknowledgement carries the sending time of the packet that it answers.
            Repr::Ack(_) | Repr::HoleNack(_) => self.find(packet.sent_at),
            // Other answers carry their own sending time, and answer what has arrived until then.
            _ => Some(self.last).filter(|&last| last < self.transmissions.len()),
        };
        let Some(at) = at else { return };
        self.answers.insert(packet.sent_at, at);
        let transmission = &mut self.transmissions[at];
        // The receiver held the answer until then, which is no delay on the path.
        let made = packet.sent_at.max(transmission.forward.reached);
        transmission.backward_class = packet.class;
        transmission.backward = Some(Path { hops: Vec::new(), reached: made, place: Location::Link });
    }

    /// Returns the transmission that this acknowledgement answers.
    pub(crate) fn answered(&self, packet: &Packet) -> Option<usize> {
        self.answers.get(&packet.sent_at).copied()
    }

    /// Returns the transmission that began at this time.
    pub(crate) fn find(&self, sent_at: Instant) -> Option<usize> {
        self.sent.binary_search(&sent_at).ok()
    }

    /// Records that a packet waits in the node of `event`, or is dropped there.
    pub(crate) fn stay(&mut self, event: &Event, direction: Direction, packet: &Packet, place: Location) {
        match direction {
            Direction::Forward { .. } => {
                if let Some(at) = self.find(packet.sent_at) {
                    self.transmissions[at].stay(event.at, event.node, place);
                }
            }
            Direction::Backward => {
                let answered = self.answered(packet).and_then(|at| self.transmissions[at].backward.as_mut());
                // A drop at the destination only means that nothing waits for the packet any more.
                if let Some(back) = answered.filter(|back| back.is_under_way()) {
                    back.place = place;
                }
            }
        }
    }

    /// Records that the run ends before the flow.
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

    /// Returns the transmission that ends the history: of the packet that finished the flow, or of the packet that the
    /// flow waits for; `None` if it waits for its sender.
    pub(crate) fn ends_with(&self) -> Option<usize> {
        self.end.map_or(Some(self.last), |end| end.packet)
    }
}
