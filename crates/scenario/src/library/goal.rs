//! GOAL files as schedules.

use selvedge_formats::goal::{Goal, Operation, OperationKind};
use selvedge_sim::workload::schedule::{ANY, Rank, Schedule, Step};

/// Returns the operations of a file's ranks as a schedule.
pub(super) fn schedule(goal: &Goal) -> Schedule {
    let mut ranks = vec![Rank::default(); goal.rank_count as usize];
    for (&number, written) in &goal.ranks {
        let rank = &mut ranks[number as usize];
        for operation in &written.operations {
            rank.step(step(operation), &[]);
        }
        rank.stands_in(written.places.iter().map(|place| (place.line, place.column)).collect());
        written.requires.iter().for_each(|&(after, before)| rank.require(after, before));
        written.start_requires.iter().for_each(|&(after, before)| rank.require_start(after, before));
    }
    Schedule::new(ranks)
}

fn step(&Operation { kind, cpu, .. }: &Operation) -> Step {
    match kind {
        OperationKind::Send { to, size, tag } => Step::Send { to, size, tag },
        OperationKind::Recv { from, tag, .. } => Step::Recv { from: from.unwrap_or(ANY), tag: tag.unwrap_or(ANY) },
        OperationKind::Compute(time) => Step::Compute { time, cpu },
    }
}
