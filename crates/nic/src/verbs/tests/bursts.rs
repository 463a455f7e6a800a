//! Tests of bursts of losses whose length is counted in packets: a requester that sends one packet at a time does not
//! outlast them.

use alloc::vec;

use selvedge_transport::RecoveryConfig;
use selvedge_transport::recovery::irn::{DynamicRto, IrnConfig, Rto};
use selvedge_units::{Duration, Setting};

use super::world::{BASE, Wire, World, irn, request};
use crate::verbs::*;

/// Returns IRN with the settings of the software RNIC.
fn patient() -> RecoveryConfig {
    let RecoveryConfig::Irn(irn) = irn() else { unreachable!("it is") };
    let most = Duration::from_us(20_000);
    let (rto_high, initial) = (Setting::Value(most), Setting::Value(most));
    let rto = Rto::Dynamic(DynamicRto { initial, min: Duration::from_us(4_000), max: most });
    let bdp_cap = Setting::Value(256);
    RecoveryConfig::Irn(IrnConfig { rto, rto_high, time_stamps: true, holes: true, probes: 16, bdp_cap, ..irn })
}

/// Creates two hosts with this timeout code, and seven retries.
fn patient_world(timeout: u8, seed: u64) -> World {
    let mut world = World::new([patient(); 2], Wire::default(), seed, Service::Reliable);
    for at in 0..2 {
        world.connect(at, |step| step.timeout = step.timeout.map(|_| timeout));
    }
    world
}

/// Timeout code of most applications: 67 ms, hence 0.5 s with all retries.
const USUAL: u8 = 14;

fn post(world: &mut World, number: u64, slot: u64) {
    let (here, key) = (&world.hosts[0], world.hosts[1].key);
    let at = slot * 8_192;
    let remote = Remote { address: BASE + at, key };
    let (operation, from, length) = match (number + slot) % 3 {
        0 => (Operation::Read(remote), 524_288 + at, 1 + number * 977 % 4_000),
        1 => (Operation::Write { remote, immediate: None }, at, 1 + number * 977 % 4_000),
        _ => (Operation::FetchAdd { remote: Remote { address: BASE + 1_000_000, key }, add: 1 }, 1_000_000, 8),
    };
    let data = vec![here.sge(from, length as u32)];
    world.post(0, request(number, operation, data));
}

/// Posts `depth` requests at a time and waits for their completions, `rounds` times.
fn talk(world: &mut World, rounds: u64, depth: u64, what: &str) {
    for number in 0..rounds {
        for slot in 0..depth {
            post(world, number, slot);
        }
        let mut left = depth;
        while left > 0 {
            world.run(100);
            for completion in world.hosts[0].poll() {
                assert_eq!(completion.status, Status::Success, "{what}: request {number}, {:?}", completion.kind);
                left -= 1;
            }
        }
    }
}

#[test]
fn connections_outlast_bursts_of_losses() {
    for (rate, mean) in [(20, 8.0), (50, 8.0), (50, 16.0)] {
        for (rounds, depth) in [(150, 1), (40, 8)] {
            for seed in 0..12 {
                let mut world = patient_world(USUAL, seed);
                world.lose_bursts(mean, rate, seed);
                talk(&mut world, rounds, depth, &alloc::format!("bursts of {mean}, {rate} in 1,000, seed {seed}"));
                let added = (0..rounds).flat_map(|number| (0..depth).map(move |slot| (number + slot) % 3 == 2));
                let counter = &world.hosts[1].memory[1_000_000..1_000_008];
                let first = patient_world(USUAL, seed).hosts[1].memory[1_000_000..1_000_008].to_vec();
                let value = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
                let additions = added.filter(|is_addition| *is_addition).count() as u64;
                assert_eq!(value(counter).wrapping_sub(value(&first)), additions, "each once");
            }
        }
    }
}

#[test]
fn the_first_words_outlast_bursts_too() {
    // The kind of the other side is not known yet.
    for seed in 0..400 {
        let mut world = patient_world(USUAL, seed);
        world.lose_bursts(8.0, 100, seed);
        talk(&mut world, 2, 1, &alloc::format!("seed {seed}"));
    }
}

#[test]
fn the_answer_to_a_read_waits_for_as_long_as_the_requester_does() {
    // Eight times 1 s, of which 5 s pass without a packet.
    let mut world = patient_world(18, 1);
    talk(&mut world, 3, 1, "before");
    let (length, remote) = (200_000, Remote { address: BASE, key: world.hosts[1].key });
    let data = vec![world.hosts[0].sge(524_288, length)];
    world.post(0, request(7, Operation::Read(remote), data));
    world.run(30);
    world.wire.loss = 1_000;
    world.run(5_000_000);
    world.wire.loss = 0;
    world.run(3_000_000);
    let all = world.hosts[0].poll();
    assert!(all.len() == 1 && all[0].status == Status::Success, "{all:?}");
    assert_eq!(world.hosts[0].memory[524_288..][..200_000], world.hosts[1].memory[..200_000]);
}
