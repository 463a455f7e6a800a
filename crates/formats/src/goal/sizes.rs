//! Warnings about receives whose size differs from that of their messages.
//!
//! LogGOPSim chooses messages by their source and tag alone (`match` in LogGOPSim.cpp), and takes their size from the
//! "send": a receive of another size is no error there, and none here. More often than not, it is a mistake in the
//! schedule.

use std::collections::BTreeMap;

use selvedge_units::Bytes;

use super::{Goal, OperationKind, SourcePosition};
use crate::Warning;

/// Receiver, sender and tag of a message.
type Address = (u32, u32, u32);

/// Sender and tag of a receive that leaves one of them open.
type Wanted = (Option<u32>, Option<u32>);

/// End of a message.
#[derive(Clone, Copy)]
struct End {
    size: Bytes,
    rank: u32,
    number: usize,
    place: Option<SourcePosition>,
}

/// Returns a warning about receives whose size differs from all messages that they could get.
///
/// Sends and receives of one address may be matched in another order than the file's, so only their sizes as a whole
/// are compared. There is no warning where receives from any rank or with any tag could take some of the messages.
pub(super) fn unequal(goal: &Goal) -> Option<Warning> {
    let mut sent: BTreeMap<Address, Vec<End>> = BTreeMap::new();
    let mut received: BTreeMap<Address, Vec<End>> = BTreeMap::new();
    let mut general: BTreeMap<u32, Vec<Wanted>> = BTreeMap::new();
    for (&rank, written) in &goal.ranks {
        for (number, operation) in written.operations.iter().enumerate() {
            let end = |size| End { size, rank, number, place: written.places.get(number).copied() };
            match operation.kind {
                OperationKind::Send { to, size, tag } => sent.entry((to, rank, tag)).or_default().push(end(size)),
                OperationKind::Recv { from: Some(from), tag: Some(tag), size } => {
                    received.entry((rank, from, tag)).or_default().push(end(size));
                }
                OperationKind::Recv { from, tag, .. } => general.entry(rank).or_default().push((from, tag)),
                OperationKind::Compute(_) => {}
            }
        }
    }
    general.values_mut().for_each(|list| {
        list.sort_unstable();
        list.dedup();
    });
    let is_contested = |(rank, source, mark): Address| {
        let takes = |&(from, tag): &Wanted| from.is_none_or(|from| from == source) && tag.is_none_or(|tag| tag == mark);
        general.get(&rank).is_some_and(|list| list.iter().any(takes))
    };
    let mut count = 0;
    let mut first: Option<(End, End)> = None;
    for (address, receives) in received {
        let Some(sends) = sent.get_mut(&address).filter(|_| !is_contested(address)) else { continue };
        for (receive, send) in differing(receives, sends) {
            count += 1;
            let order = |end: &End| (end.place, end.rank, end.number);
            if first.is_none_or(|(before, _)| order(&receive) < order(&before)) {
                first = Some((receive, send));
            }
        }
    }
    let (receive, send) = first?;
    let others = match count {
        1 => String::new(),
        count => format!(" ({} more like this)", count - 1),
    };
    let line = receive.place.map_or(1, |place| u64::from(place.line));
    let message = format!(
        "{} expects {} bytes, but the \"send\" for it ({}) has {}{others}; the size of the \"send\" counts",
        if receive.place.is_some() { "this \"recv\"".to_owned() } else { receive.name() },
        receive.size.get(),
        send.name(),
        send.size.get(),
    );
    Some(Warning::new(line, message))
}

/// Returns the receives and sends of one address that remain after those of equal sizes are paired, in pairs.
fn differing(mut receives: Vec<End>, sends: &mut Vec<End>) -> Vec<(End, End)> {
    // In the file's order, each receive with a send of equal size if there is one.
    let mut sizes: BTreeMap<Bytes, usize> = BTreeMap::new();
    sends.iter().for_each(|send| *sizes.entry(send.size).or_default() += 1);
    let mut common: BTreeMap<Bytes, usize> = BTreeMap::new();
    receives.retain(|receive| match sizes.get_mut(&receive.size).filter(|left| **left > 0) {
        Some(left) => {
            *left -= 1;
            *common.entry(receive.size).or_default() += 1;
            false
        }
        None => true,
    });
    sends.retain(|send| match common.get_mut(&send.size).filter(|left| **left > 0) {
        Some(left) => {
            *left -= 1;
            false
        }
        None => true,
    });
    receives.into_iter().zip(sends.iter().copied()).collect()
}

impl End {
    /// Returns the operation's line, or its number and rank in a binary file.
    fn name(&self) -> String {
        match self.place {
            Some(place) => format!("line {}", place.line),
            None => format!("operation {} of rank {}", self.number, self.rank),
        }
    }
}
