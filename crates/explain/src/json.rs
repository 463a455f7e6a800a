//! Explanations as JSON: ports and hosts by name, times in picoseconds.

use selvedge_units::{Duration, Instant};
use serde::Serialize;

use crate::blame::{Cause, roots};
use crate::cycle::{Cycle, Held, Stuck};
use crate::explanation::{Awaited, Explanation};
use crate::names::Names;
use crate::parts::Parts;
use crate::pauses::Stop;

/// The JSON form of an [`Explanation`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    workload: u16,
    flow: u64,
    src: String,
    dst: String,
    size_bytes: u64,
    packets: u64,
    start_ps: u64,
    /// Completion time; `None` for an unfinished flow.
    fct_ps: Option<u64>,
    /// Time of an unfinished flow until the end of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    unfinished_ps: Option<u64>,
    ideal_ps: u64,
    /// Slowdown; for an unfinished flow, that of its time until the end of the run.
    slowdown: f64,
    packets_sent: u64,
    packets_sent_again: u64,
    drops: Vec<DropReport>,
    timeouts: u64,
    /// Parts of `fct_ps` or `unfinished_ps`, which is their sum.
    parts: Parts,
    /// The event that an unfinished flow waited for when the run ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<AwaitedReport>,
    places: Vec<PlaceReport>,
    last_packet: Vec<HopReport>,
    pauses: Vec<PauseReport>,
    congested_behind_pauses: Vec<RootReport>,
}

/// The event that an unfinished flow waited for.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
enum AwaitedReport {
    /// Transmission by a port.
    Port {
        port: String,
        since_ps: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        paused_since_ps: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        down_since_ps: Option<u64>,
    },
    /// Arrival of a packet that is on the link behind a port.
    Link { port: String },
    /// Release of a packet that a switch holds.
    Switch { entered_at: String, since_ps: u64 },
    /// Action of the sender, whose wait belongs to this part.
    Sender { part: &'static str, since_ps: u64 },
}

impl AwaitedReport {
    fn new(awaited: Awaited, names: &Names) -> Self {
        match awaited {
            Awaited::Port { port, since, stop } => {
                let (paused_since_ps, down_since_ps) = match stop {
                    Some(Stop::Paused(since)) => (Some(since.as_ps()), None),
                    Some(Stop::Down(since)) => (None, Some(since.as_ps())),
                    None => (None, None),
                };
                Self::Port { port: names.port(port), since_ps: since.as_ps(), paused_since_ps, down_since_ps }
            }
            Awaited::Link { port } => Self::Link { port: names.port(port) },
            Awaited::Switch { port, since } => Self::Switch { entered_at: names.entry(port), since_ps: since.as_ps() },
            Awaited::Sender { part, since } => Self::Sender { part: part.name(), since_ps: since.as_ps() },
        }
    }
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct PlaceReport {
    port: String,
    queueing_ps: u64,
    pause_ps: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct DropReport {
    entered_at: String,
    reason: &'static str,
    packets: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct RootReport {
    port: String,
    time_ps: u64,
    waiting_bytes: u64,
    inputs: u32,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct HopReport {
    port: String,
    at_ps: u64,
    own_ps: u64,
    queueing_ps: u64,
    pause_ps: u64,
    outage_ps: u64,
    serialisation_ps: u64,
    propagation_ps: u64,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct PauseReport {
    port: String,
    time_ps: u64,
    causes: Vec<CauseReport>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct CauseReport {
    port: String,
    time_ps: u64,
    congested_ps: u64,
    waiting_bytes: u64,
    inputs: u32,
    causes: Vec<CauseReport>,
}

/// The JSON form of a [`Cycle`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CycleReport {
    found_ps: u64,
    since_ps: u64,
    /// Ports of the cycle; each waits for the next, the last for the first.
    ports: Vec<StuckReport>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct StuckReport {
    port: String,
    paused_since_ps: Option<u64>,
    waiting_bytes: u64,
    packets: u64,
    flows: Vec<HeldReport>,
}

#[derive(Clone, PartialEq, Debug, Serialize)]
struct HeldReport {
    /// Workload and number of the flow; both `None` where several flows share its queue pair.
    workload: Option<u16>,
    flow: Option<u64>,
    src: String,
    dst: String,
    packets: u64,
    since_ps: u64,
}

impl CycleReport {
    /// Returns the report of a cycle.
    pub fn new(cycle: &Cycle, names: &Names) -> Self {
        let held = |held: &Held| HeldReport {
            workload: held.flow.map(|flow| flow.workload),
            flow: held.flow.map(|flow| flow.id),
            src: names.host(held.src).to_owned(),
            dst: names.host(held.dst).to_owned(),
            packets: held.packets,
            since_ps: held.since.as_ps(),
        };
        let stuck = |stuck: &Stuck| StuckReport {
            port: names.port(stuck.port),
            paused_since_ps: stuck.paused.map(Instant::as_ps),
            waiting_bytes: stuck.waiting.get(),
            packets: stuck.packets,
            flows: stuck.flows.iter().map(held).collect(),
        };
        let ports = cycle.ports.iter().map(stuck).collect();
        Self { found_ps: cycle.at.as_ps(), since_ps: cycle.since.as_ps(), ports }
    }
}

impl Report {
    /// Returns the report of an explanation.
    pub fn new(explanation: &Explanation, names: &Names) -> Self {
        let Explanation { flow, parts, awaited, places, pauses, last, sent, again, drops, timeouts } = explanation;
        Self {
            workload: flow.workload,
            flow: flow.id,
            src: names.host(flow.src).to_owned(),
            dst: names.host(flow.dst).to_owned(),
            size_bytes: flow.size.get(),
            packets: flow.packets,
            start_ps: flow.start.as_ps(),
            fct_ps: flow.fct().map(Duration::as_ps),
            unfinished_ps: awaited.map(|_| parts.total().as_ps()),
            ideal_ps: flow.ideal.as_ps(),
            slowdown: explanation.slowdown(),
            packets_sent: *sent,
            packets_sent_again: *again,
            drops: drops
                .iter()
                .map(|drop| DropReport {
                    entered_at: names.entry(drop.port),
                    reason: drop.reason.name(),
                    packets: drop.packets,
                })
                .collect(),
            timeouts: *timeouts,
            parts: *parts,
            waits_for: awaited.map(|awaited| AwaitedReport::new(awaited, names)),
            places: places
                .iter()
                .map(|place| PlaceReport {
                    port: names.port(place.port),
                    queueing_ps: place.queueing.as_ps(),
                    pause_ps: place.pause.as_ps(),
                })
                .collect(),
            last_packet: last
                .iter()
                .map(|hop| HopReport {
                    port: names.port(hop.port),
                    at_ps: hop.from.as_ps(),
                    own_ps: hop.own.as_ps(),
                    queueing_ps: hop.queueing.as_ps(),
                    pause_ps: hop.pause.as_ps(),
                    outage_ps: hop.outage.as_ps(),
                    serialisation_ps: hop.serialisation.as_ps(),
                    propagation_ps: hop.propagation.as_ps(),
                })
                .collect(),
            pauses: pauses
                .iter()
                .map(|tree| PauseReport {
                    port: names.port(tree.port),
                    time_ps: tree.time.as_ps(),
                    causes: causes(&tree.causes, names),
                })
                .collect(),
            congested_behind_pauses: roots(pauses)
                .into_iter()
                .map(|root| RootReport {
                    port: names.port(root.port),
                    time_ps: root.time.as_ps(),
                    waiting_bytes: root.waiting.get(),
                    inputs: root.inputs,
                })
                .collect(),
        }
    }
}

fn causes(of: &[Cause], names: &Names) -> Vec<CauseReport> {
    let report = |cause: &Cause| CauseReport {
        port: names.port(cause.port),
        time_ps: cause.time.as_ps(),
        congested_ps: cause.congested.as_ps(),
        waiting_bytes: cause.waiting.get(),
        inputs: cause.inputs,
        causes: causes(&cause.causes, names),
    };
    of.iter().map(report).collect()
}
