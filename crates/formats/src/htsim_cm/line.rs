//! Lines of a matrix: flows, triggers, failures.

use std::collections::BTreeSet;

use selvedge_units::words::nearest;
use selvedge_units::{Bytes, Instant};

use super::{Failure, Flow, Message, Start, StartUnit, SwitchTier, TriggerKind};
use crate::FormatError;
use crate::text::{BYTES_MAX, Decimal, Word, Words};

/// Line with a flow, before starts have a unit and triggers are known.
pub(super) struct FlowLine {
    pub(super) flow: Flow,
    pub(super) written: Option<(Decimal, Option<FormatError>)>,
    pub(super) references: Vec<(u32, FormatError)>,
}

/// Words that may follow `src->dst`.
const FLOW_KEYS: &[&str] =
    &["start", "trigger", "size", "id", "msg", "send_done_trigger", "recv_done_trigger", "prio", "addon"];

impl FlowLine {
    pub(super) fn parse(
        ends: Word<'_>,
        arrow: usize,
        mut words: Words<'_>,
        nodes: Option<u32>,
    ) -> Result<Self, FormatError> {
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
                    let fits = number
                        .times(StartUnit::Microseconds.picoseconds())
                        .is_some_and(|ps| ps < Instant::HORIZON.as_ps());
                    written = Some((number, (!fits).then(|| word.unexpected("a start of at most 53 days"))));
                    start = Some(Start::At(Instant::ZERO));
                }
                "trigger" => start = Some(Start::Trigger(trigger(&mut words)?)),
                "size" => size = Some(words.require("a size")?.integer("a size in bytes", 1..=BYTES_MAX)?),
                "id" => flow.id = Some(words.require("a flow id")?.integer32("a flow id", 1..=u32::MAX)?),
                "msg" => {
                    // The number may be missing.
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

/// Returns the error for a line that ended without `what`.
fn missing(words: &mut Words<'_>, what: &str) -> FormatError {
    match words.require(what) {
        Err(error) => error,
        Ok(word) => word.unexpected(what),
    }
}

/// Reads the words after "trigger"; returns the word with the id as well.
pub(super) fn parse_trigger<'a>(
    first: Word<'a>,
    mut words: Words<'a>,
) -> Result<(Word<'a>, u32, TriggerKind), FormatError> {
    const KEYS: &[&str] = &["id", "oneshot", "multishot", "barrier", "count"];
    const KINDS: &str = "oneshot, multishot, or barrier and its count";
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
                    Some(meant @ ("id" | "count")) => key.unexpected(&format!("{meant:?}")),
                    _ => key.unexpected(&format!("a kind of trigger: {KINDS}")),
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
        (None, _) => return Err(first.error(format!("found a trigger of no kind, expected {KINDS}"))),
    };
    Ok((word, id, kind))
}

/// Reads the words after "failure".
pub(super) fn parse_failure(line: u64, mut words: Words<'_>) -> Result<Failure, FormatError> {
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
