//! Tests of placement in order, out of a reorder buffer (MELO, section 3.2.2).

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::RecoveryConfig;
use selvedge_units::QpNumber;

use super::world::{BASE, MTU, Wire, World, irn, melo, request, statuses, write_to};
use crate::verbs::*;

/// Number of messages of a test, and the space for each in memory.
const MESSAGES: u64 = 40;
const SPACE: u64 = 2_048;
/// Bytes of a message: more than two packets.
const LENGTH: u32 = 2 * MTU as u32 + 100;

/// Number of the first data packet whose destination [`lose_one`] changes.
const LOST: u64 = 20;

/// Returns two hosts whose connection uses `recovery`, with host 0's data from [`SPACE`] on filled by a pattern without
/// zero bytes, and host 1's memory zero.
fn fresh(recovery: RecoveryConfig, wire: Wire, seed: u64) -> World {
    let mut world = World::limited([recovery; 2], wire, seed, 32, 16);
    world.agree();
    for (at, byte) in world.hosts[0].memory.iter_mut().enumerate() {
        *byte = (at * 7 + at / 256) as u8 | 1;
    }
    world.hosts[1].memory.fill(0);
    world
}

/// Returns how many of the bytes that messages bring to host `at` are in their places, and whether one is there though
/// an earlier one is not.
fn arrived(world: &World, at: usize) -> (usize, bool) {
    let place = |n: u64| (n * SPACE) as usize..(n * SPACE) as usize + LENGTH as usize;
    let bytes: Vec<bool> =
        (0..MESSAGES).flat_map(|n| world.hosts[at].memory[place(n)].iter()).map(|&byte| byte != 0).collect();
    let first = bytes.iter().position(|&is_there| !is_there).unwrap_or(bytes.len());
    (bytes.iter().filter(|&&is_there| is_there).count(), bytes[first..].contains(&true))
}

/// Runs messages from host 0 to host 1, and returns whether the memory of host `reader` ever had a byte of a packet
/// before all bytes of earlier packets.
fn runs_ahead(recovery: RecoveryConfig, seed: u64, kind: fn(u64, u64, u32) -> Operation) -> bool {
    let wire = Wire { loss: 30, jitter_us: 15, duplicates: 10, ..Wire::default() };
    let mut world = fresh(recovery, wire, seed);
    let is_read = matches!(kind(0, 0, 0), Operation::Read(_));
    let (asks, reader) = if is_read { (1, 1) } else { (0, 1) };
    let key = world.hosts[1 - asks].key;
    for n in 0..MESSAGES {
        world.receive(1 - asks, 1_000 + n, n * SPACE, LENGTH);
        let data = vec![world.hosts[asks].sge(n * SPACE, LENGTH)];
        world.post(asks, request(n, kind(n, BASE + n * SPACE, key), data));
    }
    let mut is_ahead = false;
    for _ in 0..20_000 {
        world.run(2);
        let (bytes, ahead) = arrived(&world, reader);
        is_ahead |= ahead;
        if bytes == MESSAGES as usize * LENGTH as usize {
            break;
        }
    }
    world.run(100_000);
    let place = |n: u64| (n * SPACE) as usize..(n * SPACE) as usize + LENGTH as usize;
    for n in 0..MESSAGES {
        let memory = [0, 1].map(|at| &world.hosts[at].memory[place(n)]);
        assert_eq!(memory[0], memory[1], "message {n}, seed {seed}");
    }
    let done = statuses(&mut world, asks);
    assert!(done.iter().filter(|done| done.1 == Status::Success).count() >= MESSAGES as usize, "{done:?}");
    let Stats { goodput, reordered, .. } = world.hosts[reader].rnic.stats();
    assert_eq!(goodput, MESSAGES * u64::from(LENGTH));
    assert_eq!(reordered > 0, recovery == melo(), "copied: {reordered} of {goodput}, seed {seed}");
    assert!(reordered < goodput, "the front of a run is not copied");
    is_ahead
}

#[test]
fn payload_is_placed_in_order_where_there_is_a_reorder_buffer() {
    let kinds: [fn(u64, u64, u32) -> Operation; 4] = [
        |_, address, key| write_to(address, key),
        |n, address, key| Operation::Write { remote: Remote { address, key }, immediate: Some([n as u8; 4]) },
        |_, _, _| Operation::Send(Attached::Nothing),
        |_, address, key| Operation::Read(Remote { address, key }),
    ];
    for (nth, kind) in kinds.into_iter().enumerate() {
        for seed in 0..5 {
            assert!(!runs_ahead(melo(), seed, kind), "kind {nth}, seed {seed}: in order");
            assert!(runs_ahead(irn(), seed, kind), "kind {nth}, seed {seed}: IRN places at once");
        }
    }
}

/// Loses packet number [`LOST`] of all that are sent, if it is from host 0.
fn lose_one(world: &mut World) {
    world.tamper = |at, number, headers| {
        if at == 0 && number == LOST {
            headers.bth.destination = QpNumber(0x3_ffff);
        }
    };
    // Packets before the lost one, all of them from host 0.
    let key = world.hosts[1].key;
    let data = vec![world.hosts[0].sge(500_000, LOST as u32 * u32::from(MTU))];
    world.post(0, request(99, write_to(BASE + 500_000, key), data));
}

#[test]
fn writes_and_atomics_take_effect_in_the_order_in_which_they_were_sent() {
    let word = BASE + 8_192;
    let outcome = |recovery| {
        let mut world = fresh(recovery, Wire::default(), 1);
        world.hosts[0].memory[..16].copy_from_slice(&[5_u64.to_ne_bytes(), 100_u64.to_ne_bytes()].concat());
        lose_one(&mut world);
        let remote = Remote { address: word, key: world.hosts[1].key };
        let [five, hundred, found] = [0, 8, 16].map(|offset| vec![world.hosts[0].sge(offset, 8)]);
        world.post(0, request(1, write_to(word, remote.key), five));
        world.post(0, request(2, Operation::FetchAdd { remote, add: 1 }, found));
        world.post(0, request(3, write_to(word, remote.key), hundred));
        world.run(100_000);
        let ids: Vec<u64> = statuses(&mut world, 0).iter().map(|done| done.0).collect();
        assert_eq!(ids, [99, 1, 2, 3]);
        let read = |at: usize, offset: usize| {
            u64::from_ne_bytes(world.hosts[at].memory[offset..][..8].try_into().expect("8 bytes"))
        };
        (read(0, 16), read(1, 8_192), world.hosts[1].rnic.stats().reordered)
    };
    assert_eq!(outcome(melo()), (5, 100, 8), "the last Write waited, and the addition saw the first one alone");
    assert_eq!(outcome(irn()), (5, 6, 0), "IRN: the last Write came first");
}

#[test]
fn what_waits_is_not_placed_in_memory_that_was_deregistered_meanwhile() {
    let mut world = fresh(melo(), Wire::default(), 1);
    lose_one(&mut world);
    let host = &mut world.hosts[1];
    let region = Region { pd: host.pd, address: BASE, start: BASE, length: 4_096, access: super::world::ALL };
    let (gone, stays) = (host.rnic.reg_mr(region, 0x77).expect("a valid region"), host.key);
    let data = [0, 256, 512].map(|offset| vec![world.hosts[0].sge(offset, 256)]);
    let [first, second, third] = data;
    world.post(0, request(1, write_to(BASE + 8_192, stays), first));
    world.post(0, request(2, write_to(BASE, gone), second));
    world.post(0, request(3, write_to(BASE + 8_192 + 256, stays), third));
    // The second and the third have arrived after one way of 10 us, and the retransmission after three.
    world.run(25);
    assert!(world.hosts[1].memory[8_192..8_192 + 512].iter().all(|&byte| byte == 0), "both wait");
    world.hosts[1].rnic.dereg_mr(gone).expect("no window is bound to it");
    world.run(100_000);
    let done = statuses(&mut world, 0);
    assert_eq!(done[..2], [(99, Status::Success), (1, Status::Success)]);
    assert_eq!(done[2..], [(2, Status::RemoteAccess), (3, Status::Flushed)]);
    let memory = &world.hosts[1].memory;
    assert_eq!(memory[8_192..8_192 + 256], world.hosts[0].memory[..256], "the packet that was lost at first");
    assert!(memory[..256].iter().chain(&memory[8_192 + 256..8_192 + 512]).all(|&byte| byte == 0));
    assert_eq!(world.hosts[1].rnic.stats().reordered, 0, "nothing was copied");
}
