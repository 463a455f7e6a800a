//! Detection of the format of a file.

use selvedge_units::words::plural;

use crate::text::Lines;
use crate::{Dialect, FormatError, goal, ns3_topology};

/// Returns the dialect of a topology or a flow list, from its first lines. Does not read the rest, which may be wrong.
///
/// ```
/// use selvedge_formats::{Dialect, detect};
///
/// assert_eq!(detect(b"Nodes 2\nConnections 1\n0->1 start 0 size 9\n", "x.cm"), Ok(Dialect::HtsimMatrix));
/// ```
///
/// # Errors
/// Returns an error if the dialect is none of the known ones; the message lists those tried.
pub fn detect(bytes: &[u8], file: &str) -> Result<Dialect, FormatError> {
    if let Some(error) = goal::unfinished(bytes, file) {
        return Err(error);
    }
    if goal::is_binary(bytes) {
        return Ok(Dialect::GoalBinary);
    }
    let mut lines = Lines::new(bytes, file);
    let first = lines.next_filled()?;
    // GOAL has its own forms of comments.
    if first.and_then(|line| line.words().next()).is_some_and(|word| is_goal(word.text())) {
        return Ok(Dialect::GoalText);
    }
    let Some(first) = first else {
        return Err(lines.error_at_end("a topology or a flow list"));
    };
    if !first.begins_with_number() || first.words().next().is_some_and(|word| word.text().contains("->")) {
        return detect_htsim(bytes, file);
    }
    match first.words().count() {
        3 | 4 => return Ok(Dialect::Ns3Topology),
        6 if ns3_topology::has_capacities(bytes, file) => return Ok(Dialect::Ns3Topology),
        // The sixth word of SimAI's header is the model of the GPUs.
        6 if first.words().nth(5).is_some_and(|word| word.decimal("").is_err()) => return Ok(Dialect::SimAiTopology),
        columns @ 5..=7 => return Ok(flows(columns)),
        _ => {}
    }
    let header = first.words().count();
    let second = if header == 1 { lines.next_filled()? } else { None };
    match second.map(|line| line.words().count()) {
        Some(columns @ 5..=7) => Ok(flows(columns)),
        None if header == 1 => {
            let message =
                "found a number alone, which may be a count of flows; expected the flows, of 5, 6 or 7 numbers each";
            Err(lines.line().error(0, message))
        }
        columns => {
            let found = match columns {
                Some(columns) => format!("1 word in the first line and {columns} in the second"),
                None => format!("{} in the first line", plural(header as u64, "word")),
            };
            Err(unknown(lines.line().error(0, found)))
        }
    }
}

/// Returns whether a file that begins with this word is a GOAL schedule: by its first keyword, or by a form of comment
/// that no other format has.
fn is_goal(word: &str) -> bool {
    word == "num_ranks" || word.starts_with("/*") || word.starts_with("//")
}

/// Returns the dialect of a file that begins with a key: both of htsim's formats may begin with "Nodes".
fn detect_htsim(bytes: &[u8], file: &str) -> Result<Dialect, FormatError> {
    let mut lines = Lines::new(bytes, file);
    while let Some(line) = lines.next_filled()? {
        let Some(key) = line.words().next() else { continue };
        let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(key.text()));
        if key.text().contains("->") || is(&["Connections", "Triggers", "Failures"]) {
            return Ok(Dialect::HtsimMatrix);
        }
        if is(&["Tiers", "Tier", "Podsize"]) {
            return Ok(Dialect::HtsimTopology);
        }
        if !is(&["Nodes"]) {
            let found: String = key.text().chars().take(40).collect();
            return Err(unknown(key.error(format!("{found:?}"))));
        }
    }
    Err(unknown(lines.line().error(0, "\"Nodes\" alone")))
}

const fn flows(columns: usize) -> Dialect {
    match columns {
        5 => Dialect::Ns3Flows5,
        6 => Dialect::Ns3Flows6,
        _ => Dialect::Ns3Flows7,
    }
}

/// Returns the error for a file of no known format; `found` says how it begins.
fn unknown(found: FormatError) -> FormatError {
    let message = format!(
        "found {}, expected one of: ns-3 RDMA topology (first line \"nodes switches links\" or \"nodes switches tors links\"), \
         SimAI topology (first line of 6 words, the last a GPU type), \
         ns-3 RDMA flow list (a count, then lines of 5, 6 or 7 numbers), \
         htsim topology (\"Nodes\", \"Tiers\", \"Podsize\"), \
         htsim connection matrix (\"Nodes\", \"Connections\", lines \"0->1 ...\"), \
         GOAL schedule (\"num_ranks\")",
        found.message
    );
    FormatError { message, ..found }
}
