//! A flow's completion time, split into its parts; for an unfinished flow, its time until the end of the run.

use selvedge_telemetry::{DropReason, FlowRow, TimePart};
use selvedge_units::{Duration, Instant, PortId};

use crate::account::Account;
use crate::blame::PauseTree;
use crate::names::Names;
use crate::parts::Parts;
use crate::pauses::Stop;
use crate::recording::Recording;

/// The explanation of a flow's completion time.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The flow. Its duplicates (`spurious`) are counted when it is over, and are zero before.
    pub flow: FlowRow,
    /// Completion time, part by part; for an unfinished flow, its time until the end of the run.
    pub parts: Parts,
    /// The event that an unfinished flow waited for when the run ended.
    pub awaited: Option<Awaited>,
    /// Ports where the flow waited, the longest wait first.
    pub places: Vec<DelayingPort>,
    /// Causes of the pauses among these waits, the longest first.
    pub pauses: Vec<PauseTree>,
    /// Path of the packet that finished the flow, or of the packet that it waits for.
    pub last: Vec<HopDelays>,
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions among the packets sent; see `sent`.
    pub again: u64,
    /// Dropped packets and acknowledgements by place, the most first.
    pub drops: Vec<DropPlace>,
    /// Number of retransmission timeouts.
    pub timeouts: u64,
}

/// The event that an unfinished flow waited for when the run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// Transmission by this port of the flow's oldest packet in flight, or of the next packet at the sender's own port.
    Port {
        /// The port that the packet waits for.
        port: PortId,
        /// Time since which the packet waits.
        since: Instant,
        /// Reason why the port may not send, if there is one.
        stop: Option<Stop>,
    },
    /// Arrival of the flow's oldest packet in flight, which is on the link behind this port.
    Link {
        /// The port at the beginning of the link.
        port: PortId,
    },
    /// Release of a packet that a switch holds, which has entered it over the link behind this port.
    Switch {
        /// The port at the beginning of the link.
        port: PortId,
        /// Time since which the switch holds the packet.
        since: Instant,
    },
    /// Action of the sender: nothing was in flight to the receiver.
    Sender {
        /// Part to which the sender's wait belongs.
        part: TimePart,
        /// Time since which the sender waits.
        since: Instant,
    },
}

/// A port that delayed a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DelayingPort {
    /// The port that the flow waited for.
    pub port: PortId,
    /// Delay by packets of other flows.
    pub queueing: Duration,
    /// Delay by pauses.
    pub pause: Duration,
}

/// A place where packets of a flow were dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropPlace {
    /// Input port of the dropped packets.
    pub port: PortId,
    /// Reason of the drops.
    pub reason: DropReason,
    /// Number of packets dropped there for this reason.
    pub packets: u64,
}

/// Delays at one hop of the packet that finished a flow, or of the packet that it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopDelays {
    /// Port through which the packet left.
    pub port: PortId,
    /// Time at which the packet was in the node (at the sender: when it left the node).
    pub from: Instant,
    /// Wait behind packets of the same flow, as in an empty network.
    pub own: Duration,
    /// Wait behind packets of other flows.
    pub queueing: Duration,
    /// Wait for the end of a pause.
    pub pause: Duration,
    /// Wait for a link to come back.
    pub outage: Duration,
    /// Serialisation time on the link.
    pub serialisation: Duration,
    /// Propagation time of the packet's last bit.
    pub propagation: Duration,
}

/// Explains the flows of `recording`, in the order of their starts; unfinished flows are included if the recording
/// knows the end of the run ([`Recording::end`]).
///
/// # Panics
/// Panics if the parts of a flow do not add up to its time.
pub fn explain(recording: &Recording, names: &Names) -> Vec<Explanation> {
    let ended = recording.histories.iter().filter(|history| history.flow.finish.is_some() || history.end.is_some());
    ended.map(|history| Account::new(history, &recording.pauses, names).explain(names)).collect()
}

impl Explanation {
    /// Returns the flow's time divided by its ideal completion time.
    pub fn slowdown(&self) -> f64 {
        self.parts.total().as_ps() as f64 / self.flow.ideal.as_ps().max(1) as f64
    }
}
