//! Tests of rejected requests: earlier requests are executed nevertheless, and complete with success.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::RecoveryConfig;
use selvedge_transport::recovery::irn::{IrnConfig, Timeouts};

use super::world::{BASE, Wire, World, go_back_n, irn, melo, request, statuses, write_to};
use crate::verbs::*;

/// Posts requests of each kind, with a Write with an invalid key behind them; returns the statuses in order.
fn refused_at_the_end(recovery: RecoveryConfig, wire: Wire, seed: u64) -> (World, Vec<(u64, Status)>) {
    let mut world = World::connected([recovery; 2], wire, seed);
    let key = world.hosts[1].key;
    // Both sides learn the kind of the other.
    let first = vec![world.hosts[0].sge(0, 8)];
    world.post(0, request(0, write_to(BASE + 500_000, key), first));
    world.run(100_000);
    world.receive(1, 50, 200_000, 3_000);
    let here = |world: &World, offset, length| vec![world.hosts[0].sge(offset, length)];
    let remote = |offset| Remote { address: BASE + offset, key };
    let (sent, written) = (here(&world, 0, 3_000), here(&world, 3_000, 2_000));
    let (read, word, any) = (here(&world, 300_000, 9_000), here(&world, 400_000, 8), here(&world, 0, 8));
    world.post(0, request(1, Operation::Send(Attached::Nothing), sent));
    world.post(0, request(2, write_to(BASE + 210_000, key), written));
    world.post(0, request(3, Operation::Read(remote(0)), read));
    world.post(0, request(4, Operation::FetchAdd { remote: remote(220_000), add: 1 }, word));
    world.post(0, request(5, write_to(BASE, key ^ 1), any.clone()));
    world.post(0, request(6, write_to(BASE + 600_000, key), any));
    world.run(10_000_000);
    let statuses = world.hosts[0].poll().iter().map(|done| (done.id, done.status)).collect();
    (world, statuses)
}

/// Checks that requests reported as successful were executed.
fn check(world: &World, statuses: &[(u64, Status)], what: &str) {
    let (here, there) = (&world.hosts[0].memory, &world.hosts[1].memory);
    let done = |id| statuses.contains(&(id, Status::Success));
    assert!(!done(1) || there[200_000..203_000] == here[..3_000], "{what}: the Send");
    assert!(!done(2) || there[210_000..212_000] == here[3_000..5_000], "{what}: the Write");
    assert!(!done(3) || here[300_000..309_000] == there[..9_000], "{what}: the Read");
    assert!(!done(5) && !done(6), "{what}");
    let ids: Vec<_> = statuses.iter().map(|&(id, _)| id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5, 6], "{what}: in order");
    let errors = statuses.iter().filter(|(_, status)| !matches!(status, Status::Success | Status::Flushed)).count();
    assert_eq!(errors, 1, "{what}: {statuses:?}");
}

#[test]
fn what_came_before_a_refused_request_succeeds() {
    for recovery in [irn(), melo(), go_back_n()] {
        for seed in 0..50 {
            let wire = Wire { jitter_us: [0, 0, 30, 200][seed as usize % 4], ..Wire::default() };
            // A standard responder cannot distinguish late packets from packets that are not next.
            let wire = if recovery == go_back_n() { Wire::default() } else { wire };
            let (world, statuses) = refused_at_the_end(recovery, wire, seed);
            let what = alloc::format!("{recovery:?}, seed {seed}");
            check(&world, &statuses, &what);
            assert_eq!(statuses[5], (5, Status::RemoteAccess), "{what}: {statuses:?}");
        }
    }
}

/// The rejected request arrives before its turn, and is the last: nothing else would cause its retransmission.
#[test]
fn who_is_refused_out_of_order_hears_why_without_timeouts() {
    let RecoveryConfig::Irn(timed) = irn() else { unreachable!("it is IRN") };
    let untimed = RecoveryConfig::Irn(IrnConfig { timeouts: Timeouts::Off, ..timed });
    for seed in 0..60 {
        let wire = Wire { jitter_us: [20, 60, 200][seed as usize % 3], ..Wire::default() };
        let mut world = World::connected([untimed; 2], Wire::default(), seed);
        let key = world.hosts[1].key;
        let some = |world: &World, length| vec![world.hosts[0].sge(0, length)];
        let first = some(&world, 8);
        world.post(0, request(0, write_to(BASE, key), first));
        world.run(100_000);
        world.wire = wire;
        world.receive(1, 50, 200_000, 1_000);
        let (written, read, word) = (some(&world, 3_000), some(&world, 2_000), some(&world, 8));
        let (last, status, received) = match seed % 4 {
            0 => (write_to(BASE, key ^ 1), Status::RemoteAccess, None),
            1 => (Operation::Read(Remote { address: BASE, key: 0 }), Status::RemoteAccess, None),
            2 => (
                Operation::FetchAdd { remote: Remote { address: BASE + 4, key }, add: 1 },
                Status::RemoteInvalidRequest,
                None,
            ),
            _ => (Operation::Send(Attached::Nothing), Status::RemoteInvalidRequest, Some(Status::LocalLength)),
        };
        let data = if received.is_some() { some(&world, 1_001) } else { word };
        world.post(0, request(1, write_to(BASE + 300_000, key), written));
        world.post(0, request(2, Operation::Read(Remote { address: BASE, key }), read));
        world.post(0, request(3, last, data));
        world.run(3_000);
        let found = statuses(&mut world, 0);
        let expected = [(0, Status::Success), (1, Status::Success), (2, Status::Success), (3, status)];
        assert_eq!(found, expected, "seed {seed}");
        assert_eq!(statuses(&mut world, 1), [(50, received.unwrap_or(Status::Flushed))], "seed {seed}");
    }
}

#[test]
fn nothing_that_was_lost_is_said_to_be_done_when_a_later_request_is_refused() {
    for recovery in [irn(), melo(), go_back_n()] {
        for seed in 0..150 {
            let wire = Wire { loss: 100, jitter_us: seed % 3 * 40, batch_us: seed % 2 * 50, ..Wire::default() };
            let (world, statuses) = refused_at_the_end(recovery, wire, seed);
            check(&world, &statuses, &alloc::format!("{recovery:?}, seed {seed}"));
        }
    }
}
