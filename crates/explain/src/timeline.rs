//! The sender's actions and waits, from the start of the flow until it sent the last packet; for an unfinished flow
//! that waits for its sender, until the end of the run.

use selvedge_telemetry::TimePart;
use selvedge_transport::HoldReason;
use selvedge_units::Instant;

use crate::history::{End, FlowHistory, SenderEvent};

/// A part of the sender's time. Consecutive spans have no gap between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    pub(crate) why: Why,
}

/// The action or wait of the sender during a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// Sending a packet.
    Send {
        /// Whether the packet is a retransmission.
        again: bool,
    },
    /// Waiting for the link, which was busy or paused.
    Link,
    /// Waiting for congestion control's pacing.
    Pacing,
    /// Waiting for loss recovery: detection of a loss, its repair, or the fetching of lost packets.
    Recovery,
    /// Waiting for a retransmission timeout.
    Timeout,
    /// Waiting for congestion control's window.
    Window(Opener),
    /// Waiting for loss recovery's limit on packets in flight.
    Cap(Opener),
}

impl Why {
    /// Returns the part of this span, unless the cause lies elsewhere in the network.
    pub(crate) fn part(self) -> TimePart {
        match self {
            Self::Send { again: false } => TimePart::Serialisation,
            Self::Send { again: true } | Self::Recovery => TimePart::Recovery,
            Self::Link => TimePart::Nic,
            Self::Pacing => TimePart::Pacing,
            Self::Timeout => TimePart::Timeout,
            Self::Window(_) => TimePart::Window,
            Self::Cap(_) => TimePart::Cap,
        }
    }
}

/// The transmission whose acknowledgement ended a wait, if any.
pub(crate) type Opener = Option<usize>;

/// A signal that reaches a sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum News {
    Nothing,
    Ack(usize),
    Timeout,
}

/// A traversal of a flow's events.
struct Walk<'a> {
    history: &'a FlowHistory,
    spans: Vec<Span>,
    /// Time until which everything is accounted for.
    at: Instant,
    hold: HoldReason,
    /// Signal that reached the sender at the present time.
    news: News,
    /// Index of the first span since the last packet was sent.
    gap: usize,
}

/// Returns the spans of `history` until the sending of the packet that ends it.
pub(crate) fn spans(history: &FlowHistory) -> Vec<Span> {
    let start = history.flow.start;
    let mut walk = Walk { history, spans: Vec::new(), at: start, hold: HoldReason::Link, news: News::Nothing, gap: 0 };
    let mut last = start;
    for &(time, event) in &history.events {
        if time > last {
            walk.news = News::Nothing;
            last = time;
        }
        walk.pass(time);
        match event {
            SenderEvent::Sent(transmission) => {
                walk.settle(history.transmissions[transmission].again);
                if Some(transmission) == history.ends_with() {
                    return walk.spans;
                }
                walk.send(transmission);
            }
            SenderEvent::Heard(transmission) => walk.news = News::Ack(transmission),
            SenderEvent::TimedOut => walk.news = News::Timeout,
            SenderEvent::Held(hold) => walk.change(hold),
        }
    }
    if let Some(end) = &history.end {
        walk.end(end);
    }
    walk.spans
}

impl Walk<'_> {
    /// Advances to `time`, with the sender's present wait.
    fn pass(&mut self, time: Instant) {
        if time > self.at {
            let why = match self.hold {
                HoldReason::Link => Why::Link,
                HoldReason::Pacing(_) => Why::Pacing,
                HoldReason::Recovery(_) | HoldReason::Acks => Why::Recovery,
                HoldReason::Window => Why::Window(None),
                HoldReason::Cap => Why::Cap(None),
            };
            self.spans.push(Span { from: self.at, to: time, why });
            self.at = time;
        }
    }

    /// Records that the sender sends a packet, for its serialisation time.
    fn send(&mut self, transmission: usize) {
        let hop = &self.history.transmissions[transmission].forward.hops[0];
        let why = Why::Send { again: self.history.transmissions[transmission].again };
        self.spans.push(Span { from: hop.sent, to: hop.left(), why });
        self.at = hop.left();
        self.gap = self.spans.len();
    }

    /// Changes the sender's wait, as a result of the last signal.
    fn change(&mut self, hold: HoldReason) {
        if !waits_for_news(hold) && waits_for_news(self.hold) {
            self.blame();
        }
        self.hold = hold;
    }

    /// Attributes the spans since the last packet to the signal that ended the wait.
    fn blame(&mut self) {
        let again = |transmission: usize| self.history.transmissions[transmission].again;
        for span in &mut self.spans[self.gap..] {
            span.why = match (span.why, self.news) {
                (Why::Recovery | Why::Window(None) | Why::Cap(None), News::Timeout) => Why::Timeout,
                (Why::Window(None) | Why::Cap(None), News::Ack(transmission)) if again(transmission) => Why::Recovery,
                (Why::Window(None), News::Ack(transmission)) => Why::Window(Some(transmission)),
                (Why::Cap(None), News::Ack(transmission)) => Why::Cap(Some(transmission)),
                (why, _) => why,
            };
        }
    }

    /// Records the end of the run. The signal that the sender waits for may be in flight.
    fn end(&mut self, end: &End) {
        self.pass(end.at);
        self.news = end.answer.map_or(News::Nothing, News::Ack);
        self.settle(end.answer.is_none() && end.lost);
    }

    /// Records that a packet is sent. If the packet had been lost, the waits since the last one were for the detection
    /// of the loss.
    fn settle(&mut self, again: bool) {
        if waits_for_news(self.hold) {
            self.blame();
        }
        for span in self.spans[self.gap..].iter_mut().filter(|_| again) {
            if let Why::Window(_) | Why::Cap(_) = span.why {
                span.why = Why::Recovery;
            }
        }
    }
}

/// Returns whether only a received signal, or a timeout, can end this wait.
fn waits_for_news(hold: HoldReason) -> bool {
    matches!(hold, HoldReason::Window | HoldReason::Cap | HoldReason::Acks)
}
