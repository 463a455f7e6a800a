//! The cost of a study, estimated before it runs: packets, memory, time.

use std::fmt::{self, Display, Formatter};

use selvedge_scenario::{Plan, PlannedSeries, Point, World};
use selvedge_sim::topology::Topology;
use selvedge_sim::workload::WorkloadConfig;
use selvedge_sim::{Bound, Estimate, MemoryEstimate, Parallel, estimate};
use selvedge_units::words::plural;
use serde::Serialize;

use crate::StudyError;
use crate::available::Available;
use crate::text::{amount, bytes, span};

/// The cost of the remaining runs of a study. `Display` writes one paragraph for people.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StudyEstimate {
    /// Number of runs.
    pub runs: usize,
    /// Number of threads that share the runs.
    pub threads: usize,
    /// Number of concurrent runs.
    pub at_once: usize,
    /// Packets times links crossed, acknowledgements included, retransmissions not.
    pub packet_hops: f64,
    /// Relation of the true number of packet-hops to the estimate: "about", "at least", "at most".
    pub bound: &'static str,
    /// Expected peak memory in bytes.
    pub memory_bytes: f64,
    /// Peak memory in bytes if buffers fill up.
    pub memory_at_most_bytes: f64,
    /// Wall time in seconds; `None` if no rate was measured.
    pub seconds: Option<f64>,
    /// Available memory; `None` if unknown.
    pub available: Option<Available>,
    /// Estimates of the series.
    pub series: Vec<SeriesEstimate>,
}

/// The cost of one run of a series.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SeriesEstimate {
    /// Name of the series.
    pub series: String,
    /// Number of remaining runs.
    pub runs: usize,
    /// Number of flows that begin.
    pub flows: f64,
    /// Payload that receivers accept, in bytes.
    pub payload_bytes: f64,
    /// Data packets, each counted once.
    pub data_packets: f64,
    /// Packets times links crossed, acknowledgements included, retransmissions not.
    pub packet_hops: f64,
    /// Relation of the true numbers to the estimates: "about", "at least", "at most".
    pub bound: &'static str,
    /// Expected memory in bytes.
    pub memory_bytes: f64,
    /// Memory in bytes if buffers fill up.
    pub memory_at_most_bytes: f64,
    /// Keys that reduce the memory.
    #[serde(skip)]
    smaller: String,
    /// Time of a packet-hop, relative to one of the calibration.
    #[serde(skip)]
    cost: f64,
    #[serde(skip)]
    number: usize,
}

impl StudyEstimate {
    /// Estimates the cost of `points` of `plan` on `threads` threads. Runs on a real network are left out: they take
    /// the time that they simulate.
    ///
    /// # Errors
    /// Returns an error if a workload cannot be built.
    pub fn new(plan: &Plan, points: &[Point], threads: usize) -> Result<Self, StudyError> {
        let points: Vec<Point> =
            points.iter().copied().filter(|point| plan.series[point.series].world == World::Simulated).collect();
        let at_once = threads.min(points.len()).max(1);
        let partitions = Parallel::on(threads.div_ceil(at_once)).partitions;
        let mut series: Vec<SeriesEstimate> = Vec::new();
        for (number, planned) in plan.series.iter().enumerate() {
            let mut own = points.iter().filter(|point| point.series == number);
            let Some(&first) = own.next() else { continue };
            let known = estimate(&plan.config(first), plan.library(first), partitions)
                .map_err(|error| StudyError::refused(&planned.name, first.seed, &error))?;
            series.push(SeriesEstimate::new(planned, number, 1 + own.count(), &known));
        }
        Ok(Self::of(series, threads))
    }

    fn of(series: Vec<SeriesEstimate>, threads: usize) -> Self {
        let runs = series.iter().map(|series| series.runs).sum();
        let at_once = threads.min(runs).max(1);
        let some = |bound: Bound| series.iter().any(|series| series.bound == bound.words());
        let bound = match (some(Bound::AtLeast), some(Bound::AtMost)) {
            (true, false) => Bound::AtLeast,
            (false, true) => Bound::AtMost,
            _ => Bound::About,
        };
        let mut estimate = Self {
            runs,
            threads,
            at_once,
            packet_hops: series.iter().map(SeriesEstimate::packet_hops_of_all).sum(),
            bound: bound.words(),
            memory_bytes: 0.0,
            memory_at_most_bytes: 0.0,
            seconds: None,
            available: None,
            series,
        };
        estimate.memory_bytes = estimate.memory_on(at_once, |series| series.memory_bytes);
        estimate.memory_at_most_bytes = estimate.memory_on(at_once, |series| series.memory_at_most_bytes);
        estimate
    }

    /// Returns the cost of several studies whose runs share one queue.
    #[must_use]
    pub fn together(studies: Vec<Self>, threads: usize) -> Self {
        let series = studies.into_iter().flat_map(|study| study.series).collect();
        Self::of(series, threads)
    }

    /// Adds the wall time, given the calibration's rate in packet-hops per second.
    #[must_use]
    pub fn with_rate(self, rate: f64) -> Self {
        let work: f64 = self.series.iter().map(|series| series.work() * series.runs as f64).sum();
        // Threads that share a run gain less than threads with runs of their own.
        let shared = (self.threads as f64 / self.at_once as f64).max(1.0).powf(SHARING);
        let seconds = work / rate / (self.at_once as f64 * shared);
        Self { seconds: Some(seconds), ..self }
    }
    /// Adds the available memory.
    #[must_use]
    pub fn with_available(self, available: Option<Available>) -> Self {
        Self { available, ..self }
    }

    /// Checks that the available memory suffices.
    ///
    /// # Errors
    /// Returns an error if it does not, with the memory needed, the memory available, and the option or key that
    /// reduces the need.
    pub fn check(&self) -> Result<(), StudyError> {
        let Some(available) = self.available.as_ref().filter(|available| self.memory_bytes > available.bytes as f64)
        else {
            return Ok(());
        };
        let alone = self.memory_on(1, |series| series.memory_bytes);
        let fewer = (self.at_once > 1 && alone <= available.bytes as f64)
            .then(|| format!("run fewer at once (--threads 1: {})", bytes(alone)));
        let largest = self.series.iter().max_by(|a, b| a.memory_bytes.total_cmp(&b.memory_bytes));
        let key = largest.map(|series| format!("make {} smaller", series.smaller));
        let remedies: Vec<String> = fewer.into_iter().chain(key).collect();
        let together = if self.at_once > 1 { format!(", {} runs at once", self.at_once) } else { String::new() };
        Err(StudyError::input(format!(
            "needs about {} of memory{together}, and there are {} ({}): {}; --ignore-memory runs it all the same",
            bytes(self.memory_bytes),
            bytes(available.bytes as f64),
            available.by,
            remedies.join(", or "),
        )))
    }

    /// Returns the packet-hops of a run of series `number`, and its payload in bytes.
    pub(crate) fn of_run(&self, number: usize) -> Option<(f64, f64)> {
        let series = self.series.iter().find(|series| series.number == number)?;
        Some((series.work(), series.payload_bytes))
    }

    /// Returns the memory of the `count` largest runs together.
    fn memory_on(&self, count: usize, of: impl Fn(&SeriesEstimate) -> f64) -> f64 {
        let runs = self.series.iter().flat_map(|series| std::iter::repeat_n(of(series), series.runs));
        let mut runs: Vec<f64> = runs.collect();
        runs.sort_by(|a, b| b.total_cmp(a));
        PROGRAM + runs.iter().take(count).sum::<f64>()
    }
}

impl SeriesEstimate {
    fn new(planned: &PlannedSeries, number: usize, runs: usize, estimate: &Estimate) -> Self {
        Self {
            series: planned.name.clone(),
            runs,
            flows: estimate.flows.round(),
            payload_bytes: estimate.payload.round(),
            data_packets: estimate.data_packets.round(),
            packet_hops: estimate.packet_hops.round(),
            bound: estimate.bound.words(),
            memory_bytes: estimate.memory.total().round(),
            memory_at_most_bytes: estimate.memory.at_most().round(),
            smaller: smaller(planned, &estimate.memory),
            cost: cost(planned),
            number,
        }
    }

    /// Returns the work of one run, in packet-hops of the calibration.
    fn work(&self) -> f64 {
        self.packet_hops * self.cost + self.flows * FLOW
    }

    fn packet_hops_of_all(&self) -> f64 {
        self.packet_hops * self.runs as f64
    }
}

/// Returns the time of a packet-hop, relative to one of the calibration: larger networks wait for memory, and some
/// schemes do more work per packet (docs/speed.md).
fn cost(planned: &PlannedSeries) -> f64 {
    let hosts = planned.network.graph().hosts.len() as f64;
    let growth = 1.0 + 0.1 * (hosts / 16.0).log2().max(0.0);
    let transport = &planned.transport;
    let scheme = match () {
        () if transport.tcp().is_some() => 2.0,
        () if !transport.is_rdma() => 1.4,
        () => 1.0,
    };
    let operations = if planned.scenario.workload.verbs.is_empty() { 1.0 } else { 3.0 };
    growth * scheme * operations
}

/// Returns the key that determines most of the memory.
fn smaller(planned: &PlannedSeries, memory: &MemoryEstimate) -> String {
    let MemoryEstimate { fabric, workload, flows, packets, .. } = *memory;
    let largest = [fabric, workload, flows, packets].into_iter().fold(0.0, f64::max);
    let scenario = &planned.scenario;
    match largest {
        _ if largest == fabric => match &scenario.topology {
            Topology::FatTree(_) => "topology.fat-tree.k",
            Topology::LeafSpine(_) => "topology.leaf-spine.leaves or hosts-per-leaf",
            _ => "the topology",
        },
        _ if largest == packets => "switch.buffer",
        _ => key_of_flows(&scenario.workload),
    }
    .to_owned()
}

/// Returns the key that determines how many flows of a workload are open together, or how many there are.
fn key_of_flows(workload: &WorkloadConfig) -> &'static str {
    let keys = [
        (!workload.closed_loop.is_empty(), "workload.closed-loop.outstanding"),
        (!workload.all_to_all.is_empty(), "workload.all-to-all.outstanding"),
        (!workload.verbs.is_empty(), "workload.verbs.queue-depth or queue-pairs"),
        (!workload.flows.is_empty(), "the list in workload.flows"),
        (!workload.goal.is_empty(), "the schedule in workload.goal"),
        (!workload.incast.is_empty(), "workload.incast.senders or connections"),
        (!workload.mixture_of_experts.is_empty(), "workload.mixture-of-experts"),
        (!workload.collective.is_empty(), "workload.collective"),
        (!workload.pipeline.is_empty(), "workload.pipeline"),
        (!workload.poisson.is_empty(), "workload.poisson.load"),
    ];
    keys.into_iter().find_map(|(is_there, key)| is_there.then_some(key)).unwrap_or("the workload")
}

impl Display for StudyEstimate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.series.is_empty() {
            return write!(f, "nothing is left to simulate");
        }
        write!(f, "{} {} packet-hops in {}", self.bound, amount(self.packet_hops), plural(self.runs as u64, "run"))?;
        if let Some(seconds) = self.seconds {
            // The time is that of the estimated packet-hops: if they are a bound, so is the time.
            match seconds < 1.0 {
                true if self.bound == Bound::AtLeast.words() => write!(f, ", a second or more")?,
                true => write!(f, ", {}", span(seconds))?,
                false => write!(f, ", {} {}", self.bound, span(seconds))?,
            }
        }
        write!(f, ", {}", bytes(self.memory_bytes))?;
        if self.memory_at_most_bytes > self.memory_bytes * 1.5 {
            write!(f, " (full buffers: {})", bytes(self.memory_at_most_bytes))?;
        }
        write!(f, " of memory")?;
        if let Some(available) = &self.available {
            write!(f, " of {} ({})", bytes(available.bytes as f64), available.by)?;
        }
        Ok(())
    }
}

/// Memory of the program itself, and of merging the results, in bytes.
const PROGRAM: f64 = 20e6;
/// Work to begin, end and record a flow, in packet-hops of the calibration.
const FLOW: f64 = 40.0;
/// Exponent of the speed-up of a run on several threads: threads to this power.
const SHARING: f64 = 0.55;
