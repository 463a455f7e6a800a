//! Tests of message sequence numbers (IRN, section 5.3.3): expiry of requests, and handling of wrong numbers.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_wire::verbs::Headers;
use selvedge_wire::verbs::opcode::operation as op;

use super::world::{BASE, Wire, World, irn, melo, request, statuses, write_to};
use crate::verbs::*;

/// Creates two hosts that know each other, and posts ten requests of each kind with their receive requests.
fn asked(recovery: selvedge_transport::RecoveryConfig, wire: Wire, tamper: fn(usize, u64, &mut Headers)) -> World {
    let mut world = World::connected([recovery; 2], wire, 1);
    world.agree();
    world.tamper = tamper;
    let key = world.hosts[1].key;
    for id in 0..30 {
        let (slot, length) = (id * 4_096, 1 + 97 * id as u32);
        let operation = match id % 3 {
            0 => write_to(BASE + 524_288 + slot, key),
            1 => Operation::Read(Remote { address: BASE + slot, key }),
            _ => Operation::Send(Attached::Nothing),
        };
        if id % 3 == 2 {
            world.receive(1, id, 262_144 + slot, 4_096);
        }
        let data = vec![world.hosts[0].sge(slot, length)];
        world.post(0, request(id, operation, data));
    }
    world.run(10_000_000);
    world
}

fn is_acknowledgement(at: usize, headers: &Headers) -> bool {
    at == 1 && headers.bth.opcode == op::ACKNOWLEDGE
}

#[test]
fn a_number_that_contradicts_the_packets_is_no_acknowledgement() {
    let every_third: fn(usize, u64, &mut Headers) = |at, number, headers| {
        if let Some(aeth) = headers.aeth.as_mut().filter(|_| at == 1 && number % 3 == 0) {
            aeth.msn = aeth.msn.wrapping_add(1 + number as u32 % 5) & 0xff_ffff;
        }
    };
    for recovery in [irn(), melo()] {
        let mut world = asked(recovery, Wire { jitter_us: 30, loss: 10, ..Wire::default() }, every_third);
        let expected: Vec<_> = (0..30).map(|id| (id, Status::Success)).collect();
        assert_eq!(statuses(&mut world, 0), expected, "{recovery:?}");
        assert!(world.hosts[0].rnic.stats().contradictions > 0, "{recovery:?}");
    }
}

#[test]
fn a_responder_that_only_counts_wrongly_is_given_up_as_if_it_were_silent() {
    for recovery in [irn(), melo()] {
        let mut world = asked(recovery, Wire::default(), |at, _, headers| {
            if let Some(aeth) = headers.aeth.as_mut().filter(|_| at == 1) {
                aeth.msn ^= 0x40_0000;
            }
        });
        let done = statuses(&mut world, 0);
        assert_eq!(done[0], (0, Status::RetriesExceeded), "{recovery:?}");
        assert!(done[1..].iter().all(|&(_, status)| status == Status::Flushed), "{recovery:?}: {done:?}");
        assert!(world.hosts[0].rnic.stats().contradictions > 0, "{recovery:?}");
    }
}

#[test]
fn each_acknowledgement_counts_the_messages_that_end_before_it() {
    let world = asked(irn(), Wire { jitter_us: 30, loss: 10, ..Wire::default() }, |_, _, _| {});
    let said = world.log.iter().filter(|(at, headers)| is_acknowledgement(*at, headers));
    let newest = said.filter_map(|(_, headers)| headers.aeth).next_back();
    assert_eq!(newest.map(|aeth| aeth.msn), Some(30));
    assert_eq!(world.hosts[0].rnic.stats().contradictions, 0);
}
