//! htsim's files as graphs and flows.

use std::collections::BTreeMap;

use selvedge_formats::Warning;
use selvedge_formats::htsim_cm::{self, ConnectionMatrix};
use selvedge_formats::htsim_topo::{self, FatTreeFile};
use selvedge_sim::ConfigError;
use selvedge_sim::topology::{Graph, Link, LinkConfig, Node};
use selvedge_sim::workload::{FlowList, ListedFlow, Start, StartUnit, TriggerKind};
use selvedge_units::{Duration, HostId, SwitchId};

use super::FileLibrary;

/// Priority in htsim of flows that are given none.
const NO_PRIORITY: u32 = 2_000_000;

/// Returns a flow's priority. htsim's own receivers pull by any number; 0 to 7 are taken as those of 802.1Q.
fn priority(written: u32) -> Option<u8> {
    u8::try_from(written).ok().filter(|&priority| priority <= 7)
}

pub(super) fn unit(written: StartUnit) -> htsim_cm::StartUnit {
    match written {
        StartUnit::Auto => htsim_cm::StartUnit::Auto,
        StartUnit::Ps => htsim_cm::StartUnit::Picoseconds,
        StartUnit::Ns => htsim_cm::StartUnit::Nanoseconds,
        StartUnit::Us => htsim_cm::StartUnit::Microseconds,
    }
}

impl FileLibrary {
    pub(super) fn htsim_flows(&self, path: &str, matrix: &ConnectionMatrix) -> Result<FlowList, ConfigError> {
        if let Some(line) = matrix.guessed_at {
            let (unit, why) = match matrix.start_unit {
                htsim_cm::StartUnit::Picoseconds => ("picoseconds", "some are 1000000 or more"),
                _ => ("microseconds", "all are below 1000000"),
            };
            let message = format!(
                "starts are taken as {unit}, because {why}; set workload.flows.start-unit to \"ps\", \"ns\" or \"us\" \
                 to say what they are"
            );
            self.note(path, [Warning { line, message }]);
        }
        if matrix.nodes as usize > self.hosts.len() {
            let message = format!(
                "Nodes is {}, but the topology has {} hosts: htsim would not run this",
                matrix.nodes,
                self.hosts.len()
            );
            self.note(path, [Warning { line: 1, message }]);
        }
        let index: BTreeMap<u32, u32> = matrix.triggers.keys().copied().zip(0..).collect();
        let trigger = |id: &u32| index.get(id).copied();
        let strange =
            |flow: &&htsim_cm::Flow| flow.priority.is_some_and(|written| written > 7 && written != NO_PRIORITY);
        if let Some(first) = matrix.flows.iter().find(strange) {
            let written = first.priority.unwrap_or_default();
            let message =
                format!("prio {written} is none of the priorities 0 to 7: such flows have that of nic.data-class");
            self.note(path, [Warning { line: first.line, message }]);
        }
        let numbers = self.numbers(path, matrix.flows.iter().map(|flow| (flow.line, flow.id.map(u64::from))));
        let flows = numbers.into_iter().zip(&matrix.flows).map(|(id, flow)| {
            Ok(ListedFlow {
                id,
                line: Some(flow.line),
                src: self.host(path, flow.line, flow.src)?,
                dst: self.host(path, flow.line, flow.dst)?,
                size: flow.size,
                priority: flow.priority.and_then(priority),
                start: match flow.start {
                    htsim_cm::Start::At(start) => Start::At(start),
                    htsim_cm::Start::Trigger(id) => Start::Triggered(index[&id]),
                },
                on_sent: flow.on_sent.as_ref().and_then(trigger),
                on_received: flow.on_received.as_ref().and_then(trigger),
            })
        });
        let kind = |trigger: &htsim_cm::Trigger| match trigger.kind {
            htsim_cm::TriggerKind::OneShot => TriggerKind::OneShot,
            htsim_cm::TriggerKind::MultiShot => TriggerKind::MultiShot,
            htsim_cm::TriggerKind::Barrier(count) => TriggerKind::Barrier(count),
        };
        Ok(FlowList {
            flows: flows.collect::<Result<_, ConfigError>>()?,
            triggers: matrix.triggers.values().map(kind).collect(),
            trigger_places: matrix.triggers.iter().map(|(&id, trigger)| (id.into(), trigger.line)).collect(),
        })
    }

    pub(super) fn htsim_graph(&self, path: &str, file: &FatTreeFile) -> Graph {
        let has_queues = self.has_queues(path, file);
        let mut graph = Graph::default();
        for host in 0..file.hosts {
            graph.add_host(htsim_topo::Node::Host(host).to_string(), 0);
        }
        // Switches tier by tier; `first` is the number of the first switch of a tier.
        let (tors, aggs) = (file.tors(), file.aggs());
        let all = (0..tors)
            .map(htsim_topo::Node::Tor)
            .chain((0..aggs).map(htsim_topo::Node::Agg))
            .chain((0..file.cores).map(htsim_topo::Node::Core));
        for node in all {
            graph.add_switch(node.to_string(), 0, 0);
        }
        let place = |node| match node {
            htsim_topo::Node::Host(n) => Node::Host(HostId(n)),
            htsim_topo::Node::Tor(n) => Node::Switch(SwitchId(n)),
            htsim_topo::Node::Agg(n) => Node::Switch(SwitchId(tors + n)),
            htsim_topo::Node::Core(n) => Node::Switch(SwitchId(tors + aggs + n)),
        };
        // Half of a switch's delay on the link that enters it, half on the one that leaves it.
        let switch_delay = |node| match node {
            htsim_topo::Node::Host(_) => Duration::ZERO,
            htsim_topo::Node::Tor(_) => file.tiers[0].switch_delay,
            htsim_topo::Node::Agg(_) => file.tiers[1].switch_delay,
            htsim_topo::Node::Core(_) => file.tiers[2].switch_delay,
        };
        for link in file.links() {
            let through = (switch_delay(link.lower) + switch_delay(link.upper)) / 2;
            let config = LinkConfig { rate: link.rate, delay: link.delay + through };
            let mut link =
                Link { buffers: file.queues(link), ..Link::new(place(link.lower), place(link.upper), config) };
            if !has_queues {
                link.buffers = [None; 2];
            }
            graph.links.push(link);
        }
        graph.place_switches();
        graph
    }

    /// Returns whether the file gives the buffer of every port of every switch.
    fn has_queues(&self, path: &str, file: &FatTreeFile) -> bool {
        let given = |tier: &htsim_topo::Tier| {
            [tier.queue_down.is_some()].into_iter().chain(tier.radix_up.map(|_| tier.queue_up.is_some()))
        };
        let all = file.tiers.iter().flat_map(given).all(|given| given);
        if !all && file.tiers.iter().flat_map(given).any(|given| given) {
            let message = "Queue_Up and Queue_Down are not used, because some tiers lack them: buffers are set by \
                           switch.buffer";
            self.note(path, [Warning { line: 1, message: message.to_owned() }]);
        }
        all
    }
}
