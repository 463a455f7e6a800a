//! Queues, links and pauses: what ports went through.

use serde::{Deserialize, Serialize};

use crate::Tier;

/// A quantity of all ports over time.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PortTimes {
    /// Width of a bin, microseconds.
    pub bin_us: f64,
    /// By tier, hosts first.
    pub tiers: Vec<TierTimes>,
}

/// A quantity of the ports of one tier, bin by bin.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierTimes {
    /// Which.
    pub tier: Tier,
    /// How many ports it has.
    pub ports: u64,
    /// The largest value of any port at any sample of the bin.
    pub max: Vec<f64>,
    /// The 99th percentile over ports, averaged over the bin's samples.
    pub p99: Vec<f64>,
    /// The mean over ports and samples.
    pub mean: Vec<f64>,
}

/// Where pauses went.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Pauses {
    /// Paused time by tiers, summed over ports; pairs without pauses are left out.
    pub by_tier: Vec<TierPauses>,
    /// How many ports were paused at all.
    pub paused_ports: u64,
    /// How many ports there are.
    pub ports: u64,
    /// Width of a bin of [`PausedPort::share`], microseconds.
    pub bin_us: f64,
    /// The ports that were paused longest, worst first; at most [`WORST_PORTS`].
    pub worst: Vec<PausedPort>,
}

/// Paused time between two tiers.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierPauses {
    /// Who sent the pauses.
    pub by: Tier,
    /// Who had to stop.
    pub paused: Tier,
    /// For how long, summed over ports, microseconds.
    pub paused_us: f64,
    /// Ports that were paused / that there are.
    pub paused_ports: u64,
    /// See `paused_ports`.
    pub ports: u64,
}

/// A port that was paused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PausedPort {
    /// Its number.
    pub port: u32,
    /// Its node.
    pub node: String,
    /// The node that paused it.
    pub peer: String,
    /// Its tier.
    pub tier: Tier,
    /// The tier of the node that paused it.
    pub peer_tier: Tier,
    /// For how long, microseconds.
    pub paused_us: f64,
    /// Pause frames (X-OFF) that its peer sent to it.
    pub pauses: u64,
    /// The deepest its queue was, bytes.
    pub egress_peak: u64,
    /// The share of each bin that it was paused, 0 to 1.
    pub share: Vec<f32>,
}

/// How many of the longest paused ports a [`PointSummary`](super::PointSummary) keeps.
pub const WORST_PORTS: usize = 48;
