//! Tests of end-to-end credits (InfiniBand architecture, volume 1, section 9.7.7.2; IRN, section 5.4).

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::RecoveryConfig;
use selvedge_units::{Domain, Rng};
use selvedge_wire::Syndrome;
use selvedge_wire::verbs::Headers;

use super::world::{BASE, MTU, Wire, World, go_back_n, irn, melo, request, statuses};
use crate::verbs::*;

const ON: QpOptions = QpOptions { credits: true, fence_overlaps: false };
const OFF: QpOptions = QpOptions { credits: false, fence_overlaps: false };
/// Offset of the receive buffers.
const THERE: u64 = 1 << 19;
/// Size of a receive buffer in bytes.
const SLOT: u64 = 4_096;

/// Creates two hosts with these options, which know each other as Selvedge NICs. Their timeouts are long: without other
/// causes they ask for new credits every 8 ms.
fn world(recovery: RecoveryConfig, options: [QpOptions; 2], wire: Wire, seed: u64) -> World {
    let mut world = World::connected([recovery; 2], wire, seed);
    world.choose(options, |step| step.timeout = step.timeout.map(|_| 14));
    world.agree();
    world
}
fn send(world: &mut World, id: u64, length: u32) {
    let data = vec![world.hosts[0].sge(id * SLOT, length)];
    world.post(0, request(id, Operation::Send(Attached::Nothing), data));
}
fn receive(world: &mut World, id: u64) {
    world.receive(1, id, THERE + id * SLOT, SLOT as u32);
}
fn is_not_ready(headers: &Headers) -> bool {
    headers.aeth.is_some_and(|aeth| matches!(aeth.syndrome, Syndrome::NotReady(_)))
}
fn refusals(world: &World) -> usize {
    world.log.iter().filter(|(_, headers)| is_not_ready(headers)).count()
}
fn from_first(world: &World) -> Vec<Headers> {
    world.log.iter().filter(|(at, _)| *at == 0).map(|(_, headers)| *headers).collect()
}
fn all_well(world: &mut World, count: u64, what: &str) {
    let expected: Vec<_> = (0..count).map(|id| (id, Status::Success)).collect();
    for at in 0..2 {
        assert_eq!(statuses(world, at), expected, "{what}, host {at}");
    }
    for id in 0..count {
        let (from, to) = ((id * SLOT) as usize, (THERE + id * SLOT) as usize);
        let length = 1 + (id * 397) as usize % SLOT as usize;
        assert_eq!(world.hosts[0].memory[from..][..length], world.hosts[1].memory[to..][..length], "{what}, {id}");
    }
}

/// Posts twenty Sends at once, with one receive request ready and two more posted after each pause. Returns the number
/// of RNR NAKs.
fn more_sends_than_receives(recovery: RecoveryConfig, options: [QpOptions; 2], wire: Wire, seed: u64) -> usize {
    let mut world = world(recovery, options, wire, seed);
    receive(&mut world, 0);
    for id in 0..20 {
        send(&mut world, id, 1 + (id * 397) as u32 % SLOT as u32);
    }
    for id in 1..20 {
        if id % 2 == 1 {
            world.run(300);
        }
        receive(&mut world, id);
    }
    world.run(2_000_000);
    all_well(&mut world, 20, &alloc::format!("{recovery:?}, seed {seed}"));
    refusals(&world)
}

#[test]
fn with_credits_no_receiver_is_found_not_ready() {
    for recovery in [go_back_n(), irn(), melo()] {
        assert_eq!(more_sends_than_receives(recovery, [ON, ON], Wire::default(), 1), 0, "{recovery:?}");
        for options in [[OFF, OFF], [ON, OFF], [OFF, ON]] {
            let refusals = more_sends_than_receives(recovery, options, Wire::default(), 1);
            assert!(refusals > 0, "{recovery:?}, {options:?}: both sides are needed");
        }
    }
}

#[test]
fn credits_hold_where_packets_arrive_in_any_order() {
    for seed in 0..20 {
        let wire = Wire { jitter_us: 100, duplicates: 30, ..Wire::default() };
        for recovery in [irn(), melo()] {
            assert_eq!(more_sends_than_receives(recovery, [ON, ON], wire, seed), 0, "{recovery:?}, seed {seed}");
        }
    }
}

#[test]
fn credits_that_are_lost_stop_nobody() {
    for seed in 0..20 {
        let wire = Wire { loss: 50, jitter_us: 30, duplicates: 30, ..Wire::default() };
        for recovery in [go_back_n(), irn(), melo()] {
            more_sends_than_receives(recovery, [ON, ON], wire, seed);
        }
    }
}

#[test]
fn whoever_hears_nothing_asks_with_the_next_send() {
    for recovery in [go_back_n(), irn()] {
        let mut world = world(recovery, [ON, ON], Wire::default(), 1);
        receive(&mut world, 0);
        for id in 0..2 {
            send(&mut world, id, 1_000);
        }
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(0, Status::Success)], "{recovery:?}");
        world.wire.loss = 1_000;
        receive(&mut world, 1);
        world.run(100);
        world.wire.loss = 0;
        assert!(statuses(&mut world, 0).is_empty());
        world.run(20_000);
        assert_eq!((statuses(&mut world, 0), refusals(&world)), (vec![(1, Status::Success)], 0), "{recovery:?}");
    }
}

#[test]
fn without_a_credit_one_packet_leaves_and_asks_for_an_acknowledgement() {
    for recovery in [go_back_n(), irn()] {
        let mut world = world(recovery, [ON, ON], Wire::default(), 1);
        for id in 0..3 {
            send(&mut world, id, 5 * u32::from(MTU));
        }
        world.run(15);
        let sent = from_first(&world);
        assert_eq!(sent.len(), 1, "{recovery:?}");
        assert!(sent[0].bth.ack_request, "{recovery:?}");
        for id in 0..3 {
            receive(&mut world, id);
        }
        world.run(100_000);
        assert_eq!(statuses(&mut world, 0).len(), 3, "{recovery:?}");
    }
}

#[test]
fn what_consumes_no_receive_request_needs_no_credit() {
    for recovery in [go_back_n(), irn()] {
        let mut world = world(recovery, [ON, ON], Wire::default(), 1);
        let key = world.hosts[1].key;
        for id in 0..8 {
            let data = vec![world.hosts[0].sge(id * SLOT, 1_000)];
            let remote = Remote { address: BASE + THERE + id * SLOT, key };
            let write = Operation::Write { remote, immediate: None };
            world.post(0, request(id, if id % 2 == 0 { write } else { Operation::Read(remote) }, data));
        }
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0).len(), 8, "{recovery:?}");
        assert_eq!(refusals(&world), 0);
    }
}

#[test]
fn writes_with_immediates_consume_credits_too() {
    for recovery in [go_back_n(), irn()] {
        let mut world = world(recovery, [ON, ON], Wire { jitter_us: 5, ..Wire::default() }, 1);
        let key = world.hosts[1].key;
        receive(&mut world, 0);
        for id in 0..6 {
            let data = vec![world.hosts[0].sge(id * SLOT, 1_000)];
            let remote = Remote { address: BASE + THERE + id * SLOT, key };
            world.post(0, request(id, Operation::Write { remote, immediate: Some([id as u8; 4]) }, data));
        }
        for id in 1..6 {
            world.run(300);
            receive(&mut world, id);
        }
        world.run(1_000);
        assert_eq!((statuses(&mut world, 0).len(), refusals(&world)), (6, 0), "{recovery:?}");
    }
}

#[test]
fn a_shared_receive_queue_advertises_nothing_and_limits_nobody() {
    for recovery in [go_back_n(), irn()] {
        let mut world = World::connected([recovery; 2], Wire::default(), 1);
        let srq = world.share_receives(1);
        world.choose([ON, ON], |_| {});
        for id in 0..4 {
            let host = &mut world.hosts[1];
            let scatter = vec![host.sge(THERE + id * SLOT, SLOT as u32)];
            host.rnic.post_srq_recv(srq, ReceiveRequest { id, scatter }).expect("the shared queue has room");
        }
        for id in 0..4 {
            send(&mut world, id, 1 + (id * 397) as u32);
        }
        world.run(1_000);
        all_well(&mut world, 4, "shared");
        let answers = world.log.iter().filter(|(at, _)| *at == 1).filter_map(|(_, headers)| headers.aeth);
        assert!(answers.clone().count() > 0);
        assert!(answers.map(|aeth| aeth.syndrome).all(|said| matches!(said, Syndrome::NO_CREDITS | Syndrome::Nak(_))));
    }
}

#[test]
fn a_queue_that_drains_finishes_what_has_begun_and_waits_for_no_credit() {
    for recovery in [go_back_n(), irn()] {
        let mut world = world(recovery, [ON, ON], Wire::default(), 1);
        receive(&mut world, 0);
        for id in 0..3 {
            send(&mut world, id, 1_000);
        }
        world.run(500);
        let (now, host) = (world.now, &mut world.hosts[0]);
        let drain = QpChange { state: Some(QpState::Draining), ..QpChange::default() };
        host.rnic
            .modify_qp(&mut selvedge_transport::Cx::at(now), host.qp, &drain)
            .expect("the transition is permitted");
        assert!(!host.rnic.is_draining(host.qp), "what waits for credits has not begun: {recovery:?}");
        receive(&mut world, 1);
        world.run(100_000);
        assert_eq!(statuses(&mut world, 0), [(0, Status::Success)], "{recovery:?}");
    }
}

#[test]
fn any_credits_that_are_said_leave_both_sides_whole() {
    for seed in 0..40 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 9);
        let mut world = world(irn(), [ON, ON], Wire { jitter_us: 30, ..Wire::default() }, seed);
        world.tamper = |at, number, headers| {
            if let Some(aeth) = headers.aeth.as_mut().filter(|_| at == 1)
                && let Syndrome::Ack(code) = aeth.syndrome
            {
                aeth.syndrome = Syndrome::Ack(code ^ (number as u8).wrapping_mul(13) & 31);
            }
        };
        for id in 0..20 {
            send(&mut world, id, 1 + (id * 397) as u32 % SLOT as u32);
        }
        for id in 0..20 {
            world.run(rng.below(200));
            receive(&mut world, id);
        }
        world.run(2_000_000);
        all_well(&mut world, 20, &alloc::format!("seed {seed}"));
    }
}
