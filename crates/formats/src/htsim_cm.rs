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

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead;

use selvedge_units::words::nearest;
use selvedge_units::{Bytes, Instant};

use crate::text::{BYTES_MAX, Decimal, Lines, Word, Words, plural};
use crate::{Dialect, FormatError, Parsed, Warning};

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
}

/// One flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// The line it stands in.
    pub line: u64,
    /// Its connection's number, above zero. Several messages of one connection share it.
    pub id: Option<u32>,
    /// Whether it is a message of a connection that carries several (`msg`), and its number there.
    pub message: Option<Message>,
    /// The node that sends.
    pub src: u32,
    /// The node that receives; another one.
    pub dst: u32,
    /// Payload; above zero.
    pub size: Bytes,
    /// When it begins.
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

/// One of several messages on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Its number, where the file gives one.
    pub id: Option<u32>,
}

/// When a flow begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// At this time.
    At(Instant),
    /// When the trigger with this id releases it.
    Trigger(u32),
}

/// A trigger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trigger {
    /// The line it stands in.
    pub line: u64,
    /// How it answers activations.
    pub kind: TriggerKind,
}

/// How a trigger answers activations.
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
    /// 10^6), or if all are zero; microseconds else. Warns unless all are zero.
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
/// Warns about wrong counts in the header, flow ids used twice, triggers that flows wait for and
/// nobody or too few activate, and the unit of starts if it had to be guessed.
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

/// What was read so far. References to triggers keep their places until all triggers are known.
struct Reader<R> {
    lines: Lines<R>,
    nodes: Option<u32>,
    declared: [Option<(u64, u64)>; 3],
    flows: Vec<Flow>,
    starts: Vec<WrittenStart>,
    triggers: BTreeMap<u32, Trigger>,
    /// Triggers that flows name, with the error if no line defines them.
    references: BTreeMap<u32, FormatError>,
    failures: Vec<Failure>,
    ids: BTreeSet<u32>,
    /// The first flow whose id another one has, and how many there are.
    repeated: Option<(Flow, u64)>,
    warnings: Vec<Warning>,
}

/// The start of a flow in a unit yet unknown, and the error where it may turn out too large.
struct WrittenStart {
    flow: usize,
    number: Decimal,
    too_late: Option<FormatError>,
}

/// Header keys whose counts are compared, in the order of `Reader::declared`.
const COUNTS: [(&str, &str); 3] = [("Connections", "flow"), ("Triggers", "trigger"), ("Failures", "failure")];

impl<R: BufRead> Reader<R> {
    fn new(lines: Lines<R>) -> Self {
        Self {
            lines,
            nodes: None,
            declared: [None; 3],
            flows: Vec::new(),
            starts: Vec::new(),
            triggers: BTreeMap::new(),
            references: BTreeMap::new(),
            failures: Vec::new(),
            ids: BTreeSet::new(),
            repeated: None,
            warnings: Vec::new(),
        }
    }

    /// Reads the line read last.
    fn statement(&mut self) -> Result<(), FormatError> {
        let line = self.lines.line();
        let mut words = line.words();
        let first = words.require("a flow as in \"0->1 start 0 size 1000\"")?;
        if let Some(arrow) = first.text().find("->") {
            let flow = FlowLine::parse(first, arrow, words, self.nodes)?;
            return self.add_flow(flow);
        }
        if first.text() == "Nodes" {
            self.nodes = Some(words.require("the number of nodes")?.integer32("the number of nodes", 1..=u32::MAX)?);
            return words.finish();
        }
        if let Some(which) = COUNTS.iter().position(|&(key, _)| key == first.text()) {
            let count = words.require("a count")?.integer("a count", 0..=u64::MAX)?;
            self.declared[which] = Some((line.number(), count));
            return words.finish();
        }
        match first.text() {
            "trigger" => {
                let (word, id, kind) = parse_trigger(first, words)?;
                if let Some(earlier) = self.triggers.get(&id) {
                    let message = format!(
                        "found trigger {id}, which line {} defines already, expected each trigger once",
                        earlier.line
                    );
                    return Err(word.error(message));
                }
                self.triggers.insert(id, Trigger { line: line.number(), kind });
                Ok(())
            }
            "failure" => {
                self.failures.push(parse_failure(line.number(), words)?);
                Ok(())
            }
            other => {
                let keys = ["Nodes", "Connections", "Triggers", "Failures", "trigger", "failure"];
                Err(match nearest(other, keys) {
                    Some(key) => first.unexpected(&format!("{key:?}")),
                    None => first.unexpected("a flow as in \"0->1\", \"trigger\", \"failure\" or a header key"),
                })
            }
        }
    }

    fn add_flow(&mut self, parsed: FlowLine) -> Result<(), FormatError> {
        let FlowLine { flow, written, references } = parsed;
        if let Some(id) = flow.id
            && !self.ids.insert(id)
            && flow.message.is_none()
        {
            self.repeated.get_or_insert((flow, 0)).1 += 1;
        }
        if let Some((number, too_late)) = written {
            self.starts.push(WrittenStart { flow: self.flows.len(), number, too_late });
        }
        for (id, undefined) in references {
            self.references.entry(id).or_insert(undefined);
        }
        self.flows.push(flow);
        Ok(())
    }

    fn finish(mut self, start_unit: StartUnit) -> Result<Parsed<ConnectionMatrix>, FormatError> {
        let undefined = self.references.iter().filter(|(id, _)| !self.triggers.contains_key(id));
        if let Some((_, error)) = undefined.min_by_key(|(_, error)| (error.line, error.column)) {
            return Err(error.clone());
        }
        let Some(nodes) = self.nodes else {
            return Err(self.lines.error_at_end("\"Nodes\" and their number"));
        };
        if self.flows.is_empty() {
            return Err(self.lines.error_at_end("a flow as in \"0->1 start 0 size 1000\""));
        }
        let start_unit = self.resolve_starts(start_unit)?;
        self.check_counts();
        self.check_ids();
        self.check_triggers();
        let Self { flows, triggers, failures, warnings, .. } = self;
        let value = ConnectionMatrix { nodes, flows, triggers, failures, start_unit };
        Ok(Parsed { value, warnings, dialect: Dialect::HtsimMatrix })
    }

    fn resolve_starts(&mut self, asked: StartUnit) -> Result<StartUnit, FormatError> {
        let unit = match asked {
            StartUnit::Auto => self.guess_unit(),
            unit => unit,
        };
        for start in &self.starts {
            match (start.number.times(unit.picoseconds()), &start.too_late) {
                (Some(ps), _) if ps < u64::MAX => self.flows[start.flow].start = Start::At(Instant::from_ps(ps)),
                (_, Some(too_late)) => return Err(too_late.clone()),
                (_, None) => unreachable!("a start that fits in microseconds fits in smaller units"),
            }
        }
        Ok(unit)
    }

    fn guess_unit(&mut self) -> StartUnit {
        let positive = || self.starts.iter().filter(|start| !start.number.is_zero());
        let Some(first) = positive().next() else { return StartUnit::Picoseconds };
        let line = self.flows[first.flow].line;
        let large = |start: &WrittenStart| start.number.times(1).is_none_or(|number| number >= 1_000_000);
        let (unit, name, why) = if positive().any(large) {
            (StartUnit::Picoseconds, "picoseconds", "some are 1000000 or more")
        } else {
            (StartUnit::Microseconds, "microseconds", "all are below 1000000")
        };
        self.warnings
            .push(Warning::new(line, format!("starts are taken as {name}, because {why}; give the unit if not")));
        unit
    }

    fn check_counts(&mut self) {
        let found = [self.flows.len(), self.triggers.len(), self.failures.len()];
        for ((key, thing), (declared, found)) in COUNTS.into_iter().zip(self.declared.into_iter().zip(found)) {
            let found = found as u64;
            match declared {
                Some((line, count)) if count != found => {
                    let message =
                        format!("\"{key} {count}\", but the file has {}: all are taken", plural(found, thing));
                    self.warnings.push(Warning::new(line, message));
                }
                None if found > 0 => {
                    let message = format!("the header has no \"{key} {found}\", which htsim needs");
                    self.warnings.push(Warning::new(1, message));
                }
                _ => {}
            }
        }
    }

    fn check_ids(&mut self) {
        if let Some((flow, count)) = self.repeated {
            let (id, flows) = (flow.id.unwrap_or_default(), plural(count, "flow"));
            let message = format!("flow id {id} is used above already ({flows} in all repeat an id): results mix them");
            self.warnings.push(Warning::new(flow.line, message));
        }
    }

    /// Warns about triggers that will never release the flows that wait for them.
    fn check_triggers(&mut self) {
        let mut activations: BTreeMap<u32, u64> = BTreeMap::new();
        let mut waiting: BTreeMap<u32, u64> = BTreeMap::new();
        for flow in &self.flows {
            for id in [flow.on_sent, flow.on_received].into_iter().flatten() {
                *activations.entry(id).or_default() += 1;
            }
            if let Start::Trigger(id) = flow.start {
                *waiting.entry(id).or_default() += 1;
            }
        }
        for (id, waiting) in waiting {
            let Trigger { line, kind } = self.triggers[&id];
            let (activations, flows) = (activations.get(&id).copied().unwrap_or(0), plural(waiting, "flow"));
            let (needed, released) = match kind {
                TriggerKind::OneShot => (1, "none"),
                TriggerKind::MultiShot => (waiting, "not all"),
                TriggerKind::Barrier(count) => (u64::from(count), "none"),
            };
            let message = match activations {
                0 => format!("trigger {id} is activated by nobody: none of its {flows} will start"),
                _ if activations < needed => {
                    let times = plural(activations, "time");
                    format!(
                        "trigger {id} is activated {times} and needs {needed}: {released} of its {flows} will start"
                    )
                }
                _ => continue,
            };
            self.warnings.push(Warning::new(line, message));
        }
    }
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

/// A line with a flow, before starts have a unit and triggers are known.
struct FlowLine {
    flow: Flow,
    written: Option<(Decimal, Option<FormatError>)>,
    references: Vec<(u32, FormatError)>,
}

/// Words that may follow `src->dst`.
const FLOW_KEYS: &[&str] =
    &["start", "trigger", "size", "id", "msg", "send_done_trigger", "recv_done_trigger", "prio", "addon"];

impl FlowLine {
    fn parse(ends: Word<'_>, arrow: usize, mut words: Words<'_>, nodes: Option<u32>) -> Result<Self, FormatError> {
        let Some(nodes) = nodes else {
            return Err(ends.unexpected("\"Nodes\" and their number before the first flow"));
        };
        let node = |word: Word<'_>| word.integer32("a node", 0..=nodes - 1);
        let src = node(ends.part(0, arrow))?;
        let receiver = ends.part(arrow + 2, ends.text().len());
        let dst = node(receiver)?;
        if src == dst {
            let message = format!("found a flow from node {src} to itself, expected two different nodes");
            return Err(receiver.error(message));
        }

        let mut start = None;
        let mut written = None;
        let mut size = None;
        let mut references = Vec::new();
        let mut flow = Flow {
            line: ends.line_number(),
            id: None,
            message: None,
            src,
            dst,
            size: Bytes::ZERO,
            start: Start::At(Instant::ZERO),
            on_sent: None,
            on_received: None,
            priority: None,
            is_add_on: false,
        };
        let mut trigger = |words: &mut Words<'_>| -> Result<u32, FormatError> {
            let word = words.require("a trigger id")?;
            let id = word.integer32("a trigger id", 1..=u32::MAX)?;
            references.push((id, word.unexpected(&format!("a trigger that a line \"trigger id {id} ...\" defines"))));
            Ok(id)
        };
        let mut seen = BTreeSet::new();
        while let Some(key) = words.next() {
            if !seen.insert(key.text()) {
                return Err(key.unexpected("each word once per flow"));
            }
            match key.text() {
                "start" | "trigger" if start.is_some() => {
                    return Err(key.unexpected("either a start or a trigger, not both"));
                }
                "start" => {
                    let word = words.require("a start time")?;
                    let number = word.decimal("a start time as in \"1000000\"")?;
                    let fits = number.times(StartUnit::Microseconds.picoseconds()).is_some_and(|ps| ps < u64::MAX);
                    written = Some((number, (!fits).then(|| word.unexpected("a start of at most 213 days"))));
                    start = Some(Start::At(Instant::ZERO));
                }
                "trigger" => start = Some(Start::Trigger(trigger(&mut words)?)),
                "size" => size = Some(words.require("a size")?.integer("a size in bytes", 1..=BYTES_MAX)?),
                "id" => flow.id = Some(words.require("a flow id")?.integer32("a flow id", 1..=u32::MAX)?),
                "msg" => {
                    // Its number may be missing.
                    let number = words.clone().next().filter(|word| !FLOW_KEYS.contains(&word.text()));
                    let id = number.map(|word| word.integer32("a message id", 0..=u32::MAX)).transpose()?;
                    if id.is_some() {
                        words.next();
                    }
                    flow.message = Some(Message { id });
                }
                "send_done_trigger" => flow.on_sent = Some(trigger(&mut words)?),
                "recv_done_trigger" => flow.on_received = Some(trigger(&mut words)?),
                "prio" => flow.priority = Some(words.require("a priority")?.integer32("a priority", 0..=u32::MAX)?),
                "addon" => flow.is_add_on = true,
                other => {
                    return Err(match nearest(other, FLOW_KEYS.iter().copied()) {
                        Some(meant) => key.unexpected(&format!("{meant:?}")),
                        None => key.unexpected(&format!("one of {}", FLOW_KEYS.join(", "))),
                    });
                }
            }
        }
        flow.start = start.ok_or_else(|| missing(&mut words, "\"start\" and a time, or \"trigger\" and an id"))?;
        flow.size = Bytes::new(size.ok_or_else(|| missing(&mut words, "\"size\" and a number of bytes"))?);
        Ok(Self { flow, written, references })
    }
}

/// The error that a line ended without something.
fn missing(words: &mut Words<'_>, what: &str) -> FormatError {
    match words.require(what) {
        Err(error) => error,
        Ok(word) => word.unexpected(what),
    }
}

/// Reads what follows "trigger"; gives the word with the id as well.
fn parse_trigger<'a>(first: Word<'a>, mut words: Words<'a>) -> Result<(Word<'a>, u32, TriggerKind), FormatError> {
    const KEYS: &[&str] = &["id", "oneshot", "multishot", "barrier", "count"];
    let mut id = None;
    let mut kind = None;
    let mut count = None;
    while let Some(key) = words.next() {
        match key.text() {
            "id" => {
                let word = words.require("a trigger id")?;
                id = Some((word, word.integer32("a trigger id", 1..=u32::MAX)?));
            }
            "count" => count = Some(words.require("a count")?.integer32("a count", 1..=u32::MAX)?),
            name @ ("oneshot" | "multishot" | "barrier") => {
                if kind.replace(name).is_some() {
                    return Err(key.unexpected("one kind of trigger"));
                }
            }
            other => {
                return Err(match nearest(other, KEYS.iter().copied()) {
                    Some(meant) => key.unexpected(&format!("{meant:?}")),
                    None => key.unexpected(&format!("one of {}", KEYS.join(", "))),
                });
            }
        }
    }
    let Some((word, id)) = id else { return Err(missing(&mut words, "\"id\" and the trigger's number")) };
    let kind = match (kind, count) {
        (Some("oneshot"), _) => TriggerKind::OneShot,
        (Some("multishot"), _) => TriggerKind::MultiShot,
        (Some(_), Some(count)) => TriggerKind::Barrier(count),
        (Some(_), None) => return Err(missing(&mut words, "\"count\" and the activations that the barrier waits for")),
        (None, _) => return Err(first.error("found a trigger of no kind, expected oneshot, multishot or barrier")),
    };
    Ok((word, id, kind))
}

/// Reads what follows "failure".
fn parse_failure(line: u64, mut words: Words<'_>) -> Result<Failure, FormatError> {
    const KEYS: &[&str] = &["switch_type", "switch_id", "link_id"];
    let (mut tier, mut switch, mut link) = (None, None, None);
    while let Some(key) = words.next() {
        match key.text() {
            "switch_type" => {
                let word = words.require("TOR, AGG or CORE")?;
                tier = Some(match word.text() {
                    "TOR" => SwitchTier::Tor,
                    "AGG" => SwitchTier::Agg,
                    "CORE" => SwitchTier::Core,
                    _ => return Err(word.unexpected("TOR, AGG or CORE")),
                });
            }
            "switch_id" => switch = Some(words.require("a switch")?.integer32("a switch", 0..=u32::MAX)?),
            "link_id" => link = Some(words.require("a link")?.integer32("a link", 0..=u32::MAX)?),
            _ => return Err(key.unexpected(&format!("one of {}", KEYS.join(", ")))),
        }
    }
    let tier = tier.ok_or_else(|| missing(&mut words, "\"switch_type\" and TOR, AGG or CORE"))?;
    let switch = switch.ok_or_else(|| missing(&mut words, "\"switch_id\" and a number"))?;
    let link = link.ok_or_else(|| missing(&mut words, "\"link_id\" and a number"))?;
    Ok(Failure { line, tier, switch, link })
}
