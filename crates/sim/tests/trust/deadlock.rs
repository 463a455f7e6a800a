//! Deadlocks: runs that would never end are ended, with the reason.

use selvedge_sim::config::{BufferConfig, SharedBuffer};
use selvedge_sim::fault::{LinkFailure, LinkSelector};
use selvedge_sim::topology::{Dumbbell, Graph, LinkConfig};
use selvedge_units::{Bytes, Duration, Instant, Rate, Setting};

use crate::support::{Outcome, Scene, Series, link};

/// Returns five switches in a ring with two hosts each, h0 and h1 on s0. The only shortest path to the second next
/// switch is clockwise (in a ring of four, half of all flows would go the other way round).
fn ring() -> Graph {
    let mut graph = Graph::default();
    // Units have an order of their own, so that partitions are not in the order of switches.
    let switches: Vec<_> = (0..5).map(|n| graph.add_switch(format!("s{n}"), 0, 4 - n)).collect();
    for (n, &switch) in (0..).zip(&switches) {
        for host in [2 * n, 2 * n + 1] {
            let host = graph.add_host(format!("h{host}"), 4 - n);
            graph.connect(host.into(), switch.into(), link(40, 1_000));
        }
    }
    for n in 0..5 {
        graph.connect(switches[n].into(), switches[(n + 1) % 5].into(), link(40, 1_000));
    }
    graph
}

/// Returns a scene in which every host sends to hosts of the second next switch. Each link between switches gets two
/// thirds of its packets from its own hosts, hence passes on fewer than come in from the link before it: buffers fill
/// all round, each with packets that wait for the next.
fn clockwise(series: Series) -> Scene {
    (0..10).fold(Scene::new(ring(), series).buffer(Some(50_000)), |scene, host| {
        scene.flow(host, (host + 4) % 10, 2_000_000, Duration::ZERO)
    })
}

#[test]
fn a_cyclic_wait_is_found_and_named() {
    for partitions in [1, 2, 5] {
        for threads in [1, 2] {
            let outcome = clockwise(Series::RocePfc).parallel(threads, partitions).run();
            assert_names_the_ring(&outcome);
        }
    }
}

#[test]
fn shared_buffers_deadlock_too() {
    let shared = SharedBuffer { total: Bytes::new(150_000), ..SharedBuffer::default() };
    let scene = clockwise(Series::RocePfc).with(|config| config.switch.buffer = BufferConfig::SharedBuffer(shared));
    assert_names_the_ring(&scene.run());
}

fn assert_names_the_ring(outcome: &Outcome) {
    let deadlock = outcome.record.deadlock.as_ref().expect("a deadlock is reported");
    let nodes: Vec<&str> = deadlock.cycle.iter().map(|hop| hop.node.as_str()).collect();
    assert_eq!(nodes, ["s0", "s1", "s2", "s3", "s4"], "in the order of waiting, from the lowest port");
    for (n, hop) in deadlock.cycle.iter().enumerate() {
        assert_eq!(hop.paused_by, nodes[(n + 1) % 5], "each is paused by the next");
        assert!(!hop.waiting.is_zero());
    }
    assert!(deadlock.since < deadlock.at && deadlock.at <= outcome.record.end);
    assert!(outcome.record.end < Instant::ZERO + Duration::from_ms(10), "soon, not at the end of all patience");
    assert_eq!((outcome.record.flows_started, outcome.record.flows_finished), (10, 0));
    assert!(outcome.flows.iter().all(|row| row.finish.is_none()));
}

#[test]
fn without_pauses_the_ring_finishes() {
    for series in [Series::Irn, Series::Roce] {
        clockwise(series).finish();
    }
    // With small windows the buffers never fill, and PFC causes no deadlock.
    let careful = clockwise(Series::IrnPfc).irn(|irn| irn.bdp_cap = Setting::Value(8));
    assert_eq!(careful.finish().record.pause_frames, 0);
}

#[test]
fn a_jam_that_dissolves_is_no_deadlock() {
    // All send to one host with a slow link: a long congestion, but without a cyclic wait.
    let mut graph = ring();
    graph.links[4].rate = Rate::from_gbps(1);
    let senders = (0..10).filter(|&host| host != 4);
    let scene = senders.fold(Scene::new(graph, Series::RocePfc).buffer(Some(50_000)), |scene, host| {
        scene.flow(host, 4, 250_000, Duration::ZERO)
    });
    let outcome = scene.finish();
    assert!(outcome.record.end > Instant::ZERO + Duration::from_ms(15), "{}", outcome.record.end);
    assert!(outcome.record.paused > Duration::from_ms(10));
}

#[test]
fn a_cycle_with_a_way_out_is_no_deadlock() {
    // One host of each switch is slow, and its neighbour's packets for it fill the buffer between them; a few among
    // them wait for the next link, which is paused for the same reason, all round. The packets that the slow hosts
    // receive, one in 0.9 ms, free the buffers one after another.
    let mut graph = ring();
    for n in 0..5 {
        graph.links[2 * n + 1].rate = Rate::from_bps(10_000_000);
    }
    let mut scene = Scene::new(graph, Series::RocePfc).buffer(Some(50_000));
    for n in 0..5 {
        scene = scene.flow(2 * n, (2 * n + 3) % 10, 100_000, Duration::ZERO);
        scene = scene.flow(2 * n, (2 * n + 4) % 10, 8 * 1_024, Duration::from_us(100));
    }
    let outcome = scene.finish();
    assert!(outcome.record.paused > Duration::from_ms(20));
}

#[test]
fn a_run_that_cannot_finish_ends() {
    let host_link = link(40, 1_000);
    let graph = Dumbbell { left: 2, right: 2, host_link, bottleneck: host_link }.build().unwrap();
    for series in Series::ALL {
        let cut = LinkFailure {
            link: LinkSelector::Between("left".into(), "right".into()),
            at: Duration::from_us(10),
            until: None,
        };
        let scene = Scene::new(graph.clone(), series)
            .flow(0, 2, 1_000_000, Duration::ZERO)
            .flow(1, 0, 1_000_000, Duration::ZERO)
            .with(|config| config.failures.push(cut));
        let outcome = scene.run();
        assert_eq!(outcome.record.deadlock, None);
        assert_eq!(outcome.record.flows_finished, 1, "the flow on the left, {series:?}");
        assert_eq!(outcome.flow(0).finish, None);
        assert!(outcome.record.end < Instant::ZERO + Duration::from_ms(300), "{series:?}: {}", outcome.record.end);
    }
}

#[test]
fn slow_and_long_links_are_no_standstill() {
    let (slow, far) = (LinkConfig { rate: Rate::from_bps(20_000), delay: Duration::from_us(1) }, link(1, 600_000_000));
    for link in [slow, far] {
        let graph = Dumbbell { left: 1, right: 1, host_link: link, bottleneck: link }.build().unwrap();
        for series in Series::ALL {
            let outcome =
                Scene::new(graph.clone(), series).buffer(Some(240_000)).flow(0, 1, 5_000, Duration::ZERO).finish();
            assert!(
                outcome.record.end > Instant::ZERO + Duration::from_ms(1_800),
                "{series:?}: {}",
                outcome.record.end
            );
        }
    }
}
