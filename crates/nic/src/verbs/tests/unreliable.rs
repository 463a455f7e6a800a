//! Tests of unreliable connections: messages that arrive are whole, in order, and arrive once; others are lost without
//! notice.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::Cx;
use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::UNRELIABLE;

use super::world::{BASE, Wire, World, go_back_n, request, statuses, write_to};
use crate::verbs::*;

fn connected(wire: Wire, seed: u64) -> World {
    let mut world = World::new([go_back_n(); 2], wire, seed, Service::Unreliable);
    (0..2).for_each(|at| world.connect(at, |_| {}));
    world
}

/// Lengths of messages in bytes, by number modulo seven.
const LENGTHS: [u32; 7] = [0, 1, 255, 256, 257, 1_000, 5_000];
fn message(n: u64) -> (u64, u32) {
    (n * 131, LENGTHS[n as usize % LENGTHS.len()])
}

#[test]
fn sends_and_writes_arrive_without_a_word_in_return() {
    let mut world = connected(Wire::default(), 1);
    let key = world.hosts[1].key;
    for n in 0..LENGTHS.len() as u64 {
        let (from, length) = message(n);
        world.receive(1, 100 + n, 300_000 + n * 10_000, length);
        world.receive(1, 200 + n, 0, 0);
        let data = vec![world.hosts[0].sge(from, length)];
        let remote = Remote { address: BASE + 600_000 + n * 10_000, key };
        world.post(0, request(3 * n, Operation::Send(Attached::Immediate([n as u8; 4])), data.clone()));
        world.post(0, request(3 * n + 1, Operation::Write { remote, immediate: Some([9; 4]) }, data.clone()));
        world.post(0, request(3 * n + 2, write_to(remote.address, key), data));
    }
    world.run(10_000);
    let sent: Vec<_> = (0..3 * LENGTHS.len() as u64).map(|id| (id, Status::Success)).collect();
    assert_eq!(statuses(&mut world, 0), sent);
    let received = world.hosts[1].poll();
    assert_eq!(received.len(), 2 * LENGTHS.len());
    for (n, pair) in (0..).zip(received.chunks(2)) {
        let (from, length) = message(n);
        let kinds = [CompletionKind::Receive, CompletionKind::ReceiveWrite];
        assert_eq!([pair[0].kind, pair[1].kind], kinds);
        assert_eq!([pair[0].id, pair[1].id], [100 + n, 200 + n]);
        let attached = [Attached::Immediate([n as u8; 4]), Attached::Immediate([9; 4])];
        assert_eq!(([pair[0].attached, pair[1].attached], pair[0].length, pair[1].length), (attached, length, length));
        let bytes = |at: usize, offset: u64| &world.hosts[at].memory[offset as usize..][..length as usize];
        assert_eq!(bytes(1, 300_000 + n * 10_000), bytes(0, from));
        assert_eq!(bytes(1, 600_000 + n * 10_000), bytes(0, from));
    }
    assert!(world.log.iter().all(|(at, headers)| *at == 0 && headers.bth.opcode & UNRELIABLE != 0));
}

/// The wire determines which messages arrive; those are whole, in order, and in the next receive requests.
#[test]
fn a_message_is_lost_as_a_whole_and_its_receive_request_is_the_next_ones() {
    let mut total = 0;
    for seed in 0..100 {
        let wire = Wire { loss: 50, duplicates: 50, late: 20, jitter_us: (seed % 3) * 2, ..Wire::default() };
        let mut world = connected(wire, seed);
        const MESSAGES: u64 = 50;
        for n in 0..MESSAGES {
            let (from, length) = message(n);
            world.receive(1, n, 300_000 + n * 10_000, 5_000);
            let data = vec![world.hosts[0].sge(from, length)];
            world.post(0, request(n, Operation::Send(Attached::Immediate([n as u8; 4])), data));
        }
        world.run(100_000);
        let received = world.hosts[1].poll();
        let mut last = None;
        for (place, completion) in (0..).zip(&received) {
            assert_eq!((completion.id, completion.status), (place, Status::Success), "{seed}");
            let Attached::Immediate([n, ..]) = completion.attached else { panic!("expected immediate data") };
            assert!(last < Some(n), "{seed}: {n} after {last:?}");
            last = Some(n);
            let (from, length) = message(n.into());
            assert_eq!(completion.length, length, "{seed}");
            let bytes = |at: usize, offset: u64| &world.hosts[at].memory[offset as usize..][..length as usize];
            assert!(bytes(1, 300_000 + place * 10_000) == bytes(0, from), "{seed}: message {n}");
        }
        total += received.len();
        // Unused receive requests are still in the queue.
        let (now, qp) = (world.now, world.hosts[1].qp);
        let error = QpChange { state: Some(QpState::Error), ..QpChange::default() };
        world.hosts[1].rnic.modify_qp(&mut Cx::at(now), qp, &error).expect("a transition from any state");
        assert_eq!(statuses(&mut world, 1).len() + received.len(), MESSAGES as usize, "{seed}");
    }
    assert!(total > 1_000, "most arrive: {total}");
}

#[test]
fn what_may_not_be_done_is_not_done_and_nobody_hears_of_it() {
    let mut world = connected(Wire::default(), 1);
    let (key, before) = (world.hosts[1].key, world.hosts[1].memory.clone());
    let end = BASE + super::world::SIZE as u64;
    for (id, (address, key)) in [(BASE, key ^ 1), (end - 100, key), (BASE - 1, key)].into_iter().enumerate() {
        let data = vec![world.hosts[0].sge(0, 600)];
        world.post(0, request(id as u64, write_to(address, key), data));
    }
    // No receive request is ready for this message.
    let data = vec![world.hosts[0].sge(0, 600)];
    world.post(0, request(3, Operation::Send(Attached::Nothing), data.clone()));
    world.run(1_000);
    assert_eq!(statuses(&mut world, 0), [0, 1, 2, 3].map(|id| (id, Status::Success)));
    assert!(world.hosts[1].memory == before && world.hosts[1].poll().is_empty());
    assert_eq!(world.hosts[1].rnic.qp_state(world.hosts[1].qp), Some(QpState::ReadyToSend));
    // A message that is too long for its receive request fails that request, and the next one is received again.
    world.receive(1, 7, 0, 599);
    world.receive(1, 8, 0, 600);
    (4..6).for_each(|id| world.post(0, request(id, Operation::Send(Attached::Nothing), data.clone())));
    world.run(1_000);
    assert_eq!(statuses(&mut world, 1), [(7, Status::LocalLength), (8, Status::Success)]);
}

#[test]
fn a_request_that_fails_stops_the_send_queue_alone() {
    let mut world = connected(Wire::default(), 1);
    let good = vec![world.hosts[0].sge(0, 600)];
    let bad = vec![Sge { key: world.hosts[0].key ^ 1, ..good[0] }];
    world.receive(0, 50, 0, 600);
    for (id, data) in [(1, bad), (2, good.clone())] {
        world.post(0, request(id, Operation::Send(Attached::Nothing), data));
    }
    world.run(1_000);
    assert_eq!(statuses(&mut world, 0), [(1, Status::LocalProtection), (2, Status::Flushed)]);
    let (now, qp) = (world.now, world.hosts[0].qp);
    assert_eq!(world.hosts[0].rnic.qp_state(qp), Some(QpState::SendError));
    world.post(1, request(3, Operation::Send(Attached::Nothing), vec![world.hosts[1].sge(0, 600)]));
    world.run(1_000);
    assert_eq!(statuses(&mut world, 0), [(50, Status::Success)], "it still receives");
    let again = QpChange { state: Some(QpState::ReadyToSend), ..QpChange::default() };
    world.hosts[0].rnic.modify_qp(&mut Cx::at(now), qp, &again).expect("the transition is permitted");
    world.receive(1, 60, 0, 600);
    world.post(0, request(4, Operation::Send(Attached::Nothing), good.clone()));
    world.run(1_000);
    assert_eq!(statuses(&mut world, 1), [(3, Status::Success), (60, Status::Success)]);
    // The service supports no requests that need a response.
    let remote = Remote { address: BASE, key: world.hosts[1].key };
    let refused = [
        Operation::Read(remote),
        Operation::FetchAdd { remote, add: 1 },
        Operation::Send(Attached::Invalidate(remote.key)),
    ];
    for operation in refused {
        let wanted = request(5, operation, good.clone());
        let outcome = world.hosts[0].rnic.post_send(&mut Cx::at(now), qp, wanted);
        assert_eq!(outcome, Err(VerbsError::Invalid("unreliable connections only send and write")));
    }
}

/// Neither service accepts the other's packets, whatever their source.
#[test]
fn packets_of_the_other_service_do_nothing() {
    for service in [Service::Reliable, Service::Unreliable] {
        let mut world = World::new([go_back_n(); 2], Wire::default(), 1, service);
        (0..2).for_each(|at| world.connect(at, |_| {}));
        world.receive(1, 1, 0, 600);
        world.post(0, request(1, Operation::Send(Attached::Nothing), vec![world.hosts[0].sge(0, 100)]));
        let (route, mut payload) = (world.route(0), Payload::default());
        let now = world.now;
        let mut sent = Transmit::default();
        assert!(world.hosts[0].rnic.poll_transmit(&mut Cx::at(now), &mut payload, &mut sent));
        let mut headers = sent.headers;
        headers.bth.opcode ^= UNRELIABLE;
        let mut packet = vec![0; Headers::LONGEST];
        let length = headers.emit(100, &mut packet);
        packet.truncate(length);
        packet.resize(length + 100, 0);
        world.deliver(1, route, &packet);
        assert!(world.hosts[1].poll().is_empty());
        assert_eq!(world.hosts[1].rnic.qp_state(world.hosts[1].qp), Some(QpState::ReadyToSend));
        assert!(!world.hosts[1].rnic.poll_transmit(&mut Cx::at(now), &mut payload, &mut sent));
    }
}
