//! Attribution of one flow's time: every moment is assigned to one part.

use std::collections::BTreeMap;

use selvedge_telemetry::TimePart;
use selvedge_units::{Duration, Instant, PortId};

use crate::alone::{self, Link};
use crate::blame::{self, Weights};
use crate::explanation::{Awaited, DelayingPort, DropPlace, Explanation, HopDelays};
use crate::history::{FlowHistory, SenderEvent};
use crate::names::Names;
use crate::parts::Parts;
use crate::pauses::Pauses;
use crate::share::{fraction, share};
use crate::timeline::{Opener, Span, Why, spans};
use crate::transmission::{Hop, Location};

/// The attribution of one flow's time.
pub(crate) struct Account<'a> {
    history: &'a FlowHistory,
    pauses: &'a Pauses,
    /// Sender's port, and the flow's classes at this port, one bit per class.
    origin: (PortId, u8),
    /// Times during which each port sent data of this flow.
    own: BTreeMap<PortId, Vec<(Instant, Instant)>>,
    parts: Parts,
    /// Packets sent for the first time within the spans processed so far.
    sent: u64,
    /// Part of the flow's queueing behind its own packets that is already covered by its waits for windows.
    piled_up: Duration,
    queueing: BTreeMap<PortId, Duration>,
    paused: BTreeMap<PortId, Weights>,
}

/// A wait, split into four parts whose sum it is.
struct Wait {
    outage: Duration,
    /// Time of each pause, by index of the port's episode.
    pause: Vec<(usize, Duration)>,
    own: Duration,
    rest: Duration,
}

#[derive(Clone, Copy)]
enum WaitCause {
    Queue,
    Pause(usize),
    Outage,
}

impl<'a> Account<'a> {
    pub(crate) fn new(history: &'a FlowHistory, pauses: &'a Pauses, names: &Names) -> Self {
        // Any packet of the flow tells its class. If it has never sent one, every class is possible.
        let first = history.transmissions.first();
        let origin = (names.host_port(history.nic), first.map_or(u8::MAX, |first| 1 << first.class));
        let mut own: BTreeMap<PortId, Vec<(Instant, Instant)>> = BTreeMap::new();
        for hop in history.transmissions.iter().flat_map(|transmission| &transmission.forward.hops) {
            own.entry(hop.port).or_default().push((hop.sent, hop.left()));
        }
        own.values_mut().for_each(|times| times.sort_unstable());
        let (parts, queueing, paused) = (Parts::default(), BTreeMap::new(), BTreeMap::new());
        Self { history, pauses, origin, own, parts, sent: 0, piled_up: Duration::ZERO, queueing, paused }
    }

    pub(crate) fn explain(mut self, names: &Names) -> Explanation {
        let spans = spans(self.history);
        let windows = Windows::new(&spans);
        for span in &spans {
            self.take_span(span, &windows);
        }
        let last = self.take_last();
        let flow = self.history.flow;
        let end = flow.finish.or(self.history.end.map(|end| end.at));
        assert_eq!(Some(self.parts.total()), end.map(|end| end - flow.start), "the parts of {flow:?} add up");
        let transmissions = &self.history.transmissions;
        Explanation {
            flow,
            parts: self.parts,
            awaited: self.awaited(&spans),
            places: self.places(),
            pauses: blame::trees(self.pauses, names, &self.paused),
            last,
            sent: transmissions.len() as u64,
            again: transmissions.iter().filter(|transmission| transmission.again).count() as u64,
            drops: self.drops(),
            timeouts: self.history.events.iter().filter(|(_, event)| *event == SenderEvent::TimedOut).count() as u64,
        }
    }

    /// Attributes a span of the sender's time to a part.
    fn take_span(&mut self, span: &Span, windows: &Windows) {
        let part = span.why.part();
        match span.why {
            Why::Send { again } => {
                self.parts[part] += span.to - span.from;
                self.sent += u64::from(!again);
            }
            Why::Recovery | Why::Timeout | Why::Pacing => self.parts[part] += span.to - span.from,
            Why::Link => {
                let (port, classes) = self.origin;
                let wait = self.wait(port, classes, span.from, span.to, Duration::ZERO);
                self.parts[part] += wait.rest;
                self.hold(port, &wait);
            }
            Why::Window(opener) | Why::Cap(opener) => self.take_window(span, part, opener, windows),
        }
    }

    /// Attributes a wait for a window: as much of the wait as the round trip that ended it was late is attributed to
    /// the causes of that lateness. Several waits of one round trip share its lateness in proportion to their lengths.
    /// The rest is serialisation as far as a slower link on the path would have delayed the packets of an unlimited
    /// sender, and otherwise `part`.
    fn take_window(&mut self, span: &Span, part: TimePart, opener: Opener, windows: &Windows) {
        let time = span.to - span.from;
        let Some(transmission) = opener else {
            self.parts[part] += time;
            return;
        };
        let waits = windows.between(self.history.transmissions[transmission].sent(), span.to).as_ps();
        let held = self.held_up(transmission);
        let weights: Vec<u64> = held.iter().map(|(.., time)| time.as_ps()).collect();
        let late = weights.iter().sum::<u64>().min(waits);
        let blamed = fraction(time.as_ps(), late, waits);
        for ((port, cause, _), time) in held.iter().zip(share(blamed, &weights)) {
            self.blame(*port, *cause, Duration::from_ps(time));
        }
        let left = time - Duration::from_ps(blamed);
        let pile_up = alone::waits(self.sent, &self.links(transmission)).into_iter().sum::<Duration>();
        let own = pile_up.saturating_sub(self.piled_up).min(left);
        self.piled_up += own;
        self.parts[TimePart::Serialisation] += own;
        self.parts[part] += left - own;
    }

    /// Attributes the path of the packet that finished the flow, or of the packet that the flow waits for.
    fn take_last(&mut self) -> Vec<HopDelays> {
        let Some(last) = self.history.ends_with() else { return Vec::new() };
        let transmission = &self.history.transmissions[last];
        let alone = self.alone(last);
        // Time that the sender has already waited does not delay the packet again.
        let mut pile_up = alone.iter().copied().sum::<Duration>().saturating_sub(self.piled_up);
        let mut last = Vec::new();
        for (nth, hop) in transmission.forward.hops.iter().enumerate() {
            let wait = self.wait(hop.port, 1 << transmission.class, hop.from, hop.sent, alone[nth].min(pile_up));
            pile_up -= wait.own;
            let (serialisation, propagation) = (hop.serialisation, hop.propagation());
            // Serialisation of a retransmission at the sender is extra work.
            let part = if nth == 0 && transmission.again { TimePart::Recovery } else { TimePart::Serialisation };
            self.parts[part] += serialisation;
            self.parts[TimePart::Serialisation] += wait.own;
            self.parts[TimePart::Propagation] += propagation;
            self.blame(hop.port, WaitCause::Queue, wait.rest);
            self.hold(hop.port, &wait);
            last.push(HopDelays {
                port: hop.port,
                from: hop.from,
                own: wait.own,
                queueing: wait.rest,
                pause: wait.pause.iter().map(|(_, time)| *time).sum(),
                outage: wait.outage,
                serialisation,
                propagation,
            });
        }
        if let (Some(end), Location::Node(_, None)) = (self.history.end, transmission.forward.place) {
            // A switch holds the packet until the missing packets before it have arrived.
            self.parts[TimePart::Recovery] += end.at - transmission.forward.reached;
        }
        last
    }

    /// Returns what an unfinished flow waits for; `spans` are its sender's time.
    fn awaited(&self, spans: &[Span]) -> Option<Awaited> {
        let end = self.history.end?;
        let Some(at) = end.packet else {
            let part = spans.last().map_or(TimePart::Nic, |last| last.why.part());
            let same = spans.iter().rev().take_while(|span| span.why.part() == part);
            let since = same.last().map_or(end.at, |first| first.from);
            let (port, classes) = self.origin;
            let stop = self.pauses.stop(port, classes);
            let at_port = part == TimePart::Nic;
            return Some(if at_port { Awaited::Port { port, since, stop } } else { Awaited::Sender { part, since } });
        };
        let transmission = &self.history.transmissions[at];
        let (port, since) = (transmission.forward.hops.last()?.port, transmission.forward.reached);
        Some(match transmission.forward.place {
            Location::Node(_, Some(port)) => {
                Awaited::Port { port, since, stop: self.pauses.stop(port, 1 << transmission.class) }
            }
            Location::Node(_, None) => Awaited::Switch { port, since },
            Location::Link | Location::Destination | Location::Lost => Awaited::Link { port },
        })
    }

    /// Returns the delays of this transmission and its acknowledgement beyond an undisturbed round trip: port, cause
    /// and time of each.
    fn held_up(&self, transmission: usize) -> Vec<(PortId, WaitCause, Duration)> {
        let alone = self.alone(transmission);
        let transmission = &self.history.transmissions[transmission];
        let way =
            transmission.forward.hops.iter().zip(&alone).map(|(hop, alone)| (hop, 1 << transmission.class, *alone));
        let back = transmission
            .backward
            .iter()
            .flat_map(|back| &back.hops)
            .map(|hop| (hop, 1 << transmission.backward_class, Duration::ZERO));
        let mut held = Vec::new();
        for (hop, classes, alone) in way.chain(back) {
            let wait = self.wait(hop.port, classes, hop.from, hop.sent, alone);
            let pauses = wait.pause.iter().map(|&(episode, time)| (WaitCause::Pause(episode), time));
            let others = [(WaitCause::Queue, wait.rest), (WaitCause::Outage, wait.outage)];
            let some = pauses.chain(others).filter(|(_, time)| !time.is_zero());
            held.extend(some.map(|(cause, time)| (hop.port, cause, time)));
        }
        held
    }

    /// Splits a wait for `port` into its causes. `alone` is the wait in an empty network.
    fn wait(&self, port: PortId, classes: u8, from: Instant, to: Instant, alone: Duration) -> Wait {
        let outage = self.pauses.outage(port, from, to);
        let pause = self.pauses.between(port, classes, from, to);
        let stopped = outage + pause.iter().map(|(_, time)| *time).sum();
        let left = (to - from) - stopped;
        let own = self.own_between(port, from, to).min(alone).min(left);
        Wait { outage, pause, own, rest: left - own }
    }

    /// Returns how long `port` sent data of this flow between `from` and `to`.
    fn own_between(&self, port: PortId, from: Instant, to: Instant) -> Duration {
        let times = self.own.get(&port).map_or(&[][..], Vec::as_slice);
        let first = times.partition_point(|&(_, end)| end <= from);
        let before = times[first..].iter().take_while(|(begin, _)| *begin < to);
        before.map(|&(begin, end)| end.min(to).since(begin.max(from))).sum()
    }

    /// Returns the wait of this transmission at each hop in an empty network.
    fn alone(&self, transmission: usize) -> Vec<Duration> {
        alone::waits(self.history.transmissions[transmission].before, &self.links(transmission))
    }

    /// Returns the links of this transmission.
    fn links(&self, transmission: usize) -> Vec<Link> {
        // No packet of a flow is longer than its first.
        let first = &self.history.transmissions[0];
        let link = |hop: &Hop| {
            let same = first.forward.hops.iter().find(|other| other.port == hop.port);
            Link { full: same.unwrap_or(hop).serialisation, this: hop.serialisation }
        };
        self.history.transmissions[transmission].forward.hops.iter().map(link).collect()
    }

    /// Attributes the pauses and outages of a wait for `port`.
    fn hold(&mut self, port: PortId, wait: &Wait) {
        self.blame(port, WaitCause::Outage, wait.outage);
        for &(episode, time) in &wait.pause {
            self.blame(port, WaitCause::Pause(episode), time);
        }
    }

    /// Attributes `time` to a cause at `port`.
    fn blame(&mut self, port: PortId, cause: WaitCause, time: Duration) {
        match cause {
            WaitCause::Queue => {
                self.parts[TimePart::Queueing] += time;
                *self.queueing.entry(port).or_default() += time;
            }
            WaitCause::Pause(episode) => {
                self.parts[TimePart::Pause] += time;
                *self.paused.entry(port).or_default().entry(episode).or_default() += time;
            }
            WaitCause::Outage => self.parts[TimePart::Outage] += time,
        }
    }

    fn drops(&self) -> Vec<DropPlace> {
        let drop = |(&(port, reason), &packets)| DropPlace { port, reason, packets };
        let mut drops: Vec<DropPlace> = self.history.dropped.iter().map(drop).collect();
        drops.sort_by_key(|drop| (std::cmp::Reverse(drop.packets), drop.port, drop.reason));
        drops
    }

    fn places(&self) -> Vec<DelayingPort> {
        let mut places: BTreeMap<PortId, DelayingPort> = BTreeMap::new();
        let none = |port| DelayingPort { port, queueing: Duration::ZERO, pause: Duration::ZERO };
        for (&port, &time) in &self.queueing {
            places.entry(port).or_insert(none(port)).queueing += time;
        }
        for (&port, weights) in &self.paused {
            places.entry(port).or_insert(none(port)).pause += weights.values().copied().sum();
        }
        let total = |place: &DelayingPort| place.queueing + place.pause;
        let mut places: Vec<DelayingPort> = places.into_values().filter(|place| !total(place).is_zero()).collect();
        places.sort_by_key(|place| (std::cmp::Reverse(total(place)), place.port));
        places
    }
}

/// The sender's waits for windows, with cumulative sums.
struct Windows {
    /// Begin and end of each wait, and sum of the waits before it.
    waits: Vec<(Instant, Instant, Duration)>,
}

impl Windows {
    fn new(spans: &[Span]) -> Self {
        let mut sum = Duration::ZERO;
        let mut waits = Vec::new();
        for span in spans {
            if let Why::Window(Some(_)) | Why::Cap(Some(_)) = span.why {
                waits.push((span.from, span.to, sum));
                sum += span.to - span.from;
            }
        }
        Self { waits }
    }

    fn until(&self, at: Instant) -> Duration {
        let next = self.waits.partition_point(|&(from, ..)| from < at);
        next.checked_sub(1).map_or(Duration::ZERO, |last| {
            let (from, to, before) = self.waits[last];
            before + to.min(at).since(from)
        })
    }

    fn between(&self, from: Instant, to: Instant) -> Duration {
        self.until(to) - self.until(from)
    }
}
