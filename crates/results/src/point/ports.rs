//! Queues, utilisation and pauses of ports.

use serde::{Deserialize, Serialize};

use crate::Tier;

/// A quantity of all ports over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PortTimes {
    /// Width of a bin, microseconds.
    pub bin_us: f64,
    /// Values of each tier, hosts first.
    pub tiers: Vec<TierTimes>,
}

/// A quantity of the ports of one tier, bin by bin.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierTimes {
    /// Tier of the ports.
    pub tier: Tier,
    /// Number of ports of the tier.
    pub ports: u64,
    /// Largest value of any port at any sample of the bin.
    pub max: Vec<f64>,
    /// 99th percentile over ports, averaged over the bin's samples.
    pub p99: Vec<f64>,
    /// Mean over ports and samples of the bin.
    pub mean: Vec<f64>,
}

/// Pauses of a run, by tiers and ports.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Pauses {
    /// Paused time by pair of tiers, summed over ports; pairs without pauses are left out.
    pub by_tier: Vec<TierPauses>,
    /// Number of ports that were ever paused.
    pub paused_ports: u64,
    /// Number of all ports.
    pub ports: u64,
    /// Width of a bin of [`PausedPort::share`], microseconds.
    pub bin_us: f64,
    /// The ports with the longest paused times, longest first; at most [`WORST_PORTS`].
    pub worst: Vec<PausedPort>,
}

/// Paused time between two tiers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierPauses {
    /// Tier of the nodes that sent the pauses.
    pub by: Tier,
    /// Tier of the paused ports.
    pub paused: Tier,
    /// Paused time in microseconds, summed over ports.
    pub paused_us: f64,
    /// Ports that were paused.
    pub paused_ports: u64,
    /// All ports between these tiers; see `paused_ports`.
    pub ports: u64,
}

/// A port that was paused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PausedPort {
    /// Number of the port.
    pub port: u32,
    /// Node of the port.
    pub node: String,
    /// The node that paused the port.
    pub peer: String,
    /// Tier of the port.
    pub tier: Tier,
    /// Tier of the node that paused the port.
    pub peer_tier: Tier,
    /// Paused time, microseconds.
    pub paused_us: f64,
    /// Pause frames (X-OFF) that the peer sent to the port.
    pub pauses: u64,
    /// Largest egress queue of the port, bytes.
    pub egress_peak: u64,
    /// Share of each bin that the port was paused, 0 to 1.
    pub share: Vec<f32>,
}

/// Number of longest paused ports that a [`PointSummary`](super::PointSummary) keeps.
pub const WORST_PORTS: usize = 48;
