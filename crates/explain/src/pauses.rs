//! When ports were stopped, and what had filled up then.

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
    /// When its input had filled up, and with what.
    fills: Vec<Fill>,
}

/// Why a port may not send, and since when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Its peer has paused it.
    Paused(Instant),
    /// The link is down.
    Down(Instant),
}

/// A time for which a port was paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Episode {
    pub(crate) from: Instant,
    pub(crate) to: Instant,
    /// Bit per class.
    classes: u8,
}

/// An input that filled up.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) at: Instant,
    pub(crate) outputs: Vec<Backlog>,
}

/// Where the packets wait to that filled an input up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Backlog {
    pub(crate) output: PortId,
    /// Bytes from that input.
    pub(crate) held: Bytes,
    /// Bytes from all.
    pub(crate) waiting: Bytes,
    pub(crate) inputs: u32,
}

impl Pauses {
    /// Takes note of a pause, of an input that filled up, of a link that went down or came back.
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
                let fill = fills.last_mut().expect("it was just added");
                fill.outputs.push(Backlog { output, held, waiting, inputs });
            }
            _ => {}
        }
    }

    fn port(&mut self, port: PortId) -> &mut Port {
        self.ports.entry(port).or_default()
    }

    /// How long the link at `port` was down between `from` and `to`.
    pub(crate) fn outage(&self, port: PortId, from: Instant, to: Instant) -> Duration {
        let outages = self.ports.get(&port).map_or(&[][..], |port| &port.outages);
        outages.iter().map(|&(begin, end)| end.min(to).since(begin.max(from))).sum()
    }

    /// The pauses of `classes` (bit per class) at `port` between `from` and `to`: which of its episodes, and how long
    /// each was within that time.
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

    /// The pauses of `port` in order.
    pub(crate) fn episodes(&self, port: PortId) -> &[Episode] {
        self.ports.get(&port).map_or(&[], |port| &port.episodes)
    }

    /// The pause of `port` at a time, if it was paused.
    pub(crate) fn at(&self, port: PortId, at: Instant) -> Option<usize> {
        let episodes = self.episodes(port);
        let next = episodes.partition_point(|episode| episode.from <= at);
        next.checked_sub(1).filter(|&last| episodes[last].to > at)
    }

    /// The pause of `port` that had not ended when the run did.
    pub(crate) fn endless(&self, port: PortId) -> Option<usize> {
        let episodes = self.episodes(port);
        episodes.len().checked_sub(1).filter(|&last| episodes[last].to == Instant::NEVER)
    }

    /// Why `port` may not send `classes` at the end of the run, and since when.
    pub(crate) fn stop(&self, port: PortId, classes: u8) -> Option<Stop> {
        let outage = self.ports.get(&port)?.outages.last().filter(|(_, to)| *to == Instant::NEVER);
        let pause = self.episodes(port).last().filter(|last| last.to == Instant::NEVER && last.classes & classes != 0);
        outage.map(|&(from, _)| Stop::Down(from)).or(pause.map(|pause| Stop::Paused(pause.from)))
    }

    /// When the input at `port` had last filled up, not after `at`.
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
