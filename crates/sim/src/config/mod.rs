//! What one run of the fabric is made of.

mod buffer;
mod nic;
mod switch;
mod table;
mod transport;
mod verbs;

use std::sync::Arc;

use schemars::JsonSchema;
pub use selvedge_transport::netrt::NetRtConfig;
use selvedge_units::{Bytes, Duration, Rate};
use serde::{Deserialize, Serialize};

pub use buffer::{Arbitration, BufferConfig, FairQueued, InputQueued, SharedBuffer, Trimming};
pub use nic::{NicConfig, PollPhases, VerbsHeaders};
pub use switch::{EcnConfig, LinkHeadroom, PfcConfig, SwitchConfig};
pub use transport::TransportConfig;

use crate::beside::Beside;
use crate::fault::{LinkFailure, LossConfig};
pub use crate::net::balancing::{BalancingConfig, Choice, DrillConfig, FlowletConfig};
use crate::topology::Paths;
use crate::workload::{Measure, WorkloadConfig};

/// Priorities that can be in use together: a port of which all eight are paused would look like one whose link
/// is down.
pub const MOST_CLASSES: usize = 7;

/// When a run ends: at the earliest of these. Without any: when all flows are done.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Stop {
    /// No flow begins after this many have begun; the run ends when all of them are done. Flows that
    /// follow others are counted from time to time, so a few more of them may begin; closed loops begin with as many as
    /// they have outstanding.
    pub flows: Option<u64>,
    /// Simulated time at which everything ends, finished or not.
    pub time: Option<Duration>,
}

/// Engines of flows by the class of their path ([`Paths::class_of`]).
///
/// A NIC has one set of engines, which goes by the rate of its link; how a flow begins there, and what bounds it, may
/// depend on where it goes.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PathTransports {
    /// Engines, each once.
    pub distinct: Vec<TransportConfig>,
    /// By class: index into `distinct`. Empty: all flows have the engines of their sender's NIC.
    pub by_class: Vec<u32>,
}

/// One run: a network, what it carries, and what happens to it. Every "auto" is resolved.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The network, and the ways through it.
    pub paths: Arc<Paths>,
    /// Its switches.
    pub switch: SwitchConfig,
    /// Its NICs.
    pub nic: NicConfig,
    /// The engines at both ends of each queue pair.
    pub transport: TransportConfig,
    /// The same at hosts whose links have other rates, where that makes a difference.
    pub transports: Vec<(Rate, TransportConfig)>,
    /// The same for flows on paths of each class, where that makes a difference.
    pub path_transports: PathTransports,
    /// The traffic.
    pub workload: WorkloadConfig,
    /// That part of it which speaks TCP beside the transport.
    pub beside: Option<Beside>,
    /// Which flows count.
    pub measure: Measure,
    /// Loss on links.
    pub loss: Vec<LossConfig>,
    /// Links that go down.
    pub failures: Vec<LinkFailure>,
    /// What all random streams derive from.
    pub seed: u64,
    /// When it ends.
    pub stop: Stop,
    /// How often ports are sampled; `None`: never.
    pub sample: Option<Duration>,
    /// How often flows under way are looked at, to tell where completion time goes.
    pub looks: Looks,
}

/// How often flows under way are looked at. What happens does not depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Looks {
    /// Never: the run's [`time`](selvedge_telemetry::RunRecord::time) stays empty.
    Never,
    /// As often as takes half a per cent of the run's instructions, some hundred times at most.
    #[default]
    Cheaply,
    /// About once in this time, at all flows.
    Every(Duration),
}

impl SimConfig {
    /// The engines at hosts whose links have this rate.
    pub(crate) fn transport_at(&self, rate: Rate) -> &TransportConfig {
        self.transports.iter().find(|(of, _)| *of == rate).map_or(&self.transport, |(_, transport)| transport)
    }
    /// The largest frame that is sent.
    pub(crate) fn largest_frame(&self) -> Bytes {
        let own = self.nic.payload(&self.transport) + self.nic.data_header(&self.transport);
        let guest = self.beside.as_ref().map(|beside| beside.framing(&self.nic));
        let guest = guest.map(|framing| framing.mtu + framing.overhead - self.nic.gap);
        [Some(own), guest, self.transport.tunnel_frame(&self.nic)].into_iter().flatten().max().unwrap_or(own)
    }
}
