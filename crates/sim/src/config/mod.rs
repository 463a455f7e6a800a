//! Configuration of one run of the fabric.

mod balancing;
mod buffer;
mod nic;
mod switch;
mod table;
mod transport;
mod verbs;

use std::sync::Arc;

pub use balancing::{BalancingConfig, Choice, DrillConfig, FlowletConfig};
pub use buffer::{Arbitration, BufferConfig, FairQueued, FlowQueues, InputQueued, SharedBuffer, Trimming};
pub use nic::{NicConfig, PollPhases, VerbsHeaders};
use schemars::JsonSchema;
pub use selvedge_transport::netrt::NetRtConfig;
use selvedge_units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};
pub use switch::{EcnConfig, LinkHeadroom, PfcConfig, SwitchConfig};
pub use transport::{RdmaConfig, Stack, TransportConfig, TunnelledConfig};

use crate::beside::Beside;
use crate::error::{ConfigError, Library};
use crate::fault::{LinkFailure, LossConfig};
use crate::topology::Paths;
use crate::workload::{BuildEnv, Extent, Measure, Workload, WorkloadConfig};

/// Most priorities that can be in use together: a port with all eight paused would look like one whose link is down.
pub const MOST_CLASSES: usize = 7;

/// Conditions that end a run: the earliest holds. Without any: when all flows are done.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Stop {
    /// Number of flows after which no flow begins; the run ends when all of them are done. Flows that follow others are
    /// counted from time to time, so a few more of them may begin; closed loops begin with as many as they have
    /// outstanding.
    pub flows: Option<u64>,
    /// Simulated time at which the run ends, finished or not.
    pub time: Option<Duration>,
}

impl Stop {
    /// Checks that a run of `flows` ends.
    ///
    /// # Errors
    /// The flows have no end, and these conditions give none; the key is "stop".
    pub fn check(&self, flows: Extent) -> Result<(), ConfigError> {
        if self.time.is_some() || flows.limited(self.flows) != Extent::Endless {
            return Ok(());
        }
        let message =
            "the traffic never ends: say when to stop, as in stop = { flows = 10_000 } or { time = \"10ms\" }";
        Err(ConfigError::new("stop", message))
    }
}

/// Engines of flows by the class of their path ([`Paths::class_of`]).
///
/// A NIC has one set of engines, chosen by the rate of its link; how a flow begins there, and what bounds it, may
/// depend on its destination.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathTransports {
    /// Distinct engines.
    pub distinct: Vec<TransportConfig>,
    /// Index into `distinct`, indexed by path class. Empty: all flows have the engines of their sender's NIC.
    pub by_class: Vec<u32>,
}

/// One run: a network, its traffic and its faults. Every "auto" is resolved.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The network, and the paths through it.
    pub paths: Arc<Paths>,
    /// Switches of the network.
    pub switch: SwitchConfig,
    /// NICs of the hosts.
    pub nic: NicConfig,
    /// Engines at both ends of each queue pair.
    pub transport: TransportConfig,
    /// Engines at hosts whose links have other rates, where that makes a difference.
    pub transports: Vec<(Rate, TransportConfig)>,
    /// Engines of flows on paths of each class, where that makes a difference.
    pub path_transports: PathTransports,
    /// The traffic.
    pub workload: WorkloadConfig,
    /// Part of the traffic that uses TCP beside the transport.
    pub beside: Option<Beside>,
    /// Choice of the flows that are measured.
    pub measure: Measure,
    /// Loss on links.
    pub loss: Vec<LossConfig>,
    /// Links that go down.
    pub failures: Vec<LinkFailure>,
    /// Seed from which all random streams derive.
    pub seed: u64,
    /// End of the run.
    pub stop: Stop,
    /// Interval at which ports are sampled; `None`: never.
    pub sample: Option<Duration>,
    /// Frequency at which flows under way are examined, to tell where completion time goes.
    pub looks: Looks,
}

/// Frequency at which flows under way are examined. The run's results do not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Looks {
    /// Never: the run's [`time`](selvedge_telemetry::RunRecord::time) stays empty.
    Never,
    /// Often enough to take half a per cent of the run's instructions, some hundred times at most.
    #[default]
    Cheaply,
    /// About once per this interval, at all flows.
    Every(Duration),
}

impl SimConfig {
    /// Returns the flows of the run; files come from `library`.
    ///
    /// # Errors
    /// Those of [`WorkloadConfig::build`].
    pub(crate) fn traffic(&self, library: &dyn Library) -> Result<Workload, ConfigError> {
        self.workload.build(&BuildEnv {
            graph: self.paths.graph(),
            routes: self.paths.routes(),
            seed: self.seed,
            library,
            framing: self.nic.framing(&self.transport),
            measure: self.measure,
            stop_flows: self.stop.flows,
        })
    }
    /// Returns the engines at hosts whose links have this rate.
    pub(crate) fn transport_at(&self, rate: Rate) -> &TransportConfig {
        self.transports.iter().find(|(of, _)| *of == rate).map_or(&self.transport, |(_, transport)| transport)
    }
    /// Returns the size of the largest frame that is sent.
    pub(crate) fn largest_frame(&self) -> Bytes {
        let own = self.nic.payload(&self.transport) + self.nic.data_header(&self.transport);
        let guest = self.beside.as_ref().map(|beside| beside.framing(&self.nic));
        let guest = guest.map(|framing| framing.mtu + framing.overhead - self.nic.gap);
        [Some(own), guest, self.transport.tunnel_frame(&self.nic)].into_iter().flatten().max().unwrap_or(own)
    }
}
