//! The credit invariant (section 5): credit held, packets in flight, pulls in flight and credit owed by the receiver
//! add up to one window while demand remains, whatever is lost.

use alloc::vec;
use alloc::vec::Vec;

use selvedge_units::{Domain, Duration, Rng};
use selvedge_wire::eqds::Flags;

use super::*;

/// Returns the total credit in bytes of a tunnel whose network keeps packets in order and loses none.
fn all_credit(tunnel: &Tunnel) -> u32 {
    let data: u32 = tunnel.data.iter().map(|(data, _)| u32::from(data.payload)).sum();
    let pulls = tunnel.params.numbers.distance(tunnel.sender.pull(), tunnel.receiver.pull());
    tunnel.sender.credit() + data + (pulls as u32 + tunnel.receiver.owed(&tunnel.params)) * MTU
}

#[test]
fn credit_is_one_window_at_every_step() {
    for (bursts, most) in [(true, 1), (false, 1), (true, 4), (false, 4), (true, 1_024)] {
        for sizes in [[MTU, MTU, MTU], [MTU, 100, 700], [1, MTU, 1]] {
            let mut tunnel = Tunnel::new(EqdsParams { bursts, ..params() });
            let mut rng = Rng::stream(5, Domain::Impairment, 1);
            tunnel.supply(sizes.repeat(200));
            let mut asked = bursts;
            for _ in 0..4_000 {
                match rng.below(4) {
                    0 => asked |= tunnel.send().is_some(),
                    1 if !tunnel.data.is_empty() => _ = tunnel.arrive(0, false),
                    2 => _ = tunnel.grant_up_to(1 + rng.below(most) as u32),
                    _ if !tunnel.control.is_empty() => _ = tunnel.answer(0),
                    _ => {}
                }
                let requested = tunnel.data.iter().any(|(data, _)| data.flags.any(Flags::RTS));
                let window = tunnel.params.window;
                if asked && !requested && tunnel.sender.demand() >= u64::from(window) {
                    let all = all_credit(&tunnel);
                    assert!((window..window + MTU).contains(&all), "{all} bytes of credit with {sizes:?}");
                }
            }
            assert!(tunnel.delivered.len() > 300, "it moves");
        }
    }
}

/// Stacks hand over packet by packet: packets sent when nothing waited, and packets requested, alternate. The sender
/// keeps no account per packet: occasionally the credit of one or two packets counts twice.
#[test]
fn credit_is_one_window_at_most_whatever_is_supplied_when() {
    for seed in 0..40 {
        let mut tunnel = Tunnel::new(EqdsParams { bursts: seed % 4 != 0, ..params() });
        let mut rng = Rng::stream(seed, Domain::Impairment, 3);
        let (mut supplied, mut most) = (0, 0);
        for step in 0..20_000 {
            // Alternately more than can be sent, and almost nothing.
            let often = if step / 500 % 2 == 0 { 3 } else { 12 };
            match rng.below(5 + often) {
                0 => {
                    let most = if rng.below(8) == 0 { 14 } else { 2 };
                    let count = 1 + rng.below(most) as usize;
                    tunnel.supply(vec![MTU; count]);
                    supplied += count;
                }
                1..=3 => _ = tunnel.send(),
                4..=6 if !tunnel.data.is_empty() => _ = tunnel.arrive(0, false),
                7 => _ = tunnel.grant(),
                _ if !tunnel.control.is_empty() => _ = tunnel.answer(0),
                _ => {}
            }
            let all = all_credit(&tunnel);
            assert!(all <= tunnel.params.window + 2 * MTU, "{all} bytes of credit, seed {seed}, step {step}");
            most = most.max(all);
        }
        assert!(most >= tunnel.params.window, "all of it at times");
        tunnel.settle();
        assert_eq!(tunnel.delivered.len(), supplied);
    }
}

/// Checks the invariants of the numbers at both ends, whatever happens to packets; `lost` NACKs were lost.
fn check_numbers(tunnel: &Tunnel, most_demand: bool, lost: i32) {
    let (params, sender, receiver) = (&tunnel.params, &tunnel.sender, &tunnel.receiver);
    let believed = sender.credit() + sender.awaited(params) * MTU;
    assert!(believed < params.window + MTU, "never more than a window: {believed}");
    assert!(!most_demand || believed >= params.window, "all of it while demand remains: {believed}");
    if receiver.epoch() == Some(sender.epoch()) {
        let in_flight = params.numbers.distance(sender.pull(), receiver.pull());
        assert!(in_flight >= 0, "no credit from nowhere");
        let asked = params.numbers.add(sender.pull(), sender.awaited(params));
        let owed_to = params.numbers.add(receiver.pull(), receiver.owed(params));
        let early = params.numbers.distance(asked, owed_to);
        // A trimmed packet's credit may be owed before its sender knows, or without it ever knowing.
        let naks = tunnel.control.iter().filter(|control| control.flags.any(Flags::NACK)).count() as i32;
        assert!(early <= naks + lost, "{early} more than was asked for, {naks} NACKs under way, {lost} lost");
    }
}

#[test]
fn whatever_is_lost_doubled_or_overtaken_all_arrives_and_credit_stays_one_window() {
    for seed in 0..60 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 2);
        let bursts = seed % 2 == 0;
        let trims = bursts && seed % 3 != 0;
        let mut tunnel = Tunnel::new(EqdsParams { bursts, max_timeouts: 1_000_000, ..params() });
        let packets = 300;
        tunnel.supply(vec![MTU; packets]);
        let (mut steps, mut lost) = (0, 0);
        while !tunnel.sender.is_done() {
            steps += 1;
            assert!(steps < 200_000, "seed {seed}: stuck with {} delivered", tunnel.delivered.len());
            let data = tunnel.data.len() as u64;
            let control = tunnel.control.len() as u64;
            tunnel.now += Duration::from_ns(200);
            match rng.below(12) {
                0..=2 => _ = tunnel.send(),
                3..=5 if data > 0 => _ = tunnel.arrive(rng.below(data) as usize, trims && rng.below(10) == 0),
                6..=8 if control > 0 => _ = tunnel.answer(rng.below(control) as usize),
                9 => _ = tunnel.grant(),
                10 if data > 0 && rng.below(4) == 0 => {
                    let place = rng.below(data) as usize;
                    let packet = if rng.below(2) == 0 { Some(tunnel.data[place]) } else { None };
                    match packet {
                        Some(twin) => tunnel.data.push_back(twin),
                        None => _ = tunnel.data.remove(place),
                    }
                }
                11 if control > 0 && rng.below(2) == 0 => {
                    let place = rng.below(control) as usize;
                    let packet = if rng.below(3) == 0 { Some(tunnel.control[place]) } else { None };
                    match packet {
                        Some(twin) => tunnel.control.push_back(twin),
                        None => {
                            let control = tunnel.control.remove(place).expect("the control packet exists");
                            lost += i32::from(control.flags.any(Flags::NACK));
                        }
                    }
                }
                _ if tunnel.now >= tunnel.sender.poll_timeout() => {
                    tunnel.sender.handle_timeout(&tunnel.params, tunnel.now);
                }
                _ => {}
            }
            let waiting = tunnel.queue.iter().map(|size| u64::from(*size)).sum::<u64>();
            let has_asked = tunnel.name > 0 && waiting >= u64::from(tunnel.params.window);
            check_numbers(&tunnel, has_asked, lost);
        }
        tunnel.data.clear();
        assert_eq!(tunnel.delivered, Vec::from_iter(0..packets as u32), "seed {seed}");
    }
}

/// With only trimming and reordering, no timeout is needed: both ends agree on the credit owed.
#[test]
fn whatever_is_trimmed_or_overtaken_nobody_waits_for_a_timeout() {
    for seed in 0..2_000 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 4);
        let ack_after = [0, 2 * MTU, 8 * MTU][seed as usize % 3];
        let mut tunnel = Tunnel::new(EqdsParams { ack_after, ..params() });
        let sizes = [MTU, MTU, MTU, 100, MTU / 2];
        let packets = 20 + rng.below(60) as usize;
        tunnel.supply((0..packets).map(|n| sizes[n % sizes.len()]));
        let trims = 2 + rng.below(10);
        for _ in 0..8 * packets {
            let (data, control) = (tunnel.data.len() as u64, tunnel.control.len() as u64);
            match rng.below(4) {
                0 => {
                    let another = tunnel.send().is_some_and(|sent| sent.another);
                    assert!(
                        !another || tunnel.wants() == Interest::Send,
                        "seed {seed}: it said that another would follow"
                    );
                }
                1 if data > 0 => _ = tunnel.arrive(rng.below(data) as usize, rng.below(trims) == 0),
                2 if control > 0 => _ = tunnel.answer(rng.below(control) as usize),
                3 => _ = tunnel.grant(),
                _ => {}
            }
        }
        tunnel.settle();
        assert!(tunnel.sender.is_done(), "seed {seed}: {} of {packets} delivered", tunnel.delivered.len());
        assert_eq!(tunnel.delivered, Vec::from_iter(0..packets as u32), "seed {seed}");
    }
}

/// Whatever both ends have been through, one PULL of several quanta leaves them in the state in which as many PULLs of
/// one quantum leave them: each bound shown for single quanta holds for several.
#[test]
fn one_pull_of_several_quanta_is_worth_as_many_pulls() {
    let mut compared = 0;
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 5);
        let bursts = seed % 2 == 0;
        let mut tunnel = Tunnel::new(EqdsParams { bursts, ..params() });
        tunnel.supply(vec![MTU; 100]);
        for _ in 0..600 {
            let (data, control) = (tunnel.data.len() as u64, tunnel.control.len() as u64);
            match rng.below(4) {
                0 => _ = tunnel.send(),
                1 if data > 0 => _ = tunnel.arrive(rng.below(data) as usize, bursts && rng.below(8) == 0),
                2 if control > 0 => _ = tunnel.answer(rng.below(control) as usize),
                3 => {
                    let quanta = tunnel.receiver.owed(&tunnel.params).min(rng.below(9) as u32);
                    let (mut one_by_one, mut sender) = (tunnel.receiver.clone(), tunnel.sender.clone());
                    let pulls: Vec<_> = (0..quanta).filter_map(|_| one_by_one.grant(&tunnel.params, 1)).collect();
                    if tunnel.grant_up_to(quanta) == 0 {
                        continue;
                    }
                    assert_eq!(tunnel.receiver, one_by_one);
                    for pull in &pulls {
                        sender.handle_control(&tunnel.params, tunnel.now, pull, |_| {});
                    }
                    assert_eq!(tunnel.control.back(), pulls.last());
                    tunnel.answer(tunnel.control.len() - 1);
                    assert_eq!(tunnel.sender, sender, "seed {seed}");
                    compared += u32::from(quanta > 1);
                }
                _ => {}
            }
        }
    }
    assert!(compared > 1_000, "{compared}");
}
