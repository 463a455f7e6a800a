//! Flows given as lists.

use std::sync::Arc;

use schemars::JsonSchema;
use selvedge_units::{Bytes, Duration, HostId, Instant};
use serde::{Deserialize, Serialize};

use super::build::{BuildEnv, Part, Source, WorkloadKind, WorkloadSummary};
use super::{Extent, FlowSpec, Generator};
use crate::ConfigError;
use crate::topology::Graph;

/// Flows in a file (ns-3 RDMA `flow.txt`, htsim `.cm`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FlowFile {
    /// Path, relative to the scenario file. The dialect is detected.
    pub path: String,
    /// Source of the priorities of these flows. Default: "file".
    #[serde(default)]
    pub priorities: Priorities,
    /// Unit of starts in htsim's `.cm`, which the file does not give. Default: "auto".
    #[serde(default, skip_serializing_if = "StartUnit::is_auto")]
    pub start_unit: StartUnit,
}

/// Unit of starts in htsim's `.cm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartUnit {
    /// Picoseconds if any start is 1,000,000 or more, as htsim's generators write them; else microseconds. With a
    /// warning, unless all are zero.
    #[default]
    Auto,
    /// Picoseconds.
    Ps,
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
}

impl StartUnit {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// Source of the priorities of listed flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priorities {
    /// The file, where it gives one from 0 to 7 (ns-3's `pg`, htsim's `prio`): the 802.1Q priority of the flow's data,
    /// by which PFC pauses and switches queue. Else `nic.data-class`.
    #[default]
    File,
    /// The NIC: `nic.data-class` for all flows.
    Nic,
}

/// List of flows, some of which wait for others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FlowList {
    /// The flows, in input order.
    pub flows: Vec<ListedFlow>,
    /// The triggers that flows refer to by index.
    pub triggers: Vec<TriggerKind>,
    /// Ids of the triggers and their lines in the file, where they have such; else empty.
    pub trigger_places: Vec<(u64, u64)>,
}

/// One flow of a [`FlowList`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedFlow {
    /// Number of the flow, unique in the list.
    pub id: u64,
    /// Line of the flow in the file, if there is one.
    pub line: Option<u64>,
    /// Sender.
    pub src: HostId,
    /// Receiver.
    pub dst: HostId,
    /// Payload in bytes.
    pub size: Bytes,
    /// Priority of the flow's data, 0 to 7, where the file gives one.
    pub priority: Option<u8>,
    /// Start of the flow.
    pub start: Start,
    /// Trigger to activate when the sender has everything acknowledged.
    pub on_sent: Option<u32>,
    /// Trigger to activate when the receiver has everything.
    pub on_received: Option<u32>,
}

/// Start of a flow of a [`FlowList`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Fixed time of the start.
    At(Instant),
    /// Index of the trigger that starts the flow.
    Triggered(u32),
}

/// Reaction of a trigger to activations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerKind {
    /// The first activation releases all waiting flows; later ones nothing.
    OneShot,
    /// Each activation releases the next waiting flow.
    MultiShot,
    /// The `n`-th activation releases all waiting flows.
    Barrier(u32),
}

impl FlowFile {
    /// Creates a configuration of the flows at `path`, with their own priorities and the usual unit.
    pub fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), priorities: Priorities::File, start_unit: StartUnit::Auto }
    }
}

impl FlowList {
    /// Checks that the flows can run on `graph`: hosts exist, no host sends to itself, sizes are above zero, triggers
    /// exist and are activated often enough by flows that start.
    ///
    /// # Errors
    /// The first flow or trigger that cannot work, by its line in the file at `path` and its place in the list, from 1.
    pub fn check(&self, path: &str, graph: &Graph) -> Result<(), ConfigError> {
        for (n, flow) in self.flows.iter().enumerate() {
            flow.check(graph, self.triggers.len())
                .map_err(|message| ConfigError::new("", format!("{}: {message}", self.name(path, n))))?;
        }
        self.check_triggers(path)
    }
    /// Returns the flows that start at a time, in that order, and those that wait with their trigger, as flows of the
    /// workload `workload` whose triggers are numbered from `first_trigger`.
    fn split(&self, workload: u16, first_trigger: u32) -> (ListedFlows, Vec<(u32, FlowSpec)>) {
        let mut timed = Vec::new();
        let mut waiting = Vec::new();
        for flow in &self.flows {
            let spec = flow.spec(workload, first_trigger);
            match flow.start {
                Start::At(_) => timed.push(spec),
                Start::Triggered(trigger) => waiting.push((first_trigger + trigger, spec)),
            }
        }
        (ListedFlows::new(timed), waiting)
    }

    /// Returns a flow's name in messages, and its place in the file.
    fn name(&self, path: &str, n: usize) -> String {
        let ListedFlow { id, line, .. } = self.flows[n];
        // The message is about the whole line.
        let place = line.map_or(String::new(), |line| format!(":{line}:1"));
        format!("{path}{place}: flow {} of {} (id {id})", n + 1, self.flows.len())
    }

    /// Returns a trigger's name in messages.
    fn trigger_name(&self, n: usize) -> String {
        let place = format!("trigger {} of {}", n + 1, self.triggers.len());
        match self.trigger_places.get(n) {
            Some((id, line)) => format!("{place} (id {id}, line {line})"),
            None => place,
        }
    }

    fn check_triggers(&self, path: &str) -> Result<(), ConfigError> {
        let mut activations = vec![0u32; self.triggers.len()];
        let mut waits = vec![None; self.triggers.len()];
        for (n, flow) in self.flows.iter().enumerate() {
            flow.on_sent.into_iter().chain(flow.on_received).for_each(|trigger| activations[trigger as usize] += 1);
            if let Start::Triggered(trigger) = flow.start {
                waits[trigger as usize].get_or_insert(n);
            }
        }
        for (n, kind) in self.triggers.iter().enumerate() {
            let Some(flow) = waits[n] else { continue };
            let needed = if let TriggerKind::Barrier(count) = kind { *count } else { 1 };
            if needed == 0 || activations[n] < needed {
                let activating = match activations[n] {
                    0 => "no flow activates it".to_owned(),
                    1 => "one flow activates it".to_owned(),
                    many => format!("{many} flows activate it"),
                };
                let message = format!(
                    "{} waits for {}, which releases it at activation {needed}, but {activating}: it would never start; \
                     let flows activate it when they end, or the flow start at a time",
                    self.name(path, flow),
                    self.trigger_name(n),
                );
                return Err(ConfigError::new("", message));
            }
        }
        self.check_circles(path, &activations)
    }

    /// Checks that every flow starts, except for flows whose multi-shot trigger has fewer activations than flows.
    fn check_circles(&self, path: &str, activations: &[u32]) -> Result<(), ConfigError> {
        let mut waiting = vec![Vec::new(); self.triggers.len()];
        let mut starting = Vec::new();
        for (n, flow) in self.flows.iter().enumerate() {
            match flow.start {
                Start::At(_) => starting.push(n),
                Start::Triggered(trigger) => waiting[trigger as usize].push(n),
            }
        }
        let mut released = vec![0; self.triggers.len()];
        let mut activated = vec![0; self.triggers.len()];
        while let Some(n) = starting.pop() {
            let flow = &self.flows[n];
            for trigger in flow.on_sent.into_iter().chain(flow.on_received).map(|trigger| trigger as usize) {
                activated[trigger] += 1;
                let next = self.triggers[trigger].released_by(activated[trigger], waiting[trigger].len());
                starting.extend(&waiting[trigger][released[trigger]..next]);
                released[trigger] = next;
            }
        }
        let stuck = |n: &usize| released[*n] < self.triggers[*n].released_by(activations[*n], waiting[*n].len());
        let Some(trigger) = (0..self.triggers.len()).find(stuck) else { return Ok(()) };
        let flow = waiting[trigger][released[trigger]];
        let message = format!(
            "{} waits for {}, which flows activate that themselves wait for it, or for flows that never start: it would \
             never start",
            self.name(path, flow),
            self.trigger_name(trigger),
        );
        Err(ConfigError::new("", message))
    }
}

impl TriggerKind {
    /// Returns how many of the `waiting` flows of a trigger have been released after `activations`.
    fn released_by(self, activations: u32, waiting: usize) -> usize {
        match self {
            Self::MultiShot => waiting.min(activations as usize),
            Self::OneShot if activations == 0 => 0,
            Self::Barrier(needed) if activations < needed => 0,
            Self::OneShot | Self::Barrier(_) => waiting,
        }
    }
}

impl ListedFlow {
    fn check(&self, graph: &Graph, triggers: usize) -> Result<(), String> {
        let hosts = graph.host_count() as usize;
        for (end, host) in [("source", self.src), ("destination", self.dst)] {
            if host.index() >= hosts {
                return Err(format!("{end} {} does not exist: hosts are numbered from 0 to {}", host.0, hosts - 1));
            }
        }
        if self.src == self.dst {
            return Err(format!("host {} would send to itself", self.src.0));
        }
        if self.size.is_zero() {
            return Err("a flow has at least one byte, found size 0".into());
        }
        let released_by = if let Start::Triggered(trigger) = self.start { Some(trigger) } else { None };
        if let Some(priority) = self.priority.filter(|&priority| priority > 7) {
            return Err(format!("{priority} is not a priority: they are 0 to 7"));
        }
        match released_by.into_iter().chain(self.on_sent).chain(self.on_received).find(|&n| n as usize >= triggers) {
            Some(n) => Err(format!("it refers to trigger {} of {triggers}", u64::from(n) + 1)),
            None => Ok(()),
        }
    }
    fn spec(&self, workload: u16, first_trigger: u32) -> FlowSpec {
        FlowSpec {
            id: self.id,
            workload,
            group: 0,
            src: self.src,
            dst: self.dst,
            size: self.size,
            priority: self.priority,
            start: if let Start::At(start) = self.start { start } else { Instant::ZERO },
            measured: true,
            on_sent: self.on_sent.map(|trigger| first_trigger + trigger),
            on_received: self.on_received.map(|trigger| first_trigger + trigger),
        }
    }
}

impl WorkloadKind for FlowFile {
    const NAME: &'static str = "flows";

    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError> {
        let mut list = env.library.flows(&self.path, self.start_unit).map_err(|error| match error.key.is_empty() {
            true => error.within("path"),
            false => error,
        })?;
        if self.priorities == Priorities::Nic {
            list.flows.iter_mut().for_each(|flow| flow.priority = None);
        }
        if list.flows.is_empty() {
            return Err(ConfigError::new("path", format!("{}: no flows", self.path)));
        }
        list.check(&self.path, env.graph).map_err(|error| error.within("path"))?;

        let ends = |end: fn(&ListedFlow) -> HostId| {
            let mut hosts: Vec<HostId> = list.flows.iter().map(end).collect();
            hosts.sort();
            hosts.dedup();
            hosts
        };
        let bytes: f64 = list.flows.iter().map(|flow| flow.size.get() as f64).sum();
        let summary = WorkloadSummary {
            mean_size: bytes / list.flows.len() as f64,
            extent: Extent::Known(list.flows.len() as u64),
            first: list.flows.iter().filter_map(|flow| flow.start.time()).min().unwrap_or_default(),
            duration: list.flows.iter().filter_map(|flow| flow.start.time()).max(),
            last: list.flows.iter().map(|flow| flow.start.time()).max().filter(|_| list.triggers.is_empty()).flatten(),
            priorities: list.flows.iter().filter_map(|flow| flow.priority).collect(),
            ..WorkloadSummary::new(Self::NAME, &ends(|flow| flow.src), &ends(|flow| flow.dst))
        };
        let source = Source::Triggered(Box::new(move |triggers| {
            let first = triggers.add(list.triggers.iter().copied());
            let (timed, waiting) = list.split(workload, first);
            waiting.into_iter().for_each(|(trigger, flow)| triggers.wait(trigger, flow, Duration::ZERO));
            Box::new(timed)
        }));
        Ok(Part { source, summary, offers: Vec::new() })
    }
}

impl Start {
    /// Returns the time from the beginning of the run to the start, if the start is fixed.
    fn time(self) -> Option<Duration> {
        if let Self::At(start) = self { Some(start.since(Instant::ZERO)) } else { None }
    }
}

/// Generator of flows that are known beforehand.
#[derive(Clone)]
pub(super) struct ListedFlows {
    /// Flows in ascending order of start, shared by clones.
    flows: Arc<[FlowSpec]>,
    next: usize,
}

impl ListedFlows {
    /// Creates a generator of the flows in order of start; those at the same time stay in the given order.
    pub(super) fn new(mut flows: Vec<FlowSpec>) -> Self {
        flows.sort_by_key(|flow| flow.start);
        Self { flows: flows.into(), next: 0 }
    }
}

impl Generator for ListedFlows {
    fn next_flow(&mut self) -> Option<FlowSpec> {
        let flow = self.flows.get(self.next).copied();
        self.next += usize::from(flow.is_some());
        flow
    }
    fn extent(&self) -> Extent {
        Extent::Known((self.flows.len() - self.next) as u64)
    }
    fn boxed_clone(&self) -> Box<dyn Generator> {
        Box::new(self.clone())
    }
}
