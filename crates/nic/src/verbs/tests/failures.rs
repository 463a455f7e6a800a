//! Tests of rejected requests: their NAKs, and the requests that are flushed.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::recovery::irn::{IrnConfig, Mode, Timeouts};
use selvedge_transport::{Cx, RecoveryConfig};
use selvedge_wire::verbs::Headers;

use super::world::{ALL, BASE, SIZE, Wire, World, each, go_back_n, irn, request, statuses, write_to};
use crate::verbs::*;

fn state(world: &World, at: usize) -> Option<QpState> {
    world.hosts[at].rnic.qp_state(world.hosts[at].qp)
}
fn events(world: &mut World, at: usize) -> Vec<Event> {
    core::iter::from_fn(|| world.hosts[at].rnic.poll_event()).collect()
}

/// Posts a request that fails, with two behind it: those are flushed, and both queue pairs have failed.
pub(super) fn refused(
    operation: impl Fn(&World) -> Operation,
    length: u32,
    status: Status,
    event: fn(&World) -> Event,
) {
    each(|mut world| {
        let before = world.hosts[1].memory.clone();
        let operation = operation(&world);
        world.receive(0, 50, 0, 100);
        for id in 1..4 {
            let data = vec![world.hosts[0].sge(0, length)];
            world.post(0, request(id, operation, data));
        }
        world.run(10_000);
        assert_eq!(
            statuses(&mut world, 0),
            [(1, status), (2, Status::Flushed), (3, Status::Flushed), (50, Status::Flushed)]
        );
        assert_eq!([state(&world, 0), state(&world, 1)], [Some(QpState::Error); 2]);
        let expected = event(&world);
        assert_eq!(events(&mut world, 1), [expected]);
        assert!(world.hosts[1].memory == before, "nothing was touched");
        // Later requests are flushed at once.
        world.receive(0, 51, 0, 100);
        let data = vec![world.hosts[0].sge(0, length)];
        world.post(0, request(4, operation, data));
        assert_eq!(statuses(&mut world, 0), [(51, Status::Flushed), (4, Status::Flushed)]);
    });
}

#[test]
fn what_the_responder_does_not_allow_touches_nothing() {
    let access: fn(&World) -> Event = |world| Event::QpAccess(world.hosts[1].qp);
    let status = Status::RemoteAccess;
    let end = BASE + SIZE as u64;
    refused(|world| write_to(BASE, world.hosts[1].key ^ 1), 8, status, access);
    refused(|world| write_to(BASE - 1, world.hosts[1].key), 8, status, access);
    refused(|world| write_to(end - 7, world.hosts[1].key), 8, status, access);
    refused(|world| write_to(u64::MAX - 3, world.hosts[1].key), 8, status, access);
    // The first packet of the message would still fit.
    refused(|world| write_to(end - 300, world.hosts[1].key), 301, status, access);
    refused(|world| Operation::Read(Remote { address: end - 7, key: world.hosts[1].key }), 8, status, access);
    refused(|_| Operation::Read(Remote { address: BASE, key: 0 }), 8, status, access);
    refused(
        |world| Operation::FetchAdd { remote: Remote { address: end, key: world.hosts[1].key }, add: 1 },
        8,
        status,
        access,
    );
}

#[test]
fn what_makes_no_sense_is_an_invalid_request() {
    let event: fn(&World) -> Event = |world| Event::QpRequest(world.hosts[1].qp);
    let status = Status::RemoteInvalidRequest;
    refused(
        |world| Operation::FetchAdd { remote: Remote { address: BASE + 4, key: world.hosts[1].key }, add: 1 },
        8,
        status,
        event,
    );
}

#[test]
fn rights_of_the_queue_pair_and_of_the_region_both_count() {
    each(|mut world| {
        let (pd, now) = (world.hosts[1].pd, world.now);
        let access = Access { remote_write: false, ..ALL };
        let region = Region { pd, address: BASE, start: BASE, length: 4_096, access };
        let key = world.hosts[1].rnic.reg_mr(region, 0x77).expect("a valid region");
        let data = vec![world.hosts[0].sge(0, 8)];
        // Reading is permitted.
        world.post(0, request(1, Operation::Read(Remote { address: BASE, key }), data.clone()));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::Success)]);
        let qp = world.hosts[1].qp;
        let change = QpChange { access: Some(Access { remote_read: false, ..ALL }), ..QpChange::default() };
        world.hosts[1].rnic.modify_qp(&mut Cx::at(now), qp, &change).expect("the transition is permitted");
        world.post(0, request(2, Operation::Read(Remote { address: BASE, key }), data));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(2, Status::RemoteInvalidRequest)]);
    });
    refused(
        |world| write_to(BASE, world.hosts[1].key ^ 0x8000_0000),
        8,
        Status::RemoteAccess,
        |world| Event::QpAccess(world.hosts[1].qp),
    );
}

#[test]
fn a_queue_pair_that_was_reset_begins_anew() {
    each(|mut world| {
        let data = vec![world.hosts[0].sge(0, 8)];
        world.post(0, request(1, write_to(BASE, 99), data.clone()));
        world.receive(0, 50, 0, 100);
        world.run(1_000);
        let reset = QpChange { state: Some(QpState::Reset), ..QpChange::default() };
        for at in 0..2 {
            let (now, qp) = (world.now, world.hosts[at].qp);
            world.hosts[at].rnic.modify_qp(&mut Cx::at(now), qp, &reset).expect("a transition from any state");
            assert_eq!(statuses(&mut world, at), [], "what was flushed is forgotten");
            world.connect(at, |_| {});
        }
        let key = world.hosts[1].key;
        world.post(0, request(2, write_to(BASE, key), data));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(2, Status::Success)]);
    });
}

#[test]
fn a_deregistered_region_is_out_of_reach() {
    each(|mut world| {
        let key = world.hosts[1].key;
        world.hosts[1].rnic.dereg_mr(key).expect("the region exists");
        let data = vec![world.hosts[0].sge(0, 8)];
        world.post(0, request(1, write_to(BASE, key), data));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::RemoteAccess)]);
    });
}

#[test]
fn a_local_key_that_does_not_fit_fails_after_what_came_before() {
    each(|mut world| {
        let key = world.hosts[1].key;
        let data = vec![world.hosts[0].sge(0, 1_000)];
        world.post(0, request(1, write_to(BASE, key), data.clone()));
        let wrong = vec![Sge { key: 99, ..data[0] }];
        world.post(0, request(2, write_to(BASE, key), wrong));
        world.post(0, request(3, write_to(BASE, key), data));
        world.run(1_000);
        let expected = [(1, Status::Success), (2, Status::LocalProtection), (3, Status::Flushed)];
        assert_eq!(statuses(&mut world, 0), expected);
        assert_eq!(state(&world, 1), Some(QpState::ReadyToSend), "the other side has heard nothing");
    });
}

#[test]
fn a_receiver_that_is_not_ready_is_tried_again() {
    each(|mut world| {
        let data = vec![world.hosts[0].sge(0, 1_000)];
        for id in 1..4 {
            world.post(0, request(id, Operation::Send(Attached::Nothing), data.clone()));
        }
        world.run(5_000);
        assert_eq!(statuses(&mut world, 0), []);
        for id in 11..14 {
            world.receive(1, id, 10_000 * id, 1_000);
            world.run(5_000);
        }
        let success = |ids: [u64; 3]| ids.map(|id| (id, Status::Success));
        assert_eq!(statuses(&mut world, 0), success([1, 2, 3]));
        assert_eq!(statuses(&mut world, 1), success([11, 12, 13]));
        let (sent, memory) = (&world.hosts[0].memory[..1_000], &world.hosts[1].memory);
        assert!((11..14).all(|id| &memory[10_000 * id..][..1_000] == sent));
    });
}

/// Where paths reorder, a packet that found no receive request before its turn is requested again in its turn.
#[test]
fn a_receiver_that_is_not_ready_needs_no_timeouts() {
    let RecoveryConfig::Irn(timed) = irn() else { unreachable!("it is IRN") };
    let untimed = IrnConfig { timeouts: Timeouts::Off, ..timed };
    let hardware = IrnConfig { mode: Mode::Hls, ..untimed };
    for (seed, recovery) in (0..40).flat_map(|seed| [untimed, hardware].map(|irn| (seed, RecoveryConfig::Irn(irn)))) {
        let wire = Wire { jitter_us: 30, ..Wire::default() };
        let mut world = World::connected([recovery; 2], wire, seed);
        let data = vec![world.hosts[0].sge(0, 1_000)];
        for id in 0..20 {
            world.post(0, request(id, Operation::Send(Attached::Nothing), data.clone()));
        }
        for id in 0..20 {
            world.receive(1, id, 10_000 * (1 + id), 1_000);
            world.run(200);
        }
        world.run(2_000);
        let success: Vec<_> = (0..20).map(|id| (id, Status::Success)).collect();
        assert_eq!(statuses(&mut world, 0), success, "seed {seed}, {recovery:?}");
        assert_eq!(statuses(&mut world, 1), success, "seed {seed}, {recovery:?}");
    }
}

#[test]
fn a_receiver_may_ask_for_more_time_than_a_peer_that_is_gone_gets() {
    each(|mut world| {
        let (qp, now) = (world.hosts[1].qp, world.now);
        // An RNR timer of 655 ms, as in connections by the connection manager.
        let change = QpChange { not_ready_timer: Some(0), ..QpChange::default() };
        world.hosts[1].rnic.modify_qp(&mut Cx::at(now), qp, &change).expect("the transition is permitted");
        let data = vec![world.hosts[0].sge(0, 5_000)];
        world.post(0, request(1, Operation::Send(Attached::Nothing), data));
        world.run(1_000);
        world.receive(1, 11, 10_000, 5_000);
        world.run(700_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::Success)]);
        assert_eq!(statuses(&mut world, 1), [(11, Status::Success)]);
    });
}

#[test]
fn a_receiver_that_is_never_ready_is_given_up() {
    each(|mut world| {
        let (qp, now) = (world.hosts[0].qp, world.now);
        let change = QpChange { not_ready_retries: Some(2), ..QpChange::default() };
        world.hosts[0].rnic.modify_qp(&mut Cx::at(now), qp, &change).expect("the transition is permitted");
        let data = vec![world.hosts[0].sge(0, 10)];
        world.post(0, request(1, Operation::Send(Attached::Nothing), data.clone()));
        world.post(0, request(2, Operation::Send(Attached::Nothing), data));
        world.run(100_000);
        let expected = [(1, Status::NotReadyRetriesExceeded), (2, Status::Flushed)];
        assert_eq!(statuses(&mut world, 0), expected);
    });
}

#[test]
fn a_peer_that_is_gone_is_given_up() {
    each(|mut world| {
        world.wire.loss = 1_000;
        let data = vec![world.hosts[0].sge(0, 10)];
        let key = world.hosts[1].key;
        world.post(0, request(1, write_to(BASE, key), data.clone()));
        world.post(0, request(2, write_to(BASE, key), data));
        // At least eight times 4.096 us x 2^7.
        world.run(4_100);
        assert_eq!(statuses(&mut world, 0), []);
        world.run(100_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::RetriesExceeded), (2, Status::Flushed)]);
    });
}

#[test]
fn a_message_longer_than_its_receive_request_fails_on_both_sides() {
    each(|mut world| {
        world.receive(1, 9, 500_000, 500);
        let data = vec![world.hosts[0].sge(0, 501)];
        world.post(0, request(1, Operation::Send(Attached::Nothing), data));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::RemoteInvalidRequest)]);
        assert_eq!(statuses(&mut world, 1), [(9, Status::LocalLength)]);
    });
}

#[test]
fn keys_of_regions_cannot_be_invalidated() {
    // No request could make such a region valid again, and the other side has no right to invalidate it.
    each(|mut world| {
        let key = world.hosts[1].key;
        world.receive(1, 9, 500_000, 500);
        let data = vec![world.hosts[0].sge(0, 8)];
        world.post(0, request(1, Operation::Send(Attached::Invalidate(key)), data));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::RemoteAccess)]);
        assert_eq!(statuses(&mut world, 1), [(9, Status::RemoteInvalidRequest)]);
        assert!(world.hosts[1].rnic.region(key).is_some());
        let qp = world.hosts[1].qp;
        assert_eq!(events(&mut world, 1), [Event::QpAccess(qp)]);
    });
    each(|mut world| {
        let own = world.hosts[0].key;
        world.post(0, request(2, Operation::LocalInvalidate(own), Vec::new()));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(2, Status::LocalOperation)]);
        assert!(world.hosts[0].rnic.region(own).is_some());
    });
}

#[test]
fn a_fenced_request_waits_for_reads() {
    each(|mut world| {
        let (key, data) = (world.hosts[1].key, vec![world.hosts[0].sge(100, 2_000)]);
        let first = world.log.len();
        world.post(0, request(1, Operation::Read(Remote { address: BASE, key }), data.clone()));
        world.post(0, SendRequest { fence: true, ..request(2, write_to(BASE + 5_000, key), data) });
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::Success), (2, Status::Success)]);
        let last_answer = world.log.iter().rposition(|(at, headers)| *at == 1 && headers.bth.opcode == 0x0f);
        let write = world.log.iter().skip(first).position(|(at, headers)| *at == 0 && headers.bth.opcode == 0x06);
        assert!(last_answer.expect("the packet was sent") < first + write.expect("the packet was sent"));
        // The Read returned the data that was written back.
        assert!(world.hosts[1].memory[5_000..7_000] == world.hosts[0].memory[100..2_100]);
    });
}

#[test]
fn draining_finishes_what_was_begun_and_nothing_else() {
    each(|mut world| {
        let (qp, key) = (world.hosts[0].qp, world.hosts[1].key);
        let data = vec![world.hosts[0].sge(0, 5_000)];
        world.post(0, request(1, write_to(BASE, key), data.clone()));
        world.run(1);
        let now = world.now;
        let drain = QpChange { state: Some(QpState::Draining), drained_event: Some(true), ..QpChange::default() };
        world.hosts[0].rnic.modify_qp(&mut Cx::at(now), qp, &drain).expect("the transition is permitted");
        world.post(0, request(2, write_to(BASE, key), data));
        assert_eq!(events(&mut world, 0), []);
        assert!(world.hosts[0].rnic.is_draining(qp));
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(1, Status::Success)]);
        assert_eq!(events(&mut world, 0), [Event::Drained(qp)]);
        assert!(!world.hosts[0].rnic.is_draining(qp), "all that was begun is done");
        let go_on = QpChange { state: Some(QpState::ReadyToSend), ..QpChange::default() };
        let now = world.now;
        world.hosts[0].rnic.modify_qp(&mut Cx::at(now), qp, &go_on).expect("the transition is permitted");
        world.run(1_000);
        assert_eq!(statuses(&mut world, 0), [(2, Status::Success)]);
    });
}

#[test]
fn a_stranger_and_noise_change_nothing() {
    for recovery in [go_back_n() as RecoveryConfig, irn()] {
        let mut world = World::connected([recovery, recovery], Wire::default(), 7);
        let (mut rng, key) =
            (selvedge_units::Rng::stream(3, selvedge_units::Domain::Impairment, 1), world.hosts[1].key);
        let before = world.hosts[1].memory.clone();
        let route = world.route(0);
        let stranger = Route { local: "::ffff:10.9.9.9".parse().expect("a valid address"), ..route };
        // A valid Write, from another host.
        let bth = selvedge_wire::Bth {
            opcode: 0x0a,
            destination: world.hosts[1].qp,
            psn: selvedge_units::Psn::new(0xff_fff0),
            ..Default::default()
        };
        let reth = Some(selvedge_wire::Reth { address: BASE, key, length: 4 });
        let mut packet = [0; Headers::LONGEST + 4];
        let length = Headers { bth, reth, ..Headers::default() }.emit(4, &mut packet);
        world.deliver(1, stranger, &packet[..length + 4]);
        assert!(world.hosts[1].memory == before);
        // Random packets from the right address: all opcodes, all reserved bits, any numbers.
        for _ in 0..20_000 {
            let mut noise = vec![0; rng.below(200) as usize];
            noise.fill_with(|| rng.next_u64() as u8);
            if noise.len() > 12 {
                noise[1] &= 0xf0;
                let qp = world.hosts[1].qp.0.to_be_bytes();
                noise[5..8].copy_from_slice(&qp[1..]);
            }
            world.deliver(1, route, &noise);
            if rng.below(100) == 0 {
                world.run(1);
            }
        }
        assert!(world.hosts[1].memory == before, "without the key nothing is written");
    }
}
