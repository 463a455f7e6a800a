//! Tests of the creation, change and destruction of queue pairs, queues and domains.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::Cx;
use selvedge_units::{Instant, Psn};
use selvedge_wire::verbs::{Headers, Ours, Placement};
use selvedge_wire::{Bth, Extension};

use super::world::{ALL, BASE, QKEY, Wire, World, go_back_n, irn, request};
use crate::verbs::*;

fn ids(world: &mut World, at: usize) -> Vec<u64> {
    world.hosts[at].poll().into_iter().map(|completion| completion.id).collect()
}

#[test]
fn what_is_used_cannot_be_destroyed() {
    let mut world = World::connected([irn(); 2], Wire::default(), 1);
    let host = &mut world.hosts[0];
    assert_eq!(host.rnic.destroy_cq(host.cq), Err(VerbsError::InUse("queue pair")));
    assert_eq!(host.rnic.dealloc_pd(host.pd), Err(VerbsError::InUse("memory region")));
    host.rnic.dereg_mr(host.key).expect("the region exists");
    assert_eq!(host.rnic.dealloc_pd(host.pd), Err(VerbsError::InUse("queue pair")));
    host.rnic.destroy_qp(host.qp).expect("the queue pair exists");
    assert_eq!(host.rnic.destroy_qp(host.qp), Err(VerbsError::NoSuch("queue pair")));
    host.rnic.dealloc_pd(host.pd).expect("nothing uses the domain");
    host.rnic.destroy_cq(host.cq).expect("nothing uses the queue");
    assert_eq!(host.rnic.poll_timeout(), None);
}

#[test]
fn states_follow_one_another_and_nothing_else() {
    let mut world = World::new([go_back_n(); 2], Wire::default(), 1, Service::Reliable);
    let qp = world.hosts[0].qp;
    let to = |world: &mut World, state| {
        let change = QpChange { state: Some(state), ..QpChange::default() };
        world.hosts[0].rnic.modify_qp(&mut Cx::at(Instant::ZERO), qp, &change)
    };
    for state in [QpState::ReadyToReceive, QpState::ReadyToSend, QpState::Draining, QpState::Initialised] {
        assert!(to(&mut world, state).is_err(), "{state:?}");
    }
    let data = vec![world.hosts[0].sge(0, 1)];
    let post = world.hosts[0].rnic.post_send(
        &mut Cx::at(Instant::ZERO),
        qp,
        request(1, Operation::Send(Attached::Nothing), data),
    );
    assert_eq!(post, Err(VerbsError::Invalid("the queue pair is not ready to send")));
    world.connect(0, |_| {});
    assert!(to(&mut world, QpState::Initialised).is_err());
    to(&mut world, QpState::Reset).expect("a transition from any state");
    assert_eq!(world.hosts[0].rnic.qp_state(qp), Some(QpState::Reset));
    world.connect(0, |_| {});
    to(&mut world, QpState::Error).expect("a transition from any state");
    to(&mut world, QpState::Reset).expect("a transition from any state");
}

#[test]
fn queues_hold_what_they_were_made_for() {
    let mut world = World::connected([irn(); 2], Wire::default(), 1);
    world.wire.loss = 1_000;
    let key = world.hosts[1].key;
    let operation = Operation::Write { remote: Remote { address: BASE, key }, immediate: None };
    for id in 0..64 {
        let data = vec![world.hosts[0].sge(0, 1)];
        world.post(0, request(id, operation, data));
        world.receive(0, id, 0, 1);
    }
    let host = &mut world.hosts[0];
    let sge = host.sge(0, 1);
    let full = host.rnic.post_send(&mut Cx::at(Instant::ZERO), host.qp, request(64, operation, vec![sge]));
    assert_eq!(full, Err(VerbsError::Exhausted("places in the send queue")));
    let full = host.rnic.post_recv(host.qp, ReceiveRequest { id: 64, scatter: vec![sge] });
    assert_eq!(full, Err(VerbsError::Exhausted("places in the receive queue")));
}

#[test]
fn what_packets_under_way_depend_on_does_not_change() {
    let mut world = World::connected([go_back_n(); 2], Wire::default(), 1);
    let (qp, key, route) = (world.hosts[0].qp, world.hosts[1].key, world.route(0));
    let data = vec![world.hosts[0].sge(0, 20_000)];
    world.post(0, request(1, Operation::Write { remote: Remote { address: BASE, key }, immediate: None }, data));
    world.run(1);
    let none = QpChange::default();
    let changes = [
        QpChange { mtu: Some(4_096), ..none },
        QpChange { destination: Some(qp), ..none },
        QpChange { receive_psn: Some(Psn::new(7)), ..none },
        QpChange { send_psn: Some(Psn::new(7)), ..none },
        QpChange { route: Some(route), ..none },
    ];
    for change in changes {
        for state in [None, Some(QpState::ReadyToSend), Some(QpState::Draining), Some(QpState::Error)] {
            let change = QpChange { state, ..change };
            let refused = world.hosts[0].rnic.modify_qp(&mut Cx::at(world.now), qp, &change);
            assert!(matches!(refused, Err(VerbsError::Invalid(_))), "{change:?}: {refused:?}");
        }
    }
    world.run(10_000);
    assert_eq!(ids(&mut world, 0), [1]);
    assert!(world.hosts[1].memory[..20_000] == world.hosts[0].memory[..20_000]);
}

#[test]
fn requests_that_belong_together_are_posted_all_or_not_at_all() {
    let mut world = World::connected([irn(); 2], Wire::default(), 1);
    let (qp, key) = (world.hosts[0].qp, world.hosts[1].key);
    let operation = Operation::Write { remote: Remote { address: BASE, key }, immediate: None };
    let of = |world: &World, id| request(id, operation, vec![world.hosts[0].sge(0, 1)]);
    let wrong = request(9, operation, vec![world.hosts[0].sge(0, 1); 5]);
    let too_many = (0..65).map(|id| of(&world, id)).collect();
    let malformed = vec![of(&world, 1), wrong, of(&world, 2)];
    let both = vec![of(&world, 3), of(&world, 4)];
    let mut cx = Cx::at(world.now);
    let rnic = &mut world.hosts[0].rnic;
    assert_eq!(rnic.post_sends(&mut cx, qp, too_many), Err(VerbsError::Exhausted("places in the send queue")));
    assert!(matches!(rnic.post_sends(&mut cx, qp, malformed), Err(VerbsError::Invalid(_))));
    assert_eq!(rnic.post_sends(&mut cx, qp, both), Ok(()));
    world.run(1_000);
    assert_eq!(ids(&mut world, 0), [3, 4]);
}

#[test]
fn that_a_connection_is_established_is_told_once_and_not_for_what_is_dropped() {
    let mut world = World::new([go_back_n(); 2], Wire::default(), 1, Service::Reliable);
    world.connect(0, |_| {});
    let (qp, route) = (world.hosts[1].qp, world.route(1));
    let [initialise, receive, _] = Handshake {
        access: ALL,
        route,
        destination: world.hosts[0].qp,
        mtu: 256,
        send_psn: Psn::new(0x12),
        receive_psn: Psn::new(0xff_fff0),
        reads: 1,
        timeout: 7,
        retries: 7,
        not_ready_timer: 1,
    }
    .steps();
    for step in [initialise, receive] {
        world.hosts[1].rnic.modify_qp(&mut Cx::at(world.now), qp, &step).expect("the transition is permitted");
    }
    // A packet of a scheme that this side does not have.
    let bth = Bth { opcode: 0x04, destination: qp, psn: Psn::new(0xff_fff0), ..Bth::default() };
    let (extension, placement) = (Some(Extension::default()), Some(Placement::default()));
    let headers = Headers { bth, ours: Ours::Uses(1), extension, placement, ..Headers::default() };
    let mut packet = [0; Headers::LONGEST];
    let length = headers.emit(0, &mut packet);
    let there = world.route(0);
    for _ in 0..3 {
        world.deliver(1, there, &packet[..length]);
    }
    assert_eq!(world.hosts[1].rnic.poll_event(), None);
    for id in 0..2 {
        world.receive(1, id, 0, 10);
        world.post(0, request(id, Operation::Send(Attached::Nothing), vec![]));
        world.run(100);
    }
    let events: Vec<_> = core::iter::from_fn(|| world.hosts[1].rnic.poll_event()).collect();
    assert_eq!(events, [Event::Established(qp)]);
}

#[test]
fn completion_queues_raise_the_events_that_were_asked_for_and_notice_an_overrun() {
    let mut world = World::connected([irn(); 2], Wire::default(), 1);
    let (cq, key) = (world.hosts[1].cq, world.hosts[1].key);
    world.hosts[1].rnic.arm_cq(cq, true).expect("the completion queue exists");
    for solicited in [false, true, true] {
        world.receive(1, 1, 0, 10);
        let data = vec![world.hosts[0].sge(0, 1)];
        world.post(0, SendRequest { solicited, ..request(1, Operation::Send(Attached::Nothing), data) });
        world.run(1_000);
    }
    let events: Vec<_> = core::iter::from_fn(|| world.hosts[1].rnic.poll_event()).collect();
    assert_eq!(events, [Event::Completion(cq)], "one, for the first that was solicited");
    world.hosts[0].rnic.resize_cq(world.hosts[0].cq, 4).expect("only three completions wait");
    let operation = Operation::Write { remote: Remote { address: BASE, key }, immediate: None };
    for id in 10..13 {
        let data = vec![world.hosts[0].sge(0, 1)];
        world.post(0, request(id, operation, data));
    }
    world.run(1_000);
    let events: Vec<_> = core::iter::from_fn(|| world.hosts[0].rnic.poll_event()).collect();
    assert_eq!(events, [Event::CqOverrun(world.hosts[0].cq)]);
    assert_eq!(ids(&mut world, 0), [1, 1, 1, 10]);
}

#[test]
fn datagrams_carry_who_sent_them_and_are_dropped_without_the_right_key() {
    let mut world = World::new([irn(); 2], Wire::default(), 1, Service::Datagram);
    for at in 0..2 {
        world.begin_datagrams(at);
    }
    world.receive(1, 9, 1_000, 200);
    let (qp, route) = (world.hosts[1].qp, world.route(0));
    for (id, qkey) in [(1, !QKEY), (2, QKEY)] {
        let destination = Some(Destination { route, qp, qkey });
        let data = vec![world.hosts[0].sge(0, 100)];
        let send = request(id, Operation::Send(Attached::Immediate([1, 2, 3, 4])), data);
        world.post(0, SendRequest { destination, ..send });
    }
    world.run(1_000);
    assert_eq!(ids(&mut world, 0), [1, 2]);
    let received = world.hosts[1].poll();
    let [completion] = &received[..] else { panic!("{received:?}") };
    assert_eq!((completion.id, completion.length, completion.status), (9, 140, Status::Success));
    assert_eq!(completion.attached, Attached::Immediate([1, 2, 3, 4]));
    let source = completion.source.expect("a datagram has a source");
    assert_eq!((source.qp, source.route.remote), (world.hosts[0].qp, world.hosts[0].address));
    assert_eq!(world.hosts[1].memory[1_040..1_140], world.hosts[0].memory[..100]);
    assert!(world.hosts[1].memory[1_000..1_040].iter().all(|&byte| byte == 0x45));
    // Without a receive request, the datagram is lost.
    let data = Data::Inline(vec![7; 10]);
    let destination = Some(Destination { route, qp, qkey: QKEY });
    let send = request(3, Operation::Send(Attached::Nothing), Vec::new());
    world.post(0, SendRequest { destination, data, ..send });
    world.run(1_000);
    assert_eq!((ids(&mut world, 0), ids(&mut world, 1)), (vec![3], vec![]));
}

#[test]
fn shared_receive_queues_serve_whoever_comes_first_and_tell_when_they_run_low() {
    for recovery in [go_back_n(), irn()] {
        let mut world = World::connected([recovery; 2], Wire::default(), 1);
        let srq = world.share_receives(1);
        let host = &mut world.hosts[1];
        for id in 0..4 {
            let scatter = vec![host.sge(id * 1_000, 1_000)];
            host.rnic.post_srq_recv(srq, ReceiveRequest { id, scatter }).expect("the shared queue has room");
        }
        host.rnic.modify_srq(srq, None, Some(3)).expect("a valid limit");
        assert_eq!(host.rnic.destroy_srq(srq), Err(VerbsError::InUse("queue pair")));
        let now = world.now;
        let qp = world.hosts[0].qp;
        let reset = QpChange { state: Some(QpState::Reset), ..QpChange::default() };
        world.hosts[0].rnic.modify_qp(&mut Cx::at(now), qp, &reset).expect("a transition from any state");
        world.connect(0, |_| {});
        world.connect(1, |_| {});
        for id in 0..3 {
            let data = vec![world.hosts[0].sge(0, 900)];
            world.post(0, request(id, Operation::Send(Attached::Nothing), data));
        }
        world.run(1_000);
        assert_eq!(ids(&mut world, 1), [0, 1, 2]);
        let events: Vec<_> = core::iter::from_fn(|| world.hosts[1].rnic.poll_event()).collect();
        assert_eq!(events, [Event::SrqLimit(srq)]);
        assert_eq!(world.hosts[1].rnic.query_srq(srq).map(|srq| srq.limit), Some(0));
        let rights = Access { local_write: false, ..ALL };
        let (pd, rnic) = (world.hosts[1].pd, &mut world.hosts[1].rnic);
        let region = Region { pd, address: BASE, start: BASE, length: 1, access: rights };
        assert!(rnic.reg_mr(region, 5).is_err(), "remote writes without local ones");
    }
}
