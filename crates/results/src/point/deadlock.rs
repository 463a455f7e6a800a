//! A PFC deadlock in files.

use schemars::JsonSchema;
use selvedge_telemetry::{Deadlock, PausedHop};
use selvedge_units::PortId;
use serde::{Deserialize, Serialize};

/// A PFC deadlock, for files and people.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeadlockReport {
    /// When it was found, microseconds.
    pub at_us: f64,
    /// Since when nothing moved, microseconds.
    pub since_us: f64,
    /// The cycle; each hop is paused by the node of the next.
    pub cycle: Vec<DeadlockHop>,
}

impl DeadlockReport {
    /// The ports of the cycle.
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
    /// Its node.
    pub node: String,
    /// The node that pauses it.
    pub paused_by: String,
    /// Bytes waiting behind it.
    pub waiting_bytes: u64,
}
