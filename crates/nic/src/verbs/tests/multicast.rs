//! Tests of datagrams for groups: which queue pairs receive them.

use alloc::vec;
use alloc::vec::Vec;
use core::net::Ipv6Addr;

use selvedge_transport::Cx;
use selvedge_units::QpNumber;
use selvedge_wire::verbs::Headers;

use super::world::{QKEY, Wire, World, irn, request};
use crate::verbs::*;

const GROUP: Ipv6Addr = Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0xef01, 0x0203);

/// Creates two hosts for datagrams; the second has another queue pair, which is returned.
fn world() -> (World, QpNumber) {
    let mut world = World::new([irn(); 2], Wire::default(), 1, Service::Datagram);
    world.begin_datagrams(0);
    world.begin_datagrams(1);
    let (_, init) = world.hosts[1].rnic.query_qp(world.hosts[1].qp).expect("the queue pair exists");
    let other = world.hosts[1].rnic.create_qp(init).expect("a valid configuration");
    let first = core::mem::replace(&mut world.hosts[1].qp, other);
    world.begin_datagrams(1);
    world.hosts[1].qp = first;
    (world, other)
}

fn send(world: &mut World, id: u64, qkey: u32) {
    let route = Route { remote: GROUP, ..world.route(0) };
    let data = vec![world.hosts[0].sge(0, 100)];
    let destination = Some(Destination { route, qp: MULTICAST, qkey });
    world.post(0, SendRequest { destination, ..request(id, Operation::Send(Attached::Nothing), data) });
}

fn receive(world: &mut World, qp: QpNumber, id: u64) {
    let host = &mut world.hosts[1];
    let request = ReceiveRequest { id, scatter: vec![host.sge(id * 200, 140)] };
    host.rnic.post_recv(qp, request).expect("the receive queue has room");
}

/// Returns the receive requests that the second host has completed, each with its queue pair.
fn received(world: &mut World) -> Vec<(u64, QpNumber)> {
    world.run(1_000);
    let all = world.hosts[1].poll();
    assert!(all.iter().all(|done| done.status == Status::Success && done.length == 140), "{all:?}");
    all.iter().map(|done| (done.id, done.qp)).collect()
}

#[test]
fn every_member_takes_a_copy_and_nobody_else() {
    let (mut world, other) = world();
    let first = world.hosts[1].qp;
    for id in [1, 2, 3] {
        receive(&mut world, first, id);
    }
    for id in [4, 5, 6] {
        receive(&mut world, other, id);
    }
    send(&mut world, 1, QKEY);
    assert_eq!(received(&mut world), [], "nobody is a member");
    for qp in [first, other, other] {
        world.hosts[1].rnic.attach(qp, GROUP).expect("a datagram queue pair");
    }
    // The first queue pair is a member of another group, too.
    world.hosts[1].rnic.attach(first, Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1)).expect("a datagram queue pair");
    send(&mut world, 2, QKEY);
    assert_eq!(received(&mut world), [(1, first), (4, other)], "one each, however often it was attached");
    let memory = &world.hosts[1].memory;
    assert!([200, 800].iter().all(|&at| memory[at + 40..at + 140] == world.hosts[0].memory[..100]));
    world.hosts[1].rnic.detach(first, GROUP).expect("an attached queue pair");
    assert!(world.hosts[1].rnic.detach(first, GROUP).is_err());
    send(&mut world, 3, QKEY);
    assert_eq!(received(&mut world), [(5, other)]);
    world.hosts[1].rnic.destroy_qp(other).expect("the queue pair exists");
    send(&mut world, 4, QKEY);
    assert_eq!(received(&mut world), []);
}

#[test]
fn a_wrong_qkey_changes_nothing() {
    let (mut world, _) = world();
    let first = world.hosts[1].qp;
    receive(&mut world, first, 1);
    world.hosts[1].rnic.attach(first, GROUP).expect("a datagram queue pair");
    let before = world.hosts[1].memory.clone();
    send(&mut world, 1, QKEY ^ 1);
    assert_eq!(received(&mut world), []);
    assert!(world.hosts[1].memory == before);
    send(&mut world, 2, QKEY);
    assert_eq!(received(&mut world), [(1, first)], "the receive request was kept");
}

#[test]
fn a_member_does_not_hear_itself_but_another_of_the_same_number() {
    let (mut world, _) = world();
    let qp = world.hosts[0].qp;
    world.hosts[0].rnic.attach(qp, GROUP).expect("a datagram queue pair");
    for id in [1, 2] {
        world.receive(0, id, 10_000 + id * 200, 140);
    }
    send(&mut world, 9, QKEY);
    let mut payload = Payload::default();
    let now = world.now;
    let mut sent = Transmit::default();
    assert!(world.hosts[0].rnic.poll_transmit(&mut Cx::at(now), &mut payload, &mut sent), "it sends");
    let mut packet = vec![0; Headers::LONGEST];
    let length = sent.headers.emit(100, &mut packet);
    packet.truncate(length);
    packet.resize(length + 100, 7);
    // The packet returns from the wire.
    world.deliver(0, sent.route, &packet);
    let done: Vec<_> = world.hosts[0].poll().iter().map(|done| done.id).collect();
    assert_eq!(done, [9], "it was sent, that is all");
    // A queue pair of another host has the same number by chance.
    let elsewhere = Route { local: world.hosts[1].address, ..sent.route };
    world.deliver(0, elsewhere, &packet);
    let done: Vec<_> = world.hosts[0].poll().iter().map(|done| done.id).collect();
    assert_eq!(done, [1]);
}

#[test]
fn only_groups_and_queue_pairs_for_datagrams() {
    let (mut world, _) = world();
    let host = &mut world.hosts[1];
    for address in [Ipv6Addr::LOCALHOST, "::ffff:10.0.0.1".parse().expect("a valid address"), Ipv6Addr::UNSPECIFIED] {
        assert!(host.rnic.attach(host.qp, address).is_err(), "{address}");
    }
    assert_eq!(host.rnic.attach(QpNumber(5), GROUP), Err(VerbsError::NoSuch("queue pair")));
    let mut connected = World::connected([irn(); 2], Wire::default(), 1);
    let host = &mut connected.hosts[0];
    assert!(host.rnic.attach(host.qp, GROUP).is_err());
    assert!(!is_group(&Ipv6Addr::LOCALHOST) && is_group(&GROUP));
}
