//! Tests of the driver's fence (IRN, section 5.3.4): requests that could overwrite each other's memory.

use alloc::vec;
use alloc::vec::Vec;

use super::world::{BASE, Wire, World, irn, request, statuses, write_to};
use crate::verbs::*;

const FENCED: QpOptions = QpOptions { credits: false, fence_overlaps: true };
const LENGTH: u32 = 2_000;
/// Offset to which all Writes write.
const THERE: u64 = 1 << 19;

fn world(options: QpOptions, wire: Wire, seed: u64) -> World {
    let mut world = World::connected([irn(); 2], wire, seed);
    world.choose([options; 2], |step| step.timeout = step.timeout.map(|_| 12));
    world.agree();
    world
}
/// Returns the offset of the `id`-th Write's data.
fn from(id: u64) -> usize {
    id as usize * 4_096
}

/// Posts ten Writes to the same memory; returns whether the last one's data remains.
fn keeps_the_last(options: QpOptions, seed: u64) -> bool {
    let mut world = world(options, Wire { loss: 50, jitter_us: 30, ..Wire::default() }, seed);
    let key = world.hosts[1].key;
    for id in 0..10 {
        let data = vec![world.hosts[0].sge(from(id) as u64, LENGTH)];
        world.post(0, request(id, write_to(BASE + THERE + id % 3 * 100, key), data));
    }
    world.run(1_000_000);
    assert_eq!(statuses(&mut world, 0).len(), 10);
    let (here, there) = (&world.hosts[0].memory, &world.hosts[1].memory);
    here[from(9)..][..LENGTH as usize] == there[THERE as usize..][..LENGTH as usize]
}

#[test]
fn with_the_fence_what_was_written_last_remains() {
    assert!((0..30).all(|seed| keeps_the_last(FENCED, seed)));
    assert!((0..30).any(|seed| !keeps_the_last(QpOptions::default(), seed)), "without, it is chance");
}

/// Returns how many of two requests have left together.
fn together(first: Operation, second: Operation, offsets: [u64; 2]) -> usize {
    let mut world = world(FENCED, Wire::default(), 1);
    for (id, operation) in [(0, first), (1, second)] {
        let length = if matches!(operation, Operation::FetchAdd { .. }) { 8 } else { 64 };
        let data = vec![world.hosts[0].sge(offsets[id as usize], length)];
        world.post(0, request(id, operation, data));
    }
    world.run(5);
    let left = world.log.len();
    world.run(10_000);
    let expected: Vec<_> = (0..2).map(|id| (id, Status::Success)).collect();
    assert_eq!(statuses(&mut world, 0), expected);
    left
}

#[test]
fn only_what_could_overwrite_something_waits() {
    let key = World::connected([irn(); 2], Wire::default(), 1).hosts[1].key;
    let at = |address| Remote { address: BASE + address, key };
    let write = |address| Operation::Write { remote: at(address), immediate: None };
    let (read, add) =
        (|address| Operation::Read(at(address)), |address| Operation::FetchAdd { remote: at(address), add: 1 });
    // Overlaps at the other side.
    assert_eq!(together(write(0), write(64), [0, 64]), 2, "they meet and do not overlap");
    assert_eq!(together(write(0), write(63), [0, 64]), 1);
    assert_eq!(together(read(0), write(32), [0, 64]), 1);
    assert_eq!(together(write(0), read(32), [0, 64]), 2, "a Read waits at the other side anyway");
    assert_eq!(together(write(0), add(56), [0, 64]), 1);
    // Overlaps at this side.
    assert_eq!(together(read(0), read(64), [0, 63]), 1);
    assert_eq!(together(write(0), read(64), [0, 63]), 1, "what is sent again is read again");
    assert_eq!(together(read(0), write(64), [0, 0]), 2, "a Write reads what is here");
}
