//! GOAL schedules (Group Operation Assembly Language): operations by which each rank sends, receives and computes, and
//! their dependencies. They are written by LogGOPSim's `schedgen` and by ATLAHS, as text or in the binary form of
//! `txt2bin`.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 100                          nanoseconds
//! l2: send 4096b to 1 tag 7 [cpu C] [nic N]
//! l2 requires l1                        l2 begins when l1 has ended
//! }
//! rank 1 {
//! l1: recv 4096b from 0 tag 7           "from -1", "tag -1": any
//! l2: calc 5 cpu 1
//! l2 irequires l1                       l2 begins when l1 has begun
//! }
//! ```
//!
//! Comments are `// ...`, `/* ... */` and `# ...`.

mod binary;
mod sizes;
mod text;

use std::collections::BTreeMap;

use selvedge_units::{Bytes, Duration, Instant};

use crate::{Dialect, FormatError, Parsed, Warning};

/// Duration of the longest computation in nanoseconds, 53 days: simulated time ends then.
const LONGEST_NS: u64 = (Instant::HORIZON.as_ps() - 1) / 1_000;

/// Operations of all ranks.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Goal {
    /// Number of ranks; ranks are numbered from 0.
    pub rank_count: u32,
    /// Ranks that have operations, by number.
    pub ranks: BTreeMap<u32, Rank>,
}

/// Operations of one rank.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rank {
    /// Operations, in the order of the file.
    pub operations: Vec<Operation>,
    /// Place of each operation; empty for binary files.
    pub places: Vec<SourcePosition>,
    /// Pairs of an operation and another whose end it waits for.
    pub requires: Vec<(u32, u32)>,
    /// Pairs of an operation and another whose beginning it waits for.
    pub start_requires: Vec<(u32, u32)>,
}

/// Place of an operation in a text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SourcePosition {
    /// Line of the operation, from 1.
    pub line: u32,
    /// Column of the operation's "send", "recv" or "calc" in characters, from 1.
    pub column: u32,
}

/// Operation of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation {
    /// Action of the operation.
    pub kind: OperationKind,
    /// Processor that executes the operation.
    pub cpu: u8,
    /// NIC that the operation uses; meaningless for computations.
    pub nic: u8,
}

/// Action of an [`Operation`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperationKind {
    /// Transmission of a message.
    Send {
        /// Receiving rank.
        to: u32,
        /// Payload.
        size: Bytes,
        /// Tag by which receives select messages.
        tag: u32,
    },
    /// Receipt of a message.
    Recv {
        /// Sending rank; `None` for any.
        from: Option<u32>,
        /// Tag of the message; `None` for any.
        tag: Option<u32>,
        /// Payload, as the receiver expects it.
        size: Bytes,
    },
    /// Computation of this duration.
    Compute(Duration),
}

/// Maximum number of ranks that a file may announce.
pub const RANKS_MAX: u32 = 1 << 24;

/// Reads a schedule, text or binary.
///
/// ```
/// use selvedge_formats::goal;
///
/// let file = b"num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 3\n}\nrank 1 {\nl1: recv 8b from 0 tag 3\n}\n";
/// assert_eq!(goal::read(file, "two.goal")?.value.ranks[&1].operations.len(), 1);
/// # Ok::<(), selvedge_formats::FormatError>(())
/// ```
///
/// # Errors
/// Returns an error for: unknown words, ranks and labels; ranks and labels that are defined twice; numbers out of
/// range; in a binary file, references outside of the file (with the byte, from 1, as the column).
pub fn read(bytes: &[u8], file: &str) -> Result<Parsed<Goal>, FormatError> {
    if let Some(error) = unfinished(bytes, file) {
        return Err(error);
    }
    let (value, mut warnings, dialect) = if is_binary(bytes) {
        (binary::read(bytes, file)?, Vec::new(), Dialect::GoalBinary)
    } else {
        let (value, warnings) = text::read(bytes, file)?;
        (value, warnings, Dialect::GoalText)
    };
    warnings.extend(several_nics(&value));
    warnings.extend(unreceived(&value));
    warnings.extend(sizes::unequal(&value));
    Ok(Parsed { value, warnings, dialect })
}

/// Returns whether these bytes begin like a binary schedule.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&binary::MAGIC.to_le_bytes())
}

/// Returns the error for a binary schedule that its writer has marked invalid: LogGOPSim's writes this number first,
/// and the valid one when the schedule is complete.
pub fn unfinished(bytes: &[u8], file: &str) -> Option<FormatError> {
    bytes.starts_with(&binary::UNFINISHED.to_le_bytes()).then(|| FormatError {
        file: file.to_owned(),
        line: 1,
        column: 1,
        message: format!(
            "found a binary GOAL schedule that is marked invalid (its first number is {}, as LogGOPSim writes it until \
             the file is complete), expected {}: convert the schedule again, and let that come to its end",
            binary::UNFINISHED,
            binary::MAGIC
        ),
    })
}

/// Returns a warning about messages through a NIC of their rank other than the first: hosts have one NIC here.
fn several_nics(goal: &Goal) -> Option<Warning> {
    let is_other = |operation: &Operation| operation.nic != 0 && !matches!(operation.kind, OperationKind::Compute(_));
    let others = goal.ranks.iter().flat_map(|(&number, rank)| {
        let operations = rank.operations.iter().enumerate().filter(|(_, operation)| is_other(operation));
        operations.map(move |(at, operation)| (rank.places.get(at), number, at, operation.nic))
    });
    let others: Vec<(Option<&SourcePosition>, u32, usize, u8)> = others.collect();
    let &(place, rank, at, nic) = others.iter().min()?;
    let where_ = if place.is_some() { String::new() } else { format!(" (operation {at} of rank {rank})") };
    let more = match others.len() - 1 {
        0 => String::new(),
        more => format!(", as {more} more messages do"),
    };
    let message = format!(
        "\"nic {nic}\"{where_} names another NIC than a rank's first{more}: a host has one NIC here, and all messages of \
         its rank go through that"
    );
    Some(Warning::new(place.map_or(1, |place| u64::from(place.line)), message))
}

/// Returns a peer or tag as it is written; `None` for the largest number, which stands for any.
fn given(number: u32) -> Option<u32> {
    (number != u32::MAX).then_some(number)
}

/// Returns a warning about ranks that the file counts and does not mention.
fn idle_ranks(goal: &Goal, line: u64) -> Option<Warning> {
    let idle = u64::from(goal.rank_count) - goal.ranks.len() as u64;
    (idle > 0).then(|| Warning::new(line, format!("{idle} of the {} ranks do nothing", goal.rank_count)))
}

/// Returns a warning about messages without a receive: to ranks with fewer receives than messages.
///
/// Messages that match a receive which names both their sender and their tag go to it; the others go to receives from
/// any rank or with any tag, if there are some. The run decides which of these receives gets which message.
fn unreceived(goal: &Goal) -> Option<Warning> {
    type Address = (u32, u32);
    // Indexed by receiver: the sends by sender and tag; and the receives that name both, with the number of other
    // receives.
    let mut sent: BTreeMap<u32, BTreeMap<Address, Vec<(u32, usize)>>> = BTreeMap::new();
    let mut received: BTreeMap<u32, (BTreeMap<Address, usize>, usize)> = BTreeMap::new();
    for (&number, rank) in &goal.ranks {
        for (place, operation) in rank.operations.iter().enumerate() {
            match operation.kind {
                OperationKind::Send { to, tag, .. } => {
                    sent.entry(to).or_default().entry((number, tag)).or_default().push((number, place));
                }
                OperationKind::Recv { from: Some(from), tag: Some(tag), .. } => {
                    *received.entry(number).or_default().0.entry((from, tag)).or_default() += 1;
                }
                OperationKind::Recv { .. } => received.entry(number).or_default().1 += 1,
                OperationKind::Compute(_) => {}
            }
        }
    }
    let nothing = (BTreeMap::new(), 0);
    let mut lost: Vec<(u32, usize)> = Vec::new();
    for (to, by_address) in sent {
        let (named, others) = received.get(&to).unwrap_or(&nothing);
        let beyond = by_address.into_iter().flat_map(|(address, messages)| {
            let own = named.get(&address).copied().unwrap_or(0);
            messages.into_iter().skip(own)
        });
        lost.extend(beyond.skip(*others));
    }
    let &(rank, place) = lost.iter().min()?;
    let (messages, are) =
        if lost.len() == 1 { ("1 message".to_owned(), "is") } else { (format!("{} messages", lost.len()), "are") };
    let line = goal.ranks[&rank].places.get(place).map(|place| place.line);
    let which = match (line, lost.len()) {
        (Some(_), 1) => String::new(),
        (Some(_), _) => ", this one first".to_owned(),
        (None, 1) => format!(": operation {place} of rank {rank}"),
        (None, _) => format!(", operation {place} of rank {rank} first"),
    };
    let message = format!("{messages} {are} sent that nobody receives{which}; each \"send\" wants a \"recv\"");
    Some(Warning::new(line.map_or(1, u64::from), message))
}

/// Returns operations of a rank each of which waits for the next, and the last for the first, so that none of them ever
/// begins.
fn cycle(rank: &Rank) -> Option<Vec<u32>> {
    let pairs = || rank.requires.iter().chain(&rank.start_requires);
    let mut waits = vec![0u32; rank.operations.len()];
    pairs().for_each(|&(after, _)| waits[after as usize] += 1);
    let mut followers: Vec<(u32, u32)> = pairs().map(|&(after, before)| (before, after)).collect();
    followers.sort_unstable();
    let mut free: Vec<u32> = (0..).zip(&waits).filter(|(_, waits)| **waits == 0).map(|(number, _)| number).collect();
    while let Some(number) = free.pop() {
        let first = followers.partition_point(|&(before, _)| before < number);
        for &(_, after) in followers[first..].iter().take_while(|(before, _)| *before == number) {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 {
                free.push(after);
            }
        }
    }
    // Each operation that still waits, waits for another that waits.
    let stuck = |number: u32| waits[number as usize] > 0;
    let cause: BTreeMap<u32, u32> = pairs().copied().filter(|&(_, before)| stuck(before)).collect();
    let mut way = vec![(0..rank.operations.len() as u32).find(|&number| stuck(number))?];
    loop {
        let next = *cause.get(way.last()?)?;
        if let Some(begin) = way.iter().position(|&number| number == next) {
            return Some(way.split_off(begin));
        }
        way.push(next);
    }
}

/// Returns the message about a cycle of operations with these names.
fn cycle_message(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = names.iter().skip(1).take(SHOWN).map(|name| format!("{name}, which waits for "));
    let skipped = names.len().saturating_sub(SHOWN + 1);
    let more = if skipped > 0 { format!("{skipped} others, which wait for ") } else { String::new() };
    format!(
        "found {} waiting for {}{more}{}: a cycle, of which none ever begins; expected operations to wait for \
         others only",
        names[0],
        shown.collect::<String>(),
        if names.len() == 1 { "itself" } else { &names[0] }
    )
}
