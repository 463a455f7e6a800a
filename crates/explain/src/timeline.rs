//! What the sender did and waited for, from the start of the flow until it sent the last packet; or, if it is the
//! sender that an unfinished flow waits for, until the end of the run.

use selvedge_telemetry::TimePart;
use selvedge_transport::Hold;
use selvedge_units::Instant;

use crate::history::{End, FlowHistory, SenderEvent};

/// A part of the sender's time. They follow each other without a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Span {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    pub(crate) why: Why,
}

/// What it did or waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// It sent a packet, for the first time or again.
    Send {
        /// Whether it had been sent before.
        again: bool,
    },
    /// The link was not free, or not allowed to send.
    Link,
    /// Congestion control spaced packets.
    Pacing,
    /// The loss recovery: news of a loss, its repair, the fetching of lost packets.
    Recovery,
    /// A retransmission timeout.
    Timeout,
    /// Congestion control's window was closed.
    Window(Opener),
    /// The loss recovery's limit on packets in flight was reached.
    Cap(Opener),
}

impl Why {
    /// Where it is put down if it has no cause further away.
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

/// The transmission whose acknowledgement ended a wait, if one did.
pub(crate) type Opener = Option<usize>;

/// What a sender may hear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum News {
    Nothing,
    Ack(usize),
    Timeout,
}

/// Goes through a flow's events.
struct Walk<'a> {
    history: &'a FlowHistory,
    spans: Vec<Span>,
    /// Everything before this is accounted for.
    at: Instant,
    hold: Hold,
    /// What it has heard at this very moment.
    news: News,
    /// The first span since the last packet was sent.
    gap: usize,
}

/// The spans of `history` until the packet is sent with which it ends.
pub(crate) fn spans(history: &FlowHistory) -> Vec<Span> {
    let start = history.flow.start;
    let mut walk = Walk { history, spans: Vec::new(), at: start, hold: Hold::Link, news: News::Nothing, gap: 0 };
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
    /// Time passes until `time`, with the sender held as it is.
    fn pass(&mut self, time: Instant) {
        if time > self.at {
            let why = match self.hold {
                Hold::Link => Why::Link,
                Hold::Pacing(_) => Why::Pacing,
                Hold::Recovery(_) | Hold::Acks => Why::Recovery,
                Hold::Window => Why::Window(None),
                Hold::Cap => Why::Cap(None),
            };
            self.spans.push(Span { from: self.at, to: time, why });
            self.at = time;
        }
    }

    /// The sender sends a packet, which takes its time.
    fn send(&mut self, transmission: usize) {
        let hop = &self.history.transmissions[transmission].forward.hops[0];
        let why = Why::Send { again: self.history.transmissions[transmission].again };
        self.spans.push(Span { from: hop.sent, to: hop.left(), why });
        self.at = hop.left();
        self.gap = self.spans.len();
    }

    /// The sender is held by something else, because of what it has heard.
    fn change(&mut self, hold: Hold) {
        if !waits_for_news(hold) && waits_for_news(self.hold) {
            self.blame();
        }
        self.hold = hold;
    }

    /// What it has heard has ended the wait of the spans since the last packet.
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

    /// The run ends. What the sender waits for may be on its way.
    fn end(&mut self, end: &End) {
        self.pass(end.at);
        self.news = end.answer.map_or(News::Nothing, News::Ack);
        self.settle(end.answer.is_none() && end.lost);
    }

    /// A packet is sent. If that is a packet which was lost, what the sender waited for since the last one
    /// was the news of that.
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

/// Whether only something heard, or a timeout, can end this.
fn waits_for_news(hold: Hold) -> bool {
    matches!(hold, Hold::Window | Hold::Cap | Hold::Acks)
}
