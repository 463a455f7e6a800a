//! The cost of a run, computed before it begins: packets and memory.
//!
//! 1. *Flows.* Every workload is asked for its flows, as in a run, up to [`traffic::MOST`] flows for each way in which
//!    flows begin; the rest is scaled.
//! 2. *Packets.* A flow has as many data packets as its size needs; each crosses the links of its path, and the answers
//!    that its scheme sends cross as many on the way back ([`stack::Stack`]).
//! 3. *A stop time* cuts off the traffic that the links of senders and receivers cannot carry until then, and what
//!    begins after other traffic that takes so long.
//! 4. *Memory* is the bytes of tables per host, switch, port and open flow, and of packets in flight ([`memory`]).
//!
//! Retransmissions, pause frames and congestion notifications are not counted: they depend on what happens.

mod memory;
mod stack;
mod traffic;

use selvedge_units::Duration;

use crate::config::SimConfig;
use crate::error::{ConfigError, Library};

pub use memory::MemoryEstimate;

/// Cost of one run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// Flows that begin.
    pub flows: f64,
    /// Payload that receivers accept, in bytes.
    pub payload: f64,
    /// Data packets, each counted once.
    pub data_packets: f64,
    /// Packets times links crossed, answers included, retransmissions not.
    pub packet_hops: f64,
    /// Side of the estimate on which the true numbers lie.
    pub bound: Bound,
    /// Memory of the run, in bytes.
    pub memory: MemoryEstimate,
}

/// Side of an estimate on which the true number lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Bound {
    /// Either side.
    About,
    /// At least the estimate: packets may be lost and sent again.
    AtLeast,
    /// At most the estimate: a stop time ends flows whose speed is not known beforehand.
    AtMost,
}

impl Bound {
    /// Returns the words before a number.
    pub const fn words(self) -> &'static str {
        match self {
            Self::About => "about",
            Self::AtLeast => "at least",
            Self::AtMost => "at most",
        }
    }
}

/// Estimates the cost of a run of `config` in `partitions` partitions.
///
/// # Errors
/// The workload cannot be built.
pub fn estimate(config: &SimConfig, library: &dyn Library, partitions: usize) -> Result<Estimate, ConfigError> {
    let workload = config.traffic(library)?;
    let stacks = stack::of_workloads(config, &workload)?;
    let traffic = traffic::Traffic::of(config, &workload, &stacks);
    let memory = memory::estimate(config, &workload, &traffic, partitions.max(1));
    let total = traffic.total;
    let bound = match () {
        () if traffic.is_cut => Bound::AtMost,
        () if may_resend(config) => Bound::AtLeast,
        () => Bound::About,
    };
    Ok(Estimate {
        flows: total.flows,
        payload: total.payload,
        data_packets: total.packets,
        packet_hops: total.hops,
        bound,
        memory,
    })
}

/// Returns whether packets may be lost.
fn may_resend(config: &SimConfig) -> bool {
    !config.loss.is_empty() || !config.failures.is_empty() || !config.switch.pfc.enabled
}

/// Returns the time at which a run is stopped, in seconds.
fn stop_s(config: &SimConfig) -> Option<f64> {
    config.stop.time.map(seconds)
}

fn seconds(time: Duration) -> f64 {
    time.as_us_f64() / 1e6
}
