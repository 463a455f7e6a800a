//! What happened in the fabric, packet by packet, for whoever asks why.
//!
//! [`crate::run`] tells what came of a run; [`crate::run_recorded`] runs the same again and tells a
//! [`Recorder`] everything that happened to what it has its [`Focus`] on. The run does not change by
//! being watched, and one that is not watched pays nothing: it is compiled apart.
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
use selvedge_transport::{Hold, Limits};
use selvedge_units::{Bytes, Duration, HostId, Instant, PortId, QpNumber};
use selvedge_wire::Packet;
use selvedge_wire::verbs::Headers;

use crate::topology::Node;

/// One thing that happened.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Event {
    /// When.
    pub at: Instant,
    /// Where.
    pub node: Node,
    /// What.
    pub what: What,
}

/// What can happen.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum What {
    /// The application handed a flow to the NIC of this host.
    FlowStarted {
        /// The flow; unfinished.
        flow: FlowRow,
        /// The queue pair that carries it: with this host, what its packets are known by.
        qp: QpNumber,
        /// How many carry it: this one, and those whose numbers follow (MPTCP's subflows).
        queue_pairs: u32,
        /// The queue pair at the other end, of a message between applications.
        peer: Option<(HostId, QpNumber)>,
    },
    /// This host has the last byte of a flow.
    FlowFinished {
        /// The flow.
        flow: FlowRow,
    },
    /// The first bit of a packet leaves.
    Sent {
        /// The port through which it leaves.
        port: PortId,
        /// The packet.
        packet: Packet,
        /// Its headers, if it is of an application's queue pair.
        headers: Option<Headers>,
        /// How long it takes on the wire, gap included; the port is free after that.
        serialisation: Duration,
        /// When its last bit will be at the other end.
        arrives: Instant,
        /// How long the port has been transmitting since the run began.
        busy: Duration,
        /// Bytes of its class that still wait for the port.
        waiting: Bytes,
    },
    /// The last bit of a packet is here.
    Arrived {
        /// The port through which it entered.
        port: PortId,
        /// The packet.
        packet: Packet,
        /// Its headers, if it is of an application's queue pair.
        headers: Option<Headers>,
    },
    /// A packet has to wait for its port.
    Queued {
        /// The port through which it will leave.
        port: PortId,
        /// The packet, marked if it was marked here.
        packet: Packet,
        /// The port through which it entered.
        ingress: PortId,
        /// Bytes of its class that wait for that port already.
        ahead: Bytes,
        /// How long the port has been transmitting since the run began.
        busy: Duration,
    },
    /// A packet is cut to its headers: its queue was full when it came, or when another did that is queued in its
    /// stead. It is queued with the headers next, or dropped.
    Trimmed {
        /// The port through which it shall leave.
        port: PortId,
        /// What is left of it.
        packet: Packet,
        /// The port through which it entered.
        ingress: PortId,
        /// Its class until now.
        class: u8,
        /// Bytes of that class that wait for the port now.
        waiting: Bytes,
    },
    /// A packet is gone.
    Dropped {
        /// The port through which it entered.
        port: PortId,
        /// The packet.
        packet: Packet,
        /// Why.
        reason: DropReason,
    },
    /// The peer of a port has paused it or let it go on.
    Paused {
        /// The port.
        port: PortId,
        /// Bit per class: may not leave now. Zero: all may.
        classes: u8,
    },
    /// An input has filled up, and asks its peer for a pause as soon as its port can send. One event
    /// for each output that packets from this input wait for.
    Filled {
        /// The port whose input it is.
        port: PortId,
        /// The output.
        output: PortId,
        /// Bytes from this input that wait for the output.
        held: Bytes,
        /// Bytes from all inputs that do.
        waiting: Bytes,
        /// From how many inputs these are.
        inputs: u32,
    },
    /// The link at a port went down or came back.
    Link {
        /// The port.
        port: PortId,
        /// Whether it works from now on.
        up: bool,
    },
    /// An engine says what it did.
    Engine {
        /// The host that sends the data, which may be the one at the other end.
        sender: HostId,
        /// Its queue pair.
        qp: QpNumber,
        /// What it did.
        trace: Trace,
    },
    /// What keeps a sender from sending, after it did or heard something.
    Held {
        /// The queue pair.
        qp: QpNumber,
        /// What it waits for.
        hold: Hold,
        /// How long the host's port has been transmitting since the run began.
        busy: Duration,
        /// What limits it, where the engine says so.
        limits: Option<Limits>,
    },
}

/// Who is told. Events arrive in the order of time, then of nodes (hosts first, by number), then as
/// they happened there; whatever the threads and partitions.
pub trait Recorder {
    /// What happened since the last call.
    fn on_events(&mut self, events: &[Event]);
}

/// A wish to be told of a run.
pub struct Recording<'a> {
    /// About what.
    pub focus: &'a Focus,
    /// Who.
    pub recorder: &'a mut dyn Recorder,
}

/// What to record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Focus {
    /// Flows to follow: their packets and acknowledgements on every hop, their engines and what
    /// holds these up.
    pub flows: Chosen<FlowKey>,
    /// Ports to watch: every packet that enters or leaves through them, pause frames too, and that a
    /// flow begins anywhere, so that packets can be told apart.
    pub ports: Chosen<PortId>,
    /// Hosts whose senders' engines to hear ([`What::Engine`]), whatever flows they send.
    pub engines: Chosen<HostId>,
    /// Whether to record all pauses ([`What::Paused`], [`What::Filled`], [`What::Link`]).
    pub pauses: bool,
    /// Nothing before this.
    pub from: Instant,
    /// Nothing from here on; `None`: to the end.
    pub until: Option<Instant>,
}

/// A flow among all workloads of a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// Which workload of the scenario, from 0.
    pub workload: u16,
    /// The flow's number in it.
    pub id: u64,
}

impl From<&FlowRow> for FlowKey {
    fn from(row: &FlowRow) -> Self {
        Self { workload: row.workload, id: row.id }
    }
}

/// Some of many things.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Chosen<T> {
    /// All of them.
    All,
    /// These.
    These(BTreeSet<T>),
}

impl<T> Default for Chosen<T> {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl<T> Chosen<T> {
    /// Whether anything is among them.
    #[inline]
    pub fn has_any(&self) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => !these.is_empty(),
        }
    }
}

impl<T: Ord> Chosen<T> {
    /// Whether `one` is among them.
    pub fn contains(&self, one: &T) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(one),
        }
    }
}

impl Focus {
    /// Whether `at` lies in the recorded time.
    pub fn covers(&self, at: Instant) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}
