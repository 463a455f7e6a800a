//! htsim's connection matrix, `.cm`.
//!
//! ```text
//! Nodes N
//! Connections C
//! [Triggers T]
//! [Failures F]
//! <src>-><dst> [id I] [msg [M]] (start T | trigger TID) size BYTES
//!              [send_done_trigger TID] [recv_done_trigger TID] [prio P] [addon]
//! trigger id TID (oneshot | multishot | barrier) [count K]
//! failure switch_type (TOR | AGG | CORE) switch_id N link_id M
//! ```
//!
//! The header comes first; `#` begins a comment anywhere. Unlike htsim, which stops at a wrong count
//! in the header, this reader warns; unlike htsim it checks node ids against `Nodes`, refuses flows
//! to themselves, and reads `start` exactly instead of through a 32-bit float, and sizes above 2 GiB.
//!
//! The unit of `start` is not in the file and differs between htsim's forks and programs: see
//! [`StartUnit`].

use std::collections::BTreeMap;
use std::io::BufRead;

use selvedge_units::{Bytes, Instant};

use crate::text::Lines;
use crate::{FormatError, Parsed};

mod check;
mod line;
mod read;

use read::Reader;

/// Flows, and the triggers that release them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionMatrix {
    /// Number of nodes, all of them hosts; nodes are numbered from 0.
    pub nodes: u32,
    /// Flows, in the order of the file.
    pub flows: Vec<Flow>,
    /// Triggers, by id.
    pub triggers: BTreeMap<u32, Trigger>,
    /// Failed links, in the order of the file.
    pub failures: Vec<Failure>,
    /// Unit that starts were read in; never [`StartUnit::Auto`].
    pub start_unit: StartUnit,
    /// Line of the first start above zero, if the unit had to be guessed.
    pub guessed_at: Option<u64>,
}

/// Flow of a connection matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Line of the flow.
    pub line: u64,
    /// Number of the connection, above zero. Several messages of one connection share it.
    pub id: Option<u32>,
    /// Message that the flow is, on a connection that carries several (`msg`).
    pub message: Option<Message>,
    /// Sending node.
    pub src: u32,
    /// Receiving node, different from `src`.
    pub dst: u32,
    /// Payload; above zero.
    pub size: Bytes,
    /// Start of the flow.
    pub start: Start,
    /// Trigger to activate when all data is acknowledged to the sender.
    pub on_sent: Option<u32>,
    /// Trigger to activate when the receiver has all data.
    pub on_received: Option<u32>,
    /// Priority; smaller is more urgent; htsim assumes 2,000,000 if the file gives none.
    pub priority: Option<u32>,
    /// Whether an activation of the flow's trigger adds it to a running connection (`addon`).
    pub is_add_on: bool,
}

/// Message among several on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Number of the message, where the file gives one.
    pub id: Option<u32>,
}

/// Condition for the start of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Start at this time.
    At(Instant),
    /// Start when the trigger with this id releases the flow.
    Trigger(u32),
}

/// Trigger of a connection matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// Line of the trigger.
    pub line: u64,
    /// Reaction to activations.
    pub kind: TriggerKind,
}

/// Reaction of a trigger to activations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerKind {
    /// Release of all waiting flows at the first activation, and of none later.
    OneShot,
    /// Release of the next waiting flow at each activation.
    MultiShot,
    /// Release of all waiting flows at the activation with this number, above zero.
    Barrier(u32),
}

/// Link that has failed before the run begins.
///
/// htsim accepts aggregation switches alone, and by `link` understands the link to core
/// `(switch % aggs per pod) * aggs per pod + link`, which must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Line of the failure.
    pub line: u64,
    /// Tier of the switch.
    pub tier: SwitchTier,
    /// Number of the switch in its tier.
    pub switch: u32,
    /// Number of the link at that switch.
    pub link: u32,
}

/// Tiers of switches as htsim names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchTier {
    /// Switches with hosts.
    Tor,
    /// Tier above ToRs; the spines of two tiers.
    Agg,
    /// Top of three tiers.
    Core,
}

/// Unit of `start`.
///
/// Picoseconds are the unit in csg-htsim's EQDS and NDP programs and in files of the generators; microseconds in
/// uet-htsim's UEC, EQDS and RoCE programs, in the Swift program, and in files written by `save`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StartUnit {
    /// Picoseconds if a start is 1,000,000 or more, as generators write them (microseconds times 10^6), or if all are
    /// zero; otherwise microseconds.
    #[default]
    Auto,
    /// 10^-12 s.
    Picoseconds,
    /// 10^-9 s.
    Nanoseconds,
    /// 10^-6 s.
    Microseconds,
}

/// Reads a connection matrix.
///
/// Warns about wrong counts in the header, and about triggers that flows wait for but that none or too few flows
/// activate.
///
/// ```
/// use selvedge_formats::htsim_cm::{self, Start, StartUnit};
///
/// let file = b"Nodes 3\nConnections 2\nTriggers 1\n0->1 start 0 size 9 recv_done_trigger 1\n\
///              1->2 id 2 trigger 1 size 9\ntrigger id 1 oneshot\n";
/// let parsed = htsim_cm::read(&file[..], "ring.cm", StartUnit::Auto)?;
/// assert_eq!(parsed.value.flows[1].start, Start::Trigger(1));
/// # Ok::<(), selvedge_formats::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error for: unknown words, nodes and triggers; triggers defined twice; flows to themselves, of no bytes,
/// with no start or two; a word that is not a number.
pub fn read(input: impl BufRead, file: &str, start_unit: StartUnit) -> Result<Parsed<ConnectionMatrix>, FormatError> {
    let mut reader = Reader::new(Lines::new(input, file));
    while reader.lines.next_filled()?.is_some() {
        reader.statement()?;
    }
    reader.finish(start_unit)
}

impl StartUnit {
    fn picoseconds(self) -> u64 {
        match self {
            Self::Auto | Self::Picoseconds => 1,
            Self::Nanoseconds => 1_000,
            Self::Microseconds => 1_000_000,
        }
    }
}
