//! Pauses and outages of ports, and the inputs that caused the pauses by filling up.

use std::collections::BTreeMap;

use selvedge_sim::record::{Event, What};
use selvedge_units::{Bytes, Duration, Instant, PortId};

/// All pauses and outages of a run, by port.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    ports: BTreeMap<PortId, Port>,
}

#[derive(Debug, Default)]
struct Port {
    episodes: Vec<Episode>,
    outages: Vec<(Instant, Instant)>,
    /// Times at which the port's input filled up, and the packets in it.
    fills: Vec<Fill>,
}

/// The reason why a port may not send, and the time since which it may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// The peer has paused the port.
    Paused(Instant),
    /// The link is down.
    Down(Instant),
}

/// An interval during which a port was paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Episode {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// Paused classes, one bit per class.
    classes: u8,
}

/// An input that filled up.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) at: Instant,
    pub(crate) outputs: Vec<Backlog>,
}

/// The packets of a full input that wait for one output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Backlog {
    pub(crate) output: PortId,
    /// Bytes from the full input that wait for the output.
    pub(crate) held: Bytes,
    /// Bytes from all inputs that wait for the output.
    pub(crate) waiting: Bytes,
    /// Number of inputs that the waiting bytes came from.
    pub(crate) inputs: u32,
}

impl Pauses {
    /// Records a pause, an input that filled up, or a link that went down or came back.
    pub(crate) fn take(&mut self, event: &Event) {
        let at = event.at;
        match event.what {
            What::Paused { port, classes } => self.port(port).pause(at, classes),
            What::Link { port, up } => self.port(port).link(at, up),
            What::Filled { port, output, held, waiting, inputs } => {
                let fills = &mut self.port(port).fills;
                if fills.last().is_none_or(|fill| fill.at != at) {
                    fills.push(Fill { at, outputs: Vec::new() });
                }
                let fill = fills.last_mut().expect("a fill of this time exists");
                fill.outputs.push(Backlog { output, held, waiting, inputs });
            }
            _ => {}
        }
    }

    fn port(&mut self, port: PortId) -> &mut Port {
        self.ports.entry(port).or_default()
    }

    /// Returns how long the link at `port` was down between `from` and `to`.
    pub(crate) fn outage(&self, port: PortId, from: Instant, to: Instant) -> Duration {
        let outages = self.ports.get(&port).map_or(&[][..], |port| &port.outages);
        outages.iter().map(|&(begin, end)| end.min(to).since(begin.max(from))).sum()
    }

    /// Returns the pauses of `classes` (one bit per class) at `port` between `from` and `to`: index of each episode,
    /// and its length within that time.
    pub(crate) fn between(&self, port: PortId, classes: u8, from: Instant, to: Instant) -> Vec<(usize, Duration)> {
        let episodes = self.episodes(port);
        let first = episodes.partition_point(|episode| episode.to <= from);
        let within = |(at, episode): (usize, &Episode)| {
            let span = episode.to.min(to).since(episode.from.max(from));
            (episode.classes & classes != 0 && !span.is_zero()).then_some((at, span))
        };
        let upcoming = episodes.iter().enumerate().skip(first);
        upcoming.take_while(|(_, episode)| episode.from < to).filter_map(within).collect()
    }

    /// Returns the pauses of `port` in order.
    pub(crate) fn episodes(&self, port: PortId) -> &[Episode] {
        self.ports.get(&port).map_or(&[], |port| &port.episodes)
    }

    /// Returns the index of the pause of `port` at a time, if the port was paused.
    pub(crate) fn at(&self, port: PortId, at: Instant) -> Option<usize> {
        let episodes = self.episodes(port);
        let next = episodes.partition_point(|episode| episode.from <= at);
        next.checked_sub(1).filter(|&last| episodes[last].to > at)
    }

    /// Returns the index of the pause of `port` that had not ended at the end of the run.
    pub(crate) fn endless(&self, port: PortId) -> Option<usize> {
        let episodes = self.episodes(port);
        episodes.len().checked_sub(1).filter(|&last| episodes[last].to == Instant::NEVER)
    }

    /// Returns the reason why `port` may not send `classes` at the end of the run, and since when.
    pub(crate) fn stop(&self, port: PortId, classes: u8) -> Option<Stop> {
        let outage = self.ports.get(&port)?.outages.last().filter(|(_, to)| *to == Instant::NEVER);
        let pause = self.episodes(port).last().filter(|last| last.to == Instant::NEVER && last.classes & classes != 0);
        outage.map(|&(from, _)| Stop::Down(from)).or(pause.map(|pause| Stop::Paused(pause.from)))
    }

    /// Returns when the input at `port` had last filled up, at `at` or before.
    pub(crate) fn fill(&self, port: PortId, at: Instant) -> Option<&Fill> {
        let fills = &self.ports.get(&port)?.fills;
        fills[..fills.partition_point(|fill| fill.at <= at)].last()
    }
}

impl Port {
    fn pause(&mut self, at: Instant, classes: u8) {
        self.end_pause(at);
        if classes != 0 {
            self.episodes.push(Episode { from: at, to: Instant::NEVER, classes });
        }
    }

    fn link(&mut self, at: Instant, up: bool) {
        if up {
            if let Some(outage) = self.outages.last_mut() {
                outage.1 = at;
            }
        } else {
            self.end_pause(at);
            self.outages.push((at, Instant::NEVER));
        }
    }

    fn end_pause(&mut self, at: Instant) {
        if let Some(open) = self.episodes.last_mut().filter(|episode| episode.to == Instant::NEVER) {
            open.to = at;
        }
    }
}
