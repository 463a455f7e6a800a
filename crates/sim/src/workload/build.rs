//! Construction of flows from their configuration.

use std::collections::BTreeSet;

use selvedge_telemetry::GroupParts;
use selvedge_units::{Duration, HostId};

use super::schedule::Executor;
use super::{ClosedLoop, Extent, Generator, Many, Measure, Merged, Poisson, Posting, Triggers};
use crate::topology::{Demand, Framing, Graph, LinkLoad, LinkLoads, Routes};
use crate::{ConfigError, Library};

/// Context in which workloads are built.
#[derive(Clone, Copy)]
pub struct BuildEnv<'a> {
    /// Network of the flows.
    pub graph: &'a Graph,
    /// Routes of the network, with all links up.
    pub routes: &'a Routes,
    /// Seed of all random streams.
    pub seed: u64,
    /// Source of distributions and files.
    pub library: &'a dyn Library,
    /// Sizes that turn payload into bytes on links; for the check of loads only.
    pub framing: Framing,
    /// Choice of the flows that are measured.
    pub measure: Measure,
    /// Number of flows after which no flow begins. [`Merged`] applies this limit itself; for flows that wait for
    /// others, the caller must count.
    pub stop_flows: Option<u64>,
}

/// All flows of a scenario. A clone starts from the same state.
#[derive(Clone)]
pub struct Workload {
    /// Flows that start at a time of their own.
    pub stream: Merged,
    /// Flows that start when others have finished, through [`FlowSpec::on_sent`] and [`FlowSpec::on_received`].
    ///
    /// [`FlowSpec::on_sent`]: super::FlowSpec::on_sent
    /// [`FlowSpec::on_received`]: super::FlowSpec::on_received
    pub triggers: Triggers,
    /// Clients whose flows follow each other.
    pub loops: Vec<ClosedLoop>,
    /// Schedules that hosts execute.
    pub executors: Vec<Executor>,
    /// Applications that post work requests.
    pub postings: Vec<Posting>,
    /// Summary of each workload, indexed by its number.
    pub summaries: Vec<WorkloadSummary>,
    /// Most loaded direction of any link under random arrivals, headers included.
    pub worst_link: Option<LinkLoad>,
}

/// Summary of a workload in numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadSummary {
    /// Key of the workload's kind in a scenario.
    pub kind: &'static str,
    /// Key of the workload in a scenario: with its number where there are several of a kind, as in "poisson\[1\]".
    pub key: String,
    /// Operation of the workload, where its kind has several.
    pub operation: Option<&'static str>,
    /// Parts of the workload's groups, if its flows make groups that are done when their last one is: those of incasts,
    /// all-to-alls and jobs.
    pub group: Option<GroupParts>,
    /// Number of hosts that may send.
    pub senders: usize,
    /// Number of hosts that may receive.
    pub receivers: usize,
    /// Payload that each sender offers, as a fraction of its link's rate; where that is given.
    pub load: Option<f64>,
    /// Mean size of a flow in bytes.
    pub mean_size: f64,
    /// Mean number of flows that start in a second, over all senders; where that is given.
    pub flows_per_second: Option<f64>,
    /// Number of flows that there will be.
    pub extent: Extent,
    /// Whether some of the flows start after others, so that their numbers are not known beforehand.
    pub follows: bool,
    /// Time before which none of the flows starts.
    pub first: Duration,
    /// Time after which none of the flows starts, where that is known.
    pub last: Option<Duration>,
    /// Mean time until which flows keep starting, where that is known.
    pub duration: Option<Duration>,
    /// Priorities that the flows ask for.
    pub priorities: BTreeSet<u8>,
}

impl Workload {
    /// Returns traffic without any flow of its own, to which flows are added from outside.
    pub(crate) fn of_injected() -> Self {
        Self {
            stream: Merged::new(Vec::new(), Measure::All, None).expect("no flows, all of them measured"),
            triggers: Triggers::new(Measure::All),
            loops: Vec::new(),
            executors: Vec::new(),
            postings: Vec::new(),
            summaries: Vec::new(),
            worst_link: None,
        }
    }
    /// Returns this traffic with a workload, the last one, for flows that are added from outside.
    #[must_use]
    pub(crate) fn with_injected(mut self, graph: &Graph) -> Self {
        let hosts: Vec<HostId> = (0..graph.host_count()).map(HostId).collect();
        self.summaries.push(WorkloadSummary::new("injected", &hosts, &hosts));
        self
    }
    /// Returns the closed loop that flows of `workload` belong to.
    pub fn loop_of(&mut self, workload: u16) -> Option<&mut ClosedLoop> {
        self.loops.iter_mut().find(|closed| closed.workload() == workload)
    }
    /// Returns the schedule that flows of `workload` belong to.
    pub fn executor_of(&mut self, workload: u16) -> Option<&mut Executor> {
        self.executors.iter_mut().find(|executor| executor.workload() == workload)
    }
    /// Returns the applications that messages of `workload` belong to.
    pub fn posting_of(&mut self, workload: u16) -> Option<&mut Posting> {
        self.postings.iter_mut().find(|posting| posting.verb_of(workload).is_some())
    }
    /// Returns the number of flows of all kinds that there will be.
    pub fn extent(&self) -> Extent {
        let scheduled: u64 = self.executors.iter().map(Executor::flows).sum();
        let waiting = Extent::Known(self.triggers.len() + scheduled);
        let following = self.loops.iter().map(ClosedLoop::extent).chain(self.postings.iter().map(Posting::extent));
        following.fold(self.stream.extent().plus(waiting), Extent::plus)
    }
}

impl WorkloadSummary {
    /// Returns whether the workload is an operation of applications' queue pairs.
    pub(crate) fn is_of_verbs(&self) -> bool {
        self.kind == super::Verbs::NAME
    }
    /// Returns whether the groups are jobs, which compute and communicate in turn.
    pub fn is_job(&self) -> bool {
        matches!(self.group, Some(GroupParts::Ranks(_)))
    }
    /// Creates a summary with the numbers that are known of any workload.
    pub(super) fn new(kind: &'static str, senders: &[HostId], receivers: &[HostId]) -> Self {
        Self {
            kind,
            key: kind.to_owned(),
            operation: None,
            group: None,
            senders: senders.len(),
            receivers: receivers.len(),
            load: None,
            mean_size: 0.0,
            flows_per_second: None,
            extent: Extent::Endless,
            follows: false,
            first: Duration::ZERO,
            last: None,
            duration: None,
            priorities: BTreeSet::new(),
        }
    }
}

/// Configuration of one kind of workload.
pub(super) trait WorkloadKind {
    /// Key of the kind in a scenario.
    const NAME: &'static str;
    /// Builds workload number `workload` of the scenario.
    ///
    /// # Errors
    /// Values that make no flows, named by their key within the kind's table.
    fn build(&self, workload: u16, env: &BuildEnv<'_>) -> Result<Part, ConfigError>;
}

/// One built workload.
pub(super) struct Part {
    pub(super) source: Source,
    pub(super) summary: WorkloadSummary,
    /// Loads that the workload offers, where they are given.
    pub(super) offers: Vec<Offer>,
}

/// Offered load, and its bytes on links.
pub(super) struct Offer {
    /// Demand, in payload.
    pub(super) demand: Demand,
    /// Mean bytes on links for each byte of payload, headers included, over all flows.
    pub(super) expansion: f64,
}

/// Source of a workload's flows.
pub(super) enum Source {
    Stream(Box<dyn Generator>),
    Loop(ClosedLoop),
    Schedule(Executor),
    Triggered(Box<Installer>),
    /// Applications, their messages where these come at random, and their operations but the first.
    Posted {
        posting: Posting,
        stream: Option<Box<dyn Generator>>,
        others: Vec<WorkloadSummary>,
    },
}

/// Function that adds waiting flows to the table and returns the generator of the others.
type Installer = dyn FnOnce(&mut Triggers) -> Box<dyn Generator>;

impl Part {
    /// Creates the part of a closed loop, whose extent the loop itself gives.
    pub(super) fn reactive(closed: ClosedLoop, summary: WorkloadSummary) -> Self {
        let summary = WorkloadSummary { extent: closed.extent(), ..summary };
        Self { source: Source::Loop(closed), summary, offers: Vec::new() }
    }
    /// Creates the part of a schedule, whose repetitions are jobs.
    pub(super) fn scheduled(executor: Executor, summary: WorkloadSummary) -> Self {
        let group = Some(GroupParts::Ranks(executor.ranks_of_a_job()));
        let summary = WorkloadSummary { extent: Extent::Known(executor.flows()), group, ..summary };
        Self { source: Source::Schedule(executor), summary, offers: Vec::new() }
    }
}

/// Builder that collects the workloads of a scenario.
pub(super) struct Builder<'a> {
    env: &'a BuildEnv<'a>,
    streams: Vec<Box<dyn Generator>>,
    triggers: Triggers,
    loops: Vec<ClosedLoop>,
    executors: Vec<Executor>,
    postings: Vec<Posting>,
    summaries: Vec<WorkloadSummary>,
    offers: Vec<Offer>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(env: &'a BuildEnv<'a>) -> Self {
        let triggers = Triggers::new(env.measure);
        Self {
            env,
            streams: Vec::new(),
            triggers,
            loops: Vec::new(),
            executors: Vec::new(),
            postings: Vec::new(),
            summaries: Vec::new(),
            offers: Vec::new(),
        }
    }
    pub(super) fn add<K: WorkloadKind>(&mut self, configs: &Many<K>) -> Result<(), ConfigError> {
        for (n, config) in configs.iter().enumerate() {
            let key = if configs.len() == 1 { K::NAME.to_owned() } else { format!("{}[{n}]", K::NAME) };
            let number = u16::try_from(self.summaries.len());
            let number = number.map_err(|_| ConfigError::new(&key, "a scenario can have at most 65,536 workloads"))?;
            let part = config.build(number, self.env).map_err(|error| error.within(&key))?;
            let named = |summary: WorkloadSummary| match summary.operation {
                Some(operation) => WorkloadSummary { key: format!("{key}.{operation}"), ..summary },
                None => WorkloadSummary { key: key.clone(), ..summary },
            };
            let first = self.summaries.len();
            self.summaries.push(named(part.summary));
            let waiting = self.triggers.len();
            let follows = match part.source {
                Source::Stream(stream) => {
                    self.streams.push(stream);
                    false
                }
                Source::Loop(closed) => {
                    self.loops.push(closed);
                    true
                }
                Source::Schedule(executor) => {
                    self.executors.push(executor);
                    true
                }
                Source::Triggered(place) => {
                    self.streams.push(place(&mut self.triggers));
                    self.triggers.len() > waiting
                }
                Source::Posted { posting, stream, others } => {
                    let follows = stream.is_none();
                    self.postings.push(posting);
                    self.streams.extend(stream);
                    self.summaries.extend(others.into_iter().map(named));
                    follows
                }
            };
            self.summaries[first..].iter_mut().for_each(|summary| summary.follows = follows);
            self.offers.extend(part.offers);
        }
        Ok(())
    }
    pub(super) fn finish(mut self) -> Result<Workload, ConfigError> {
        if self.summaries.is_empty() {
            let message = "nothing is sent: add a workload, as [workload.poisson] with a load and sizes";
            return Err(ConfigError::new("", message));
        }
        let worst_link = self.worst_link()?;
        self.triggers.sort();
        Ok(Workload {
            stream: Merged::new(self.streams, self.env.measure, self.env.stop_flows)?,
            triggers: self.triggers,
            loops: self.loops,
            executors: self.executors,
            postings: self.postings,
            summaries: self.summaries,
            worst_link,
        })
    }

    /// Returns the most loaded link, headers included.
    ///
    /// # Errors
    /// Some link cannot carry the load.
    fn worst_link(&self) -> Result<Option<LinkLoad>, ConfigError> {
        let env = self.env;
        if self.offers.is_empty() {
            return Ok(None);
        }
        let loads = |factor: fn(&Offer) -> f64| {
            let demand = |offer: &Offer| Demand { load: offer.demand.load * factor(offer), ..offer.demand.clone() };
            let demands: Vec<Demand> = self.offers.iter().map(demand).collect();
            LinkLoads::new(env.graph, env.routes, &demands)
        };
        let Some(worst) = loads(|offer| offer.expansion).worst() else { return Ok(None) };
        if worst.load <= 1.0 + ROUNDING {
            return Ok(Some(worst));
        }
        let payload = loads(|_| 1.0).of(worst.link, worst.from_a);
        let link = &env.graph.links[worst.link as usize];
        let (from, to) = if worst.from_a { (link.a, link.b) } else { (link.b, link.a) };
        // Two digits, rounded down, so that the recommended load fits.
        let unit = 10_f64.powf((1.0 / worst.load).log10().floor() - 1.0);
        let most = (1.0 / worst.load / unit).floor() * unit;
        let digits = (-unit.log10()).round().max(0.0) as usize;
        let loading = self.summaries.iter().find(|summary| summary.load.is_some());
        let error = ConfigError::new(
            loading.map_or(Poisson::NAME, |summary| summary.kind),
            format!(
                "the link from \"{}\" to \"{}\" would have to carry {:.0} % of its rate ({:.0} % payload, the rest headers), so that queues grow without end: multiply the load by at most {most:.digits$}",
                env.graph.name(from),
                env.graph.name(to),
                100.0 * worst.load,
                100.0 * payload,
            ),
        );
        Err(ConfigError { overload: Some(worst.load), ..error })
    }
}

/// Largest rounding error of a load that is exactly 1, as a sum of many shares.
const ROUNDING: f64 = 1e-9;
