//! A PFC deadlock in files.

use schemars::JsonSchema;
use selvedge_telemetry::{Deadlock, PausedHop};
use selvedge_units::PortId;
use serde::{Deserialize, Serialize};

/// A PFC deadlock, as written to files.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadlockReport {
    /// Time of detection, microseconds.
    pub at_us: f64,
    /// Time since which nothing moved, microseconds.
    pub since_us: f64,
    /// The cycle; each hop is paused by the node of the next hop.
    pub cycle: Vec<DeadlockHop>,
}

impl DeadlockReport {
    /// Returns the ports of the cycle.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + '_ {
        self.cycle.iter().map(|hop| PortId(hop.port))
    }
}

impl From<&Deadlock> for DeadlockReport {
    fn from(deadlock: &Deadlock) -> Self {
        let hop = |hop: &PausedHop| DeadlockHop {
            port: hop.port.0,
            node: hop.node.clone(),
            paused_by: hop.paused_by.clone(),
            waiting_bytes: hop.waiting.get(),
        };
        Self {
            at_us: deadlock.at.as_us_f64(),
            since_us: deadlock.since.as_us_f64(),
            cycle: deadlock.cycle.iter().map(hop).collect(),
        }
    }
}

/// One port of a deadlock's cycle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadlockHop {
    /// The paused port.
    pub port: u32,
    /// Node of the paused port.
    pub node: String,
    /// The node that pauses the port.
    pub paused_by: String,
    /// Bytes queued at the port.
    pub waiting_bytes: u64,
}
