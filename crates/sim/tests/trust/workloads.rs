//! Workloads through the fabric: every flow runs once, at its time.

use std::collections::BTreeMap;

use selvedge_sim::config::{BufferConfig, InputQueued};
use selvedge_sim::port_infos;
use selvedge_sim::topology::{Chain, FatTree, Graph};
use selvedge_sim::workload::{
    AllToAll, ClosedLoopConfig, Fraction, Incast, Many, Measure, Pairs, Permutation, Poisson, Senders, Sizes, Start,
    TriggerKind, Window,
};
use selvedge_telemetry::PacketKind;
use selvedge_transport::recovery::go_back_n::{Acks, GoBackNConfig};
use selvedge_units::{Bytes, Duration, HostId, Instant, Setting};

use crate::support::{Outcome, Scene, Series, link, star};

fn fat_tree() -> Graph {
    FatTree { k: 4, link: link(40, 1_000) }.build().unwrap()
}

fn poisson(load: f64, flows: Option<u64>) -> Many<Poisson> {
    Many::from(Poisson {
        load: Fraction::new(load).unwrap(),
        sizes: Sizes::Uniform([Bytes::new(500), Bytes::new(50_000)]),
        hosts: None,
        pairs: Pairs::Uniform,
        flows,
        start: Duration::ZERO,
        until: None,
    })
}

fn closed_loop(outstanding: u32, flows_per_client: Option<u64>, size: u64) -> Many<ClosedLoopConfig> {
    Many::from(ClosedLoopConfig {
        clients: None,
        servers: None,
        outstanding,
        sizes: Sizes::Fixed(Bytes::new(size)),
        flows_per_client,
        think: Duration::ZERO,
        start: Duration::ZERO,
        jitter: Duration::ZERO,
    })
}

#[test]
fn repetitions_of_an_incast_follow_each_other() {
    for series in Series::ALL {
        let incast = Incast {
            size: Bytes::new(600_001),
            senders: Senders::Count(6),
            connections: 1,
            receiver: None,
            start: Duration::from_us(3),
            stagger: Duration::from_ns(200),
            jitter: Duration::ZERO,
            repeat: 5,
            interval: None,
        };
        let outcome =
            Scene::new(fat_tree(), series).with(|config| config.workload.incast = Many::from(incast)).finish();
        assert_eq!(outcome.flows.len(), 30);
        let mut begin = Instant::ZERO + Duration::from_us(3);
        for group in 0..5 {
            let flows: Vec<_> = outcome.flows.iter().filter(|row| row.group == group).collect();
            assert_eq!(flows.iter().map(|row| row.size.get()).sum::<u64>(), 600_001);
            assert!(flows.iter().all(|row| row.dst == flows[0].dst && row.src != row.dst));
            let mut starts: Vec<_> = flows.iter().map(|row| row.start).collect();
            starts.sort();
            let expected: Vec<_> = (0..6).map(|n| begin + Duration::from_ns(200) * n).collect();
            assert_eq!(starts, expected, "repetition {group} of {series:?}");
            begin = flows.iter().filter_map(|row| row.finish).max().unwrap();
        }
    }
}

#[test]
fn a_permutation_has_one_flow_at_a_time_between_partners() {
    for series in Series::ALL {
        let permutation = Permutation {
            size: Bytes::new(100_000),
            repeat: 4,
            hosts: None,
            start: Duration::ZERO,
            jitter: Duration::from_us(1),
        };
        let scene = Scene::new(fat_tree(), series).with(|config| config.workload.permutation = Many::from(permutation));
        let outcome = scene.finish();
        assert_eq!(outcome.flows.len(), 64);
        let mut receivers = BTreeMap::new();
        for host in 0..16 {
            let mut flows: Vec<_> = outcome.flows.iter().filter(|row| row.src == HostId(host)).collect();
            flows.sort_by_key(|row| row.start);
            assert_eq!(flows.len(), 4);
            assert!(flows.windows(2).all(|pair| pair[0].finish.unwrap() < pair[1].start), "one after another");
            assert!(flows.iter().all(|row| row.dst == flows[0].dst));
            receivers.insert(flows[0].dst, host);
        }
        assert_eq!(receivers.len(), 16, "everybody receives");
    }
}

#[test]
fn all_to_all_reaches_every_pair_once() {
    for outstanding in [None, Some(1), Some(3)] {
        let (hosts, start, jitter) = (None, Duration::ZERO, Duration::ZERO);
        let all = AllToAll { size: Bytes::new(20_000), outstanding, hosts, start, jitter };
        let scene = Scene::new(fat_tree(), Series::RocePfc).with(|config| config.workload.all_to_all = Many::from(all));
        let outcome = scene.finish();
        let mut pairs: Vec<_> = outcome.flows.iter().map(|row| (row.src, row.dst)).collect();
        pairs.sort();
        pairs.dedup();
        assert_eq!((pairs.len(), outcome.flows.len()), (16 * 15, 16 * 15));
    }
}

#[test]
fn a_closed_loop_keeps_its_number_of_flows_going() {
    let scene = Scene::new(fat_tree(), Series::Irn).with(|config| {
        config.workload.closed_loop = closed_loop(3, Some(20), 30_000);
    });
    let outcome = scene.finish();
    assert_eq!(outcome.flows.len(), 16 * 20);
    for host in 0..16 {
        let flows: Vec<_> = outcome.flows.iter().filter(|row| row.src == HostId(host)).collect();
        assert_eq!(flows.len(), 20);
        for flow in &flows {
            let open = flows.iter().filter(|row| row.start <= flow.start && row.finish.unwrap() > flow.start).count();
            assert!(open <= 3, "{open} flows of host {host} at {}", flow.start);
        }
    }
}

#[test]
fn triggers_release_flows_as_their_kinds_say() {
    let mut scene = Scene::new(star(&[link(40, 1_000); 4]), Series::Irn);
    let (oneshot, multishot, barrier) = (
        scene.trigger(TriggerKind::OneShot),
        scene.trigger(TriggerKind::MultiShot),
        scene.trigger(TriggerKind::Barrier(3)),
    );
    let now = Start::At(Instant::ZERO);
    // Flow 0 releases 1 and 2 at once when received, and one of the rest when acknowledged.
    let first = scene.add(0, 1, 10_000, now);
    (first.on_received, first.on_sent) = (Some(oneshot), Some(multishot));
    scene.add(1, 2, 10_000, Start::Triggered(oneshot)).on_received = Some(multishot);
    scene.add(2, 3, 20_000, Start::Triggered(oneshot)).on_received = Some(oneshot);
    // Flows 3 and 4 start one by one; they and flow 0 open the barrier for 5 and 6.
    scene.add(3, 0, 5_000, Start::Triggered(multishot)).on_received = Some(barrier);
    scene.add(3, 1, 5_000, Start::Triggered(multishot)).on_received = Some(barrier);
    scene.add(0, 2, 5_000, Start::Triggered(barrier));
    scene.add(0, 3, 5_000, Start::Triggered(barrier));
    scene.add(1, 3, 200_000, now).on_received = Some(barrier);
    let outcome = scene.finish();

    let start = |id| outcome.flow(id).start;
    assert_eq!([start(1), start(2)], [outcome.finish(0); 2]);
    // The last ACK of flow 0 takes two links back.
    let back = Duration::from_us(2) + Duration::from_ps(2 * (66 + 20) * 200);
    assert_eq!(start(3), outcome.finish(0) + back);
    assert_eq!(start(4), outcome.finish(1));
    let third = [3, 4, 7].map(|id| outcome.finish(id)).into_iter().max().unwrap();
    assert_eq!([start(5), start(6)], [third; 2]);
}

#[test]
fn workloads_run_side_by_side_without_slowing_the_kernel() {
    // 20,000 flows that follow each other, then 20,000 that start at times of their own. If each of the first left an
    // event behind, each of the second would handle them all.
    let mut scene = Scene::new(star(&[link(100, 500); 3]), Series::RocePfc).with(|config| {
        config.workload.closed_loop = closed_loop(1, Some(7_000), 500);
    });
    for n in 0..20_000 {
        scene = scene.flow(0, 1, 500, Duration::from_ms(60) + Duration::from_us(1) * n);
    }
    let outcome = scene.finish();
    assert_eq!(outcome.flows.len(), 41_000);
}

#[test]
fn stop_flows_bounds_how_many_begin() {
    for series in Series::ALL {
        let scene = Scene::new(fat_tree(), series).with(|config| {
            config.workload.poisson = poisson(0.5, None);
            config.stop.flows = Some(500);
        });
        assert_eq!(scene.finish().flows.len(), 500);
    }
    // Flows that follow others are counted after each window, two of the smallest link delays.
    let scene = Scene::new(fat_tree(), Series::Irn).with(|config| {
        config.workload.closed_loop = closed_loop(2, None, 10_000);
        config.workload.poisson = poisson(0.3, None);
        config.stop.flows = Some(400);
    });
    let outcome = scene.finish();
    assert!((400..440).contains(&outcome.flows.len()), "{}", outcome.flows.len());
}

#[test]
fn stop_time_ends_the_run_in_the_middle() {
    let end = Duration::from_us(777);
    for series in Series::ALL {
        let scene = Scene::new(fat_tree(), series).with(|config| {
            config.workload.poisson = poisson(0.7, None);
            config.stop.time = Some(end);
        });
        let outcome = scene.run();
        assert_eq!(outcome.record.end, Instant::ZERO + end);
        assert!(outcome.record.flows_finished < outcome.record.flows_started);
        assert!(outcome.record.in_flight[PacketKind::Data] > 0);
        assert!(outcome.flows.iter().all(|row| row.start < Instant::ZERO + end));
    }
}

#[test]
fn measured_flows_are_those_asked_for() {
    let scene = Scene::new(fat_tree(), Series::Irn).with(|config| config.workload.poisson = poisson(0.5, Some(1_000)));
    let middle = scene.clone().with(|config| config.measure = Measure::Middle(Fraction::new(0.8).unwrap())).finish();
    for row in &middle.flows {
        assert_eq!(row.measured, (100..900).contains(&row.id), "{row:?}");
    }
    let (from, to) = (Duration::from_us(100), Duration::from_us(300));
    let window = scene.with(|config| config.measure = Measure::Window(Window { from, to: Some(to) })).finish();
    for row in &window.flows {
        let offset = row.start.since(Instant::ZERO);
        assert_eq!(row.measured, offset >= from && offset < to, "{row:?}");
    }
    assert!(window.flows.iter().any(|row| row.measured));
}

#[test]
fn samples_add_up_to_the_totals() {
    for (series, stop) in [(Series::RocePfc, None), (Series::Irn, None), (Series::IrnPfc, Some(Duration::from_us(333)))]
    {
        let scene = Scene::new(fat_tree(), series).buffer(Some(60_000)).with(|config| {
            config.workload.closed_loop = closed_loop(4, Some(10), 100_000);
            config.sample = Some(Duration::from_us(10));
            config.stop.time = stop;
        });
        assert_samples(&scene.run(), &scene);
    }
}

/// Flows that begin and end between two samples, in a fabric that is quiet before and afterwards, are in some sample.
#[test]
fn short_flows_are_in_some_sample() {
    for stop in [None, Some(Duration::from_ms(25))] {
        let scene = Scene::new(fat_tree(), Series::Irn).buffer(Some(20_000)).with(|config| {
            config.sample = Some(Duration::from_ms(1));
            config.stop.time = stop;
        });
        let all = [(1, 0), (2, 0), (3, 10), (4, 10), (5, 20), (6, 20), (7, 30), (8, 30)];
        let at = |ms| Duration::from_ms(1) * ms + Duration::from_us(1);
        let outcome = all.into_iter().fold(scene, |scene, (src, ms)| scene.flow(src, 0, 100_000, at(ms))).run();
        let record = &outcome.record;
        assert!(record.data_drops.total() > 0);
        let samples = outcome.ports.len() / record.ports.len();
        assert!((3..=5).contains(&samples), "{samples} samples");
        for total in &record.ports {
            let rows = outcome.ports.iter().filter(|row| row.port == total.id);
            assert_eq!(rows.clone().map(|row| u64::from(row.drops)).sum::<u64>(), total.drops);
            assert_eq!(rows.map(|row| row.busy).sum::<Duration>().is_zero(), total.frames == 0);
        }
    }
}

fn assert_samples(outcome: &Outcome, scene: &Scene) {
    let infos = port_infos(scene.config.paths.graph());
    for (total, info) in outcome.record.ports.iter().zip(&infos) {
        let rows: Vec<_> = outcome.ports.iter().filter(|row| row.port == total.id).collect();
        let (last, before) = rows.split_last().expect("there are samples");
        for (n, row) in (1..).zip(before) {
            assert_eq!(row.time, Instant::ZERO + Duration::from_us(10) * n);
        }
        assert_eq!(last.time, outcome.record.end, "the last interval ends with the run");
        let mut begin = Instant::ZERO;
        for row in &rows {
            let interval = row.time.since(begin);
            assert!(row.busy <= interval && row.paused <= interval, "{row:?}");
            assert!(row.egress_queue <= total.egress_peak);
            if let BufferConfig::InputQueued(InputQueued { per_port: Setting::Value(limit), .. }) =
                scene.config.switch.buffer
            {
                assert!(row.ingress_buffer <= limit, "{row:?}");
            }
            begin = row.time;
        }
        assert_eq!(rows.iter().map(|row| row.paused).sum::<Duration>(), total.paused);
        assert_eq!(rows.iter().map(|row| u64::from(row.drops)).sum::<u64>(), total.drops);
        let busy: Duration = rows.iter().map(|row| row.busy).sum();
        let sent = info.rate.time_for(Bytes::new(total.bytes.get() + 20 * total.frames));
        // The busy time is that of all that was sent, less the part of the last frame that has not left the wire.
        assert!(busy <= sent && sent.as_ps() - busy.as_ps() < info.rate.time_for(Bytes::new(1_106)).as_ps());
    }
}

/// A run that would last beyond simulated time is cut off, and nothing is counted beyond.
#[test]
fn a_run_ends_with_simulated_time() {
    let late = Instant::HORIZON.since(Instant::ZERO) - Duration::from_us(5);
    let scene = Scene::new(star(&[link(40, 500); 2]), Series::Irn);
    let outcome = scene.flow(0, 1, 1_000, late).flow(0, 1, 1_000_000, late).run();
    assert_eq!((outcome.record.end, outcome.record.flows_finished), (Instant::HORIZON, 1));
}

/// A sender that gets no acknowledgements learns of its flow's end as late as one that does, however long the path is.
#[test]
fn who_gets_no_acknowledgements_is_not_ahead() {
    let (host_link, switch_link) = (link(40, 100), link(40, 10_000));
    let graph = Chain { switches: 4, hosts_per_end: 1, hosts_per_inner: 0, host_link, switch_link }.build().unwrap();
    let starts = |acks| {
        let scene = Scene::new(graph.clone(), Series::RocePfc).with(|config| {
            config.transport.rdma_mut().expect("queue pairs").recovery =
                GoBackNConfig { acks, ..GoBackNConfig::default() }.into();
            config.workload.closed_loop = closed_loop(1, Some(5), 1_000);
        });
        scene.finish().flows.iter().map(|row| row.start).collect::<Vec<_>>()
    };
    assert_eq!(starts(Acks::None), starts(Acks::PerPacket));
}
