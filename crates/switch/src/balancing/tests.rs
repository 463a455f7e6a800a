use selvedge_units::Domain;

use super::*;

const WAYS: [u16; 4] = [2, 3, 5, 7];
const LEAVES: usize = 64;

fn balancer(balancing: Balancing) -> Balancer {
    Balancer::new(balancing, LEAVES, Rng::stream(1, Domain::LoadBalancing, 0))
}

fn us(n: u64) -> Instant {
    Instant::ZERO + Duration::from_us(n)
}

/// Returns the load of ports that differ in the bytes that wait; `bytes` is indexed by port.
fn waiting(bytes: [u64; 8]) -> impl Fn(u16) -> Load + Copy {
    move |port| (bytes[usize::from(port)], Duration::ZERO)
}

const EMPTY: [u64; 8] = [0; 8];

/// Returns how many of 4,000 packets of one flow take each port.
fn spread(balancer: &mut Balancer, load: impl Fn(u16) -> Load + Copy) -> [u32; 8] {
    let mut taken = [0; 8];
    for _ in 0..4_000 {
        taken[usize::from(balancer.choose(&WAYS, 1, 9, us(0), load))] += 1;
    }
    taken
}

#[test]
fn spraying_spreads_one_flow_evenly() {
    let taken = spread(&mut balancer(Balancing::Spray), waiting(EMPTY));
    assert!(WAYS.iter().all(|&port| (900..1_100).contains(&taken[usize::from(port)])), "{taken:?}");
    assert_eq!(taken.iter().sum::<u32>(), 4_000);
}

#[test]
fn drill_spreads_over_queues_that_are_alike() {
    let taken = spread(&mut balancer(Balancing::Drill(Drill { choices: 2, memory: 1 })), waiting(EMPTY));
    assert!(WAYS.iter().all(|&port| (900..1_100).contains(&taken[usize::from(port)])), "{taken:?}");
}

#[test]
fn drill_finds_the_shortest_queue_and_remembers_it() {
    let mut drill = balancer(Balancing::Drill(Drill { choices: 2, memory: 1 }));
    let load = waiting([0, 0, 900, 600, 0, 100, 0, 800]);
    let first = (0..100).position(|_| drill.choose(&WAYS, 1, 9, us(0), load) == 5).expect("port 5 is drawn soon");
    assert!(first < 30);
    assert!((0..100).all(|_| drill.choose(&WAYS, 1, 9, us(0), load) == 5), "memory keeps it");
    let others = (2..LEAVES as u32).map(|leaf| drill.choose(&WAYS, leaf, 9, us(0), load));
    assert!(others.filter(|&port| port != 5).count() > 5, "other leaves have memories of their own");
}

#[test]
fn drill_without_memory_takes_the_shorter_of_what_it_draws() {
    let mut drill = balancer(Balancing::Drill(Drill { choices: 2, memory: 0 }));
    let taken = spread(&mut drill, waiting([0, 0, 400, 300, 0, 200, 0, 100]));
    // Of two draws out of four, the k-th shortest is best with probability (2 (4 - k) + 1) / 16.
    for (port, expected) in [(7, 1_750), (5, 1_250), (3, 750), (2, 250)] {
        assert!(taken[port].abs_diff(expected) < 120, "{taken:?}");
    }
}

#[test]
fn of_equal_queues_the_port_that_is_free_sooner_is_taken() {
    let mut drill = balancer(Balancing::Drill(Drill { choices: 8, memory: 8 }));
    let load = |port| (0, Duration::from_ns(if port == 3 { 1 } else { 80 }));
    let late = (0..50).map(|_| drill.choose(&WAYS, 0, 9, us(0), load)).skip(10).collect::<Vec<_>>();
    assert!(late.iter().all(|&port| port == 3), "{late:?}");
}

#[test]
fn a_remembered_port_that_leads_nowhere_is_not_taken() {
    let mut drill = balancer(Balancing::Drill(Drill { choices: 1, memory: 1 }));
    let load = waiting([0, 0, 900, 900, 0, 100, 0, 900]);
    assert!((0..100).any(|_| drill.choose(&WAYS, 1, 9, us(0), load) == 5));
    assert!((0..100).all(|_| [2, 3, 7].contains(&drill.choose(&[2, 3, 7], 1, 9, us(0), load))));
}

#[test]
fn a_flow_keeps_its_way_until_it_pauses() {
    for to_least_loaded in [false, true] {
        let gap = Duration::from_us(10);
        let mut flowlets = balancer(Balancing::Flowlet(Flowlet { gap, to_least_loaded, entries: 64 }));
        let load = waiting([0, 0, 900, 900, 0, 100, 0, 900]);
        let mut now = 0;
        let mut burst = |flowlets: &mut Balancer, pause| {
            now += pause;
            let first = flowlets.choose(&WAYS, 1, 9, us(now), load);
            for _ in 0..20 {
                now += 10;
                assert_eq!(flowlets.choose(&WAYS, 1, 9, us(now), load), first);
            }
            first
        };
        let ways: Vec<u16> = (0..50).map(|_| burst(&mut flowlets, 11)).collect();
        if to_least_loaded {
            assert!(ways.iter().all(|&port| port == 5), "{ways:?}");
        } else {
            assert!(WAYS.iter().all(|port| ways.contains(port)), "{ways:?}");
        }
    }
}

#[test]
fn flowlets_reorder_nothing_where_ways_differ_by_less_than_the_gap() {
    for seed in 0..200 {
        let mut rng = Rng::stream(seed, Domain::Impairment, 0);
        let gap = Duration::from_us(10);
        let flowlet = Flowlet { gap, entries: 1 + rng.below(4) as usize, to_least_loaded: false };
        let mut flowlets = balancer(Balancing::Flowlet(flowlet));
        let delays: [u64; 8] = std::array::from_fn(|_| 30 + rng.below(10));
        let (mut now, mut latest) = (0, [0; 3]);
        for _ in 0..300 {
            now += 1 + rng.below(25);
            let flow = rng.below(3) as usize;
            let port = flowlets.choose(&WAYS, 1, flow as u32, us(now), waiting(EMPTY));
            let arrival = now + delays[usize::from(port)];
            assert!(arrival > latest[flow], "seed {seed}");
            latest[flow] = arrival;
        }
    }
}
