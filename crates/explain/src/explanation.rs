//! A flow's completion time, split into its parts; or, if it did not finish, its time until the end of the run.

use selvedge_telemetry::{DropReason, FlowRow, TimePart};
use selvedge_units::{Duration, Instant, PortId};

use crate::account::Account;
use crate::blame::PauseTree;
use crate::names::Names;
use crate::parts::Parts;
use crate::pauses::Stop;
use crate::recording::Recording;

/// Why a flow took as long as it did.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The flow. What came twice (`spurious`) is counted when it is over, and zero before.
    pub flow: FlowRow,
    /// Its completion time, part by part; if it had not finished, its time until the end of the run.
    pub parts: Parts,
    /// What it waited for when the run ended, if it had not finished.
    pub awaited: Option<Awaited>,
    /// Where it waited, the worst place first.
    pub places: Vec<Place>,
    /// What was behind the pauses among that, the longest first.
    pub pauses: Vec<PauseTree>,
    /// The way of the packet that finished it, or of the one that it waits for.
    pub last: Vec<HopDelays>,
    /// Data packets sent, and of these, sent again.
    pub sent: u64,
    /// See `sent`.
    pub again: u64,
    /// Packets and acknowledgements that were dropped, the worst place first.
    pub drops: Vec<DropPlace>,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// What an unfinished flow waited for when the run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    /// To leave through this port: its oldest packet under way, or at the sender's own port the next one.
    Port {
        /// The port.
        port: PortId,
        /// Since when.
        since: Instant,
        /// Why the port did not send, if it could not.
        stop: Option<Stop>,
    },
    /// For its oldest packet under way, on the link behind this port.
    Link {
        /// The port.
        port: PortId,
    },
    /// For a packet that a switch holds back, which has entered it over the link behind this port.
    Switch {
        /// The port.
        port: PortId,
        /// Since when.
        since: Instant,
    },
    /// Nothing was under way to the receiver: the sender waited, for this.
    Sender {
        /// For what.
        part: TimePart,
        /// Since when.
        since: Instant,
    },
}

/// A port that held a flow up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The port.
    pub port: PortId,
    /// How long packets of others did.
    pub queueing: Duration,
    /// How long pauses did.
    pub pause: Duration,
}

/// Where packets of a flow were dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DropPlace {
    /// The port through which they had entered.
    pub port: PortId,
    /// Why they were dropped.
    pub reason: DropReason,
    /// How many.
    pub packets: u64,
}

/// One hop of the packet that finished a flow, or of the one that it waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HopDelays {
    /// The port through which it left.
    pub port: PortId,
    /// When it was in the node (at the sender: when it left it).
    pub from: Instant,
    /// How long it waited behind packets of its own flow, as it would have alone.
    pub own: Duration,
    /// How long it waited behind packets of others.
    pub queueing: Duration,
    /// How long it waited for the end of a pause.
    pub pause: Duration,
    /// How long it waited for a link to come back.
    pub outage: Duration,
    /// How long it took on the wire.
    pub serialisation: Duration,
    /// How long its last bit was under way.
    pub propagation: Duration,
}

/// Explains the flows of `recording`, in the order of their starts; those that had not finished if it was told that the
/// run has ended ([`Recording::end`]).
///
/// # Panics
/// When the parts of a flow do not add up to its time.
pub fn explain(recording: &Recording, names: &Names) -> Vec<Explanation> {
    let ended = recording.histories.iter().filter(|history| history.flow.finish.is_some() || history.end.is_some());
    ended.map(|history| Account::new(history, &recording.pauses, names).explain(names)).collect()
}

impl Explanation {
    /// Its time over its ideal completion time.
    pub fn slowdown(&self) -> f64 {
        self.parts.total().as_ps() as f64 / self.flow.ideal.as_ps().max(1) as f64
    }
}
