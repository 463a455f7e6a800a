//! The reader of GOAL schedules: no panics, no ranks or operations that are not there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use selvedge_formats::goal::{self, OperationKind};

fuzz_target!(|bytes: &[u8]| {
    let Ok(parsed) = goal::read(bytes, "fuzz") else { return };
    let goal = parsed.value;
    for (&number, rank) in &goal.ranks {
        assert!(number < goal.rank_count);
        for operation in &rank.operations {
            match operation.kind {
                OperationKind::Send { to, .. } => assert!(to < goal.rank_count),
                OperationKind::Recv { from, .. } => assert!(from.is_none_or(|from| from < goal.rank_count)),
                OperationKind::Compute(_) => {}
            }
        }
        let count = rank.operations.len() as u32;
        for &(after, before) in rank.requires.iter().chain(&rank.start_requires) {
            assert!(after < count && before < count);
        }
    }
});
