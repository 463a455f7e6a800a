//! `flow.txt` of the ns-3 RDMA family.
//!
//! ```text
//! <number of flows>
//!      <src> <dst> <pg>         <size> <start>      5 columns: ConWeave
//!      <src> <dst> <pg> <dport> <size> <start>      6 columns: HPCC, SimAI
//! <id> <src> <dst> <pg> <dport> <size> <start>      7 columns: Parsimon
//! ```
//!
//! Nodes have the ids of the topology file, starts are in seconds. The size is in bytes; some forks
//! of HPCC count packets there ([`Options::size_unit`]).
//!
//! Notes may follow after a blank line, as in HPCC's sample: a line that begins with no number ends the list. Lines
//! below it that look like flows cause a warning.
//!
//! The number of flows is often stale: ConWeave's generator leaves digits of its estimate behind, and HPCC's sample
//! says 2 above 256 flows. ns-3 stops after that number. This reader takes all lines, unless those beyond the number
//! name nodes that the topology does not have, and so are left over from another one: [`FlowList::settle_surplus`].

use std::io::BufRead;

use selvedge_units::words::plural;
use selvedge_units::{Bytes, Instant};

use crate::text::{BYTES_MAX, Line, Lines, Word, missing};
use crate::{Dialect, FormatError, Parsed, Warning};

/// Flow of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// Line of the flow.
    pub line: u64,
    /// Number of the flow, in files of 7 columns.
    pub id: Option<u64>,
    /// Sending node.
    pub src: u32,
    /// Receiving node, different from `src`.
    pub dst: u32,
    /// Priority group: the class of traffic, 0 to 7; 3 in the files of these simulators.
    pub priority: u8,
    /// UDP destination port, in files of 6 and 7 columns.
    pub dst_port: Option<u16>,
    /// Payload; above zero.
    pub size: Bytes,
    /// Start of the flow, since the run's beginning.
    pub start: Instant,
}

/// Properties that the file does not state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Unit of the size column.
    pub size_unit: SizeUnit,
}

/// Unit of the size column of a flow list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SizeUnit {
    /// Bytes.
    #[default]
    Bytes,
    /// Packets with this many bytes of payload each, above zero.
    Packets(Bytes),
}

/// Flows of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowList {
    /// Flows in ascending order of start; in file order where starts are equal.
    pub flows: Vec<Flow>,
    /// Number of flows according to the first line; `None` if the file begins with a flow.
    pub declared: Option<u64>,
    /// Flows beyond the declared number, if there are more; they may be left over.
    surplus: Option<Surplus>,
}

/// Flows beyond the declared number.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Surplus {
    /// Line of the first surplus flow.
    from: u64,
    /// Description of the wrong count: "the first line says 2 flows, the file has 256".
    said: String,
}

impl FlowList {
    /// Takes or drops the flows beyond the declared number, which ns-3 would not read, and returns a warning about it.
    /// The flows are taken if all of them begin and end at hosts. The remaining flows may still name unknown hosts: the
    /// caller reports those, with [`Flow::line`].
    pub fn settle_surplus(&mut self, is_host: impl Fn(u32) -> bool) -> Option<Warning> {
        let Surplus { from, said } = self.surplus.take()?;
        let mut surplus = self.flows.iter().filter(|flow| flow.line >= from);
        let Some(stranger) = surplus.find(|flow| !is_host(flow.src) || !is_host(flow.dst)) else {
            return Some(Warning::new(1, format!("{said}: all are taken")));
        };
        let node = if is_host(stranger.src) { stranger.dst } else { stranger.src };
        let (declared, line) = (self.declared.unwrap_or_default(), stranger.line);
        self.flows.retain(|flow| flow.line < from);
        Some(Warning::new(
            1,
            format!(
                "{said}: only the first {declared} are taken, as ns-3 does, because others are between nodes that \
                 are no hosts of this topology (node {node} in line {line})"
            ),
        ))
    }
}

/// Reads a whole file and sorts it by start.
///
/// # Errors
/// Returns the errors of [`Flows`], and an error if there are no flows.
pub fn read(input: impl BufRead, file: &str, options: Options) -> Result<Parsed<FlowList>, FormatError> {
    let mut reader = Flows::new(input, file, options);
    let mut flows = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
    let Some(dialect) = reader.dialect() else {
        return Err(reader.lines.error_at_end("a flow as in \"2 1 3 100 200000 2.0\""));
    };
    if reader.unsorted_at().is_some() {
        flows.sort_by_key(|flow| flow.start);
    }
    let value = FlowList { flows, declared: reader.declared, surplus: reader.surplus };
    Ok(Parsed { value, warnings: reader.warnings, dialect })
}

/// Reader of a file, flow by flow in constant memory, in the order of the file. Ends after an error.
///
/// ```
/// use selvedge_formats::ns3_flow::{Flows, Options};
///
/// let mut flows = Flows::new(&b"721\n7 4 3 7094 2.000028356\n"[..], "flow.txt", Options::default());
/// for flow in flows.by_ref() {
///     assert_eq!(flow?.start.as_ps(), 2_000_028_356_000);
/// }
/// let said = "the first line says 721 flows, the file has 1: 720 are missing, and those found are taken";
/// assert_eq!(flows.warnings()[0].message, said);
/// # Ok::<(), selvedge_formats::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error for: a wrong number of columns, a flow from a node to itself, a size of zero, a word that is not a
/// number.
pub struct Flows<R> {
    lines: Lines<R>,
    options: Options,
    state: State,
    declared: Option<u64>,
    surplus: Option<Surplus>,
    columns: Option<usize>,
    count: u64,
    latest: Instant,
    unsorted_at: Option<u64>,
    warnings: Vec<Warning>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Header,
    Body,
    End,
}

impl<R: BufRead> Flows<R> {
    /// Creates a reader of `input`.
    pub fn new(input: R, file: &str, options: Options) -> Self {
        Self {
            lines: Lines::new(input, file),
            options,
            state: State::Header,
            declared: None,
            surplus: None,
            columns: None,
            count: 0,
            latest: Instant::ZERO,
            unsorted_at: None,
            warnings: Vec::new(),
        }
    }
    /// Returns the number of flows according to the first line, once it was read.
    pub fn declared(&self) -> Option<u64> {
        self.declared
    }
    /// Returns the dialect, once a flow was read.
    pub fn dialect(&self) -> Option<Dialect> {
        Some(match self.columns? {
            5 => Dialect::Ns3Flows5,
            6 => Dialect::Ns3Flows6,
            _ => Dialect::Ns3Flows7,
        })
    }
    /// Returns the line of the first flow so far that starts before its predecessor.
    pub fn unsorted_at(&self) -> Option<u64> {
        self.unsorted_at
    }
    /// Returns the warnings so far; complete when the iterator has ended. Flows beyond the declared number cause no
    /// warning: see [`FlowList::settle_surplus`].
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    fn try_next(&mut self) -> Result<Option<Flow>, FormatError> {
        if self.state == State::Header {
            self.read_header()?;
            self.state = State::Body;
            // A file without a header begins with a flow, in the line just read.
            if self.columns.is_some() {
                return self.flow().map(Some);
            }
        }
        let mut after_blank = false;
        while let Some(line) = self.lines.next_line()? {
            if line.is_blank() {
                after_blank = true;
                continue;
            }
            if line.begins_notes(after_blank || self.declared == Some(self.count)) {
                let notes = line.number();
                self.check_count(Some(notes));
                self.check_notes(notes, after_blank);
                return Ok(None);
            }
            return self.flow().map(Some);
        }
        self.check_count(None);
        Ok(None)
    }

    fn read_header(&mut self) -> Result<(), FormatError> {
        let expected = "the number of flows";
        let line = self.lines.require_filled(expected)?;
        let mut words = line.words();
        let first = words.require(expected)?;
        match line.words().count() {
            columns @ 5..=7 => {
                self.columns = Some(columns);
                self.warnings.push(Warning::new(line.number(), "the first line is a flow, not the number of flows"));
            }
            _ => {
                self.declared = Some(first.integer(expected, 0..=u64::MAX)?);
                words.finish()?;
            }
        }
        Ok(())
    }

    /// Returns the flow in the line read last.
    fn flow(&mut self) -> Result<Flow, FormatError> {
        let line = self.lines.line();
        let columns = match (self.columns, line.words().count()) {
            (Some(columns), found @ 5..=7) if found != columns => {
                let message = format!("found {found} columns, expected {columns} as in the flows above");
                return Err(line.error(0, message));
            }
            (Some(columns), _) => columns,
            (None, _) => columns(line)?,
        };
        let flow = Flow::parse(line, columns, self.options)?;
        self.columns = Some(columns);
        if self.declared == Some(self.count) {
            self.surplus = Some(Surplus { from: flow.line, said: String::new() });
        }
        self.count += 1;
        if flow.start < self.latest && self.unsorted_at.is_none() {
            self.unsorted_at = Some(flow.line);
            let message = format!("starts at {}, before the flow above it: the list is not sorted", flow.start);
            self.warnings.push(Warning::new(flow.line, message));
        }
        self.latest = self.latest.max(flow.start);
        Ok(flow)
    }

    /// Warns about notes that may be data, from the line read last on.
    fn check_notes(&mut self, from: u64, after_blank: bool) {
        let (columns, options) = (self.columns, self.options);
        let is_flow = |line: Line<'_>| {
            let columns = columns.unwrap_or_else(|| line.words().count());
            Flow::parse(line, columns, options).is_ok()
        };
        self.warnings.extend(self.lines.notes(from, after_blank, "flow", is_flow));
    }

    /// Compares the declared number of flows with that found; `notes` is the line where notes begin, if there are some.
    fn check_count(&mut self, notes: Option<u64>) {
        let Some(declared) = self.declared.filter(|&declared| declared != self.count) else { return };
        let until = notes.map_or(String::new(), |line| format!(" above the notes from line {line} on"));
        let said = format!("the first line says {}, the file has {}{until}", plural(declared, "flow"), self.count);
        match &mut self.surplus {
            Some(surplus) => surplus.said = said,
            None => {
                let missing = missing(declared.saturating_sub(self.count));
                self.warnings.push(Warning::new(1, format!("{said}: {missing}, and those found are taken")));
            }
        }
    }
}

impl<R: BufRead> Iterator for Flows<R> {
    type Item = Result<Flow, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::End {
            return None;
        }
        let next = self.try_next().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.state = State::End;
        }
        next
    }
}

/// Returns the number of columns of the first flow.
fn columns(line: Line<'_>) -> Result<usize, FormatError> {
    match line.words().count() {
        columns @ 5..=7 => Ok(columns),
        other => Err(line.error(
            0,
            format!(
                "found {}, expected 5 (src dst pg size start), 6 (src dst pg dport size start) \
                 or 7 (id src dst pg dport size start)",
                plural(other as u64, "word")
            ),
        )),
    }
}

impl Flow {
    fn parse(line: Line<'_>, columns: usize, options: Options) -> Result<Self, FormatError> {
        let mut words = line.words();
        let id = match columns {
            7 => Some(words.require("a flow id")?.integer("a flow id", 0..=u64::MAX)?),
            _ => None,
        };
        let src = node(words.require("the id of the sending node")?)?;
        let receiver = words.require("the id of the receiving node")?;
        let dst = node(receiver)?;
        if src == dst {
            let message = format!("found a flow from node {src} to itself, expected two different nodes");
            return Err(receiver.error(message));
        }
        let priority = words.require("a priority group")?.integer32("a priority group", 0..=7)? as u8;
        let dst_port = match columns {
            5 => None,
            _ => Some(words.require("a port")?.integer32("a port", 0..=65_535)? as u16),
        };
        let size = options.size_unit.parse(words.require("the size")?)?;
        let start = parse_start(words.require("the start in seconds")?)?;
        words.finish()?;
        Ok(Self { line: line.number(), id, src, dst, priority, dst_port, size, start })
    }
}

impl SizeUnit {
    fn parse(self, word: Word<'_>) -> Result<Bytes, FormatError> {
        match self {
            Self::Bytes => word.integer("a size in bytes", 1..=BYTES_MAX).map(Bytes::new),
            Self::Packets(payload) => {
                let most = BYTES_MAX / payload.get().max(1);
                word.integer("a size in packets", 1..=most).map(|packets| payload * packets)
            }
        }
    }
}

fn node(word: Word<'_>) -> Result<u32, FormatError> {
    word.integer32("a node id", 0..=u32::MAX)
}

fn parse_start(word: Word<'_>) -> Result<Instant, FormatError> {
    let expected = "a start in seconds as in \"2.000028356\", at most 53 days";
    let ps = word.decimal(expected)?.times(1_000_000_000_000).filter(|&ps| ps < Instant::HORIZON.as_ps());
    ps.map(Instant::from_ps).ok_or_else(|| word.unexpected(expected))
}
