//! A run in a few lines: a network and its traffic; everything else has a default.

mod builder;
mod source;

use std::sync::Arc;

pub use builder::SimulationBuilder;
use selvedge_switch::Parts;
use selvedge_telemetry::{FlowRow, Observer, PortRow, RankRow, RunRecord};
use selvedge_units::Duration;
pub use source::NetworkSource;

use crate::config::SimConfig;
use crate::error::{ConfigError, Library};
use crate::kernel::rounds::Parallel;
use crate::parts::fabric_parts;
use crate::resolve::Network;
use crate::run::{Session, run};

/// One run: a network, its traffic, and a value for every setting.
///
/// ```
/// use selvedge_sim::Simulation;
/// use selvedge_sim::topology::{FatTree, LinkConfig};
/// use selvedge_sim::workload::Permutation;
/// use selvedge_units::{Bytes, Duration, Rate};
///
/// let link = LinkConfig { rate: Rate::from_gbps(100), delay: Duration::from_us(1) };
/// let simulation = Simulation::builder(FatTree { k: 4, link })
///     .workload(Permutation::of(Bytes::from_kb(100)))
///     .seed(1)
///     .build()?;
/// let outcome = simulation.run()?;
/// assert_eq!(outcome.flows.len(), 16);
/// assert_eq!(outcome.totals.flows_finished, 16);
/// # Ok::<(), selvedge_sim::ConfigError>(())
/// ```
pub struct Simulation {
    config: SimConfig,
    network: Arc<Network>,
    library: Box<dyn Library>,
    parallel: Parallel,
}

/// Flows and totals of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Outcome {
    /// Flows in the order in which they finished; those that had not finished when the run ended come last.
    pub flows: Vec<FlowRow>,
    /// Parts of ranks in schedules (collectives, training), in the order in which they ended.
    pub ranks: Vec<RankRow>,
    /// Totals of the run: packets, drops by reason, retransmissions, pause frames, the fingerprint.
    pub totals: RunRecord,
}

impl Simulation {
    /// Returns a builder of runs on `network`: a topology, a [`Graph`](crate::topology::Graph) of your own, or a
    /// [`Network`] that other runs use, too.
    pub fn builder(network: impl Into<NetworkSource>) -> SimulationBuilder {
        SimulationBuilder::new(network.into())
    }
    /// Returns the configuration, with every "auto" resolved.
    pub fn config(&self) -> &SimConfig {
        &self.config
    }
    /// Returns the network.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }
    /// Runs the simulation to its end and returns the flows and the totals. Each call gives the same.
    ///
    /// # Errors
    /// A configuration that cannot be built; nothing has run then.
    pub fn run(&self) -> Result<Outcome, ConfigError> {
        let mut rows = Rows::default();
        let totals = self.observe(&mut rows)?;
        Ok(Outcome { flows: rows.flows, ranks: rows.ranks, totals })
    }
    /// Runs the simulation to its end, tells `observer` of flows as they finish and of samples of ports, and returns
    /// the totals. For runs with more flows than memory holds.
    ///
    /// # Errors
    /// A configuration that cannot be built; nothing has run then.
    pub fn observe(&self, observer: &mut dyn Observer) -> Result<RunRecord, ConfigError> {
        run(&self.config, &*self.library, self.parallel, observer)
    }
}

impl Simulation {
    /// Opens a session, in which the caller injects flows and advances the time. With `background`, the traffic of the
    /// builder runs beside them.
    ///
    /// # Errors
    /// A configuration that cannot be built.
    pub fn session(&self, background: bool) -> Result<Session, ConfigError> {
        Session::open(&self.config, &*self.library, background)
    }
}

impl Simulation {
    /// Returns the switches of the network, and their links, for packets that others carry. Of the traffic, only
    /// priorities matter.
    ///
    /// # Errors
    /// A configuration that cannot be built.
    pub fn fabric_parts(&self) -> Result<Parts, ConfigError> {
        fabric_parts(&self.config, &*self.library, &[])
    }
}

impl Outcome {
    /// Returns the completion times of the measured flows that finished, in the order in which they finished.
    pub fn completion_times(&self) -> impl Iterator<Item = Duration> {
        self.flows.iter().filter(|flow| flow.measured).filter_map(FlowRow::fct)
    }
}

/// Observer that keeps the rows of flows and ranks.
#[derive(Default)]
struct Rows {
    flows: Vec<FlowRow>,
    ranks: Vec<RankRow>,
}

impl Observer for Rows {
    fn on_flows(&mut self, rows: &[FlowRow]) {
        self.flows.extend_from_slice(rows);
    }
    fn on_ranks(&mut self, rows: &[RankRow]) {
        self.ranks.extend_from_slice(rows);
    }
    fn on_ports(&mut self, _: &[PortRow]) {}
}
