//! Recording of a run, packet by packet.
//!
//! [`crate::run`] returns the results of a run; [`crate::run_recorded`] executes the same run and reports to a
//! [`Recorder`] every event of its [`Focus`]. Recording does not change the run, and a run without it pays nothing: the
//! recorded run is compiled separately.
//!
//! The life of a packet on its way through a switch:
//!
//! ```text
//!   Sent ──> Arrived ──> Sent ──> Arrived                 nothing was in the way
//!            Arrived ──> Queued ──> Sent ──> Arrived      it had to wait for the port
//!            Arrived ──> Dropped                          no room, or lost on the link before
//!            Arrived ──> Trimmed ──> Queued ...           no room for more than its headers, now or later
//! ```

use std::collections::BTreeSet;

use selvedge_telemetry::{DropReason, FlowRow, Trace};
use selvedge_transport::{HoldReason, Limits};
use selvedge_units::{Bytes, Duration, HostId, Instant, PortId, QpNumber};
use selvedge_wire::Packet;
use selvedge_wire::verbs::Headers;

use crate::topology::Node;

/// Event of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// Time of the event.
    pub at: Instant,
    /// Node of the event.
    pub node: Node,
    /// Kind of the event.
    pub what: What,
}

/// Kind of an event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    /// The application hands a flow to the NIC of this host.
    FlowStarted {
        /// The flow, unfinished.
        flow: FlowRow,
        /// Queue pair that carries the flow: with this host, the identifier of its packets.
        qp: QpNumber,
        /// Number of queue pairs that carry the flow, with consecutive numbers from `qp` (MPTCP's subflows).
        queue_pairs: u32,
        /// Queue pair at the other end, for a message between applications.
        peer: Option<(HostId, QpNumber)>,
    },
    /// The last byte of a flow arrives at this host.
    FlowFinished {
        /// The flow.
        flow: FlowRow,
    },
    /// The first bit of a packet leaves.
    Sent {
        /// Port through which the packet leaves.
        port: PortId,
        /// The packet.
        packet: Packet,
        /// Headers of the packet, if it is of an application's queue pair.
        headers: Option<Headers>,
        /// Time of the packet on the wire, gap included; the port is free after that.
        serialisation: Duration,
        /// Time at which the packet's last bit reaches the other end.
        arrives: Instant,
        /// Total time for which the port has been transmitting since the run began.
        busy: Duration,
        /// Bytes of the packet's class that still wait for the port.
        waiting: Bytes,
    },
    /// The last bit of a packet arrives.
    Arrived {
        /// Port through which the packet entered.
        port: PortId,
        /// The packet.
        packet: Packet,
        /// Headers of the packet, if it is of an application's queue pair.
        headers: Option<Headers>,
    },
    /// A packet has to wait for its port.
    Queued {
        /// Port through which the packet will leave.
        port: PortId,
        /// The packet, marked if it was marked here.
        packet: Packet,
        /// Port through which the packet entered.
        ingress: PortId,
        /// Bytes of its class that already wait for that port.
        ahead: Bytes,
        /// Total time for which the port has been transmitting since the run began.
        busy: Duration,
    },
    /// A packet is cut to its headers: its queue was full on arrival, or when another packet arrived that is queued
    /// instead. Next, it is queued with the headers, or dropped.
    Trimmed {
        /// Port through which the packet shall leave.
        port: PortId,
        /// The packet, cut to its headers.
        packet: Packet,
        /// Port through which the packet entered.
        ingress: PortId,
        /// Class of the packet before the cut.
        class: u8,
        /// Bytes of that class that wait for the port now.
        waiting: Bytes,
    },
    /// A packet is dropped.
    Dropped {
        /// Port through which the packet entered.
        port: PortId,
        /// The packet.
        packet: Packet,
        /// Reason of the drop.
        reason: DropReason,
    },
    /// The peer of a port pauses or resumes classes.
    Paused {
        /// The port.
        port: PortId,
        /// Classes that may not leave now, one bit each. Zero: all may leave.
        classes: u8,
    },
    /// An input fills up and asks its peer for a pause as soon as its port can send. One event for each output that
    /// packets from this input wait for.
    Filled {
        /// Port whose input fills up.
        port: PortId,
        /// The output.
        output: PortId,
        /// Bytes from this input that wait for the output.
        held: Bytes,
        /// Bytes from all inputs that wait for the output.
        waiting: Bytes,
        /// Number of inputs whose bytes wait for the output.
        inputs: u32,
    },
    /// The link at a port goes down or comes back.
    Link {
        /// The port.
        port: PortId,
        /// Whether the link works from now on.
        up: bool,
    },
    /// An engine reports an action.
    Engine {
        /// Host that sends the data, possibly the one at the other end.
        sender: HostId,
        /// Queue pair of the engine.
        qp: QpNumber,
        /// Action of the engine.
        trace: Trace,
    },
    /// A sender, after it acted or received something, is held from sending for a reason.
    Held {
        /// The queue pair.
        qp: QpNumber,
        /// Reason for which the queue pair does not send.
        hold: HoldReason,
        /// Total time for which the host's port has been transmitting since the run began.
        busy: Duration,
        /// Limits of the queue pair, where the engine reports them.
        limits: Option<Limits>,
    },
}

/// Receiver of recorded events. Events arrive in the order of time, then of nodes (hosts first, by number), then of
/// their occurrence there, whatever the number of threads and partitions.
pub trait Recorder {
    /// Handles the events since the last call.
    fn on_events(&mut self, events: &[Event]);
}

/// Request to record a run.
pub struct Recording<'a> {
    /// Events to record.
    pub focus: &'a Focus,
    /// Receiver of the events.
    pub recorder: &'a mut dyn Recorder,
}

/// Events to record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Focus {
    /// Flows to follow: their packets and acknowledgements on every hop, their engines and the reasons for which these
    /// do not send.
    pub flows: Chosen<FlowKey>,
    /// Ports to watch: every packet that enters or leaves through them, pause frames included, and the start of any
    /// flow, so that packets can be told apart.
    pub ports: Chosen<PortId>,
    /// Hosts whose senders' engines are recorded ([`What::Engine`]), whatever flows they send.
    pub engines: Chosen<HostId>,
    /// Whether to record all pauses ([`What::Paused`], [`What::Filled`], [`What::Link`]).
    pub pauses: bool,
    /// Time before which no event is recorded.
    pub from: Instant,
    /// Time from which no event is recorded; `None`: to the end.
    pub until: Option<Instant>,
}

/// A flow among all workloads of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// Number of the workload in the scenario, from 0.
    pub workload: u16,
    /// Number of the flow in its workload.
    pub id: u64,
}

impl From<&FlowRow> for FlowKey {
    fn from(row: &FlowRow) -> Self {
        Self { workload: row.workload, id: row.id }
    }
}

/// Selection of elements.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chosen<T> {
    /// All elements.
    All,
    /// The listed elements.
    These(BTreeSet<T>),
}

impl<T> Default for Chosen<T> {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl<T> Chosen<T> {
    /// Returns whether any element is selected.
    #[inline]
    pub fn has_any(&self) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => !these.is_empty(),
        }
    }
}

impl<T: Ord> Chosen<T> {
    /// Returns whether `one` is selected.
    pub fn contains(&self, one: &T) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(one),
        }
    }
}

impl Focus {
    /// Returns whether `at` lies in the recorded time.
    pub fn covers(&self, at: Instant) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}
