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

/// Flows, and what releases them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionMatrix {
    /// Nodes have the numbers from 0 up to this, exclusively; all of them are hosts.
    pub nodes: u32,
    /// The flows, in the order of the file.
    pub flows: Vec<Flow>,
    /// The triggers, by id.
    pub triggers: BTreeMap<u32, Trigger>,
    /// The failed links, in the order of the file.
    pub failures: Vec<Failure>,
    /// The unit that starts were read in; never [`StartUnit::Auto`].
    pub start_unit: StartUnit,
    /// The line of the first start above zero, where the unit had to be guessed.
    pub guessed_at: Option<u64>,
}

/// Flow of a connection matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The line it stands in.
    pub line: u64,
    /// Number of the connection, above zero. Several messages of one connection share it.
    pub id: Option<u32>,
    /// Whether it is a message of a connection that carries several (`msg`), and its number there.
    pub message: Option<Message>,
    /// The node that sends.
    pub src: u32,
    /// The node that receives; another one.
    pub dst: u32,
    /// Payload; above zero.
    pub size: Bytes,
    /// Start of the flow.
    pub start: Start,
    /// The trigger to activate when the sender has everything acknowledged.
    pub on_sent: Option<u32>,
    /// The trigger to activate when the receiver has everything.
    pub on_received: Option<u32>,
    /// Smaller is more urgent; htsim assumes 2,000,000 where the file says nothing.
    pub priority: Option<u32>,
    /// Whether an activation of its trigger adds it to a running connection (`addon`).
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
    /// At this time.
    At(Instant),
    /// Start when the trigger with this id releases the flow.
    Trigger(u32),
}

/// A trigger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// The line it stands in.
    pub line: u64,
    /// Reaction to activations.
    pub kind: TriggerKind,
}

/// Reaction of a trigger to activations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TriggerKind {
    /// The first activation releases all waiting flows; later ones nothing.
    OneShot,
    /// Each activation releases the next waiting flow.
    MultiShot,
    /// The activation with this number, above zero, releases all waiting flows.
    Barrier(u32),
}

/// A link that has failed before the run begins.
///
/// htsim accepts aggregation switches alone, and by `link` understands the link to core
/// `(switch % aggs per pod) * aggs per pod + link`, which must exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The line it stands in.
    pub line: u64,
    /// The tier of the switch.
    pub tier: SwitchTier,
    /// The switch's number in its tier.
    pub switch: u32,
    /// The number of the link at that switch.
    pub link: u32,
}

/// Tiers of switches as htsim names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwitchTier {
    /// Switches with hosts.
    Tor,
    /// The tier above; the spines of two tiers.
    Agg,
    /// The top of three tiers.
    Core,
}

/// The unit of `start`.
///
/// Picoseconds in csg-htsim's EQDS and NDP programs and in files of the generators; microseconds in
/// uet-htsim's UEC, EQDS and RoCE programs, in the Swift program, and in what `save` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StartUnit {
    /// Picoseconds if a start is 1,000,000 or more, as generators write them (microseconds times
    /// 10^6), or if all are zero; microseconds else.
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
/// Warns about wrong counts in the header, and triggers that flows wait for and nobody or too few
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
/// Unknown words, nodes and triggers; triggers defined twice; flows to themselves, of no bytes, with
/// no start or two; whatever is no number.
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
