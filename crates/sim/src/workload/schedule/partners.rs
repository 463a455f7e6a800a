//! Matching of receives and sends.

use std::collections::BTreeMap;

use super::{ANY, Schedule, Step};

/// Sending rank and tag of a message; in a receive, either may be [`ANY`].
pub(super) type Address = (u32, u32);

/// Returns whether a receive of `wanted` takes a message from `sent`, or every message that a receive of `sent` takes.
pub(super) fn suits(wanted: Address, sent: Address) -> bool {
    (wanted.0 == ANY || wanted.0 == sent.0) && (wanted.1 == ANY || wanted.1 == sent.1)
}

/// Describes a waiting receive: "rank 1 waits for a message from rank 0 with tag 8 (its step 1)".
pub(super) fn waits(rank: u32, step: u32, (from, tag): Address) -> String {
    let from = if from == ANY { "any rank".to_owned() } else { format!("rank {from}") };
    let tag = if tag == ANY { "any tag".to_owned() } else { format!("tag {tag}") };
    format!("rank {rank} waits for a message from {from} with {tag} (its step {})", step + 1)
}

/// Receive that has no send in the whole schedule, whatever the order of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct UnmatchedReceive {
    pub(super) rank: u32,
    pub(super) step: u32,
    wanted: Address,
    /// Number of messages that suit the receive.
    sent: usize,
    /// Number of receives that want the messages that suit this one.
    received: usize,
    /// Message to the same rank that no receive takes: perhaps it was meant.
    unreceived: Option<(u32, u32)>,
}

impl UnmatchedReceive {
    pub(super) fn message(&self, schedule: &Schedule) -> String {
        let waits = waits(self.rank, self.step, self.wanted);
        let lack = match self.sent {
            0 => ", and nobody sends one".to_owned(),
            sent => {
                format!(", and of {} such \"recv\" it is one too many: there {} \"send\"", self.received, count(sent))
            }
        };
        let meant = self.unreceived.map_or(String::new(), |(from, step)| match schedule.step(from, step) {
            Step::Send { tag, .. } => {
                format!("; nobody receives what {} sends it with tag {tag}", schedule.step_name(from, step))
            }
            Step::Recv { .. } | Step::Compute { .. } => String::new(),
        });
        format!("{waits}{lack}{meant}: each \"recv\" needs a \"send\" of its own")
    }
}

fn count(sent: usize) -> String {
    if sent == 1 { "is 1".to_owned() } else { format!("are {sent}") }
}

/// Messages to a rank, and its receives, by address in the order of the schedule.
#[derive(Default)]
struct Traffic {
    sends: BTreeMap<Address, Vec<(u32, u32)>>,
    receives: BTreeMap<Address, Vec<u32>>,
}

/// Returns the first receive without a partner: one for which no message is sent at all before one of too many.
///
/// Receives are counted against messages, by rank and tag. Where receives from any rank and receives with any tag want
/// the same messages, more receives may lack one than are found; those that are found do lack one.
pub(super) fn unmatched(schedule: &Schedule) -> Option<UnmatchedReceive> {
    let mut ranks: BTreeMap<u32, Traffic> = BTreeMap::new();
    for (number, rank) in (0..).zip(schedule.ranks()) {
        for (place, step) in (0..).zip(&rank.steps) {
            match *step {
                Step::Send { to, tag, .. } => {
                    ranks.entry(to).or_default().sends.entry((number, tag)).or_default().push((number, place));
                }
                Step::Recv { from, tag } => {
                    ranks.entry(number).or_default().receives.entry((from, tag)).or_default().push(place);
                }
                Step::Compute { .. } => {}
            }
        }
    }
    let all = ranks.iter().flat_map(|(&rank, traffic)| traffic.unmatched(rank));
    let first = all.min_by_key(|one| {
        let is_general = one.wanted.0 == ANY || one.wanted.1 == ANY;
        (one.sent > 0, is_general, schedule.place(one.rank, one.step), one.rank, one.step)
    })?;
    Some(UnmatchedReceive { unreceived: ranks[&first.rank].unreceived(first.wanted), ..first })
}

impl Traffic {
    fn unmatched(&self, rank: u32) -> impl Iterator<Item = UnmatchedReceive> + '_ {
        self.receives.iter().filter_map(move |(&wanted, steps)| {
            let (sent, received) = if wanted.0 == ANY || wanted.1 == ANY {
                // Receives that take fewer messages than this one are matched first.
                (suiting(&self.sends, wanted), suiting(&self.receives, wanted))
            } else {
                (self.sends.get(&wanted).map_or(0, Vec::len), steps.len())
            };
            let beyond = received.checked_sub(sent).filter(|&beyond| beyond > 0)?;
            let step = steps[steps.len().saturating_sub(beyond)];
            Some(UnmatchedReceive { rank, step, wanted, sent, received, unreceived: None })
        })
    }

    /// Returns a message that no receive of this rank takes; from the rank or with the tag that is wanted.
    fn unreceived(&self, wanted: Address) -> Option<(u32, u32)> {
        let is_received = |&(from, tag): &Address| {
            [(from, tag), (ANY, tag), (from, ANY), (ANY, ANY)].iter().any(|receive| self.receives.contains_key(receive))
        };
        let others = self.sends.iter().filter(|(sent, _)| !is_received(sent));
        let alike = others.filter(|(sent, _)| wanted.0 == ANY || sent.0 == wanted.0 || sent.1 == wanted.1);
        let (_, sends) = alike.min_by_key(|(sent, _)| sent.0 != wanted.0)?;
        sends.first().copied()
    }
}

/// Returns the number of entries whose address suits.
fn suiting<T>(by_address: &BTreeMap<Address, Vec<T>>, wanted: Address) -> usize {
    by_address.iter().filter(|&(&address, _)| suits(wanted, address)).map(|(_, those)| those.len()).sum()
}
