//! Schedules as text.

use std::collections::BTreeMap;

use selvedge_units::{Bytes, Duration};

use super::{
    Goal, LONGEST_NS, Operation, OperationKind, RANKS_MAX, Rank, SourcePosition, cycle, cycle_message, given,
    idle_ranks,
};
use crate::text::{BYTES_MAX, Line, Lines, Word, Words};
use crate::{FormatError, Warning};

pub(super) fn read(bytes: &[u8], file: &str) -> Result<(Goal, Vec<Warning>), FormatError> {
    let bytes = without_comments(bytes);
    let mut lines = Lines::new(&*bytes, file);
    let mut goal = Goal::default();
    let first = lines.require_filled("\"num_ranks\" and their number")?;
    let first_line = first.number();
    let mut words = first.words();
    keyword(&mut words, "num_ranks")?;
    goal.rank_count = words.require("the number of ranks")?.integer32("the number of ranks", 1..=RANKS_MAX)?;
    words.finish()?;
    while let Some(line) = lines.next_filled()? {
        let mut words = line.words();
        keyword(&mut words, "rank")?;
        let word = words.require("the number of a rank")?;
        // The brace may follow without a blank.
        let glued = word.text().ends_with('{');
        let number = if glued { word.part(0, word.text().len() - 1) } else { word };
        let number = number.integer32("a rank", 0..=goal.rank_count - 1)?;
        if !glued {
            keyword(&mut words, "{")?;
        }
        words.finish()?;
        if goal.ranks.contains_key(&number) {
            return Err(word.error(format!("found rank {number} again, expected each rank once")));
        }
        let rank = read_rank(&mut lines, goal.rank_count)?;
        goal.ranks.insert(number, rank);
    }
    let warnings = idle_ranks(&goal, first_line).into_iter().collect();
    Ok((goal, warnings))
}

/// Reads the operations up to the closing brace.
fn read_rank(lines: &mut Lines<&[u8]>, rank_count: u32) -> Result<Rank, FormatError> {
    let mut block = Block { rank_count, rank: Rank::default(), labels: BTreeMap::new(), open: Vec::new() };
    loop {
        let line = lines.require_filled("\"}\" at the end of the rank")?;
        if line.words().next().is_some_and(|word| word.text() == "}") {
            line.words().skip(1).try_for_each(|word| Err(word.unexpected("the end of the line")))?;
            return block.finish();
        }
        block.statement(line)?;
    }
}

/// Part of a rank that was read.
struct Block {
    rank_count: u32,
    rank: Rank,
    labels: BTreeMap<String, u32>,
    /// Dependencies between labels, which may be defined later, with the errors to return if they are not.
    open: Vec<Requirement>,
}

struct Requirement {
    ends: [(String, FormatError); 2],
    at_start: bool,
}

impl Block {
    fn statement(&mut self, line: Line<'_>) -> Result<(), FormatError> {
        let mut words = line.words();
        let mut word = words.require("an operation")?;
        // No blank is needed behind the colon, and one may stand before it.
        let colon = word.text().find(':');
        let is_apart = || words.clone().next().is_some_and(|next| next.text().starts_with(':'));
        if colon.is_some_and(|at| at > 0) || colon.is_none() && is_apart() {
            let label = words.part(word, colon.unwrap_or(word.text().len())).text();
            let colon = words.require("\":\"")?;
            words.part(colon, 1);
            let number = self.rank.operations.len() as u32;
            if self.labels.insert(label.to_owned(), number).is_some() {
                return Err(word.error(format!("found label {label:?} again, expected each once in a rank")));
            }
            word = words.require("\"send\", \"recv\" or \"calc\"")?;
        }
        let [line, column] = word.place().map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let kind = match word.text() {
            "send" => self.message(&mut words, true)?,
            "recv" => self.message(&mut words, false)?,
            "calc" => {
                let time = words.require_number("nanoseconds")?.integer("nanoseconds", 0..=LONGEST_NS)?;
                OperationKind::Compute(Duration::from_ns(time))
            }
            _ => return self.requirement(word, words),
        };
        let mut operation = Operation { kind, cpu: 0, nic: 0 };
        while let Some(word) = words.next() {
            let number = |words: &mut Words<'_>| words.require_number("a number")?.integer32("a number", 0..=255);
            match (word.text(), &mut operation.kind) {
                ("cpu", _) => operation.cpu = number(&mut words)? as u8,
                ("nic", _) => operation.nic = number(&mut words)? as u8,
                ("tag", OperationKind::Send { tag, .. }) => {
                    *tag = words.require_number("a tag")?.integer32("a tag", 0..=u32::MAX)?;
                }
                ("tag", OperationKind::Recv { tag, .. }) => {
                    *tag = or_any(words.require_number("a tag")?, "a tag", u32::MAX)?
                }
                (_, OperationKind::Compute(_)) => return Err(word.unexpected("\"cpu\" or the end of the line")),
                _ => return Err(word.unexpected("\"tag\", \"cpu\", \"nic\" or the end of the line")),
            }
        }
        self.rank.operations.push(operation);
        self.rank.places.push(SourcePosition { line, column });
        Ok(())
    }

    /// Reads the rest of a "send" or "recv": the size, and the other rank.
    fn message(&self, words: &mut Words<'_>, is_send: bool) -> Result<OperationKind, FormatError> {
        let word = words.require("a size as in \"4096b\"")?;
        let digits = word.text().strip_suffix('b').unwrap_or(word.text()).len();
        let size = word.part(0, digits).integer("a size as in \"4096b\"", 0..=BYTES_MAX)?;
        let size = Bytes::new(size);
        keyword(words, if is_send { "to" } else { "from" })?;
        let peer = words.require_number("a rank")?;
        Ok(if is_send {
            OperationKind::Send { to: peer.integer32("a rank", 0..=self.rank_count - 1)?, size, tag: 0 }
        } else {
            OperationKind::Recv { from: or_any(peer, "a rank", self.rank_count - 1)?, tag: Some(0), size }
        })
    }

    /// Reads "l2 requires l1".
    fn requirement(&mut self, after: Word<'_>, mut words: Words<'_>) -> Result<(), FormatError> {
        let unknown = "an operation (\"send\", \"recv\", \"calc\"), or as in \"l2 requires l1\"";
        let Some(word) = words.next() else { return Err(after.unexpected(unknown)) };
        let at_start = match word.text() {
            "requires" => false,
            "irequires" => true,
            _ => return Err(after.unexpected(unknown)),
        };
        let before = words.require("a label")?;
        words.finish()?;
        let end = |word: Word<'_>| (word.text().to_owned(), word.unexpected("a label of this rank"));
        self.open.push(Requirement { ends: [after, before].map(end), at_start });
        Ok(())
    }

    fn finish(mut self) -> Result<Rank, FormatError> {
        for Requirement { ends, at_start } in &self.open {
            let find = |end: &(String, FormatError)| self.labels.get(&end.0).copied().ok_or_else(|| end.1.clone());
            let pair = (find(&ends[0])?, find(&ends[1])?);
            let pairs = if *at_start { &mut self.rank.start_requires } else { &mut self.rank.requires };
            pairs.push(pair);
        }
        match cycle(&self.rank) {
            None => Ok(self.rank),
            Some(waiting) => Err(self.cycle_error(waiting)),
        }
    }

    /// Returns the error of a cycle, at the last of the lines that form it.
    fn cycle_error(&self, mut waiting: Vec<u32>) -> FormatError {
        let is_part = |requirement: &&Requirement| {
            let [after, before] = &requirement.ends;
            let place = waiting.iter().position(|number| *number == self.labels[&after.0]);
            place.is_some_and(|at| waiting[(at + 1) % waiting.len()] == self.labels[&before.0])
        };
        let Some(closing) = self.open.iter().rev().find(is_part) else { unreachable!("each waits for the next") };
        let (label, error) = &closing.ends[0];
        let first = waiting.iter().position(|number| *number == self.labels[label]).unwrap_or_default();
        waiting.rotate_left(first);
        let names: BTreeMap<u32, &String> = self.labels.iter().map(|(label, number)| (*number, label)).collect();
        let names: Vec<String> = waiting.iter().map(|number| format!("{:?}", names[number])).collect();
        FormatError { message: cycle_message(&names), ..error.clone() }
    }
}

/// Parses a number up to `most`, or "-1" for any.
fn or_any(word: Word<'_>, what: &str, most: u32) -> Result<Option<u32>, FormatError> {
    if word.text() == "-1" || word.text() == "4294967295" {
        return Ok(None);
    }
    word.integer32(what, 0..=most).map(given)
}

fn keyword(words: &mut Words<'_>, expected: &str) -> Result<(), FormatError> {
    let word = words.require(&format!("{expected:?}"))?;
    if word.text() == expected { Ok(()) } else { Err(word.unexpected(&format!("{expected:?}"))) }
}

/// Returns the text with blanks in place of comments, so that all words keep their places.
fn without_comments(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.to_vec();
    let mut at = 0;
    while at + 1 < rest.len() {
        let end = match &rest[at..at + 2] {
            b"//" => rest[at..].iter().position(|&byte| byte == b'\n').map_or(rest.len(), |length| at + length),
            b"/*" => {
                let close = rest[at + 2..].windows(2).position(|pair| pair == b"*/");
                close.map_or(rest.len(), |length| at + 2 + length + 2)
            }
            _ => {
                at += 1;
                continue;
            }
        };
        rest[at..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at = end;
    }
    rest
}
