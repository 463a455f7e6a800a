//! Tests of queue pairs that are destroyed although their last acknowledgement was lost.

use alloc::vec;

use selvedge_wire::verbs::Headers;

use super::world::{BASE, Wire, World, each, irn, request, statuses, write_to};
use crate::verbs::*;

fn say_last_word(world: &mut World) {
    let word = world.hosts[1].rnic.last_word(world.hosts[1].qp).expect("a packet was acknowledged before");
    let mut packet = vec![0; Headers::LONGEST];
    let length = word.headers.emit(0, &mut packet);
    world.deliver(0, word.route, &packet[..length]);
}

#[test]
fn who_has_heard_nothing_has_no_last_word() {
    let world = World::connected([irn(); 2], Wire::default(), 1);
    assert_eq!(world.hosts[1].rnic.last_word(world.hosts[1].qp), None);
}

#[test]
fn a_last_word_completes_what_was_acknowledged_in_vain() {
    each(|mut world| {
        let data = vec![world.hosts[0].sge(0, 3_000)];
        let write = request(1, write_to(BASE + 4_096, world.hosts[1].key), data);
        world.post(0, write);
        world.run(5);
        world.wire.loss = 1_000;
        world.run(10);
        assert_eq!(statuses(&mut world, 0), [], "nobody has said that it arrived");
        // A repetition of the last acknowledgement has no further effect.
        say_last_word(&mut world);
        say_last_word(&mut world);
        assert_eq!(statuses(&mut world, 0), [(1, Status::Success)]);
        let qp = world.hosts[1].qp;
        world.hosts[1].rnic.destroy_qp(qp).expect("the queue pair exists");
        world.run(10_000_000);
        assert_eq!(statuses(&mut world, 0), []);
    });
}
