//! Tests that messages arrive once, whole and in order, whatever the wire does.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_transport::RecoveryConfig;
use selvedge_transport::recovery::irn::{DynamicRto, IrnConfig, Rto};
use selvedge_units::{Duration, Setting};
use selvedge_wire::verbs::{Headers, Ours};

use super::world::{BASE, Wire, World, go_back_n, irn, melo, request};
use crate::verbs::*;

fn both(recovery: RecoveryConfig) -> [RecoveryConfig; 2] {
    [recovery, recovery]
}

fn wires() -> Vec<Wire> {
    vec![
        Wire::default(),
        Wire { loss: 20, ..Wire::default() },
        Wire { loss: 20, batch_us: 50, ..Wire::default() },
        Wire { loss: 50, duplicates: 50, jitter_us: 30, ..Wire::default() },
        Wire { loss: 0, duplicates: 100, jitter_us: 200, ..Wire::default() },
    ]
}

/// Posts each kind of request, in all sizes, in both directions at once.
fn mixture(recovery: [RecoveryConfig; 2], wire: Wire, seed: u64) -> World {
    let mut world = World::connected(recovery, wire, seed);
    let sizes = [0, 1, 255, 256, 257, 1_000, 5_000, 20_000];
    let mut expected: [Vec<u64>; 2] = Default::default();
    for (at, expected) in expected.iter_mut().enumerate() {
        for (n, &size) in sizes.iter().enumerate() {
            let n = n as u64;
            // Quarters of memory: sources, receive buffers, destinations of Writes, destinations of Reads.
            let (from, into) = (n * 30_000, 262_144 + n * 30_000);
            let (written, read) = (524_288 + n * 30_000, 786_432 + n * 30_000);
            let key = world.hosts[1 - at].key;
            world.receive(1 - at, 1_000 + 2 * n, into, size);
            world.receive(1 - at, 1_001 + 2 * n, 0, 0);
            let here = &world.hosts[at];
            let source = vec![here.sge(from, size / 2), here.sge(from + u64::from(size / 2), size - size / 2)];
            let target = vec![here.sge(read, size)];
            let word = vec![here.sge(read + 20_008, 8)];
            let remote = |offset| Remote { address: BASE + offset, key };
            let immediate = Attached::Immediate([1, 2, 3, n as u8]);
            let requests = [
                request(n * 10, Operation::Send(immediate), source.clone()),
                request(n * 10 + 1, Operation::Write { remote: remote(written), immediate: None }, source.clone()),
                request(n * 10 + 2, Operation::FetchAdd { remote: remote(written + 29_000), add: 1 + n }, word),
                request(n * 10 + 3, Operation::Read(remote(from)), target),
                request(
                    n * 10 + 4,
                    Operation::Write { remote: remote(written), immediate: Some([n as u8; 4]) },
                    source,
                ),
            ];
            for request in requests {
                expected.push(request.id);
                world.post(at, request);
            }
        }
    }
    let before = [0, 1].map(|at| world.hosts[at].memory.clone());
    world.run(3_000_000);
    for at in 0..2 {
        let all = world.hosts[at].poll();
        let failed: Vec<_> = all.iter().filter(|completion| completion.status != Status::Success).collect();
        assert!(failed.is_empty(), "{wire:?}, seed {seed}: {failed:?}");
        let is_receive = |kind| matches!(kind, CompletionKind::Receive | CompletionKind::ReceiveWrite);
        let sent: Vec<_> =
            all.iter().filter(|completion| !is_receive(completion.kind)).map(|completion| completion.id).collect();
        assert_eq!(sent, expected[at], "send requests complete in order");
        let received: Vec<_> =
            all.iter().filter(|completion| is_receive(completion.kind)).map(|completion| completion.id).collect();
        assert_eq!(received, (1_000..1_016).collect::<Vec<_>>(), "receive requests complete in order");
        for (n, &size) in sizes.iter().enumerate() {
            let (n, size) = (n * 30_000, size as usize);
            let theirs = &before[1 - at][n..][..size];
            let memory = &world.hosts[at].memory;
            assert_eq!(&memory[262_144 + n..][..size], theirs, "a Send of {size}");
            assert_eq!(&memory[524_288 + n..][..size], theirs, "a Write of {size}");
            assert_eq!(&memory[786_432 + n..][..size], theirs, "a Read of {size}");
            let counter = 524_288 + n + 29_000;
            let word = |memory: &[u8]| u64::from_ne_bytes(memory[counter..][..8].try_into().expect("8 bytes"));
            assert_eq!(word(memory), word(&before[at]).wrapping_add(1 + n as u64 / 30_000), "once");
            let found = u64::from_ne_bytes(
                world.hosts[1 - at].memory[786_432 + n + 20_008..][..8].try_into().expect("8 bytes"),
            );
            assert_eq!(found, word(&before[at]), "what was there before");
        }
    }
    world
}

#[test]
fn standard_connections_deliver() {
    for (n, wire) in wires().into_iter().enumerate() {
        for seed in 0..10 {
            let world = mixture(both(go_back_n()), wire, seed * 10 + n as u64);
            assert!(world.log.iter().all(|(_, headers)| headers.ours == Ours::No), "nothing of ours");
        }
    }
}

#[test]
fn selective_connections_deliver() {
    for (scheme, recovery) in [(1, irn()), (2, melo())] {
        for (n, wire) in wires().into_iter().enumerate() {
            for seed in 0..10 {
                let world = mixture(both(recovery), wire, seed * 10 + n as u64);
                let uses = |headers: &Headers| headers.ours == Ours::Uses(scheme);
                let ours = world.log.iter().filter(|(_, headers)| uses(headers)).count();
                assert!(ours > world.log.len() / 2, "{ours} of {}", world.log.len());
                let holes = world.log.iter().any(|(_, headers)| headers.holes.is_some());
                assert_eq!(holes, scheme == 2 && n > 0, "NACKs of MELO carry holes");
            }
        }
    }
}

#[test]
fn two_of_ours_that_disagree_are_standard() {
    let world = mixture([irn(), melo()], Wire { loss: 20, ..Wire::default() }, 1);
    assert!(!world.log.iter().any(|(_, headers)| matches!(headers.ours, Ours::Uses(_))));
}

#[test]
fn one_of_ours_and_a_standard_one_deliver() {
    for (n, wire) in wires().into_iter().enumerate() {
        for seed in 0..10 {
            let world = mixture([irn(), go_back_n()], wire, seed * 10 + n as u64);
            assert!(!world.log.iter().any(|(_, headers)| matches!(headers.ours, Ours::Uses(_))));
        }
    }
}

/// Returns IRN with the settings of the software RNIC.
fn stamped() -> RecoveryConfig {
    let RecoveryConfig::Irn(irn) = irn() else { unreachable!("it is") };
    let dynamic = DynamicRto {
        initial: Setting::Value(Duration::from_us(2_000)),
        min: Duration::from_us(2_000),
        max: Duration::from_us(50_000),
    };
    let rto = Rto::Dynamic(dynamic);
    RecoveryConfig::Irn(IrnConfig { rto, time_stamps: true, holes: true, bdp_cap: Setting::Value(1_024), ..irn })
}

/// Sends many large messages one way; returns the number of retransmissions.
fn bulk(wire: Wire, seed: u64) -> (u64, World) {
    let mut world = World::connected(both(stamped()), wire, seed);
    let key = world.hosts[1].key;
    for n in 0..20 {
        let source = vec![world.hosts[0].sge(n * 50_000, 50_000)];
        let remote = Remote { address: BASE + n * 50_000, key };
        world.post(0, request(n, Operation::Write { remote, immediate: None }, source));
    }
    world.run(3_000_000);
    assert_eq!(world.hosts[0].poll().len(), 20, "{wire:?}, seed {seed}");
    assert_eq!(world.hosts[1].memory[..1_000_000], world.hosts[0].memory[..1_000_000]);
    let again = |headers: &Headers| headers.extension.is_some_and(|extension| extension.retransmission);
    let again = world.log.iter().filter(|(at, headers)| *at == 0 && again(headers)).count();
    (again as u64, world)
}

#[test]
fn what_is_lost_is_sent_again_and_nothing_else() {
    for batch_us in [0, 50, 400] {
        for seed in 0..20 {
            let (again, world) = bulk(Wire { loss: 10, batch_us, ..Wire::default() }, seed);
            let [lost, acks_lost] = world.lost;
            // The sender does not know of arrivals that only a lost NACK has reported.
            let is_right = again == lost || (again > lost && acks_lost > 0);
            assert!(
                is_right,
                "{again} sent again, {lost} lost and {acks_lost} acknowledgements: {batch_us} us, seed {seed}"
            );
        }
    }
}

#[test]
fn some_packets_ask_for_acknowledgements_and_these_speak_for_the_others() {
    let (_, world) = bulk(Wire::default(), 1);
    let of = |host| world.log.iter().filter(move |(at, headers)| *at == host && headers.extension.is_some());
    let (data, asked) = (of(0).count(), of(0).filter(|(_, headers)| headers.bth.ack_request).count());
    // Every eighth packet, and the last when no more is to be sent.
    assert!((data / 8..data / 8 + 20).contains(&asked), "{asked} of {data}");
    assert!((1..=asked).contains(&of(1).count()));
}

#[test]
fn counters_are_what_an_onlooker_counts() {
    for (n, recovery) in [irn(), melo()].into_iter().enumerate() {
        let world = mixture(both(recovery), Wire { loss: 30, ..Wire::default() }, n as u64);
        // Standard packets, before both sides go over, are counted by the NIC alone.
        let again = world.log.iter().filter(|(_, headers)| headers.extension.is_some_and(|sent| sent.retransmission));
        let counted: u64 = world.hosts.iter().map(|host| host.rnic.stats().retransmissions).sum();
        assert!(counted > 0 && counted >= again.count() as u64, "{counted}");
    }
}

#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    for recovery in [go_back_n(), irn(), melo()] {
        let world = mixture(both(recovery), Wire::default(), 1);
        for host in &world.hosts {
            let stats = host.rnic.stats();
            assert_eq!((stats.retransmissions, stats.duplicates, stats.timeouts), (0, 0, 0));
            // Each direction's Sends, Writes and Writes with immediates, and the responses to Reads and Atomics.
            let payload: u64 = [0, 1, 255, 256, 257, 1_000, 5_000, 20_000].iter().sum();
            assert_eq!(stats.goodput, 4 * payload + 8 * 8);
        }
    }
}

#[test]
fn who_knows_the_other_side_begins_at_once_in_its_own_way() {
    let mut world = World::connected(both(irn()), Wire::default(), 1);
    world.agree();
    let (key, data) = (world.hosts[1].key, vec![world.hosts[0].sge(0, 5_000)]);
    let remote = Remote { address: BASE, key };
    world.post(0, request(1, Operation::Write { remote, immediate: None }, data));
    world.run(1_000);
    assert!(world.log.iter().all(|(_, headers)| matches!(headers.ours, Ours::Uses(_))));
    assert_eq!(world.hosts[0].poll().len(), 1);
}

/// Returns the recovery of [`stamped`], but with timeouts no longer than the world's.
fn quick() -> RecoveryConfig {
    let RecoveryConfig::Irn(irn) = stamped() else { unreachable!("it is") };
    let high = Setting::Value(Duration::from_us(300));
    let rto = Rto::Dynamic(DynamicRto { initial: high, min: Duration::from_us(200), max: Duration::from_us(300) });
    RecoveryConfig::Irn(IrnConfig { rto, rto_high: high, ..irn })
}

/// Posts Writes, then Reads of the written memory, then additions, all at once: windows fill with responses.
fn round(world: &mut World, number: u64) {
    let (here, key) = (&world.hosts[0], world.hosts[1].key);
    let remote = |offset| Remote { address: BASE + offset, key };
    let mut requests = Vec::new();
    for slot in 0..8 {
        let size = (number * 8 + slot) * 977 % 10_000 + 1;
        let from = slot * 16_384;
        let write = Operation::Write { remote: remote(524_288 + from), immediate: None };
        requests.push(request(slot, write, vec![here.sge(from, size as u32)]));
    }
    for slot in 0..8 {
        let from = slot * 16_384;
        let read = Operation::Read(remote(524_288 + from));
        requests.push(request(8 + slot, read, vec![here.sge(262_144 + from, 16_384)]));
    }
    for id in 16..21 {
        let add = Operation::FetchAdd { remote: remote(1_000_000), add: 1 };
        requests.push(request(id, add, vec![here.sge(1_000_000, 8)]));
    }
    for request in requests {
        world.post(0, request);
    }
    world.run(4_000_000);
}

#[test]
fn answers_arrive_whatever_window_they_have_to_fit_into() {
    let pairs = [both(go_back_n()), both(irn()), both(quick()), both(melo()), [irn(), go_back_n()]];
    for seed in 0..180 {
        let of = |choices: [u64; 3], each: u64| choices[(seed / each % 3) as usize];
        let wire =
            Wire { loss: of([10, 30, 60], 1), duplicates: 30, late: 30, batch_us: of([0, 20, 100], 3), jitter_us: 0 };
        let (window, reads) = (of([4, 32, 256], 9), of([1, 4, 16], 27));
        let mut world = World::limited(pairs[seed as usize % 5], wire, seed, window as u32, reads as u8);
        for number in 0..3 {
            round(&mut world, number);
            let all = world.hosts[0].poll();
            let failed: Vec<_> = all.iter().filter(|completion| completion.status != Status::Success).collect();
            assert!(failed.is_empty() && all.len() == 21, "seed {seed}, {window} packets, {reads} Reads: {failed:?}");
            let (here, there) = (&world.hosts[0].memory[262_144..][..131_072], &world.hosts[1].memory[524_288..]);
            assert_eq!(here, &there[..131_072], "what was read is what was written");
        }
    }
}
