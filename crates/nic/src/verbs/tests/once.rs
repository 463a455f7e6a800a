//! Tests of atomic writes and flushes: executed once, in order, if permitted.

use alloc::vec;
use alloc::vec::Vec;

use super::failures::refused;
use super::world::{ALL, BASE, SIZE, World, each, request, statuses, write_to};
use crate::verbs::*;

fn there(world: &World, address: u64) -> Remote {
    Remote { address, key: world.hosts[1].key }
}
fn global(remote: Remote, length: u32) -> Operation {
    Operation::Flush(Flush { remote, length, global: true, ..Flush::default() })
}
const ACCESS: fn(&World) -> Event = |world| Event::QpAccess(world.hosts[1].qp);
const REQUEST: fn(&World) -> Event = |world| Event::QpRequest(world.hosts[1].qp);

#[test]
fn a_word_is_replaced_behind_a_write_and_flushed() {
    each(|mut world| {
        let (word, key) = (BASE + 4_096, world.hosts[1].key);
        let piece = |world: &World, offset, length| vec![world.hosts[0].sge(offset, length)];
        let (data, all) = (piece(&world, 8, 8), piece(&world, 5_000, 3_000));
        world.post(0, request(1, write_to(BASE + 8_192, key), all));
        world.post(0, request(2, Operation::AtomicWrite(Remote { address: word, key }), data));
        world.post(0, request(3, global(Remote { address: BASE + 8_192, key }, 3_000), Vec::new()));
        // For a whole region, only the key matters.
        let whole =
            Flush { whole_region: true, persistent: true, remote: Remote { address: 5, key }, ..Flush::default() };
        world.post(0, request(4, Operation::Flush(whole), Vec::new()));
        let inline = Data::Inline(7_u64.to_ne_bytes().to_vec());
        let second = Operation::AtomicWrite(Remote { address: word + 8, key });
        world.post(0, SendRequest { data: inline, ..request(5, second, Vec::new()) });
        world.run(10_000);
        let done: Vec<_> = world.hosts[0].poll().iter().map(|done| (done.id, done.status, done.kind)).collect();
        let well = |id, kind| (id, Status::Success, kind);
        use CompletionKind as Kind;
        let kinds = [Kind::Write, Kind::AtomicWrite, Kind::Flush, Kind::Flush, Kind::AtomicWrite];
        let expected: Vec<_> = (1..).zip(kinds).map(|(id, kind)| well(id, kind)).collect();
        assert_eq!(done, expected);
        let (here, there) = (&world.hosts[0].memory, &world.hosts[1].memory);
        assert_eq!(there[4_096..4_104], here[8..16]);
        assert_eq!(there[4_104..4_112], 7_u64.to_ne_bytes());
        assert_eq!(there[8_192..11_192], here[5_000..8_000]);
    });
}

#[test]
fn what_is_no_word_is_not_sent() {
    each(|mut world| {
        let (data, to) = (vec![world.hosts[0].sge(0, 9)], there(&world, BASE));
        world.post(0, request(1, Operation::AtomicWrite(to), data));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::LocalLength)]);
    });
}

#[test]
fn atomic_writes_that_are_not_allowed_touch_nothing() {
    let end = BASE + SIZE as u64;
    let write = |address| move |world: &World| Operation::AtomicWrite(there(world, address));
    refused(write(BASE + 4), 8, Status::RemoteInvalidRequest, REQUEST);
    refused(write(end), 8, Status::RemoteAccess, ACCESS);
    refused(|_| Operation::AtomicWrite(Remote { address: BASE, key: 0 }), 8, Status::RemoteAccess, ACCESS);
}

#[test]
fn flushes_of_what_is_not_there_are_refused() {
    let end = BASE + SIZE as u64;
    refused(move |world| global(there(world, end - 7), 8), 0, Status::RemoteAccess, ACCESS);
    refused(|_| global(Remote { address: BASE, key: 0 }, 8), 0, Status::RemoteAccess, ACCESS);
}

#[test]
fn flushes_need_the_regions_right_to_each_placement() {
    each(|mut world| {
        let pd = world.hosts[1].pd;
        let access = Access { flush_persistent: false, ..ALL };
        let region = Region { pd, address: BASE, start: BASE, length: 4_096, access };
        let key = world.hosts[1].rnic.reg_mr(region, 0x77).expect("a valid region");
        let remote = Remote { address: BASE, key };
        world.post(0, request(1, global(remote, 4_096), Vec::new()));
        world.run(1_000);
        let persistent = Flush { remote, length: 8, global: true, persistent: true, whole_region: false };
        world.post(0, request(2, Operation::Flush(persistent), Vec::new()));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::Success), (2, Status::RemoteAccess)]);
    });
}
