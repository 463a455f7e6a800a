//! Builder of simulations.

use std::sync::Arc;

use selvedge_transport::endpoint::EndpointConfig;
use selvedge_transport::{CongestionConfig, RecoveryConfig};
use selvedge_units::{Bytes, Duration, HostId, Instant, Setting};

use super::{NetworkSource, Simulation};
use crate::beside::Beside;
use crate::config::{Looks, NicConfig, RdmaConfig, SimConfig, Stop, SwitchConfig, TransportConfig};
use crate::error::{ConfigError, Library, NoFiles};
use crate::fault::{LinkFailure, LossConfig};
use crate::kernel::rounds::Parallel;
use crate::resolve::{AutoScope, Network, Resolved, Settings, sampling_interval, span_of_starts};
use crate::topology::Graph;
use crate::workload::schedule::Schedule;
use crate::workload::{
    Cdf, FlowFile, FlowList, ListedFlow, Measure, Start, StartUnit, WorkloadConfig, WorkloadSummary,
};

/// Builder of a [`Simulation`]. Whatever is not given has the default of a scenario file that does not mention it: IRN
/// without PFC, per-input buffers of two bandwidth-delay products, ECMP, packets of 1,024 bytes.
///
/// [`SimulationBuilder::build`] refuses what cannot be built or would never end. Combinations that can run but
/// contradict each other, such as a buffer too small for the headroom of PFC, are found by the checks of scenario files
/// (crate `selvedge-scenario`).
#[must_use]
pub struct SimulationBuilder {
    source: NetworkSource,
    settings: Settings,
    workload: WorkloadConfig,
    flows: FlowList,
    library: Box<dyn Library>,
    measure: Measure,
    loss: Vec<LossConfig>,
    failures: Vec<LinkFailure>,
    seed: u64,
    stop: Stop,
    sample: Setting<Duration>,
    looks: Looks,
    parallel: Parallel,
}

impl SimulationBuilder {
    pub(super) fn new(source: NetworkSource) -> Self {
        Self {
            source,
            settings: Settings::default(),
            workload: WorkloadConfig::default(),
            flows: FlowList::default(),
            library: Box::new(NoFiles),
            measure: Measure::default(),
            loss: Vec::new(),
            failures: Vec::new(),
            seed: 1,
            stop: Stop::default(),
            sample: Setting::default(),
            looks: Looks::default(),
            parallel: Parallel::default(),
        }
    }
    /// Adds a workload, or several.
    pub fn workload(mut self, workload: impl Into<WorkloadConfig>) -> Self {
        self.workload.extend(workload.into());
        self
    }
    /// Adds a flow of `size` bytes from `src` to `dst` that starts `start` after the beginning of the run. Flows are
    /// numbered from 0 in the order of these calls.
    pub fn flow(mut self, src: HostId, dst: HostId, size: Bytes, start: Duration) -> Self {
        self.flows.flows.push(ListedFlow {
            id: self.flows.flows.len() as u64,
            line: None,
            src,
            dst,
            size,
            priority: None,
            start: Start::At(Instant::ZERO + start),
            on_sent: None,
            on_received: None,
        });
        self
    }
    /// Sets the loss recovery of RDMA, which replaces any other transport.
    pub fn recovery(mut self, recovery: impl Into<RecoveryConfig>) -> Self {
        let rdma = self.settings.transport.rdma().copied().unwrap_or_default();
        self.settings.transport = RdmaConfig { recovery: recovery.into(), ..rdma }.into();
        self
    }
    /// Sets the congestion control of RDMA, which replaces any other transport: one of the library, or one's own
    /// ([`OwnCongestion`](selvedge_transport::congestion::own::OwnCongestion)). Default: none.
    pub fn congestion(mut self, congestion: impl Into<CongestionConfig>) -> Self {
        let rdma = self.settings.transport.rdma().copied().unwrap_or_default();
        self.settings.transport = RdmaConfig { congestion: congestion.into(), ..rdma }.into();
        self
    }
    /// Sets a transport of messages for all flows: NDP, Homa, or one's own
    /// ([`OwnTransport`](selvedge_transport::endpoint::own::OwnTransport)).
    pub fn messages(mut self, messages: impl Into<EndpointConfig>) -> Self {
        self.settings.transport = TransportConfig::Messages(messages.into());
        self
    }
    /// Sets the transport of all flows: TCP, EQDS, or a [`TransportConfig`] with all its parts.
    pub fn transport(mut self, transport: impl Into<TransportConfig>) -> Self {
        self.settings.transport = transport.into();
        self
    }
    /// Sets whether switches pause their peers instead of dropping packets. Call after [`SimulationBuilder::switch`].
    pub fn pfc(mut self, enabled: bool) -> Self {
        self.settings.switch.pfc.enabled = enabled;
        self
    }
    /// Sets the switches: buffers, PFC, marking, load balancing, NetRT.
    pub fn switch(mut self, switch: SwitchConfig) -> Self {
        self.settings.switch = switch;
        self
    }
    /// Sets the NICs, and how packets look on the wire.
    pub fn nic(mut self, nic: NicConfig) -> Self {
        self.settings.nic = nic;
        self
    }
    /// Lets some workloads use TCP beside the transport.
    pub fn beside(mut self, beside: Beside) -> Self {
        self.settings.beside = Some(beside);
        self
    }
    /// Sets the paths that "auto" in the transport is derived from.
    pub fn auto(mut self, auto: AutoScope) -> Self {
        self.settings.auto = auto;
        self
    }
    /// Adds losses on links.
    pub fn loss(mut self, loss: LossConfig) -> Self {
        self.loss.push(loss);
        self
    }
    /// Adds a link that goes down.
    pub fn failure(mut self, failure: LinkFailure) -> Self {
        self.failures.push(failure);
        self
    }
    /// Sets which flows are measured. Default: all.
    pub fn measure(mut self, measure: Measure) -> Self {
        self.measure = measure;
        self
    }
    /// Sets the seed of all random streams. Default: 1.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
    /// Ends the run when this many flows have begun and are done. Needed for workloads without an end.
    pub fn stop_after_flows(mut self, flows: u64) -> Self {
        self.stop.flows = Some(flows);
        self
    }
    /// Ends the run at this simulated time, finished or not.
    pub fn stop_at(mut self, time: Duration) -> Self {
        self.stop.time = Some(time);
        self
    }
    /// Sets the interval of samples of ports, which [`Simulation::observe`] reports. Results of flows do not depend on
    /// it.
    pub fn sample(mut self, sample: Setting<Duration>) -> Self {
        self.sample = sample;
        self
    }
    /// Sets how often flows under way are examined, to tell where completion time goes.
    pub fn looks(mut self, looks: Looks) -> Self {
        self.looks = looks;
        self
    }
    /// Sets the source of files and named distributions of sizes. Default: [`NoFiles`].
    pub fn library(mut self, library: impl Library + 'static) -> Self {
        self.library = Box::new(library);
        self
    }
    /// Sets threads and partitions. Results do not depend on them.
    pub fn parallel(mut self, parallel: Parallel) -> Self {
        self.parallel = parallel;
        self
    }

    /// Builds the network and the traffic, and replaces every "auto" by its value.
    ///
    /// # Errors
    /// The first part that cannot be built, or traffic that would never end. The key is that of a scenario file.
    pub fn build(mut self) -> Result<Simulation, ConfigError> {
        self.settings.nic.check().map_err(|error| error.within("nic"))?;
        let source = self.source.clone();
        let network = source.network(&*self.library).map_err(|error| error.within("topology"))?;
        if !self.flows.flows.is_empty() {
            self.workload.flows.0.push(FlowFile::new(OwnFlows::PATH));
            let flows = std::mem::take(&mut self.flows);
            self.library = Box::new(OwnFlows { flows, others: self.library });
        }
        // Properties of flows depend on resolved settings, and timeouts on the priorities of flows.
        let config = self.config(&network, &[]);
        let workload = config.traffic(&*self.library).map_err(|error| error.of_workload())?;
        let config = self.config(&network, &workload.summaries);
        config.transport.check_engines()?;
        let others = config.transports.iter().map(|(_, transport)| transport);
        others.chain(&config.path_transports.distinct).try_for_each(TransportConfig::check_engines)?;
        config.stop.check(workload.extent())?;
        Ok(Simulation { config, network, library: self.library, parallel: self.parallel })
    }

    /// Returns the configuration of a run on `network`, for flows with the properties of `workloads`.
    fn config(&self, network: &Network, workloads: &[WorkloadSummary]) -> SimConfig {
        let Resolved { switch, nic, transport, transports, beside } = self.settings.clone().resolve(network, workloads);
        SimConfig {
            paths: Arc::clone(network.paths()),
            switch,
            nic,
            transport,
            transports: transports.hosts,
            path_transports: transports.paths,
            workload: self.workload.clone(),
            beside,
            measure: self.measure,
            loss: self.loss.clone(),
            failures: self.failures.clone(),
            seed: self.seed,
            stop: self.stop,
            sample: sampling_interval(self.sample, network, span_of_starts(workloads, self.stop)),
            looks: self.looks,
        }
    }
}

/// Library of the flows that a builder was given one by one, and of all else that another library has.
struct OwnFlows {
    flows: FlowList,
    others: Box<dyn Library>,
}

impl OwnFlows {
    /// Name of the list, which messages show.
    const PATH: &str = "flows of the builder";
}

impl Library for OwnFlows {
    fn flows(&self, path: &str, unit: StartUnit) -> Result<FlowList, ConfigError> {
        if path == Self::PATH { Ok(self.flows.clone()) } else { self.others.flows(path, unit) }
    }
    fn cdf(&self, reference: &str) -> Result<Cdf, ConfigError> {
        self.others.cdf(reference)
    }
    fn schedule(&self, path: &str) -> Result<Schedule, ConfigError> {
        self.others.schedule(path)
    }
    fn topology(&self, path: &str) -> Result<Graph, ConfigError> {
        self.others.topology(path)
    }
    fn drops(&self, path: &str) -> Result<Vec<u64>, ConfigError> {
        self.others.drops(path)
    }
}
