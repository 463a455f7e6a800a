//! Explanations for programs: ports and hosts by name, times in picoseconds.

use serde::Serialize;

use crate::blame::{Cause, roots};
use crate::explanation::Explanation;
use crate::names::Names;
use crate::parts::Parts;

/// An [`Explanation`] as it is written in JSON.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    workload: u16,
    flow: u64,
    src: String,
    dst: String,
    size_bytes: u64,
    packets: u64,
    start_ps: u64,
    fct_ps: u64,
    ideal_ps: u64,
    slowdown: f64,
    packets_sent: u64,
    packets_sent_again: u64,
    drops: Vec<DropReport>,
    timeouts: u64,
    /// They add up to `fct_ps`.
    parts: Parts,
    places: Vec<PlaceReport>,
    last_packet: Vec<HopReport>,
    pauses: Vec<PauseReport>,
    congested_behind_pauses: Vec<RootReport>,
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

impl Report {
    /// The report of an explanation.
    pub fn new(explanation: &Explanation, names: &Names) -> Self {
        let Explanation { flow, parts, places, pauses, last, sent, again, drops, timeouts } = explanation;
        Self {
            workload: flow.workload,
            flow: flow.id,
            src: names.host(flow.src).to_owned(),
            dst: names.host(flow.dst).to_owned(),
            size_bytes: flow.size.get(),
            packets: flow.packets,
            start_ps: flow.start.as_ps(),
            fct_ps: parts.total().as_ps(),
            ideal_ps: flow.ideal.as_ps(),
            slowdown: flow.slowdown().unwrap_or_default(),
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
