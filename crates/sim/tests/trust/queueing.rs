//! Queues agree with theory.

use selvedge_sim::config::{Arbitration, BufferConfig, EcnConfig, InputQueued, SharedBuffer};
use selvedge_sim::topology::Graph;
use selvedge_sim::workload::Start;
use selvedge_telemetry::DropReason;
use selvedge_transport::recovery::irn::{PartialAcks, RtoRestart};
use selvedge_units::{Bytes, Chance, Domain, Duration, Instant, Rate, Rng, Setting, Toggle};

use crate::support::{Scene, Series, drops, link, star};

/// Returns the mean wait, in service times, of packets that arrive at random (Poisson) for one output, and its standard
/// error.
///
/// The conditions of the formula hold: packets have one size and come from many hosts whose links are forty times as
/// fast as the output. A host's own link hardly delays its packets and hardly spaces them out, so arrivals at the
/// switch are Poisson like those at the hosts, and the output is the only queue: M/D/1. (With links as fast as the
/// output, each input would carry one packet per service time at most, and with few inputs waits would be shorter.)
/// There are no acknowledgements, and the buffer has no limit.
fn mean_wait(rho: f64, packets: u32) -> (f64, f64) {
    let senders = 32;
    let mut links = vec![link(400, 100); senders + 1];
    links[senders] = link(10, 100);
    let mut scene = Scene::new(star(&links), Series::RocePfc).buffer(None);
    let service = scene.data_time(1_024, Rate::from_gbps(10));
    let mut rng = Rng::stream(5, Domain::FlowArrival, (rho * 100.0) as u64);
    let mut at = 0.0;
    for _ in 0..packets {
        at += -(1.0 - rng.unit_f64()).ln() * service.as_ps() as f64 / rho;
        let host = rng.below(senders as u64) as u32;
        scene.add(host, senders as u32, 1_024, Start::At(Instant::from_ps(at as u64)));
    }
    let outcome = scene.finish();

    // Batch means: waits of neighbours are correlated, those of batches hardly.
    let mut waits = vec![0.0; packets as usize];
    for row in &outcome.flows {
        waits[row.id as usize] = (row.fct().unwrap() - row.ideal).as_ps() as f64 / service.as_ps() as f64;
    }
    let batches: Vec<f64> =
        waits.chunks_exact(packets as usize / 40).map(|batch| batch.iter().sum::<f64>() / batch.len() as f64).collect();
    let mean = batches.iter().sum::<f64>() / batches.len() as f64;
    let variance = batches.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (batches.len() - 1) as f64;
    (mean, (variance / batches.len() as f64).sqrt())
}

#[test]
fn random_arrivals_wait_as_in_m_d_1() {
    for (rho, packets) in [(0.3, 40_000), (0.6, 80_000), (0.8, 160_000)] {
        // Pollaczek and Khinchine: rho / (2 mu (1 - rho)), here with mu = 1.
        let expected = rho / (2.0 * (1.0 - rho));
        let (mean, error) = mean_wait(rho, packets);
        assert!(error < 0.03 * expected, "precise enough to mean something: {mean} +- {error}");
        // 99 % of the t distribution with 39 degrees of freedom.
        assert!((mean - expected).abs() < 2.71 * error, "rho {rho}: {mean} +- {error}, not {expected}");
    }
}

/// Returns the completion time of the one flow behind the second input, in times of its packets. Three flows share an
/// output: two come through the first input, from hosts of another switch.
fn done_with(arbitration: Arbitration) -> f64 {
    let mut graph = Graph::default();
    let (near, far) = (graph.add_switch("near".into(), 0, 0), graph.add_switch("far".into(), 0, 0));
    for (name, switch) in [("a", far), ("b", far), ("c", near), ("to", near)] {
        let host = graph.add_host(name.into(), 0);
        graph.connect(host.into(), switch.into(), link(40, 1_000));
    }
    graph.connect(far.into(), near.into(), link(400, 1_000));
    let packets = 600;
    let scene = Scene::new(graph, Series::RocePfc).with(|config| {
        config.switch.buffer =
            BufferConfig::InputQueued(InputQueued { per_port: Setting::Off, arbitration, ..InputQueued::default() });
    });
    let scene = (0..3).fold(scene, |scene, host| scene.flow(host, 3, packets * 1_024, Duration::ZERO));
    let service = scene.data_time(1_024, Rate::from_gbps(40));
    let done = scene.finish().finish(2);
    done.since(Instant::ZERO).as_us_f64() / service.as_us_f64() / packets as f64
}

/// Returns when all of a flow has left through an output, which two other inputs fill at first, in times of its
/// packets. Once these are done, another flow comes through the flow's input, for another output.
fn done_behind_a_crossbar(crossbar_speed_up: Setting<f64>) -> f64 {
    let mut graph = Graph::default();
    let (near, far) = (graph.add_switch("near".into(), 0, 0), graph.add_switch("far".into(), 0, 0));
    for (name, switch) in [("a", far), ("b", far), ("c", near), ("d", near), ("to", near), ("other", near)] {
        let host = graph.add_host(name.into(), 0);
        graph.connect(host.into(), switch.into(), link(40, 1_000));
    }
    graph.connect(far.into(), near.into(), link(40, 1_000));
    let scene = Scene::new(graph, Series::RocePfc).with(|config| {
        config.switch.buffer = BufferConfig::InputQueued(InputQueued {
            per_port: Setting::Off,
            crossbar_speed_up,
            ..InputQueued::default()
        });
    });
    let service = scene.data_time(1_024, Rate::from_gbps(40));
    let flows = [(0, 4, 600, 0), (1, 5, 300, 900), (2, 4, 300, 0), (3, 4, 300, 0)];
    let scene = flows
        .into_iter()
        .fold(scene, |scene, (from, to, packets, start)| scene.flow(from, to, packets * 1_024, service * start));
    scene.finish().finish(0).since(Instant::ZERO).as_us_f64() / service.as_us_f64()
}

#[test]
fn an_input_feeds_one_output_at_a_time_through_a_crossbar() {
    // After 900 packets the other inputs are done. 300 of the flow wait then, and 300 of the other flow begin to come:
    // the input feeds both outputs at once, or one after the other.
    for (speed_up, expected) in
        [(Setting::Off, 1_200.0), (Setting::Value(2.0), 1_200.0), (Setting::Value(1.0), 1_500.0)]
    {
        let found = done_behind_a_crossbar(speed_up);
        assert!((found / expected - 1.0).abs() < 0.02, "{speed_up:?}: {found}");
    }
}

#[test]
fn arbitration_decides_whether_inputs_or_packets_are_treated_alike() {
    // Round-robin over inputs: every other packet belongs to the flow. Oldest first: every third, since the flow sends
    // a third.
    let (by_input, by_age) = (done_with(Arbitration::RoundRobin), done_with(Arbitration::OldestFirst));
    assert!((by_input - 2.0).abs() < 0.05, "{by_input}");
    assert!((by_age - 3.0).abs() < 0.05, "{by_age}");
}

#[test]
fn marks_follow_the_red_curve() {
    let ecn = EcnConfig {
        enabled: Toggle::On,
        k_min: Setting::Value(Bytes::from_kb(100)),
        k_max: Setting::Value(Bytes::from_kb(600)),
        p_max: Setting::Value(Chance::ratio(1, 5)),
        at_rate: Setting::Off,
    };
    let frame = 1_024 + 62;
    let packets = 700;
    let scene = Scene::new(star(&[link(40, 1_000); 3]), Series::RocePfc)
        .buffer(None)
        .flow(0, 2, packets * 1_024, Duration::ZERO)
        .flow(1, 2, packets * 1_024, Duration::ZERO)
        .with(|config| config.switch.ecn = ecn);
    let outcome = scene.finish();
    // Two packets come in each slot and one leaves: those of slot n find n and n + 1 before them (the
    // very first goes straight through).
    let found = (1..packets).flat_map(|n| [n * frame, (n + 1) * frame]).chain([0]);
    let chance = |waiting: u64| match waiting as f64 {
        waiting if waiting <= 100e3 => 0.0,
        waiting if waiting > 600e3 => 1.0,
        waiting => 0.2 * (waiting - 100e3) / 500e3,
    };
    let chances: Vec<f64> = found.map(chance).collect();
    let expected: f64 = chances.iter().sum();
    let deviation = chances.iter().map(|p| p * (1.0 - p)).sum::<f64>().sqrt();
    let marks = outcome.record.ecn_marks as f64;
    assert!((marks - expected).abs() < 3.0 * deviation, "{marks}, not {expected} +- {deviation}");
    assert!(deviation < 0.1 * expected);

    let unmarked = scene.clone().with(|config| config.switch.ecn.k_min = Setting::Value(Bytes::from_kb(900)));
    let unmarked = unmarked.with(|config| config.switch.ecn.k_max = Setting::Value(Bytes::from_kb(900))).finish();
    assert_eq!(unmarked.record.ecn_marks, 0);
    let always = scene.with(|config| config.switch.ecn.k_max = config.switch.ecn.k_min).finish();
    assert_eq!(always.record.ecn_marks, chances.iter().filter(|&&p| p > 0.0).count() as u64);
}

#[test]
fn one_congested_port_gets_its_share_of_a_shared_buffer() {
    // Choudhury and Hahne: a queue that may hold alpha times what is free holds alpha / (1 + alpha) of
    // the buffer, and leaves the rest free.
    for alpha in [0.5, 1.0, 2.0, 8.0] {
        let total = 200_000;
        let shared = SharedBuffer { total: Bytes::new(total), egress_alpha: alpha, ..SharedBuffer::default() };
        // The senders assume more losses than there are, and so never pause.
        let scene = Scene::new(star(&[link(40, 1_000); 6]), Series::Irn).irn(|irn| {
            (irn.bdp_cap, irn.partial_acks) = (Setting::Value(1_000), PartialAcks::Latest);
            irn.rto_restart = RtoRestart::Progress;
        });
        let scene = (0..5).fold(scene, |scene, host| scene.flow(host, 5, 10_000_000, Duration::ZERO));
        let scene = scene.with(|config| {
            config.switch.buffer = BufferConfig::SharedBuffer(shared);
            config.sample = Some(Duration::from_us(50));
            config.stop.time = Some(Duration::from_ms(1));
        });
        let outcome = scene.run();
        assert!(drops(&outcome.record.data_drops, DropReason::BufferFull) > 100);
        let expected = alpha / (1.0 + alpha) * total as f64;
        // The switch's port to the receiver comes last.
        let port = outcome.record.ports.last().unwrap();
        let frame = 1_086.0;
        assert!((port.egress_peak.get() as f64 - expected).abs() <= frame, "{}, not {expected}", port.egress_peak);
        let queues = outcome.ports.iter().filter(|row| row.port == port.id && row.time > Instant::from_ps(200_000_000));
        for row in queues {
            let queue = row.egress_queue.get() as f64;
            assert!((queue - expected).abs() <= 2.0 * frame, "{queue} at {}, not {expected}", row.time);
        }
    }
}

#[test]
fn an_input_queued_buffer_drops_when_it_is_full_and_not_before() {
    // Two inputs, one output: each input holds up to its limit.
    let scene = Scene::new(star(&[link(40, 1_000); 3]), Series::Irn)
        .irn(|irn| irn.bdp_cap = Setting::Value(1_000))
        .buffer(Some(50_000));
    let burst = |packets: u64| {
        let scene = (0..2).fold(scene.clone(), |scene, host| scene.flow(host, 2, packets * 1_024, Duration::ZERO));
        scene.finish().record.data_drops
    };
    // In 2n slots n packets of each host come and half of them leave: 46 frames of 1086 bytes wait at
    // most, which is what n = 92 leave.
    assert_eq!(burst(90).total(), 0);
    assert!(drops(&burst(98), DropReason::BufferFull) > 0);
}
