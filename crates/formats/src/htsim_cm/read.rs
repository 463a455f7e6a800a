//! Reading of a file as a whole: its header, its lines, and checks at its end.

use std::collections::BTreeMap;
use std::io::BufRead;

use selvedge_units::Instant;
use selvedge_units::words::nearest;

use super::line::{FlowLine, parse_failure, parse_trigger};
use super::{ConnectionMatrix, Failure, Flow, Start, StartUnit, Trigger};
use crate::text::{Decimal, Lines};
use crate::{Dialect, FormatError, Parsed, Warning};

/// State of reading. References to triggers keep their places until all triggers are known.
pub(super) struct Reader<R> {
    pub(super) lines: Lines<R>,
    nodes: Option<u32>,
    pub(super) declared: [Option<(u64, u64)>; 3],
    pub(super) flows: Vec<Flow>,
    starts: Vec<WrittenStart>,
    pub(super) triggers: BTreeMap<u32, Trigger>,
    /// Triggers that flows name, with the error if no line defines them.
    references: BTreeMap<u32, FormatError>,
    pub(super) failures: Vec<Failure>,
    pub(super) warnings: Vec<Warning>,
}

/// Start of a flow in an unknown unit, and the error to return if it is too large.
struct WrittenStart {
    flow: usize,
    number: Decimal,
    too_late: Option<FormatError>,
}

/// Header keys whose counts are compared, in the order of `Reader::declared`.
pub(super) const COUNTS: [(&str, &str); 3] =
    [("Connections", "flow"), ("Triggers", "trigger"), ("Failures", "failure")];

impl<R: BufRead> Reader<R> {
    pub(super) fn new(lines: Lines<R>) -> Self {
        Self {
            lines,
            nodes: None,
            declared: [None; 3],
            flows: Vec::new(),
            starts: Vec::new(),
            triggers: BTreeMap::new(),
            references: BTreeMap::new(),
            failures: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Reads the line read last.
    pub(super) fn statement(&mut self) -> Result<(), FormatError> {
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
        if let Some((number, too_late)) = written {
            self.starts.push(WrittenStart { flow: self.flows.len(), number, too_late });
        }
        for (id, undefined) in references {
            self.references.entry(id).or_insert(undefined);
        }
        self.flows.push(flow);
        Ok(())
    }

    pub(super) fn finish(mut self, start_unit: StartUnit) -> Result<Parsed<ConnectionMatrix>, FormatError> {
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
        let (start_unit, guessed_at) = self.resolve_starts(start_unit)?;
        self.check_counts();
        self.check_ids();
        self.check_triggers();
        let Self { flows, triggers, failures, warnings, .. } = self;
        let value = ConnectionMatrix { nodes, flows, triggers, failures, start_unit, guessed_at };
        Ok(Parsed { value, warnings, dialect: Dialect::HtsimMatrix })
    }

    /// Returns the unit of start times, and the line from which it was guessed, if it was.
    fn resolve_starts(&mut self, asked: StartUnit) -> Result<(StartUnit, Option<u64>), FormatError> {
        let (unit, guessed_at) = match asked {
            StartUnit::Auto => self.guess_unit(),
            unit => (unit, None),
        };
        for start in &self.starts {
            match (start.number.times(unit.picoseconds()), &start.too_late) {
                (Some(ps), _) if ps < u64::MAX => self.flows[start.flow].start = Start::At(Instant::from_ps(ps)),
                (_, Some(too_late)) => return Err(too_late.clone()),
                (_, None) => unreachable!("a start that fits in microseconds fits in smaller units"),
            }
        }
        Ok((unit, guessed_at))
    }

    fn guess_unit(&self) -> (StartUnit, Option<u64>) {
        let positive = || self.starts.iter().filter(|start| !start.number.is_zero());
        let Some(first) = positive().next() else { return (StartUnit::Picoseconds, None) };
        let large = |start: &WrittenStart| start.number.times(1).is_none_or(|number| number >= 1_000_000);
        let unit = if positive().any(large) { StartUnit::Picoseconds } else { StartUnit::Microseconds };
        (unit, Some(self.flows[first.flow].line))
    }
}
